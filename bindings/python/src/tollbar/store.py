"""StoreLimit: one limit over many machines, decided by Redis or Valkey request by request."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from . import _core, _redis
from ._calls import RedisClient, _is_a, is_async
from .policy import Policy, _text

if TYPE_CHECKING:
    from ._core import Key

_CHECK, _PEEK, _UP_TO, _RESET = range(4)


# The digests of the scripts, of which there are seven.
_digests: dict[str, str] = {}


def _sha(script: str) -> str:
    digest = _digests.get(script)
    if digest is None:
        digest = _digests[script] = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
    return digest


class _Limit:
    _is_async = False

    def __init__(self, policy: str | Policy, *, name: str, client: RedisClient) -> None:
        if is_async(client) != self._is_async:
            kind, instead = ("no client", "StoreLimit") if self._is_async else ("a client", "AsyncStoreLimit")
            raise TypeError(f"{type(client).__name__} is {kind} of an event loop: use {instead}")
        self._store = _redis.Store(name, _text(policy))
        self._client, self._words = client, f"{_text(policy)!r}, name={name!r}"

    def __repr__(self) -> str:
        return f"<tollbar.{type(self).__name__} {self._words}>"

    def _turn(self, what: int, key: Key, cost: SupportsIndex) -> Generator[tuple[Any, ...], Any, tuple[_core.Decision, int]]:
        """Yields the commands to send, and takes their replies."""
        script, name, args = self._store.ask(what, key, cost)
        reply = None
        if script is not None:
            try:
                reply = yield "EVALSHA", _sha(script), 1, name, *args
            except Exception as error:
                if not _is_a(error, "NoScriptError"):
                    raise
                reply = yield "EVAL", script, 1, name, *args
        return self._store.answer(what, cost, reply)


class StoreLimit(_Limit):
    """StoreLimit("5/min", name="logins", client=redis.Redis(...)): one limit over all machines, exact,
    for the price of a round trip for each decision.

    The store has the clock and the state, so any number of programs together admit what one Limiter
    would. `client` is a client of redis-py or valkey-py: Redis(...), RedisCluster(...),
    Sentinel(...).master_for(...). Its errors come out as they are; such a request has no decision. A
    call that the client repeats may charge twice: give it few retries.

    Algorithms: gcra, interval, fixed-window, weighted-window, sliding-log and aligned sliding-window,
    without borrow, ban, init, reserve and a second rate. Keys have 1 to 512 bytes. Any number of
    threads may use one limit.
    """

    def check(self, key: Key, cost: SupportsIndex = 1) -> _core.Decision:
        """Takes cost permits of the key, or none."""
        return self._ask(_CHECK, key, cost)[0]

    def allow(self, key: Key, cost: SupportsIndex = 1) -> bool:
        """check as a bool."""
        return self._ask(_CHECK, key, cost)[0].allowed

    def peek(self, key: Key, cost: SupportsIndex = 1) -> _core.Decision:
        """What check would say; takes nothing."""
        return self._ask(_PEEK, key, cost)[0]

    def take_up_to(self, key: Key, most: SupportsIndex) -> int:
        """Takes as many permits as are left, up to `most`, and returns how many."""
        return self._ask(_UP_TO, key, most)[1]

    def reset(self, key: Key) -> None:
        """Forgets the key."""
        self._ask(_RESET, key, 0)

    def _ask(self, what: int, key: Key, cost: SupportsIndex) -> tuple[_core.Decision, int]:
        turn = self._turn(what, key, cost)
        try:
            command = next(turn)
            while True:
                try:
                    reply = self._client.execute_command(*command)
                except Exception as error:
                    command = turn.throw(error)
                else:
                    command = turn.send(reply)
        except StopIteration as end:
            return cast("tuple[_core.Decision, int]", end.value)


class AsyncStoreLimit(_Limit):
    """StoreLimit by a client of redis.asyncio or valkey.asyncio."""

    _is_async = True

    async def check(self, key: Key, cost: SupportsIndex = 1) -> _core.Decision:
        """Takes cost permits of the key, or none."""
        return (await self._ask(_CHECK, key, cost))[0]

    async def allow(self, key: Key, cost: SupportsIndex = 1) -> bool:
        """check as a bool."""
        return (await self._ask(_CHECK, key, cost))[0].allowed

    async def peek(self, key: Key, cost: SupportsIndex = 1) -> _core.Decision:
        """What check would say; takes nothing."""
        return (await self._ask(_PEEK, key, cost))[0]

    async def take_up_to(self, key: Key, most: SupportsIndex) -> int:
        """Takes as many permits as are left, up to `most`, and returns how many."""
        return (await self._ask(_UP_TO, key, most))[1]

    async def reset(self, key: Key) -> None:
        """Forgets the key."""
        await self._ask(_RESET, key, 0)

    async def _ask(self, what: int, key: Key, cost: SupportsIndex) -> tuple[_core.Decision, int]:
        turn = self._turn(what, key, cost)
        try:
            command = next(turn)
            while True:
                try:
                    reply = await self._client.execute_command(*command)
                except Exception as error:
                    command = turn.throw(error)
                else:
                    command = turn.send(reply)
        except StopIteration as end:
            return cast("tuple[_core.Decision, int]", end.value)
