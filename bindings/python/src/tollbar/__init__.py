"""Rate limiting in nanoseconds, exact and lock-free, in one process or many.

    limiter = tollbar.Limiter("100/s burst 20")
    if not limiter.allow(): ...

    table = tollbar.Table("5/min burst 3", capacity=1_000_000)
    decision = table.check("192.0.2.1")
    if not decision:
        print(f"again in {decision.retry_after:.3f} s")

    lease = tollbar.Lease("100/s burst 50", name="api", nodes=4, url="redis://127.0.0.1")
    if not lease.allow(): ...
"""

from . import _core
from ._core import Decision
from ._errors import Error, LeaseError, PolicyError, TableError
from .lease import Lease, LeaseStats
from .limiter import Counts, Limiter
from .policy import Policy
from .table import Health, Stats, Table

__version__ = _core.version


def address_key(text: str, ipv4_bits: int = 32, ipv6_bits: int = 64) -> bytes:
    """The key of a network address as people write it. Of IPv6 the first 64 bits count: a host has all the others."""
    return _core.address_key(text, ipv4_bits, ipv6_bits)


__all__ = [
    "Counts",
    "Decision",
    "Error",
    "Health",
    "Lease",
    "LeaseError",
    "LeaseStats",
    "Limiter",
    "Policy",
    "PolicyError",
    "Stats",
    "Table",
    "TableError",
    "address_key",
]
