"""Lines: of the callers that wait for the same permits, only the first checks the limit.

A line is for permits that cannot be booked ahead, those of windows and logs. Its first waiter checks,
sleeps as long as the answer says, and checks again; the others sleep until it has left. So a waiter costs two checks,
however many wait. Threads share one line, and each event loop has one of its own, so that a loop that is stopped holds
up no other loop. Other processes have their own lines.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ._time import FOREVER, sleep, sleep_async

if TYPE_CHECKING:
    import asyncio

    from ._core import Decision
    from .policy import Policy

Ask = Callable[[int], "int | None"]
"""Asks for the permits, with the patience that is left in nanoseconds. The answer: 0, they are the caller's now; a
negative number, to be asked again after that many nanoseconds; None, they cannot be had in time."""

NOT_ASKED = -1
"""The answer of one who has not asked yet: at once."""

Earliest = Callable[[int], "int | None"]
"""`earliest`, below, of the number of permits that those ahead wait for."""



def after(decision: Decision, left: int) -> int | None:
    """The answer of a check."""
    if decision:
        return 0
    wait = decision.retry_after_ns
    return None if wait is None or wait > left else -wait


_TURN, _GONE = "turn", "gone"
_LONGEST = 1e9
"""Seconds, 31 years: a timeout that a queue takes."""


class _Place:
    """A thread in a line."""

    __slots__ = ("bell", "cost", "fate")

    def __init__(self, cost: int) -> None:
        self.cost = cost
        # The thread itself and the one before it both write here. setdefault is atomic, so the first word stands.
        self.fate: dict[int, str] = {}
        # A signal's handler may put into a SimpleQueue whose get it has interrupted. It may not set such an Event.
        self.bell: SimpleQueue[None] = SimpleQueue()

    def called(self, patience_ns: int) -> bool:
        """Sleeps until the place before this one is free. Returns False if the deadline comes first."""
        try:
            self.bell.get(timeout=min(max(patience_ns, 0) / 1e9, _LONGEST))
        except Empty:
            return False
        return True


class _AsyncPlace:
    """A task in a line."""

    __slots__ = ("cost", "future")

    def __init__(self, cost: int) -> None:
        self.cost = cost
        self.future: asyncio.Future[bool] | None = None


# Only lines with callers. Two threads may make two lines for one key at once. Then each line has a first waiter that
# checks, which costs one more check and admits nothing more.
_lines: dict[Hashable, deque[_Place]] = {}
_async_lines: dict[Hashable, deque[_AsyncPlace]] = {}


def anybody() -> bool:
    """Whether any line has callers. Then a new caller checks its own line."""
    return bool(_lines) or bool(_async_lines)


def wait(who: Hashable, answer: int | None, cost: int, ask: Ask, earliest: Earliest, patience_ns: int) -> bool:
    """Waits for permits in the line `who`, without the GIL and with signals' handlers run meanwhile.

    `answer` is the result of the check that the caller has made already, or NOT_ASKED."""
    deadline = time.monotonic_ns() + patience_ns
    if answer == NOT_ASKED:
        ahead = _ahead(_lines.get(who))
        if ahead is None:
            answer = ask(patience_ns)
        elif not _hopeful(earliest(ahead), patience_ns):
            return False
    if answer is None or answer == 0:
        return answer is not None
    until = time.monotonic_ns() - answer
    line = _lines.setdefault(who, deque())
    place = _Place(cost)
    try:
        line.append(place)
        if line[0] is place:
            place.fate.setdefault(0, _TURN)
        elif not place.called(deadline - time.monotonic_ns()):
            return False
        while True:
            sleep(until)
            answer = ask(max(deadline - time.monotonic_ns(), 0))
            if answer is None or answer == 0:
                return answer is not None
            until = time.monotonic_ns() - answer
    finally:
        _leave(who, line, place)


def _ahead(line: Iterable[_Place | _AsyncPlace] | None) -> int | None:
    """The permits that the callers in the line wait for. None if there is no line."""
    # A copy, which list() makes in one step, because other threads change the line.
    return sum([place.cost for place in list(line)]) if line else None


def _hopeful(earliest: int | None, patience_ns: int) -> bool:
    return earliest is not None and earliest <= patience_ns


def _leave(who: Hashable, line: deque[_Place], place: _Place) -> None:
    """Removes a place from its line. If it had the turn, the next place gets it."""
    turn = place.fate.setdefault(0, _GONE) is _TURN
    _discard(line, place)
    while turn and line:
        try:
            first = line[0]
        except IndexError:
            break
        if first.fate.setdefault(0, _TURN) is _TURN:
            # The waiter may have noticed by itself that it is the first, and then ignores this.
            first.bell.put(None)
            return
        # The place is leaving, and removes itself.
        _discard(line, first)
    if not line and _lines.get(who) is line:
        _lines.pop(who, None)


def _discard(line: deque[_Place], place: _Place) -> None:
    try:
        line.remove(place)
    except ValueError:
        pass


async def wait_async(
    who: Hashable, answer: int | None, cost: int, ask: Ask, earliest: Earliest, patience_ns: int
) -> bool:
    """The same in an event loop, whose lines only its own thread touches."""
    # Imported here, because asyncio takes longer to import than the whole package, and a caller of this function has imported it.
    import asyncio

    loop = asyncio.get_running_loop()
    who = (who, loop)
    deadline = time.monotonic_ns() + patience_ns
    if answer == NOT_ASKED:
        ahead = _ahead(_async_lines.get(who))
        if ahead is None:
            answer = ask(patience_ns)
        elif not _hopeful(earliest(ahead), patience_ns):
            return False
    if answer is None or answer == 0:
        return answer is not None
    until = time.monotonic_ns() - answer
    line = _async_lines.setdefault(who, deque())
    place = _AsyncPlace(cost)
    line.append(place)
    try:
        if line[0] is not place and not await _called(loop, place, deadline):
            return False
        while True:
            await sleep_async(until)
            answer = ask(max(deadline - time.monotonic_ns(), 0))
            if answer is None or answer == 0:
                return answer is not None
            until = time.monotonic_ns() - answer
    finally:
        turn = line[0] is place
        line.remove(place)
        if not line:
            if _async_lines.get(who) is line:
                del _async_lines[who]
        elif turn:
            _call(line[0].future)


async def _called(loop: asyncio.AbstractEventLoop, place: _AsyncPlace, deadline: int) -> bool:
    """Sleeps until the place before this one is free. Returns False if the deadline comes first."""
    future: asyncio.Future[bool] = loop.create_future()
    place.future = future
    left = deadline - time.monotonic_ns()
    timer = None if left > FOREVER // 2 else loop.call_later(left / 1e9, _call, future, False)
    try:
        return await future
    finally:
        if timer is not None:
            timer.cancel()


def _call(future: asyncio.Future[bool] | None, turn: bool = True) -> None:
    if future is not None and not future.done():
        future.set_result(turn)


def earliest(policy: Policy, peek: Callable[[int], Decision], ahead: int, cost: int) -> int | None:
    """A lower bound, in nanoseconds, of the time until `ahead` permits and then `cost` more can have been taken; None: never.

    Permits of a window may come in another order than one by one, and all of two windows may come at once: it is the time of the
    cost alone, or of the windows that it takes at least.
    """
    own: int | None = peek(cost).retry_after_ns
    if own is None or not policy.limit:
        return own
    beyond = max(ahead + cost - policy.burst - 2 * policy.limit, 0)
    return max(own, beyond * policy.period_ns // policy.limit)


def _begin_again() -> None:
    """Called in a child process, which has none of its parent's waiting callers."""
    _lines.clear()
    _async_lines.clear()


os.register_at_fork(after_in_child=_begin_again)
