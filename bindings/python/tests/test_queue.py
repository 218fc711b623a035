"""Queues: order, pace and patience in virtual time; threads and tasks that offer, take, cancel and
are cancelled."""

import asyncio
import gc
import os
import random
import threading
import time
import weakref

import pytest
import tollbar
import virtual
from tollbar import Limiter, Queue, QueueFull

MS = 1_000_000


class At(Queue):
    """A queue of the library, asked at the virtual time."""

    def __new__(cls, policy, capacity, clock, **options):
        self = super().__new__(cls, policy, capacity, **options)
        self.clock = clock
        return self

    def now(self):
        return self.clock.ns

    def _put(self, item, at=None):
        return super()._put(item, self.clock.ns)

    def _get(self, at=None):
        return super()._get(self.clock.ns)


def test_eleven_of_fifteen_leave_in_order():
    queue = Queue("10/s algo pacer", 10)
    refused = []
    for n in range(15):
        try:
            assert queue.offer(n, at=0).number == n
        except QueueFull as full:
            refused.append(n)
            assert full.reason == "queue full"
    assert refused == [11, 12, 13, 14]
    departures = []
    now = 0
    while (departs := queue.next_departure(at=now)) is not None:
        assert departs == now or queue.take(at=departs - 1) is None
        now = departs
        departures.append((now, queue.take(at=now)))
    assert departures == [(n * 100 * MS, n) for n in range(11)]
    assert len(queue) == 0 and queue


def take_until(queue, clock, until, to):
    """Takes what leaves up to a time, and returns that time."""
    while (at := queue.next_departure(at=clock)) is not None and at <= until:
        queue.take(at=at)
        to.append(at)
        clock = at
    return until


