"""Middleware of Django: MIDDLEWARE = ["tollbar.django.rate_limit", ...], with its options in
TOLLBAR = {"table": "100/min"}.

It serves sync and async applications. The options are those of wsgi.RateLimit, whose functions get
the HttpRequest. `charge` is called before the response is sent: `sent` is the length of its body,
and 0 of a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Required, TypedDict

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

from . import _http
from ._http import PASSES, By, Enabled, Exempt, Gate, Layers, Refusal, Under, client_key, key_function
from ._times import Times

if TYPE_CHECKING:
    from ._core import Key


def by_client(request: HttpRequest) -> Key:
    """The client's address as the server passes it."""
    return client_key(request.META.get("REMOTE_ADDR"))


def _peer(request: HttpRequest) -> tuple[str | None, list[str]]:
    return request.META.get("REMOTE_ADDR"), [request.META.get("HTTP_X_FORWARDED_FOR", "")]


class Options(TypedDict, total=False):
    """The options in TOLLBAR: those of wsgi.RateLimit, whose functions get the HttpRequest."""

    table: Required[By[HttpRequest]]
    key: Callable[[HttpRequest], Key]
    proxies: str | Iterable[str]
    policy: Under[HttpRequest]
    cost: int | Callable[[HttpRequest], int]
    charge: Callable[[HttpRequest, _http.Response], int] | None
    refuse: Callable[[HttpRequest, Refusal], Refusal] | None
    skip: Callable[[HttpRequest], object] | None
    exempt: Exempt
    enabled: Enabled
    missing_status: int
    name: str | None
    capacity: int
    headers: bool | str | tuple[str, ...]
    times: Times | None


def _gate() -> Gate[HttpRequest]:
    options = dict(getattr(settings, "TOLLBAR", {}))
    if "table" not in options:
        raise ImproperlyConfigured('TOLLBAR: expected a dict with "table", a policy or a tollbar.Table')
    key = key_function(options.pop("key", by_client), by_client, options.pop("proxies", ()), _peer)
    return Gate(options.pop("table"), key, **options)


Get = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def rate_limit(get_response: Get) -> Get:
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to the
    responses."""
    return _middleware(get_response, _gate())


@sync_and_async_middleware
def fields(get_response: Get) -> Get:
    """Limits nothing. It adds to each response the RateLimit headers of the limits within, such as
    those of tollbar.drf.Throttle."""
    return _middleware(get_response, None)


def layers_of(request: HttpRequest) -> tuple[Layers, bool]:
    """The layers of a request, and whether the caller is the outermost one."""
    return Layers.of(getattr(request, "scope", request.META))


def _middleware(get_response: Get, gate: Gate[HttpRequest] | None) -> Get:
    def decide(request: HttpRequest) -> tuple[HttpResponse | None, Callable[[HttpResponse], HttpResponse]]:
        """The response to a refused request, and what the response to an admitted one goes
        through."""
        layers, outermost = layers_of(request)
        answer = PASSES if gate is None else gate.decide(request, layers)
        if gate is not None and answer.refused is not None:
            refusal = gate.refusal(request, answer, layers.fields() if outermost else [])
            refused = HttpResponse(refusal.body, status=refusal.status, headers=dict(refusal.headers))
            return refused, lambda response: response

        def finish(response: HttpResponse) -> HttpResponse:
            if gate is not None and gate.charge is not None:
                sent = 0 if response.streaming else len(response.content)
                gate.after(request, answer, _http.Response(response.status_code, list(response.items()), sent))
            for name, value in layers.fields_beside(response.headers) if outermost else ():
                response.headers[name] = value
            return response

        return None, finish

    if iscoroutinefunction(get_response):

        async def limited_async(request: HttpRequest) -> HttpResponse:
            refused, finish = decide(request)
            return refused if refused is not None else finish(await get_response(request))

        return limited_async

    def limited(request: HttpRequest) -> HttpResponse:
        refused, finish = decide(request)
        return refused if refused is not None else finish(get_response(request))

    return limited


__all__ = ["Options", "by_client", "fields", "rate_limit"]
