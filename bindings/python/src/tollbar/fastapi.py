"""A dependency of FastAPI: Depends(tollbar.fastapi.RateLimit("100/min")). asgi.RateLimit limits a
whole application."""

# Without `from __future__ import annotations`, because FastAPI reads the annotations of __call__.
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, Response, WebSocketException
from fastapi.requests import HTTPConnection

from ._http import Gate, Layers, client_key, key_function
from .asgi import App, Receive, Scope, Send, with_fields

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: HTTPConnection) -> "Key":
    """The client's address as the server passes it."""
    return client_key(request.client.host if request.client else None)


def _peer(request: HTTPConnection) -> tuple[str | None, list[str]]:
    return request.client.host if request.client else None, request.headers.getlist("X-Forwarded-For")


class RateLimit:
    """Refuses requests above the limit with an HTTPException, by default 429 with Retry-After, and
    adds RateLimit headers to the response. The handshake of a WebSocket above it is refused with a
    WebSocketException.

    The options are those of asgi.RateLimit without `charge`. `key`, `cost` and `refuse` get the
    Request, or the WebSocket.

    FastAPI adds a dependency's headers to the values that a route returns, and not to a Response
    that it returns or to an exception that it raises: for these, add the middleware Fields."""

    def __init__(self, table: Any, *, key: Any = by_client, proxies: Any = (), **options: Any) -> None:
        if "charge" in options:
            raise TypeError("charge: a dependency ends before the response; expected: asgi.RateLimit")
        self.gate: Gate[HTTPConnection] = Gate(table, key_function(key, by_client, proxies, _peer), **options)

    async def __call__(self, connection: HTTPConnection, response: Response) -> None:
        layers, outermost = Layers.of(connection.scope)
        # All dependencies of a request get one `response`, and each writes the fields of those
        # before it again.
        writes = connection.scope.setdefault(_WRITES, outermost)
        answer = self.gate.decide(connection, layers)
        fields = layers.fields() if writes else []
        if answer.refused is None:
            for name, value in fields:
                response.headers[name] = value
        elif connection.scope["type"] == "websocket":
            raise WebSocketException(1008, answer.text)
        else:
            refusal = self.gate.refusal(connection, answer, fields)
            # The exception's handler makes a body in JSON of the text.
            headers = {name: value for name, value in refusal.headers if name not in ("Content-Type", "Content-Length")}
            raise HTTPException(refusal.status, refusal.body.decode().rstrip("\n"), headers)


class Fields:
    """Middleware that adds the fields of all RateLimit dependencies to every response:
    app.add_middleware(tollbar.fastapi.Fields)."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            layers, outermost = Layers.of(scope)
            if outermost:
                scope[_WRITES] = False
                send = with_fields(send, layers)
        await self.app(scope, receive, send)


# In a request's scope: whether its dependencies write the fields, because no middleware does.
_WRITES = "tollbar.dependencies_write"

RESPONSES: dict[int | str, dict[str, Any]] = {
    429: {
        "description": "Too many requests",
        "headers": {"Retry-After": {"description": "Seconds until the request would pass", "schema": {"type": "integer"}}},
    }
}
"""What the OpenAPI document says of refusals: FastAPI(responses=tollbar.fastapi.RESPONSES), or a route's."""

__all__ = ["RESPONSES", "Fields", "RateLimit", "by_client"]
