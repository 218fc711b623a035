"""The common part of the WSGI and the ASGI middleware: decisions and headers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeGuard, TypeVar, Union, cast

from . import address_key
from ._core import Decision, key_bytes, take_many
from ._errors import TableError
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from ._core import Key, Taken
    from .lease import Lease

Request = TypeVar("Request")
Exempt = Union["Container[Key]", "Iterable[Key | IPv4Address | IPv6Address]"]

# The largest integer of a structured header field (RFC 9651).
_MOST = 999_999_999_999_999
_SECOND = 1_000_000_000


def _seconds(nanoseconds: int) -> int:
    return -(-nanoseconds // _SECOND)


def _quoted(name: str) -> str:
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"a name in a header is printable ASCII, not {name!r}")
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def client_key(address: str | None) -> Key:
    """The key of a client's address: the /64 of an IPv6 address, the text itself if it is no address, and no key for None."""
    if not address:
        return None
    try:
        return address_key(address)
    except ValueError:
        return address


def exempt_keys(exempt: Exempt) -> Container[bytes | None] | None:
    """The keys that are exempt, as tables know them; of an address as people write it, its key, too. None: a container that
    cannot be iterated over, which is to be asked with the keys as they are made."""
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


def until_more(policy: Policy, decision: Decision, cost: int, peek: Callable[[int], Decision]) -> int | None:
    """Nanoseconds until there are more permits than now. None: there are all, there will never be more, or it cannot be said:
    an algorithm that lends lets a request pass that costs more than what is left.

    `peek` says at the time of the decision when so many permits could be taken at once."""
    if not decision and decision.remaining + 1 == cost:
        return decision.retry_after_ns
    if not decision.reset_after_ns or (decision.remaining and policy._lends):
        return None
    after = peek(decision.remaining + 1).retry_after_ns
    # Others may have taken permits since the decision.
    return after if after is None or decision.retry_after_ns is None or decision else min(after, decision.retry_after_ns)


class Response(NamedTuple):
    """What the application answered, when all of it has been sent."""

    # 500 if it raised an exception before it began to answer.
    status: int
    headers: list[tuple[str, str]]
    # Bytes of the body.
    sent: int


class Answer(NamedTuple):
    """The decision on a request."""

    # The status that it is refused with; None: it passes.
    refused: HTTPStatus | None
    # Of the answer, be it ours or the application's.
    fields: list[tuple[str, str]]
    # What a person reads who is refused.
    text: str = ""
    # To be charged after the response: the key.
    key: bytes | None = None

    def body(self, method: object) -> bytes:
        return b"" if method == "HEAD" else f"{self.text}\n".encode()

    def all_fields(self) -> list[tuple[str, str]]:
        """With those of the body."""
        size = len(self.text) + 1
        return [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(size)), *self.fields]


PASSES = Answer(None, [])
TOO_MANY = HTTPStatus.TOO_MANY_REQUESTS


def _is_lease(thing: object) -> TypeGuard[Lease]:
    # As long as tollbar.lease, which loads libtollbar-redis, has not been imported there is none.
    module = sys.modules.get(f"{__package__}.lease")
    return module is not None and isinstance(thing, module.Lease)


