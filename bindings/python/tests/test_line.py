"""Those who wait for what cannot be booked ahead stand in line: how many checks they make, in which order they wake, and how they leave."""

import asyncio
import gc
import itertools
import os
import random
import signal
import sys
import threading
import time

import pytest
from tollbar import Limiter, Policy, Table, _line

SECOND = 1_000_000_000


class Counted(Table):
    """Counts what is asked of it."""

    __slots__ = ("checks", "peeks")

    def check(self, *args, **named):
        self.checks = getattr(self, "checks", 0) + 1
        return super().check(*args, **named)

    def peek(self, *args, **named):
        self.peeks = getattr(self, "peeks", 0) + 1
        return super().peek(*args, **named)


@pytest.fixture(autouse=True)
def nobody_is_left_in_line():
    yield
    assert not _line.anybody()


def threads(count, function):
    """Starts threads one after the other, in the order of their numbers, and lets them end."""
    all_of_them = [threading.Thread(target=function, args=(n,)) for n in range(count)]
    for thread in all_of_them:
        thread.start()
    return all_of_them


def join(all_of_them):
    for thread in all_of_them:
        thread.join(60)
        assert not thread.is_alive()


def in_line(count):
    """Until so many stand in lines."""
    deadline = time.monotonic() + 30
    while sum(map(len, _line._lines.values())) != count:
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_hundred_threads_make_two_checks_each(timeout):
    table = Counted("1/2ms algo interval anchor first", capacity=10)
    got = []
    started = time.monotonic()
    join(threads(100, lambda n: got.append(table.wait("key", timeout))))
    assert got == [True] * 100
    # 99 permits come back in 198 ms; not even one is taken that is not there.
    assert time.monotonic() - started >= 0.197
    # Each thread that waits checks twice. On a busy machine some threads start so late that they need not wait.
    # A sleep may end some nanoseconds early by the table's clock: then there is one more.
    assert 100 <= table.checks <= 230
    # Each that comes while others stand in line looks once whether it can be in time.
    assert getattr(table, "peeks", 0) <= 200


def test_a_hundred_tasks_make_two_checks_each():
    table = Counted("1/2ms algo interval anchor first", capacity=10)

    async def run():
        return await asyncio.gather(*(table.wait_async("key", 60) for _ in range(100)))

    assert asyncio.run(run()) == [True] * 100
    assert 100 <= table.checks <= 230


@pytest.mark.parametrize("policy", ["1/2ms algo fixed-window", "20/40ms algo sliding-log"])
def test_limiters_that_cannot_book_stand_in_line(policy):
    class CountedLimiter(Limiter):
        __slots__ = ("asked",)

        def check(self, *args):
            self.asked = getattr(self, "asked", 0) + 1
            return super().check(*args)

    limiter = CountedLimiter(policy)
    got = []
    join(threads(100, lambda n: got.append(limiter.wait())))
    assert got == [True] * 100 and 100 <= limiter.asked <= 230
    limiter.asked = 0

    async def run():
        return await asyncio.gather(*(limiter.wait_async() for _ in range(100)))

    assert asyncio.run(run()) == [True] * 100 and 100 <= limiter.asked <= 230


def test_who_comes_first_goes_first():
    table = Table("1/5ms algo interval anchor first", capacity=10)
    assert table.allow("key")
    order = []

    def one(n):
        assert table.wait("key")
        order.append(n)

    all_of_them = []
    for n in range(10):
        all_of_them += [threading.Thread(target=one, args=(n,))]
        all_of_them[-1].start()
        # Once it stands in line, or has been there already.
        deadline = time.monotonic() + 10
        while len(order) + sum(map(len, _line._lines.values())) <= n and time.monotonic() < deadline:
            time.sleep(0.0002)
    join(all_of_them)
    assert order == sorted(order)

    async def tasks():
        async def one(n):
            assert await table.wait_async("key")
            order.append(n)

        await asyncio.gather(*map(one, range(10)))

    order.clear()
    asyncio.run(tasks())
    assert order == sorted(order)


def test_a_large_cost_is_not_overtaken():
    table = Table("10/50ms algo fixed-window anchor first", capacity=10)
    assert table.allow("key", 10)
    order = []

    def one(cost):
        assert table.wait("key", cost=cost)
        order.append(cost)

    large = threading.Thread(target=one, args=(10,))
    large.start()
    in_line(1)
    # Each permit that comes back would be enough for the small ones.
    small = threads(5, lambda n: one(1))
    join([large, *small])
    assert order == [10, 1, 1, 1, 1, 1]


def test_who_cannot_be_in_time_is_refused_at_once():
    table = Table("1/min algo interval anchor first", capacity=10)
    assert table.allow("key")
    patient = threading.Thread(target=lambda: table.wait("key", 100))
    patient.daemon = True
    patient.start()
    in_line(1)
    started = time.monotonic()
    assert table.wait("key", 30) is False
    # A cost above the burst is refused at once.
    assert table.wait("key", cost=2) is False
    assert asyncio.run(table.wait_async("key", 30)) is False
    assert time.monotonic() - started < 30
    # Other keys and policies have other lines.
    assert table.wait("other", 0) is True
    table.reset("key")
    # The first sleeps until its time nevertheless; it is not waited for here.
    for line in list(_line._lines.values()):
        line.clear()
    _line._lines.clear()


