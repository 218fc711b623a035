"""Reservations: the type that reserve() returns."""

from __future__ import annotations

from typing import NamedTuple


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
