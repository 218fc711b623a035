"""Classes of requests: "100/s reserve low 20 high 0"."""

import pytest

import tollbar

TEXT = "100/s reserve standard 20 urgent 0"
HOUR = 3600 * 10**9


def test_standard_requests_stop_exactly_at_20_left():
    limiter, table = tollbar.Limiter(TEXT), tollbar.Table(TEXT, 10)
    for n in range(80):
        assert limiter.check_class("standard", at=HOUR).remaining == 99 - n
        assert table.check_class("key", "standard", at=HOUR).remaining == 99 - n
    for refused in (
        limiter.check_class("standard", at=HOUR),
        limiter.check_class("1", at=HOUR),
        table.check_class("key", "standard", 1, 0, at=HOUR),
    ):
        assert (refused.allowed, refused.remaining, refused.reason) == (False, 20, "reserved for other classes")
        assert refused.retry_after_ns == 10**7
    assert limiter.check_class("urgent", 20, at=HOUR) and table.check_class("key", "urgent", cost=20, at=HOUR)
    assert not limiter.check(at=HOUR) and not table.check("key", at=HOUR)
    assert limiter.check_class("standard") and table.check_class("other", "standard")


def test_a_request_may_bring_its_own_reserve():
    """Fixed windows have one, too: it is how tollbar.limits counts up to a limit that is smaller
    than the policy's."""
    for policy in ("100/s", "100/h algo fixed-window anchor first"):
        limiter, table = tollbar.Limiter(policy), tollbar.Table(policy, 10)
        assert sum(bool(limiter.check_leaving(97, at=HOUR)) for _ in range(5)) == 3
        assert sum(bool(table.check_leaving("key", 97, at=HOUR)) for _ in range(5)) == 3
        refused = table.check_leaving("key", 96, cost=2, policy=0, at=HOUR)
        assert (refused.allowed, refused.remaining, refused.reason) == (False, 97, "reserved for other classes")
        assert limiter.check_leaving(95, 2, at=HOUR) and table.check_leaving("key", 95, 2, at=HOUR)
    for bad in (lambda: limiter.check_leaving(-1), lambda: table.check_leaving("key", "low")):
        with pytest.raises((TypeError, ValueError)):
            bad()
    with pytest.raises(tollbar.Error):
        tollbar.Table("5/s algo sliding-log", 10).check_leaving("key", 1)


def test_a_batch_has_a_class():
    table = tollbar.Table("10/h reserve low 4 high 0", 10)
    assert sum(table.check_many(["key"] * 10, at=HOUR, class_number=1)) == 6
    assert sum(table.check_many(["key"] * 10, at=HOUR, class_number=3)) == 0
    assert sum(table.check_many(["key"] * 10, at=HOUR, class_number=2**32)) == 0
    assert sum(table.check_many(["key"] * 10, at=HOUR, class_number=2)) == 4
    assert sum(table.check_many(["other"] * 10, at=HOUR)) == 10
    with pytest.raises((TypeError, ValueError)):
        table.check_many(["key"], class_number="low")


def test_several_limits_have_classes():
    limiter, table = tollbar.Limiter("10/s reserve low 2 high 0"), tollbar.Table("10/s reserve low 4", 10)
    limits = [(limiter, 1, "low"), (table, "key", 1, 0, "low")]
    assert sum(bool(tollbar.take_many(limits, at=HOUR)) for _ in range(10)) == 6
    refused = tollbar.take_many(limits, at=HOUR)
    assert (refused.bound, refused.reason) == (1, "reserved for other classes")
    assert tollbar.take_many([(limiter, 2, "low")], at=HOUR) and not tollbar.take_many([(limiter, 1, "low")], at=HOUR)
    assert tollbar.take_many([(limiter, 2, "high")], at=HOUR)


@pytest.mark.parametrize("name", ["", "lo", "lows", "Low", "2", "low\0", "a-name-of-more-than-15-bytes", "l\xf6w"])
def test_an_unknown_class_is_an_error(name):
    limiter, table = tollbar.Limiter("10/s reserve low 2"), tollbar.Table("10/s reserve low 2", 10)
    for call in (
        lambda: limiter.check_class(name),
        lambda: table.check_class("key", name),
        lambda: tollbar.take_many([(limiter, 1, name)]),
        lambda: tollbar.take_many([(table, "key", 1, 0, name)]),
    ):
        with pytest.raises(ValueError, match="no class of that name"):
            call()
    assert limiter.counts() == (0, 0, 0)


def test_what_is_no_name_is_an_error():
    limiter, table = tollbar.Limiter("10/s reserve low 2"), tollbar.Table("10/s reserve low 2", 10)
    for call in (
        lambda: limiter.check_class(1),
        lambda: table.check_class("key", b"low"),
        lambda: tollbar.take_many([(table, "key", 1, 0, None)]),
    ):
        with pytest.raises(TypeError, match="class_name must be a str"):
            call()
    with pytest.raises(TypeError, match="class_name"):
        limiter.check_class()


def test_classes_are_a_part_of_the_policy():
    assert str(tollbar.Policy.of(10, 1, burst=20, reserve="low 5 high 0")) == "10/s burst 20 reserve low 5 high 0"
    with pytest.raises(tollbar.PolicyError) as why:
        tollbar.Limiter("10/s reserve low 10")
    assert why.value.column == 18
    with pytest.raises(ValueError, match="classes"):
        tollbar.Limiter("1000000/s reserve low 10", credit=True)
