"""Table: keys, policies, batches, closing."""

import array
import sys
import time
from datetime import timedelta

import pytest
import tollbar
from tollbar import Policy, Table

SECOND = 1_000_000_000


def test_each_key_by_itself():
    table = Table("3/min", capacity=1000)
    answers = [table.check("192.0.2.1", at=SECOND) for _ in range(4)]
    assert [a.allowed for a in answers] == [True, True, True, False]
    assert answers[3].retry_after == 20.0 and answers[3].reset_after == 60.0
    assert table.allow("192.0.2.2", at=SECOND) is True
    assert table.peek("192.0.2.3", at=SECOND).remaining == 3
    assert table.take_up_to("192.0.2.3", 9, at=SECOND) == 3
    assert not table.peek("192.0.2.3", at=SECOND)
    assert table.stats().keys == 3 and table.stats().capacity >= 1000


def test_ten_refusals_raise_one_count_by_ten():
    table = Table("3/min", capacity=1000)
    before = table.stats()
    assert [table.allow("192.0.2.1", at=SECOND) for _ in range(13)] == [True] * 3 + [False] * 10
    after = table.stats()
    assert (after.allowed - before.allowed, after.denied - before.denied, after.never - before.never) == (3, 10, 0)
    table.peek("192.0.2.1", at=SECOND)
    assert table.stats() == after


def test_counts_are_by_policy():
    table = Table({"hits": "3/min", "logins": "5/min"}, capacity=1000)
    for _ in range(13):
        table.allow("a", at=SECOND)
    table.allow("a", 6, "logins", at=SECOND)
    assert table.counts() == table.counts("hits") == tollbar.Counts(allowed=3, denied=10, never=0)
    assert table.counts(1) == (0, 0, 1)
    with pytest.raises(tollbar.Error):
        table.counts(2)
    with pytest.raises(KeyError):
        table.counts("nobody")
    table.close()
    with pytest.raises(ValueError, match="closed"):
        table.counts()


def test_keys_of_many_types_that_are_the_same_bytes():
    table = Table("6/h", capacity=10)
    for key in ("schlüssel", "schlüssel".encode(), bytearray("schlüssel".encode()), memoryview("schlüssel".encode())):
        assert table.allow(key)
    assert table.peek("schlüssel").remaining == 2
    seven = (7).to_bytes(8, sys.byteorder)
    assert table.allow(7) and table.allow(seven)
    assert table.peek(7).remaining == 4
    for kind in "qQ":
        assert table.check_many(array.array(kind, [7, 8])) == b"\1\1"
    assert table.peek(7).remaining == 2
    assert table.allow(2**64 - 1)
    assert table.peek(array.array("Q", [2**64 - 1])).remaining == 5
    # One byte each, which are other keys.
    assert table.check_many(array.array("b", [0, 127])) == b"\1\1"


def test_negative_numbers_are_no_keys():
    """-1 is what a failed lookup says: all who failed would share one limit."""
    table = Table("6/h", capacity=10)
    for wrong in (-1, -(2**63), -(2**80), 2**64):
        for call in (table.check, table.allow, table.peek, table.reset, table.exempt, table.unexempt):
            with pytest.raises(ValueError, match=f"an int key is 0 to .*, not {wrong}$"):
                call(wrong)
        with pytest.raises(ValueError, match="an int key"):
            table.check_many(["a", wrong])
    for kind in "bhilq":
        with pytest.raises(ValueError, match="item 1 of the array is negative"):
            table.check_many(array.array(kind, [5, -1]))
    for wrong in (True, False):
        with pytest.raises(TypeError, match="a key is bytes, str, int, .*, not bool"):
            table.check(wrong)
        with pytest.raises(TypeError, match="not bool"):
            table.check_many([1, wrong])


@pytest.mark.parametrize("wrong", [1.5, [], (), {}, object(), 1j])
def test_what_is_no_key(wrong):
    table = Table("1/s", capacity=10)
    for call in (table.check, table.allow, table.peek, table.reset, table.exempt, table.unexempt):
        with pytest.raises(TypeError, match="a key is"):
            call(wrong)
    with pytest.raises(TypeError, match="a key is"):
        table.check_many([b"a", wrong])
    with pytest.raises(TypeError, match="a key is"):
        table.take_up_to(wrong, 1)


