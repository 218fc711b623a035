"""clock="python": limiters and tables that freezegun and time-machine drive. And no wait goes by a
clock that they stop."""

import asyncio
import datetime
import inspect
import time

import freezegun
import pytest
import time_machine
import tollbar
from test_web import call_wsgi, wsgi_app
from tollbar import Limiter, Policy, Table, _core, _queue, limit, wsgi

BEGIN = datetime.datetime(2012, 1, 14, 12, tzinfo=datetime.timezone.utc)


class Frozen:
    """freezegun's clock, or time-machine's."""

    def __init__(self, name):
        self.freezer = freezegun.freeze_time(BEGIN) if name == "freezegun" else time_machine.travel(BEGIN, tick=False)

    def __enter__(self):
        self.clock = self.freezer.start()
        return self

    def __exit__(self, *error):
        self.freezer.stop()

    def forward(self, seconds):
        by = getattr(self.clock, "tick", None) or self.clock.shift
        by(datetime.timedelta(seconds=seconds))


BY = pytest.mark.parametrize("name", ["freezegun", "time-machine"])


@BY
def test_a_limiter_is_driven(name):
    with Frozen(name) as frozen:
        limiter = Limiter("2/min burst 2", clock="python")
        assert isinstance(limiter, Limiter) and repr(limiter) == "Limiter('2/min')"
        assert limiter.now() == BEGIN.timestamp() * 10**9
        assert [limiter.allow() for _ in range(3)] == [True, True, False] and limiter.check().retry_after == 30
        frozen.forward(29)
        assert not limiter.allow()
        frozen.forward(1)
        assert [limiter.allow(), limiter.allow(), limiter.wait(0), limiter.check_many(1)] == [True, False, False, b"\0"]
        assert limiter.reserve(10) is None and limiter.reserve(30).wait == 30
        frozen.forward(3600)
        assert limiter.wait() and limiter.peek().remaining == 1

        class Own(Limiter):
            def twice(self):
                return self.allow(), self.allow()

        assert Own("1/min", clock="python").twice() == (True, False)


@BY
def test_a_table_is_driven(name):
    with (
        Frozen(name) as frozen,
        Table({"day": "2/day algo calendar", "min": "3/min burst 3"}, 100, clock="python") as table,
    ):
        # At noon half of the day is left.
        assert table.allow("ann", 2) and table.check("ann").retry_after == 12 * 3600
        frozen.forward(12 * 3600 - 1)
        assert not table.allow("ann")
        frozen.forward(1)
        assert table.allow("ann") and table.check_many(["ann", "ann"], policy="day") == b"\1\0"
        _, receipt = table.take("ann", 3, "min")
        frozen.forward(20)
        # One permit has come back by refill, two by the receipt.
        assert table.settle(receipt, 0).given_back == 2 and table.peek("ann", policy="min").remaining == 3
        taken = tollbar.take_many([(table, "bob", 2, "day"), (table, "bob", 1, "min")])
        assert taken and taken.decisions[0].reset_after == 24 * 3600 - 20
        with pytest.raises(ValueError, match="one clock for all"):
            tollbar.take_many([(table, "bob"), Limiter("1/s")])
        assert not tollbar.take_many([(table, "bob"), Limiter("1/s", clock="python")])


@BY
def test_middleware_and_functions_are_driven(name):
    with Frozen(name) as frozen:
        app = wsgi.RateLimit(wsgi_app, Table(["1/min", "2/h"], 100, clock="python"), policy=(0, 1))
        called = limit(Limiter("1/min", clock="python"))(lambda: True)
        assert called() and call_wsgi(app)[0] == "200 OK" and call_wsgi(app)[0] == "429 Too Many Requests"
        frozen.forward(60)
        assert called() and call_wsgi(app)[0] == "200 OK" and call_wsgi(app)[1]["retry-after"] == "1740"


def test_a_hierarchy_s_table_is_driven():
    with Frozen("time-machine") as frozen:
        nodes = Table(tollbar.Hierarchy.POLICY, 100, on_full="deny", clock="python")
        shop = tollbar.Hierarchy("1000/s", classes=8)
        team = shop.add(shop.ROOT, "team", "1/s", "1/s")
        assert [bool(shop.take(nodes, team)) for _ in range(2)] == [True, False]
        frozen.forward(1)
        assert shop.take(nodes, team)


def test_a_change_of_policy_gives_nothing_back():
    with time_machine.travel(946_684_800, tick=False):
        limiter = Limiter("10/h", clock="python")
        assert limiter.allow(10)
        limiter.set_policy("10/h algo fixed-window")
        assert not limiter.allow()
    # The same by times of the caller's.
    limiter, now = Limiter("10/h"), 3600 * 10**9
    assert limiter.allow(10, at=now)
    limiter.set_policy("10/h algo sliding-log", at=now)
    assert not limiter.allow(at=now)


@pytest.mark.parametrize("of", [Limiter, Table])
def test_every_call_that_takes_a_time_gets_it(of):
    """Also a call that is added later: none reads the library's clock."""
    driven = type(Limiter("1/s", clock="python") if of is Limiter else Table("1/s", 10, clock="python"))
    base = _core.Limiter if of is Limiter else _core.Table
    timed = {name for name in dir(of) if not name.startswith("__") and "at" in _parameters(getattr(of, name))}
    assert len(timed) >= 11 and timed <= set(vars(driven))
    # These read no clock, or are made of calls above.
    others = {
        "wait",
        "wait_async",
        *({"set_policy"} if of is Table else ()),
        "reset",
        "counts",
        "settle_in_full",
        "close",
        "sync",
        "stats",
        "validate",
        "repair",
    }
    others |= {
        "policy",
        "override",
        "overrides",
        "set_override",
        "clear_override",
        "add_policy",
        "find_or_add_policy",
        "copy_from",
        "open",
    }
    others |= {
        "exempt",
        "unexempt",
        "is_exempt",
        "record_refusals",
        "records_refusals",
        "reset_all",
        "now",
        "cancel",
        "reserve",
    }
    public = {name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name))}
    assert public - timed - others == set() and {"now", "_take"} <= set(vars(driven)) and hasattr(base, "_take")


def _parameters(thing):
    return inspect.signature(thing).parameters if callable(thing) and not inspect.isclass(thing) else ()


def test_a_clock_before_1970_is_an_error():
    with time_machine.travel(-1000, tick=False), pytest.raises((ValueError, OverflowError)):
        Limiter("1/s", clock="python").allow()


@BY
def test_stopped_clocks_stop_no_wait(name):
    """A wait is real, also of limiters with the library's clock."""
    with Frozen(name):
        for limiter in (Limiter("50/s burst 1"), Limiter("50/s burst 1", clock="python")):
            assert all(limiter.wait(5) for _ in range(3))

            async def ask():
                # time-machine and freezegun stop asyncio's clock, too, unless it is left alone.
                return await limiter.wait_async(0)

            assert not asyncio.run(ask())
    assert _queue._clock is not time.monotonic_ns


def test_an_unknown_clock_names_all():
    with pytest.raises(ValueError, match="tsc, monotonic, coarse, wall, python"):
        Limiter("1/s", clock="sundial")
    with pytest.raises(ValueError, match="clock"):
        tollbar.Queue("1/s", 10, clock="python")
    assert Limiter(Policy("1/s"), clock="wall").now() > 1.7e18
