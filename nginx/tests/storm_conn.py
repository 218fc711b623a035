#!/usr/bin/env python3
"""Workers are killed while requests are in progress, again and again; afterwards every key has room
for its limit and no more.

usage: storm_conn.py [stock|tollbar] [kills]
"""

import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

from harness.held import END, HOLD, Counting, Held, room
from harness.server import wait_until

LIMIT = 4
KEYS = 12
# The zone and the limit of each kind of nginx.
DIRECTIVES = {
    "stock": ("limit_conn_zone $arg_k zone=z:1m;", f"limit_conn z {LIMIT}; limit_conn_status 429;"),
    "tollbar": ("tollbar_conn_zone $arg_k zone=z:1m;", f"tollbar_conn z {LIMIT};"),
}


@dataclass
class Damage:
    """What a storm did. All but the first three is nothing if the counts came through."""

    kills: int = 0
    let_in: int = 0
    refused: int = 0
    # Keys that after the storm do not have exactly the limit's permits free, each with its free
    # permits.
    wrong_keys: list = field(default_factory=list)
    after_a_reload: list = field(default_factory=list)
    complaints: list = field(default_factory=list)

    def any(self):
        return bool(self.wrong_keys or self.after_a_reload or self.complaints)


class Client(threading.Thread):
    """Holds requests of random keys for short times. A worker that dies takes them with it."""

    def __init__(self, nginx, seed):
        super().__init__()
        self.nginx = nginx
        self.chance = random.Random(seed)
        self.stop = False
        self.statuses = []

    def run(self):
        held = []
        while not self.stop:
            if len(held) > 8 or (held and self.chance.random() < 0.4):
                self.release(held.pop(self.chance.randrange(len(held))))
                continue
            try:
                one = Held(self.nginx.port, f"/?k=key{self.chance.randrange(KEYS)}")
                self.statuses.append(one.answer())
            except OSError:
                continue
            if one.status == 100:
                held.append(one)
        for one in held:
            self.release(one)

    def release(self, one):
        try:
            one.end() if self.chance.random() < 0.7 else one.drop()
        except OSError:
            one.drop()


def wrong_keys(nginx, patience):
    """The last requests of the storm may not have ended for nginx when their clients have gone.
    Stock counts that have leaked never come right, so they are given less time."""
    found = []
    for n in range(KEYS):
        end = time.monotonic() + patience
        while True:
            there = room(nginx, f"/?k=key{n}", LIMIT)
            if there == LIMIT or there > LIMIT or time.monotonic() > end:
                break
            time.sleep(0.01)
        if there != LIMIT:
            found.append(there)
    return found


def storm(home, flavour, kills, seed=1):
    zone, limit = DIRECTIVES[flavour]
    modules = [] if flavour == "stock" else ["ngx_http_tollbar_module.so"]
    nginx = Counting(home, modules=modules, workers=2, log_level="crit", listen="reuseport", http=zone + " access_log off;",
                     server=f"location / {{ {limit} {HOLD} }} {END}")
    if flavour == "stock":
        nginx.write = lambda **parts: stock_write(nginx, **parts)
    nginx.start()
    damage = Damage(kills=kills)
    clients = [Client(nginx, seed * 100 + n) for n in range(6)]
    try:
        chance = random.Random(seed)
        for one in clients:
            one.start()
        time.sleep(0.2)
        done = 0
        # On a busy machine the kills go on until nginx has admitted more than 100 requests.
        while done < kills or (sum(one.statuses.count(100) for one in clients) <= 100 and done < 50 * kills):
            workers = nginx.workers()
            if workers:
                os.kill(chance.choice(workers), signal.SIGKILL)
                done += 1
            time.sleep(chance.uniform(0.005, 0.08))
        damage.kills = done
        wait_until(lambda: len(nginx.workers()) == 2, "both workers are back")
        for one in clients:
            one.stop = True
        for one in clients:
            one.join()
        damage.let_in = sum(one.statuses.count(100) for one in clients)
        damage.refused = sum(one.statuses.count(429) for one in clients)
        patience = 2 if flavour == "stock" else 30
        damage.wrong_keys = wrong_keys(nginx, patience)
        nginx.reload()
        damage.after_a_reload = wrong_keys(nginx, patience)
        nginx.expected.append("worker process")
        damage.complaints = sorted({re.sub(r"^.*?\[", "[", re.sub(r"\d+", "N", line)) for line in nginx.complaints()})
    finally:
        for one in clients:
            one.stop = True
        nginx.stop()
    return damage


def stock_write(nginx, **parts):
    Counting.write(nginx, **parts)
    path = nginx.home / "nginx.conf"
    path.write_text(path.read_text().replace("$tollbar_conn_status", "$limit_conn_status"))


def main():
    flavour = sys.argv[1] if len(sys.argv) > 1 else "tollbar"
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as home:
        damage = storm(home + "/nginx", flavour, kills)
    print(f"{flavour}: {damage.kills} workers killed, {damage.let_in} requests let in, {damage.refused} refused")
    print(f"  keys that have not room for {LIMIT} afterwards, but for: {damage.wrong_keys} ({KEYS} were asked)")
    print(f"  the same after a reload: {damage.after_a_reload}")
    print(f"  complaints in the error log: {damage.complaints}")
    return 1 if damage.any() else 0


if __name__ == "__main__":
    sys.exit(main())
