#!/usr/bin/env python3
"""Workers are killed under load, again and again; afterwards every key that is new has to behave.

usage: storm.py [stock|dropin|tollbar] [kills]
"""

import os
import random
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field

from harness import load, places, tollbar
from harness.client import count
from harness.config import CONTENT
from harness.server import Nginx, wait_until

# The modules of each flavour, and the word that its directives begin with.
FLAVOURS = {
    places.STOCK_FLAVOUR: ([], "limit_req"),
    places.DROPIN_FLAVOUR: ([places.DROPIN], "limit_req"),
    "tollbar": ([tollbar.MODULE], "tollbar"),
}
# The first limit has the lowest rate and the smallest burst, so it decides. The probes expect its
# burst.
ZONES = """
    access_log off;
    {word}_zone $arg_k zone=a:10m rate=1r/s;
    {word}_zone "b$arg_k" zone=b:10m rate=2r/s;
    {word}_zone "c$arg_k" zone=c:10m rate=5r/s;
"""
LIMITS = "{word} zone=a burst=5 nodelay; {word} zone=b burst=6 nodelay; {word} zone=c burst=7 nodelay;"
BURST = 5
RATE = 1
PROBES = 40


@dataclass
class Damage:
    """What a storm did. All of it is nothing if the tables came through."""

    kills: int = 0
    requests: int = 0
    # The load uses each key once, so no limit can have refused these requests.
    refused_in_the_storm: int = 0
    newcomers_refused: int = 0
    wrong_bursts: list = field(default_factory=list)
    after_a_reload: int = 0
    complaints: list = field(default_factory=list)

    def any(self):
        return bool(self.refused_in_the_storm or self.newcomers_refused or self.wrong_bursts or self.after_a_reload
                    or self.complaints)


def start(home, flavour):
    modules, word = FLAVOURS[flavour]
    return Nginx(home, modules=modules, workers=2, log_level="crit", http=ZONES.format(word=word), listen="reuseport",
                 server=f"location / {{ {LIMITS.format(word=word)} {CONTENT} }}").start()


def kill_in_turn(nginx, kills, chance):
    """Kill one worker after the other, at moments that have nothing to do with what it is about."""
    done = 0
    while done < kills:
        workers = nginx.workers()
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
            done += 1
        time.sleep(chance.uniform(0.005, 0.06))
    wait_until(lambda: len(nginx.workers()) == 2, "both workers are back")


def newcomers(nginx, prefix):
    """How many of a number of new keys are refused at once."""
    return sum(nginx.get(f"/?k={prefix}.{i}").status != 200 for i in range(PROBES))


def wrong_bursts(nginx, prefix):
    wrong = []
    for i in range(10):
        answers = nginx.volley(f"/?k={prefix}.{i}", 12)
        earned = RATE * (max(a.done for a in answers) - min(a.sent for a in answers))
        admitted = count(answers)
        if not BURST + 1 <= admitted <= BURST + 1 + earned + 1:
            wrong.append(admitted)
        # Every refusal has the status of a limit.
        if admitted + count(answers, 503) + count(answers, 429) != 12:
            wrong.append(-1)
    return wrong


def storm(home, flavour, kills, seed=1):
    nginx = start(home, flavour)
    damage = Damage(kills=kills)
    try:
        chance = random.Random(seed)
        done = 0
        # Short rounds, because wrk takes its running time when it starts.
        while done < kills:
            wrk = load.begin(nginx, connections=16, seconds=2, fresh=f"storm{done}")
            # The first requests have to be on their way.
            time.sleep(0.2)
            step = min(20, kills - done)
            kill_in_turn(nginx, step, chance)
            done += step
            counted = load.end(wrk)
            damage.requests += counted.requests
            damage.refused_in_the_storm += counted.refused
        damage.newcomers_refused = newcomers(nginx, "new")
        damage.wrong_bursts = wrong_bursts(nginx, "burst")
        nginx.reload()
        damage.after_a_reload = newcomers(nginx, "again")
        nginx.expected.append("worker process")
        damage.complaints = sorted({re.sub(r"^.*?\[", "[", re.sub(r"\d+", "N", line)) for line in nginx.complaints()})
    finally:
        nginx.stop()
    return damage


def main():
    flavour = sys.argv[1] if len(sys.argv) > 1 else places.DROPIN_FLAVOUR
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as home:
        damage = storm(home + "/nginx", flavour, kills)
    print(f"{flavour}: {damage.kills} workers killed under {damage.requests} requests, each with a key of its own")
    print(f"  refused in the storm, without a limit that explains it: {damage.refused_in_the_storm}")
    print(f"  new keys refused afterwards: {damage.newcomers_refused} of {PROBES}")
    print(f"  bursts of new keys that were not {BURST + 1}: {damage.wrong_bursts}")
    print(f"  new keys refused after a reload: {damage.after_a_reload} of {PROBES}")
    print(f"  complaints in the error log: {damage.complaints}")
    return 1 if damage.any() else 0


if __name__ == "__main__":
    sys.exit(main())
