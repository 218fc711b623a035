"""Queue: items wait, and leave in the order of their offers at the pace of a policy."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, SupportsIndex, TypeVar

from . import _core, _time, _trio
from ._errors import QueueFull
from .limiter import CLOCKS, choice
from .policy import Policy, _text

if TYPE_CHECKING:
    import asyncio

Item = TypeVar("Item")
Default = TypeVar("Default")

WAITERS = 1024
"""As in tollbar.h."""

# A caller with a longer wait wakes and tries again. A lock refuses a wait of centuries.
_SLEEP_MOST = 3600.0


class Ticket(NamedTuple):
    """An item's place in a queue. With it the item can be cancelled."""

    number: int
    """The first item of a queue has number 0."""
    ahead: int
    """The items before it when it was offered. A cancelled one counts as long as an older item is
    in the queue."""
    spare: int
    """Its place in the spare when it was offered: 1 is the next to go into the first queue. 0: it
    was put into the first queue."""


class _Sleepers:
    """Callers that sleep until another one changes the queue: threads, and tasks of event loops."""

    def __init__(self) -> None:
        self._names = count()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._wakes: dict[int, Callable[[], object]] = {}

    def __len__(self) -> int:
        return len(self._wakes)

    @contextmanager
    def listen(self, wake: Callable[[], object], most: int) -> Iterator[None]:
        """Calls `wake` at each change until the block ends. The caller looks at the queue after it
        has begun to listen, and so misses no change."""
        name = next(self._names)
        # A forked child has none of the parent's sleepers.
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            if len(self._wakes) >= most:
                raise QueueFull(len(self._wakes))
            self._wakes[name] = wake
        try:
            yield
        finally:
            with self._lock:
                del self._wakes[name]

    def wake(self) -> None:
        # Without a lock where nobody sleeps: a caller that begins to listen now looks at the queue
        # afterwards.
        if not self._wakes or self._process != os.getpid():
            return
        with self._lock:
            wakes = tuple(self._wakes.values())
        for wake in wakes:
            wake()


