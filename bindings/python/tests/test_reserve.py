"""Reservations: reserve, wait, and cancel, which returns permits."""

import asyncio
import os
import pickle
import signal
import threading
import time

import pytest
from tollbar import Counts, Limiter, Reservation, Table, TableError

SECOND = 1_000_000_000


def of_a_limiter(text):
    limiter = Limiter(text)
    return limiter, limiter.reserve, limiter.cancel


def of_a_key(text):
    table = Table({"other": "1/h", "own": text}, capacity=10)
    return (
        table,
        lambda *given, **named: table.reserve("key", *given, policy="own", **named),
        lambda booked: table.cancel("key", booked, "own"),
    )


@pytest.mark.parametrize("make", [of_a_limiter, of_a_key])
def test_bookings_depart_in_turn_and_come_back(make):
    owner, reserve, cancel = make("1/h burst 2")
    begun = owner.now()
    first, second = reserve(0), reserve(0)
    assert first.wait == second.wait == 0 and first.cost == 1 and begun <= first.departs_ns <= owner.now()
    third = reserve()
    assert 3590 < third.wait <= 3600 and third.departs_ns >= begun + 3600 * SECOND
    assert reserve(60) is None and reserve(cost=3) is None
    fourth = reserve(7300, cost=1)
    assert 7190 < fourth.wait <= 7200
    # Behind the third there is the fourth. The last comes back whole. The third then is the last,
    # and a limiter gives that back, too.
    assert (cancel(third), cancel(fourth)) == (0, 1)
    assert reserve(7300).departs_ns == (third if make is of_a_limiter else fourth).departs_ns
    # Plain data.
    assert pickle.loads(pickle.dumps(fourth)) == fourth == Reservation(*fourth)


@pytest.mark.parametrize("make", [of_a_limiter, of_a_key])
@pytest.mark.parametrize("text", ["5/s algo sliding-window", "5/s algo fixed-window", "5/s algo interval anchor first"])
def test_windows_cannot_be_booked(make, text):
    if make is of_a_key and "sliding" in text:
        table = Table(text, capacity=10)
        assert table.reserve("key") is None and table.wait("key") and table.allow("key")
        return
    owner, reserve, _ = make(text)
    assert reserve() is None


def test_keys_and_errors():
    table = Table("1/h", capacity=10, missing="report")
    table.exempt("vip")
    assert table.reserve("vip").cost == 0 and table.reserve("vip", 0).wait == 0
    assert table.reserve("a", 0) and table.reserve("b", 0) and not table.reserve("a", 0)
    assert table.cancel("nobody", Reservation(0, 0, 5)) == 0
    with pytest.raises(TableError):
        table.reserve(None)
    for wrong in (lambda: table.reserve("a", policy=9), lambda: table.reserve("a", policy="none")):
        with pytest.raises((TableError, KeyError, ValueError, IndexError)):
            wrong()
    with pytest.raises(ValueError):
        table.reserve("a", cost=-1)
    with pytest.raises(ValueError):
        table.cancel("a", Reservation(-1, 0, 1))
    table.close()
    with pytest.raises(ValueError):
        table.reserve("a")
    with pytest.raises(ValueError):
        table.cancel("a", Reservation(0, 0, 1))


def test_a_policy_that_changes_books_by_what_it_is_now():
    table = Table("5/s algo fixed-window", capacity=10)
    assert table.reserve("key") is None
    table.set_policy(0, "5/s")
    assert table.reserve("key", 0).cost == 1


def test_a_hundred_threads_are_decided_on_once():
    table = Table("50/s burst 1", capacity=10)
    started = time.monotonic()
    threads = [threading.Thread(target=table.wait, args=("key",)) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert table.counts() == Counts(allowed=100, denied=0, never=0)
    # 99 intervals of 20 ms. The machine may take longer.
    assert time.monotonic() - started >= 1.979


def test_a_hundred_tasks_are_decided_on_once_and_wake_in_turn():
    table = Table("50/s burst 1", capacity=10)
    order = []

    async def one(n):
        assert await table.wait_async("key", 60)
        order.append(n)

    async def run():
        await asyncio.gather(*map(one, range(100)))

    asyncio.run(run())
    assert table.counts() == Counts(allowed=100, denied=0, never=0)
    assert order == list(range(100))


@pytest.mark.parametrize("owner", [Limiter("1/h burst 1"), Table("1/h burst 1", capacity=10)])
def test_a_cancelled_task_gives_back(owner):
    key = () if isinstance(owner, Limiter) else ("key",)
    assert owner.allow(*key)
    hour = owner.peek(*key).retry_after_ns

    async def run():
        task = asyncio.create_task(owner.wait_async(*key))
        await asyncio.sleep(0.01)
        booked = owner.peek(*key).retry_after_ns
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return booked, owner.peek(*key).retry_after_ns

    booked, after = asyncio.run(run())
    assert booked > hour > after


@pytest.mark.parametrize("owner", [Limiter("1/h burst 1"), Table("1/h burst 1", capacity=10)])
def test_a_signal_gives_back(owner):
    key = () if isinstance(owner, Limiter) else ("key",)
    assert owner.allow(*key)
    hour = owner.peek(*key).retry_after_ns

    def interrupt(*_):
        raise InterruptedError

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            owner.wait(*key)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert owner.peek(*key).retry_after_ns < hour


def test_processes_stand_in_one_queue():
    table = Table("20/s burst 1", capacity=10, shared=True)
    children = []
    started = time.monotonic()
    for _ in range(8):
        child = os.fork()
        if child == 0:
            os._exit(0 if table.wait("key", 60) else 1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
    assert table.counts() == Counts(allowed=8, denied=0, never=0)
    assert time.monotonic() - started >= 0.349
