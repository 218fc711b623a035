"""ASGI middleware: app = tollbar.asgi.RateLimit(app, "100/min burst 20"), or as add_middleware of
Starlette takes it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any

from ._http import By, Enabled, Exempt, Fields, Gate, Layers, Limits, Refusal, Response, Under, client_key, key_function
from ._times import Times

if TYPE_CHECKING:
    from ._core import Key

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def by_client(scope: Scope) -> Key:
    """The client's address as the server passes it. Behind a proxy it is the proxy's, unless the
    server, a middleware or `proxies` finds the client."""
    return client_key(_address(scope))


def _address(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _peer(scope: Scope) -> tuple[str | None, list[str]]:
    return _address(scope), [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]


def _bytes(fields: Fields) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> Fields:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def with_fields(send: Send, layers: Layers) -> Send:
    """Adds the fields of all layers to the response that the application sends."""

    async def send_with_fields(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = message.get("headers", ())
            fields = layers.fields_beside(name.decode("latin-1") for name, _ in headers)
            message = {**message, "headers": [*headers, *_bytes(fields)]}
        await send(message)

    return send_with_fields


class RateLimit(Limits[Scope]):
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to
    every response.

    WebSocket handshakes above it are closed before they are accepted, which a server answers with
    403. `table` is a Table, which may be shared with other processes, a Lease, or a policy, of
    which a table for `capacity` keys is made. `key` makes the key of a request's scope. Keys in
    `exempt` always pass; an address there is text, or of ipaddress, and an IPv6 address stands for
    its /64. A request without a key gets what the table's `missing` says: "allow" lets it pass, and
    of "deny" and "report" it gets `missing_status`.

    Behind proxies, name their networks: with `proxies=("10.0.0.0/8",)` the client is the right-most
    address in X-Forwarded-For that none of them has. "unix:" names proxies that connect by a Unix
    socket. From other peers the header does not count.

    `policy` may be a tuple of policies of the table: then a request is charged under all of them,
    or under none. `cost` is a number, or makes one of the request's scope.

    `table` may be a function that makes a request's policy, such as that of the user's plan, and
    `policy` one that chooses policies of the table by name or as a Policy, which the table gets if
    it lacks it. None from such a function, a true value from `skip`, and a false one from
    `enabled` (or `enabled=False`) let the request pass uncounted. A user who changes plans begins
    anew under the new policy.

    The hook `refuse(scope, refusal)` may return another refusal, with a `status`, `headers` and a
    `body` of its own.

    `headers` names the dialects of the header fields: "draft-11" (the same as True), "draft-07" or
    "draft-06", and "legacy" or "legacy-epoch" for X-RateLimit-; a tuple of them; or False for
    Retry-After alone. tollbar.http writes them for other frameworks.

    `times` gets the time that one in 1024 requests spends in the decision (tollbar.Times).

    With `charge` the middleware only peeks before the application, and charges the request after
    it: `charge(scope, response)` gets what the application answered (`status`, `headers`, and the
    bytes of the body in `sent`) and returns the permits, 0 or False for none. So
    `RateLimit(app, "5/min ban 1h", charge=lambda scope, response: response.status == 401)` bans an
    address after five wrong passwords. The response to a WebSocket's handshake has the status 101
    if the application accepts it and 403 if it closes it, or the application's own; messages do not
    count.
    """

    def __init__(
        self,
        app: App,
        table: By[Scope],
        *,
        key: Callable[[Scope], Key] = by_client,
        proxies: str | Iterable[str] = (),
        policy: Under[Scope] = 0,
        cost: int | Callable[[Scope], int] = 1,
        charge: Callable[[Scope, Response], int] | None = None,
        refuse: Callable[[Scope, Refusal], Refusal] | None = None,
        skip: Callable[[Scope], object] | None = None,
        exempt: Exempt = (),
        enabled: Enabled = True,
        missing_status: int = 403,
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool | str | tuple[str, ...] = True,
        times: Times | None = None,
    ) -> None:
        self.app = app
        self.gate: Gate[Scope] = Gate(
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        layers, outermost = Layers.of(scope)
        answer = self.gate.decide(scope, layers)
        if answer.refused is None:
            if outermost:
                send = with_fields(send, layers)
            if self.gate.charge is None:
                await self.app(scope, receive, send)
            else:
                charge = functools.partial(self.gate.after, scope, answer)
                await with_response(self.app, scope, receive, send, charge)
        elif kind == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": answer.refused.phrase})
        else:
            refusal = self.gate.refusal(scope, answer, layers.fields() if outermost else [])
            await send({"type": "http.response.start", "status": refusal.status, "headers": _bytes(refusal.headers)})
            await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else refusal.body})


async def with_response(
    app: App, scope: Scope, receive: Receive, send: Send, after: Callable[[Response], None]
) -> None:
    """Calls the application, and `after` once with its response."""
    seen, called = Response(500, [], 0), False

    def call() -> None:
        nonlocal called
        if not called:
            called = True
            after(seen)

    async def send_and_see(message: Message) -> None:
        nonlocal seen
        kind, headers = message["type"].removeprefix("websocket."), _texts(message.get("headers") or ())
        if kind == "http.response.start":
            seen = Response(message["status"], headers, 0)
        elif kind == "http.response.body":
            seen = seen._replace(sent=seen.sent + len(message.get("body", b"")))
        # A WebSocket stays open for long, so it is charged when its handshake has been answered.
        elif kind in ("accept", "close") and not called:
            seen = Response(101 if kind == "accept" else 403, headers, 0)
            call()
        await send(message)

    try:
        await app(scope, receive, send_and_see)
    finally:
        call()
