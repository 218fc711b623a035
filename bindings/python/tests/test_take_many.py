"""Several limits in one request: the expectations of ffi-tests/c/take_many_test.c, and Python's
errors."""

import asyncio
import inspect
import math
import threading

import pytest
import tollbar
from tollbar import Limiter, Table, take_many, wsgi

SEC = 1_000_000_000


def test_the_longest_wait_binds() -> None:
    second, hour, table = Limiter("2/s"), Limiter("5/h"), Table("3/min", 100)
    taken = take_many([second, (table, "k"), (hour, 1)], at=SEC)
    assert taken and taken.allowed and not taken.never and taken.reason == "admitted"
    assert (taken.remaining, taken.bound, taken.retry_after, taken.reset_after) == (1, 0, 0.0, 720.0)
    assert [one.remaining for one in taken.decisions] == [1, 2, 4]

    never = take_many([(second, 3), (table, "k", 3), hour], at=SEC)
    assert never.never and never.bound == 0 and never.retry_after == math.inf and never.retry_after_ns is None
    limits = [(second, 2), (table, "k", 3), hour]
    refused = take_many(limits, at=SEC)
    assert not refused and not refused.never and refused.bound == 1 and refused.reason == "over the rate"
    assert refused.retry_after_ns == 20 * SEC and refused.retry_after == 20.0
    assert refused.decisions[0].retry_after == 0.5 and refused.decisions[2].allowed
    assert repr(refused) == "<tollbar.Taken denied, bound=1, remaining=1, retry_after=20.0>"
    # A refusal has charged none of them.
    assert not take_many(limits, at=SEC)
    assert second.peek(at=SEC) and table.peek("k", 2, at=SEC) and hour.peek(4, at=SEC)


def test_by_their_own_clocks_and_by_the_names_of_policies() -> None:
    day, table = Limiter("1/day"), Table({"minute": "1/min", "day": "1/day"}, 100)
    assert take_many([(table, "k", 1, "day"), day])
    assert not take_many(((table, "k", 1, "day"), day)) and not take_many([(table, "k", 1, 1)])
    assert take_many(limits=iter([(table, b"k")]))


def test_bad_limits_charge_nothing() -> None:
    limiter, table, closed = Limiter("3/s"), Table("3/s", 100), Table("3/s", 100)
    closed.close()
    for number in (0, 17):
        with pytest.raises(ValueError, match=f"takes 1 to 16 limits, not {number}"):
            take_many([limiter] * number, at=SEC)

    def wrong(error: type[Exception], words: str, *limits: object) -> None:
        with pytest.raises(error, match=words) as raised:
            take_many([limiter, *limits], at=SEC)  # type: ignore[list-item]
        assert raised.value.__notes__ == ["in limits[1] of take_many()"]

    wrong(ValueError, "the table is closed", (closed, "k"))
    wrong(KeyError, "hour", (table, "k", 1, "hour"))
    wrong(TypeError, "a key is bytes", (table, 1.5))
    wrong(ValueError, "an int key is 0", (table, -1))
    wrong(ValueError, "cost must be 0 to", (limiter, -1))
    for limit in (table, (table,), (limiter, 1, 2), (table, "k", 1, 0, "low", 0), "k", None, [table, "k"]):
        wrong(TypeError, "a limit is a Limiter", limit)
    with pytest.raises(tollbar.TableError) as raised:
        take_many([limiter, (table, "k", 1, 7)], at=SEC)
    assert raised.value.name == "TOLLBAR_E_NO_SUCH_POLICY"
    for wrong_call in (lambda: take_many(), lambda: take_many(1), lambda: take_many([limiter], 1)):  # type: ignore
        with pytest.raises(TypeError):
            wrong_call()
    assert limiter.peek(3, at=SEC) and table.peek("k", 3, at=SEC)
    assert take_many([limiter, (table, "k")], at=SEC)
    # None is a missing key, and the table's options decide on it.
    assert take_many([limiter, (table, None)], at=SEC).reason == "missing key"


def test_a_key_that_closes_the_table() -> None:
    limiter, table = Limiter("3/s"), Table("3/s", 100)

    class Closes:
        def __index__(self) -> int:
            table.close()
            return 1

    with pytest.raises(ValueError, match="the table is closed"):
        take_many([limiter, (table, "k"), (limiter, Closes())], at=SEC)
    assert limiter.peek(3, at=SEC)


