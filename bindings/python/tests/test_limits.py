"""tollbar.limits: the storage for the package `limits` beside its memory storage, in threads of
time and in processes."""

import asyncio
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import limits
import pytest
import tollbar
import tollbar.limits
from edges import away_from_edges
from limits.aio import strategies as aio_strategies
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string
from limits.strategies import STRATEGIES
from tollbar._windows import _GRAINS, log_bytes

DAY = 86_400 * 10**9
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path():
    name = f"/dev/shm/tollbar-limits-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    for file in Path("/dev/shm").glob(Path(name).name + "*"):
        file.unlink()


def uri(path, **options):
    return f"tollbar://{path}?" + "&".join(f"{name}={value}" for name, value in options.items())


def behave_alike(seed, strategy, path, hits=1500):
    """Random hits, tests and statistics of some limits and identifiers: every answer is the memory
    storage's. Time moves only between them."""
    chance = random.Random(seed)
    now = 1_800_000_000.0
    with mock.patch("time.time", lambda: now), mock.patch("threading.Timer"):
        strategies = [STRATEGIES[strategy](storage_from_string(text)) for text in ("memory://", uri(path, log_keys=50))]
        items = [limits.parse(text) for text in ("5/second", "10 per 2 seconds", "30/minute", "1000/hour")]
        seen = [0, 0]
        for _ in range(hits):
            # Multiples of 2^-12 s, which are floats without an error, and never as long as a
            # window, whose last instant the two see differently.
            now += chance.choice((1, 7, 300, 1023, 1023, 4099, 9001)) / 4096
            item, who, cost = chance.choice(items), chance.choice("ab"), chance.choice((1, 1, 1, 2, 6))
            call = chance.choice(("hit", "hit", "hit", "test", "get_window_stats", "clear" if chance.random() < 0.02 else "hit"))
            options = {"cost": cost} if call in ("hit", "test") else {}
            wanted, got = (getattr(one, call)(item, who, **options) for one in strategies)
            if call == "get_window_stats":
                assert got.remaining == wanted.remaining, (item, call)
                # Of an empty log the memory storage reports entries that it has not thrown away
                # yet.
                if strategy == "moving-window" and got.remaining == item.amount:
                    continue
                assert got.reset_time == pytest.approx(wanted.reset_time, abs=2e-5), (item, call)
            else:
                assert got == wanted, (item, call, cost)
            seen[bool(got)] += call == "hit"
        assert min(seen) > hits / 50


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_behaves_like_the_memory_storage(strategy, path):
    for seed in range(3):
        behave_alike(seed, strategy, f"{path}-{seed}")


def test_counters():
    """A window has exactly its length, up to the grain of the time, for every size of a count."""
    for most, grain in _GRAINS.items():
        table = tollbar.Table(f"{most}/10s algo fixed-window anchor first", 10, clock="wall")
        at = 1_800_000_000 * 10**9 + 3 * grain
        assert table.check("key", 2, at=at).reset_after_ns == 10**10
        assert table.peek("key", at=at + 10**10 - grain).remaining == most - 2
        assert table.peek("key", at=at + 10**10).remaining == most


def test_a_count_goes_on_above_the_limit(path):
    storage = storage_from_string(uri(path))
    assert [storage.incr("a/5/1/minute", 60) for _ in range(8)] == list(range(1, 9))
    assert storage.get("a/5/1/minute") == 8 and storage.get("a/6/1/minute") == 0
    assert storage.get_expiry("a/5/1/minute") == pytest.approx(time.time() + 60, abs=30)
    assert storage.incr("a/5/1/minute", 60, 1000) == 1008
    # Above the largest count of the key, which its limit lies below: everything is refused until
    # the window ends.
    assert storage.incr("a/5/1/minute", 60, 10**6) > 5 and storage.incr("a/5/1/minute", 60) > 5
    # A key of one's own has a counter for each expiry.
    assert storage.incr("mine", 30) == 1 and storage.incr("mine", 30, 4) == 5 and storage.get("mine") == 5
    with pytest.raises(tollbar.TableError, match="the counter of 'mine' would be above 7000000"):
        storage.incr("mine", 30, 7_000_000)
    with pytest.raises(tollbar.TableError, match="too large for a counter"):
        storage.incr("a/10000000000/1/day", 86400)