def test_s19_drivers_admit_the_same():
    """Requests that come too early are dropped, delayed, or kept in a queue. With the same patience the last two admit the
    same ones at the same times, and without patience so does the first."""
    before = 0
    for waiting in (0, 1, 3, 20):
        delays, drops = Limiter("10/s algo pacer"), Limiter("10/s algo pacer")
        queue = Queue("10/s algo pacer", waiting or 1)
        delayed, dropping, queued = [], [], []
        now = clock = 0
        for n in range(2000):
            now += n * n * 7919 % (120 if n // 50 % 2 == 0 else 150) * MS
            if booked := delays.reserve(waiting * 0.1, at=now):
                delayed.append(booked.departs_ns)
            if drops.allow(at=now):
                dropping.append(now)
            clock = take_until(queue, clock, now, queued)
            try:
                queue.offer(n, at=now)
            except QueueFull:
                pass
            clock = take_until(queue, clock, now, queued)
        take_until(queue, clock, now + 3600 * 1000 * MS, queued)
        assert delayed == (queued if waiting else dropping) and len(delayed) > before
        before = len(delayed)


def test_patience_in_virtual_time():
    """Fifteen tasks offer at once, with a patience of 10 ms."""
    clock = virtual.Clock()
    begun = clock.ns
    departures, refused = [], []

    async def produce(queue, n):
        try:
            await queue.offer_async(n, 0.01)
        except QueueFull:
            refused.append((n, clock.ns - begun))

    async def consume(queue):
        async for item in queue:
            departures.append((item, clock.ns - begun))

    async def main():
        queue = At("10/s algo pacer", 10, clock)
        consumer = asyncio.create_task(consume(queue))
        await asyncio.gather(*(produce(queue, n) for n in range(15)))
        queue.close()
        await consumer

    virtual.run(clock, main())
    # A round of the loop takes a nanosecond, and a float of seconds some more.
    assert sorted(n for n, _ in refused) == [11, 12, 13, 14]
    assert all(10 * MS <= after < 10 * MS + 10_000 for _, after in refused), refused
    assert [n for n, _ in departures] == list(range(11))
    assert all(n * 100 * MS <= at < n * 100 * MS + 10_000 for n, at in departures), departures


def test_a_thread_is_refused_after_its_patience():
    """The real clock, with a lower bound only: a busy machine may wake a sleeper late."""
    queue = Queue("1/h algo pacer", 1, spare=1)
    for n in range(3):
        queue.offer(n)
    began = time.monotonic_ns()
    with pytest.raises(QueueFull, match="2 items wait already; expected: fewer, or a larger capacity or spare"):
        queue.offer(3, 0.01)
    assert time.monotonic_ns() - began >= 10 * MS - MS
    assert queue.take() == 0
    assert queue.take(0.001, "none") == "none"


def test_the_spare_holds_what_overflows():
    queue = Queue("10/s algo pacer", 2, spare=2)
    assert [queue.offer(n, at=0).spare for n in range(5)] == [0, 0, 0, 1, 2]
    with pytest.raises(QueueFull):
        queue.offer(5, at=0)
    assert [queue.take(at=n * 100 * MS) for n in range(5)] == [0, 1, 2, 3, 4]
    assert "2 may wait and 2 in the spare" in repr(queue)


def test_a_cancelled_item_comes_back():
    queue = Queue("10/s algo pacer", 5)
    item = object()
    ticket = queue.offer(item)
    assert queue.offer(None).ahead == 1
    assert queue.cancel(ticket) is item
    assert queue.cancel(ticket, "gone") == "gone"
    assert queue.take(default="none") is None
    queue.offer("c")
    assert (queue.drain(), queue.drain()) == ("c", None)


def test_a_queue_keeps_no_item_that_has_left():
    class Item:
        pass

    queue = Queue("1000000/s burst 9", 3)
    items = [Item() for _ in range(3)]
    alive = weakref.WeakSet(items)
    queue.cancel(queue.offer(items[0]))
    queue.offer(items[1])
    assert queue.take() is items[1]
    refused = Queue("1/h algo pacer", 1)
    refused.offer(1), refused.offer(2)
    with pytest.raises(QueueFull):
        refused.offer(items[2])
    items.clear()
    gc.collect()
    assert len(alive) == 0
    # A queue that an item refers to is freed with it.
    item = Item()
    item.queue = queue
    queue.offer(item)
    gone = weakref.ref(item)
    del item, queue
    gc.collect()
    assert gone() is None


def test_a_closed_queue_gives_what_it_has():
    queue = Queue("1000000/s burst 9", 5)
    queue.offer("a")
    queue.close()
    assert queue.closed
    with pytest.raises(tollbar.Error, match="closed"):
        queue.offer("b", 60)
    assert list(queue) == ["a"]
    assert queue.take(60) is None


def test_what_cannot_be_a_queue():
    for policy, capacity, expected in [
        ("10/s", 0, "capacity"),
        ("10/x", 5, "column 4"),
        ("10/s algo sliding-log", 5, "one state word"),
    ]:
        with pytest.raises((tollbar.Error, ValueError), match=expected):
            Queue(policy, capacity)
    with pytest.raises(ValueError, match="spare must be"):
        Queue("10/s", 5, spare=-1)


def test_sleeping_producers_are_bounded():
    queue = Queue("1/h algo pacer", 1, waiters=3)
    queue.offer(0), queue.offer(0)
    reasons = []

    def produce():
        try:
            queue.offer(1, None)
        except tollbar.Error as error:
            reasons.append(str(error))

    threads = [threading.Thread(target=produce) for _ in range(10)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 60
    while len(reasons) < 7 and time.monotonic() < end:
        time.sleep(0.001)
    assert reasons == ["3 callers wait already; expected: fewer, or the option `waiters` with a larger number"] * 7
    queue.close()
    for thread in threads:
        thread.join(60)
    assert sum("closed" in reason for reason in reasons) == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of a fork beside threads
def test_a_forked_child_has_a_copy_and_no_sleepers():
    queue = Queue("1/h algo pacer", 1, waiters=1)
    queue.offer("a"), queue.offer("b")
    sleeper = threading.Thread(target=lambda: pytest.raises(tollbar.Error, queue.offer, "c", None))
    sleeper.start()
    while not len(queue._offering):
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises(QueueFull, match="1 items wait already"):
                queue.offer("d", 0.01)
            status = 0 if (queue.take(), queue.drain(), queue.drain()) == ("a", "b", None) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(queue) == 2
    queue.close()
    sleeper.join(60)


class Record:
    """What producers and takers did."""

    def __init__(self):
        self.accepted, self.gone, self.order, self.refused = {}, [], [], 0
        self.overflowed = 0

    def check(self):
        numbers = dict(self.accepted)
        assert sorted(self.gone) == sorted(numbers), "each accepted item leaves once, and no other one"
        assert sorted(numbers.values()) == list(range(len(numbers)))
        assert self.refused and self.overflowed


def test_threads_lose_nothing():
    queue = Queue("1000000/s burst 4", 3, spare=3)
    record = Record()
    takers_orders = []

    def produce(producer):
        random_of = random.Random(producer)
        for n in range(200):
            item = (producer, n)
            try:
                ticket = queue.offer(item, random_of.choice([0, 0.0001, 0.002]))
            except QueueFull:
                record.refused += 1
                continue
            record.accepted[item] = ticket.number
            record.overflowed += ticket.spare > 0
            if random_of.random() < 0.1 and queue.cancel(ticket) is item:
                record.gone.append(item)

    def take():
        mine = []
        takers_orders.append(mine)
        for item in queue:
            mine.append(item)
            record.gone.append(item)

    producers = [threading.Thread(target=produce, args=(n,)) for n in range(8)]
    takers = [threading.Thread(target=take) for _ in range(8)]
    for thread in producers + takers:
        thread.start()
    for thread in producers:
        thread.join(120)
    queue.close()
    for thread in takers:
        thread.join(120)
        assert not thread.is_alive()
    record.check()
    for mine in takers_orders:
        numbers = [record.accepted[item] for item in mine]
        assert numbers == sorted(numbers), "in the order of acceptance"


def test_tasks_lose_nothing_if_they_are_cancelled():
    """In one loop the steps have one order: the bound is exact, and so is the order."""
    queue = Queue("1000000/s burst 1", 3, spare=3)
    record = Record()
    random_of = random.Random(7)

    async def produce(producer):
        for n in range(200):
            item = (producer, n)
            try:
                ticket = await queue.offer_async(item, random_of.choice([0, 0.0001, 0.002]))
            except QueueFull:
                assert len(queue) >= 6, "refused though there was room"
                record.refused += 1
                await asyncio.sleep(0)
                continue
            assert len(queue) <= 7, "taken in though there was no room"
            record.accepted[item] = ticket.number
            record.overflowed += ticket.spare > 0
            if random_of.random() < 0.1 and queue.cancel(ticket) is item:
                record.gone.append(item)
            if random_of.random() < 0.3:
                await asyncio.sleep(0)

    async def take():
        async for item in queue:
            record.gone.append(item)
            record.order.append(item)

    async def main():
        producers = [asyncio.create_task(produce(n)) for n in range(8)]
        takers = [asyncio.create_task(take()) for _ in range(8)]
        # Some of both are cancelled while they wait or run, and others come for the takers.
        for _ in range(5):
            await asyncio.sleep(0.003)
            random_of.choice(takers).cancel()
            takers.append(asyncio.create_task(take()))
        producers[3].cancel()
        answers = await asyncio.gather(*producers, return_exceptions=True)
        queue.close()
        answers += await asyncio.gather(*takers, return_exceptions=True)
        assert all(answer is None or isinstance(answer, asyncio.CancelledError) for answer in answers), answers

    asyncio.run(main())
    record.check()
    numbers = [record.accepted[item] for item in record.order]
    assert numbers == sorted(numbers), "in the order of acceptance"
    assert len(queue) == 0 and queue._items == {}


def test_threads_and_a_loop_share_a_queue():
    queue = Queue("1000000/s burst 9", 2)

    async def consume():
        return [item async for item in queue]

    def produce():
        for n in range(50):
            queue.offer(n, None)
        queue.close()

    producer = threading.Thread(target=produce)
    producer.start()
    assert asyncio.run(consume()) == list(range(50))
    producer.join(60)


def test_a_signal_ends_a_sleep_and_loses_nothing():
    import signal

    queue = Queue("1/h algo pacer", 1)
    queue.offer("a"), queue.offer("b")

    def interrupt(*_):
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            queue.offer("c", None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert len(queue) == 2 and len(queue._items) == 2 and len(queue._offering) == 0
