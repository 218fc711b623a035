"""Adaptive: a limit on the requests that a server has at one time, learned from their latency.
Experimental."""

from __future__ import annotations

import time
from types import TracebackType

from . import _core
from .in_flight import InFlight

_OUTCOMES: dict[str, int] = {"answered": 0, "dropped": 1, "ignored": 2}
_MOST = (1 << 64) - 1


def _ns(seconds: float) -> int:
    return min(max(round(seconds * 1e9), 0), _MOST)


def _outcome(name: str) -> int:
    if name not in _OUTCOMES:
        raise ValueError(f"outcome must be 'answered', 'dropped' or 'ignored', not {name!r}")
    return _OUTCOMES[name]


class AdaptivePermit:
    """A permit of an Adaptive limit, or a false object if there was none: `if permit`. Its `with`
    or `async with` measures the latency. An exception counts as a dropped request."""

    __slots__ = ("_begin", "_key", "_limit", "_table", "_ticket")

    def __init__(self, limit: Adaptive, ticket: int | None, table: InFlight | None = None, key: _core.Key = None) -> None:
        self._limit, self._ticket, self._table, self._key = limit, ticket, table, key
        self._begin = time.monotonic_ns()

    def __bool__(self) -> bool:
        return self._ticket is not None

    def release(self, outcome: str = "answered", latency: float | None = None) -> bool:
        """Releases the permit, once. The limit learns from the outcome and the latency in seconds.
        Without a latency it is the time since the permit was acquired."""
        took = time.monotonic_ns() - self._begin if latency is None else _ns(latency)
        number = _outcome(outcome)
        ticket, self._ticket = self._ticket, None
        if ticket is None:
            return False
        if self._table is None:
            return self._limit._release(ticket, number, took)
        return not self._table.closed and self._limit._release_key(self._table, self._key, ticket, number, took)

    def __enter__(self) -> AdaptivePermit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.release("answered" if kind is None else "dropped")

    async def __aenter__(self) -> AdaptivePermit:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.release("answered" if kind is None else "dropped")

    def __del__(self) -> None:
        self.release("ignored")


class Adaptive(_core.Adaptive):
    """Adaptive(initial=20, least=1, most=1000): a limit on the requests that a server has at one
    time, learned from their latency.

        with server.enter() as permit:
            if not permit:
                raise Overloaded
            answer = ask()

    With a `timeout` in seconds the algorithm is AIMD, otherwise Netflix's Gradient2. All releases
    of a `window`, in seconds, are one sample. With 0 each release is a sample, and an overload that
    lasts may become the rule: the limit rises to `most`. Any number of
    threads may use one object at once. Experimental: a minor version may change it.
    """

    __slots__ = ()

    def __new__(
        cls, initial: int = 20, least: int = 1, most: int = 1000, *, timeout: float | None = None, window: float = 0.1
    ) -> Adaptive:
        if not 1 <= least <= initial <= most < 1 << 32:
            raise ValueError(f"1 <= least <= initial <= most < 2**32 must hold, not {least}, {initial}, {most}")
        if timeout is not None and _ns(timeout) == 0:
            raise ValueError("timeout must be above 0")
        return super().__new__(
            cls, 0 if timeout is None else 1, initial, least, most, 0 if timeout is None else _ns(timeout), _ns(window)
        )

    def enter(self) -> AdaptivePermit:
        """Returns a permit, or a false one if as many permits as the limit are in flight. It never
        waits."""
        return AdaptivePermit(self, self.acquire())

    def enter_key(self, table: InFlight, key: _core.Key) -> AdaptivePermit:
        """Returns a permit of a key of a table under this limit. The table counts the permits of
        all its processes."""
        return AdaptivePermit(self, self._acquire_key(table, key), table, key)

    def permit(self, table: InFlight, key: _core.Key, ticket: int | None) -> AdaptivePermit:
        """Returns the permit of a ticket that take_many took under this limit. So one call takes
        from a rate and opens a request, or does neither:

            taken = take_many([(users, name), (open_requests, "server", server.limit)])
            with server.permit(open_requests, "server", taken.tickets[1]) as permit:
                if not permit:
                    raise Overloaded
                answer = ask()
        """
        return AdaptivePermit(self, ticket, table, key)

    def release(self, ticket: int, outcome: str, latency: float) -> bool:
        """Releases a permit of acquire(). The limit learns from the outcome and the latency in
        seconds. False if no permit is in flight."""
        return self._release(ticket, _outcome(outcome), _ns(latency))

    @property
    def limit(self) -> int:
        """The present limit."""
        return self._read()[0]

    @property
    def in_flight(self) -> int:
        """The permits of acquire() and enter() in flight."""
        return self._read()[1]

    def __repr__(self) -> str:
        return f"<Adaptive, limit={self.limit}, in_flight={self.in_flight}>"
