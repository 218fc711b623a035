"""Pacing of outgoing requests: a client finds the rate that each host accepts. Experimental.

    pace = pacing.Pacing()
    session = requests.Session()
    session.mount("https://", pacing.requests_adapter(pace))

    httpx.Client(transport=pacing.httpx_transport(pace))
    httpx.AsyncClient(transport=pacing.httpx_async_transport(pace))
    aiohttp.ClientSession(middlewares=[pacing.aiohttp_middleware(pace)])

An answer with 429 lowers the rate of its host, and other answers raise it. Retry-After stops all
requests to the host until that time. So do the RateLimit and X-RateLimit- fields when they say that
no permit is left. A host has no limit until it answers with 429.

Pacing delays requests, and repeats none: the program gets the 429 and decides itself. A program
that repeats the request is paced again. One Pacing may be shared by threads, by event loops, and by
sessions of the three libraries.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _core

if TYPE_CHECKING:
    import aiohttp
    import httpx
    import requests.adapters

Ticket = tuple[int, int]

_ALGORITHMS = {"cubic": 0, "aimd": 1}
_UINT64_MOST = (1 << 64) - 1
# A caller with a longer wait wakes and asks again. time.sleep refuses a sleep of centuries.
_SLEEP_MOST = 3600.0


class HostState(NamedTuple):
    """A host at one instant."""

    # Requests per second.
    rate: float
    # The smoothed rate of answers per second. 0 in the first half second.
    measured: float
    # How many callers wait.
    waiting: int
    # Seconds until the pause ends. 0: none.
    paused: float


class Pacing:
    """The rates at which a client sends to its hosts, learned from their answers.

    `algorithm` is "cubic" (the curve of the AWS SDKs' adaptive retry mode) or "aimd" (cut to 0.9,
    and `increase` requests per second more in each second). Rates are requests per second: `least`
    is the floor of each host, `most` its ceiling. `burst` requests may be sent at once after an
    idle time. No answer stops a host for more than `pause_most` seconds. If there are more than
    `hosts` hosts, the one that is idle the longest is forgotten. `clock` returns nanoseconds that
    do not go back."""

    def __init__(
        self,
        *,
        algorithm: Literal["cubic", "aimd"] = "cubic",
        least: float = 0.5,
        most: float = 1e6,
        burst: int = 1,
        increase: float | None = None,
        pause_most: float = 300.0,
        hosts: int = 256,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if algorithm not in _ALGORITHMS:
            raise ValueError(f"algorithm must be 'cubic' or 'aimd', not {algorithm!r}")
        if (increase is None) != (algorithm == "cubic"):
            raise ValueError("increase belongs to the algorithm 'aimd', which needs it")
        if not 1 <= burst < 1 << 32:
            raise ValueError(f"burst must be from 1 to {(1 << 32) - 1}, not {burst!r}")
        self._core = _core.Pacing(
            _ALGORITHMS[algorithm],
            _scaled(least, 1e6),
            _scaled(most, 1e6),
            _scaled(increase or 0.0, 1e6),
            _scaled(pause_most, 1e9),
            burst,
            hosts,
        )
        self._clock = clock
        # The library's pacing is for one thread at a time.
        self._lock = threading.Lock()

    def turn(self, host: str) -> Ticket:
        """The next turn of a host. Ask `wait` until it returns 0, send the request, and call
        `respond`. If the request is not sent, call `leave`."""
        with self._lock:
            return self._core.acquire(host.encode(), self._clock())

    def wait(self, ticket: Ticket) -> float:
        """Seconds to sleep before the next call of `wait`. 0: send now."""
        with self._lock:
            return self._core.wait(ticket, self._clock()) / 1e9

    def leave(self, ticket: Ticket) -> None:
        """Gives a turn back before its request was sent. The callers behind it move up."""
        with self._lock:
            self._core.leave(ticket, self._clock())

    def respond(self, ticket: Ticket, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The host has answered. `headers` are names and values. A request that got no answer needs
        no call."""
        text = "\n".join(f"{name}: {value}" for name, value in headers if _is_about_limits(name))
        with self._lock:
            self._core.respond(ticket, status, text.encode("latin-1", "replace"), time.time_ns(), self._clock())

    def acquire(self, host: str) -> Ticket:
        """Takes the host's next turn, and sleeps until the request may be sent."""
        ticket = self.turn(host)
        try:
            while wait := self.wait(ticket):
                time.sleep(min(wait, _SLEEP_MOST))
        except BaseException:
            self.leave(ticket)
            raise
        return ticket

    async def acquire_async(self, host: str, sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep) -> Ticket:
        """`acquire` in an event loop, with its function that sleeps. A cancelled task gives its
        turn back."""
        ticket = self.turn(host)
        try:
            while wait := self.wait(ticket):
                await sleep(min(wait, _SLEEP_MOST))
        except BaseException:
            self.leave(ticket)
            raise
        return ticket

    def state(self, host: str) -> HostState | None:
        """The state of a host; None if it is unknown or forgotten."""
        with self._lock:
            found = self._core.read(host.encode(), self._clock())
        if found is None:
            return None
        rate, measured, waiting, paused = found
        return HostState(rate / 1e6, measured / 1e6, waiting, paused / 1e9)


