"""Adaptive: a limit on permits in flight that follows the latency."""

from __future__ import annotations

import asyncio

import pytest
import tollbar
from tollbar import Adaptive, InFlight, Limiter, take_many

PUBLISHED = {0: 20, 9: 28, 19: 36, 20: 33, 21: 30, 25: 22, 30: 20, 40: 20, 59: 20, 60: 20, 70: 28, 99: 52}


def test_gradient2_has_the_published_trace() -> None:
    limit = Adaptive(20, 20, 200, window=0)
    for n in range(100):
        tickets: list[int] = []
        while (ticket := limit.acquire()) is not None:
            tickets.append(ticket)
        assert len(tickets) == limit.limit == limit.in_flight
        assert limit.release(tickets.pop(), "answered", 0.04 if 20 <= n < 60 else 0.01)
        assert all(limit.release(ticket, "ignored", 0) for ticket in tickets)
        assert limit.limit == PUBLISHED.get(n, limit.limit)


def test_a_permit_measures_its_own_latency() -> None:
    limit = Adaptive(2, timeout=3600, window=0)
    with limit.enter() as first, limit.enter() as second:
        assert first and second and not limit.enter()
    assert (limit.limit, limit.in_flight) == (3, 0)
    with pytest.raises(KeyError), limit.enter():
        raise KeyError
    assert (limit.limit, limit.in_flight) == (2, 0)
    limit.enter()  # no variable holds this permit, so the garbage collector releases it as "ignored"
    assert (limit.limit, limit.in_flight) == (2, 0)
    assert repr(limit) == "<Adaptive, limit=2, in_flight=0>"

    async def ask() -> None:
        async with limit.enter() as one:
            assert one and limit.in_flight == 1
        assert not one.release()

    asyncio.run(ask())
    assert limit.limit == 3


def test_the_limit_of_a_key() -> None:
    table, limit = InFlight(10), Adaptive(2, timeout=3600, window=0)
    first, second = limit.enter_key(table, "k"), limit.enter_key(table, "k")
    assert first and second and not limit.enter_key(table, "k") and table.count("k") == 2 and limit.in_flight == 0
    assert first.release(latency=0.01) and limit.limit == 3
    assert second.release("dropped") and limit.limit == 2 and table.count("k") == 0
    third = limit.enter_key(table, "k")
    table.close()
    assert not third.release()
    with pytest.raises(ValueError, match="the table is closed"):
        limit.enter_key(table, "k")
    with pytest.raises(TypeError, match="a table is an InFlight"):
        limit.enter_key(tollbar, "k")  # type: ignore[arg-type]


def test_a_rate_and_a_learned_limit_in_one_decision() -> None:
    server, requests, rate = Adaptive(1, timeout=3600, window=0), InFlight(10), Limiter("2/h")

    def take() -> tollbar.Taken:
        return take_many([(rate, 1), (requests, "server", server.limit)])

    taken = take()
    with server.permit(requests, "server", taken.tickets[1]) as permit:
        assert taken and permit and requests.count("server") == 1
        refused = take()
        assert not refused and refused.bound == 1 and not server.permit(requests, "server", refused.tickets[1])
    # The limit has learned, and the refusal was not charged. Then the rate refuses.
    assert server.limit == 2 and requests.count("server") == 0
    assert take() and take().bound == 0 and requests.count("server") == 1


def test_bad_arguments() -> None:
    for bounds in ((0, 0, 5), (20, 30, 40), (20, 1, 10), (20, 1, 1 << 32)):
        with pytest.raises(ValueError, match="must hold"):
            Adaptive(*bounds)
    with pytest.raises(ValueError, match="timeout must be above 0"):
        Adaptive(timeout=0)
    with pytest.raises(ValueError, match="outcome must be"):
        Adaptive().enter().release("lost")
