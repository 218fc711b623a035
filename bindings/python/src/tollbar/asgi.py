"""ASGI middleware: app = tollbar.asgi.RateLimit(app, "100/min burst 20"), or as add_middleware of Starlette takes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, MutableMapping
from typing import TYPE_CHECKING, Any

from ._http import BODY, BODY_FIELDS, Gate, client_key
from .lease import Lease
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from ._core import Key

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def by_client(scope: Scope) -> Key:
    """The client's address, as the server says: behind a proxy have the server or a middleware put it right first."""
    client = scope.get("client")
    return client_key(client[0] if client else None)


def _bytes(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in fields]


class RateLimit:
    """Answers 429 with Retry-After for requests above the limit, and tells all of it in RateLimit headers.

    WebSocket handshakes above it are closed before they are accepted, which a server answers with 403. `table` is a
    Table, which may be shared with other processes, a Lease, or a policy, of which a table for `capacity` keys is made. `key` makes
    the key of a request's scope; keys that are in `exempt` pass always.
    """

    def __init__(
        self,
        app: App,
        table: Table | Lease | str | Policy,
        *,
        key: Callable[[Scope], Key] = by_client,
        policy: int | str = 0,
        cost: int = 1,
        exempt: Container[Key] = (),
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool = True,
    ) -> None:
        self.app = app
        self.gate: Gate[Scope] = Gate(
            table, key, policy=policy, cost=cost, exempt=exempt, name=name, capacity=capacity, headers=headers
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        decision = self.gate.decide(scope) if scope["type"] in ("http", "websocket") else None
        if decision is None:
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            if decision:
                await self.app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": "Too Many Requests"})
            return
        fields = self.gate.fields(decision)
        if not decision:
            headers = _bytes(BODY_FIELDS + fields)
            await send({"type": "http.response.start", "status": 429, "headers": headers})
            await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else BODY})
            return
        extra = _bytes(fields)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        await self.app(scope, receive, send_with_headers)
