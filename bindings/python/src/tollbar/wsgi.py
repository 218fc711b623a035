"""WSGI middleware: app = tollbar.wsgi.RateLimit(app, "100/min burst 20")."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any

from ._http import BODY, BODY_FIELDS, Gate, client_key
from .lease import Lease
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from ._core import Key


def by_client(environ: WSGIEnvironment) -> Key:
    """The client's address, as the server says: behind a proxy have the server or a middleware put it right first."""
    return client_key(environ.get("REMOTE_ADDR"))


class RateLimit:
    """Answers 429 with Retry-After for requests above the limit, and tells all of it in RateLimit headers.

    `table` is a Table, which may be shared with other processes, a Lease, or a policy, of which a table for `capacity` keys is
    made. `key` makes the key of a request's environ; keys that are in `exempt` pass always.
    """

    def __init__(
        self,
        app: WSGIApplication,
        table: Table | Lease | str | Policy,
        *,
        key: Callable[[WSGIEnvironment], Key] = by_client,
        policy: int | str = 0,
        cost: int = 1,
        exempt: Container[Key] = (),
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool = True,
    ) -> None:
        self.app = app
        self.gate: Gate[WSGIEnvironment] = Gate(
            table, key, policy=policy, cost=cost, exempt=exempt, name=name, capacity=capacity, headers=headers
        )

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        decision = self.gate.decide(environ)
        if decision is None:
            return self.app(environ, start_response)
        fields = self.gate.fields(decision)
        if not decision:
            start_response("429 Too Many Requests", BODY_FIELDS + fields)
            return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else BODY]

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            return start_response(status, [*headers, *fields], *error)

        return self.app(environ, start)
