#!/usr/bin/env python3
"""Writes requests for the tests of rules: "TIME_NS NAME VALUE NAME VALUE ...", separated by tabs. A
line "=TIME_NS NAME VALUE ..." settles the request of the line before, if it was admitted.

requests.py: requests that reach every rule of examples/rules/site.toml.
requests.py LOG: those of a log in Common Log Format, in the order of the file.
requests.py LOG COUNT: writes no requests, but a log of COUNT lines made from LOG's lines."""

import functools
import re
import sys
from datetime import datetime, timedelta

LINE = re.compile(r'(\S+) \S+ \S+ \[([^]]+)\] "(\S+) (\S+)')
TIME = "%d/%b/%Y:%H:%M:%S %z"


@functools.lru_cache(maxsize=1000)
def seconds(time):
    return int(datetime.strptime(time, TIME).timestamp())


NAMES = (":method", ":path", ":address", "X-Api-Key", ":account")


def line(time, *values):
    """A request of these values, - for nothing."""
    pairs = zip(NAMES, values, strict=True)
    return "\t".join([str(time), *[word for pair in pairs if pair[1] != "-" for word in pair]]) + "\n"


def of_log(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as log:
        for line in log:
            address, time, method, target = LINE.match(line).groups()
            yield seconds(time) * 10**9, method, target, address, "-", "-"


def longer_log(path, count):
    """Each line has the request of one line of the log and the address of another. Three of four
    addresses are among the first 100, so clients meet their limits. There are 100 lines a second,
    and one of 50 lines is up to 30 seconds late."""
    with open(path, encoding="utf-8", errors="surrogateescape") as log:
        parts = [(line.split(" ", 1)[0], line.split("]", 1)[1]) for line in log]
    begin = datetime(2015, 5, 18, tzinfo=datetime.strptime("+0000", "%z").tzinfo)
    times = [(begin + timedelta(seconds=n)).strftime(TIME) for n in range(count // 100 + 1)]
    state = 20150517
    for n in range(count):
        state = state * 48271 % 2147483647
        late = state % 31 if state % 50 == 0 else 0
        rest = parts[state % len(parts)][1]
        state = state * 48271 % 2147483647
        address = parts[state % (len(parts) if state & 3 == 0 else 100)][0]
        yield f"{address} - - [{times[max(0, n // 100 - late)]}]{rest}"


def of_every_rule(count):
    state = 20150517
    paths = ["/", "/blog/1", "/files/x", "/images/y", "/api/x", "/api/reports/1", "/login", "//blog/./2", "/%62log/3?x=/y"]

    def pick(among):
        nonlocal state
        state = state * 16807 % 2147483647  # Park and Miller
        return among[state % len(among)]

    for n in range(count):
        yield (
            (86400 * 10**9 + n * 37_000_000),
            pick(["GET", "GET", "POST"]),
            pick(paths),
            pick(["198.51.100.1", "198.51.100.2", "192.0.2.9", "66.249.73.135", "2001:db8:1:2::1", "2001:db8:1:2::2"]),
            pick(["-", "gold", "tin"]),
            pick(["-", "ann", "bob"]),
        )


sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
if len(sys.argv) > 2:
    sys.stdout.writelines(longer_log(sys.argv[1], int(sys.argv[2])))
else:
    requests = of_log(sys.argv[1]) if len(sys.argv) > 1 else of_every_rule(20000)
    sys.stdout.writelines(line(*request) for request in requests)
