#!/usr/bin/env python3
"""Requests a second with nginx's own limit_req, the drop-in, and tollbar's own directives, in turn
on one machine.

usage: throughput.py [rounds] [seconds]

One worker, wrk with one thread; every request is admitted. A ratio is the median of the rounds'
ratios, and each round has another one first, since a machine that is shared is faster in one moment
than in the next. Where other programs want the cores too, requests a second are what those leave:
so there is a second figure, requests in a second of the worker's processor time.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from harness import load, places, tollbar  # noqa: E402
from harness.config import CONTENT  # noqa: E402
from harness.server import Nginx  # noqa: E402

FLAVOURS = {"limit_req": ([], "limit_req"), "drop-in": ([places.DROPIN], "limit_req"), "tollbar": ([tollbar.MODULE], "tollbar")}
KNOWN = 50_000

# Known keys, in an order that is no order.
KNOWN_KEYS = f"""
n = 0
function request()
    n = (n + 7919) % {KNOWN}
    return wrk.format("GET", "/?k=" .. n)
end
"""


def launch(home, flavour, key, limits):
    modules, directive = FLAVOURS[flavour]
    keys = [f'"{number}{key}"' if number else key for number in range(limits)]
    zones = "".join(f"{directive}_zone {k} zone=z{n}:32m rate=1000000r/s;" for n, k in enumerate(keys))
    uses = "".join(f"{directive} zone=z{n} burst=60000 nodelay;" for n in range(limits))
    return Nginx(home, modules=modules, log_level="crit", http=f"access_log off; {zones}",
                 server=f"location / {{ {uses} {CONTENT} }}").start()


def processor_time(pid):
    """Seconds that it has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def run(nginx, seconds, **keys):
    """Requests in a second by the clock, and by the worker's own."""
    [worker] = nginx.workers()
    before = processor_time(worker)
    found = load.end(load.begin(nginx, connections=32, seconds=seconds, **keys))
    ran = processor_time(worker) - before
    assert found.refused < found.requests / 100, f"refused {found.refused}"
    return found.requests / found.seconds, found.requests / ran


def measure(title, key, limits, keys_of, rounds, seconds):
    with tempfile.TemporaryDirectory() as home:
        running = {flavour: launch(Path(home) / flavour, flavour, key, limits) for flavour in FLAVOURS}
        found = {flavour: [] for flavour in FLAVOURS}
        order = list(FLAVOURS)
        try:
            for number in range(rounds):
                for flavour in order[number % 3:] + order[:number % 3]:
                    found[flavour].append(run(running[flavour], seconds, **keys_of(number)))
        finally:
            for nginx in running.values():
                nginx.stop()
    for which, name in enumerate(["by the clock", "by its own time"]):
        line = f"{title if which == 0 else '':26}{name:16}"
        for flavour in FLAVOURS:
            ratio = statistics.median(ours[which] / stock[which] for ours, stock in zip(found[flavour], found["limit_req"]))
            line += f"{statistics.median(one[which] for one in found[flavour]):10,.0f} {ratio:5.3f}x"
        print(line, flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(f"{'requests a second':42}" + "".join(f"{flavour:>10}       " for flavour in FLAVOURS))
    measure("one address", "$binary_remote_addr", 1, lambda _: {}, rounds, seconds)
    measure("one address, three limits", "$binary_remote_addr", 3, lambda _: {}, rounds, seconds)
    measure(f"{KNOWN:,} known keys", "$arg_k", 1, lambda _: {"script": KNOWN_KEYS}, rounds, seconds)
    measure("fresh keys", "$arg_k", 1, lambda number: {"fresh": f"r{number}"}, rounds, seconds)


main()
