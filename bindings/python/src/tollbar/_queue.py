"""Queues of the callers that wait: one for each limiter, or key of a table, that callers of this
process wait for.

A queue is first in, first out, and has at most one booking, whose permits the first waiter, the
head, gets at its departure. So when waiters give up, at most that booking is left, and it is the
limiter's last, which comes back whole. A head that gives up leaves the booking to the next waiter,
unless that one wants another number of permits. The head's departure is the turn of the next one:
it books, and so do those behind it as long as their permits are there at once. Where the algorithm
cannot book ahead, as windows and logs cannot, the head checks, and the queue has the time of its
next check in place of the booking.

Threads and event loops wait in the same queue. A waiter does not move the queue on alone: in each
loop one timer rings at the head's turn, and so does one for the threads. So a loop that is stopped
or closed, with the head in it, holds up nobody.
"""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Hashable
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from . import _core
from ._errors import Error
from ._time import FOREVER

if TYPE_CHECKING:
    from ._core import Booked, Decision
    from .policy import Policy

NEVER = FOREVER * 2
"""A time that does not come."""

# Not Python's: tests that stop its clocks, with freezegun or time-machine, would never wake a
# caller.
_clock = _core.Limiter("1/s", 1, False).now


def now() -> int:
    """The time of queues, in nanoseconds."""
    return _clock()


class Permits(Protocol):
    """The permits that callers wait for: those of a limiter, or of a key of a table."""

    _places: Places

    def _who(self) -> Hashable:
        """The key of their queue."""

    def _book(self, cost: int, patience: int, /) -> Booked: ...
    def _cancel(self, departs_ns: int, cost: int, /) -> int: ...
    def check(self, cost: int, /) -> Decision: ...
    def peek(self, cost: int, /) -> Decision: ...
    @property
    def policy(self) -> Policy: ...


class Waiter(Protocol):
    """A caller in a queue."""

    cost: int
    deadline: int
    outcome: bool | Exception | None
    """True: it has its permits. False: they would come too late. An exception: that of its check."""
    booked: tuple[int, int, int] | None
    """The booking with which it has departed."""

    def timer_of(self, queue: Queue) -> Timer:
        """The timer that rings for this waiter."""
        ...

    def wake(self) -> None:
        """Tells the caller its outcome, a second time too."""

    def is_gone(self) -> bool:
        """Whether the caller has given up and not left yet, or can never be told."""
        ...


class Timer(Protocol):
    """Calls settle at a queue's next turn, as long as it has waiters."""

    waiters: OrderedDict[Waiter, None]

    def ring_by(self, due: int) -> None:
        """An earlier ring is no harm."""


class Places:
    """The places of a limiter's queue, or of all queues of a table: so many may wait at one time.
    While nobody does, a caller takes the permits that are there without a lock."""

    MOST = 1024
    """As in tollbar.h."""

    __slots__ = ("most", "taken")

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"waiters must be at least 1, not {most}")
        self.most = most
        self.taken: set[Waiter] = set()


class Turn(NamedTuple):
    """The answer to a head."""

    wait: int
    """Nanoseconds until its permits may be used or, without a booking, until it may check again. 0: it has its permits."""
    booked: tuple[int, int, int] | None


def ask(permits: Permits, cost: int, patience: int) -> Turn | None:
    """Books permits, or checks if the algorithm cannot book ahead. None: they cannot be had within
    the patience."""
    booked = permits._book(cost, patience)
    if booked is None:
        return None
    if isinstance(booked, tuple):
        return Turn(booked[1], booked)
    decision = permits.check(cost)
    if decision:
        return Turn(0, None)
    wait = decision.retry_after_ns
    return None if wait is None or wait > patience else Turn(max(wait, 1), None)


