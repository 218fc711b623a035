"""Processes of each language hold permits of one key, and the driver kills them at random and
starts them again (holder.h).

    in_flight.py NAME=COMMAND...

TOGETHER_SEED chooses the kills, and TOGETHER_KILLS their number. The last line is
`N passed, N failed`.
"""

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time

import tollbar

LIMIT = 4
KILLS = int(os.environ.get("TOGETHER_KILLS", "24"))
SEED = int(os.environ.get("TOGETHER_SEED", "1"))
commands = dict(argument.split("=", 1) for argument in sys.argv[1:])


def start(name, place):
    return subprocess.Popen([*shlex.split(commands[name]), place], stdout=subprocess.PIPE, text=True)


def storm(place, children):
    """Kills a random process KILLS times, and each time starts another. Returns the processes that
    failed, with their exit codes."""
    chance, bad = random.Random(SEED), []
    for _ in range(KILLS):
        name = chance.choice(sorted(children))
        child = children[name]
        # Waits until the process has had a permit, or has ended.
        said = child.stdout.readline()
        time.sleep(chance.random() * 0.005)
        child.kill()
        if child.wait() != -9 or said != "held\n":
            bad.append((name, child.returncode))
        child.stdout.close()
        children[name] = start(name.split("-")[0], place)
    with open(f"{place}/stop", "w"):
        pass
    bad.extend((name, child.returncode) for name, child in children.items() if child.wait(60) != 0)
    return bad


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, tollbar.InFlight.open(f"{place}/table", 100) as table:
        children = {f"{name}-{n}": start(name, place) for name in commands for n in range(2)}
        try:
            bad = storm(place, children)
        finally:
            for child in children.values():
                child.kill()
                child.wait()
        # All permits of killed processes are free again within a second, and there are no more than
        # the limit. A call that begins a second later is refused no more: the machine may stop this
        # process for any time.
        begin, tickets, late = time.monotonic(), [], False
        while len(tickets) < LIMIT:
            late = time.monotonic() - begin >= 1
            ticket = table.acquire("k", LIMIT)
            if ticket:
                tickets.append(ticket)
            elif late:
                break
        back = len(tickets) == LIMIT and table.acquire("k", LIMIT) is None
    print("FAIL " if bad else "ok   ", f"{KILLS} kills: no permit without a file, no live ticket void", bad[:8] or "")
    print("ok   " if back else "FAIL ", f"the whole limit is back within a second: {len(tickets)} of {LIMIT}")
    print(f"{(not bad) + back} passed, {bool(bad) + (not back)} failed")
    return 1 if bad or not back else 0


sys.exit(main())