def test_keys_that_cannot_be_turned_into_bytes():
    table = Table("1/s", capacity=10)
    with pytest.raises(UnicodeEncodeError):
        table.check("\ud800")
    with pytest.raises(TypeError):
        table.check()
    with pytest.raises(TypeError):
        table.take_up_to("key")


def test_policies_by_name_and_number():
    table = Table({"logins": "2/h", "pages": Policy("100/s")}, capacity=10)
    assert [table.allow("a", policy="logins") for _ in range(3)] == [True, True, False]
    assert table.allow("a", 1, "pages") and not table.allow("a", 1, 0)
    assert str(table.policy("pages")) == "100/s" and table.policy() == Policy("2/h")
    for call in (table.check, table.allow, table.peek):
        with pytest.raises(KeyError):
            call("a", policy="none")
        with pytest.raises(tollbar.TableError, match="no policy"):
            call("a", policy=2)
        with pytest.raises(tollbar.TableError):
            call("a", policy=2**40)
    with pytest.raises(tollbar.TableError):
        table.check_many(["a"], policy=2)
    table.set_policy("logins", "5/h")
    assert table.policy("logins").limit == 5
    number = table.add_policy("7/h")
    assert number == 2 and table.check("a", policy=number).remaining == 6
    assert [table.find_or_add_policy(text) for text in ("7/h", "8/h", "8/h")] == [2, 3, 3]
    with pytest.raises(tollbar.PolicyError, match="column"):
        table.find_or_add_policy("8/hh")
    with pytest.raises(tollbar.PolicyError):
        table.set_policy(0, "nonsense")
    assert Table(["1/h", "2/h"], capacity=5).check("k", policy=1).remaining == 1


def test_a_changed_policy_keeps_permits_or_time():
    at, waits = 10**12, {}
    for keep in ("count", "time"):
        table = Table("3/min", capacity=10)
        assert table.take_up_to("k", 9, at=at) == 3
        table.set_policy(0, "1000/s burst 1000", keep=keep)
        waits[keep] = table.check("k", at=at).retry_after
    assert waits["count"] == 0.001 and 58.9 < waits["time"] <= 59.01
    with pytest.raises(ValueError, match="count"):
        table.set_policy(0, "1/s", keep="sum")


def test_any_algorithm_becomes_any_other_where_slots_have_room():
    texts = ["20/s", "30/s algo sliding-window segments 10", "25/s algo sliding-log", "12/s algo fixed-window"]
    for start in texts:
        table = Table([start, "1/s"], capacity=10, room=30)
        assert table.stats().room == 30
        table.take_up_to("k", Policy(start).limit - 6, at=10**12)
        for text in texts:
            table.set_policy(0, text)
            assert table.peek("k", at=10**12).remaining == 6, (start, text)
    with pytest.raises(tollbar.TableError) as refused:
        table.set_policy(0, "31/s algo sliding-log")
    assert refused.value.name == "TOLLBAR_E_SLOT_ROOM" and str(table.policy(0)) == str(Policy(texts[-1]))
    with pytest.raises(tollbar.TableError) as refused:
        Table("1/s", capacity=10).set_policy(0, texts[1])
    assert refused.value.name == "TOLLBAR_E_MIXED_POLICIES"


def test_tables_that_cannot_be_made():
    for policies in ([], {}, ["1/s"] * 129):
        with pytest.raises(tollbar.TableError):
            Table(policies, capacity=10)
    with pytest.raises(tollbar.TableError) as caught:
        Table("1/s", capacity=0)
    assert caught.value.name == "TOLLBAR_E_CAPACITY" and isinstance(caught.value, (OSError, ValueError))
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError):
            Table("1/s", capacity=wrong)
    for options in ({"on_full": "panic"}, {"missing": 3}, {"clock": "sundial"}, {"seed": -1}):
        with pytest.raises(ValueError):
            Table("1/s", capacity=10, **options)
    with pytest.raises(TypeError):
        Table(["1/s", 5], capacity=10)
    with pytest.raises(tollbar.PolicyError) as bad:
        Table({"a": "1/s", "b": "1/parsec"}, capacity=10)
    assert bad.value.column == 3 and bad.value.text == "1/parsec"


