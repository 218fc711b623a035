"""Schedules: the policy in force, the next change, and texts that are wrong."""

from __future__ import annotations

import pickle

import pytest
from edges import again_if_late

from tollbar import Limiter, Policy, PolicyError, Schedule

HOURS = Schedule("1000/min, mon-fri 09:00-18:00 100/min, zone CET-1CEST,M3.5.0,M10.5.0/3")
HOUR = 3_600_000_000_000
# 2026-03-27, a Friday, at 09:00 in Berlin. Clocks are set forward on Sunday.
FRIDAY = 1_774_598_400_000_000_000


def test_the_policy_in_force():
    assert HOURS.in_force(FRIDAY - 1) == (Policy("1000/min"), FRIDAY)
    assert HOURS.in_force(FRIDAY) == (Policy("100/min"), FRIDAY + 9 * HOUR)
    assert HOURS.in_force(FRIDAY + 9 * HOUR) == (Policy("1000/min"), FRIDAY + 71 * HOUR)
    assert Schedule("5/s").in_force(0) == (Policy("5/s"), None)
    assert HOURS.policy() in (Policy("1000/min"), Policy("100/min"))


@again_if_late(1)
def test_a_limiter_follows():
    limiter = Limiter(HOURS.policy(FRIDAY - 1), clock="wall")
    assert limiter.check(950)
    limiter.set_policy(HOURS.policy(FRIDAY))
    assert str(limiter.policy) == "100/min"
    assert 50 <= limiter.peek().remaining < 100


def test_texts():
    assert str(HOURS) == "1000/min, mon-fri 09:00-18:00 100/min, zone STD-1DST,M3.5.0,M10.5.0/3"
    assert Schedule(str(HOURS)) == HOURS == pickle.loads(pickle.dumps(HOURS)) != Schedule("5/s")
    assert len({HOURS, Schedule(str(HOURS))}) == 1
    with pytest.raises(PolicyError) as raised:
        Schedule("1/s, moon 2/s")
    assert raised.value.column == 6
    with pytest.raises(TypeError):
        Schedule(5)  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError, OverflowError)):
        HOURS.in_force(-1)