def test_who_runs_out_of_patience_leaves_the_line():
    table = Table("1/250ms algo interval anchor first", capacity=10)
    assert table.allow("key")
    first = threading.Thread(target=table.wait, args=("key",))
    first.start()
    in_line(1)
    # When the second begins to wait, its patience is enough. Then another caller takes the permit of the first, so all move back.
    answers = []
    second = threading.Thread(target=lambda: answers.append(table.wait("key", 0.6)))
    second.start()
    in_line(2)
    third = threading.Thread(target=lambda: answers.append(table.wait("key")))
    third.start()
    in_line(3)
    deadline = time.monotonic() + 1.2
    while time.monotonic() < deadline:
        table.allow("key")
    join([first, second, third])
    assert answers == [False, True]


def test_a_signal_lets_the_next_one_go_on():
    """The handler's exception ends the first's wait; the second gets its turn."""
    table = Table("1/500ms algo interval anchor first", capacity=10)
    assert table.allow("key")
    got = []

    def interrupt(*_):
        raise InterruptedError

    old = signal.signal(signal.SIGALRM, interrupt)
    second = threading.Thread(target=lambda: (in_line(1), got.append(table.wait("key"))))
    second.start()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(InterruptedError):
            table.wait("key", cost=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    join([second])
    assert got == [True]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_cancelled_task_lets_the_next_one_go_on(which):
    table = Table("1/50ms algo interval anchor first", capacity=10)
    assert table.allow("key")

    async def run():
        tasks = [asyncio.create_task(table.wait_async("key", 30)) for _ in range(3)]
        await asyncio.sleep(0.01)
        tasks[which].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(run())
    assert [type(a) for a in answers] == [asyncio.CancelledError if n == which else bool for n in range(3)]
    assert all(a is True for n, a in enumerate(answers) if n != which)


def test_leaving_at_random():
    """Threads with all kinds of patience: none is forgotten in the line, and none takes what is not there."""
    table = Table({"a": "1/500us algo interval anchor first", "b": "1/1ms algo interval anchor first"}, capacity=10)
    random.seed(5)
    patiences = [random.choice([None, 0, 0.001, 0.01, 0.05]) for _ in range(400)]
    granted = [0, 0]
    lock = threading.Lock()

    def one(n):
        policy = n % 2
        if table.wait("key", patiences[n], policy="ab"[policy]):
            with lock:
                granted[policy] += 1

    started = time.monotonic()
    join(threads(len(patiences), one))
    took = time.monotonic() - started
    assert granted[0] <= 3 + 2000 * took + 1 and granted[1] <= 1 + 1000 * took + 1
    for policy in (0, 1):
        assert granted[policy] >= sum(1 for n, p in enumerate(patiences) if p is None and n % 2 == policy)


def test_a_child_has_no_line():
    table = Table("1/200ms algo interval anchor first", capacity=10, shared=True)
    assert table.allow("key")
    waiting = threading.Thread(target=table.wait, args=("key",))
    waiting.start()
    in_line(1)
    child = os.fork()
    if child == 0:
        # Behind a thread that is not in this process it would wait for ever.
        os._exit(0 if not _line.anybody() and table.wait("key", 20) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    join([waiting])


def test_it_keeps_nothing():
    table = Table("1/500us algo interval anchor first", capacity=1000)
    before = len(gc.get_objects())
    for n in range(200):
        table.allow(n)
        assert table.wait(n)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


ALGORITHMS = [
    "10/s burst 4",
    "7/3s burst 5",
    "10/s burst 4 borrow",
    "10/s algo pacer",
    "10/s algo pacer slack 3",
    "10/s algo warm-up warm 2s",
    "10/s burst 4 algo interval",
    "10/s burst 4 algo interval anchor first",
    "5/s algo fixed-window",
    "5/s algo fixed-window anchor first",
    "5/s algo weighted-window",
    "6/3s algo sliding-window segments 6",
    "6/3s algo sliding-window segments 6 mode strict",
    "5/s algo sliding-log",
]


@pytest.mark.parametrize("text", ALGORITHMS)
def test_what_is_refused_at_once_could_not_be_had(text):
    """The bound by which a newcomer to a line is refused, beside what a line of callers gets by the same algorithm at
    times of our own."""
    random.seed(text)
    policy = Policy(text)
    close = []
    for trial in range(60):
        limiter = Limiter(policy)
        now = random.randrange(10**6) * 1_000_003
        for _ in range(random.randrange(8)):
            limiter.check(random.randint(1, 3), at=now)
            now += random.randrange(SECOND // 4)
        costs = [random.randint(1, min(policy.burst or 1, 3)) for _ in range(random.choice([1, random.randint(1, 20)]))]
        *others, own = costs
        bound = _line.earliest(policy, lambda permits: limiter.peek(permits, at=now), sum(others), own)
        at = now
        for cost in costs:
            while not (answer := limiter.check(cost, at=at)):
                if answer.retry_after_ns is None:
                    break
                at += answer.retry_after_ns
        if answer.retry_after_ns is None:
            continue
        assert bound is not None and bound <= at - now, (trial, costs)
        # Each wait is rounded up to a nanosecond.
        close.append(at - now - bound <= len(costs))
    assert any(close)