def test_one_limit_many_times() -> None:
    hour = Limiter("16/h")
    assert take_many([hour] * 16, at=SEC) and not hour.peek(at=SEC)


def test_a_refusal_by_the_second_leaves_the_day_untouched() -> None:
    day, second = Limiter("1/day"), Limiter("10/s")
    second.take_up_to(10, at=SEC)
    assert not any(take_many([day, second], at=SEC) for _ in range(10_000))
    assert day.peek(at=SEC).reset_after_ns == 0


def test_it_never_blocks_an_event_loop() -> None:
    limiter, table = Limiter("5/h"), Table("3/h", 100)

    async def ask() -> bool:
        await asyncio.sleep(0)
        return bool(take_many([limiter, (table, "k")]))

    async def many() -> int:
        return sum(await asyncio.gather(*(ask() for _ in range(20))))

    assert asyncio.run(many()) == 3
    assert limiter.peek().remaining == 2


def test_threads_get_what_there_is() -> None:
    limiter, table = Limiter("700/day"), Table("500/day", 100)
    passed = []

    def run(turned: bool) -> None:
        limits = [limiter, (table, "k")]
        limits = limits[::-1] if turned else limits
        passed.append(sum(bool(take_many(limits, at=SEC)) for _ in range(400)))  # type: ignore[arg-type]

    threads = [threading.Thread(target=run, args=(n % 2 == 1,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 500 and limiter.peek(at=SEC).remaining == 200


def test_ten_a_second_and_four_at_one_time() -> None:
    rate, flights = Limiter("10/s"), tollbar.InFlight(100)
    held = []
    for _ in range(4):
        taken = take_many([rate, (flights, "ann", 4)], at=SEC)
        assert taken and taken.tickets[0] is None
        held.append(flights.permit(taken.tickets[1]))
    refused = take_many([rate, (flights, "ann", 4)], at=SEC)
    assert not refused and refused.bound == 1 and refused.reason == "too many in flight"
    assert refused.retry_after == float("inf") and refused.tickets == (None, None)
    assert [each.remaining for each in refused.decisions] == [6, 0]
    assert not flights.permit(refused.tickets[1])
    assert all(permit.release() for permit in held) and flights.count("ann") == 0
    # The rate refuses, and no permit is in flight.
    assert take_many([(rate, 7), (flights, "ann", 4)], at=SEC).reason == "over the rate" and flights.count("ann") == 0
    with flights.permit(take_many([(rate, 6), (flights, "ann", 4)], at=SEC).tickets[1]) as permit:
        assert permit and flights.count("ann") == 1
    assert flights.count("ann") == 0
    with pytest.raises(ValueError, match="limit must be 0 to"):
        take_many([(flights, "ann", -1)])
    flights.close()
    with pytest.raises(ValueError, match="the table is closed"):
        take_many([rate, (flights, "ann", 4)])


def test_its_signature_is_told() -> None:
    assert str(inspect.signature(take_many)) == "(limits, *, at=None)"


def test_middleware_charges_all_policies_or_none() -> None:
    table = Table({"hour": "2/h", "day": "5/day"}, 100)
    answers: list[tuple[str, dict[str, str]]] = []

    def app(environ: object, start_response: object) -> list[bytes]:
        start_response("200 OK", [])  # type: ignore[operator]
        return [b""]

    limited = wsgi.RateLimit(app, table, policy=("hour", "day"))  # type: ignore[arg-type]
    for _ in range(4):
        limited({"REMOTE_ADDR": "192.0.2.1"}, lambda status, fields, *_: answers.append((status[:3], dict(fields))))  # type: ignore
    assert [status for status, _ in answers] == ["200", "200", "429", "429"]
    assert answers[0][1]["RateLimit-Policy"] == '"hour";q=2;w=3600, "day";q=5;w=86400'
    assert answers[0][1]["RateLimit"] == '"hour";r=1;t=1800, "day";r=4;t=17280'
    # A request that the hour refuses is not charged to the day. Retry-After is the longest wait.
    assert answers[3][1]["RateLimit"].startswith('"hour";r=0;t=1800, "day";r=3;')
    assert answers[3][1]["Retry-After"] == "1800"
    assert table.peek(tollbar.address_key("192.0.2.1"), policy="day").remaining == 3
    for wrong in ({"policy": ()}, {"policy": ("hour", "day"), "charge": lambda environ, response: 1}):
        with pytest.raises(TypeError, match="several policies"):
            wsgi.RateLimit(app, table, **wrong)  # type: ignore[arg-type]
