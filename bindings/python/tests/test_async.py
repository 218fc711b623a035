"""Other event loops than asyncio's, and `async with`."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest
import trio
from tollbar import Limited, Limiter, Queue, QueueFull, Table, _queue, limit


@pytest.fixture(autouse=True)
def nobody_is_left_in_a_queue():
    yield
    assert not _queue._queues


def run_in_asyncio(main):
    return asyncio.run(main())


LOOPS = pytest.mark.parametrize("run", [run_in_asyncio, trio.run], ids=["asyncio", "trio"])


@LOOPS
def test_async_with_waits(run):
    async def main():
        limiter, began = Limiter("20/s burst 1"), time.monotonic()
        for _ in range(4):
            async with limiter as nothing:
                assert nothing is None
        # Three intervals of 50 ms, less the clocks' grain.
        return time.monotonic() - began

    assert run(main) > 0.145


@LOOPS
def test_async_with_raises_for_what_never_comes(run):
    async def main():
        with pytest.raises(Limited, match="again in inf s"):
            async with Limiter("0/s"):
                raise AssertionError("it passes")

    run(main)


def test_tasks_of_trio_wait_in_turn_while_the_loop_goes_on():
    limiter, order, beats = Limiter("20/s burst 1"), [], 0

    async def one(n):
        assert await limiter.wait_async()
        order.append(n)

    async def heart(scope):
        nonlocal beats
        with scope:
            while True:
                await trio.sleep(0.005)
                beats += 1

    async def main():
        scope, began = trio.CancelScope(), time.monotonic()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(heart, scope)
            async with trio.open_nursery() as waiting:
                for n in range(5):
                    waiting.start_soon(one, n)
                    await trio.sleep(0.001)
            scope.cancel()
        return time.monotonic() - began

    assert trio.run(main) > 0.195 and order == [0, 1, 2, 3, 4] and beats > 5


def test_a_task_of_trio_that_is_cancelled_gives_its_place_up():
    limiter = Limiter("1/h burst 1")

    async def main():
        assert await limiter.wait_async() and not await limiter.wait_async(0.01)
        with trio.move_on_after(0.05) as scope:
            await limiter.wait_async()
        assert scope.cancelled_caught and not _queue._queues and not limiter._places.taken
        # Its booking has come back: the next permit is due in an hour, not in two.
        assert limiter.peek().retry_after < 3601

    trio.run(main)


def test_threads_and_both_loops_share_a_queue():
    table, done = Table("40/s burst 1", 10), []

    async def ask():
        for _ in range(4):
            assert await table.wait_async("ann", 30)
            done.append(1)

    def threads():
        for _ in range(4):
            assert table.wait("ann", 30)
            done.append(1)

    callers = [
        threading.Thread(target=call)
        for call in (threads, lambda: trio.run(ask), lambda: asyncio.run(ask()), lambda: trio.run(ask))
    ]
    [caller.start() for caller in callers], [caller.join(60) for caller in callers]
    assert len(done) == 16


def test_functions_and_queues_in_trio():
    @limit("1/h", wait=1)
    async def once():
        return "done"

    queue = Queue("50/s burst 1 algo pacer", 10)

    async def main():
        assert await once() == "done"
        with pytest.raises(Limited):
            await once()
        taken = []

        async def take():
            async for item in queue:
                taken.append(item)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            for item in range(3):
                await queue.offer_async(item)
            await trio.sleep(0.01)
            queue.close()
        assert taken == [0, 1, 2]
        few = Limiter("1/s burst 1", waiters=1)
        assert few.allow()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(few.wait_async)
            await trio.sleep(0.01)
            with pytest.raises(QueueFull):
                await few.wait_async()
            nursery.cancel_scope.cancel()

    trio.run(main)


def test_anyio_runs_on_both():
    program = """
import anyio, tollbar
async def main():
    limiter = tollbar.Limiter("100/s burst 1")
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(limiter.wait_async)
    print(limiter.counts().allowed)
for backend in "asyncio", "trio":
    anyio.run(main, backend=backend)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "5\n5\n", done.stderr


def test_trio_is_not_imported_for_others():
    program = (
        "import asyncio, sys, tollbar; asyncio.run(tollbar.Limiter('1/s').wait_async()); print('trio' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60).stdout == "False\n"
    )
