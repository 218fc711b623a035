"""Permits in flight: limits, scopes, threads, and processes that are killed."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tollbar import Error, InFlight, Permit, TableError


def test_a_key_has_its_limit():
    table = InFlight(100)
    tickets = [table.acquire("k", 3) for _ in range(3)]
    assert all(isinstance(ticket, int) for ticket in tickets) and table.acquire("k", limit=3) is None
    assert table.count("k") == 3 and table.count("other") == 0
    assert table.release(tickets[0]) and table.acquire("k", 2) is None
    assert not table.release(0) and not table.release(2**64 - 1)
    assert table.release(tickets[1]) and table.release(tickets[2]) and not table.release(tickets[2])
    assert table.count(b"k") == 0 and table.acquire("k", 0) is None and table.acquire("k", 2**40) is not None


def test_a_permit_ends_with_its_scope():
    table = InFlight(100)
    with table.enter("k", 1) as permit:
        assert permit and isinstance(permit, Permit) and table.count("k") == 1
        with table.enter("k", 1) as second:
            assert not second
        assert table.count("k") == 1
    assert not permit and table.count("k") == 0 and not permit.release()
    with pytest.raises(KeyError), table.enter("k", 1):
        raise KeyError
    assert table.count("k") == 0
    # Nobody has it.
    table.enter("k", 1)
    gc.collect()
    assert table.count("k") == 0


def test_asyncio():
    table, most, inside = InFlight(100), 0, 0

    async def request():
        nonlocal most, inside
        async with table.enter("k", 3) as permit:
            if not permit:
                return 0
            inside += 1
            most = max(most, inside)
            try:
                await asyncio.sleep(0.001)
            finally:
                inside -= 1
            return 1

    async def run():
        admitted = sum(await asyncio.gather(*(request() for _ in range(10))))
        cancelled = asyncio.ensure_future(request())
        await asyncio.sleep(0)
        assert table.count("k") == 1
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        return admitted

    assert (asyncio.run(run()), most, table.count("k")) == (3, 3, 0)


def test_threads():
    table, over, lock, inside = InFlight(100), [], threading.Lock(), 0

    def run():
        nonlocal inside
        for _ in range(3000):
            with table.enter("k", 2) as permit:
                if permit:
                    with lock:
                        inside += 1
                        over.extend([inside] if inside > 2 else [])
                    with lock:
                        inside -= 1

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not over and table.count("k") == 0


def test_closed():
    table = InFlight(100)
    permit, ticket = table.enter("k", 1), table.acquire("l", 1)
    with table:
        pass
    assert table.closed and repr(table) == "<InFlight, closed>" and not permit.release()
    for call in (lambda: table.acquire("k", 1), lambda: table.release(ticket), lambda: table.count("k"), table.join):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_errors(tmp_path):
    for capacity in (0, 2**63, -1):
        with pytest.raises(ValueError):
            InFlight(capacity)
    with pytest.raises(TypeError):
        InFlight("x")
    with pytest.raises(TableError) as missing:
        InFlight.open(tmp_path / "none")
    assert missing.value.name == "TOLLBAR_E_OPEN" and missing.value.filename == str(tmp_path / "none")
    full = InFlight(1)
    with pytest.raises(Error) as error:
        for n in range(100):
            full.acquire(n, 1)
    assert error.value.name == "TOLLBAR_E_IN_FLIGHT_FULL"
    with pytest.raises(TypeError):
        full.acquire("k")
    with pytest.raises(ValueError):
        full.acquire("k", -1)


PROGRAM = """
import sys, time, tollbar
table = tollbar.InFlight.open(sys.argv[1])
permits = [table.enter("k", 3) for _ in range(2)]
print(*map(bool, permits), flush=True)
time.sleep(100)
"""


def test_what_a_killed_process_held_comes_back_within_a_second(tmp_path):
    with InFlight.open(tmp_path / "table", 100) as table:
        mine = table.enter("k", 3)
        for _ in range(5):
            with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path / "table"], stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout.readline().split() == ["True", "True"]
                assert table.acquire("k", 3) is None
                child.send_signal(signal.SIGKILL)
                # The kernel may take a while to end it. Nobody has waited for it yet.
                os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
                ended, ticket = time.monotonic(), None
                while ticket is None:
                    asked = time.monotonic()
                    ticket = table.acquire("k", 3)
                    assert ticket is not None or asked - ended < 1
            assert table.count("k") == 2 and table.release(ticket)
        assert mine.release() and table.count("k") == 0
        with pytest.raises(TableError) as other:
            InFlight.open(tmp_path / "table", 1000)
        assert other.value.name == "TOLLBAR_E_OTHER_CAPACITY"


def test_a_child_cannot_release_what_its_parent_holds():
    table = InFlight(100, shared=True)
    permit, ticket = table.enter("k", 2), table.acquire("k", 2)
    pid = os.fork()
    if pid == 0:
        os._exit(permit.release() + 2 * table.release(ticket) + 4 * (table.acquire("k", 2) is not None))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert table.count("k") == 2 and permit.release() and table.release(ticket)
