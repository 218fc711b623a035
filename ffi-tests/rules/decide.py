"""Decides on requests of requests.py by the rules file argv[1], and prints "VERDICT STATUS RULE
REMAINING" for each, and "= KNOWN" where it settles one. argv[2] is the file for the metrics in the
end."""

import sys

from tollbar.rules import Rules, RulesError

rules = Rules(sys.argv[1])
out = []
for line in sys.stdin.buffer:
    now, *words = line.rstrip(b"\n").split(b"\t")
    request = list(zip(words[::2], words[1::2], strict=True))
    if now.startswith(b"="):
        out.append(f"= {int(answer.allowed and rules.settle(answer, request, now_ns=int(now[1:])))}\n")
        continue
    answer = rules.check(request, now_ns=int(now))
    out.append(f"{answer.verdict} {answer.status} {answer.rule or '-'} {answer.remaining}\n")
sys.stdout.writelines(out)
if len(sys.argv) > 2:
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(rules.metrics("site"))
# A9: keys that begin anew.
for rule in {line.split()[2] for line in out if line.startswith("1 4")}:
    assert rules.reset(rule), rule
try:
    rules.reset("none", "a key")
    raise SystemExit("a rule that is not there was reset")
except RulesError as error:
    assert str(error).startswith('no rule "none"; expected '), error
