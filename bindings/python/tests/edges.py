"""Tests by a real clock that must see no aligned window begin."""

import time


def away_from_edges(period, now=time.time_ns):
    """Waits until no multiple of `period` nanoseconds of the clock `now` comes within the next ten seconds."""
    while period - now() % period < 10**10:
        time.sleep(0.05)
