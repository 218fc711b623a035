"""Tests by a real clock: some must see no aligned window begin, and the numbers of some hold only
for a while."""

import functools
import math
import time

TIMES = 10


class Late(AssertionError):
    """The machine kept this process from running for so long that the test cannot show what it is
    about."""


def again_if_late(within=math.inf):
    """Repeats a test, up to ten times in all, that raised Late, or failed after it ran for more
    than `within` seconds. A fault fails each time."""

    def decorated(test):
        @functools.wraps(test)
        def run(*args, **named):
            for _ in range(TIMES - 1):
                began = time.monotonic()
                try:
                    return test(*args, **named)
                except AssertionError as error:
                    if not isinstance(error, Late) and time.monotonic() - began <= within:
                        raise
            return test(*args, **named)

        return run

    return decorated


def away_from_edges(period, now=time.time_ns, ahead=10):
    """Waits until no multiple of `period` nanoseconds of the clock `now` comes within the next
    `ahead` seconds."""
    while period - now() % period < ahead * 10**9:
        time.sleep(0.05)
