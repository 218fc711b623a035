"""Table: a state for each of millions of keys, in memory that processes can share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import ClassVar, NamedTuple, SupportsIndex, Union

from . import _core, _queue, _time, _waiters
from ._alone import warn_of_spawn
from ._driven import driven
from ._errors import TableError
from ._reservation import Reservation
from .limiter import ALL_CLOCKS, KEEPS, Counts, choice
from .policy import Policy, _text

Policies = Union[str, Policy, Sequence[Union[str, Policy]], Mapping[str, Union[str, Policy]]]

ON_FULL = {"evict-nearest": 0, "inherit": 1, "allow": 2, "deny": 3}
MISSING = {"deny": 0, "allow": 1, "report": 2}
_PRIVATE, _SHARED, _FILE = 0, 1, 2
_SEEDED, _SMALL_PAGES, _TRUST_ANYONE = 1, 2, 4


class Stats(NamedTuple):
    """Counters and sizes, as in tollbar.h."""

    policies: int
    capacity: int
    slots: int
    bytes: int
    keys: int
    inserted: int
    reclaimed: int
    vacated: int
    resets: int
    refused: int
    inherited: int
    untracked: int
    evicted: int
    retries: int
    backward_steps: int
    allowed: int
    denied: int
    never: int
    overrides: int
    room: int


class Health(NamedTuple):
    """The content of a table's slots, as in tollbar.h."""

    slots_invalid: bool
    claimed: int
    vacant: int
    waiting: int
    expired: int
    live: int
    unknown: int
    duplicate: int


class Refused(NamedTuple):
    """A key that a table has refused."""

    policy: int
    """The number of the policy under which the table refused the key."""
    refusals: int
    """About the number of refusals in the last two minutes."""
    key: bytes
    """The key's first 48 bytes. They are the client's: escape them before they go to a terminal, a page or a log."""
    is_cut: bool
    """Whether the key is longer."""


class Override(NamedTuple):
    """A key with a policy of its own."""

    policy: int
    """The number of the policy that calls name."""
    hash: int
    """The key's hash. The table stores nothing else of the key."""
    to: Policy
    """The key's own policy."""


class Settled(NamedTuple):
    """What settle() did with a receipt."""

    first: bool
    """Whether this call has settled it. False: it had been settled before, or is too old, and nothing came back."""
    given_back: int
    """Permits that came back."""
    rest: int
    """Permits above the estimate that could not be charged, because the key owes as much as its state can hold."""


def _list(policies: Policies) -> tuple[tuple[str, ...], dict[str, int]]:
    if isinstance(policies, (str, Policy)):
        return (_text(policies),), {}
    if isinstance(policies, Mapping):
        return tuple(map(_text, policies.values())), {name: i for i, name in enumerate(policies)}
    return tuple(map(_text, policies)), {}