def test_missing_keys():
    assert not Table("1/s", capacity=10).allow(None)
    assert not Table("1/s", capacity=10).allow("")
    assert Table("1/s", capacity=10, missing="allow").allow(None)
    with pytest.raises(tollbar.TableError, match="key"):
        Table("1/s", capacity=10, missing="report").allow(None)
    assert Table("1/s", capacity=10, missing="report").check_many(["a", None]) == b"\1\0"


def test_batches_of_sequences():
    table = Table("2/h", capacity=5000)
    assert table.check_many(["a", b"a", "a", bytearray(b"b")]) == b"\1\1\0\1"
    assert table.check_many((f"key{i}" for i in range(1000))) == b"\1" * 1000
    assert table.check_many(["c", "c", "d"], cost=2) == b"\1\0\1"
    assert table.check_many(["e", "f", "e"], [1, 2, 2]) == b"\1\1\0"
    assert table.check_many([]) == b""
    with pytest.raises(ValueError, match="2 costs for 1 keys"):
        table.check_many(["g"], [1, 1])
    for wrong in (b"key", "key", bytearray(b"key")):
        with pytest.raises(TypeError, match="not one key"):
            table.check_many(wrong)
    with pytest.raises(TypeError):
        table.check_many(5)
    with pytest.raises(TypeError):
        table.check_many(["h"], cost="1")


def test_batches_of_arrays():
    table = Table("1/h", capacity=5000)
    assert table.check_many(array.array("I", range(600))) == b"\1" * 600
    assert table.check_many(array.array("I", range(600))) == b"\0" * 600
    rows = memoryview(b"aabbaa").cast("B", (3, 2))
    assert table.check_many(rows) == b"\1\1\0" and not table.allow("bb")
    with pytest.raises(TypeError, match="array of keys"):
        table.check_many(array.array("d", [1.0]))
    with pytest.raises(TypeError, match="dimension"):
        table.check_many(memoryview(b"abcdefgh").cast("B", (2, 2, 2)))
    strided = memoryview(array.array("I", range(10)))[::2]
    with pytest.raises(BufferError):
        table.check_many(strided)
    assert table.check_many(array.array("I")) == b""


def test_numpy():
    import numpy

    table = Table("1/h", capacity=5000)
    keys = numpy.array([1, 2, 1, 3], dtype=numpy.int64)
    result = numpy.frombuffer(table.check_many(keys), dtype=bool)
    assert result.tolist() == [True, True, False, True]
    assert not table.allow(3) and not table.allow(numpy.int64(3))
    for wrong in (numpy.int64(-1), numpy.int8(-5), numpy.array(-1)):
        with pytest.raises(ValueError, match="an int key is 0 to"):
            table.allow(wrong)
    with pytest.raises(ValueError, match="item 0 of the array is negative"):
        table.check_many(numpy.array([-1, 2]))
    assert table.check_many(numpy.array([b"abc", b"abcdef", b"abc"])) == b"\1\1\0"
    assert not table.allow("abc")
    assert table.check_many(numpy.array(["x", "x", b"y"], dtype=object)) == b"\1\0\1"
    assert table.check_many(numpy.array([5, 6], dtype=numpy.uint8), numpy.array([2, 1])) == b"\0\1"
    assert table.check_many([b"z"], numpy.int64(1)) == b"\1"
    for wrong in (numpy.array([1.0]), numpy.array(["ü"]), numpy.array([1], dtype=">i8"), numpy.array(3)):
        with pytest.raises(TypeError):
            table.check_many(wrong)