class Gate(Generic[Request]):
    """Decides on requests, and says what it decided in headers."""

    def __init__(
        self,
        table: Table | Lease | str | Policy,
        key: Callable[[Request], Key],
        *,
        policy: int | str | tuple[int | str, ...] = 0,
        cost: int = 1,
        charge: Callable[[Request, Response], int] | None = None,
        exempt: Exempt = (),
        missing_status: int = 403,
        name: str | None = None,
        capacity: int = 100_000,
        headers: bool = True,
    ) -> None:
        self.table: Table | Lease
        if isinstance(table, Table) or _is_lease(table):
            self.table = table
        else:
            self.table = Table(cast("str | Policy", table), capacity)
        self.key = key
        policies = policy if isinstance(policy, tuple) else (policy,)
        if not policies or (len(policies) > 1 and (charge is not None or not isinstance(self.table, Table))):
            raise TypeError("policy: several policies are charged together and before the response; expected a Table, and no charge")
        self.policy = policies[0]
        # Where there are several policies, one gate for the fields of each.
        self._each: list[Gate[Request]] = []
        if len(policies) > 1:
            self._each = [Gate(self.table, key, policy=one, cost=cost) for one in policies]
        policy = self.policy
        if charge is not None and not isinstance(self.table, Table):
            raise TypeError("charge: a lease is charged before the response; expected a Table or a policy")
        self.cost = cost
        self.charge = charge
        self.exempt = exempt
        self._exempt = exempt_keys(exempt)
        status = HTTPStatus(missing_status)
        if status < 400:
            raise ValueError(f"missing_status is a status that refuses, 400 to 599, not {missing_status}")
        self._missing = Answer(status, [], f"{status.phrase}: the request has no key that it could be counted by")
        self.headers = headers
        self.name = _quoted(name if name is not None else policy if isinstance(policy, str) else "default")
        self._text = ""
        self._quota = ""
        self._terms = Policy("1/s")

    def decide(self, request: Request) -> Answer:
        made = self.key(request)
        key = key_bytes(made)
        if (made in self.exempt) if self._exempt is None else key in self._exempt:
            return PASSES
        if not isinstance(self.table, Table):
            # Those without a key share the limit that is for all.
            decision = self.table.check(key, self.cost)
        elif key is not None and self._each:
            return self._several(self.table, key)
        elif key is not None and self.charge is not None:
            decision = self._look(self.table, key)
        elif key is not None:
            decision = self.table.check(key, self.cost, self.policy)
        else:
            return self._without_key(self.table)
        fields = self._fields(key, decision)
        return Answer(None, fields, key=key) if decision else Answer(TOO_MANY, fields, TOO_MANY.phrase)

    def _several(self, table: Table, key: bytes) -> Answer:
        """All policies are charged, or none."""
        taken = take_many([(table, key, self.cost, one.policy) for one in self._each])
        fields = self._retry(taken)
        if self.headers:
            fields.append(("RateLimit-Policy", ", ".join(one.quota() for one in self._each)))
            states = [one._state(key, decision) for one, decision in zip(self._each, taken.decisions)]
            fields.append(("RateLimit", ", ".join(states)))
        return Answer(None, fields) if taken else Answer(TOO_MANY, fields, TOO_MANY.phrase)

    def _look(self, table: Table, key: bytes) -> Decision:
        """Takes nothing. A refusal counts, for the table's numbers and for a ban: the check of the same instant is refused, too."""
        now = table.now()
        decision = table.peek(key, self.cost, self.policy, at=now)
        return decision if decision else table.check(key, self.cost, self.policy, at=now)

    def after(self, request: Request, answer: Answer, response: Response) -> None:
        """Charges the permits that `charge` returns for the response."""
        if self.charge is not None and answer.key is not None and isinstance(self.table, Table):
            cost = int(self.charge(request, response))
            if cost > 0:
                self.table.charge(answer.key, cost, self.policy)

    def _without_key(self, table: Table) -> Answer:
        """As the table's `missing` says: "allow" lets it pass; "deny" and "report" refuse it with a status that says so."""
        try:
            passes = table.allow(None, self.cost, self.policy)
        except TableError as error:
            if error.name != "TOLLBAR_E_MISSING_KEY":
                raise
            passes = False
        return PASSES if passes else self._missing

    def quota(self) -> str:
        """The permits in whole seconds. For a period of other length a pair of the same rate."""
        text = self.table._text(self.policy) if isinstance(self.table, Table) else self.table._policy
        # The policy may have been changed, here or in another process.
        if text != self._text:
            policy = Policy(text)
            window = _seconds(policy.period_ns)
            quota = min(policy.limit * window * _SECOND // policy.period_ns, _MOST)
            self._quota, self._text, self._terms = f"{self.name};q={quota};w={window}", text, policy
        return self._quota

    def _fields(self, key: bytes | None, decision: Decision) -> list[tuple[str, str]]:
        """Retry-After of a refusal, and draft-ietf-httpapi-ratelimit-headers-11: the permits that are left, and seconds until
        there are more."""
        fields = self._retry(decision)
        if self.headers:
            fields.append(("RateLimit-Policy", self.quota()))
            fields.append(("RateLimit", self._state(key, decision)))
        return fields

    @staticmethod
    def _retry(decision: Decision | Taken) -> list[tuple[str, str]]:
        if decision or decision.retry_after_ns is None:
            return []
        return [("Retry-After", str(max(_seconds(decision.retry_after_ns), 1)))]

    def _state(self, key: bytes | None, decision: Decision) -> str:
        state = f"{self.name};r={min(decision.remaining, _MOST)}"
        more = self._until_more(key, decision)
        # At least a second: a permit may have come back since the decision.
        return state if more is None else f"{state};t={max(_seconds(more), 1)}"

    def _until_more(self, key: bytes | None, decision: Decision) -> int | None:
        table = self.table
        if not isinstance(table, Table):
            # When there is more to take only the store knows; a refusal has its estimate.
            return None if decision else decision.retry_after_ns
        return until_more(self._terms, decision, self.cost, lambda permits: table.peek(key, permits, self.policy))
