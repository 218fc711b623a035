"""Processes are killed between the charges of take_many. The permits that such a process had charged
come back as the limits refill, and no limit admits more than its bound."""

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
# Three counts of admissions: one for each of the two processes that are never killed, and one for
# all killed processes together. The last counter is how many processes have begun.
COUNTERS = struct.Struct("=4Q")
BEGUN = 3


def start(path: str, admitted: mmap.mmap, counter: int, turned: bool) -> int:
    """A process that takes from both limits until it is killed, and counts what it was admitted."""
    child = os.fork()
    if child:
        return child
    try:
        table = Table.open(path)
        limits = [(table, "k", 1, 0), (table, "k", 1, 1)]
        limits = limits[::-1] if turned else limits
        count(admitted, BEGUN)
        while True:
            if take_many(limits):  # type: ignore[arg-type]
                count(admitted, counter)
    finally:
        os._exit(1)


def count(admitted: mmap.mmap, counter: int) -> None:
    struct.pack_into("=Q", admitted, 8 * counter, COUNTERS.unpack_from(admitted)[counter] + 1)


def wait_for(admitted: mmap.mmap, counter: int, least: int) -> None:
    deadline = time.monotonic() + 30
    while COUNTERS.unpack_from(admitted)[counter] < least:
        assert time.monotonic() < deadline, COUNTERS.unpack_from(admitted)
        time.sleep(0.001)


def test_killed_processes_leave_nothing_that_does_not_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    table = Table.open(path, POLICIES, 100)
    admitted = mmap.mmap(-1, COUNTERS.size)
    chance = random.Random(21)
    begun = table.now()
    stay = []
    try:
        for counter in (0, 1):
            stay.append(start(path, admitted, counter, counter == 1))
            wait_for(admitted, BEGUN, counter + 1)
        for n in range(KILLS):
            victim = start(path, admitted, 2, n % 2 == 1)
            wait_for(admitted, BEGUN, n + 3)
            time.sleep(chance.uniform(0.005, 0.03))
            os.kill(victim, signal.SIGKILL)
            assert os.waitpid(victim, 0)[1] == signal.SIGKILL
        for counter in (0, 1):
            wait_for(admitted, counter, 1)
    finally:
        for child in stay:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    elapsed = table.now() - begun
    got = COUNTERS.unpack_from(admitted)[:BEGUN]
    # The counts may lack what a process was admitted just before it was killed.
    assert sum(got) <= 100 + elapsed * 1000 // 10**9 + 1, (got, elapsed)
    assert all(got), got
    # Both bursts refill in 0.1 s, also the permits that killed processes left charged.
    time.sleep(0.2)
    assert table.peek("k", 200, "fast") and table.peek("k", 100, "slow")
    assert not table.validate().slots_invalid
    assert take_many([(table, "k", 200, "fast"), (table, "k", 100, "slow")])