def test_reset_and_exemption():
    table = Table("1/h", capacity=10)
    assert table.allow("a") and not table.allow("a")
    assert table.reset("a") is True
    assert table.allow("a") and not table.allow("a")
    assert table.exempt("a") is True
    assert all(table.allow("a") for _ in range(5))
    assert table.unexempt("a") is True and table.unexempt("a") is False


def test_hot_keys(tmp_path):
    plain = Table.open(tmp_path / "table", "100000/day", 1000)
    for hot in Table.open(tmp_path / "table", "100000/day", 1000, hot_keys=64), Table.open(tmp_path / "table", hot_keys=64):
        assert all(hot.allow("a") for _ in range(100))
        # This thread has permits in advance, which the table has been charged for.
        assert plain.peek("a").remaining < hot.peek("a").remaining
    private = Table("100/day", 1000, hot_keys=64)
    assert sum(private.allow("a") for _ in range(200)) in range(85, 101)


def test_a_full_table():
    seen = Table("1/h", capacity=1, seed=7).stats().slots
    table = Table("1/h", capacity=1, seed=7, on_full="deny")
    passed = sum(table.check_many(array.array("Q", range(3 * seen))))
    assert 1 < passed <= seen
    told = table.check(b"newcomer")
    assert not told and told.reason == "table full"
    assert Table("1/h", capacity=1).check(b"a").reason == "admitted"
    # By default a full table admits new keys: see docs/table.md.
    for options in ({"on_full": "allow"}, {"on_full": "evict-nearest"}, {}):
        assert sum(Table("1/h", capacity=1, **options).check_many(array.array("Q", range(3 * seen)))) == 3 * seen


def test_s30_m3_a_flood_takes_no_place_of_a_limited_key():
    # A hundred times the capacity in new keys: while the clock goes on, and while it stands still.
    table = Table({"limited": "20/h burst 50", "new": "1/s burst 1"}, 1000)
    alone = tollbar.Limiter("20/h burst 50")
    size, now, taken = table.stats().bytes, 86_400 * 10**9, 0
    for key in range(200_000):
        assert table.allow(key, policy="new", at=now)
        now += 5_000_000 if key < 100_000 else 0
        if key % 100 == 0:
            passed = table.allow("limited", policy="limited", at=now)
            assert passed == alone.allow(at=now)
            taken += passed
    assert table.stats().bytes == size and table.stats().evicted > 50_000
    assert taken == 50 + 500 // 180


def test_wait():
    table = Table("4/s burst 1", capacity=10)
    started = time.monotonic()
    assert table.allow("a")
    assert table.wait("a", timedelta(seconds=60)) is True
    assert 0.24 < time.monotonic() - started < 30
    assert table.wait("a", cost=2) is False
    slow = Table("1/h", capacity=10)
    assert slow.wait("a", 0) is True and slow.wait("a", 0) is False


