"""One address is one key (B3, B4, A5): each language writes, and each language reads.

    matrix.py NAME=COMMAND...

A command visits a table (visit.c). Each writer takes the one permit of an address for each reader
and each way to write the address. Then each reader, with the same address written in another way,
must be refused, and pass with an address that nobody has visited.
"""

import os
import shlex
import subprocess
import sys
import tempfile

# Ways to write the n-th address. The first of a list is the plain one.
V4 = ["{a}", "{a}:4711", " {a}", "::ffff:{a}", "[::ffff:{a}]:80", "64:ff9b::{a}", "[{a}]"]
V6 = ["2001:db8:{n:x}::1", "[2001:db8:{n:x}::2]:443", "[2001:db8:{n:x}::3]", "2001:db8:{n:x}::4%eth0", "2001:DB8:{n:x}:0:ffff::5", "\t[2001:db8:{n:x}::6%1]:1 "]
NONE = ["", " ", "-", "unknown", "unix:", "localhost:80", "192.0.2", "192.0.2.256", "192.0.2.1:", "192.0.2.1:65536", "192.0.2.1:x", "192.0.2.1%eth0",
        "192.0.2.1/32", "192.0.2.1, 192.0.2.2", "[2001:db8::1", "[2001:db8::1]80", "2001:db8::1]", "fe80::1%", "1::2::3"]

passed = failed = 0


def text(way, number):
    return way.format(n=number, a=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")


def check(name, good, *said):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAIL", name, *said, flush=True)


def visit(command, table, addresses):
    done = subprocess.run([*shlex.split(command), table, *addresses], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return done.stdout.splitlines()


def main():
    commands = dict(argument.split("=", 1) for argument in sys.argv[1:])
    ways = [(family, n) for family in (V4, V6) for n in range(len(family))]
    # Each writer, reader and way has an address of its own.
    number = {at: n for n, at in enumerate((w, r, way) for w in commands for r in commands for way in range(len(ways)))}

    def addresses(writer, reader, shift):
        return [text(family[(n + shift) % len(family)], number[writer, reader, at]) for at, (family, n) in enumerate(ways)]

    with tempfile.TemporaryDirectory() as directory:
        table = os.path.join(directory, "table")
        for writer, command in commands.items():
            mine = [address for reader in commands for address in addresses(writer, reader, 0)]
            said = visit(command, table, mine)
            check(f"{writer} writes", said == ["passes"] * len(mine), [pair for pair in zip(mine, said) if pair[1] != "passes"])
        for reader, command in commands.items():
            all_said = visit(command, table, [address for writer in commands for address in addresses(writer, reader, 1)])
            for place, writer in enumerate(commands):
                theirs, said = addresses(writer, reader, 1), all_said[place * len(ways):(place + 1) * len(ways)]
                check(f"{reader} reads {writer}", said == ["refused"] * len(theirs), [pair for pair in zip(theirs, said) if pair[1] != "refused"])
        fresh = len(number)
        for n, (reader, command) in enumerate(commands.items()):
            said = visit(command, table, [text(V4[0], fresh + n), text(V6[0], fresh + n)])
            check(f"{reader} reads what nobody wrote", said == ["passes"] * 2, said)
            said = visit(command, table, NONE)
            check(f"{reader} reads no address", said == ["no address"] * len(NONE), [pair for pair in zip(NONE, said) if pair[1] != "no address"])
    print(f"{len(commands)} languages, {len(ways)} ways to write an address")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
