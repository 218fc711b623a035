"""Tests by a real clock that must see no window of a calendar begin."""

import time


def away_from_edges(period=3600):
    """Waits until no multiple of `period` seconds of UTC comes within the next twenty. With an hour, no day, month or year of a zone with whole hours
    begins in that time."""
    while period - time.time() % period < 20:
        time.sleep(0.1)
