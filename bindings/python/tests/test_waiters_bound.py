"""A4: at most so many callers wait at one time."""

import asyncio
import threading
import time

import pytest
from edges import Late, again_if_late
from tollbar import Limited, Limiter, QueueFull, Table, _queue, limit
from virtual import At, AtKey, Clock, empty, run


@pytest.mark.parametrize("policy", ["10/s burst 1", "10/s algo sliding-log"])
def test_a4_at_most_so_many_wait(policy):
    clock = Clock()

    async def main():
        limiter = empty(At(policy, clock, waiters=5))
        waiting = [asyncio.create_task(limiter.wait_async()) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="5 callers wait already") as full:
            await limiter.wait_async()
        assert full.value.reason == "queue full"
        # Who would not wait is refused for that.
        assert await limiter.wait_async(0) is False and await limiter.wait_async(cost=99) is False
        waiting[2].cancel()
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(limiter.wait_async()))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await limiter.wait_async()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert sum(answer is True for answer in answers) == 5
        assert await limiter.wait_async()

    run(clock, main())


def test_a4_of_all_keys_of_a_table():
    clock = Clock()
    table = AtKey("1/h", clock, waiters=3)

    async def main():
        for key in "abcd":
            assert table.check(key)
        waiting = [asyncio.create_task(Table.wait_async(table, key)) for key in "abb"]
        await asyncio.sleep(0)
        booked = table.peek("d").retry_after_ns
        for key in "abd":
            with pytest.raises(QueueFull):
                await Table.wait_async(table, key)
        # A caller without a place books nothing.
        assert table.peek("d").retry_after_ns <= booked
        assert await Table.wait_async(table, "new") and await Table.wait_async(table, "d", 3) is False
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(clock, main())


def test_a4_the_usual_bound_and_wrong_ones():
    clock = Clock()

    async def main():
        limiter = empty(At("1/h", clock))
        waiting = [asyncio.create_task(limiter.wait_async()) for _ in range(1024)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="1024"):
            await limiter.wait_async()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(clock, main())
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"waiters must be at least 1, not {wrong}"):
            Table("1/h", 10, waiters=wrong)


def test_a4_of_a_function():
    clock = Clock()
    limiter = empty(At("1/h", clock, waiters=1))

    @limit(limiter, wait=None)
    async def send():
        pass

    async def main():
        first = asyncio.create_task(send())
        await asyncio.sleep(0)
        with pytest.raises(Limited, match="send is limited: queue full, again in") as refused:
            await send()
        assert refused.value.reason == "queue full" and isinstance(refused.value.__cause__, QueueFull)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

    run(clock, main())


@again_if_late()
def test_a4_threads():
    limiter = Limiter("1/s burst 1", waiters=3)
    began = time.monotonic()
    assert limiter.allow()
    answers = []

    def one(_):
        try:
            answers.append(limiter.wait(60))
        except QueueFull as full:
            answers.append(full.reason)

    waiting = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in waiting:
        thread.start()
    # A place is free again after a second.
    while True:
        have_come = len(answers) + sum(len(queue.waiters) for queue in list(_queue._queues.values())) == 8
        is_late = time.monotonic() - began > 0.9
        if have_come or is_late:
            break
        time.sleep(0.001)
    for thread in waiting:
        thread.join(60)
    if is_late:
        raise Late
    assert answers == ["queue full"] * 5 + [True] * 3
