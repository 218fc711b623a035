"""Logins under a limit that two processes share, as the workers of a web server would."""

import os
import sys

from tollbar import Table

# The table is made before the fork, so parent and child share its memory. Workers without a common
# parent open a table by name: Table.open("/run/logins/table", "3/min", 100_000).
logins = Table("3/min", capacity=100_000, shared=True)


def attempt(address: str) -> None:
    decision = logins.check(address)
    if decision:
        print(f"{address}: passes, {decision.remaining} left", flush=True)
    else:
        print(f"{address}: again in {decision.retry_after:.1f} s", flush=True)


attempt("192.0.2.1")
worker = os.fork()
if worker == 0:
    for _ in range(3):
        attempt("192.0.2.1")
    os._exit(0)
_, status = os.waitpid(worker, 0)
if status != 0:
    sys.exit("the worker failed")
attempt("192.0.2.2")
taken = sum(3 - logins.peek(address).remaining for address in ("192.0.2.1", "192.0.2.2"))
print(f"together they had {taken}")
