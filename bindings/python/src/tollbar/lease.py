"""Lease: one limit over many machines, through Redis or Valkey."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from . import _clients, _core, _redis, _time
from .limiter import choice
from .policy import Policy, _text

if TYPE_CHECKING:
    from ssl import SSLContext

    from ._calls import RedisClient

FALLBACKS = {"share": 0, "deny": 1, "allow": 2}
LOSSES = {"full": 0, "refill": 1}
CIRCUITS = ("unknown", "closed", "open")
_MOST_MS = 2**32 - 1
# Seconds between two looks for the store's answer. A thread begins with a part of a round trip.
# Event loops round a sleep up to a millisecond.
_FIRST_PAUSE = 50e-6
_PAUSE = 1e-3
# For how many seconds a fork or a close waits for a call of the program's client.
_CALL = 1.0


class LeaseStats(NamedTuple):
    """The counts of this machine's leases, as tollbar_redis.h explains them."""

    circuit: str
    granted: int
    asked: int
    overdrawn: int
    fallback_permits: int
    uncounted: int
    denied: int
    queue_full: int
    opened: int
    owed: int
    full: int
    denied_pending: int
    denied_by_store: int
    denied_by_fallback: int


# The leases that a fork or the end of the process is about.
_open: weakref.WeakSet[Lease] = weakref.WeakSet()


class Lease(_redis.Lease):
    """Lease("100/s burst 50", name="logins", nodes=4, url="redis://127.0.0.1"): one limit over four
    machines.

    A machine takes some permits from the store at a time and spends them by itself: `check` and
    `allow` never wait for the store. `wait` does where only the store can tell. A machine is this
    process and those forked from it. Each has a thread and a connection for all leases of one url, of
    which one process's asks at a time. Keys are those of a Table; without a key there is one limit
    for all requests.

    `url` may begin with rediss:// for a store behind TLS. `tls` is the ssl.SSLContext of its
    connections, by default ssl.create_default_context(): it verifies the server's certificate and
    its name.

    In place of `url`, `client` is a client of redis-py or valkey-py, which then makes the calls for
    the store: Redis(...), RedisCluster(...), Sentinel(...).master_for(...), and those of asyncio with
    a task for `run`. Give it a socket_timeout of about a second, and few retries: while it waits, this
    machine follows its fallback.

    `fallback` says what happens while the store does not answer: "share" (each machine admits its
    share of the rate), "deny" or "allow". `overdraft` is the permits of a key that this machine may
    admit before the store has charged them, at most 127; with 0 only the store's permits count.
    `on_loss` says what a key has after the store has lost its data: a full bucket ("full"), or an
    empty one that refills ("refill"). `on_change` is called with "closed" when the store is
    there and "open" when it is lost, in that thread. It should return soon, because the thread asks
    for all leases of the url. With `start=False` there is no thread, and
    `tick` is to be called. A lease is a context manager; what is not closed is closed when the
    process ends, with `flush` as its deadline.
    """

    __slots__ = ("__weakref__", "_driver", "_flush", "_policy")

    _driver: _clients.Driver
    _flush: int
    _policy: str

    def __new__(
        cls,
        policy: str | Policy,
        *,
        name: str,
        nodes: int,
        url: str | None = None,
        tls: SSLContext | None = None,
        client: RedisClient | None = None,
        capacity: int = 4096,
        life: _time.Time = 0,
        overdraft: int | None = None,
        fallback: str = "share",
        exact: bool = True,
        on_loss: str = "full",
        on_change: Callable[[str], object] | None = None,
        start: bool = True,
        flush: _time.Time = 1,
    ) -> Lease:
        text = _text(policy)
        life_ns = _time.nanoseconds(life, "life")
        flush_ms = _milliseconds(flush, "flush")
        self = super().__new__(
            cls,
            name,
            text,
            nodes,
            capacity,
            life_ns,
            overdraft,
            choice("fallback", fallback, FALLBACKS),
            not exact,
            bool(choice("on_loss", on_loss, LOSSES)),
        )
        self._policy, self._flush = text, flush_ms
        listener = None if on_change is None else lambda circuit: on_change(CIRCUITS[circuit])
        self._driver = _driver_of(self, name, url, tls, client, listener, start)
        _open.add(self)
        return self

    @property
    def policy(self) -> Policy:
        return Policy(self._policy)

    def wait(self, key: _core.Key = b"", timeout: _time.Time | None = None, cost: int = 1) -> _core.Decision:
        """check that waits up to timeout for the store's answer, which takes about a round trip.
        Other threads run meanwhile, and signals' handlers, which may end the wait.

        While the store answers, the call denies only what the store denies. It denies with the
        reason "pending" if no answer came in time; the store may still charge such a request. While
        the store does not answer, it decides at once as check does. It never waits for permits to
        come back. With start=False the thread that calls tick uses wait_async.
        """
        until = self._until(timeout)
        answer = self._poll(key, cost, until, 0)
        pause = _FIRST_PAUSE
        while isinstance(answer, int):
            if self._driver.thread is threading.current_thread():
                raise RuntimeError("the on_change of a lease cannot wait for its store")
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE)
            answer = self._poll(key, cost, until, answer)
        return answer

    async def wait_async(
        self, key: _core.Key = b"", timeout: _time.Time | None = None, cost: int = 1
    ) -> _core.Decision:
        """wait, in an event loop. If a task is cancelled, the store may still charge its request."""
        until = self._until(timeout)
        answer = self._poll(key, cost, until, 0)
        if isinstance(answer, int):
            # Imported here, because asyncio takes longer to import than the whole package, and a
            # task has imported it.
            import asyncio

            while isinstance(answer, int):
                await asyncio.sleep(_PAUSE)
                answer = self._poll(key, cost, until, answer)
        return answer

    def _until(self, timeout: _time.Time | None) -> int:
        return min(self.now() + _time.patience(timeout), _time.FOREVER)

    @property
    def circuit(self) -> str:
        """Whether the store answers: "closed" if it does, "open" if not, "unknown" if no client has
        reached it yet."""
        return CIRCUITS[self._stats()[0]]

    def stats(self) -> LeaseStats:
        """The circuit and the counters of this machine."""
        circuit, *counts = self._stats()
        return LeaseStats(CIRCUITS[circuit], *counts)

    async def run(self) -> None:
        """Makes the calls of a `client` of asyncio, in its event loop, until the task is cancelled or
        the lease is closed. A cancelled task first tells the store what it does not know, for `flush`
        at most."""
        await self._driver.run_async(self._flush)

    def tick(self) -> float:
        """Does the client's pending work without waiting, except for a `client` of the program's.
        Returns the seconds until the next call; call sooner if fileno() is ready. Only with
        start=False."""
        return (self._living().tick() or 0) / 1000

    def fileno(self) -> int:
        """The descriptor to watch until the next tick; -1 if there is none."""
        return self._living().fd()[0]

    @property
    def events(self) -> tuple[bool, bool]:
        """Whether it is to be watched for something to read, and for room to write."""
        flags = self._living().fd()[1]
        return bool(flags & 1), bool(flags & 2)

    @property
    def error(self) -> str:
        """Why the store does not answer or refuses, as text; empty if it does neither. A lease with
        a thread has the text as of the last change of its circuit."""
        return self._driver.error()

    def close(self, timeout: _time.Time | None = None) -> bool:
        """Reports the permits that the store has not charged yet, for `timeout` (or the `flush` of
        the constructor) at most, and ends the lease.

        Returns whether all were reported. The machine's unspent permits are lost. A second close
        does nothing; every other call on a closed lease raises ValueError.
        """
        if self.closed:
            return True
        patience = self._flush if timeout is None else _milliseconds(timeout, "timeout")
        if self._driver.listens:
            raise RuntimeError("a lease cannot be closed by an on_change of its store")
        _open.discard(self)
        # Nobody takes permits that the last report would not know.
        self._release()
        return self._driver.close(patience)

    def _living(self) -> _clients.Driver:
        if self.closed:
            raise ValueError("the lease is closed")
        return self._driver

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # A lease that could not be made has nothing to close.
        if not hasattr(self, "_driver") or self.closed:
            return
        # The garbage collector runs in any thread that runs Python, so in those for the stores.
        if self._driver.listens or not _clients.may_wait():
            _open.discard(self)
            self._release()
            self._driver.leave(self._flush)
        else:
            self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<tollbar.Lease, closed>"
        return f"<tollbar.Lease of {self._policy!r}, circuit {self.circuit}>"


