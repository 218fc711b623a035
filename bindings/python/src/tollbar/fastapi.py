"""A dependency of FastAPI: Depends(tollbar.fastapi.RateLimit("100/min")). asgi.RateLimit limits a
whole application."""

# Without `from __future__ import annotations`, because FastAPI reads the annotations of __call__.
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, Response, WebSocketException
from fastapi.requests import HTTPConnection

from . import _http
from ._http import By, Enabled, Exempt, Gate, Layers, Limits, Refusal, Under, client_key, key_function
from ._times import Times
from .asgi import App, Receive, Scope, Send, with_fields, with_response

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: HTTPConnection) -> "Key":
    """The client's address as the server passes it."""
    return client_key(request.client.host if request.client else None)


def _peer(request: HTTPConnection) -> tuple[str | None, list[str]]:
    return request.client.host if request.client else None, request.headers.getlist("X-Forwarded-For")


class RateLimit(Limits[Any]):
    """Refuses requests above the limit with an HTTPException, by default 429 with Retry-After, and
    adds RateLimit headers to the response. The handshake of a WebSocket above it is refused with a
    WebSocketException.

    The options are those of asgi.RateLimit. The functions get the Request, or the WebSocket: their
    types may name the one that the routes have.
    `charge` needs the middleware Fields, which sees the response.

    FastAPI adds a dependency's headers to the values that a route returns, and not to a Response
    that it returns or to an exception that it raises: for these, add the middleware Fields."""

    def __init__(
        self,
        table: By[Any],
        *,
        key: Callable[[Any], "Key"] = by_client,
        proxies: str | Iterable[str] = (),
        policy: Under[Any] = 0,
        cost: int | Callable[[Any], int] = 1,
        charge: Callable[[Any, _http.Response], int] | None = None,
        refuse: Callable[[Any, Refusal], Refusal] | None = None,
        skip: Callable[[Any], object] | None = None,
        exempt: Exempt = (),
        enabled: Enabled = True,
        missing_status: int = 403,
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool | str | tuple[str, ...] = True,
        times: Times | None = None,
    ) -> None:
        self.gate = Gate(
            table,
            key_function(key, by_client, proxies, _peer),
            policy=policy,
            cost=cost,
            charge=charge,
            refuse=refuse,
            skip=skip,
            exempt=exempt,
            enabled=enabled,
            missing_status=missing_status,
            name=name,
            capacity=capacity,
            headers=headers,
            times=times,
        )

    async def __call__(self, connection: HTTPConnection, response: Response) -> None:
        layers, outermost = Layers.of(connection.scope)
        # All dependencies of a request get one `response`, and each writes the fields of those
        # before it again.
        writes = connection.scope.setdefault(_WRITES, outermost)
        answer = self.gate.decide(connection, layers)
        fields = layers.fields() if writes else []
        if answer.refused is None:
            if self.gate.charge is not None:
                if _AFTER not in connection.scope:
                    raise RuntimeError(
                        "charge: a dependency ends before the response; "
                        "expected: app.add_middleware(tollbar.fastapi.Fields), which sees it"
                    )
                connection.scope[_AFTER].append(lambda seen: self.gate.after(connection, answer, seen))
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
    """Middleware that adds the fields of all RateLimit dependencies to every response, and charges
    those with `charge`: app.add_middleware(tollbar.fastapi.Fields)."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            layers, outermost = Layers.of(scope)
            if outermost:
                scope[_WRITES] = False
                send = with_fields(send, layers)
            charges: list[Callable[[_http.Response], None]] = scope.setdefault(_AFTER, [])

            def charge(seen: _http.Response) -> None:
                while charges:
                    charges.pop()(seen)

            await with_response(self.app, scope, receive, send, charge)
        else:
            await self.app(scope, receive, send)


# In a request's scope: whether its dependencies write the fields, because no middleware does.
_WRITES = "tollbar.dependencies_write"
# And those of its dependencies that are charged with the response.
_AFTER = "tollbar.after"

RESPONSES: dict[int | str, dict[str, Any]] = {
    429: {
        "description": "Too many requests",
        "headers": {"Retry-After": {"description": "Seconds until the request would pass", "schema": {"type": "integer"}}},
    }
}
"""What the OpenAPI document says of refusals: FastAPI(responses=tollbar.fastapi.RESPONSES), or a route's."""

__all__ = ["RESPONSES", "Fields", "RateLimit", "by_client"]
