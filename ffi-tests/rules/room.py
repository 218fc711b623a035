"""Rules with room: a reload turns a bucket into a log, and the key keeps the permits that it has
left. The argument is the rules file, which this program writes."""

import pathlib
import sys

from tollbar.rules import Rules

path = pathlib.Path(sys.argv[1])
request = {":path": "/", ":address": "192.0.2.1"}


def write(limit: str) -> None:
    path.write_text(f"version = 1\n[group.a]\nkey = 'address'\nlimit = '{limit}'\n")


write("10/h")
rules = Rules(path, room=30)
assert rules.check(request).remaining == 9
write("10/h algo sliding-log")
rules.reload()
answer = rules.check(request)
assert answer.remaining == 8, answer
for room in -1, 2**32:
    try:
        Rules(path, room=room)
    except ValueError as error:
        assert "expected 0 to 4294967295" in str(error)
    else:
        raise AssertionError(room)
