"""WSGI middleware: app = tollbar.wsgi.RateLimit(app, "100/min burst 20")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._http import Exempt, Gate, client_key
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from ._core import Key
    from .lease import Lease


def by_client(environ: WSGIEnvironment) -> Key:
    """The client's address, as the server says: behind a proxy have the server or a middleware put it right first."""
    return client_key(environ.get("REMOTE_ADDR"))


class RateLimit:
    """Answers 429 with Retry-After for requests above the limit, and tells all of it in RateLimit headers.

    `table` is a Table, which may be shared with other processes, a Lease, or a policy, of which a table for `capacity` keys is
    made. `key` makes the key of a request's environ. Keys in `exempt` pass always; an address there is text, or of ipaddress, and an
    IPv6 address stands for its /64. A request without a key gets what the table's `missing` says: "allow" lets it pass, and of
    "deny" and "report" it gets `missing_status`.
    """

    def __init__(
        self,
        app: WSGIApplication,
        table: Table | Lease | str | Policy,
        *,
        key: Callable[[WSGIEnvironment], Key] = by_client,
        policy: int | str = 0,
        cost: int = 1,
        exempt: Exempt = (),
        missing_status: int = 403,
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool = True,
    ) -> None:
        self.app = app
        self.gate: Gate[WSGIEnvironment] = Gate(
            table,
            key,
            policy=policy,
            cost=cost,
            exempt=exempt,
            missing_status=missing_status,
            name=name,
            capacity=capacity,
            headers=headers,
        )

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = self.gate.decide(environ)
        if answer.refused is not None:
            start_response(f"{int(answer.refused)} {answer.refused.phrase}", answer.all_fields())
            return [answer.body(environ.get("REQUEST_METHOD"))]
        if not answer.fields:
            return self.app(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            return start_response(status, [*headers, *answer.fields], *error)

        return self.app(environ, start)
