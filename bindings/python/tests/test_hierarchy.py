"""Hierarchies: guarantees, ceilings, what is borrowed, waits, processes that share the nodes, and
what is wrong."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
import tollbar
from tollbar import Hierarchy, Share, Table, TableError

SECOND = 10**9
MS = 10**6
HOUR = 3600 * SECOND


def nodes(**options):
    return Table(Hierarchy.POLICY, 2000, on_full="deny", **options)


def passed_in(seconds, table, tree, asked, since=HOUR):
    """How many requests of each class pass in the last second, if it asks for so many a second, in
    virtual time."""
    passed = dict.fromkeys(asked, 0)
    for tick in range(seconds * 1000):
        for leaf, rate in asked.items():
            for _ in range((tick + 1) * rate // 1000 - tick * rate // 1000):
                if tree.take(table, leaf, at=since + tick * MS) and tick >= (seconds - 1) * 1000:
                    passed[leaf] += 1
    return passed


def test_users_of_a_tenant_and_exact_waits():
    table, tree = nodes(), Hierarchy("1000/s", 0.1, classes=8)
    acme = tree.add(Hierarchy.ROOT, "acme", "400/s")
    users = tree.add(acme, "users", "1/s", "50/s", keys=100)
    for left in range(5, -1, -1):
        share = tree.take(table, users, "ann", at=HOUR)
        assert share and share.allowed and not share.never and isinstance(share, Share)
        assert (share.remaining, share.retry_after_ns, share.interval_ns, share.bound) == (left, 0, 20 * MS, users)
    refused = tree.take(table, users, "ann", at=HOUR)
    assert not refused and refused.bound == users and refused.reason == "over the rate"
    assert (refused.retry_after_ns, refused.retry_after, refused.interval) == (20 * MS, 0.02, 0.02)
    assert refused.reset_after_ns == 120 * MS and refused.reset_after == 0.12
    assert repr(refused) == f"<tollbar.Share denied, remaining=0, retry_after=0.02, interval_ns=20000000, bound={users}>"
    # Other users have nodes of their own, and so has no key.
    assert tree.take(table, users, b"bob", 2, at=HOUR) and tree.take(table, users, at=HOUR)
    assert not tree.take(table, users, "ann", at=HOUR + 20 * MS - 1)
    assert tree.take(table, users, "ann", at=HOUR + 20 * MS)
    never = tree.take(table, users, "eve", 10**9, at=HOUR)
    assert not never and never.never and never.retry_after_ns is None and never.retry_after == float("inf")
    # The table's own clock, and a burst that is a timedelta.
    assert tree.take(table, users, "zoe") and Hierarchy("1000/s", timedelta(milliseconds=100))


def test_guarantees_ceilings_and_what_is_borrowed():
    table, tree = nodes(), Hierarchy("1000/s", classes=8)
    ann, bob, eve = tree.add(0, "ann", "600/s"), tree.add(0, "bob"), tree.add(0, "eve", ceiling="300/s")

    def shares(**asked):
        nonlocal table
        table = nodes()
        passed = passed_in(8, table, tree, {{"ann": ann, "bob": bob, "eve": eve}[name]: rate for name, rate in asked.items()})
        return [round(passed[leaf] / 50) * 50 for leaf in passed]

    assert shares(bob=2000) == [1000]  # bob borrows all that is idle
    assert shares(eve=2000) == [300]  # eve has a ceiling
    assert shares(bob=2000, eve=2000) == [700, 300]
    assert shares(ann=2000, bob=2000, eve=2000) == [600, 200, 200]  # ann has a guarantee, and the others get equal parts
    assert shares(ann=100, bob=2000, eve=2000) == [100, 600, 300]


PROGRAM = """
import sys, tollbar
tree = tollbar.Hierarchy("1000/s", classes=4)
acme = tree.add(0, "acme", ceiling="50/s")
with tollbar.Table.open(sys.argv[1]) as table:
    print(sum(map(bool, (tree.take(table, acme, at=int(sys.argv[2])) for _ in range(4)))))
