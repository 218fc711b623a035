"""The counters and logs behind tollbar.limits. They do for tables in files what the strategies of
the package `limits` call a storage for."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from ._core import Decision
from ._errors import TableError
from .policy import Policy
from .table import Table

# A counter is a fixed window whose limit no counter needs. Its word has a start and a count, so the
# time has a coarser grain the more it counts: by the largest count, the grain in nanoseconds. Times
# are rounded down to the grain, so that a window has exactly its length.
_GRAINS: dict[int, int] = {7 * 10**k: 10**k for k in range(3, 10)}
# The largest count for a key that does not say its limit.
_UNKNOWN = 7 * 10**6
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "month": 30 * 86400, "year": 360 * 86400}
# Policy 0 of the counters' table counts the resets of the storage. Each key begins with that
# number, so a reset forgets all keys at once.
_RESETS = "4000000000/forever"
_FULL = "table full"


class Windows:
    """Counters that expire, logs and pairs of windows, which every process that names `path`
    shares.

    All counts change in the table, by one compare-and-swap. Times are UTC in nanoseconds, as
    time.time() has them.
    """

    def __init__(self, path: str, keys: int, log_keys: int, log_bytes: int) -> None:
        self.path = path
        self._log_keys, self._log_bytes = log_keys, log_bytes
        self._counters = _open(path, _RESETS, keys)
        # The key takes its slot now, so that a full table can be reset. Only the first process adds
        # the one.
        self._counters.check_leaving(b"resets", 4_000_000_000 - 1)
        # By expiry in nanoseconds and the largest count: the number of the policy. Other processes
        # may have added policies that are not here.
        self._policies: dict[tuple[int, int], int] = {}
        self._known = 1
        # By limit and expiry.
        self._logs: dict[tuple[int, int], Table] = {}

    def __repr__(self) -> str:
        return f"<tollbar.Table in {self.path}>"

    def __reduce__(self) -> tuple[type[Windows], tuple[str, int, int, int]]:
        return Windows, (self.path, self._counters.stats().capacity, self._log_keys, self._log_bytes)

    def incr(self, key: str, expiry_ns: int, amount: int) -> int:
        """Adds to the counter, which expires expiry_ns after its first increment, and returns its
        value."""
        if amount == 0:
            return self.get(key)
        most, name, now = _most(key), self._name(key), _now()
        number = self._policy(expiry_ns, most)
        at = now - now % _GRAINS[most]
        decision = self._counters.check(name, amount, number, at=at)
        if decision:
            return most - decision.remaining
        self._raise_if_full(decision, self.path)
        if _limit(key) is None:
            raise TableError(
                f"{self.path}: the counter of {key!r} would be above {most}; expected: at most that, or a key that ends like 10/1/minute"
            )
        # The key's limit is smaller than the largest count, so every caller refuses all larger
        # ones.
        self._counters.charge(name, amount, number, at=at)
        return most + 1

    def get(self, key: str) -> int:
        return self._find(key, _now())[0]

    def expiry_ns(self, key: str) -> int:
        """When the counter expires; now, if there is none."""
        now = _now()
        found, expires = self._find(key, now)
        return expires if found else now

    def clear(self, key: str) -> None:
        """Forgets the key's counter and its logs."""
        name = self._name(key)
        with suppress(FileNotFoundError):
            for limit, expiry_ns in self._log_files():
                self._clear(self._log(limit, expiry_ns), name, key)
        self._discover()
        for number in self._policies.values():
            self._clear(self._counters, name, key, number)

    def reset(self) -> int:
        """Forgets all keys, in all processes, and returns the number of keys that tables had."""
        keys = self._counters.stats().keys - 1
        with suppress(FileNotFoundError):
            keys += sum(self._log(limit, expiry_ns).stats().keys for limit, expiry_ns in self._log_files())
        self._counters.check(b"resets")
        return keys

    def check(self) -> bool:
        """Whether the file is there, and is still the one that this process has."""
        return not self._counters.closed and os.path.exists(self.path)

    def acquire(self, key: str, limit: int, expiry_ns: int, amount: int) -> bool:
        """Adds `amount` entries to the log if it then has at most `limit` of the last expiry_ns."""
        if amount > limit:
            return False
        log = self._log(limit, expiry_ns)
        decision = log.check(self._name(key), amount, at=_now())
        self._raise_if_full(decision, self._log_path(limit, expiry_ns))
        return bool(decision)

    def moving(self, key: str, limit: int, expiry_ns: int) -> tuple[int, int]:
        """The time of the oldest entry, and the number of entries."""
        log, name, now = self._log(limit, expiry_ns), self._name(key), _now()
        decision = log.peek(name, at=now)
        if decision.reason == _FULL or decision.remaining == limit:
            return now, 0
        # As soon as the oldest entry is gone, one more permit is there than now.
        wait = log.peek(name, decision.remaining + 1, at=now).retry_after_ns
        return now + (wait or 0) - expiry_ns, limit - decision.remaining

    def acquire_weighted(self, key: str, limit: int, expiry_ns: int, amount: int) -> bool:
        """Adds to the window's counter if it and the weighted count of the window before then have
        at most `limit`.

        The table decides and counts in one step: the request leaves as many permits of the counter
        as lie above the limit, and as many as the window before takes. So nothing has to be taken
        back, and a process that is killed leaves either all of the amount or nothing.
        """
        now, most = _now(), _most(key)
        if limit > most:
            raise TableError(f"{self.path}: the limit {limit} of {key!r} is above {most}; expected: at most that, or a key that ends like 10/1/minute")
        before, until, here, _ = self._weighted(key, expiry_ns, now)
        left = limit - before * until // expiry_ns
        if amount == 0 or amount > left:
            return here + amount <= left
        name, number = self._name(_window(key, expiry_ns, now)), self._policy(2 * expiry_ns, most)
        decision = self._counters.check_leaving(name, most - left, amount, number, at=now - now % _GRAINS[most])
        self._raise_if_full(decision, self.path)
        return bool(decision)

    def weighted(self, key: str, expiry_ns: int) -> tuple[int, int, int, int]:
        """The count of the window before and the time for which it still counts, and those of this
        window."""
        return self._weighted(key, expiry_ns, _now())

    def clear_weighted(self, key: str, expiry_ns: int) -> None:
        now, number = _now(), self._policy(2 * expiry_ns, _most(key))
        for at in (now - expiry_ns, now):
            self._clear(self._counters, self._name(_window(key, expiry_ns, at)), key, number)

    def _weighted(self, key: str, expiry_ns: int, now: int) -> tuple[int, int, int, int]:
        most = _most(key)
        number = self._policy(2 * expiry_ns, most)
        before = self._count(_window(key, expiry_ns, now - expiry_ns), number, most, now)[0]
        here = self._count(_window(key, expiry_ns, now), number, most, now)[0]
        left = expiry_ns - now % expiry_ns
        return before, left if before else 0, here, left + expiry_ns

    def _resets(self) -> int:
        return 4_000_000_000 - self._counters.peek(b"resets").remaining

    def _name(self, key: str) -> str:
        return f"{self._resets()}/{key}"

    def _policy(self, expiry_ns: int, most: int) -> int:
        """The number of the policy of counters of that expiry and largest count."""
        number = self._policies.get((expiry_ns, most))
        if number is None:
            number = self._counters.find_or_add_policy(f"{most}/{expiry_ns}ns algo fixed-window anchor first")
            self._policies[expiry_ns, most] = number
        return number

    def _discover(self) -> None:
        """Learns the policies that other processes have added."""
        with suppress(TableError):
            for number in count(self._known):
                policy = self._counters.policy(number)
                self._policies[policy.period_ns, policy.limit] = number
                self._known = number + 1

    def _count(self, key: str, number: int, most: int, now: int) -> tuple[int, int]:
        """The count, and when it expires."""
        at = now - now % _GRAINS[most]
        decision = self._counters.peek(self._name(key), 1, number, at=at)
        if decision.reason == _FULL or decision.remaining == most:
            return 0, 0
        return most - decision.remaining, at + (decision.reset_after_ns or 0)

    def _find(self, key: str, now: int) -> tuple[int, int]:
        """The count of the key, and when it expires. A key that says its expiry has one counter,
        any other key one for each."""
        most, expiry_ns = _most(key), _expiry_ns(key)
        if expiry_ns is not None:
            found = self._count(key, self._policy(expiry_ns, most), most, now)
            if found[0]:
                return found
        self._discover()
        for (_, limit), number in list(self._policies.items()):
            found = self._count(key, number, most, now) if limit == most else (0, 0)
            if found[0]:
                return found
        return 0, 0

    def _clear(self, table: Table, name: str, key: str, number: int = 0) -> None:
        if not table.reset(name, number):
            raise TableError(
                f"{self.path}: {key!r} has been cleared eleven times in one window; expected: its end, or a storage for more keys"
            )

    @staticmethod
    def _raise_if_full(decision: Decision, path: str) -> None:
        if not decision and decision.reason == _FULL:
            raise TableError(errno.ENOSPC, "no room for another key; expected: a storage with more keys=, or log_keys= for moving windows", path)

    def _log_path(self, limit: int, expiry_ns: int) -> str:
        return f"{self.path}.log-{limit}-{expiry_ns}"

    def _log_files(self) -> Iterator[tuple[int, int]]:
        """The limits and expiries of all logs of the storage."""
        start = os.path.basename(self.path) + ".log-"
        for name in os.listdir(os.path.dirname(self.path)):
            if name.startswith(start):
                limit, _, expiry_ns = name.removeprefix(start).partition("-")
                if limit.isdecimal() and expiry_ns.isdecimal():
                    yield int(limit), int(expiry_ns)

    def _log(self, limit: int, expiry_ns: int) -> Table:
        """The table of the logs of that limit and expiry."""
        log = self._logs.get((limit, expiry_ns))
        if log is None:
            log = self._logs[limit, expiry_ns] = self._open_log(limit, expiry_ns)
        return log

    def _open_log(self, limit: int, expiry_ns: int) -> Table:
        path = self._log_path(limit, expiry_ns)
        text = f"{limit}/{expiry_ns}ns algo sliding-log"
        # The sum must not change between the look and the new file.
        with _locked(self.path):
            if not os.path.exists(path):
                others = sum(os.stat(self._log_path(*log)).st_size for log in self._log_files())
                size = log_bytes(limit, self._log_keys)
                if others + size > self._log_bytes:
                    raise TableError(
                        errno.ENOSPC,
                        f"a moving window of {limit} in {expiry_ns / 1e9:g} s needs {size} bytes for {self._log_keys} keys, and others have {others}; "
                        f"expected: at most log_bytes={self._log_bytes} together, or another strategy",
                        path,
                    )
            return _open(path, text, self._log_keys)


