"""Limits of Flask's views: limit = tollbar.flask.RateLimit("100/min"), then @limit on a view, or limit.init_app(app) for all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flask import Flask, Request, Response, current_app, g, make_response, request

from ._http import Gate, client_key, key_function

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: Request) -> Key:
    """The client's address as the server passes it."""
    return client_key(request.remote_addr)


def _peer(request: Request) -> tuple[str | None, list[str]]:
    return request.remote_addr, request.headers.getlist("X-Forwarded-For")


class RateLimit:
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to the responses.

    The options are those of wsgi.RateLimit without `charge`. `key`, `cost` and `refuse` get flask.request."""

    def __init__(self, table: Any, *, key: Any = by_client, proxies: Any = (), **options: Any) -> None:
        if "charge" in options:
            raise TypeError("charge: a view's limit ends before the response is sent; expected: wsgi.RateLimit")
        self.gate: Gate[Request] = Gate(table, key_function(key, by_client, proxies, _peer), **options)

    def __call__(self, view: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(view)
        def limited(*args: Any, **kwargs: Any) -> Any:
            refused, fields = self._decide()
            if refused is not None:
                return refused
            response = make_response(current_app.ensure_sync(view)(*args, **kwargs))
            response.headers.extend(fields)
            return response

        return limited

    def init_app(self, app: Flask) -> None:
        """Limits all requests of the application."""
        app.before_request(self._before)
        app.after_request(self._after)

    def _decide(self) -> tuple[Response | None, list[tuple[str, str]]]:
        answer = self.gate.decide(request)
        if answer.refused is None:
            return None, answer.fields
        refusal = self.gate.refusal(request, answer)
        return Response(refusal.body, refusal.status, refusal.headers), []

    def _before(self) -> Response | None:
        refused, fields = self._decide()
        g.setdefault("tollbar_fields", []).extend(fields)
        return refused

    def _after(self, response: Response) -> Response:
        response.headers.extend(g.pop("tollbar_fields", []))
        return response


__all__ = ["RateLimit", "by_client"]
