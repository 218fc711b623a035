"""Meter: green, yellow and red packets by RFC 2697 and RFC 2698."""

from __future__ import annotations

from . import _core
from ._time import Time, nanoseconds


class Meter(_core.Meter):
    """Meter(committed_bytes, committed_burst, excess_burst=0): the colour of packets by RFC 2697.

        uploads = tollbar.Meter(1_000_000, 100_000, 50_000)  # bytes per second, and two bursts
        if uploads.color(len(packet)) == "red":
            return drop(packet)

    A packet is green if the committed bucket has its bytes, yellow if the excess bucket has them,
    and red otherwise. With `peak_bytes` and `peak_burst` instead of `excess_burst` it is a meter of
    RFC 2698: a packet is red if the peak bucket lacks its bytes, and yellow if only the committed
    one does.

    Rates are bytes per `period`, in seconds or a timedelta; bursts are bytes. All buckets are full
    at first. Each flow has a meter of its own. Any number of threads may use one at once. Numbers
    that no meter can have raise PolicyError.
    """

    __slots__ = ()

    def __new__(
        cls,
        committed_bytes: int,
        committed_burst: int,
        excess_burst: int | None = None,
        *,
        peak_bytes: int | None = None,
        peak_burst: int | None = None,
        period: Time = 1,
    ) -> Meter:
        is_rfc_2698 = peak_bytes is not None
        if is_rfc_2698 != (peak_burst is not None) or is_rfc_2698 and excess_burst is not None:
            raise ValueError("a meter has an excess_burst, or else peak_bytes and peak_burst")
        if peak_bytes == 0:
            raise ValueError("peak_bytes must be at least committed_bytes and above 0")
        second = excess_burst if peak_burst is None else peak_burst
        return super().__new__(cls, committed_bytes, nanoseconds(period, "period"), committed_burst,
                               peak_bytes or 0, second or 0)
