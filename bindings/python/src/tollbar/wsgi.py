"""WSGI middleware: app = tollbar.wsgi.RateLimit(app, "100/min burst 20")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ._http import (
    Answer,
    By,
    Enabled,
    Exempt,
    Gate,
    Layers,
    Limits,
    Refusal,
    Response,
    Under,
    client_key,
    key_function,
    phrase,
)
from ._times import Times

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from ._core import Key


def by_client(environ: WSGIEnvironment) -> Key:
    """The client's address as the server passes it. Behind a proxy it is the proxy's, unless the
    server, a middleware or `proxies` finds the client."""
    return client_key(environ.get("REMOTE_ADDR"))


def _peer(environ: WSGIEnvironment) -> tuple[str | None, list[str]]:
    return environ.get("REMOTE_ADDR"), [environ.get("HTTP_X_FORWARDED_FOR", "")]


class RateLimit(Limits["WSGIEnvironment"]):
    """Answers requests above the limit with 429 and Retry-After, and adds RateLimit headers to
    every response.

    `table` is a Table, which may be shared with other processes, a Lease, or a policy, of which a
    table for `capacity` keys is made. `key` makes the key of a request's environ. Keys in `exempt`
    always pass; an address there is text, or of ipaddress, and an IPv6 address stands for its /64.
    A request without a key gets what the table's `missing` says: "allow" lets it pass, and of
    "deny" and "report" it gets `missing_status`.

    Behind proxies, name their networks: with `proxies=("10.0.0.0/8",)` the client is the right-most
    address in X-Forwarded-For that none of them has. "unix:" names proxies that connect by a Unix
    socket. From other peers the header does not count.

    `policy` may be a tuple of policies of the table: then a request is charged under all of them,
    or under none. `cost` is a number, or makes one of the request's environ.

    `table` may be a function that makes a request's policy, such as that of the user's plan, and
    `policy` one that chooses policies of the table by name or as a Policy, which the table gets if
    it lacks it. None from such a function, a true value from `skip`, and a false one from
    `enabled` (or `enabled=False`) let the request pass uncounted. A user who changes plans begins
    anew under the new policy.

    The hook `refuse(environ, refusal)` may return another refusal, with a `status`, `headers` and a
    `body` of its own.

    `headers` names the dialects of the header fields: "draft-11" (the same as True), "draft-07" or
    "draft-06", and "legacy" or "legacy-epoch" for X-RateLimit-; a tuple of them; or False for
    Retry-After alone. tollbar.http writes them for other frameworks.

    `times` gets the time that one in 1024 requests spends in the decision (tollbar.Times).

    With `charge` the middleware only peeks before the application, and charges the request after
    it: `charge(environ, response)` gets what the application answered (`status`, `headers`, and the
    bytes of the body in `sent`) and returns the permits, 0 or False for none. So
    `RateLimit(app, "5/min ban 1h", charge=lambda environ, response: response.status == 401)` bans
    an address after five wrong passwords.
    """

    def __init__(
        self,
        app: WSGIApplication,
        table: By[WSGIEnvironment],
        *,
        key: Callable[[WSGIEnvironment], Key] = by_client,
        proxies: str | Iterable[str] = (),
        policy: Under[WSGIEnvironment] = 0,
        cost: int | Callable[[WSGIEnvironment], int] = 1,
        charge: Callable[[WSGIEnvironment, Response], int] | None = None,
        refuse: Callable[[WSGIEnvironment, Refusal], Refusal] | None = None,
        skip: Callable[[WSGIEnvironment], object] | None = None,
        exempt: Exempt = (),
        enabled: Enabled = True,
        missing_status: int = 403,
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool | str | tuple[str, ...] = True,
        times: Times | None = None,
    ) -> None:
        self.app = app
        self.gate: Gate[WSGIEnvironment] = Gate(
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

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        layers, outermost = Layers.of(environ)
        answer = self.gate.decide(environ, layers)
        if answer.refused is not None:
            refusal = self.gate.refusal(environ, answer, layers.fields() if outermost else [])
            start_response(f"{refusal.status} {phrase(refusal.status)}", refusal.headers)
            return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else refusal.body]

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
            if outermost:
                headers = [*headers, *layers.fields_beside(name for name, _ in headers)]
            return start_response(status, headers, *error)

        if self.gate.charge is not None:
            return _Charged(self, environ, start, answer)
        return self.app(environ, start)


class _Charged:
    """The body of an answer that is charged when the server has sent it, or has given it up."""

    def __init__(
        self, limit: RateLimit, environ: WSGIEnvironment, start_response: StartResponse, answer: Answer
    ) -> None:
        self._limit, self._environ, self._start, self._answer = limit, environ, start_response, answer
        self._status, self._headers, self._sent = 500, list[tuple[str, str]](), 0
        try:
            self._body = limit.app(environ, self._begin)
            self._pieces = iter(self._body)
        except BaseException:
            self._after()
            raise

    def _begin(self, status: str, headers: list[tuple[str, str]], *error: Any) -> Callable[[bytes], object]:
        self._status, self._headers = int(status[:3]), headers
        write = self._start(status, headers, *error)

        def write_and_count(data: bytes) -> object:
            self._sent += len(data)
            return write(data)

        return write_and_count

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._sent += len(piece)
        return piece

    def close(self) -> None:
        try:
            close: Callable[[], object] | None = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._after()

    def _after(self) -> None:
        self._limit.gate.after(self._environ, self._answer, Response(self._status, self._headers, self._sent))
