"""Limiter: one state under any policy."""

from __future__ import annotations

from typing import NamedTuple

from . import _core, _line, _time
from ._reservation import Reservation, sleep_until_departure, sleep_until_departure_async
from .policy import Policy, _text

CLOCKS = {"tsc": 0, "monotonic": 1, "coarse": 2, "wall": 3}
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

    Any number of threads may use it at once. After a fork each process has its own copy. With credit=True threads
    take permits in advance, for a limit that many threads check all the time: the bound is the policy's, but up to an eighth of
    the burst may be refused early. Only gcra has credit.
    """

    __slots__ = ()

    def __new__(cls, policy: str | Policy, *, clock: str = "tsc", credit: bool = False) -> Limiter:
        return super().__new__(cls, _text(policy), choice("clock", clock, CLOCKS), credit)

    @property
    def policy(self) -> Policy:
        return Policy(self._text())

    def set_policy(self, policy: str | Policy, *, keep: str = "count") -> None:
        """Changes the policy while other threads use the limiter. It keeps the permits that it has left, up to the new burst; with
        keep="time" the time until its debt is paid, and with keep="reset" nothing. Bookings keep their departures.

        A limiter can be changed to 4,096 different policies in its life, and then raises ValueError.
        """
        self._set_policy(_text(policy), choice("keep", keep, KEEPS))

    def counts(self) -> Counts:
        """The counts of decisions of all threads since the limiter was made. Peeks do not count. Each check of a waiter counts."""
        return Counts(*self._counts())

    def reserve(self, timeout: _time.Time | None = None, cost: int = 1) -> Reservation | None:
        """Takes cost permits ahead of time. The caller must act `wait` seconds from now, not earlier.

        None, with nothing taken, if that would be more than timeout, or if the algorithm cannot book ahead: windows, logs.
        """
        booked = self._book(cost, _time.patience(timeout))
        return None if booked is None or booked is NotImplemented else Reservation(*booked)

    def cancel(self, reservation: Reservation) -> int:
        """Gives back the permits of a reservation that the caller does not use, and returns the number that came back. Cancel a
        reservation once only.

        The latest reservation comes back whole. An earlier one usually gives back nothing, because the later callers keep the
        departure times that they have.
        """
        return self._cancel(reservation.departs_ns, reservation.cost)

    def wait(self, timeout: _time.Time | None = None, cost: int = 1) -> bool:
        """Takes cost permits, and sleeps up to timeout for them. Other threads run during the sleep.

        If they would come later, the call returns False at once and takes nothing. Where the algorithm can book ahead (gcra, pacer,
        warm-up, interval at its usual anchor) callers wake one after the other. Where it cannot (windows and logs) they
        wait in line, and the first checks again when a permit could be free.
        When a signal's handler ends the sleep with an exception, the booking is cancelled.
        """
        patience = _time.patience(timeout)
        booked = self._book(cost, patience)
        if booked is NotImplemented:
            answer = _line.NOT_ASKED if _line.anybody() else self._ask(cost, patience)
            if answer == 0:
                return True
            return _line.wait(self, answer, cost, lambda left: self._ask(cost, left), self._earliest(cost), patience)
        if booked is None:
            return False
        if booked[1]:
            sleep_until_departure(Reservation(*booked), self.cancel)
        return True

    async def wait_async(self, timeout: _time.Time | None = None, cost: int = 1) -> bool:
        """wait, in an event loop. A task that is cancelled cancels its booking."""
        patience = _time.patience(timeout)
        booked = self._book(cost, patience)
        if booked is NotImplemented:
            answer = _line.NOT_ASKED if _line.anybody() else self._ask(cost, patience)
            if answer == 0:
                return True
            return await _line.wait_async(
                self, answer, cost, lambda left: self._ask(cost, left), self._earliest(cost), patience
            )
        if booked is None:
            return False
        if booked[1]:
            await sleep_until_departure_async(Reservation(*booked), self.cancel)
        return True

    def _ask(self, cost: int, left: int) -> int | None:
        return _line.after(self.check(cost), left)

    def _earliest(self, cost: int) -> _line.Earliest:
        return lambda ahead: _line.earliest(self.policy, self.peek, ahead, cost)

    def __repr__(self) -> str:
        return f"Limiter({self._text()!r})"
