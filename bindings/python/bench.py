"""What a decision costs, as ratios of one run: beside time.monotonic_ns(), a C call that reads a
clock too.

    python bench.py [--smoke]
"""

import array
import sys
import time
import timeit

from tollbar import Limiter, Table

smoke = "--smoke" in sys.argv
number = 1000 if smoke else 200_000
repeat = 3 if smoke else 15

limiter = Limiter("1000000000/s")
table = Table("1000000000/s", capacity=100_000)
keys = array.array("Q", range(10_000))
names = {
    "clock": time.monotonic_ns,
    "check": limiter.check,
    "allow": limiter.allow,
    "table_check": table.check,
    "table_allow": table.allow,
    "many": table.check_many,
    "keys": keys,
}
# What is measured, how many decisions it is, and how many times the clock it may cost.
cases = [
    ("time.monotonic_ns", "clock()", 1, None),
    ("Limiter.allow", "allow()", 1, None),
    ("Limiter.check", "check()", 1, 1.4),
    ("Table.allow", "table_allow('192.0.2.1')", 1, None),
    ("Table.check", "table_check('192.0.2.1')", 1, None),
    ("Table.check_many, a key", "many(keys)", len(keys), None),
]
best = {name: float("inf") for name, *_ in cases}
# Round and round, so that a slow moment of the machine is everybody's.
timers = {name: timeit.Timer(code, globals=names) for name, code, *_ in cases}
for _ in range(repeat):
    for name, _, size, _ in cases:
        loops = max(number // size, 1)
        best[name] = min(best[name], timers[name].timeit(loops) / loops / size)
clock = best["time.monotonic_ns"]
print(f"{'Python':24} {'ns':>7} {'ratio':>6}  goal")
for name, _, _, goal in cases:
    print(f"{name:24} {best[name] * 1e9:7.1f} {best[name] / clock:6.2f}  {goal or ''}".rstrip())
