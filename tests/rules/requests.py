#!/usr/bin/env python3
"""Writes requests for the tests of rules: "TIME_NS METHOD PATH ADDRESS API_KEY ACCOUNT", separated by tabs, - for nothing.

From a log in Common Log Format, in the order of the file; without one, requests that reach every rule of examples/rules/site.toml."""

import re
import sys
from datetime import datetime

LINE = re.compile(r'(\S+) \S+ \S+ \[([^]]+)\] "(\S+) (\S+)')


def of_log(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as log:
        for line in log:
            address, time, method, target = LINE.match(line).groups()
            seconds = int(datetime.strptime(time, "%d/%b/%Y:%H:%M:%S %z").timestamp())
            yield seconds * 10**9, method, target, address, "-", "-"


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


for request in of_log(sys.argv[1]) if len(sys.argv) > 1 else of_every_rule(20000):
    print(*request, sep="\t")
