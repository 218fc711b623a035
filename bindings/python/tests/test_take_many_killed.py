"""A process that is killed between the charges of take_many: what it leaves charged comes back by refill, and nothing is admitted beyond a bound."""

import mmap
import os
import random
import signal
import struct
import time
from pathlib import Path

from tollbar import Table, take_many

POLICIES = {"fast": "2000/s burst 200", "slow": "1000/s burst 100"}
KILLS = 40
# Three counters: one for each of the two processes that are never killed, and one for all killed processes together.
COUNTERS = struct.Struct("=3Q")


def start(path: str, admitted: mmap.mmap, counter: int, turned: bool) -> int:
    """A process that takes from both limits until it is killed, and counts what it was admitted."""
    child = os.fork()
    if child:
        return child
    try:
        table = Table.open(path)
        limits = [(table, "k", 1, 0), (table, "k", 1, 1)]
        limits = limits[::-1] if turned else limits
        while True:
            if take_many(limits):  # type: ignore[arg-type]
                counts = list(COUNTERS.unpack_from(admitted))
                struct.pack_into("=Q", admitted, 8 * counter, counts[counter] + 1)
    finally:
        os._exit(1)


def test_killed_processes_leave_nothing_that_does_not_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    table = Table.open(path, POLICIES, 100)
    admitted = mmap.mmap(-1, COUNTERS.size)
    chance = random.Random(21)
    begun = table.now()
    stay = [start(path, admitted, 0, False), start(path, admitted, 1, True)]
    try:
        for n in range(KILLS):
            victim = start(path, admitted, 2, n % 2 == 1)
            time.sleep(chance.uniform(0.005, 0.03))
            os.kill(victim, signal.SIGKILL)
            assert os.waitpid(victim, 0)[1] == signal.SIGKILL
    finally:
        for child in stay:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    elapsed = table.now() - begun
    got = COUNTERS.unpack_from(admitted)
    # The counts may lack what a process was admitted just before it was killed.
    assert sum(got) <= 100 + elapsed * 1000 // 10**9 + 1, (got, elapsed)
    assert all(got), got
    # Both bursts refill in 0.1 s, also the permits that killed processes left charged.
    time.sleep(0.2)
    assert table.peek("k", 200, "fast") and table.peek("k", 100, "slow")
    assert not table.validate().slots_invalid
    assert take_many([(table, "k", 200, "fast"), (table, "k", 100, "slow")])
