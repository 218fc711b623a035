"""@limit on functions and coroutines."""

import asyncio
import inspect
import pickle
import threading
import time

import pytest
import tollbar
from tollbar import Limited, Limiter, Table, limit

QUOTA = "3/day algo fixed-window anchor first"


def test_a_function():
    @limit(QUOTA)
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert list(inspect.signature(add).parameters) == ["a", "b"]
    assert [add(1), add(1, b=5), add(b=1, a=1)] == [3, 6, 2]
    with pytest.raises(Limited, match=r"add is limited: over the rate, again in 86\d\d\d\.\d\d\d s") as refused:
        add(1)
    assert isinstance(refused.value, tollbar.Error)
    assert refused.value.retry_after == refused.value.decision.retry_after > 86_000
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_coroutine():
    @limit(QUOTA)
    async def double(x):
        return 2 * x

    async def run():
        assert inspect.iscoroutinefunction(double)
        assert await asyncio.gather(*(double(n) for n in range(3))) == [0, 2, 4]
        with pytest.raises(Limited):
            await double(3)

    asyncio.run(run())


def test_keys_costs_and_exempt_ones():
    calls = []

    @limit(QUOTA, key=lambda who, n=1: who, cost=lambda who, n=1: n, exempt={"2001:DB8:0:0::1", "root"})
    def take(who, n=1):
        calls.append(who)

    take("a"), take("a", n=2), take("b", 3)
    for refused in ("a", "b"):
        with pytest.raises(Limited):
            take(refused)
    take("root", 99), take("root", 99), take(tollbar.address_key("2001:db8::77"), 99)
    assert len(calls) == 6
    # No key: as the table's `missing` says, which is "deny".
    with pytest.raises(Limited, match="no key|missing"):
        take(None)


def test_a_table_and_a_limiter_that_others_use():
    table, limiter = Table({"a": QUOTA, "b": "9/day"}, 100), Limiter(QUOTA)
    one = limit(table, key=lambda who: who, policy="a")(lambda who: True)
    other = limit(limiter)(lambda: True)
    assert table.check("x", 2, "a") and limiter.check(2)
    assert one("x") and other()
    for call in (lambda: one("x"), other):
        with pytest.raises(Limited):
            call()


def test_it_paces():
    """With wait the calls come one after the other; one that would wait for too long is refused at
    once, and takes nothing."""

    @limit("50/s burst 1", wait=None)
    def paced():
        return time.monotonic()

    times, began = [], time.monotonic()
    threads = [threading.Thread(target=lambda: times.append(paced())) for _ in range(6)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    # Five intervals of 20 ms, less what the clocks' grain takes. The first call may return as late
    # as the last.
    assert max(times) - began > 0.095

    @limit("1/h", wait=600)
    def slow():
        return True

    assert slow()
    started = time.monotonic()
    with pytest.raises(Limited):
        slow()
    assert time.monotonic() - started < 300


def test_it_paces_coroutines_while_the_loop_goes_on():
    @limit("50/s burst 1", key=lambda who: who, wait=None)
    async def paced(who):
        return time.monotonic()

    async def run(key):
        turns, began = 0, time.monotonic()
        waiting = asyncio.gather(*(paced(key) for _ in range(6)))
        while not waiting.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert max(waiting.result()) - began > 0.095
        with pytest.raises(Limited):
            await limit("1/h", wait=1, cost=2)(paced)("b")
        return turns

    # Where waiting held up the loop there would be one turn for each key.
    assert any(asyncio.run(run(f"key {n}")) > 5 for n in range(10))


@pytest.mark.parametrize("wrong", [{"by": Table("1/s", 10)}, {"by": Limiter("1/s"), "key": lambda: "a"}])
def test_wrong_arguments(wrong):
    with pytest.raises(TypeError, match="a table needs a key"):
        limit(**wrong)


def test_d3_nothing_that_is_awaited_holds_the_loop():
    """An asynchronous generator, an object with an asynchronous call, and a function that returns a
    coroutine wait as a coroutine does."""

    class Asker:
        async def __call__(self):
            return "asked"

    async def work():
        return "worked"

    @limit("4/s burst 1", wait=5)
    async def events():
        """Events."""
        yield "event"

    asker, worker = limit("4/s burst 1", wait=5)(Asker()), limit("4/s burst 1", wait=5)(lambda: work())

    async def first():
        async for event in events():
            return event

    async def run(call, want):
        beats = 0

        async def heart():
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        assert await call() == want
        task = asyncio.create_task(heart())
        # The machine may stand still for a while, and then the call waits for less or the heart
        # beats seldom. A held loop has no beat at all.
        for _ in range(20):
            beats, began = 0, time.monotonic()
            assert await call() == want
            took = time.monotonic() - began
            if took > 0.15 and beats >= 3:
                break
        task.cancel()
        assert took > 0.15 and beats >= 3, (took, beats)

    for call, want in ((first, "event"), (asker, "asked"), (worker, "worked")):
        asyncio.run(run(call, want))
    assert inspect.isasyncgenfunction(events) and events.__doc__ == "Events." and inspect.iscoroutinefunction(asker)


def test_an_asynchronous_generator_is_passed_through():
    seen = []

    @limit(QUOTA, key=lambda who: who)
    async def echo(who):
        try:
            while True:
                try:
                    seen.append((yield len(seen)))
                except KeyError as error:
                    seen.append(repr(error))
        finally:
            seen.append("closed")

    async def run():
        generator = echo("ann")
        assert [await anext(generator), await generator.asend("a"), await generator.athrow(KeyError("k"))] == [0, 1, 2]
        await generator.aclose()
        assert seen == ["a", "KeyError('k')", "closed"]
        with pytest.raises(ZeroDivisionError):
            generator = echo("ann")
            await anext(generator)
            await generator.athrow(ZeroDivisionError())
        # The third call is the last that passes.
        assert [count async for count in limit(QUOTA)(numbers)(3)] == [0, 1, 2]
        await anext(echo("ann"))
        with pytest.raises(Limited):
            await anext(echo("ann"))

    async def numbers(n):
        for count in range(n):
            yield count

    asyncio.run(run())
