"""A dependency of FastAPI: Depends(tollbar.fastapi.RateLimit("100/min")). asgi.RateLimit limits a whole application."""

# Without `from __future__ import annotations`, because FastAPI reads the annotations of __call__.
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException, Request, Response

from ._http import Gate, client_key, key_function

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: Request) -> "Key":
    """The client's address as the server passes it."""
    return client_key(request.client.host if request.client else None)


def _peer(request: Request) -> tuple[str | None, list[str]]:
    return request.client.host if request.client else None, request.headers.getlist("X-Forwarded-For")


class RateLimit:
    """Refuses requests above the limit with an HTTPException, by default 429 with Retry-After, and adds RateLimit headers to the response.

    The options are those of asgi.RateLimit without `charge`. `key`, `cost` and `refuse` get the Request."""

    def __init__(self, table: Any, *, key: Any = by_client, proxies: Any = (), **options: Any) -> None:
        if "charge" in options:
            raise TypeError("charge: a dependency ends before the response; expected: asgi.RateLimit")
        self.gate: Gate[Request] = Gate(table, key_function(key, by_client, proxies, _peer), **options)

    async def __call__(self, request: Request, response: Response) -> None:
        answer = self.gate.decide(request)
        if answer.refused is not None:
            refusal = self.gate.refusal(request, answer)
            # The exception's handler makes a body in JSON of the text.
            headers = {name: value for name, value in refusal.headers if name not in ("Content-Type", "Content-Length")}
            raise HTTPException(refusal.status, refusal.body.decode().rstrip("\n"), headers)
        for name, value in answer.fields:
            response.headers[name] = value


__all__ = ["RateLimit", "by_client"]