def test_another_process_that_comes_later(path):
    storage = storage_from_string(uri(path))
    for key in ("mine", "other/5/1/minute"):
        storage.incr(key, 77, 3)
    storage.acquire_entry("log", 10, 60, 4)
    program = f"""
import tollbar.limits
from limits.storage import storage_from_string
storage = storage_from_string({uri(path)!r})
print(storage.get("mine"), storage.get("other/5/1/minute"), storage.get_moving_window("log", 10, 60)[1], storage.check())
storage.clear("log")
print(storage.get_moving_window("log", 10, 60)[1], storage.reset())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "3 3 4 True\n0 2\n", done.stderr
    # The reset counts here, too.
    assert storage.get("mine") == 0 and storage.incr("mine", 77) == 1
    restored = pickle.loads(pickle.dumps(storage))
    assert restored.incr("mine", 77) == 2 and storage.get("mine") == 2
    assert path in repr(storage.storage)
    os.unlink(path)
    assert not storage.check()


def hits(strategy, path, start, count):
    limiter, item = STRATEGIES[strategy](storage_from_string(uri(path))), limits.parse("1000/day")
    start.wait()
    count.put(sum(limiter.hit(item, "who") for _ in range(400)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_eight_processes_are_exact(strategy, path):
    """Each opens the storage by itself, as workers do. They make 3,200 requests of which 1,000 may
    pass."""
    # A sliding window gives some permits back when a day of UTC begins.
    away_from_edges(DAY, ahead=120)
    start, count = FORK.Event(), FORK.Queue()
    workers = [FORK.Process(target=hits, args=(strategy, path, start, count)) for _ in range(8)]
    for worker in workers:
        worker.start()
    start.set()
    assert sum(count.get(timeout=120) for _ in workers) == 1000
    for worker in workers:
        worker.join()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_processes_that_are_killed(strategy, path):
    """Workers are killed at any instruction; what they counted stays, and the others go on. A
    worker reports a hit after the hit, so at most one hit of each that was killed is in no
    report."""

    def run(pipe):
        limiter, item = STRATEGIES[strategy](storage_from_string(uri(path))), limits.parse("3000/day")
        while limiter.hit(item, "who"):
            os.write(pipe, b".")
        os.write(pipe, b"!")

    away_from_edges(DAY, ahead=120)
    passed, ended = 0, 0
    chance = random.Random(1)
    for _ in range(30):
        read, write = os.pipe()
        worker = FORK.Process(target=run, args=(write,))
        worker.start()
        os.close(write)
        # The worker is at work from here on.
        first = os.read(read, 1)
        time.sleep(chance.random() / 50)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        with os.fdopen(read, "rb") as pipe:
            seen = first + pipe.read()
        passed, ended = passed + seen.count(b"."), ended + seen.count(b"!")
    limiter, item = STRATEGIES[strategy](storage_from_string(uri(path))), limits.parse("3000/day")
    left = limiter.get_window_stats(item, "who").remaining
    assert 3000 - 30 <= passed + left <= 3000 and passed
    assert sum(limiter.hit(item, "who") for _ in range(left + 5)) == left


def test_keys_have_a_bound_and_a_clear_error(path):
    storage = storage_from_string(uri(path, keys=100, log_keys=100), wrap_exceptions=True)
    size = os.stat(path).st_size
    with pytest.raises(StorageError) as error:
        for n in range(10_000):
            storage.incr(f"{n}/5/1/day", 86400)
    assert "no room for another key; expected: a storage with more keys=" in str(error.value.storage_error)
    # It can be emptied when it is full; the slots are free again when their windows end.
    assert storage.reset() > 100
    with pytest.raises(StorageError, match="log_keys="):
        for n in range(10_000):
            storage.acquire_entry(f"{n}", 5, 86400)
    with pytest.raises(StorageError, match="no room"):
        for n in range(10_000):
            STRATEGIES["sliding-window-counter"](storage).hit(limits.parse("5/day"), f"{n}")
    assert os.stat(path).st_size == size


def test_logs_have_a_bound_and_a_clear_error(path):
    storage = storage_from_string(uri(path, log_keys=1000, log_bytes=100 << 20))
    assert storage.acquire_entry("a", 1000, 60, 1000) and not storage.acquire_entry("a", 1000, 60)
    with pytest.raises(tollbar.TableError, match="a moving window of 1000000 in 60 s needs .* and others have .* log_bytes=104857600 together"):
        storage.acquire_entry("a", 1_000_000, 60)
    # Each of these fits by itself.
    with pytest.raises(tollbar.TableError, match="a moving window of 90. in"):
        for n in range(900, 909):
            storage.acquire_entry("a", n, 60)
    files = list(Path("/dev/shm").glob(Path(path).name + ".log-*"))
    assert len(files) == 2 and sum(file.stat().st_size for file in files) <= 100 << 20
    # A refused limit has left no file, and the old ones go on.
    assert storage.get_moving_window("a", 1000, 60)[1] == 1000


@pytest.mark.parametrize(("limit", "keys"), [(1, 1), (5, 4096), (1000, 100), (100, 4097), (100, 50_000)])
def test_no_log_is_larger_than_the_bound_takes_it_for(limit, keys, path):
    with tollbar.Table.open(path, f"{limit}/min algo sliding-log", keys):
        assert log_bytes(limit, keys) * 0.6 < os.stat(path).st_size <= log_bytes(limit, keys)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("tollbar://", "names no file"),
        ("tollbar://app", "names no file"),
        ("async+tollbar:///", "names no file"),
        ("tollbar:///dev/shm/x?kees=5", "unknown option 'kees'; expected: keys, log_keys, log_bytes"),
        ("tollbar:///dev/shm/x?keys=many", "keys is 'many'; expected: a whole number from 1"),
        ("tollbar:///dev/shm/x?keys=", "keys is ''"),
    ],
)
def test_a_wrong_uri(text, wrong):
    with pytest.raises(ConfigurationError, match=wrong):
        storage_from_string(text)


def test_a_file_of_something_else(path):
    tollbar.Table.open(path, "5/min", 1000).close()
    with pytest.raises(tollbar.TableError, match="is a table of 1000 keys under '5/min'; expected: 100000 keys"):
        storage_from_string(uri(path))


def test_a_key_that_is_cleared_too_often(path):
    storage = storage_from_string(uri(path))
    with pytest.raises(tollbar.TableError, match="has been cleared eleven times in one window"):
        for _ in range(50):
            storage.incr("a/5/1/day", 86400)
            storage.clear("a/5/1/day")
            assert storage.get("a/5/1/day") == 0


def test_in_an_event_loop(path):
    """The same file serves both kinds."""

    async def run():
        away_from_edges(DAY)
        storage = storage_from_string(f"async+{uri(path)}")
        assert await storage.check()
        for name, strategy in aio_strategies.STRATEGIES.items():
            limiter, item = strategy(storage), limits.parse("5/day")
            assert [await limiter.hit(item, name) for _ in range(7)] == [True] * 5 + [False] * 2
            assert not STRATEGIES[name](storage_from_string(uri(path))).test(item, name)
            await limiter.clear(item, name)
            assert (await limiter.get_window_stats(item, name)).remaining == 5
        assert await storage.incr("mine", 60, 0) == 0 and await storage.incr("mine", 60) == 1
        assert await storage.get("mine") == 1 and await storage.get_expiry("mine") > time.time()
        assert await storage.reset() > 0 and await storage.get("mine") == 0

    asyncio.run(run())
