"""Limiter: one state under any policy."""

from __future__ import annotations

from types import TracebackType
from typing import ClassVar, NamedTuple, SupportsIndex

from . import _core, _queue, _time, _waiters
from ._driven import driven
from ._reservation import Reservation
from .policy import Policy, _text

CLOCKS = {"tsc": 0, "monotonic": 1, "coarse": 2, "wall": 3}
ALL_CLOCKS = {**CLOCKS, "python": CLOCKS["wall"]}
"""Those of limiters and tables (_driven.py)."""
KEEPS = {"count": 0, "time": 1, "reset": 2}


def choice(what: str, value: str, among: dict[str, int]) -> int:
    try:
        return among[value]
    except (KeyError, TypeError):
        raise ValueError(f"{what} must be one of {', '.join(among)}, not {value!r}") from None


class Counts(NamedTuple):
    """Decisions by verdict. never: the cost is above the burst."""

    allowed: int
    denied: int
    never: int


class Limiter(_core.Limiter):
    """Limiter("100/s burst 20"): decides whether a request may pass.

    Any number of threads may use it at once. After a fork each process has its own copy. With
    credit=True threads take permits in advance, for a limit that many threads check all the time:
    the bound is the policy's, but up to an eighth of the burst may be refused early. Only gcra has
    credit. At most `waiters` callers of this process wait at one time.

    With clock="python" it goes by Python's time.time_ns(), which freezegun and time-machine drive
    in tests. A call then takes a microsecond more, and sleeps stay real ones.
    """

    __slots__ = ("_places",)
    _places: _queue.Places
    _driven: ClassVar[bool] = False

    def __new__(cls, policy: str | Policy, *, clock: str = "tsc", credit: bool = False, waiters: int = _queue.Places.MOST) -> Limiter:
        if clock == "python" and not cls._driven:
            cls = driven(cls)
        self = super().__new__(cls, _text(policy), choice("clock", clock, ALL_CLOCKS), credit)
        self._places = _queue.Places(waiters)
        return self

    @property
    def policy(self) -> Policy:
        return Policy(self._text())

    def set_policy(self, policy: str | Policy, *, keep: str = "count", at: SupportsIndex | None = None) -> None:
        """Changes the policy while other threads use the limiter. It keeps the permits that it has
        left, up to the new burst; with keep="time" the time until its debt is paid, and with
        keep="reset" nothing. Bookings keep their departures.

        A limiter whose checks have `at` is given `at` here, too. It can be changed to 4,096 different
        policies in its life, and then raises ValueError.
        """
        self._set_policy(_text(policy), choice("keep", keep, KEEPS), at)

    def counts(self) -> Counts:
        """The counts of decisions of all threads since the limiter was made. Peeks do not count.
        Each check of a waiter counts."""
        return Counts(*self._counts())

    def reserve(
        self, timeout: _time.Time | None = None, cost: int = 1, *, at: SupportsIndex | None = None
    ) -> Reservation | None:
        """Takes cost permits ahead of time. The caller must act `wait` seconds from now (or from
        `at`), not earlier.

        None, with nothing taken, if that would be more than timeout, or if the algorithm cannot
        book ahead, as a window or a log.
        """
        booked = self._book(cost, _time.patience(timeout), at)
        return None if booked is None or booked is NotImplemented else Reservation(*booked)

    def cancel(self, reservation: Reservation, *, at: SupportsIndex | None = None) -> int:
        """Gives back the permits of a reservation that the caller does not use, and returns the
        number that came back. Cancel a reservation once only.

        The latest reservation comes back whole. An earlier one usually gives back nothing, because
        the later callers keep the departure times that they have.
        """
        return self._cancel(reservation.departs_ns, reservation.cost, at)

    def wait(self, timeout: _time.Time | None = None, cost: int = 1) -> bool:
        """Takes cost permits, and sleeps up to timeout for them. Other threads run during the
        sleep.

        If they would come later, the call returns False at once and takes nothing. The callers of
        this process, threads and tasks of event loops, wait in one queue, first in, first out, and
        only its head holds a booking, which the next one takes over if the head gives up. Where the
        algorithm cannot book ahead (windows and logs) the head checks again when a permit could be
        free. QueueFull refuses a caller if as many wait as the option `waiters` allows. When a
        signal's handler ends the sleep with an exception, the caller leaves the queue.
        """
        patience = _time.patience(timeout)
        return (not self._places.taken and self._take(cost)) or _waiters.wait(self, cost, patience)

    async def wait_async(self, timeout: _time.Time | None = None, cost: int = 1) -> bool:
        """wait, in an event loop. A task that is cancelled leaves the queue."""
        patience = _time.patience(timeout)
        return (not self._places.taken and self._take(cost)) or await _waiters.wait_async(self, cost, patience)

    async def __aenter__(self) -> None:
        """`async with limiter`: waits for a permit, as long as it takes. It raises Limited if the
        limiter can never give one."""
        if not await self.wait_async():
            from ._limit import Limited

            raise Limited(repr(self), self.peek())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Nothing: a permit is used up when the block begins."""

    def _who(self) -> Limiter:
        return self

    def __repr__(self) -> str:
        return f"Limiter({self._text()!r})"