def _now() -> int:
    """UTC as the strategies of `limits` read it, which compare the storage's times with
    time.time()."""
    return int(time.time() * 1e9)


def _limit(key: str) -> int | None:
    """The limit that the keys of the strategies end in: IDENTIFIERS/LIMIT/MULTIPLES/UNIT."""
    parts = key.rsplit("/", 3)
    return int(parts[-3]) if len(parts) > 3 and parts[-1] in _SECONDS and parts[-2].isdecimal() and parts[-3].isdecimal() else None


def _expiry_ns(key: str) -> int | None:
    if _limit(key) is None:
        return None
    _, multiples, unit = key.rsplit("/", 2)
    return int(multiples) * _SECONDS[unit] * 10**9


def _most(key: str) -> int:
    """The largest count of the key's counter: above its limit."""
    limit = _limit(key)
    if limit is None:
        return _UNKNOWN
    for most in _GRAINS:
        if limit < most:
            return most
    raise TableError(f"the limit of {key!r} is too large for a counter; expected: less than {max(_GRAINS)}")


def _window(key: str, expiry_ns: int, at: int) -> str:
    """The key of the window at that time."""
    return f"{key}/{at // expiry_ns}"


def log_bytes(limit: int, keys: int) -> int:
    """No log of that limit for so many keys is larger: its administration, and in each slot the
    key, the state and the entries."""
    slots = 5120 if keys <= 4096 else keys * 5 // 4 + 2048
    return slots * (limit + 3) * 8 + (384 << 10)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """The kernel releases the lock of a process that is killed."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _open(path: str, text: str, keys: int) -> Table:
    """The table in that file, which the first process makes. Its first policy is `text`; other
    processes may have added more."""
    table = _open_or_make(path, text, keys)
    found, capacity = table.policy(), table.stats().capacity
    if found != Policy(text) or capacity != keys:
        table.close()
        raise TableError(
            f"{path}: the file is a table of {capacity} keys under {str(found)!r}; expected: {keys} keys under {str(Policy(text))!r}. "
            "Another program has made it, or one with another number of keys: give another path, or remove the file"
        )
    return table


def _open_or_make(path: str, text: str, keys: int) -> Table:
    attempts = 0
    while True:
        attempts += 1
        try:
            return Table.open(path)
        except TableError as error:
            if error.errno != errno.ENOENT:
                raise
        try:
            # The clock is that of the times which the strategies report.
            return Table.open(path, text, keys, clock="wall", on_full="deny")
        except TableError as error:
            # Another process has made the file meanwhile, and added a policy.
            if error.name != "TOLLBAR_E_OTHER_POLICIES" or attempts == 3:
                raise
