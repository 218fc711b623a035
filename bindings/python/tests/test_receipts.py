"""Receipts: an estimate now, the real cost later."""

import os
import subprocess
import sys

import pytest
import tollbar
from tollbar import Settled, Table

SECOND = 1_000_000_000


def test_time_is_not_given_twice():
    """Five of ten, then seven two seconds later. The five cost nothing: five more do not pass."""
    table = Table("1/s burst 10", capacity=100)
    decision, five = table.take("k", 5, at=10 * SECOND)
    assert decision and decision.remaining == 5 and type(five) is bytes and len(five) == 32
    assert table.take("k", 7, at=12 * SECOND)[0]
    assert table.settle(five, 0, at=12 * SECOND) == Settled(first=True, given_back=3, rest=0)
    refused, none = table.take("k", 5, at=12 * SECOND)
    assert not refused and refused.retry_after == 2.0 and none is None
    assert table.settle(five, 0, at=12 * SECOND) == (False, 0, 0)
    assert table.take("k", 3, at=12 * SECOND)[0]


def test_the_rest_is_told():
    """More than the estimate is a debt of one burst at most."""
    table = Table("1/s burst 10", capacity=100)
    two = table.take("k", estimate=2, at=10 * SECOND)[1]
    assert table.settle(two, 25, at=10 * SECOND) == Settled(first=True, given_back=0, rest=5)
    assert not table.peek("k", at=20 * SECOND) and table.peek("k", at=21 * SECOND)


def test_by_the_tables_clock():
    table = Table({"other": "5/day", "own": "10/day"}, capacity=100)
    ten = table.take("k", 10, "own")[1]
    assert table.settle_in_full(ten, 4).given_back == 6
    six = table.take("k", 6, policy="own")[1]
    assert table.settle(six, cost=0).first and table.allow("k", 5, "own")
    assert table.take("k", 5)[1] is not None


PROGRAM = """
import sys, tollbar
with tollbar.Table.open(sys.argv[1]) as table:
    print(*table.settle(bytes.fromhex(sys.argv[2]), 4))
"""


def test_another_process_settles(tmp_path):
    path = tmp_path / "table"
    with Table.open(path, "10/day", 100) as table:
        receipt = table.take("k", 10)[1]
        assert not table.allow("k")
        settled = subprocess.run([sys.executable, "-c", PROGRAM, path, receipt.hex()], check=True, capture_output=True, text=True)
        first, given_back, rest = settled.stdout.split()
        # All six, or five if a moment has brought a part of one back.
        assert first == "True" and int(given_back) in (5, 6) and rest == "0"
        assert table.allow("k", 5) and not table.allow("k", 6)
        assert table.settle(receipt, 0) == (False, 0, 0)


def test_what_is_no_receipt():
    table = Table("1/h burst 10", capacity=100)
    assert table.take("k", 11, at=10 * SECOND)[0].never
    with pytest.raises(tollbar.TableError) as caught:
        table.take("k", 2**56, at=10 * SECOND)
    assert caught.value.name == "TOLLBAR_E_RECEIPT"
    ten = table.take("k", 10, at=10 * SECOND)[1]
    damaged = bytes([ten[0] ^ 1]) + ten[1:]
    for odd in (bytes(32), os.urandom(32), damaged, Table("1/h burst 10", capacity=100).take("k", 10)[1]):
        with pytest.raises(tollbar.TableError) as caught:
            table.settle(odd, 0, at=10 * SECOND)
        assert caught.value.name == "TOLLBAR_E_RECEIPT"
    for odd in (ten[:31], ten + b"0", b""):
        with pytest.raises(ValueError, match=f"32 bytes, not {len(odd)}"):
            table.settle(odd, 0)
    for odd in (None, "k" * 32, bytearray(ten), 7):
        with pytest.raises(TypeError, match="a receipt is bytes"):
            table.settle(odd, 0)
    with pytest.raises(ValueError):
        table.settle(ten, -1)
    with pytest.raises(TypeError):
        table.take("k")
    with pytest.raises(tollbar.TableError):
        table.take("k", 1, 9)
    with pytest.raises(KeyError):
        table.take("k", 1, "nobody")
    assert not table.allow("k", at=10 * SECOND)
    assert table.settle(ten, 0, at=10 * SECOND).given_back == 10 and table.allow("k", 10, at=10 * SECOND)
    table.close()
    for call in (lambda: table.take("k", 1), lambda: table.settle(ten, 0), lambda: table.settle_in_full(ten, 0)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_requests_without_a_debt():
    """An exempt key is charged nothing, so its receipt has nothing to settle."""
    table = Table("10/day", capacity=100, missing="allow")
    table.exempt("vip")
    for key in ("vip", None):
        decision, receipt = table.take(key, 50)
        assert decision and table.settle(receipt, 90) == Settled(first=True, given_back=0, rest=0)
