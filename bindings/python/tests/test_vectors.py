"""The golden vectors: limiters and tables give the decisions of the oracle
(tests/algorithm/vectors.rs describes the file)."""

import json
from pathlib import Path

import pytest
from tollbar import Limiter, Table

VECTORS = json.loads((Path(__file__).parents[3] / "ffi-tests/vectors/decisions.json").read_text())
ALLOWED, DENIED, NEVER = range(3)


def answer(decision):
    verdict = NEVER if decision.never else ALLOWED if decision.allowed else DENIED
    return [verdict, decision.remaining, 2**64 - 1 if decision.retry_after_ns is None else decision.retry_after_ns]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["policy"] for vector in VECTORS])
def test_the_oracles_decisions(vector):
    limiter, table = Limiter(vector["policy"], clock="wall"), Table(vector["policy"], 100, clock="wall")
    for n, (now, cost, *expected) in enumerate(vector["steps"]):
        assert answer(limiter.check(cost, at=now)) == expected, f"step {n} of the limiter"
        assert answer(table.check("key", cost, at=now)) == expected, f"step {n} of the table"
