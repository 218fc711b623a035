"""Where the drop-in promises more than the stock module: a rate that is high is reached."""

import os
import time
from pathlib import Path

from harness import load, places
from harness.client import Kept
from harness.config import CONTENT
from harness.server import Nginx

RATE = 10_000
SECONDS = 5
TRIES = 3


def waited(pid):
    """Seconds for which threads of a process wanted a core and had none."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[1])
        except (OSError, IndexError):
            continue
    return total / 1e9


def stolen():
    """Seconds that the host has kept from this machine's cores."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


def admitted_per_second(home, flavour):
    """What was admitted in a second, and the share of the time in which nginx or its clients waited
    for a core."""
    # With this small burst a limiter whose clock has steps of a millisecond admits two requests in
    # each step.
    nginx = Nginx(home, modules=places.modules_of(flavour), log_level="crit",
                  http=f"access_log off; limit_req_zone $server_port zone=z:1m rate={RATE}r/s;",
                  server=f"location / {{ limit_req zone=z burst=1 nodelay; {CONTENT} }}").start()
    try:
        [worker] = nginx.workers()
        before, gone, held_up = waited(worker), stolen(), 0.0
        wrk = load.begin(nginx, connections=64, seconds=SECONDS)
        while wrk.poll() is None:
            held_up = max(held_up, waited(worker) - before + waited(wrk.pid) + stolen() - gone)
            time.sleep(0.05)
        found = load.end(wrk)
    finally:
        nginx.stop()
    return found.admitted / found.seconds, held_up / found.seconds


def test_a_high_rate_without_a_burst_is_reached(tmp_path, capsys):
    stock, _ = admitted_per_second(tmp_path / "stock", places.STOCK_FLAVOUR)
    lines, reached = [f"\nadmitted per second at rate={RATE}r/s burst=1 nodelay: stock {stock:,.0f}"], False
    while len(lines) <= TRIES and not reached:
        ours, held_up = admitted_per_second(tmp_path / f"dropin{len(lines)}", places.DROPIN_FLAVOUR)
        lines.append(f"drop-in {ours:,.0f} (without a core for {held_up:.0%} of the time)")
        # While another program has the core of nginx or of the clients, permits above this small
        # burst are lost.
        reached = ours >= 0.85 * RATE * (1 - held_up)
        assert ours <= 1.01 * RATE
    with capsys.disabled():
        print("; ".join(lines))
    assert reached, lines
    assert ours > 2 * stock * max(0.0, 1 - held_up)


def test_requests_that_keep_to_a_high_rate_all_pass(launch, flavour):
    """On a machine however slow: one after the other over one connection they come further apart
    than the rate asks."""
    nginx = launch(http="limit_req_zone $server_port zone=z:1m rate=100000r/s;", log_level="crit",
                   server=f"location / {{ limit_req zone=z burst=1 nodelay; {CONTENT} }}")
    refused = 0
    with Kept(nginx.port) as kept:
        for _ in range(3000):
            kept.send("/")
            refused += kept.read().status != 200
    # The stock module knows time in steps of a millisecond, and refuses the third in each.
    assert (refused > 0) == (flavour == places.STOCK_FLAVOUR)
