#!/usr/bin/env python3
"""The cases of a site (docs/rules.md, "Cases") for the programs that decide requests of
requests.py.

sites.py requests CASES N: writes the requests of case N, which begins with fresh rules. There are
no more cases if it writes none.
sites.py log CASES N: the same as a log, if a log can have all that the requests have.
sites.py compare CASES N <DECISIONS: says which of the decisions are otherwise than the case says."""

import datetime
import re
import sys
import tomllib

SECOND = 10**9
# TOLLBAR_TIME_ZERO of tollbar.h: 2025-03-13.
ZERO = 1_741_824_000 * SECOND
UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": SECOND, "min": 60 * SECOND, "h": 3600 * SECOND, "day": 86400 * SECOND}


def span(text):
    number, unit = re.fullmatch(r"(\d+)([a-z]+)", text).groups()
    return int(number) * UNITS[unit]


def start(case):
    time = datetime.datetime.fromisoformat(case.get("start", "2026-01-05 00:00:00"))
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return int(time.timestamp()) * SECOND


def fields(step):
    """The names and values of a request."""
    method, target = step["request"].split(" ", 1)
    yield from [(":method", method), (":path", target)]
    yield from [(f":{name}", step[name]) for name in ("address", "host") if name in step]
    yield from [(f":{name}", str(value)) for name, value in step.get("fields", {}).items()]
    yield from [(name, str(value)) for name, value in step.get("headers", {}).items()]


def requests(case):
    """Each request of a case: its step, its Unix time, whether it is the last of the step, and its
    fields."""
    now = start(case)
    for step in case["step"]:
        now += span(step.get("after", "0s"))
        times = step.get("times", 1)
        for n in range(times):
            now += span(step["every"]) if n > 0 and "every" in step else 0
            yield step, now, n == times - 1, list(fields(step))


def words(step):
    """The words of the answer."""
    return [(f":{name}", str(value)) for name, value in step.get("answer", {}).items()]


def faults(case, decisions):
    """What is otherwise than the case says. A decision is (whether it passed, status, rule)."""
    passed = 0
    for (step, _, is_last, _), (allowed, status, rule) in zip(requests(case), decisions, strict=True):
        passed += allowed
        if not is_last:
            continue
        of_last = {"pass": passed, "status": status, "rule": rule}
        expected = {"pass": step.get("times", 1), **step}
        for name, found in of_last.items():
            if name in expected and expected[name] != found:
                yield f"{case['name']}: {step['request']}: {name} {found}, expected {expected[name]}"
        passed = 0


def line(time, pairs):
    return "\t".join([time, *[word for pair in pairs for word in pair]]) + "\n"


def log_line(now, pairs):
    """In Common Log Format, which has no headers and no fields of the server."""
    values = dict(pairs)
    time = datetime.datetime.fromtimestamp(now // SECOND, datetime.UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{values.get(":address", "192.0.2.1")} - - [{time}] "{values[":method"]} {values[":path"]} HTTP/1.1" 200 1\n'


def cases(path):
    with open(path, "rb") as file:
        return tomllib.load(file)["case"]


def main(command, path, number):
    all_cases = cases(path)
    if int(number) >= len(all_cases):
        return 0
    case = all_cases[int(number)]
    if command == "requests":
        for step, now, _, pairs in requests(case):
            sys.stdout.write(line(str(now - ZERO), pairs))
            if "answer" in step:
                sys.stdout.write(line(f"={now - ZERO}", pairs + words(step)))
        return 0
    if command == "log":
        if not any(name in step for step in case["step"] for name in ("headers", "fields", "answer", "host")):
            sys.stdout.writelines(log_line(now, pairs) for _, now, _, pairs in requests(case))
        return 0
    decided = [text.split() for text in sys.stdin if not text.startswith("=")]
    # A library says 0 for a request that passes, and the command A.
    found = list(faults(case, [(text[0] in "0A", int(text[1]), text[2]) for text in decided]))
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
