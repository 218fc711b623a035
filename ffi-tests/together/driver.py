"""Processes of each language use one named table at the same time. The driver kills them at random
and starts them again.

    driver.py NAME=COMMAND...

The driver runs each command with three more arguments: the table's path, a board (board.h), and the
policy. TOGETHER_SEED chooses the kills, and TOGETHER_KILLS their number.

The key's state says how many permits the table has charged: a token bucket that is never full again
after its first charge, at T0, is full at T0 + charged / rate. The driver makes that first charge,
of half the burst, which takes more than ten seconds to refill. So the sum of all admitted permits
is known exactly, except for the calls that a killed process did not count, which its board shows.
"""

import mmap
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import tollbar

KEYS, FIRST, EACH, WORDS = 4, 8, 3, 20
READY, GO, STOP = 0, 1, 2
RATE, BURST = 20_000, 500_000
TAKEN = BURST // 2
POLICY = f"{RATE}/s burst {BURST}"
SEED = int(os.environ.get("TOGETHER_SEED", "1"))
KILLS = int(os.environ.get("TOGETHER_KILLS", "16"))
PATIENCE = 120.0

passed = failed = 0


def check(name, good, *said):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("ok   " if good else "FAIL ", name, *said, flush=True)


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"gave up waiting until {what}")
        time.sleep(0.001)


class Process:
    """One life of a language's process, and its board."""

    def __init__(self, name, command, directory, table, number, go):
        self.name, self.killed = name, False
        path = os.path.join(directory, f"{name}-{number}")
        with open(path, "w+b") as file:
            file.truncate(8 * WORDS)
            self.board = memoryview(mmap.mmap(file.fileno(), 8 * WORDS)).cast("Q")
        self.board[GO] = go
        self.process = subprocess.Popen([*shlex.split(command), table, path, POLICY])

    def begin(self):
        self.board[GO] = 1

    def ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}")
        return self.board[READY]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.killed = True
        return self.process.wait(PATIENCE)

    def end(self):
        self.board[STOP] = 1
        return self.process.wait(PATIENCE)

    def sum(self, which, key=None):
        return sum(self.board[FIRST + EACH * k + which] for k in range(KEYS) if key in (None, k))

    def admitted(self, key=None):
        return self.sum(1, key)

    def refused(self, key=None):
        return self.sum(2, key)

    def unanswered(self, key=None):
        return self.sum(0, key) - self.sum(1, key) - self.sum(2, key)


def storm(commands, directory, path, chance):
    """Runs and kills the processes. Returns the lives of all, and the table."""
    running = {name: Process(name, command, directory, path, 0, 0) for name, command in commands.items()}
    lives = list(running.values())
    kills = dict.fromkeys(commands, 0)
    try:
        # All processes start at once, and one makes the table.
        for life in lives:
            wait_until(life.ready, f"{life.name} has opened the table")
        table = tollbar.Table.open(path)
        t0 = table.now()
        for k in range(KEYS):
            assert table.check(b"key-%d" % k, cost=TAKEN, at=t0)
        for life in lives:
            life.begin()
        # Each process has made requests before the first is killed.
        for life in lives:
            wait_until(lambda life=life: life.ready() and life.admitted() + life.refused() > 0, f"{life.name} asks")
        # It kills each language once in a random order, and then any.
        names = sorted(running)
        for number, name in enumerate(chance.sample(names, len(names)) + chance.choices(names, k=KILLS - len(names)), 1):
            time.sleep(chance.uniform(0, 0.3))
            victim = running[name]
            assert victim.kill() == -signal.SIGKILL, f"{name} had ended by itself"
            kills[name] += 1
            running[name] = Process(name, commands[name], directory, path, number, 1)
            lives.append(running[name])
        # The processes that were started last must make requests, too, and all together for a
        # while.
        for life in running.values():
            wait_until(lambda life=life: life.ready() and life.refused() > 0, f"{life.name} is refused")
        time.sleep(0.3)
        *others, last = running.values()
        codes = [life.end() for life in others]
        # A process that counts its second refusal after `worked` was refused after it: then the key
        # had no permit.
        worked = table.now()
        before = [last.refused(k) for k in range(KEYS)]
        wait_until(lambda: all(last.refused(k) >= before[k] + 2 for k in range(KEYS)), f"{last.name} is refused all keys")
        codes.append(last.end())
    finally:
        for life in lives:
            if life.process.poll() is None:
                life.process.kill()
                life.process.wait()
    check("the processes that were not killed have ended without an error", set(codes) == {0}, codes)
    return lives, kills, table, t0, worked


def judge(lives, kills, table, t0, worked):
    for name in kills:
        own = [life for life in lives if life.name == name]
        print(f"      {name}: {len(own)} lives, {sum(x.admitted() for x in own)} admitted,"
              f" {sum(x.refused() for x in own)} refused, {sum(x.unanswered() for x in own)} calls died in")
    for name, times in kills.items():
        own = [life for life in lives if life.name == name]
        check(f"{name} was killed, {times} times, admitted and refused",
              times > 0 and all(sum(f(x) for x in own) for f in (Process.admitted, Process.refused)))
    check("the killed left one call each at most, the others none",
          all(life.unanswered() in ((0, 1) if life.killed else (0,)) for life in lives))
    for k in range(KEYS):
        now = table.now()
        state = table.peek(b"key-%d" % k, at=now)
        counted = TAKEN + sum(life.admitted(k) for life in lives)
        lost = sum(life.unanswered(k) for life in lives)
        charged, odd = divmod((now + state.reset_after_ns - t0) * RATE, 10**9)
        bound = BURST + RATE * (now - t0) // 10**9
        name = f"key {k}: {counted} admitted"
        check(f"{name}, not above {bound}", counted <= bound)
        check(f"{name}, of {charged} charged and {lost} calls without an answer", counted <= charged <= counted + lost and odd == 0)
        # After `worked` the key had no permit. No process need have taken the permits that were
        # refilled since.
        check(f"{name}, all there was but {state.remaining}", state.remaining <= 1 + RATE * (now - worked) // 10**9)
        # The key still gives permits: those that were refilled since.
        wait_until(lambda k=k: table.peek(b"key-%d" % k, cost=1), "a permit has come back")
        check(f"key {k} gives on", table.take_up_to(b"key-%d" % k, BURST) > 0 and not table.check(b"key-%d" % k, cost=BURST))
    health, stats = table.validate(), table.stats()
    check("the table is sound", not health.slots_invalid and (health.duplicate, health.unknown, health.claimed) == (0, 0, 0), health)
    check("it has the keys and no more", stats.keys == KEYS == health.live and stats.inserted == KEYS, stats)


def main():
    commands = dict(word.split("=", 1) for word in sys.argv[1:])
    print(f"seed {SEED}, {KILLS} kills, {POLICY}: {', '.join(commands)}")
    with tempfile.TemporaryDirectory() as directory:
        path = f"/dev/shm/tollbar-together-{os.getpid()}"
        try:
            lives, kills, table, t0, worked = storm(commands, directory, path, random.Random(SEED))
            judge(lives, kills, table, t0, worked)
            table.close()
        finally:
            if os.path.exists(path):
                os.unlink(path)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