class Queue:
    """All methods but the constructor are called with the lock held, and update only by settle."""

    __slots__ = ("who", "permits", "waiters", "leaving", "unused", "head", "cost", "due", "booked", "timers")

    def __init__(self, who: Hashable, permits: Permits) -> None:
        self.who = who
        self.permits = permits
        self.waiters: OrderedDict[Waiter, None] = OrderedDict()
        # Waiters that have given up, and those that have done so with their permits. A finalizer
        # may append at any time.
        self.leaving: deque[Waiter] = deque()
        self.unused: deque[Waiter] = deque()
        # The waiter that the turn below was asked for or handed to, and the cost that it was asked
        # for.
        self.head: Waiter | None = None
        self.cost = 0
        # The head's departure, or the time of its next check. None: it has not asked yet.
        self.due: int | None = None
        self.booked: tuple[int, int, int] | None = None
        # One for each event loop, and one for all threads.
        self.timers: dict[Hashable, Timer] = {}

    def join(self, waiter: Waiter, turn: Turn | None) -> None:
        """`turn`: the answer that the caller has got already."""
        if turn is not None:
            self.take(waiter, turn)
        self.permits._places.taken.add(waiter)
        waiter.timer_of(self).waiters[waiter] = None
        self.waiters[waiter] = None

    def take(self, head: Waiter, turn: Turn) -> None:
        self.head = head
        self.cost = head.cost
        self.booked = turn.booked
        self.due = now() + turn.wait

    def update(self) -> None:
        """Serves all whose turn it is. It may be ended anywhere, and then begins again."""
        while self.leaving:
            self._remove(self.leaving[0])
            self.leaving.popleft()
        while self.waiters:
            first = next(iter(self.waiters))
            if first.outcome is None and not first.is_gone() and not self._decided(first):
                break
            first.wake()
            self._remove(first)
        if not self.waiters:
            self._give_back()
            while self.unused:
                self._cancel_unused()
            if _queues.get(self.who) is self:
                del _queues[self.who]
        if self.due is not None:
            for timer in list(self.timers.values()):
                timer.ring_by(self.due)

    def _decided(self, first: Waiter) -> bool:
        """Whether the first waiter has its outcome now."""
        while self.unused:
            if self.unused[0].cost == first.cost:
                first.booked = self.unused.popleft().booked
                first.outcome = True
                return True
            self._cancel_unused()
        if self.head is not first:
            if self.due is not None and (self.cost != first.cost or self.due > first.deadline):
                self._give_back()
            self.head = first
        while self.due is None or self.due <= now():
            booked, self.booked, self.due = self.booked, None, None
            if booked is not None:
                first.booked = booked
                first.outcome = True
                return True
            try:
                turn = ask(self.permits, first.cost, FOREVER if first.deadline == NEVER else max(first.deadline - now(), 0))
            except (Error, ValueError, MemoryError) as error:
                # The library's, such as that of a closed table. Any other is one of a signal's
                # handler, and the interrupted thread's.
                first.outcome = error
                return True
            if turn is None or turn.wait == 0:
                first.booked = None if turn is None else turn.booked
                first.outcome = turn is not None
                return True
            self.take(first, turn)
        return False

    def _give_back(self) -> None:
        booked, self.booked, self.due = self.booked, None, None
        self._cancel(booked)

    def _cancel_unused(self) -> None:
        # The later booking first, so that each is the last.
        self._give_back()
        self._cancel(self.unused.popleft().booked)

    def _cancel(self, booked: tuple[int, int, int] | None) -> None:
        if booked is not None and booked[2]:
            # The table may have been closed.
            with suppress(Error, ValueError):
                self.permits._cancel(booked[0], booked[2])

    def _remove(self, waiter: Waiter) -> None:
        self.permits._places.taken.discard(waiter)
        if self.head is waiter:
            self.head = None
        timer = waiter.timer_of(self)
        timer.waiters.pop(waiter, None)
        if not timer.waiters:
            timer.ring_by(NEVER)
        # Last, so that an update that begins again removes the waiter from all of them.
        self.waiters.pop(waiter, None)

    def earliest(self, cost: int) -> int | None:
        """An estimate of the time in nanoseconds until a newcomer gets its permits, too early
        rather than too late: if those before it take theirs, and nobody else any. None: never."""
        own = self.permits.peek(cost).retry_after_ns
        if own is None or self.due is None:
            return own
        ahead = sum([waiter.cost for waiter in list(self.waiters)])
        head, policy = max(self.due - now(), 0), self.permits.policy
        later = _at_the_earliest(policy, ahead + cost) if self.booked is None else head + _behind(policy, self.cost, ahead, cost)
        return max(own, head, later)


def _behind(policy: Policy, head: int, ahead: int, cost: int) -> int:
    """Nanoseconds from the departure of a booking of `head` permits until that of `cost` permits
    behind it; all `ahead` permits before these are the head's and those of others. Before the first
    departure something was lacking, so nothing is left at it."""
    if not policy.limit:
        return 0
    if policy.algorithm == "interval":
        at_once = head - 1 + policy.limit
        return -(-max(ahead + cost - at_once, 0) // policy.limit) * policy.period_ns
    # A request of a policy that lends departs when those before it are paid for, any other when it
    # is paid for itself.
    return (ahead if policy._lends else ahead + cost - head) * policy.period_ns // policy.limit


def _at_the_earliest(policy: Policy, permits: int) -> int:
    """A lower bound, in nanoseconds, of the time until so many permits have been taken of a window
    or a log, one request after the other.

    Permits of a window may come in another order than one by one, and all of two windows may come
    at once."""
    beyond = permits - policy.burst - 2 * policy.limit
    return beyond * policy.period_ns // policy.limit if beyond > 0 and policy.limit else 0


# One lock for all queues: its holder has the GIL, too. A finalizer (a coroutine that the garbage
# collector closes leaves its queue) or a signal's handler may interrupt the holder in the same
# thread, so the lock is recursive, and what interrupts settle leaves the work to it.
_lock = RLock()
_busy = False
_queues: dict[Hashable, Queue] = {}
# The queues whose waiters, or whose time, have changed.
_changed: deque[Queue] = deque()


def lock() -> RLock:
    return _lock


def find(who: Hashable) -> Queue | None:
    if _busy:
        raise RuntimeError("a finalizer or a signal's handler that waits for permits has interrupted a call that does; expected: check or allow there")
    return _queues.get(who)


def find_or_make(permits: Permits) -> Queue:
    who = permits._who()
    queue = _queues.get(who)
    if queue is None:
        queue = _queues[who] = Queue(who, permits)
    return queue


def settle(queue: Queue) -> None:
    """Serves all whose turn it is. If a signal's handler ends it by an exception, the next call
    goes on, and at most a booking is lost."""
    global _busy
    _changed.append(queue)
    with _lock:
        if _busy:
            return
        _busy = True
        try:
            while _changed:
                _changed[0].update()
                _changed.popleft()
        finally:
            _busy = False


def _begin_again() -> None:
    """Called in a child process, which has none of its parent's waiters. The lock may have been
    another thread's."""
    global _lock, _busy
    _lock, _busy = RLock(), False
    for queue in _queues.values():
        queue.permits._places.taken.clear()
        queue.waiters.clear()
        queue.timers.clear()
        queue.booked = queue.due = None
    _queues.clear()
    _changed.clear()


os.register_at_fork(after_in_child=_begin_again)
