"""Limiter: one state, any algorithm."""

from __future__ import annotations

from typing import NamedTuple

from . import _core, _line, _time
from .policy import Policy, _text

CLOCKS = {"tsc": 0, "monotonic": 1, "coarse": 2, "wall": 3}


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

    Any number of threads may use one at once; after a fork each process goes on with its own copy.
    """

    __slots__ = ()

    def __new__(cls, policy: str | Policy, *, clock: str = "tsc") -> Limiter:
        return super().__new__(cls, _text(policy), choice("clock", clock, CLOCKS))

    @property
    def policy(self) -> Policy:
        return Policy(self._text())

    def counts(self) -> Counts:
        """Decisions since the limiter was made, of all threads. A peek is none. A waiter counts once each time that it asks."""
        return Counts(*self._counts())

    def wait(self, timeout: _time.Time | None = None, cost: int = 1) -> bool:
        """Takes cost permits, sleeping up to timeout for them; other threads run meanwhile.

        False at once if they cannot be had by then, with nothing taken. Where the algorithm can book ahead (gcra, pacer,
        warm-up, interval at its usual anchor) callers wake one after the other. Where it cannot (windows and logs) they
        wait in line, and the first asks again when a permit could be free.
        What is booked stays so when a signal's handler ends the sleep with an exception.
        """
        patience = _time.patience(timeout)
        answer = _line.NOT_ASKED if _line.anybody() else self._reserve(cost, patience)
        if answer == 0:
            return True
        return _line.wait(self, answer, cost, lambda left: self._reserve(cost, left), self._earliest(cost), patience)

    async def wait_async(self, timeout: _time.Time | None = None, cost: int = 1) -> bool:
        """wait, in an event loop. What is booked stays so when the task is cancelled."""
        patience = _time.patience(timeout)
        answer = _line.NOT_ASKED if _line.anybody() else self._reserve(cost, patience)
        if answer == 0:
            return True
        return await _line.wait_async(
            self, answer, cost, lambda left: self._reserve(cost, left), self._earliest(cost), patience
        )

    def _earliest(self, cost: int) -> _line.Earliest:
        return lambda ahead: _line.earliest(self.policy, self.peek, ahead, cost)

    def __repr__(self) -> str:
        return f"Limiter({self._text()!r})"
