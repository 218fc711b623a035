"""Waiting in virtual time: an event loop and limiters whose clock goes on only when all tasks
sleep."""

import asyncio
import contextlib
import selectors
from fractions import Fraction

from tollbar import Limiter, Table, _queue

SECOND = 1_000_000_000


class Clock:
    def __init__(self, ns=SECOND):
        self.ns = ns


class _Selector(selectors.SelectSelector):
    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def select(self, timeout=None):
        events = super().select(0)
        if not events:
            assert timeout is not None, "all tasks wait for ever"
            # Each round of the loop takes a nanosecond.
            self.clock.ns += max(-int(-timeout * 1e9 // 1), 1)
        return events


class Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock):
        super().__init__(_Selector(clock))
        self._virtual = clock

    def time(self):
        return self._virtual.ns / 1e9


class At(Limiter):
    """A limiter of the library, asked at the virtual time."""

    __slots__ = ("clock",)

    def __new__(cls, policy, clock, **options):
        self = super().__new__(cls, policy, **options)
        self.clock = clock
        return self

    def check(self, cost=1):
        return super().check(cost, at=self.clock.ns)

    def peek(self, cost=1):
        return super().peek(cost, at=self.clock.ns)

    def _take(self, cost):
        return bool(self.peek(cost)) and bool(self.check(cost))

    def _book(self, cost, patience, at=None):
        return super()._book(cost, patience, self.clock.ns)

    def _cancel(self, departs, cost, at=None):
        return super()._cancel(departs, cost, self.clock.ns)


class AtKey(Table):
    """The same of a table's key."""

    __slots__ = ("clock",)

    def __new__(cls, policy, clock, **options):
        self = super().__new__(cls, policy, 10, **options)
        self.clock = clock
        return self

    def check(self, key="key", cost=1, policy=0):
        return super().check(key, cost, policy, at=self.clock.ns)

    def peek(self, key="key", cost=1, policy=0):
        return super().peek(key, cost, policy, at=self.clock.ns)

    def _take(self, key, cost, policy):
        return bool(self.peek(key, cost, policy)) and bool(self.check(key, cost, policy))

    def _book(self, key, patience, cost, policy, at=None):
        return super()._book(key, patience, cost, policy, self.clock.ns)

    def _cancel(self, key, departs, cost, policy, at=None):
        return super()._cancel(key, departs, cost, policy, self.clock.ns)

    async def wait_async(self, timeout=None, cost=1):
        return await super().wait_async("key", timeout, cost)


def empty(limiter):
    while limiter.check():
        pass
    return limiter


@contextlib.contextmanager
def time_of(clock):
    real, _queue._clock = _queue._clock, lambda: clock.ns
    try:
        yield
    finally:
        _queue._clock = real


def run(clock, main):
    """Runs the coroutine in virtual time."""
    with time_of(clock), asyncio.Runner(loop_factory=lambda: Loop(clock)) as runner:
        return runner.run(main)


def above_the_bound(admitted, policy):
    """The most permits that a window of these (time, cost) has above burst + rate·t, of a token
    bucket. 0 or less: the bound held."""
    rate = Fraction(policy.limit, policy.period_ns)
    # The greatest sum of cost - rate·gap over the windows that end at an admission.
    worst, sum, last = -policy.burst, 0, 0
    for at, cost in sorted(admitted):
        sum = max(sum - rate * (at - last), 0) + cost
        last = at
        worst = max(worst, sum - policy.burst)
    return float(worst)
