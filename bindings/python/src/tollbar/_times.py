"""How long decisions take, as a histogram."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, TypeVar, cast

Decide = TypeVar("Decide", bound=Callable[..., Any])

_FIRST = 8
_BOUNDS = 17
"""The bounds of the buckets are 2^8 ns, 2^9 ns and so on, up to 17 ms."""


class Times:
    """A histogram of how long a middleware takes for a decision, of one in `every` requests:
    `RateLimit(app, "100/min", times=times)`. `tollbar.metrics(sources, times={"client": times})`
    shows it as tollbar_decision_nanoseconds.

    The time goes from the request's key to the limit's answer, and the application's is not in it.
    The other requests count down. Several middlewares of one process may share it, and each
    measures one in `every` of its own requests. Of threads that measure at the same instant one may
    be lost, or one more be measured."""

    __slots__ = ("_counts", "_every", "_sum")

    def __init__(self, every: int = 1024) -> None:
        if every < 1:
            raise ValueError(f"every is a number of requests, from 1 on, not {every}")
        self._every = every
        self._sum = 0
        self._counts = [0] * (_BOUNDS + 1)

    def _of(self, decide: Decide) -> Decide:
        """`decide`, of whose calls one in `every` is measured, the first among them."""
        left = 1

        def timed(request: object, layers: object) -> Any:
            nonlocal left
            left -= 1
            if left:
                return decide(request, layers)
            left = self._every
            begin = perf_counter_ns()
            try:
                return decide(request, layers)
            finally:
                self._add(perf_counter_ns() - begin)

        return cast("Decide", timed)

    def _add(self, took: int) -> None:
        self._sum += took
        # The least n with took <= 2**n.
        n = (max(took, 1) - 1).bit_length()
        self._counts[min(max(n - _FIRST, 0), _BOUNDS)] += 1

    def _text(self, labels: str) -> str:
        """The lines of the histogram; `labels` begins with a brace and has no end."""
        name, count, lines = "tollbar_decision_nanoseconds", 0, []
        for n, of_bucket in enumerate(self._counts):
            count += of_bucket
            bound = str(1 << (n + _FIRST)) if n < _BOUNDS else "+Inf"
            lines.append(f'{name}_bucket{labels},le="{bound}"}} {count}\n')
        lines.append(f"{name}_sum{labels}}} {self._sum}\n{name}_count{labels}}} {count}\n")
        return "".join(lines)


HEAD = (
    "# HELP tollbar_decision_nanoseconds Time of a decision, of a sample of all requests.\n"
    "# TYPE tollbar_decision_nanoseconds histogram\n"
)
