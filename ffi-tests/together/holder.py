"""A holder in Python: see holder.h."""

import fcntl
import os
import sys
import time

import tollbar

LIMIT, TRIES = 4, 20
place = sys.argv[1]
files = [os.open(f"{place}/lock-{n}", os.O_RDWR | os.O_CREAT, 0o600) for n in range(LIMIT)]


def lock_one():
    for _ in range(TRIES):
        for file in files:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return file
            except BlockingIOError:
                pass
    sys.exit(3)


told = False
with tollbar.InFlight.open(f"{place}/table") as table:
    while not os.path.exists(f"{place}/stop"):
        permit = table.enter("k", LIMIT)
        if not permit:
            time.sleep(0.0001)
            continue
        file = lock_one()
        if not told:
            told = True
            print("held", flush=True)
        time.sleep(0.0005)
        fcntl.flock(file, fcntl.LOCK_UN)
        if not permit.release():
            sys.exit(4)
