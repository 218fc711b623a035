"""Calls of a lease's script by a Redis client of the program: of redis-py, valkey-py, or one with their
execute_command."""

from __future__ import annotations

import hashlib
import inspect
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol, cast

from . import _clients, _redis

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

# The longest sleep of a thread that a stop must end, in milliseconds.
_SLICE = 10
# For how many seconds a close waits for a call of the program's client.
_CALL = 1.0
_SHA = hashlib.sha1(_redis.SCRIPT.encode(), usedforsecurity=False).hexdigest()
# The most bytes of a text that the library keeps, less some between its beginning and its end.
_MOST = 138
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


class Called(_clients.Driver):
    """A lease whose calls a client of the program makes: in a thread of the lease, by `tick`, or in a
    task."""

    def __init__(
        self,
        lease: _redis.Lease,
        client: RedisClient,
        listener: Callable[[int], object] | None,
        threaded: bool,
    ) -> None:
        self.is_async = is_async(client)
        self._node, self._with = lease._node(), (client, listener)
        self._caller = Caller(self._node, *self._with)
        self._threaded = threaded and not self.is_async
        self.start()

    def start(self) -> None:
        # A thread that is still there is in a call.
        if not self._caller.resume():
            self.thread = None
        if self._threaded and self.thread is None:
            self.thread = threading.Thread(target=self._caller.run, name="tollbar", daemon=True)
            self.thread.start()

    def stop(self) -> None:
        if self.thread is not None and self.thread is not threading.current_thread():
            self._caller.stop()

    def rest(self, end: float) -> None:
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(max(end - time.monotonic(), 0))
            if not self.thread.is_alive():
                self.thread = None

    def begin_again(self) -> None:
        parents = self._caller
        self._caller = Caller(self._node, *self._with)
        parents.close(0)
        self.thread = None
        self.start()

    def tick(self) -> int | None:
        if self.thread is not None:
            raise RuntimeError(_clients.HAS_THREAD)
        return self._caller.tick()

    def fd(self) -> tuple[int, int]:
        return -1, 0

    def error(self) -> str:
        return self._caller.error()

    @property
    def listens(self) -> bool:
        return super().listens or self._caller.listens

    def close(self, milliseconds: int) -> bool:
        self.stop()
        self.rest(time.monotonic() + _CALL)
        return self._caller.close(milliseconds)

    def leave(self, milliseconds: int) -> None:
        if self.thread is None:
            self._caller.close(0)
        else:
            self._caller.leave(milliseconds)

    async def run_async(self, milliseconds: int) -> None:
        if not self.is_async:
            await super().run_async(milliseconds)
        await self._caller.run_async(milliseconds)


class Caller:
    """Makes the calls. One thread at a time drives it."""

    def __init__(self, node: CapsuleType, client: RedisClient, listener: Callable[[int], object] | None) -> None:
        self._calls = _redis.Calls(node)
        self._client, self._heard = client, _clients.Heard(listener)
        self._heard.circuit = self._calls.circuit()
        self.is_async = is_async(client)
        if self.is_async:
            self._heard.error = "nobody makes the calls of the asyncio client: a task of run() does"
        self._lock = threading.Lock()
        self._stops = self._runs = self._is_closed = False
        # When the call that has no reply yet was made.
        self._since: float | None = None
        # What a thread that ends tells the store for, in milliseconds, if nobody closes the lease.
        self._flush: int | None = None

    def run(self) -> None:
        """Makes calls until stop."""
        while self._goes_on():
            try:
                wait = self.tick()
                if wait:
                    self._calls.wait(min(wait, _SLICE))
            except BaseException as error:
                # The lease may have been closed while its store was silent. Otherwise the thread
                # stays, and the next turn counts the call as lost.
                if not self._is_closed:
                    _clients.say(error)
                    time.sleep(_SLICE / 1000)
        if self._flush is not None:
            self.close(self._flush)

    def _goes_on(self) -> bool:
        with self._lock:
            self._runs = not self._stops
            return self._runs

    def leave(self, milliseconds: int) -> None:
        """Lets run, in whose thread this is called, end and close."""
        self._flush = milliseconds
        self.stop()

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

    def error(self) -> str:
        since = self._since
        waited = 0.0 if since is None else time.monotonic() - since
        return self._heard.error if waited < 1 else f"the program's Redis client has been in a call for {waited:.0f} s"

    @property
    def listens(self) -> bool:
        return self._heard.listens

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

        task = asyncio.current_task()
        try:
            while not self._is_closed:
                wait = await self.tick_async()
                # A call may have swallowed it.
                if task is not None and task.cancelling():
                    raise asyncio.CancelledError
                await asyncio.sleep((wait or 0) / 1000)
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
        if self._since is not None or self._heard.listens:
            raise RuntimeError("somebody makes this lease's calls already")
        self._since = time.monotonic()
        try:
            return (yield from self._one_turn(closing))
        finally:
            self._since = None

    def _one_turn(self, closing: bool) -> Generator[tuple[Any, ...], Any, int | None]:
        found = self._calls.turn(closing)
        if isinstance(found, int):
            self._heard.tell(self._calls.circuit(), self._calls.error)
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
        self._heard.tell(self._calls.circuit(), self._calls.error)
        return None

    def _failed(self, error: Exception) -> None:
        code = next((_CODES[name] for name in _names(error) if name in _CODES), "")
        text = (code + (str(error) or type(error).__name__)).encode(errors="replace")
        if len(text) > _MOST:
            # The cause is at the end.
            text = text[: _MOST // 2] + b" ... " + text[-(_MOST // 2) :]
        if _is_a(error, "ResponseError"):
            self._calls.refused(text)
        else:
            self._calls.lost(text)


def _names(error: Exception) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def _is_a(error: Exception, name: str) -> bool:
    return name in _names(error)


def is_async(client: RedisClient) -> bool:
    """Whether it is a client of an event loop."""
    kind = client if isinstance(client, type) else type(client)
    # A pipeline collects commands, and answers none.
    if kind is client or hasattr(client, "command_stack") or not callable(getattr(client, "execute_command", None)):
        raise TypeError(f"client must be a client of redis-py or valkey-py, not {kind.__name__}")
    return inspect.iscoroutinefunction(client.execute_command)
