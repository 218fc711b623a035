#!/usr/bin/env python3
"""What a limit costs a request, in instructions: nginx's own limit_req, the drop-in, and tollbar's
own directives.

usage: cost.py [requests]

A single process of nginx runs under callgrind. What one request takes is the difference between a
long run and a short one, and what the limit takes of it is the difference to the same configuration
without one; so nothing has to be known about where in nginx the instructions are. The time-stamp
counter is read as in earnest, but its instruction counts as one.

What has nothing to do with limits is kept out. Nginx's own clock stands still, or it would be set
so often as this slow process needs. And the C library's allocator is not counted: a request's
memory is found after one look or after many, as its lists happen to lie, which differs from start
to start by as much as half a limit. Nothing here allocates for a limit.
"""

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from harness import places  # noqa: E402
from harness.client import Kept  # noqa: E402
from harness.config import CONTENT  # noqa: E402
from harness.server import PATIENCE, Nginx  # noqa: E402

SHORT = 500
# How the names of the allocator's functions begin.
ALLOCATOR = ("malloc", "free", "posix_memalign", "_int_malloc", "_int_free", "_int_memalign", "_mid_memalign", "unlink_chunk",
             "sysmalloc", "systrim")
TOLLBAR = "ngx_http_tollbar_module.so"
# Keys of 100,000 in turn would take hours here. What matters is that there are many, each known.
KNOWN = 2_000


def words(prefix, key, limits, size):
    """The two directives, so many times: a rate that nobody reaches, so that every request is
    admitted at once."""
    zones = "".join(f"{prefix}_zone {key} zone=z{n}:{size} rate=1000r/s;" for n in range(limits))
    return zones, "".join(f"{prefix} zone=z{n} burst=30000 nodelay;" for n in range(limits))


FLAVOURS = {
    "none": ([], None),
    "limit_req": ([], "limit_req"),
    "drop-in": ([places.DROPIN], "limit_req"),
    "tollbar": ([TOLLBAR], "tollbar"),
}
# The zones' key, their number, the key's number in the n-th request, and a size of zones that has
# room for all keys: callgrind takes a second for 32 MB of a table.
CASES = {
    "one address": ("$binary_remote_addr", 1, lambda n: 0, "1m"),
    "one address, three limits": ("$binary_remote_addr", 3, lambda n: 0, "1m"),
    f"{KNOWN:,} known keys": ("$arg_k", 1, lambda n: n * 7919 % KNOWN, "32m"),
    f"{KNOWN:,} known, three limits": ("$arg_k", 3, lambda n: n * 7919 % KNOWN, "32m"),
    "fresh keys": ("$arg_k", 1, lambda n: n, "32m"),
    "fresh keys, three limits": ("$arg_k", 3, lambda n: n, "32m"),
}


def end(nginx):
    """A single process may take the signal just before it begins to wait for events: then it needs
    one."""
    for _ in range(int(PATIENCE)):
        nginx.process.send_signal(signal.SIGTERM)
        try:
            nginx.process.wait(1)
            return
        except subprocess.TimeoutExpired:
            continue
    raise SystemExit("nginx does not end")


def instructions(home, flavour, case, requests):
    key, limits, path_of, size = CASES[case]
    modules, directive = FLAVOURS[flavour]
    zone, limit = words(directive, key, limits, size) if directive else ("", "")
    # The variable is made whether or not there is a limit.
    limit = f'set $seen "$arg_k$binary_remote_addr"; {limit}'
    if directive == "tollbar":
        limit += " tollbar_headers off;"
    out = home / "callgrind.out"
    nginx = Nginx(home, wrapper=["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"], modules=modules,
                  main="master_process off; timer_resolution 1000s;", log_level="crit", http=f"access_log off; {zone}",
                  server=f"location / {{ {limit} {CONTENT} }}").start()
    try:
        with Kept(nginx.port) as kept:
            # Every known key is known before it counts.
            for first in range(0, requests, 50):
                paths = [f"/?k={path_of(n):08d}" for n in range(first, min(first + 50, requests))]
                kept.send(*paths)
                for _ in paths:
                    assert kept.read().status == 200
        end(nginx)
    finally:
        nginx.stop()
    return counted(out)


def counted(out):
    """The instructions of all functions but the allocator's."""
    lines = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", str(out)], stdout=subprocess.PIPE, text=True, check=True).stdout
    functions = re.findall(r"(?m)^ *([\d,]+) \([ \d.]+%\)  [^:\n]*:(.+)$", lines)
    assert functions, lines
    return sum(int(count.replace(",", "")) for count, name in functions if not name.startswith(ALLOCATOR))


def per_request(home, flavour, case, requests):
    start = KNOWN if "known" in case else SHORT
    runs = [instructions(home / f"{flavour}-{n}", flavour, case, n) for n in (start, start + requests)]
    return (runs[1] - runs[0]) / requests


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    version = subprocess.run([places.program("nginx"), "-v"], stderr=subprocess.PIPE, text=True, check=True).stderr.strip()
    print(f"{version}; instructions that a limit adds to a request, of {requests} requests")
    print(f"{'':26}" + "".join(f"{flavour:>12}" for flavour in list(FLAVOURS)[1:]))
    with tempfile.TemporaryDirectory() as home:
        for number, case in enumerate(CASES):
            base = per_request(Path(home) / str(number), "none", case, requests)
            costs = [per_request(Path(home) / str(number), flavour, case, requests) - base for flavour in list(FLAVOURS)[1:]]
            print(f"{case:26}" + "".join(f"{cost:12.0f}" for cost in costs), flush=True)


if __name__ == "__main__":
    main()