"""


def test_processes_share_the_nodes_of_a_table(tmp_path):
    tree = Hierarchy("1000/s", classes=4)
    acme = tree.add(Hierarchy.ROOT, "acme", ceiling="50/s")
    with Table.open(tmp_path / "nodes", Hierarchy.POLICY, 100, on_full="deny") as table:
        # Six requests pass at one instant, of both processes together.
        assert tree.take(table, acme, at=HOUR) and tree.take(table, acme, at=HOUR) and tree.take(table, acme, at=HOUR)
        other = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path / "nodes", str(HOUR)], capture_output=True, text=True, check=True)
        assert other.stdout == "3\n"
        assert tree.take(table, acme, at=HOUR).retry_after_ns == 20 * MS


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("TOLLBAR_E_GUARANTEE", lambda tree, table: tree.add(0, "a", "1001/s")),
        ("TOLLBAR_E_CLASS_RATE", lambda tree, table: tree.add(0, "a", ceiling="many")),
        ("TOLLBAR_E_CLASS_TREE", lambda tree, table: tree.add(0, "")),
        ("TOLLBAR_E_CLASS_NUMBER", lambda tree, table: tree.add(5, "a")),
        ("TOLLBAR_E_CAPACITY", lambda tree, table: [tree.add(0, str(number)) for number in range(9)]),
        ("TOLLBAR_E_CLASS_NUMBER", lambda tree, table: tree.take(table, 5)),
        ("TOLLBAR_E_CLASS_NUMBER", lambda tree, table: tree.add(0, "a") and tree.take(table, 0)),
        ("TOLLBAR_E_OTHER_POLICIES", lambda tree, table: tree.take(Table("5/s", 10), 0)),
        ("TOLLBAR_E_CLASS_RATE", lambda tree, table: Hierarchy("0/s")),
        ("TOLLBAR_E_OUT_OF_RANGE", lambda tree, table: Hierarchy("1000/s", 11)),
        ("TOLLBAR_E_CAPACITY", lambda tree, table: Hierarchy("1000/s", classes=0)),
    ],
)
def test_errors_of_the_library(name, call):
    with pytest.raises(tollbar.Error) as raised:
        call(Hierarchy("1000/s", classes=8), nodes())
    assert raised.value.name == name and isinstance(raised.value, TableError) == (name in ("TOLLBAR_E_CAPACITY", "TOLLBAR_E_OTHER_POLICIES"))


@pytest.mark.parametrize(
    ("kind", "words", "call"),
    [
        (TypeError, "table must be a Table, not", lambda tree, table: tree.take(tree, 0)),
        (TypeError, "name must be a str, not 5", lambda tree, table: tree.add(0, 5)),
        (TypeError, "rate must be a str, not 5", lambda tree, table: Hierarchy(5)),
        (TypeError, "leaf must be an int, not str", lambda tree, table: tree.take(table, "ann")),
        (TypeError, "a key is bytes, str", lambda tree, table: tree.take(table, 0, 1.5)),
        (TypeError, "missing required argument: 'name'", lambda tree, table: tree.add(0)),
        (TypeError, "unexpected keyword argument 'weight'", lambda tree, table: tree.add(0, "a", weight=2)),
        (TypeError, "burst must be seconds or a timedelta", lambda tree, table: Hierarchy("1000/s", "1s")),
        (ValueError, "burst must not be negative", lambda tree, table: Hierarchy("1000/s", -1)),
        (ValueError, "name must not have a NUL", lambda tree, table: tree.add(0, "a\0b")),
        (ValueError, "ceiling must not have a NUL", lambda tree, table: tree.add(0, "a", "", "10/s\0")),
        (ValueError, r"keys must be 0 to 2\*\*32 - 1", lambda tree, table: tree.add(0, "a", keys=2**32)),
        (ValueError, r"leaf must be 0 to 2\*\*64 - 1", lambda tree, table: tree.take(table, -1)),
        (ValueError, r"cost must be 0 to 2\*\*64 - 1", lambda tree, table: tree.take(table, 0, "k", -1)),
    ],
)
def test_arguments_that_are_wrong(kind, words, call):
    with pytest.raises(kind, match=words):
        call(Hierarchy("1000/s", classes=8), nodes())


def test_closed():
    table = nodes()
    with Hierarchy("1000/s") as tree:
        assert tree.take(table, Hierarchy.ROOT, "k") and repr(tree) == "<Hierarchy>" and not tree.closed
        table.close()
        with pytest.raises(ValueError, match="the table is closed"):
            tree.take(table, 0)
    tree.close()
    assert tree.closed and repr(tree) == "<Hierarchy, closed>"
    for call in (lambda: tree.add(0, "a"), lambda: tree.take(nodes(), 0)):
        with pytest.raises(ValueError, match="the hierarchy is closed"):
            call()
