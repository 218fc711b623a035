"""The clients that ask stores for the leases of this process, and their threads.

A thread has one client, with the leases of one URL. `join` gives a lease to a client, and the thread
adds it within some 10 ms. A place does not know its lease, which can so be forgotten.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _redis

if TYPE_CHECKING:
    from typing_extensions import CapsuleType

# What begins TLS with a host.
Starter: TypeAlias = Callable[[str], object]
Listener: TypeAlias = Callable[[int], object]

# The most leases of a client.
_MOST = 128
# For how many seconds more than it may take a lease's end is waited for: the thread may be in the
# on_change of another lease.
_GRACE = 1.0
# For how many milliseconds a lease that leaves may keep its thread from others that join or leave.
_SLICE = 10
HAS_THREAD = "the lease has a thread, which asks the store"

# Guards the two below, and what joins. A thread of a store never waits for it.
_lock = threading.Lock()
_threads: list[_Thread] = []
# The forks for which the threads rest. `rest` waits for them without the lock.
_forks = 0
# The thread that has the lock: a destructor or a signal's handler in it must not wait.
_holder: int | None = None


class Heard:
    """The circuit that a listener was last called with, and the store's fault then."""

    def __init__(self, listener: Listener | None) -> None:
        self.circuit, self.error = 0, ""
        self.listens = False
        self._listener = listener

    def tell(self, circuit: int, error: Callable[[], str]) -> None:
        """Calls the listener if the circuit is another one."""
        if circuit == self.circuit:
            return
        self.circuit, self.error = circuit, error()
        if self._listener is None:
            return
        self.listens = True
        try:
            self._listener(circuit)
        except BaseException as failure:
            say(failure)
        finally:
            self.listens = False


def say(failure: BaseException) -> None:
    """Prints what must not end a thread."""
    try:
        sys.excepthook(type(failure), failure, failure.__traceback__)
    except BaseException:
        sys.__excepthook__(type(failure), failure, failure.__traceback__)


class Driver:
    """What asks the store for one lease."""

    # The thread that drives it, in which its listener is called.
    thread: threading.Thread | None = None
    is_async = False

    def tick(self) -> int | None:
        raise RuntimeError(HAS_THREAD)

    def fd(self) -> tuple[int, int]:
        raise RuntimeError(HAS_THREAD)

    def error(self) -> str:
        raise NotImplementedError

    def close(self, milliseconds: int) -> bool:
        """Ends the lease. Returns whether all permits were reported to the store."""
        raise NotImplementedError

    def leave(self, milliseconds: int) -> object:
        """Ends the lease soon, and waits for nobody else."""
        raise NotImplementedError

    @property
    def listens(self) -> bool:
        """Whether this is called in its on_change."""
        return self.thread is threading.current_thread()

    async def run_async(self, milliseconds: int) -> None:
        raise RuntimeError("run makes the calls of an asyncio client; this lease has a thread, or tick")

    def stop(self) -> None:
        """Before a fork: lets a thread of its own end."""

    def rest(self, end: float) -> None:
        """Waits for the end of that thread, until `end`."""

    def start(self) -> None:
        """After a fork, in the parent."""

    def begin_again(self) -> None:
        """After a fork, in the child, which has none of its parent's clients."""


class Ticked(Driver):
    """A client of one lease that the program drives."""

    def __init__(self, node: CapsuleType, url: str, starter: Starter | None, listener: Listener | None) -> None:
        self._with = node, url, starter
        self._client = _redis.Client(*self._with)
        self._heard = Heard(listener)

    def tick(self) -> int:
        wait = self._client.tick()
        self._heard.tell(self._client.circuit(0), lambda: "")
        return wait

    def fd(self) -> tuple[int, int]:
        return self._client.fd()

    def error(self) -> str:
        return self._client.error(0)

    @property
    def listens(self) -> bool:
        return self._heard.listens

    def close(self, milliseconds: int) -> bool:
        return self._client.close(milliseconds)

    leave = close

    def begin_again(self) -> None:
        self._client.close(0)
        self._client = _redis.Client(*self._with)