def requests_adapter(pace: Pacing, **options: Any) -> requests.adapters.HTTPAdapter:
    """An adapter for requests. Mount it for the prefix of what it paces. `options` are those of
    HTTPAdapter. Its `max_retries` are not paced."""
    from requests.adapters import HTTPAdapter

    class PacedAdapter(HTTPAdapter):
        def send(self, request: requests.PreparedRequest, *args: Any, **keywords: Any) -> requests.Response:
            ticket = pace.acquire(_origin(request.url or ""))
            response = super().send(request, *args, **keywords)
            pace.respond(ticket, response.status_code, response.headers.items())
            return response

    return PacedAdapter(**options)


def httpx_transport(pace: Pacing, transport: httpx.BaseTransport | None = None) -> httpx.BaseTransport:
    """A transport for httpx.Client that paces another one; httpx.HTTPTransport() if not given."""
    import httpx

    inner = httpx.HTTPTransport() if transport is None else transport

    class PacedTransport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            ticket = pace.acquire(_origin(str(request.url)))
            response = inner.handle_request(request)
            pace.respond(ticket, response.status_code, response.headers.multi_items())
            return response

        def close(self) -> None:
            inner.close()

    return PacedTransport()


def httpx_async_transport(pace: Pacing, transport: httpx.AsyncBaseTransport | None = None) -> httpx.AsyncBaseTransport:
    """A transport for httpx.AsyncClient, on asyncio or trio, that paces another one;
    httpx.AsyncHTTPTransport() if not given."""
    import anyio
    import httpx

    inner = httpx.AsyncHTTPTransport() if transport is None else transport

    class PacedTransport(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            ticket = await pace.acquire_async(_origin(str(request.url)), anyio.sleep)
            response = await inner.handle_async_request(request)
            pace.respond(ticket, response.status_code, response.headers.multi_items())
            return response

        async def aclose(self) -> None:
            await inner.aclose()

    return PacedTransport()


def aiohttp_middleware(pace: Pacing) -> aiohttp.ClientMiddlewareType:
    """A client middleware for aiohttp, from version 3.12 on. Each redirect is a request of its
    own."""

    async def paced(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        ticket = await pace.acquire_async(_origin(str(request.url)))
        response = await handler(request)
        pace.respond(ticket, response.status, response.headers.items())
        return response

    return paced


def _scaled(number: float, by: float) -> int:
    return min(max(round(number * by), 0), _UINT64_MOST)


def _is_about_limits(name: str) -> bool:
    lower = name.lower()
    return lower == "retry-after" or lower.startswith(("ratelimit", "x-ratelimit-", "x-rate-limit-"))


def _origin(url: str) -> str:
    """Scheme, host and port of a URL, which have one limit."""
    scheme, _, rest = url.partition("://")
    for end in "/?#":
        rest = rest.partition(end)[0]
    return f"{scheme}://{rest.rpartition('@')[2]}".lower()
