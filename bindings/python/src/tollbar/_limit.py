"""limit: a decorator of functions and coroutines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _time
from ._core import Decision, key_bytes
from ._alone import warn_of_workers
from ._errors import Error, QueueFull
from ._http import exempt_keys, policy_of
from .limiter import Limiter
from .policy import Policy
from .table import Table

if TYPE_CHECKING:
    from ._core import Key
    from ._http import Chosen, Enabled, Exempt

F = TypeVar("F", bound=Callable[..., Any])


class Limited(Error):
    """A call of a function was refused. `decision` is the answer of the limiter, `retry_after` the
    seconds to wait, and `reason` that of the decision, or "queue full" if too many calls wait
    already (option `waiters` of the limiter or the table). In another process than that of the call
    `decision` is None."""

    def __init__(self, name: str, decision: Decision, reason: str | None = None) -> None:
        self.reason = decision.reason if reason is None else reason
        super().__init__(f"{name} is limited: {self.reason}, again in {decision.retry_after:.3f} s")
        self.decision: Decision | None = decision
        self.retry_after = decision.retry_after

    def __reduce__(self) -> tuple[object, ...]:
        # A worker's exception goes to other processes without its decision.
        return _limited, (str(self), self.reason, self.retry_after)


def _limited(text: str, reason: str, retry_after: float) -> Limited:
    refused = Limited.__new__(Limited, text)
    refused.args, refused.decision, refused.reason, refused.retry_after = (text,), None, reason, retry_after
    return refused


def limit(
    by: str | Policy | Limiter | Table | Callable[..., str | Policy | None],
    *,
    key: Callable[..., Key] | None = None,
    policy: int | str | Callable[..., Chosen] = 0,
    cost: int | Callable[..., int] = 1,
    skip: Callable[..., object] | None = None,
    exempt: Exempt = (),
    enabled: Enabled = True,
    wait: _time.Time | None = 0,
    capacity: int = 100_000,
) -> Callable[[F], F]:
    """Limits the calls of a function, a coroutine or an asynchronous generator: `@limit("5/min")`.

    `by` is a policy, or a limiter or table that others use, too. With `key`, which gets the
    arguments of the call, each key has a state of its own, in the table or in one for `capacity`
    keys. `cost` is a number, or makes one of the arguments. Keys in `exempt` are not limited.

    `by` may be a function that makes the policy of the arguments, such as that of the user's plan;
    without `key`, all calls of one policy share it. `policy` may be a function that names a policy
    of the table, or makes a Policy. A call is not limited if such a function returns None, if
    `skip`, which gets the arguments, returns a true value, or while `enabled` is false or returns
    a false value.

    A call above the limit raises Limited. With `wait` it first waits so many seconds for its
    permits (None: as long as it takes), in a coroutine without holding the event loop: so
    `@limit("10/s", wait=None)` paces the calls. Objects whose `__call__` is a coroutine wait so,
    too, and functions that return an awaitable, from their second call on. An asynchronous
    generator takes its permits when its first value is asked for.
    """
    if isinstance(by, Table if key is None else Limiter):
        raise TypeError("limit: a table needs a key, and a limiter has none; expected: key= with a table or a policy")
    state: Limiter | Table
    choose = policy if callable(policy) else None
    if isinstance(by, (Limiter, Table)):
        state = by
    elif callable(by):
        # The table's own policy is no call's.
        state, choose = Table("1/s", capacity), policy_of(by)
        if policy != 0:
            raise TypeError("limit: the function makes the policy of each call; expected no `policy` beside it")
        if key is None:
            key = _all
    else:
        state = Limiter(by) if key is None else Table(by, capacity)
    if choose is not None and isinstance(state, Limiter):
        raise TypeError("limit: a limiter has one policy; expected a table and key= beside a function for `policy`")
    exempted = exempt_keys(exempt)
    # A function for the policy is given beside a table only.
    table = cast("Table", state)
    fixed = 0 if callable(policy) else policy
    sometimes = enabled is not True or skip is not None

    def is_on(*args: Any, **kwargs: Any) -> bool:
        on = enabled() if callable(enabled) else enabled
        return bool(on) and not (skip is not None and skip(*args, **kwargs))

    # Of a policy each process makes a state of its own. With the first call the other workers have
    # been started.
    warns = state is not by

    def decorate(function: F) -> F:
        name = getattr(function, "__qualname__", repr(function))
        # Whether the function has returned an awaitable, so that its caller awaits what it gets.
        returns_awaitables = False

        def request(*args: Any, **kwargs: Any) -> tuple[bytes | None, int, int | str] | None:
            """The key, the cost and the policy of a call; None if it is not limited."""
            nonlocal warns
            if sometimes and not is_on(*args, **kwargs):
                return None
            made = bare = None
            if key is not None:
                made = key(*args, **kwargs)
                bare = key_bytes(made)
                if (made in exempt) if exempted is None else bare in exempted:
                    return None
            number = fixed
            if choose is not None:
                chosen = choose(*args, **kwargs)
                if chosen is None:
                    return None
                number = table._number_of(chosen)
            if warns:
                warns = False
                warn_of_workers(str(state.policy if isinstance(state, Limiter) else state.policy(number)))
            return bare, cost(*args, **kwargs) if callable(cost) else cost, number

        def check(key: bytes | None, cost: int, policy: int | str) -> None:
            decision = state.check(cost) if isinstance(state, Limiter) else state.check(key, cost, policy)
            if not decision:
                raise Limited(name, decision)

        def refuse(key: bytes | None, cost: int, policy: int | str, reason: str | None = None) -> Limited:
            return Limited(name, state.peek(cost) if isinstance(state, Limiter) else state.peek(key, cost, policy), reason)

        async def admit(*args: Any, **kwargs: Any) -> None:
            asked = request(*args, **kwargs)
            if asked is not None and wait == 0:
                check(*asked)
            elif asked is not None:
                key, cost, policy = asked
                try:
                    if isinstance(state, Limiter):
                        admitted = await state.wait_async(wait, cost)
                    else:
                        admitted = await state.wait_async(key, wait, cost, policy)
                except QueueFull as full:
                    raise refuse(*asked, full.reason) from full
                if not admitted:
                    raise refuse(*asked)

        @functools.wraps(function)
        async def limited_async(*args: Any, **kwargs: Any) -> object:
            await admit(*args, **kwargs)
            return await function(*args, **kwargs)

        @functools.wraps(function)
        async def limited_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            await admit(*args, **kwargs)
            inner = function(*args, **kwargs)
            try:
                value = await anext(inner)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as thrown:
                        value = await inner.athrow(thrown)
                    else:
                        value = await inner.asend(sent)
            except StopAsyncIteration:
                return

        if inspect.isasyncgenfunction(function):
            return cast("F", limited_generator)
        if inspect.iscoroutinefunction(function) or (
            not inspect.isclass(function) and inspect.iscoroutinefunction(getattr(function, "__call__", None))
        ):
            return cast("F", limited_async)

        @functools.wraps(function)
        def limited(*args: Any, **kwargs: Any) -> object:
            nonlocal returns_awaitables
            if returns_awaitables and wait != 0:
                return limited_async(*args, **kwargs)
            asked = request(*args, **kwargs)
            if asked is not None and wait == 0:
                check(*asked)
            elif asked is not None:
                key, cost, policy = asked
                try:
                    admitted = state.wait(wait, cost) if isinstance(state, Limiter) else state.wait(key, wait, cost, policy)
                except QueueFull as full:
                    raise refuse(*asked, full.reason) from full
                if not admitted:
                    raise refuse(*asked)
            result = function(*args, **kwargs)
            returns_awaitables = inspect.isawaitable(result)
            return result

        return cast("F", limited)

    return decorate


def _all(*args: object, **kwargs: object) -> str:
    """The key of all calls."""
    return "all"
