"""Times as people give them, and sleeping until one."""

import time
from datetime import timedelta
from typing import Callable, Union

Time = Union[float, timedelta]
"""Seconds, or a timedelta."""

FOREVER = 2**64 - 2
"""Nanoseconds of a patience without end; the largest number is what tollbar.h calls no time."""

# What a waiter has to do next: act after that time, ask again after that time, or give up.
ACT, AGAIN, REFUSED = 0, 1, 2
Ask = Callable[[int], "tuple[int, int]"]


def nanoseconds(value: Time, what: str) -> int:
    """Exact for a timedelta and an int."""
    if isinstance(value, timedelta):
        whole = (value.days * 86_400 + value.seconds) * 1_000_000_000 + value.microseconds * 1000
    elif isinstance(value, (int, float)):
        if value != value:
            raise ValueError(f"{what} is not a number")
        whole = FOREVER if value > FOREVER / 1e9 else round(value * 1_000_000_000) if value > 0 else int(value)
    else:
        raise TypeError(f"{what} must be seconds or a timedelta, not {type(value).__name__}")
    if whole < 0:
        raise ValueError(f"{what} must not be negative")
    return min(whole, FOREVER)


def patience(timeout: "Time | None") -> int:
    return FOREVER if timeout is None else nanoseconds(timeout, "timeout")


def wait(ask: Ask, patience_ns: int) -> bool:
    """Sleeps as `ask(patience left)` says, without the GIL and with signals' handlers run meanwhile."""
    start = time.monotonic_ns()
    while True:
        now = time.monotonic_ns()
        outcome, after = ask(max(patience_ns - (now - start), 0))
        if outcome == REFUSED:
            return False
        until = time.monotonic_ns() + after
        while (left := until - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)
        if outcome == ACT:
            return True


async def wait_async(ask: Ask, patience_ns: int) -> bool:
    """The same, in an event loop."""
    # Here, since it takes longer to import than all the rest, and who calls this has it already.
    import asyncio

    start = time.monotonic_ns()
    while True:
        now = time.monotonic_ns()
        outcome, after = ask(max(patience_ns - (now - start), 0))
        if outcome == REFUSED:
            return False
        until = time.monotonic_ns() + after
        while (left := until - time.monotonic_ns()) > 0:
            await asyncio.sleep(left / 1e9)
        if outcome == ACT:
            return True
