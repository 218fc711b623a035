#!/usr/bin/env python3
"""Requests a second with nginx's own limit_req, the drop-in, and tollbar's own directives, in turn on one machine.

usage: throughput.py [rounds] [seconds]

One worker, wrk with one thread; every request is admitted. A ratio is the median of the rounds' ratios, since a machine that
is shared is faster in one round than in the next.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from harness import load, places  # noqa: E402
from harness.config import CONTENT  # noqa: E402
from harness.server import Nginx  # noqa: E402

TOLLBAR = "ngx_http_tollbar_module.so"
FLAVOURS = {"limit_req": ([], "limit_req"), "drop-in": ([places.DROPIN], "limit_req"), "tollbar": ([TOLLBAR], "tollbar")}


def launch(home, flavour, key, limits):
    modules, directive = FLAVOURS[flavour]
    keys = [f'"{number}{key}"' if number else key for number in range(limits)]
    zones = "".join(f"{directive}_zone {k} zone=z{n}:32m rate=1000000r/s;" for n, k in enumerate(keys))
    if directive == "limit_req":
        zones = zones.replace("1000000r/s", "1000000r/s")
    uses = "".join(f"{directive} zone=z{n} burst=60000 nodelay;" for n in range(limits))
    return Nginx(home, modules=modules, log_level="crit", http=f"access_log off; {zones}",
                 server=f"location / {{ {uses} {CONTENT} }}").start()


def measure(title, key, limits, fresh, rounds, seconds):
    with tempfile.TemporaryDirectory() as home:
        running = {flavour: launch(Path(home) / flavour, flavour, key, limits) for flavour in FLAVOURS}
        try:
            rates = {flavour: [] for flavour in FLAVOURS}
            for number in range(rounds):
                for flavour, nginx in running.items():
                    found = load.end(load.begin(nginx, connections=32, seconds=seconds,
                                                fresh=f"r{number}" if fresh else None))
                    rates[flavour].append(found.requests / found.seconds)
                    assert found.refused < found.requests / 100, f"{flavour} refused {found.refused}"
        finally:
            for nginx in running.values():
                nginx.stop()
    line = f"{title:28}"
    for flavour in FLAVOURS:
        ratio = statistics.median(ours / stock for ours, stock in zip(rates[flavour], rates["limit_req"]))
        line += f"{statistics.median(rates[flavour]):14,.0f} ({ratio:.2f}x)"
    print(line, flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    print("requests a second" + " " * 11 + "".join(f"{flavour:>14}        " for flavour in FLAVOURS))
    measure("one address", "$binary_remote_addr", 1, False, rounds, seconds)
    measure("one address, three limits", "$binary_remote_addr", 3, False, rounds, seconds)
    measure("fresh keys", "$arg_k", 1, True, rounds, seconds)


main()
