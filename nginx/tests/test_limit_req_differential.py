"""Configurations and requests made up by chance, put to the stock module and to the drop-in: they
have to agree."""

import os
import random
import re
import time

import pytest

from harness import places
from harness.client import Kept
from harness.config import CONTENT
from harness.server import Nginx

SEEDS = range(int(os.environ.get("DIFFERENTIAL_SEEDS", "12")))
REQUESTS = 200

# At each of these rates less than a third of a permit comes back in a second. With bursts below ten
# no two rates give the same wait, so the wait shows which limit refused.
RATES = [11, 13, 17, 19]
SECONDS = 1.0
TOLERANCE = SECONDS * max(RATES) / 60 + 0.01
KEYS = ["$arg_a", "$arg_b", "$arg_c", "$arg_a$arg_b", '"$arg_c and more"', "$server_port"]
PATHS = ["/0", "/1", "/2", "/3", "/through"]


def limits_of(chance, zones):
    """Some of the zones in any order, each as one may write it."""
    lines = []
    for zone in chance.sample(range(zones), chance.randrange(1, zones + 1)):
        burst = chance.choice(["", f"burst={chance.randrange(1, 10)}"])
        lines.append(f"limit_req zone=z{zone} {burst} {chance.choice(['', 'nodelay', 'delay=%d' % chance.randrange(1, 9)])};")
    return " ".join(lines)


def parts_of(chance):
    zones = chance.randrange(1, 5)
    http = "\n".join(f"limit_req_zone {chance.choice(KEYS)} zone=z{i}:1m rate={RATES[i]}r/m;" for i in range(zones))
    # Delays would take many seconds. A dry run reports them without waiting; all other limits have
    # `nodelay`.
    server = "add_header X-Limit $limit_req_status always;\n"
    for i in range(4):
        limits, dry = limits_of(chance, zones), chance.random() < 0.6
        if not dry:
            limits = re.sub(r"(nodelay|delay=\d+)?;", "nodelay;", limits)
        server += f"location /{i} {{ limit_req_dry_run {'on' if dry else 'off'}; {limits} {CONTENT} }}\n"
    server += f"location /through {{ {'limit_req zone=z0 nodelay;' if chance.random() < 0.5 else ''} try_files /n /0; }}"
    return {"http": http, "server": server}


def requests_of(chance):
    def args():
        return "&".join(f"{name}={chance.randrange(3)}" for name in "abc" if chance.random() < 0.8)
    return [f"{chance.choice(PATHS)}?{args()}" for _ in range(REQUESTS)]


def told(home, flavour, seed):
    chance = random.Random(seed)
    nginx = Nginx(home, modules=places.modules_of(flavour), **parts_of(chance)).start()
    paths = requests_of(chance)
    try:
        began = time.monotonic()
        # In one piece over one connection, which costs a busy machine the fewest turns.
        with Kept(nginx.port) as kept:
            kept.send(*paths)
            answers = [(path, a.status, a.headers.get("x-limit")) for path in paths for a in [kept.read()]]
        took = time.monotonic() - began
        log = nginx.said("excess: ")
    finally:
        nginx.stop()
    nginx.check_log()
    return answers, log, took


def without_excess(log):
    return [(level, re.sub(r"excess: [\d.]+", "excess: X", message)) for level, message in log]


def excesses(log):
    return [float(re.search(r"excess: ([\d.]+)", message)[1]) for _, message in log]


def told_in_time(home, flavour, seed):
    """What was said, of a run in which so little was earned that it makes no difference."""
    for n in range(20):
        answers, log, took = told(home / f"{flavour}{n}", flavour, seed)
        if took < SECONDS:
            return answers, log
    raise AssertionError(f"this machine needs more than {SECONDS} s for {REQUESTS} requests")


@pytest.mark.parametrize("seed", SEEDS)
def test_both_say_the_same(tmp_path, seed):
    answers, log = told_in_time(tmp_path, places.STOCK_FLAVOUR, seed)
    our_answers, our_log = told_in_time(tmp_path, places.DROPIN_FLAVOUR, seed)
    assert our_answers == answers
    assert without_excess(our_log) == without_excess(log)
    assert all(abs(ours - theirs) <= TOLERANCE for ours, theirs in zip(excesses(our_log), excesses(log)))
    # The case is not an empty one.
    assert {limit for _, _, limit in answers} - {None}