def test_a_closed_table_raises():
    table = Table({"only": "1/s"}, capacity=10)
    assert not table.closed
    with table as same:
        assert same is table and table.allow("a")
    assert table.closed and "closed" in repr(table)
    table.close()
    other = Table("1/s", capacity=10)
    for call in (
        lambda: table.check("a"),
        lambda: table.allow("a"),
        lambda: table.peek("a"),
        lambda: table.take_up_to("a", 1),
        lambda: table.charge("a"),
        lambda: table.check_many(["a"]),
        lambda: table.reset("a"),
        lambda: table.exempt("a"),
        lambda: table.unexempt("a"),
        lambda: table.wait("a"),
        table.now,
        table.sync,
        table.stats,
        table.validate,
        table.repair,
        table.policy,
        lambda: table.set_policy("only", "2/s"),
        lambda: table.add_policy("2/s"),
        lambda: table.find_or_add_policy("2/s"),
        lambda: table.copy_from(other),
        lambda: other.copy_from(table),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert other.allow("a")


def test_closed_by_the_arguments_of_a_call():
    class Closes:
        def __init__(self, table):
            self.table = table

        def __index__(self):
            self.table.close()
            return 1

    for call in (
        lambda t: t.check("a", Closes(t)),
        lambda t: t.allow("a", policy=Closes(t)),
        lambda t: t.check("a", at=Closes(t)),
        lambda t: t.check_many(["a"] * 300, [1] * 299 + [Closes(t)]),
        lambda t: t.check_many(["a"], policy=Closes(t)),
        lambda t: t.reset("a", Closes(t)),
    ):
        table = Table("1/s", capacity=10)
        with pytest.raises(ValueError, match="closed"):
            call(table)


def test_health_and_copies():
    table = Table("3/h", capacity=100, seed=5)
    assert table.allow("a") and table.allow("b")
    health = table.validate()
    assert not health.slots_invalid and health.live == 2
    assert table.repair() == health
    larger = Table("3/h", capacity=50_000, seed=5)
    assert larger.copy_from(table) == (2, 0)
    assert larger.peek("a").remaining == 2
    with pytest.raises(tollbar.TableError):
        Table("3/h", capacity=10, seed=6).copy_from(table)
    for wrong in (None, "table", tollbar.Limiter("1/s"), larger.check("a")):
        with pytest.raises(TypeError):
            table.copy_from(wrong)


def test_addresses():
    assert tollbar.address_key("2001:db8::1") == tollbar.address_key("2001:db8::2")
    assert tollbar.address_key("192.0.2.1") == tollbar.address_key("::ffff:192.0.2.1")
    assert tollbar.address_key("192.0.2.1") != tollbar.address_key("192.0.2.2")
    assert tollbar.address_key("192.0.2.1", 24) == tollbar.address_key("192.0.2.2", 24)
    with pytest.raises(ValueError):
        tollbar.address_key("localhost")
    with pytest.raises(tollbar.Error):
        tollbar.address_key("192.0.2.1", 33)


def test_charge():
    table = Table({"logins": "5/min ban 1h", "bytes": "1000/s"}, capacity=100)
    now = table.now()
    for _ in range(5):
        assert table.peek("ann", policy="logins", at=now)
        assert table.charge("ann", policy="logins", at=now) == 0
    told = table.peek("ann", policy="logins", at=now)
    assert (told.reason, told.retry_after) == ("banned", 3600)
    # A ban takes no charges.
    assert table.charge("ann", 3, "logins", at=now) == 3
    assert table.reset("ann", "logins") and table.check("ann", policy="logins", at=now)
    assert table.charge("ann", 1500, "bytes", at=SECOND) == 0
    assert table.charge("ann", 1500, "bytes", at=SECOND) == 1000
    assert table.peek("ann", policy="bytes", at=SECOND).retry_after_ns == 1_001_000_000


def test_d6_another_policy_is_named_with_the_way_out(tmp_path):
    path = tmp_path / "table"
    Table.open(path, ["5/min", "100/day"], 1000).close()
    with pytest.raises(tollbar.TableError) as refused:
        Table.open(path, ["5/min", "200/day"], 1000)
    assert refused.value.name == "TOLLBAR_E_OTHER_POLICIES"
    assert str(refused.value) == (
        f"the table has other policies: policy 1 of {path} is '100/day', and of the program '200/day'; "
        f"expected: the same, after the command `tollbar table set-policy {path} '200/day' --number 1`"
    )
    with pytest.raises(tollbar.TableError, match=r"has 2 \('5/min'; '100/day'\) and the program 1; expected: the same number"):
        Table.open(path, "5/min", 1000)


def test_the_mode_lets_a_group_write_a_file_that_is_opened_without_policies(tmp_path):
    path = tmp_path / "table"
    Table.open(path, "5/min", 1000, mode=0o660).close()
    assert path.stat().st_mode & 0o777 == 0o660
    with pytest.raises(tollbar.TableError) as refused:
        Table.open(path)
    assert refused.value.name == "TOLLBAR_E_OWNER"
    with Table.open(path, mode=0o660) as table:
        assert table.stats().capacity == 1000
    with pytest.raises(tollbar.TableError, match="is '5/min', and of the program '6/min'"):
        Table.open(path, "6/min", 1000, mode=0o660)