class Queue(_core.Queue, Generic[Item]):
    """Queue("10/s algo pacer", 1000): items leave one every 100 ms, and up to 1,000 wait.

    Items that may leave at once do not wait, so more can be in the queue: a burst for a token
    bucket, and the slack and one more for a pacer. Up to `spare` items that overflow wait behind
    these. They go into the first queue when that has room, in their order, and no later offer
    overtakes them; `Ticket.spare` says that an item overflowed.

    The policy charges an item when it leaves. It must have a state of one word, so sliding windows
    and logs are refused, and so are policies that count refusals.

    Threads, and tasks of any event loop, may share a queue. At most `waiters` of them sleep for
    room at one time. After a fork each process has its own copy. `at` is the caller's time, in
    nanoseconds of one clock: a call with it does not sleep.
    """

    def __new__(
        cls,
        policy: str | Policy,
        capacity: int,
        *,
        spare: int = 0,
        clock: str = "tsc",
        waiters: int = WAITERS,
    ) -> Queue[Item]:
        if not 0 <= spare < 1 << 32:
            raise ValueError(f"spare must be from 0 to {(1 << 32) - 1}, not {spare!r}")
        self = super().__new__(cls, _text(policy), capacity, spare, choice("clock", clock, CLOCKS))
        self._capacity, self._spare, self._waiters = capacity, spare, waiters
        self._names = count(1)
        # The items by their numbers in the library.
        self._items = {}
        self._offering, self._taking = _Sleepers(), _Sleepers()
        self._closed = False
        return self

    _capacity: int
    _spare: int
    _waiters: int
    _names: count[int]
    _items: dict[int, Item]
    _offering: _Sleepers
    _taking: _Sleepers
    _closed: bool

    def offer(self, item: Item, timeout: _time.Time | None = 0, *, at: SupportsIndex | None = None) -> Ticket:
        """Puts an item behind all others, and sleeps up to timeout for room; None is without end.

        QueueFull: there was no room in time, or as many callers sleep as the option `waiters`
        allows. Error: the queue is closed. Then the item is not in the queue.
        """
        ticket = self._put(item, at)
        if ticket is None and at is None and (patience := _time.patience(timeout)):
            deadline = self.now() + patience
            changed = threading.Event()
            with self._offering.listen(changed.set, self._waiters):
                while (ticket := self._put(item)) is None and (left := self._left(deadline)):
                    changed.wait(left)
                    changed.clear()
        return self._offered(ticket)

    async def offer_async(self, item: Item, timeout: _time.Time | None = 0) -> Ticket:
        """offer, in an event loop. The item of a task that is cancelled is not in the queue."""
        ticket = self._put(item)
        if ticket is None and (patience := _time.patience(timeout)):
            deadline = self.now() + patience
            changed, wake = _event_of_loop()
            with self._offering.listen(wake, self._waiters):
                while (ticket := self._put(item)) is None and (left := self._left(deadline)):
                    await _wait(changed, left)
        return self._offered(ticket)

    def take(
        self, timeout: _time.Time | None = 0, default: Default | None = None, *, at: SupportsIndex | None = None
    ) -> Item | Default | None:
        """Takes the oldest item, and sleeps up to timeout until it may leave; None is without end.

        Returns `default` if none may leave in time, and at once if the queue is closed and empty.
        """
        item = self._get(at)
        if item is _NOTHING and at is None and (patience := _time.patience(timeout)):
            deadline = self.now() + patience
            changed = threading.Event()
            with self._taking.listen(changed.set, _time.FOREVER):
                while (item := self._get()) is _NOTHING and not self._is_over() and (left := self._left(deadline)):
                    changed.wait(left)
                    changed.clear()
        return self._removed(item, default)

    async def take_async(self, timeout: _time.Time | None = 0, default: Default | None = None) -> Item | Default | None:
        """take, in an event loop. A task that is cancelled takes nothing."""
        item = self._get()
        if item is _NOTHING and (patience := _time.patience(timeout)):
            deadline = self.now() + patience
            changed, wake = _event_of_loop()
            with self._taking.listen(wake, _time.FOREVER):
                while (item := self._get()) is _NOTHING and not self._is_over() and (left := self._left(deadline)):
                    await _wait(changed, left)
        return self._removed(item, default)

    def __iter__(self) -> Iterator[Item]:
        """The items as they leave, until the queue is closed and empty."""
        while (item := self.take(None, _NOTHING)) is not _NOTHING:
            yield item  # type: ignore[misc]

    async def __aiter__(self) -> AsyncIterator[Item]:
        """The items as they leave, in an event loop, until the queue is closed and empty."""
        while (item := await self.take_async(None, _NOTHING)) is not _NOTHING:
            yield item  # type: ignore[misc]

    def next_departure(self, *, at: SupportsIndex | None = None) -> int | None:
        """The time at which take will next return an item, in nanoseconds of the queue's clock: now
        or later. None: the queue is empty."""
        return super()._next(at)

    def cancel(self, ticket: Ticket, default: Default | None = None) -> Item | Default | None:
        """Takes an item out of the queue before it leaves; `default` if it has left. The items
        behind it move up."""
        return self._removed(super()._cancel(self._items, _NOTHING, ticket.number), default)

    def drain(self, default: Default | None = None) -> Item | Default | None:
        """Takes the oldest item at once, without the policy; `default` if the queue is empty."""
        return self._removed(super()._drain(self._items, _NOTHING), default)

    def close(self) -> None:
        """Refuses all offers from now on, and wakes all callers that sleep. Items in the queue
        stay, and can be taken."""
        super()._close()
        self._closed = True
        self._offering.wake()
        self._taking.wake()

    @property
    def closed(self) -> bool:
        return self._closed

    def __len__(self) -> int:
        """The number of items. A cancelled one counts as long as an older item is in the queue."""
        return super()._length()

    def __bool__(self) -> bool:
        """True, also of an empty queue."""
        return True

    def __repr__(self) -> str:
        return f"<tollbar.Queue of {len(self)} items, {self._capacity} may wait and {self._spare} in the spare>"

    def _put(self, item: Item, at: SupportsIndex | None = None) -> tuple[int, int, int] | None:
        return super()._offer(self._items, next(self._names), item, at)

    def _get(self, at: SupportsIndex | None = None) -> object:
        return super()._take(self._items, _NOTHING, at)

    def _offered(self, ticket: tuple[int, int, int] | None) -> Ticket:
        if ticket is None:
            raise QueueFull(self._capacity + self._spare, "items", "a larger capacity or spare")
        self._taking.wake()
        return Ticket(*ticket)

    def _removed(self, item: Any, default: Default | None) -> Item | Default | None:
        if item is _NOTHING:
            return default
        self._offering.wake()
        if self._closed:
            self._taking.wake()
        return item  # type: ignore[no-any-return]

    def _is_over(self) -> bool:
        return self._closed and not len(self)

    def _left(self, deadline: int) -> float:
        """Seconds to sleep: until the next departure, or the deadline. 0 after the deadline."""
        now = self.now()
        if now >= deadline:
            return 0.0
        departs = super()._next(now)
        until = deadline if departs is None or departs <= now else min(departs, deadline)
        return min((until - now) / 1e9, _SLEEP_MOST)


_NOTHING = object()


def _event_of_loop() -> tuple[asyncio.Event | _trio.Bell, Callable[[], object]]:
    """An event of this loop, and how any thread sets it. A loop that has ended needs no wake."""
    if _trio.is_running():
        bell = _trio.Bell()
        return bell, bell.ring
    # Only programs with an event loop import asyncio.
    import asyncio

    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(changed.set)

    return changed, wake


async def _wait(changed: asyncio.Event | _trio.Bell, seconds: float) -> None:
    if isinstance(changed, _trio.Bell):
        await changed.wait(seconds)
        return
    import asyncio

    try:
        await asyncio.wait_for(changed.wait(), seconds)
    except asyncio.TimeoutError:
        return
    changed.clear()
