"""The common part of the WSGI and the ASGI middleware: decisions and headers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Container, Iterable, MutableMapping
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeGuard, TypeVar, Union, cast

from . import _core, address_key, http
from ._alone import warn_of_workers
from ._core import Decision, key_bytes, take_many
from ._errors import TableError
from ._times import Times
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from ._core import Key
    from .lease import Lease

Request = TypeVar("Request")
Chosen = Union[int, str, Policy, None]
"""What a function returns that chooses the policy of a request: a number or a name of the table, or
a policy, which the table gets if it lacks it. None: the request is not limited."""
By = Union[Table, "Lease", str, Policy, Callable[[Request], Union[str, Policy, None]]]
"""What limits: a table, a lease, a policy, or a function that makes the policy of a request."""
Policies = Union[Chosen, tuple[Union[int, str, Policy], ...]]
Under = Union[int, str, tuple[Union[int, str], ...], Callable[[Request], Policies]]
"""The policies of the table under which a request is charged, or a function that chooses them."""
Enabled = Union[bool, Callable[[], object]]
"""Whether requests are limited, or a function that is asked for each."""
Exempt = Union["Container[Key]", "Iterable[Key | IPv4Address | IPv6Address]"]

# What `headers` may name, for http.fields().
_DIALECTS: dict[str, tuple[str, object]] = {
    "legacy": ("legacy", "seconds"),
    "legacy-epoch": ("legacy", "epoch"),
    "draft-06": ("draft", 6),
    "draft-07": ("draft", 7),
    "draft-11": ("draft", 11),
}


def _dialects(headers: bool | str | tuple[str, ...]) -> dict[str, object]:
    """The arguments of http.fields()."""
    named = ("draft-11",) if headers is True else () if headers is False else (headers,) if isinstance(headers, str) else headers
    chosen: dict[str, object] = {"legacy": None, "draft": None}
    for name in named:
        if name not in _DIALECTS:
            raise ValueError(f"headers names {', '.join(map(repr, _DIALECTS))}, or is a bool, not {name!r}")
        kind, value = _DIALECTS[name]
        if chosen[kind] is not None:
            raise ValueError(f"headers has at most one {kind} dialect, not {named!r}")
        chosen[kind] = value
    return chosen


def _printable(name: str) -> str:
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"a name in a header is printable ASCII, not {name!r}")
    return name


def client_key(address: str | None) -> Key:
    """The key of a client's address, with or without a port: the /64 of an IPv6 address, the text
    itself if it is no address, and no key for None."""
    if not address:
        return None
    try:
        return address_key(address)
    except ValueError:
        return address


Peer = Callable[[Request], "tuple[str | None, Iterable[str]]"]


def key_function(
    key: Callable[[Request], Key], by_client: Callable[[Request], Key], proxies: str | Iterable[str], peer: Peer[Request]
) -> Callable[[Request], Key]:
    """The key function of a middleware: `key` or, if the middleware is given trusted proxies, one
    for the clients behind them. `peer` returns the address of the connection, None for a Unix
    socket, and the values of X-Forwarded-For."""
    if not proxies:
        return key
    if key is not by_client:
        raise TypeError("proxies: they find the client for the usual key; expected no `key` beside them")
    networks = b"".join(_network(text) for text in ((proxies,) if isinstance(proxies, str) else proxies))

    def by_client_behind(request: Request) -> Key:
        address, forwarded = peer(request)
        try:
            return _core.client_key(address or "", ",".join(forwarded), networks)
        except ValueError:
            return address or None

    return by_client_behind


def _network(text: str) -> bytes:
    try:
        return _core.network(text)
    except ValueError:
        expected = 'a network such as "10.0.0.0/8", without bits beyond its prefix, an address, or "unix:"'
        raise ValueError(f"proxies: expected {expected}, not {text!r}") from None


def exempt_keys(exempt: Exempt) -> Container[bytes | None] | None:
    """The keys that are exempt, as tables know them; of an address as people write it, its key,
    too. None: a container that cannot be iterated over, which is to be asked with the keys as they
    are made."""
    if isinstance(exempt, (str, bytes)):
        raise TypeError(f"exempt is a set or a list of keys, not one key ({exempt!r})")
    if not isinstance(exempt, Iterable):
        return None
    keys = set()
    for key in exempt:
        if isinstance(key, (IPv4Address, IPv6Address)):
            key = str(key)
        keys.add(key_bytes(key))
        if isinstance(key, str):
            host, slash, _ = key.partition("/")
            try:
                keys.add(address_key(host))
            except ValueError:
                continue
            if slash:
                raise ValueError(
                    f"exempt: {key!r} is a network; expected single addresses, or an object whose __contains__ is given the key"
                )
    return keys


class Response(NamedTuple):
    """The application's response after all of it has been sent."""

    # The status of the response: 500 if the application raised an exception before it began to
    # answer.
    status: int
    headers: list[tuple[str, str]]
    # The bytes of the body.
    sent: int


