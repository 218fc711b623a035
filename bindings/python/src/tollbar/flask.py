"""Limits of Flask's views: limit = tollbar.flask.RateLimit("100/min"), then @limit on a view, or
limit.init_app(app) for all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, Request, Response, after_this_request, current_app, request
from werkzeug.exceptions import default_exceptions

from . import _http
from ._http import Answer, By, Enabled, Exempt, Gate, Layers, Limits, Refusal, Under, client_key, key_function
from ._times import Times

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: Request) -> Key:
    """The client's address as the server passes it."""
    return client_key(request.remote_addr)


def _peer(request: Request) -> tuple[str | None, list[str]]:
    return request.remote_addr, request.headers.getlist("X-Forwarded-For")


class RateLimit(Limits[Request]):
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to the
    responses.

    The options are those of wsgi.RateLimit. The functions get flask.request. `charge` is called
    before the response is sent: `sent` is the length of its body, and 0 of a stream."""

    def __init__(
        self,
        table: By[Request],
        *,
        key: Callable[[Request], Key] = by_client,
        proxies: str | Iterable[str] = (),
        policy: Under[Request] = 0,
        cost: int | Callable[[Request], int] = 1,
        charge: Callable[[Request, _http.Response], int] | None = None,
        refuse: Callable[[Request, Refusal], Refusal] | None = None,
        skip: Callable[[Request], object] | None = None,
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
            if self.gate.charge is not None:
                after_this_request(functools.partial(self._charge, answer))
            return None
        refusal = self.gate.refusal(request, answer, [])
        response = Response(refusal.body, refusal.status, refusal.headers)
        exception = default_exceptions.get(refusal.status)
        if self.gate.refuse is None and exception is not None:
            raise exception(response=response)
        return response

    def _charge(self, answer: Answer, response: Response) -> Response:
        # A stream would be read to its end for its length.
        sent = 0 if response.is_streamed else response.calculate_content_length() or 0
        self.gate.after(request, answer, _http.Response(response.status_code, list(response.headers), sent))
        return response


def _with_fields(layers: Layers, response: Response) -> Response:
    response.headers.extend(layers.fields_beside(response.headers.keys()))
    return response


__all__ = ["RateLimit", "by_client"]
