"""Rate limiting in nanoseconds, exact and lock-free, in one process or many.

    limiter = tollbar.Limiter("100/s burst 20")
    if not limiter.allow(): ...

    table = tollbar.Table("5/min burst 3", capacity=1_000_000)
    decision = table.check("192.0.2.1")
    if not decision:
        print(f"again in {decision.retry_after:.3f} s")

    @tollbar.limit("5/min")  # or a coroutine; raises tollbar.Limited, or waits with wait=10
    def send(): ...

    if not tollbar.take_many([limiter, (table, "192.0.2.1")]): ...  # charges both, or none

    uploads = tollbar.InFlight(10_000)
    with uploads.enter("user 7", 4) as permit:  # at most 4 at one time
        if not permit: ...

    lease = tollbar.Lease("100/s burst 50", name="api", nodes=4, url="redis://127.0.0.1")
    if not lease.allow(): ...
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from . import _core
from ._core import Decision, Share, Taken, route, take_many
from ._errors import Error, LeaseError, PolicyError, QueueFull, TableError
from ._reservation import Reservation
from ._times import HEAD, Times
from .adaptive import Adaptive, AdaptivePermit
from .hierarchy import Hierarchy
from .in_flight import InFlight, Permit
from .limiter import Counts, Limiter
from .meter import Meter
from .policy import Policy
from .queue import Queue, Ticket
from .schedule import Schedule
from .send_window import SendWindow, SendWindowState
from .table import Health, Override, Refused, Settled, Stats, Table

if TYPE_CHECKING:
    from ._limit import Limited, limit
    from .lease import Lease, LeaseStats
    from .store import AsyncStoreLimit, StoreLimit

__version__ = _core.version


# Only programs with limits in a store load libtollbar-redis, which is in tollbar._redis.
_LATER = {
    "AsyncStoreLimit": "store",
    "Lease": "lease",
    "LeaseStats": "lease",
    "Limited": "_limit",
    "StoreLimit": "store",
    "limit": "_limit",
}
_MODULES = ("asgi", "django", "drf", "fastapi", "flask", "http", "lease", "limits", "rules", "store", "wsgi")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def address_key(text: str, ipv4_bits: int = 32, ipv6_bits: int = 64) -> bytes:
    """Returns the key of a network address in text. Of an IPv6 address it has the first 64 bits,
    since a host can change the others."""
    return _core.address_key(text, ipv4_bits, ipv6_bits)


def metrics(
    sources: Mapping[str, Limiter | Table], *, openmetrics: bool = False, times: Mapping[str, Times] | None = None
) -> str:
    """Counts and sizes of limiters and tables for Prometheus: decisions by policy and verdict,
    keys, evictions, clock steps.

    The names are the label `limit`. A table's decisions are those of all processes that share it.
    The media type is `text/plain; version=0.0.4`, and with `openmetrics` it is
    `application/openmetrics-text; version=1.0.0; charset=utf-8`. The label `policy` is the name
    that the table's program gave, or else the number. `times` are histograms of how long decisions
    take; their names are the label `limit`, too."""
    text = _core.metrics(tuple(sources.items()), openmetrics)
    for limit, of in sources.items():
        for name, number in of._names.items() if isinstance(of, Table) else ():
            text = text.replace(_labels(limit, str(number)), _labels(limit, name))
    if times:
        text = HEAD + "".join(one._text(_labels(limit, "").partition(",policy=")[0]) for limit, one in times.items()) + text
    return text


def _labels(*values: str) -> str:
    limit, policy = (value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in values)
    return f'{{limit="{limit}",policy="{policy}"'


__all__ = [
    "Adaptive",
    "AdaptivePermit",
    "AsyncStoreLimit",
    "Counts",
    "Decision",
    "Error",
    "Health",
    "Hierarchy",
    "InFlight",
    "Lease",
    "LeaseError",
    "LeaseStats",
    "Limited",
    "Limiter",
    "Meter",
    "Permit",
    "Policy",
    "PolicyError",
    "Queue",
    "QueueFull",
    "Refused",
    "Reservation",
    "Override",
    "Schedule",
    "SendWindow",
    "SendWindowState",
    "Settled",
    "Share",
    "Stats",
    "StoreLimit",
    "Table",
    "TableError",
    "Taken",
    "Ticket",
    "Times",
    "address_key",
    "limit",
    "metrics",
    "route",
    "take_many",
]