class Refusal(NamedTuple):
    """The response to a request that is refused. The hook `refuse` may return another:
    refusal._replace(status=503, body=b"later")."""

    status: int
    # Content-Type first. Content-Length is added when the hook has returned.
    headers: list[tuple[str, str]]
    body: bytes


class Answer(NamedTuple):
    """The decision of one layer on a request."""

    # The status of the refusal. None: the request is admitted.
    refused: HTTPStatus | None
    # The body of the refusal.
    text: str = ""
    # The key to charge after the response.
    key: bytes | None = None
    # None: the request has no key, or an exempt one. Of several policies it is that of the one that
    # binds.
    decision: Decision | None = None
    # The policy under which to charge the key.
    policy: int | str = 0


PASSES = Answer(None)

Fields = list[tuple[str, str]]


class Layers:
    """The limits that the layers of one request have asked: middleware, dependencies, decorators,
    each a Gate. So the fields of the response describe all of them, once, whatever the order of the
    layers; and a layer that refuses gives back what the others were charged."""

    NAME = "tollbar.layers"
    """Where the request keeps it: in its scope or its environ."""

    def __init__(self) -> None:
        self._asked: list[tuple[Gate[Any], list[http.Limit], _Charged | None]] = []

    @classmethod
    def of(cls, request: MutableMapping[str, Any]) -> tuple[Layers, bool]:
        """The layers of a request, and whether the caller is the outermost one, which writes the
        fields."""
        layers = request.get(cls.NAME)
        if layers is not None:
            return layers, False
        layers = request[cls.NAME] = cls()
        return layers, True

    def add(self, gate: Gate[Any], limits: list[http.Limit], charged: _Charged | None) -> None:
        self._asked.append((gate, limits, charged))

    def give_back(self) -> None:
        """Gives back what the layers so far were charged. A policy that takes nothing back stays
        charged (docs/table.md), and so do leases and a layer of several policies."""
        for place, (gate, _, charged) in enumerate(self._asked):
            if charged is not None:
                charged.table.settle(charged.receipt, 0)
                decision = charged.table.peek(charged.key, charged.cost, charged.policy)
                self._asked[place] = gate, [gate._limit(charged.key, charged.cost, charged.policy, decision)], None

    def fields(self) -> Fields:
        """Retry-After of a refusal, and each dialect that a layer names, with the limits of the
        layers that name it."""
        if len(self._asked) == 1:
            [(gate, limits, _)] = self._asked
            return http.fields(limits, **gate.dialects) if limits else []  # type: ignore[arg-type]
        made = _written([limit for _, limits, _ in self._asked for limit in limits], "retry_after", True)
        for kind in ("legacy", "draft"):
            for name in dict.fromkeys(gate.dialects[kind] for gate, _, _ in self._asked):
                limits = [limit for gate, limits, _ in self._asked if gate.dialects[kind] == name for limit in limits]
                made += _written(limits, kind, name)
        return made

    def fields_beside(self, own: Iterable[str]) -> Fields:
        """The fields that go beside those with the names `own`, which the application has set
        itself. Of X-RateLimit-, RateLimit and Retry-After, its own ones stay as they are, because
        numbers of two writers in one family would contradict each other."""
        families = {_family(name) for name in own}
        return [(name, value) for name, value in self.fields() if _family(name) not in families]


# http.fields() takes no more limits.
_MOST = 16


def _written(limits: list[http.Limit], kind: str, name: object) -> Fields:
    if len(limits) > _MOST:
        limits = sorted(limits, key=lambda limit: bool(limit.decision))[:_MOST]
    dialects: dict[str, Any] = {"retry_after": False, "legacy": None, "draft": None}
    return http.fields(limits, **{**dialects, kind: name}) if limits and name is not None else []


def _family(name: str) -> str:
    name = name.lower()
    return next((family for family in ("x-ratelimit", "ratelimit") if name.startswith(family)), name)


