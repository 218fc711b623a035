"""Callers that sleep in a queue: threads, and tasks of event loops, of asyncio and of trio."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ._errors import QueueFull
from . import _trio
from ._queue import NEVER, Permits, Queue, Timer, Turn, Waiter, ask, find, find_or_make, lock, now, settle
from ._time import FOREVER

if TYPE_CHECKING:
    import asyncio

_LONGEST = 1e6
"""Seconds, a time that the system's calls take. A longer sleep is slept in parts."""


def wait(permits: Permits, cost: int, patience: int) -> bool:
    """Takes permits, and sleeps for them without the GIL. Signals' handlers run meanwhile."""
    # It joins the queue when this frame has it, so that an exception of a signal's handler cannot
    # leave it behind there.
    waiter = _Thread(permits, cost, patience)
    try:
        with lock():
            answer = _at_once(permits, cost, patience)
            if isinstance(answer, bool):
                return answer
            waiter.join(answer)
        return waiter.sleep()
    except BaseException:
        waiter.give_up()
        raise


async def wait_async(permits: Permits, cost: int, patience: int) -> bool:
    """The same in an event loop."""
    waiter = _TrioTask(permits, cost, patience) if _trio.is_running() else _Task(permits, cost, patience)
    try:
        with lock():
            answer = _at_once(permits, cost, patience)
            if isinstance(answer, bool):
                return answer
            waiter.join(answer)
        return await waiter.sleep()
    except BaseException:
        waiter.give_up()
        raise


def _at_once(permits: Permits, cost: int, patience: int) -> bool | Turn | None:
    """The answer to a caller that need not wait. Otherwise its turn as the head of a new queue, or
    None: it waits behind others."""
    places = permits._places
    full = len(places.taken) >= places.most
    queue = find(permits._who())
    if queue is None:
        # Nothing is booked for a caller that has no place.
        turn = ask(permits, cost, 0 if full else patience)
        if turn is not None:
            return turn if turn.wait else True
        if not full or not _within(permits.peek(cost).retry_after_ns, patience):
            return False
    elif not _within(queue.earliest(cost), patience):
        return False
    if full:
        raise QueueFull(places.most)
    return None


def _within(wait: int | None, patience: int) -> bool:
    return wait is not None and wait <= patience


class _Waiter:
    __slots__ = ("permits", "cost", "deadline", "queue", "outcome", "booked")
    queue: Queue

    def __init__(self, permits: Permits, cost: int, patience: int) -> None:
        self.permits = permits
        self.cost = cost
        self.deadline = NEVER if patience == FOREVER else now() + patience
        self.outcome: bool | Exception | None = None
        self.booked: tuple[int, int, int] | None = None

    def join(self, turn: Turn | None) -> None:
        self.queue = find_or_make(self.permits)
        self.queue.join(self, turn)

    def timer_of(self, queue: Queue) -> Timer:
        raise NotImplementedError

    def wake(self) -> None:
        raise NotImplementedError

    def is_gone(self) -> bool:
        return False

    def leave(self) -> None:
        if self.outcome is None:
            self.queue.leaving.append(self)
            settle(self.queue)

    def give_up(self) -> None:
        """Leaves. If the caller has its permits and does not use them, they are the next one's."""
        if not hasattr(self, "queue"):
            return
        self.leave()
        if self.outcome is True:
            self.queue.unused.append(self)
        # What has ended the wait may have ended settle, too, before it told another caller.
        settle(self.queue)

    def answer(self) -> bool:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return bool(self.outcome)


class _Sleeper(_Waiter):
    """A caller that sleeps until somebody rings, or until a time of its own."""

    __slots__ = ("until",)

    def __init__(self, permits: Permits, cost: int, patience: int) -> None:
        # The time until which it sleeps, if nobody rings.
        self.until = NEVER
        super().__init__(permits, cost, patience)

    def group(self) -> Hashable:
        """One for the sleepers of whom the first is the timer."""
        raise NotImplementedError

    def timer_of(self, queue: Queue) -> Timer:
        group = self.group()
        timer = queue.timers.get(group)
        if timer is None:
            timer = queue.timers[group] = _FirstSleeper(queue, group)
        return timer

    def left(self) -> float | None:
        """Moves the queue on. The seconds to sleep, or None: the caller has left."""
        settle(self.queue)
        with lock():
            # The first of its group is the timer. The head has a booking that departs in time.
            first = next(iter(self.timer_of(self.queue).waiters), None) is self
            due = (self.queue.due or 0) if first else NEVER
            self.until = due if self.queue.head is self else min(due, self.deadline)
        left = self.until - now()
        if left <= 0 and self.deadline <= now() and self.queue.head is not self:
            self.leave()
            return None
        return max(min(left / 1e9, _LONGEST), 0.0)


