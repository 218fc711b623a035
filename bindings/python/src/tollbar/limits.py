"""A storage for the package `limits`, and so for flask-limiter and slowapi: exact counts in memory
that all workers share.

    import tollbar.limits  # registers the storage
    limiter = flask_limiter.Limiter(get_remote_address, app=app, storage_uri="tollbar:///dev/shm/app")

Every process that names the file shares it. `?keys=` is the number of counters that can run at one
time (100,000), and a sliding window counter takes two. Moving windows have files beside it, one for
each limit: `log_keys` keys each (4,096), and together at most `log_bytes` (256 MiB). A counter or a
window without room raises TableError.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

from limits.aio import storage as aio
from limits.errors import ConfigurationError
from limits.storage import MovingWindowSupport, SlidingWindowCounterSupport, Storage
from limits.storage.base import TimestampedSlidingWindow

from ._errors import Error
from ._windows import Windows

_OPTIONS = {"keys": 100_000, "log_keys": 4096, "log_bytes": 256 << 20}


def _windows(uri: str | None, options: dict[str, float | str | bool]) -> Windows:
    parsed = urlparse(uri or "")
    if parsed.netloc or not parsed.path.strip("/"):
        raise ConfigurationError(f"{uri!r} names no file; expected: three slashes and a path, such as tollbar:///dev/shm/app")
    given: dict[str, object] = {**options, **{name: values[-1] for name, values in parse_qs(parsed.query, keep_blank_values=True).items()}}
    numbers = dict(_OPTIONS)
    for name, value in given.items():
        if name not in numbers:
            raise ConfigurationError(f"{uri!r}: unknown option {name!r}; expected: {', '.join(numbers)}")
        if not str(value).isdecimal() or int(str(value)) == 0:
            raise ConfigurationError(f"{uri!r}: {name} is {value!r}; expected: a whole number from 1")
        numbers[name] = int(str(value))
    return Windows(parsed.path, **numbers)


def _ns(expiry: float) -> int:
    return expiry * 10**9 if isinstance(expiry, int) else int(expiry * 1e9)


class _OnWindows:
    """What both kinds of storage have."""

    def __init__(self, uri: str | None = None, wrap_exceptions: bool = False, **options: float | str | bool) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)  # type: ignore[call-arg]
        self.storage = _windows(uri, options)

    @property
    def base_exceptions(self) -> type[Exception]:
        return Error


class TollbarStorage(_OnWindows, Storage, MovingWindowSupport, SlidingWindowCounterSupport, TimestampedSlidingWindow):
    """storage_from_string("tollbar:///dev/shm/app"): counts that all processes share which name
    this file."""

    STORAGE_SCHEME = ["tollbar"]

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return self.storage.incr(key, _ns(expiry), amount)

    def get(self, key: str) -> int:
        return self.storage.get(key)

    def get_expiry(self, key: str) -> float:
        return self.storage.expiry_ns(key) / 1e9

    def check(self) -> bool:
        return self.storage.check()

    def reset(self) -> int | None:
        return self.storage.reset()

    def clear(self, key: str) -> None:
        self.storage.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.storage.acquire(key, limit, _ns(expiry), amount)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        start, entries = self.storage.moving(key, limit, _ns(expiry))
        return start / 1e9, entries

    def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.storage.acquire_weighted(key, limit, _ns(expiry), amount)

    def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        before, before_ns, here, here_ns = self.storage.weighted(key, _ns(expiry))
        return before, before_ns / 1e9, here, here_ns / 1e9

    def clear_sliding_window(self, key: str, expiry: int) -> None:
        self.storage.clear_weighted(key, _ns(expiry))


class AsyncTollbarStorage(_OnWindows, aio.Storage, aio.MovingWindowSupport, aio.SlidingWindowCounterSupport, TimestampedSlidingWindow):
    """storage_from_string("async+tollbar:///dev/shm/app"): the same counts for the strategies of
    limits.aio. No call waits."""

    STORAGE_SCHEME = ["async+tollbar"]

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return self.storage.incr(key, _ns(expiry), amount)

    async def get(self, key: str) -> int:
        return self.storage.get(key)

    async def get_expiry(self, key: str) -> float:
        return self.storage.expiry_ns(key) / 1e9

    async def check(self) -> bool:
        return self.storage.check()

    async def reset(self) -> int | None:
        return self.storage.reset()

    async def clear(self, key: str) -> None:
        self.storage.clear(key)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.storage.acquire(key, limit, _ns(expiry), amount)

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        start, entries = self.storage.moving(key, limit, _ns(expiry))
        return start / 1e9, entries

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.storage.acquire_weighted(key, limit, _ns(expiry), amount)

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        before, before_ns, here, here_ns = self.storage.weighted(key, _ns(expiry))
        return before, before_ns / 1e9, here, here_ns / 1e9

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        self.storage.clear_weighted(key, _ns(expiry))


__all__ = ["AsyncTollbarStorage", "TollbarStorage"]
