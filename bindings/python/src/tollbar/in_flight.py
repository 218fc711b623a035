"""InFlight: a limit on the requests that a key has open at one time, in memory that processes can
share."""

from __future__ import annotations

import os
from types import TracebackType

from . import _core

_PRIVATE, _SHARED, _FILE = 0, 1, 2
_TRUST_ANYONE = 1


class Permit:
    """A key's permit, or a false object if there was none: `if permit`. The permit ends with its
    `with` or `async with`, with release(), or when it is garbage."""

    __slots__ = ("_table", "_ticket")

    def __init__(self, table: InFlight, ticket: int | None) -> None:
        self._table, self._ticket = table, ticket

    def __bool__(self) -> bool:
        return self._ticket is not None

    def release(self) -> bool:
        """Gives the permit back, once. Returns False if there is none, or if this process's parent
        acquired it."""
        ticket, self._ticket = self._ticket, None
        return ticket is not None and not self._table.closed and self._table.release(ticket)

    def __enter__(self) -> Permit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.release()

    async def __aenter__(self) -> Permit:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


class InFlight(_core.InFlight):
    """InFlight(capacity=10_000): how many requests, connections or uploads each key has open at one
    time.

        with uploads.enter(user, 4) as permit:
            if not permit:
                return too_many()
            ...

    `capacity` is the number of keys that can have permits in flight at one time, and `processes`
    the number of processes that have permits of one key. With `shared=True` the processes that are
    forked later share the table. If a process is killed, its permits of a key stay in flight until
    the key refuses a request of another process. A forked child cannot release its parent's
    permits. Any number of threads may use one object at once. The object is a context manager, too.
    """

    __slots__ = ()

    def __new__(cls, capacity: int, *, processes: int = 8, shared: bool = False) -> InFlight:
        return super().__new__(cls, capacity, processes, 0, 0, _SHARED if shared else _PRIVATE, None)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        capacity: int | None = None,
        *,
        processes: int = 8,
        mode: int = 0o600,
        trust_anyone: bool = False,
    ) -> InFlight:
        """Opens the table in a file, or makes the file if there is none. Without a capacity the
        file must exist.

        Give it a directory of the service's own, such as /run/SERVICE, or /dev/shm. All processes
        must be in one PID namespace. Whom it trusts: Table.open.
        """
        if capacity == 0:
            raise ValueError("capacity must be above 0")
        flags = _TRUST_ANYONE if trust_anyone else 0
        return super().__new__(cls, capacity or 0, processes, flags, mode, _FILE, path)

    def enter(self, key: _core.Key, limit: int) -> Permit:
        """Returns a permit of the key, or a false one if `limit` permits of the key are in flight.
        It never waits."""
        return Permit(self, self.acquire(key, limit))

    def permit(self, ticket: int | None) -> Permit:
        """Returns the permit for a ticket of take_many:

            taken = take_many([(users, user), (uploads, user, 4)])
            with uploads.permit(taken.tickets[1]) as permit:
                if not permit:
                    return too_many()
                ...
        """
        return Permit(self, ticket)

    def __enter__(self) -> InFlight:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<InFlight, closed>" if self.closed else "<InFlight>"