class _Charged(NamedTuple):
    """What a layer was charged, and how it gets it back."""

    table: Table
    key: bytes
    cost: int
    policy: int | str
    receipt: bytes


def phrase(status: int) -> str:
    """The words of a status line."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Refused"


TOO_MANY = HTTPStatus.TOO_MANY_REQUESTS


def _is_lease(thing: object) -> TypeGuard[Lease]:
    # A lease exists only if tollbar.lease has been imported. Importing it here would load
    # libtollbar-redis.
    module = sys.modules.get(f"{__package__}.lease")
    return module is not None and isinstance(thing, module.Lease)


_SEVERAL = "policy: several policies are charged together and before the response"


class Gate(Generic[Request]):
    """Decides requests, and makes the headers for the decision."""

    def __init__(
        self,
        table: By[Request],
        key: Callable[[Request], Key],
        *,
        policy: Under[Request] = 0,
        cost: int | Callable[[Request], int] = 1,
        charge: Callable[[Request, Response], int] | None = None,
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
        self.table: Table | Lease
        # What chooses the policies of a request, if they are not the same for all.
        self._choose = policy if callable(policy) else None
        self._policies = () if callable(policy) else policy if isinstance(policy, tuple) else (policy,)
        if isinstance(table, Table) or _is_lease(table):
            self.table = table
        elif callable(table):
            if policy != 0:
                raise TypeError("policy: the function makes the policy of each request; expected no `policy` beside it")
            # Its own policy is no request's.
            self.table, self._choose = Table("1/s", capacity), policy_of(table)
        else:
            self.table = Table(cast("str | Policy", table), capacity)
        # Of a policy each process makes a table of its own. With the first request the other
        # workers have been started.
        self._warns = self.table is not table
        self.key = key
        count = 1 if self._choose is not None else len(self._policies)
        if count == 0 or (count > 1 and (charge is not None or not isinstance(self.table, Table))):
            raise TypeError(f"{_SEVERAL}; expected a Table, and no charge")
        if not isinstance(self.table, Table) and (charge is not None or self._choose is not None):
            raise TypeError(
                "charge, policy: a lease has one policy and is charged before the response; expected a Table or a policy"
            )
        self.cost = cost
        self.charge = charge
        self.refuse = refuse
        self.skip = skip
        self.enabled = enabled
        self.exempt = exempt
        self._exempt = exempt_keys(exempt)
        status = HTTPStatus(missing_status)
        if status < 400:
            raise ValueError(f"missing_status is a status that refuses, 400 to 599, not {missing_status}")
        self._missing = Answer(status, f"{status.phrase}: the request has no key that it could be counted by")
        self.dialects = _dialects(headers)
        if times is not None:
            self.decide = times._of(self.decide)  # type: ignore[method-assign]
        self.name = name
        for one in (name, *self._policies):
            if isinstance(one, str):
                _printable(one)

    def decide(self, request: Request, layers: Layers) -> Answer:
        """Decides, and adds the limits to those of the request's other layers."""
        enabled, skip = self.enabled, self.skip
        if not (enabled() if callable(enabled) else enabled) or (skip is not None and skip(request)):
            return PASSES
        made = self.key(request)
        key = key_bytes(made)
        if (made in self.exempt) if self._exempt is None else key in self._exempt:
            return PASSES
        policies = self._policies if self._choose is None else self._chosen(request)
        if not policies:
            return PASSES
        if self._warns:
            self._warns = False
            warn_of_workers(cast("Table", self.table)._text(policies[0]))
        cost = self.cost(request) if callable(self.cost) else self.cost
        charged, policy = None, policies[0]
        if not isinstance(self.table, Table):
            # Requests without a key share the limit for all.
            decision = self.table.check(key, cost)
        elif key is None:
            answer = self._without_key(self.table, cost, policy)
            if answer.refused is not None:
                layers.give_back()
            return answer
        elif len(policies) > 1:
            taken = take_many([(self.table, key, cost, one) for one in policies])
            decided = zip(policies, taken.decisions)
            limits = [self._limit(key, cost, one, decision, several=True) for one, decision in decided]
            return self._answer(taken.decisions[taken.bound], limits, layers)
        elif self.charge is not None:
            decision = self._look(self.table, key, cost, policy)
        else:
            decision, receipt = self.table.take(key, cost, policy)
            charged = None if receipt is None else _Charged(self.table, key, cost, policy, receipt)
        return self._answer(decision, [self._limit(key, cost, policy, decision)], layers, charged, key, policy)

    def reset_all(self) -> None:
        """Lets all keys of the table begin anew."""
        if not isinstance(self.table, Table):
            raise TypeError("reset_all: the permits of a lease are in its store; expected a Table or a policy")
        self.table.reset_all()

    def _chosen(self, request: Request) -> tuple[int | str, ...]:
        """The policies of the request; none if it is not limited."""
        chosen = cast("Callable[[Request], Any]", self._choose)(request)
        if chosen is None:
            return ()
        policies = chosen if isinstance(chosen, tuple) else (chosen,)
        if len(policies) > 1 and self.charge is not None:
            raise TypeError(f"{_SEVERAL}; expected one policy beside charge")
        return tuple(cast("Table", self.table)._number_of(one) for one in policies)

    def refusal(self, request: Request, answer: Answer, fields: Fields) -> Refusal:
        """The response to a request that the answer refuses. `fields` are those of all layers, or
        none if a layer further out writes them."""
        headers = [("Content-Type", "text/plain; charset=utf-8"), *fields]
        refusal = Refusal(int(answer.refused or TOO_MANY), headers, f"{answer.text}\n".encode())
        if self.refuse is not None:
            refusal = self.refuse(request, refusal)
        return refusal._replace(headers=[*refusal.headers, ("Content-Length", str(len(refusal.body)))])

    def _answer(
        self,
        decision: Decision,
        limits: list[http.Limit],
        layers: Layers,
        charged: _Charged | None = None,
        key: bytes | None = None,
        policy: int | str = 0,
    ) -> Answer:
        if not decision:
            layers.give_back()
            charged = None
        layers.add(self, limits, charged)
        if not decision:
            return Answer(TOO_MANY, TOO_MANY.phrase, None, decision)
        return Answer(None, "", key, decision, policy)

    def _look(self, table: Table, key: bytes, cost: int, policy: int | str) -> Decision:
        """Peeks. A refused peek is followed by a check at the same time, which is refused, too, and
        counts in the statistics and toward a ban."""
        now = table.now()
        decision = table.peek(key, cost, policy, at=now)
        return decision if decision else table.check(key, cost, policy, at=now)

    def after(self, request: Request, answer: Answer, response: Response) -> None:
        """Charges the permits that `charge` returns for the response."""
        if self.charge is not None and answer.key is not None and isinstance(self.table, Table):
            cost = int(self.charge(request, response))
            if cost > 0:
                self.table.charge(answer.key, cost, answer.policy)

    def _without_key(self, table: Table, cost: int, policy: int | str) -> Answer:
        """As the table's `missing` says: "allow" lets it pass; "deny" and "report" refuse it with a
        status that says so."""
        try:
            passes = table.allow(None, cost, policy)
        except TableError as error:
            if error.name != "TOLLBAR_E_MISSING_KEY":
                raise
            passes = False
        return PASSES if passes else self._missing

    def _limit(
        self, key: bytes | None, cost: int, policy: int | str, decision: Decision, several: bool = False
    ) -> http.Limit:
        """The limit for the fields. Of several policies each has its own name."""
        name = None if several else self.name
        if name is None:
            name = policy if isinstance(policy, str) else "default"
        table = self.table
        if not isinstance(table, Table):
            # Only the store knows when more permits are left. A refusal has an estimate.
            return http.Limit(name, table._policy, decision)
        # Another thread or process may have changed the policy.
        more = table.more_after(decision, key, cost, policy)
        return http.Limit(name, table._text(policy), decision, more)


def policy_of(function: Callable[..., str | Policy | None]) -> Callable[..., Policy | None]:
    """`function`, whose texts become policies: in a table a text is a name."""

    def chosen(*args: Any, **kwargs: Any) -> Policy | None:
        made = function(*args, **kwargs)
        return _parsed(made) if isinstance(made, str) else made

    return chosen


# Plans have few texts, and each request has one of them.
_parsed = functools.lru_cache(1024)(Policy)


class Limits(Generic[Request]):
    """What the middleware and the decorators of all frameworks have."""

    gate: Gate[Request]

    def reset_all(self) -> None:
        """Lets all keys begin anew: all keys of the table, under each of its policies. It is for
        tests and for operators. TypeError with a lease."""
        self.gate.reset_all()
