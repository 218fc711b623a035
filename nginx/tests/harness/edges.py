"""Tests by a real clock: some must see no window of a calendar begin, and the numbers of some hold
only for a while."""

import functools
import time

TIMES = 5


def again_if_late(within):
    """Repeats a test, up to five times in all, that failed and ran for more than `within` seconds,
    nginx's start included. A fault fails each time."""
    def decorated(test):
        @functools.wraps(test)
        def run(*args, **named):
            for _ in range(TIMES - 1):
                began = time.monotonic()
                try:
                    return test(*args, **named)
                except AssertionError:
                    if time.monotonic() - began <= within:
                        raise
            return test(*args, **named)

        return run

    return decorated


def away_from_edges(period=3600):
    """Waits until no multiple of `period` seconds of UTC comes within the next sixty. With an hour,
    no day, month or year of a zone with whole hours begins in that time."""
    while period - time.time() % period < 60:
        time.sleep(0.1)