class _Thread(_Sleeper):
    __slots__ = ("bell",)

    def __init__(self, permits: Permits, cost: int, patience: int) -> None:
        # A signal's handler may put into a SimpleQueue whose get it has interrupted. It may not set
        # an Event then.
        self.bell: SimpleQueue[None] = SimpleQueue()
        super().__init__(permits, cost, patience)

    def group(self) -> None:
        return None

    def wake(self) -> None:
        self.bell.put(None)

    def sleep(self) -> bool:
        while self.outcome is None and (left := self.left()) is not None:
            if left:
                with suppress(Empty):
                    self.bell.get(timeout=left)
        return self.answer()


class _TrioTask(_Sleeper):
    __slots__ = ("bell",)

    def __init__(self, permits: Permits, cost: int, patience: int) -> None:
        self.bell = _trio.Bell()
        super().__init__(permits, cost, patience)

    def group(self) -> Hashable:
        return self.bell.loop

    def wake(self) -> None:
        self.bell.ring()

    async def sleep(self) -> bool:
        while self.outcome is None and (left := self.left()) is not None:
            if left:
                await self.bell.wait(left)
        return self.answer()


class _FirstSleeper:
    """Rings for the first of the threads, or of a trio loop's tasks, which moves the queue on."""

    __slots__ = ("group", "queue", "waiters")

    def __init__(self, queue: Queue, group: Hashable) -> None:
        self.queue = queue
        self.group = group
        self.waiters: OrderedDict[Waiter, None] = OrderedDict()

    def ring_by(self, due: int) -> None:
        first = next(iter(self.waiters), None)
        if first is None:
            self.queue.timers.pop(self.group, None)
        elif isinstance(first, _Sleeper) and due < first.until:
            first.until = due
            first.wake()


class _Task(_Waiter):
    __slots__ = ("future", "loop")

    def __init__(self, permits: Permits, cost: int, patience: int) -> None:
        # Imported here, because asyncio takes longer to import than the whole package, and a task
        # has imported it.
        import asyncio

        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        super().__init__(permits, cost, patience)

    def timer_of(self, queue: Queue) -> Timer:
        timer = queue.timers.get(self.loop)
        if timer is None:
            timer = queue.timers[self.loop] = _LoopTimer(queue, self.loop)
        return timer

    def wake(self) -> None:
        _call(self.loop, self._resolve)

    def is_gone(self) -> bool:
        return self.future.cancelled() or self.loop.is_closed()

    async def sleep(self) -> bool:
        settle(self.queue)
        timer = None
        if self.deadline != NEVER:
            timer = self.loop.call_later(max(self.deadline - now(), 0) / 1e9, self._expire)
        try:
            await self.future
        finally:
            if timer is not None:
                timer.cancel()
        self.leave()
        return self.answer()

    def _expire(self) -> None:
        # The head has a booking that departs in time.
        if self.queue.head is not self:
            self._resolve()

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class _LoopTimer:
    """Rings in an event loop."""

    __slots__ = ("queue", "loop", "waiters", "at", "handle")

    def __init__(self, queue: Queue, loop: asyncio.AbstractEventLoop) -> None:
        self.queue = queue
        self.loop = loop
        self.waiters: OrderedDict[Waiter, None] = OrderedDict()
        # The time at which it rings, or will when the loop has heard of it.
        self.at = NEVER
        self.handle: asyncio.TimerHandle | None = None

    def ring_by(self, due: int) -> None:
        if not self.waiters:
            self.queue.timers.pop(self.loop, None)
            due = NEVER
        elif due >= self.at:
            return
        self.at = due
        _call(self.loop, self._set)

    def _set(self) -> None:
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None
        if self.at != NEVER:
            self.handle = self.loop.call_later(max(self.at - now(), 0) / 1e9, self._ring)

    def _ring(self) -> None:
        self.handle = None
        self.at = NEVER
        settle(self.queue)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Calls in that loop: at once, if it runs in this thread. A closed loop calls nothing."""
    import asyncio

    if asyncio._get_running_loop() is loop:
        function()
    else:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function)
