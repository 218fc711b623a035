"""Reservations: the type that reserve() returns, and the sleep until the permits may be used."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ._time import sleep, sleep_async


class Reservation(NamedTuple):
    """Booked permits. This is plain data, so another process may cancel the booking with it."""

    departs_ns: int
    """When they may be used, on the scale of now()."""
    wait_ns: int
    """Nanoseconds from the call until then."""
    cost: int
    """The permits that were charged; 0 where no key was charged (an exempt or empty key, or a new key of a full table that admits it)."""

    @property
    def wait(self) -> float:
        """Seconds from the call until they may be used."""
        return self.wait_ns / 1e9


Cancel = Callable[[Reservation], object]


def sleep_until_departure(booked: Reservation, cancel: Cancel) -> None:
    """Sleeps until the permits may be used. If an exception ends the sleep, such as one of a signal's handler, the booking is cancelled."""
    try:
        sleep(time.monotonic_ns() + booked.wait_ns)
    except BaseException:
        cancel(booked)
        raise


async def sleep_until_departure_async(booked: Reservation, cancel: Cancel) -> None:
    """The same in an event loop. A task that is cancelled cancels its booking."""
    try:
        await sleep_async(time.monotonic_ns() + booked.wait_ns)
    except BaseException:
        cancel(booked)
        raise