class Place(Driver):
    """A lease's place in the client of a thread."""

    def __init__(self, node: CapsuleType, name: str, listener: Listener | None) -> None:
        self.node, self.name, self.heard = node, name, Heard(listener)
        # The number of the place, once the thread has added the lease.
        self.number: int | None = None
        self.of: _Thread
        # At most one departure, whoever closes the lease at the same time.
        self._departures: dict[int, _Departure] = {}

    @property
    def thread(self) -> threading.Thread | None:  # type: ignore[override]
        return self.of.thread

    def error(self) -> str:
        return self.heard.error

    def leave(self, milliseconds: int) -> _Departure:
        departure = self._departures.setdefault(0, _Departure(self, milliseconds))
        # A signal's handler may be here twice. The thread obeys once.
        self.of.orders.put(departure)
        self.of.client.stop()
        return departure

    def close(self, milliseconds: int) -> bool:
        departure = self.leave(milliseconds)
        # In a signal's handler this thread may be about to join.
        return departure.wait() if threading.get_ident() != _holder else departure.reported


class _Departure:
    def __init__(self, place: Place, milliseconds: int) -> None:
        self.place, self.until = place, time.monotonic() + milliseconds / 1000
        self.is_known = self.reported = False
        self.ended: threading.Thread | None = None
        self.done = threading.Event()

    def wait(self) -> bool:
        """Whether all permits were reported to the store."""
        self.done.wait(max(self.until - time.monotonic(), 0) + _GRACE)
        if self.ended is not None:
            self.ended.join()
        return self.reported


class _Thread:
    """A client, and the thread that drives it."""

    def __init__(self, key: Hashable, place: Place, url: str, starter: Starter | None) -> None:
        self.key, self._with = key, (url, starter)
        self.client = _redis.Client(place.node, url, starter)
        self.places = [place]
        # Places to add, and departures. A destructor may put one at any time.
        self.orders: queue.SimpleQueue[Place | _Departure] = queue.SimpleQueue()
        self.joining: list[Place] = []
        self.leaving: list[_Departure] = []
        self.thread: threading.Thread | None = None
        place.of, place.number = self, 0

    def start(self) -> None:
        """Begins the thread, if there is none. The caller has the lock."""
        if self.thread is None and not _forks:
            self.thread = threading.Thread(target=self._drive, name="tollbar", daemon=True)
            try:
                self.thread.start()
            except BaseException:
                self.thread = None
                raise

    def has_room(self, name: str) -> bool:
        places = self.places.copy()
        return len(places) < _MOST and all(place.name != name for place in places)

    def rest(self) -> None:
        """Waits for the end of the thread, unless it is this one."""
        thread = self.thread
        if thread is None or thread is threading.current_thread():
            return
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as failure:
                # A signal's handler, such as that of Ctrl-C, raised this during the wait. The fork must not
                # begin before the thread has ended, so the wait goes on.
                say(failure)
        self.thread = None

    def begin_again(self) -> None:
        """Called in a forked child: the client, and what it owes, are its parent's."""
        self._read()
        gone = [departure.place for departure in self.leaving]
        self.places = [place for place in self.places if place not in gone]
        self.leaving, self.joining, self.thread = [], [], None
        parents = self.client
        if self.places:
            self.client = _redis.Client(self.places[0].node, *self._with)
            for place in self.places:
                place.number = None
            self.places[0].number = 0
            for place in self.places[1:]:
                self._add(place)
        else:
            _threads.remove(self)
        parents.close(0)

    def _drive(self) -> None:
        # A child that is forked in a listener has another thread.
        while self.thread is threading.current_thread() and not _forks:
            if not self.leaving:
                self.client.run()
            self._read()
            for place in self.joining:
                self._add(place)
            self.joining = []
            for departure in self.leaving.copy():
                if self._part(departure):
                    self.leaving.remove(departure)
            if not self.places:
                break
            for place in self.places.copy():
                if place.number is not None:
                    self._tell(place, place.number)

    def _read(self) -> None:
        while not self.orders.empty():
            order = self.orders.get()
            if isinstance(order, Place):
                self.joining.append(order)
            elif not order.is_known:
                order.is_known = True
                self.leaving.append(order)

    def _tell(self, place: Place, number: int) -> None:
        place.heard.tell(self.client.circuit(number), lambda: self.client.error(number))

    def _add(self, place: Place) -> None:
        try:
            place.number = self.client.add(place.node)
        except Exception as failure:
            place.heard.error = str(failure)

    def _part(self, departure: _Departure) -> bool:
        """Reports to the store what it does not know of a lease. Returns whether the lease has left. The
        last one ends the client."""
        place, left = departure.place, max(int((departure.until - time.monotonic()) * 1000), 0)
        departure.reported = place.number is None or self.client.report(place.number, min(left, _SLICE))
        if not departure.reported and left:
            return False
        if len(self.places) == 1 and not self._retire():
            # Somebody joins.
            return False
        if len(self.places) == 1:
            self.client.close(0)
            departure.ended = self.thread
        elif place.number is not None:
            self.client.remove(place.number)
        self.places.remove(place)
        departure.done.set()
        return True

    def _retire(self) -> bool:
        """Lets no further lease join. Returns whether none has joined."""
        if not _lock.acquire(blocking=False):
            time.sleep(0.001)
            return False
        try:
            is_last = len(self.places) == 1
            if is_last:
                _threads.remove(self)
            return is_last
        finally:
            _lock.release()


