"""Waiting in an event loop."""

import asyncio
import time
from datetime import timedelta

import pytest
from tollbar import Limiter, Table


def test_limiter():
    async def run():
        limiter = Limiter("100/s burst 1")
        started = time.monotonic()
        assert await asyncio.gather(*(limiter.wait_async() for _ in range(11))) == [True] * 11
        assert 0.09 < time.monotonic() - started < 4
        assert await limiter.wait_async(timedelta(hours=1), cost=2) is False
        slow = Limiter("1/h")
        assert await slow.wait_async(0) is True and await slow.wait_async(0) is False

    asyncio.run(run())


def test_the_loop_goes_on_meanwhile():
    async def run():
        limiter = Limiter("4/s burst 1")
        assert limiter.allow()
        waiting = asyncio.create_task(limiter.wait_async())
        turns = 0
        while not waiting.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert waiting.result() is True
        return turns

    # Where waiting held up the loop it would be one, each time.
    assert any(asyncio.run(run()) > 5 for _ in range(10))


def test_windows_and_tables():
    async def run():
        limiter = Limiter("2/100ms algo sliding-log")
        assert await asyncio.gather(*(limiter.wait_async(5) for _ in range(5))) == [True] * 5
        table = Table("100/s burst 1", capacity=10)
        assert await asyncio.gather(*(table.wait_async("a", 5) for _ in range(5))) == [True] * 5
        slow = Table("1/h", capacity=10)
        assert await slow.wait_async("a", 0) is True and await slow.wait_async("a", 0) is False

    asyncio.run(run())


def test_cancelled():
    async def run():
        limiter = Limiter("1/h")
        assert limiter.allow()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(limiter.wait_async(), 0.05)

    asyncio.run(run())


def cost_of(make, calls=2000):
    """Seconds of a call that is awaited and need not wait, the best of some rounds."""

    async def run():
        best = float("inf")
        for _ in range(15):
            started = time.perf_counter()
            for _ in range(calls):
                await make()
            best = min(best, time.perf_counter() - started)
        return best

    return asyncio.run(run())


def test_who_need_not_wait_pays_little():
    """Beside a coroutine that does nothing but check: some 2 times as much for a limiter and 4 for a table, in the best of five runs."""
    limiter, table = Limiter("1000000000/s"), Table("1000000000/s", capacity=10)

    async def limiter_check():
        return limiter.check()

    async def table_check():
        return table.check("key")

    for wait, check in ((limiter.wait_async, limiter_check), (lambda: table.wait_async("key"), table_check)):
        assert any(cost_of(wait) < 6 * cost_of(check) for _ in range(5))
