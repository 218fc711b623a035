"""Policies: limits as one line of text."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from operator import index

from . import _core
from ._time import Time, nanoseconds

# [lists: algorithms] written by cargo xtask lists
ALGORITHMS = (
    "gcra",
    "interval",
    "fixed-window",
    "weighted-window",
    "sliding-window",
    "sliding-log",
    "pacer",
    "warm-up",
    "quota",
    "curve",
    "level-refill",
    "calendar",
)
_LENDING = frozenset((
    "pacer",
    "warm-up",
))
# [lists: end]

_LAST = 40_000
"""TOLLBAR_CURVE_TIMES - 1."""
_BORROW = 1
"""TOLLBAR_POLICY_BORROW."""


class Policy:
    """A parsed policy: Policy("100/s burst 20"). Equal policies have equal text, `str(policy)`.

    docs/algorithms.md compares the algorithms, and tollbar.h describes the text.
    """

    __slots__ = ("_text", "_fields")

    def __init__(self, text: str | Policy) -> None:
        parsed = _core.parse(_text(text))
        self._text = parsed[0]
        self._fields = parsed[1:]

    @classmethod
    def of(
        cls,
        limit: int,
        per: Time = 1,
        *,
        burst: int | None = None,
        algorithm: str = "gcra",
        **options: int | str | bool | Time,
    ) -> Policy:
        """Makes a policy from numbers: Policy.of(100, timedelta(minutes=1), burst=20).

        Options are those of the text: init=0, borrow=True, anchor="first", segments=6,
        mode="strict", slack=2, warm=timedelta(seconds=5), cold=3, ban=timedelta(hours=1), after=5,
        count="rejected", unit="bytes", reserve="low 20 high 0".
        """
        words = [f"{index(limit)}/{nanoseconds(per, 'per')}ns"]
        if burst is not None:
            words.append(f"burst {index(burst)}")
        if algorithm != "gcra":
            words.append(f"algo {algorithm}")
        for name, value in options.items():
            if name in ("warm", "ban"):
                words.append(f"{name} {nanoseconds(value, name)}ns")  # type: ignore[arg-type]
            elif value is True:
                words.append(name)
            elif value is not False:
                words.append(f"{name} {value}")
        return cls(" ".join(words))

    @classmethod
    def curve(
        cls, limit: int, per: Time, share: Callable[[float], float], *, within: float = 0.001
    ) -> Policy:
        """Makes a policy whose permits come as a function says:
        `Policy.curve(1000, 60, lambda time: time**2)`. The function gets a time in the slice from 0
        to 1 and returns the share of `limit` that has come by then, from 0 to 1. It does not fall,
        and ends at 1. A slice of `per` seconds admits exactly `limit` permits.

        The function is called 40,001 times and becomes a curve of up to 64 knots. The call raises
        ValueError for a function that breaks a rule, with the time and the value, and for a curve
        that is not `within` that share of the limit: around a jump between two hundredths of a
        percent of the slice, for example."""
        shares = array("d", (share(n / _LAST) for n in range(_LAST + 1))).tobytes()
        text, error, time = _core.curve(index(limit), nanoseconds(per, "per"), shares)
        if error > within:
            raise ValueError(f"at time {time:g} of the slice the curve is {error:g} off the function, expected at most {within:g}")
        return cls(text)

    @property
    def algorithm(self) -> str:
        return ALGORITHMS[self._fields[0]]

    @property
    def limit(self) -> int:
        """Permits per period."""
        return self._fields[1]

    @property
    def period_ns(self) -> int:
        return self._fields[2]

    @property
    def period(self) -> float:
        """In seconds; infinite for a quota."""
        return math.inf if self.algorithm == "quota" else self._fields[2] / 1e9

    @property
    def burst(self) -> int:
        """The most permits at once."""
        return self._fields[3]

    @property
    def last_time_ns(self) -> int:
        """The last clock reading, in nanoseconds, at which the policy admits a request: 2**61 - 2
        for all but the fastest policies."""
        return self._fields[13]

    def worst_case(self, window: Time) -> int:
        """The most permits of one key that the policy admits in some window of that length, in
        seconds or as a timedelta, by requests that cost 1 and come at the worst times:
        `Policy("120/min").worst_case(60)` is 239, which are 120 at once and one each half second
        after that."""
        return _core.worst_case(self._text, nanoseconds(window, "window"))

    @property
    def _lends(self) -> bool:
        """The policy lends: it may admit a request that costs more permits than are left, and later
        requests wait until that debt is paid."""
        return self.algorithm in _LENDING or bool(self._fields[12] & _BORROW)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Policy({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Policy) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[type[Policy], tuple[str]]:
        return Policy, (self._text,)


def _text(policy: str | Policy) -> str:
    """What the C part takes."""
    return policy._text if isinstance(policy, Policy) else policy
