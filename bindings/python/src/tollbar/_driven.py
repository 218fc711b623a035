"""The clock "python": limiters and tables that go by time.time_ns() of Python, which freezegun and
time-machine replace."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import _core

Class = TypeVar("Class", bound=type)

_made: dict[type, type] = {}


def _pythons_time() -> int:
    # Looked up at each call, because freezegun replaces the name.
    return time.time_ns()


def driven(of: Class) -> Class:
    """A subclass of Limiter or Table whose calls without `at` get Python's time. Its clock for the
    library is "wall", which counts from 1970, too."""
    if of in _made:
        return cast("Class", _made[of])
    _core.drive()
    members: dict[str, Any] = {"__slots__": (), "__doc__": of.__doc__, "__module__": of.__module__, "_driven": True}
    for name in dir(of):
        call = getattr(of, name)
        if not name.startswith("__") and callable(call) and "at" in (names := list(inspect.signature(call).parameters)):
            members[name] = _at_pythons_time(call, names.index("at"))
    members["now"] = lambda self: _pythons_time()
    members["_take"] = lambda self, *request: bool(self.peek(*request)) and self.allow(*request)
    made: Any = type(of)(of.__name__, (of,), members)
    _made[of] = made
    subclass: Class = made
    return subclass


def _at_pythons_time(call: Callable[..., Any], place: int) -> Callable[..., Any]:
    """`call` with `at`, the argument of that place, if the caller gives none."""
    parameter = inspect.signature(call).parameters["at"]
    by_name = parameter.kind is not parameter.POSITIONAL_ONLY

    @functools.wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        if by_name:
            if kwargs.get("at") is None:
                kwargs["at"] = _pythons_time()
        elif len(args) <= place or args[place] is None:
            args = (*args[:place], _pythons_time(), *args[place + 1 :])
        return call(*args, **kwargs)

    return timed
