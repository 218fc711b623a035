"""The peers in Python, for ../src/process.rs: each line of standard input is a question, each line
of output its answer."""

import array
import gc
import importlib.metadata
import platform
import random
import sys
import threading
import time
from pathlib import Path

import limits
from pyrate_limiter import GCRA, BucketFactory, Duration, Limiter, Rate, RateItem, StateBucket
from pyrate_limiter.clocks import MonotonicClock

MANY = 10**9


class Limits:
    """limits: a fixed window in memory, its cheapest strategy."""

    def __init__(self, allows):
        self.storage = limits.storage.MemoryStorage()
        self.strategy = limits.strategies.FixedWindowRateLimiter(self.storage)
        self.item = limits.RateLimitItemPerDay(MANY if allows else 1)

    def admit(self, key):
        return self.strategy.hit(self.item, key)

    def settle(self):
        """Waits for the timer of limits, which goes through all keys after a turn and must not run
        in the next one."""
        self.storage.timer.join()


class Buckets(BucketFactory):
    """One bucket for each key, as in pyrate-limiter's documentation; a state is one number."""

    def __init__(self, rate):
        self.rate = rate
        self.clock = MonotonicClock()
        self.buckets = {}

    def wrap_item(self, name, weight=1):
        return RateItem(name, self.clock.now(), weight=weight)

    def get(self, item):
        bucket = self.buckets.get(item.name)
        if bucket is None:
            bucket = self.buckets[item.name] = StateBucket([self.rate], GCRA())
        return bucket


class Pyrate:
    """pyrate-limiter: GCRA in memory, its cheapest algorithm."""

    def __init__(self, allows):
        rate = Rate(MANY, Duration.SECOND) if allows else Rate(1, Duration.DAY)
        self.limiter = Limiter(Buckets(rate))

    def admit(self, key):
        return self.limiter.try_acquire(key, blocking=False)

    def settle(self):
        pass


PEERS = {"limits": Limits, "pyrate": Pyrate}
COIN = [random.Random(1).random() < 0.5 for _ in range(1 << 14)]


def one_runner(peer, work):
    yes, no = PEERS[peer](True), PEERS[peer](False)
    no.admit("key")
    assert yes.admit("key") and not no.admit("key"), peer

    def run(start, end):
        passed = 0
        for number in range(start, end):
            of = yes if work == "allowed" or work == "mixed" and COIN[number & (1 << 14) - 1] else no
            passed += of.admit("key")
        return passed

    return run, yes, no


class Keyed:
    """Keys that have been filled in, and the order in which they are asked for."""

    def __init__(self):
        self.order = []
        self.filled = {}

    def fill(self, peer, work, path):
        keys = names(path)
        gc.collect()
        before = resident()
        made = PEERS[peer](work == "allowed")
        for key in keys:
            made.admit(key)
        made.settle()
        gc.collect()
        self.filled[peer, work] = made
        return (resident() - before) / len(keys)

    def runner(self, peer, work):
        yes, no = self.filled.get((peer, "allowed")), self.filled.get((peer, "denied"))
        order, mask = self.order, len(self.order) - 1

        def run(start, end):
            passed = 0
            for number in range(start, end):
                key, odd = order[number & mask]
                passed += (no if work == "denied" or work == "mixed" and odd else yes).admit(key)
            return passed

        return run, yes, no


def names(path):
    return [f"{word:016x}" for word in words(path)]


def words(path):
    return array.array("Q", Path(path).read_bytes())


def resident():
    """Resident bytes of the process, as the kernel counts them."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("no Rss in smaps_rollup")


def turn(run, threads, at, warm, count, apart):
    """Nanoseconds per request of one thread. All threads do `count` requests at once, after `warm`
    that do not count."""
    took = []
    ready = threading.Barrier(threads)

    def work(thread):
        start = at + thread * apart
        run(start, start + warm)
        ready.wait()
        begun = time.perf_counter_ns()
        run(start + warm, start + warm + count)
        took.append(time.perf_counter_ns() - begun)

    others = [threading.Thread(target=work, args=(thread,)) for thread in range(1, threads)]
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()
    return sum(took) / threads / count


def main():
    keyed = Keyed()
    ones = {}
    for line in sys.stdin:
        what, *rest = line.split()
        if what == "versions":
            answer = f"Python {platform.python_version()}"
            for name in ("limits", "pyrate-limiter"):
                answer += f", {name} {importlib.metadata.version(name)}"
        elif what == "one":
            peer, work, threads, count = rest
            if (peer, work) not in ones:
                ones[peer, work] = one_runner(peer, work)
            run, *used = ones[peer, work]
            answer = turn(run, int(threads), 0, 0, int(count), 0)
        elif what == "order":
            keyed.order = [(f"{word:016x}", word & 1) for word in words(rest[0])]
            answer = "ok"
        elif what == "fill":
            answer = keyed.fill(*rest)
        elif what == "keyed":
            peer, work, *numbers = rest
            threads, at, warm, count = map(int, numbers)
            run, *used = keyed.runner(peer, work)
            answer = turn(run, threads, at, warm, count, len(keyed.order) // threads)
        elif what == "forget":
            keyed = Keyed()
            gc.collect()
            answer = "ok"
        else:
            answer = f"no such question: {what}"
        if what in ("one", "keyed"):
            for peer in filter(None, used):
                peer.settle()
        print(answer, flush=True)


main()
