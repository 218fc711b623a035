"""The keys that a table refuses most."""

import pytest
from edges import away_from_edges
from tollbar import Refused, Table

NOW = 10**12


def test_the_most_refused_keys(tmp_path):
    table = Table.open(tmp_path / "table", {"calls": "1/day", "logins": "2/day"}, capacity=100)
    other = Table.open(tmp_path / "table")
    assert not table.records_refusals() and table.top_refused(at=NOW) == []
    other.record_refusals(True)
    assert table.records_refusals()
    long = b"x" * 100
    for _ in range(6):
        table.check("alice", at=NOW)
        table.check(long, policy="logins", at=NOW)
    expected = [Refused(0, 5, b"alice", False), Refused(1, 4, long[:48], True)]
    assert other.top_refused(at=NOW) == expected
    assert other.top_refused(1, at=NOW) == expected[:1] and other.top_refused(0, at=NOW) == []
    assert [one.refusals for one in other.top_refused(1000, at=NOW + 2**36)] == [2, 2]
    table.record_refusals(False)
    assert not other.records_refusals()
    with pytest.raises(ValueError, match="most is -1, expected 0 or more"):
        table.top_refused(-1)


def test_by_the_table_s_clock():
    table = Table("1/day", capacity=100)
    table.record_refusals(True)
    # Counts are halved when such a time begins.
    away_from_edges(2**36, table.now)
    assert [table.allow("a") for _ in range(3)] == [True, False, False]
    assert table.top_refused() == [(0, 2, b"a", False)]
