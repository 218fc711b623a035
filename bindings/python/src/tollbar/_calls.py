"""Calls of a lease's script by a Redis client of the program: of redis-py, valkey-py, or one with their
execute_command."""

from __future__ import annotations

import hashlib
import inspect
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Protocol, cast

from . import _redis

# The longest sleep of a thread that a stop must end, in milliseconds.
_SLICE = 10
_SHA = hashlib.sha1(_redis.SCRIPT.encode(), usedforsecurity=False).hexdigest()
# The codes of errors that such a client leaves out of their texts.
_CODES = {
    "ReadOnlyError": "READONLY ",
    "OutOfMemoryError": "OOM ",
    "NoPermissionError": "NOPERM ",
    "ClusterDownError": "CLUSTERDOWN ",
    "MasterDownError": "MASTERDOWN ",
    "TryAgainError": "TRYAGAIN ",
    "MovedError": "MOVED ",
}


class RedisClient(Protocol):
    """What a lease needs of a client: redis.Redis, redis.RedisCluster, a master of redis.sentinel, or
    those of redis.asyncio or valkey."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...


class Caller:
    """Takes the place of a _redis.Client. One thread at a time drives it."""

    def __init__(self, lease: _redis.Lease, client: RedisClient, listener: Callable[[int], object] | None) -> None:
        self._calls = _redis.Calls(lease)
        self._client, self._listener = client, listener
        self._circuit = self._calls.circuit()
        self.is_async = is_async(client)
        self._said = "nobody makes the calls of the asyncio client: a task of run() does" if self.is_async else ""
        self._lock = threading.Lock()
        self._stops = self._runs = self._is_closed = False

    def run(self) -> None:
        """Makes calls until stop."""
        while True:
            with self._lock:
                if self._stops:
                    self._runs = False
                    return
                self._runs = True
            try:
                wait = self.tick()
                if wait:
                    self._calls.wait(min(wait, _SLICE))
            except ValueError:
                # The lease was closed while its store was silent.
                if not self._is_closed:
                    raise

    def stop(self) -> None:
        self._stops = True

    def resume(self) -> bool:
        """Takes a stop back. Returns whether run is still in a call, and so goes on."""
        with self._lock:
            self._stops = False
            return self._runs

    def tick(self, closing: bool = False) -> int | None:
        """Makes the call that is due. Returns None after a call, or the milliseconds until the next
        turn."""
        turn = self._turn(closing)
        try:
            command = next(turn)
            while True:
                try:
                    reply = self._client.execute_command(*command, NEVER_DECODE=True)
                except Exception as error:
                    command = turn.throw(error)
                else:
                    command = turn.send(reply)
        except StopIteration as end:
            return cast("int | None", end.value)

    async def tick_async(self, closing: bool = False) -> int | None:
        turn = self._turn(closing)
        try:
            command = next(turn)
            while True:
                try:
                    reply = await self._client.execute_command(*command, NEVER_DECODE=True)
                except Exception as error:
                    command = turn.throw(error)
                else:
                    command = turn.send(reply)
        except StopIteration as end:
            return cast("int | None", end.value)

    def fd(self) -> tuple[int, int]:
        return -1, 0

    def error(self) -> str:
        return self._said

    def close(self, milliseconds: int) -> bool:
        end = time.monotonic() + milliseconds / 1000
        # A thread that is still in a call has the client.
        is_mine = not self._runs and not self.is_async
        while is_mine and time.monotonic() < end:
            wait = self.tick(True)
            if wait == 0:
                break
            time.sleep(0 if wait is None else 0.001)
        self._is_closed = True
        return self._calls.close()

    async def run_async(self, milliseconds: int) -> None:
        """Makes calls until the lease is closed or the task is cancelled."""
        # Imported here, because asyncio takes longer to import than the whole package.
        import asyncio

        try:
            while not self._is_closed:
                await asyncio.sleep((await self.tick_async() or 0) / 1000)
        except ValueError:
            if not self._is_closed:
                raise
        finally:
            if not self._is_closed:
                await self._finish(milliseconds)

    async def _finish(self, milliseconds: int) -> None:
        """Tells the store all admissions."""
        import asyncio

        end = time.monotonic() + milliseconds / 1000
        while time.monotonic() < end:
            wait = await self.tick_async(True)
            if wait == 0:
                break
            await asyncio.sleep(0 if wait is None else 0.001)

    def _turn(self, closing: bool) -> Generator[tuple[Any, ...], Any, int | None]:
        """Yields the commands to send, and takes their replies. Returns what tick does."""
        found = self._calls.turn(closing)
        if isinstance(found, int):
            self._report()
            return found
        keys, parts = found
        try:
            try:
                reply = yield "EVALSHA", _SHA, keys, *parts
            except Exception as error:
                if not _is_a(error, "NoScriptError"):
                    raise
                reply = yield "EVAL", _redis.SCRIPT, keys, *parts
            self._calls.answered(reply[0])
        except Exception as error:
            self._failed(error)
        self._report()
        return None

    def _failed(self, error: Exception) -> None:
        code = next((_CODES[name] for name in _names(error) if name in _CODES), "")
        text = (code + (str(error) or type(error).__name__)).encode()
        if _is_a(error, "ResponseError"):
            self._calls.refused(text)
        else:
            self._calls.lost(text)

    def _report(self) -> None:
        circuit = self._calls.circuit()
        if circuit != self._circuit:
            self._circuit = circuit
            self._said = self._calls.error()
            if self._listener is not None:
                try:
                    self._listener(circuit)
                except Exception as error:
                    # The calls go on.
                    sys.excepthook(type(error), error, error.__traceback__)


def _names(error: Exception) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def _is_a(error: Exception, name: str) -> bool:
    return name in _names(error)


def is_async(client: RedisClient) -> bool:
    """Whether it is a client of an event loop."""
    if not callable(getattr(client, "execute_command", None)):
        raise TypeError(f"client must be a client of redis-py or valkey-py, not {type(client).__name__}")
    return inspect.iscoroutinefunction(client.execute_command)
