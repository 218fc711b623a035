"""Keys with a policy of their own."""

import multiprocessing

import pytest
from tollbar import Policy, Table, TableError

NOW = 10**12


def test_a_key_has_a_policy_of_its_own(tmp_path):
    table = Table({"calls": "3/min", "logins": "4/min"}, capacity=100)
    table.set_override("acme", "1000/s burst 50", "calls")
    assert [table.peek(key, policy=policy, at=NOW).remaining for key in ("acme", "other") for policy in (0, 1)] == [50, 4, 3, 4]
    assert table.take_up_to("acme", 100, at=NOW) == 50 and table.take_up_to("other", 100, at=NOW) == 3
    assert table.override("acme") == Policy("1000/s burst 50") and table.override("acme", "logins") is None
    [found] = table.overrides()
    assert (found.policy, found.to) == (0, Policy("1000/s burst 50")) and found.hash > 0
    assert table.stats().overrides == 1
    assert table.clear_override("acme") is True and table.clear_override("acme", "calls") is False
    assert not table.allow("acme", at=NOW) and table.overrides() == []


def test_what_a_key_keeps():
    for keep, begins in ("count", 6), ("time", 0), ("reset", 100):
        table = Table("10/min", capacity=100)
        assert table.allow("k", 4, at=NOW)
        table.set_override("k", "10/s burst 100", keep=keep)
        assert table.peek("k", at=NOW).remaining == begins
    with pytest.raises(ValueError, match="keep"):
        table.set_override("k", "10/s", keep="all")


def test_errors():
    table = Table("3/min", capacity=100, overrides=2)
    table.set_override("a", "5/s")
    table.set_override(b"b", Policy("6/s"))
    with pytest.raises(TableError, match="no room for another override"):
        table.set_override("c", "7/s")
    with pytest.raises(TableError):
        table.set_override("", "7/s")
    with pytest.raises(TableError):
        table.set_override("a", "7/s", 1)
    with pytest.raises(ValueError):
        table.set_override("a", "7/y")
    table.close()
    for call in (
        lambda: table.set_override("a", "7/s"),
        lambda: table.clear_override("a"),
        lambda: table.override("a"),
        table.overrides,
    ):
        with pytest.raises(ValueError):
            call()


def _set(path, key, text):
    with Table.open(path) as table:
        table.set_override(key, text)


def test_other_processes_see_it_at_once(tmp_path):
    path = tmp_path / "table"
    table = Table.open(path, "3/min", 100)
    for n, rate in enumerate((20, 30, 40)):
        process = multiprocessing.get_context("spawn").Process(target=_set, args=(path, "acme", f"{rate}/s"))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert table.peek("acme", at=NOW).remaining == rate, n
    table.close()
    assert Table.open(path).override("acme") == Policy("40/s")