def join(
    node: CapsuleType,
    name: str,
    url: str,
    tls: Any,
    starter: Callable[[], Starter | None],
    listener: Listener | None,
) -> Place:
    """Gives the lease of that name a place in a client of the URL."""
    place = Place(node, name, listener)
    key = url, None if tls is None else id(tls)
    if not _join(place, key, None):
        # TLS of a new client may read many files.
        begin = starter()
        _join(place, key, lambda: _Thread(key, place, url, begin))
    return place


def _join(place: Place, key: Hashable, make: Callable[[], _Thread] | None) -> bool:
    """Gives it a place in a client that is there, or in a new one."""
    global _holder
    with _lock:
        _holder = threading.get_ident()
        try:
            if _enter(place, key):
                return True
            if make is None:
                return False
            of = make()
            try:
                of.start()
            except BaseException:
                of.client.close(0)
                raise
            _threads.append(of)
            return True
        finally:
            _holder = None


def _enter(place: Place, key: Hashable) -> bool:
    for of in _threads:
        if of.key == key and of.has_room(place.name):
            # A thread that could not begin after a fork.
            of.start()
            place.of = of
            of.places.append(place)
            of.orders.put(place)
            of.client.stop()
            return True
    return False


def may_wait() -> bool:
    """Whether this thread may wait for those here: it is none of them, and does not join."""
    here = threading.current_thread()
    return threading.get_ident() != _holder and all(of.thread is not here for of in _threads.copy())


def rest() -> None:
    """Ends all threads before a fork, because a thread does not exist in the child, and its work would
    stay half done there."""
    global _forks, _holder
    with _lock:
        _forks += 1
        threads = _threads.copy()
    for of in threads:
        of.client.stop()
    for of in threads:
        of.rest()
    # Nobody else has it while the process forks.
    _lock.acquire()
    _holder = threading.get_ident()


def go_on() -> None:
    """After a fork, in the parent."""
    global _forks, _holder
    try:
        _forks -= 1
        for of in _threads.copy():
            _try(of.start)
    finally:
        _holder = None
        _lock.release()


def begin_again() -> None:
    """After a fork, in the child."""
    global _forks
    _forks = 1
    for of in _threads.copy():
        _try(of.begin_again)
    go_on()


def _try(call: Callable[[], None]) -> None:
    try:
        call()
    except BaseException as failure:
        say(failure)
