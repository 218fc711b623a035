"""What the WSGI and the ASGI middleware have in common: deciding, and the headers."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Generic, TypeVar

from . import address_key
from ._core import Decision
from .lease import Lease
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from ._core import Key

Request = TypeVar("Request")

# The largest integer of a structured header field (RFC 9651).
_MOST = 999_999_999_999_999
_SECOND = 1_000_000_000


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // _SECOND)


def _quoted(name: str) -> str:
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"a name in a header is printable ASCII, not {name!r}")
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def client_key(address: str | None) -> Key:
    """The key of a client's address, IPv6 by its /64; of what is no address, its text; of nothing, no key."""
    if not address:
        return None
    try:
        return address_key(address)
    except ValueError:
        return address


class Gate(Generic[Request]):
    """Decides on requests, and says what it decided in headers."""

    def __init__(
        self,
        table: Table | Lease | str | Policy,
        key: Callable[[Request], Key],
        *,
        policy: int | str = 0,
        cost: int = 1,
        exempt: Container[Key] = (),
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool = True,
    ) -> None:
        self.table = table if isinstance(table, (Table, Lease)) else Table(table, capacity)
        self.key = key
        self.policy = policy
        self.cost = cost
        self.exempt = exempt
        self.headers = headers
        self.name = _quoted(name if name is not None else policy if isinstance(policy, str) else "default")
        self._text = ""
        self._quota = ""

    def decide(self, request: Request) -> Decision | None:
        """None: the request's key is exempt."""
        key = self.key(request)
        if key in self.exempt:
            return None
        if isinstance(self.table, Lease):
            # Those without a key share the limit that is for all.
            return self.table.check(key, self.cost)
        return self.table.check(key, self.cost, self.policy)

    def quota(self) -> str:
        """So many permits in so many seconds; of a period that is no whole number of seconds, what comes to as much."""
        text = self.table._policy if isinstance(self.table, Lease) else self.table._text(self.policy)
        # The policy may have been changed, here or in another process.
        if text != self._text:
            policy = Policy(text)
            window = _seconds(policy.period_ns)
            quota = min(policy.limit * window * _SECOND // policy.period_ns, _MOST)
            self._quota, self._text = f"{self.name};q={quota};w={window}", text
        return self._quota

    def fields(self, decision: Decision) -> list[tuple[str, str]]:
        """draft-ietf-httpapi-ratelimit-headers-11: what is left, and seconds until all of it is there again."""
        fields = []
        if not decision and decision.retry_after_ns is not None:
            fields.append(("Retry-After", str(max(_seconds(decision.retry_after_ns), 1))))
        if self.headers:
            fields.append(("RateLimit-Policy", self.quota()))
            state = f"{self.name};r={min(decision.remaining, _MOST)}"
            # When all is there again, of a lease only the store knows.
            if decision.reset_after_ns is not None and not isinstance(self.table, Lease):
                state += f";t={_seconds(decision.reset_after_ns)}"
            fields.append(("RateLimit", state))
        return fields


BODY = b"Too Many Requests\n"
BODY_FIELDS = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(BODY)))]
