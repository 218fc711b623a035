"""HTTP header fields about limits: a server writes them in any web framework, and a client reads
them.

    decision = table.check(user)
    limit = http.Limit("per-minute", "100/min burst 20", decision, table.more_after(decision, user))
    for name, value in http.fields([limit]):
        response.headers[name] = value

The answer to an admitted request then has `RateLimit-Policy: "per-minute";q=100;w=60`, which means
100 permits in 60 seconds, and `RateLimit: "per-minute";r=19;t=1`, which means that 19 permits are
left and more in a second. Times are rounded up, and `t` is at most Retry-After.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from . import _core
from ._core import Decision
from .policy import Policy, _text

# TOLLBAR_HTTP_ of tollbar.h.
_RETRY_AFTER = 1
_LEGACY = {None: 0, "seconds": 2, "epoch": 4}
_DRAFT = {None: 0, 6: 8, 7: 16, 11: 32}


class Limit(NamedTuple):
    """A limit of a request and its decision, for the fields that tell the client about it."""

    # Printable ASCII.
    name: str
    policy: str | Policy
    decision: Decision
    # The time until more permits are left: the result of more_after() of the table or the limiter.
    more_after_ns: int | None = None
    # The client or group whose quota it is (`pk`). Clients see it. Only draft 11 has it.
    partition: bytes = b""


class Seen(NamedTuple):
    """The limits that a server's header fields describe. None: no field gives the value."""

    # Permits per window.
    limit: int | None
    window_ns: int | None
    # The permits left.
    remaining: int | None
    # The time until more permits are left.
    more_after_ns: int | None
    # The time to wait before the next request.
    retry_after_ns: int | None


def fields(
    limits: Iterable[Limit],
    *,
    retry_after: bool = True,
    legacy: Literal["seconds", "epoch"] | None = None,
    draft: Literal[6, 7, 11] | None = 11,
    time_ns: int | None = None,
) -> list[tuple[str, str]]:
    """Returns the header fields of 1 to 16 limits as names and values.

    A refusal has Retry-After. `legacy` adds X-RateLimit-Limit, -Remaining and -Reset, in seconds
    from now or since 1970. `draft` is the version of draft-ietf-httpapi-ratelimit-headers: 6 stands
    for 00 to 06, 11 for 08 to 11. The X-RateLimit- fields and drafts up to 7 have room for one
    limit, which is the one that binds. `time_ns` is the time since 1970; the system's clock if not
    given."""
    if legacy not in _LEGACY:
        raise ValueError(f"legacy is 'seconds', 'epoch' or None, not {legacy!r}")
    if draft not in _DRAFT:
        raise ValueError(f"draft is 6, 7, 11 or None, not {draft!r}")
    what = _RETRY_AFTER * bool(retry_after) | _LEGACY[legacy] | _DRAFT[draft]
    if what == 0:
        return []
    now = time.time_ns() if time_ns is None and legacy == "epoch" else time_ns or 0
    return _lines(_core.http_write(_plain(limits), what, now))


def problem(limits: Iterable[Limit], status: int = 429) -> str:
    """The body of a refusal in JSON (RFC 9457; the media type is application/problem+json), with
    the names of the limits that refuse."""
    return _core.http_write(_plain(limits), 0, status)


def read(fields: Mapping[str, str] | Iterable[tuple[str, str]], *, time_ns: int | None = None) -> Seen:
    """Reads a server's limits from its answer's header fields, in any of the dialects that fields()
    writes. It ignores malformed fields.

    `time_ns` is the time of the answer since 1970, for dates; the system's clock if not given."""
    items = fields.items() if isinstance(fields, Mapping) else fields
    lines = "".join(f"{name}: {value}\n" for name, value in items if "\n" not in f"{name}{value}")
    return Seen(*_core.http_read(lines.encode("latin-1", "replace"), time.time_ns() if time_ns is None else time_ns))


def _plain(limits: Iterable[Limit]) -> tuple[tuple[str, str, Decision, int | None, bytes], ...]:
    return tuple((name, _text(policy), decision, more, partition) for name, policy, decision, more, partition in limits)


def _lines(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (line.partition(": ") for line in text.split("\r\n") if line)]