class Table(_core.Table):
    """Table("100/s", capacity=1_000_000): decides for each key by itself.

    `policies` is one policy, a list that requests name by number, or a dict by name:
    `table.check(key, policy="logins")`. A key is bytes, a str (its UTF-8), an int from 0 (its eight
    bytes, as in an array of uint64), any buffer, or None, which is no key. With `shared=True` the
    processes that are forked later share the table. A table is a context manager.

    `hot_keys` is for how many keys each thread of this process may take permits in advance: those
    that it checks most often. It is for keys that many threads check at once; the bound stays the
    policy's. Only gcra has credit.

    `overrides` is how many keys may have a policy of their own at one time (set_override), 32 bytes
    each; 0 means 1,024.

    `room` is for windows of how many segments, and logs of how many permits, each slot has room. With
    room a table may have any policies, and each may change to any other (set_policy).

    At most `waiters` callers of this process wait for the table's keys at one time.

    With clock="python" it goes by Python's time.time_ns(), which freezegun and time-machine drive
    in tests, as a Limiter.
    """

    __slots__ = ("_names", "_places")
    _names: dict[str, int]
    _places: _queue.Places
    _driven: ClassVar[bool] = False

    def __new__(
        cls,
        policies: Policies,
        capacity: int,
        *,
        shared: bool = False,
        on_full: str = "evict-nearest",
        missing: str = "deny",
        clock: str = "tsc",
        seed: int | None = None,
        huge_pages: bool = True,
        hot_keys: int = 0,
        overrides: int = 1024,
        room: int = 0,
        waiters: int = _queue.Places.MOST,
    ) -> Table:
        if shared:
            warn_of_spawn()
        kind = _SHARED if shared else _PRIVATE
        return cls._make(policies, capacity, on_full, missing, clock, seed, huge_pages, 0, kind, None, False, hot_keys, overrides, room, waiters)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        policies: Policies | None = None,
        capacity: int | None = None,
        *,
        on_full: str = "evict-nearest",
        missing: str = "deny",
        clock: str = "tsc",
        seed: int | None = None,
        huge_pages: bool = True,
        mode: int = 0o600,
        trust_anyone: bool = False,
        hot_keys: int = 0,
        overrides: int = 1024,
        room: int = 0,
        waiters: int = _queue.Places.MOST,
    ) -> Table:
        """Opens the table in that file, or makes the file if there is none. Without policies and
        capacity it makes no file and opens any table.

        In /run and /dev/shm a table lasts until the machine stops, on a disk longer. TableError
        refuses a file with another table or none, and leaves the file unchanged. It also refuses a
        file of another user than this one and root, and one that others may write or replace,
        unless trust_anyone is true: a user who may write a table decides who is admitted, and its
        owner can end this process. Use a directory of the service's own, such as /run/SERVICE.
        """
        if (policies is None) != (capacity is None):
            raise TypeError("policies and capacity: both, or neither")
        options = (huge_pages, mode, _FILE, path, trust_anyone, hot_keys, overrides, room, waiters)
        try:
            return cls._make(policies or (), capacity or 0, on_full, missing, clock, seed, *options)
        except TableError as error:
            if error.name == "TOLLBAR_E_OTHER_POLICIES":
                error.args = (f"the table has other policies: {cls._differs(path, policies or (), mode, trust_anyone)}",)
            raise

    @classmethod
    def _differs(cls, path: str | os.PathLike[str], policies: Policies, mode: int, trust_anyone: bool) -> str:
        """How the policies of the file differ from a program's, and what makes them equal."""
        wanted = [_core.parse(text)[0] for text in _list(policies)[0]]
        with cls.open(path, mode=mode, trust_anyone=trust_anyone) as table:
            there = [table._text(number) for number in range(table.stats().policies)]
        name = os.fsdecode(path)
        if len(there) != len(wanted):
            return f"{name} has {len(there)} ({'; '.join(map(repr, there))}) and the program {len(wanted)}; expected: the same number, or another file"
        number = next((n for n, (one, other) in enumerate(zip(there, wanted)) if one != other), 0)
        command = f"tollbar table set-policy {name} {wanted[number]!r} --number {number}"
        return f"policy {number} of {name} is {there[number]!r}, and of the program {wanted[number]!r}; expected: the same, after the command `{command}`"

    @classmethod
    def _make(
        cls,
        policies: Policies,
        capacity: int,
        on_full: str,
        missing: str,
        clock: str,
        seed: int | None,
        huge_pages: bool,
        mode: int,
        kind: int,
        path: object,
        trust_anyone: bool,
        hot_keys: int,
        overrides: int,
        room: int,
        waiters: int,
    ) -> Table:
        if clock == "python" and not cls._driven:
            cls = driven(cls)
        texts, names = _list(policies)
        flags = (0 if seed is None else _SEEDED) | (0 if huge_pages else _SMALL_PAGES) | (_TRUST_ANYONE if trust_anyone else 0)
        self = super().__new__(
            cls,
            texts,
            names,
            capacity,
            choice("on_full", on_full, ON_FULL),
            choice("missing", missing, MISSING),
            choice("clock", clock, ALL_CLOCKS),
            seed or 0,
            flags,
            mode,
            hot_keys,
            overrides,
            room,
            kind,
            path,
        )
        self._places, self._names = _queue.Places(waiters), names
        return self

    def policy(self, policy: int | str = 0) -> Policy:
        """The current policy."""
        return Policy(self._text(policy))

    def set_policy(self, policy: int | str, to: str | Policy, *, keep: str = "count") -> None:
        """Changes a policy, in all processes at once. Keys keep the permits that they have left, up
        to the new burst; with keep="time" the time until their debts are paid, and with
        keep="reset" nothing."""
        self._set_policy(policy, _text(to), choice("keep", keep, KEEPS))

    def reset_all(self) -> None:
        """Lets all keys begin anew, under all policies and in all processes. It reads every slot:
        for tests, and for operators. Keys with a policy of their own (set_override) stay as they
        are, and begin anew by reset(key)."""
        for number in range(self.stats().policies):
            self.set_policy(number, self._text(number), keep="reset")

    def set_override(self, key: _core.Key, to: str | Policy, policy: int | str = 0, *, keep: str = "count") -> None:
        """Gives a key a policy of its own in place of `policy`, in all processes at once, until
        clear_override.

        `table.set_override("acme", "1000/s burst 50")`. Requests still name `policy`, and count
        under it. `keep` says what the key keeps of its debt when the override begins and when it
        ends, as in set_policy. TableError if as many keys have one as the table's option
        `overrides` allows.
        """
        self._set_override(key, policy, _text(to), choice("keep", keep, KEEPS))

    def override(self, key: _core.Key, policy: int | str = 0) -> Policy | None:
        """The key's own policy, or None."""
        text = self._override(key, policy)
        return None if text is None else Policy(text)

    def overrides(self) -> list[Override]:
        """All keys with a policy of their own, in no order."""
        return [Override(number, hash, Policy(text)) for number, hash, text in self._overrides()]

    def top_refused(self, most: int = 20, *, at: int | None = None) -> list[Refused]:
        """The keys that requests were refused most in the last minute or two, the most refused
        first, at most 224.

        Begin with `table.record_refusals(True)`. Counts are halved every 68.7 s, and are not exact.
        """
        return [Refused(*one) for one in self._top_refused(most, at)]

    def add_policy(self, policy: str | Policy) -> int:
        """Adds a policy, for all processes, and returns its number."""
        return self._add_policy(_text(policy))

    def find_or_add_policy(self, policy: str | Policy) -> int:
        """Returns the number of the first policy that equals this one, and adds it if there is
        none. All callers that ask for one policy at once get the same number."""
        return self._find_or_add_policy(_text(policy))

    def _number_of(self, policy: int | str | Policy) -> int | str:
        """The number or name of a policy, which the table gets if it lacks it."""
        return self.find_or_add_policy(policy) if isinstance(policy, Policy) else policy

    def stats(self) -> Stats:
        """Counters and sizes, of all processes."""
        return Stats(*self._stats())

    def counts(self, policy: int | str = 0) -> Counts:
        """Decisions under that policy since the table was made, of all threads and processes.
        stats() has the sums of all policies."""
        return Counts(*self._counts(policy))

    def validate(self) -> Health:
        """Examines every slot."""
        return Health(*self._health(False))

    def repair(self) -> Health:
        """Empties invalid slots, and returns what validate would have returned before. Call it only
        while no other thread or process uses the table."""
        return Health(*self._health(True))

    def reserve(
        self,
        key: _core.Key,
        timeout: _time.Time | None = None,
        cost: int = 1,
        policy: int | str = 0,
        *,
        at: SupportsIndex | None = None,
    ) -> Reservation | None:
        """Takes cost permits of the key ahead of time. The caller must act `wait` seconds from now
        (or from `at`), not earlier.

        None, with nothing taken, if that would be more than timeout, or if the algorithm cannot
        book ahead, as a window or a log.
        """
        booked = self._book(key, _time.patience(timeout), cost, policy, at)
        return None if booked is None or booked is NotImplemented else Reservation(*booked)

    def cancel(
        self, key: _core.Key, reservation: Reservation, policy: int | str = 0, *, at: SupportsIndex | None = None
    ) -> int:
        """Gives back the permits of a reservation that the caller does not use, and returns the
        number that came back. Cancel a reservation once only.

        The key's latest reservation comes back whole. An earlier one usually gives back nothing,
        because the later callers keep the departure times that they have.
        """
        return self._cancel(key, reservation.departs_ns, reservation.cost, policy, at)

    def settle(self, receipt: bytes, cost: int, *, at: int | None = None) -> Settled:
        """Settles a receipt of take at the real cost. It never waits.

        If the cost is below the estimate, the unused permits go back to the key, without those that
        the key has regained by refill since the charge. If the cost is above the estimate, the
        difference is charged as a debt, which is one burst at most, and later requests of the key
        wait until it is paid. Any process that has the table may settle a receipt, and only the
        first call settles it. Without such a call the estimate stays charged.
        """
        return Settled(*self._settle(receipt, cost, at, False))

    def settle_in_full(self, receipt: bytes, cost: int) -> Settled:
        """Settles a receipt, and returns all unused permits of the estimate to the key, also those
        that the key has regained by refill. Unsafe for the limit: each receipt that was open for
        the refill of a burst may let one more burst pass."""
        return Settled(*self._settle(receipt, cost, None, True))

    def wait(
        self, key: _core.Key, timeout: _time.Time | None = None, cost: int = 1, policy: int | str = 0
    ) -> bool:
        """Takes cost permits of the key, and sleeps up to timeout for them. Other threads run
        during the sleep.

        If they would come later, the call returns False at once and takes nothing. The callers of
        this process that wait for one key, threads and tasks of event loops, wait in one queue,
        first in, first out, and only its head holds a booking, which the next one takes over if the
        head gives up. The heads of processes that share the table wake in the order of their
        bookings. Where the algorithm cannot book ahead, as windows and logs cannot, the head checks
        again when a permit could be free. QueueFull refuses a caller if as many wait for keys of
        this table as the option `waiters` allows. When a signal's handler ends the sleep with an
        exception, the caller leaves the queue.
        """
        patience = _time.patience(timeout)
        return (not self._places.taken and self._take(key, cost, policy)) or _waiters.wait(_Key(self, key, policy), cost, patience)

    async def wait_async(
        self, key: _core.Key, timeout: _time.Time | None = None, cost: int = 1, policy: int | str = 0
    ) -> bool:
        """wait, in an event loop. A task that is cancelled leaves the queue."""
        patience = _time.patience(timeout)
        if not self._places.taken and self._take(key, cost, policy):
            return True
        return await _waiters.wait_async(_Key(self, key, policy), cost, patience)

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<tollbar.Table, closed>"
        stats = self._stats()
        return f"<tollbar.Table of {stats[1]} keys, {stats[0]} policies>"


class _Key:
    """A key whose permits a caller waits for."""

    __slots__ = ("_key", "_policy", "_table", "_places")


    def __init__(self, table: Table, key: _core.Key, policy: int | str) -> None:
        self._table, self._key, self._policy = table, key, policy
        self._places = table._places

    def _who(self) -> tuple[Table, int, bytes | None]:
        # A buffer may change later.
        self._key = _core.key_bytes(self._key)
        self._policy = self._table._number(self._policy)
        return self._table, self._policy, self._key

    def _book(self, cost: int, patience: int, /) -> _core.Booked:
        return self._table._book(self._key, patience, cost, self._policy)

    def _cancel(self, departs_ns: int, cost: int, /) -> int:
        return self._table._cancel(self._key, departs_ns, cost, self._policy)

    def check(self, cost: int, /) -> _core.Decision:
        return self._table.check(self._key, cost, self._policy)

    def peek(self, cost: int, /) -> _core.Decision:
        return self._table.peek(self._key, cost, self._policy)

    @property
    def policy(self) -> Policy:
        return self._table.policy(self._policy)
