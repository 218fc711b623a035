"""Middleware of Django: MIDDLEWARE = ["tollbar.django.rate_limit", ...], with its options in
TOLLBAR = {"table": "100/min"}.

It serves sync and async applications. The options are those of wsgi.RateLimit without `charge`;
`key`, `cost` and `refuse` get the HttpRequest.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from ._http import Gate, Layers, client_key, key_function

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: HttpRequest) -> Key:
    """The client's address as the server passes it."""
    return client_key(request.META.get("REMOTE_ADDR"))


def _peer(request: HttpRequest) -> tuple[str | None, list[str]]:
    return request.META.get("REMOTE_ADDR"), [request.META.get("HTTP_X_FORWARDED_FOR", "")]


def _gate() -> Gate[HttpRequest]:
    options = dict(getattr(settings, "TOLLBAR", {}))
    if "table" not in options or "charge" in options:
        raise ImproperlyConfigured('TOLLBAR: expected a dict with "table", a policy or a tollbar.Table, and without "charge"')
    key = key_function(options.pop("key", by_client), by_client, options.pop("proxies", ()), _peer)
    return Gate(options.pop("table"), key, **options)


@sync_and_async_middleware
def rate_limit(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to the
    responses."""
    gate = _gate()

    def decide(request: HttpRequest) -> tuple[HttpResponse | None, Layers | None]:
        """The response to a refused request, and the layers whose fields this middleware adds to
        the response."""
        layers, outermost = Layers.of(getattr(request, "scope", request.META))
        answer = gate.decide(request, layers)
        if answer.refused is None:
            return None, layers if outermost else None
        refusal = gate.refusal(request, answer, layers.fields() if outermost else [])
        return HttpResponse(refusal.body, status=refusal.status, headers=dict(refusal.headers)), None

    def add(response: HttpResponse, layers: Layers | None) -> HttpResponse:
        for name, value in layers.fields_beside(response.headers) if layers is not None else ():
            response.headers[name] = value
        return response

    if iscoroutinefunction(get_response):

        async def limited_async(request: HttpRequest) -> HttpResponse:
            refused, layers = decide(request)
            return refused if refused is not None else add(await get_response(request), layers)

        return limited_async

    def limited(request: HttpRequest) -> HttpResponse:
        refused, layers = decide(request)
        return refused if refused is not None else add(get_response(request), layers)

    return limited


__all__ = ["by_client", "rate_limit"]
