"""Times in the forms that callers use."""

from datetime import timedelta
from typing import Union

Time = Union[float, timedelta]
"""Seconds, or a timedelta."""

FOREVER = 2**64 - 2
"""Nanoseconds of a patience without end; the largest number is what tollbar.h calls no time."""


def nanoseconds(value: Time, what: str) -> int:
    """Exact for a timedelta and an int."""
    # The usual type.
    if type(value) is int and 0 <= value < 1 << 33:
        return value * 1_000_000_000
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