def _driver_of(
    lease: Lease,
    name: str,
    url: str | None,
    tls: SSLContext | None,
    client: RedisClient | None,
    listener: Callable[[int], object] | None,
    start: bool,
) -> _clients.Driver:
    """What asks the store for the lease."""
    if client is not None:
        if url is not None or tls is not None:
            raise TypeError("a lease has a client, or a url and tls")
        from ._calls import Called

        return Called(lease, client, listener, start)
    if url is None:
        raise TypeError("a lease needs a url or a client")

    def starter() -> _clients.Starter | None:
        if tls is None and not url.startswith(("rediss:", "valkeys:")):
            return None
        # Imported here, because ssl takes longer to import than the whole package.
        from ._tls import starter as begin

        return begin(url, tls)

    if start:
        return _clients.join(lease._node(), name, url, tls, starter, listener)
    return _clients.Ticked(lease._node(), url, starter(), listener)


def _milliseconds(value: _time.Time, what: str) -> int:
    return min(-(-_time.nanoseconds(value, what) // 1_000_000), _MOST_MS)


def _drivers() -> list[_clients.Driver]:
    return [lease._driver for lease in _open]


def _rest() -> None:
    _clients.rest()
    drivers, end = _drivers(), time.monotonic() + _CALL
    for driver in drivers:
        driver.stop()
    for driver in drivers:
        driver.rest(end)


def _go_on() -> None:
    _clients.go_on()
    for driver in _drivers():
        driver.start()


def _begin_again() -> None:
    _clients.begin_again()
    for driver in _drivers():
        driver.begin_again()


def _end() -> None:
    leases = list(_open)
    # All at once, so that a silent store is waited for once.
    for lease in leases:
        if isinstance(lease._driver, _clients.Place):
            lease._release()
            lease._driver.leave(lease._flush)
    for lease in leases:
        try:
            lease._driver.close(lease._flush)
        except Exception as failure:
            _clients.say(failure)
        lease._release()


os.register_at_fork(before=_rest, after_in_parent=_go_on, after_in_child=_begin_again)
atexit.register(_end)
