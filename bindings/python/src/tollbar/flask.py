"""Limits of Flask's views: limit = tollbar.flask.RateLimit("100/min"), then @limit on a view, or
limit.init_app(app) for all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flask import Flask, Request, Response, after_this_request, current_app, request
from werkzeug.exceptions import default_exceptions

from ._http import Gate, Layers, client_key, key_function

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: Request) -> Key:
    """The client's address as the server passes it."""
    return client_key(request.remote_addr)


def _peer(request: Request) -> tuple[str | None, list[str]]:
    return request.remote_addr, request.headers.getlist("X-Forwarded-For")


class RateLimit:
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to the
    responses.

    The options are those of wsgi.RateLimit without `charge`. `key`, `cost` and `refuse` get
    flask.request."""

    def __init__(self, table: Any, *, key: Any = by_client, proxies: Any = (), **options: Any) -> None:
        if "charge" in options:
            raise TypeError("charge: a view's limit ends before the response is sent; expected: wsgi.RateLimit")
        self.gate: Gate[Request] = Gate(table, key_function(key, by_client, proxies, _peer), **options)

    def __call__(self, view: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(view)
        def limited(*args: Any, **kwargs: Any) -> Any:
            refused = self._decide()
            return current_app.ensure_sync(view)(*args, **kwargs) if refused is None else refused

        return limited

    def init_app(self, app: Flask) -> None:
        """Limits all requests of the application."""
        app.before_request(self._decide)

    def _decide(self) -> Response | None:
        """A refused request raises the exception of its status, so that the application's
        errorhandler(429) answers it. Without such a handler, and with the hook `refuse`, the
        response is ours."""
        layers, outermost = Layers.of(request.environ)
        if outermost:
            # It is called for every response: of the view, of abort(), of an error handler.
            after_this_request(functools.partial(_with_fields, layers))
        answer = self.gate.decide(request, layers)
        if answer.refused is None:
            return None
        refusal = self.gate.refusal(request, answer, [])
        response = Response(refusal.body, refusal.status, refusal.headers)
        exception = default_exceptions.get(refusal.status)
        if self.gate.refuse is None and exception is not None:
            raise exception(response=response)
        return response


def _with_fields(layers: Layers, response: Response) -> Response:
    response.headers.extend(layers.fields_beside(response.headers.keys()))
    return response


__all__ = ["RateLimit", "by_client"]
