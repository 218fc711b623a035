"""That loops of calls, good and bad, leave nothing behind."""

import array
import contextlib
import gc
import sys
import tracemalloc

import pytest
import tollbar
from tollbar import Error, Hierarchy, InFlight, Limiter, Meter, Policy, SendWindow, Table, route

KEY = "k" * 40
BYTES = b"k" * 40
BIG = 10**15


class Number:
    """No int, but as good as one; a new int each time, so that one that is kept shows."""

    def __index__(self):
        return BIG + 1


def table_calls():
    table = Table({"a": "1000000/s"}, capacity=100, missing="report")
    many = [KEY, BYTES, 10**18, bytearray(BYTES)] * 100
    cost = 10**5

    def run():
        table.check(KEY, cost), table.allow(BYTES, cost=cost), table.peek(10**18, policy="a")
        table.check(bytearray(BYTES), at=None), table.take_up_to(KEY, 5)
        table.check_many(many, [1] * 400), table.check_many(array.array("Q", range(300)), cost)
        table.peek(KEY, Number()), table.check_many([KEY], Number())
        table.stats(), table.validate(), table.policy("a"), repr(table), table.now()
        table.exempt(KEY), table.unexempt(KEY), table.check_leaving(KEY, 10**5, Number())
        table.settle(table.take(10**17, 5)[1], 0), table.take(KEY, Number())
        table.settle_in_full(table.take(10**16, 7, "a", at=None)[1], 3)
        for bad in (
            lambda: table.check(1.5),
            lambda: table.check(KEY, -1),
            lambda: table.check(KEY, policy="b"),
            lambda: table.check(None),
            lambda: table.check_leaving(bytearray(BYTES), -1),
            lambda: table.check_many([KEY, bytearray(BYTES), 1.5]),
            lambda: table.check_many([bytearray(BYTES)] * 300, [1] * 299 + [-1]),
            lambda: table.check_many(array.array("d", [1])),
            lambda: table.check(KEY, nothing=1),
            lambda: table.set_policy("a", "rubbish"),
            lambda: table.take(KEY, 2**56),
            lambda: table.take(bytearray(BYTES), -1),
            lambda: table.settle(bytes(32), Number()),
            lambda: table.settle(bytes(31), 1),
            lambda: table.settle(KEY, 1),
        ):
            with contextlib.suppress(TypeError, ValueError, KeyError):
                bad()

    return run


def window_meter_and_route_calls():
    window, meter = SendWindow(5), Meter(1, BIG)

    def run():
        window.acknowledge(window.acquire()), window.acquire(Number()), window.read(), repr(window)
        window.resize(5), window.acquire(permits=2), window.release(2), SendWindow(3)
        meter.color(100), meter.color(Number(), "yellow", at=BIG), Meter(1, 1, period=2)
        route([KEY, bytearray(BYTES), BIG], bytearray(BYTES)), route({KEY: 1, BIG: 0}, KEY, Number())
        for bad in (
            lambda: window.acquire(-1),
            lambda: window.resize(BIG),
            lambda: SendWindow(BIG),
            lambda: meter.color(1, KEY),
            lambda: meter.color(1.5),
            lambda: Meter(1, 0),
            lambda: route([bytearray(BYTES), 1.5], bytearray(BYTES)),
            lambda: route({KEY: 1, BIG: -1}, bytearray(BYTES)),
            lambda: route(KEY, bytearray(BYTES)),
            lambda: route([BIG] * 1025, KEY),
        ):
            with contextlib.suppress(TypeError, ValueError, Error):
                bad()

    return run


def in_flight_calls():
    table = InFlight(100)
    closed = InFlight(1)
    closed.close()

    def run():
        with table.enter(KEY, 2) as permit, table.enter(bytearray(BYTES), 2):
            permit.release(), table.count(KEY), table.enter(KEY, 0)
        table.release(table.acquire(BYTES, Number())), table.release(Number()), repr(table), InFlight(10).join()
        for bad in (
            lambda: table.acquire(1.5, 1),
            lambda: table.acquire(bytearray(BYTES), -1),
            lambda: table.acquire(KEY),
            lambda: table.release(KEY),
            lambda: table.count(1.5),
            lambda: closed.acquire(bytearray(BYTES), 1),
            lambda: closed.count(bytearray(BYTES)),
            lambda: InFlight(0),
        ):
            with contextlib.suppress(TypeError, ValueError):
                bad()

    return run


def hierarchy_calls():
    nodes, tree = Table(Hierarchy.POLICY, 100), Hierarchy("1000000/s", classes=3)
    users = tree.add(0, "users", keys=100)
    closed = Hierarchy("1000/s")
    closed.close()

    def run():
        share = tree.take(nodes, users, bytearray(BYTES), Number(), at=BIG)
        share.allowed, share.never, share.reason, share.remaining, share.bound, repr(share)
        share.retry_after, share.retry_after_ns, share.reset_after, share.reset_after_ns, share.interval, share.interval_ns
        tree.take(nodes, users, KEY), tree.take(nodes, users), repr(tree), Hierarchy("1000/s").add(0, "a", "1/s", "2/s", 3)
        for bad in (
            lambda: tree.add(0, "a", "rubbish"),
            lambda: tree.add(0, 5),
            lambda: tree.add(0, "a", keys=2**32),
            lambda: tree.take(nodes, 9, bytearray(BYTES)),
            lambda: tree.take(KEY, users),
            lambda: tree.take(nodes, users, 1.5),
            lambda: closed.take(nodes, 0, bytearray(BYTES)),
            lambda: Hierarchy("rubbish"),
        ):
            with contextlib.suppress(TypeError, ValueError, tollbar.Error):
                bad()

    return run


def limiter_calls():
    limiter = Limiter("1000000/s")

    def run():
        d = limiter.check(1)
        d.allowed, d.never, d.remaining, d.retry_after, d.retry_after_ns, d.reset_after, d.reset_after_ns, repr(d)
        limiter.allow(), limiter.peek(cost=2, at=BIG), limiter.take_up_to(2), limiter.check_many([1, 2, 3])
        limiter.check_many(500), limiter.wait(0), limiter.policy, repr(limiter), limiter.reset()
        for bad in (lambda: limiter.check("x"), lambda: limiter.check_many([1, -1]), lambda: limiter.check(x=1)):
            with contextlib.suppress(TypeError, ValueError):
                bad()

    return run


def take_many_calls():
    limiter, table = Limiter("1000000/s"), Table({"a": "1000000/s"}, capacity=100, missing="report")
    closed = Table("1/s", capacity=1)
    closed.close()

    def run():
        taken = tollbar.take_many([limiter, (limiter, Number()), (table, KEY), (table, bytearray(BYTES), 2, "a")], at=BIG)
        taken.bound, taken.reason, taken.remaining, taken.retry_after, taken.reset_after_ns, taken.decisions, repr(taken)
        for bad in ((limiter, -1), (table, 1.5), (table, KEY, 1, "b"), (table, KEY, 1, 9), (table, None), (closed, KEY), KEY):
            with contextlib.suppress(TypeError, ValueError, KeyError):
                tollbar.take_many([(table, bytearray(BYTES)), bad])
        for number in (0, 17):
            with contextlib.suppress(ValueError):
                tollbar.take_many([(table, KEY)] * number)

    return run


def making():
    def run():
        Limiter("10/s"), Policy("10/s"), Table("1/s", capacity=1).close(), Table(["1/s", "2/s"], capacity=1)
        for bad in (
            lambda: Limiter("rubbish"),
            lambda: Table({"a": "rubbish"}, capacity=1),
            lambda: Table("1/s", capacity=0),
            lambda: Table.open("/nowhere/at/all", "1/s", 1),
        ):
            with contextlib.suppress(ValueError):
                bad()

    return run


@pytest.mark.parametrize("calls", [table_calls, in_flight_calls, window_meter_and_route_calls, hierarchy_calls, limiter_calls, take_many_calls, making])
def test_loops_leave_nothing(calls):
    run = calls()
    watched = [KEY, BYTES, BIG, tollbar.Decision, tollbar.Taken, tollbar.Share, Limiter, Table, Hierarchy]
    watched += [thing.__base__ for thing in (Limiter, Table, Hierarchy)]

    def count():
        gc.collect()
        return [sys.getrefcount(thing) for thing in watched], tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        for _ in range(20):
            run()
        references, memory = count()
        for _ in range(1000):
            run()
        references_then, memory_then = count()
    finally:
        tracemalloc.stop()
    # Some are counted while they lie on the interpreter's stack; a leak would be 1,000.
    assert all(abs(b - a) < 20 for a, b in zip(references, references_then)), (references, references_then)
    # The interpreter keeps some memory of exceptions for later, 20,000 bytes after 1,600 loops. A
    # leak of the smallest object would be 32,000.
    assert memory_then - memory < 30_000


def test_the_memory_of_limiters_and_tables_is_given_back():
    """What the library allocates is not Python's, so this looks at the process."""

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    def run(n):
        for _ in range(n):
            # The call writes the whole log, because untouched memory is not resident.
            Limiter("100000/h algo sliding-log").check_many(100_000)
            Table("1/s", capacity=100_000).check_many(array.array("Q", range(1000)))

    run(3)
    before = resident()
    run(60)
    assert (resident() - before) * 4096 < 20_000_000


def test_a_decision_outlives_its_limiter():
    decision = Limiter("3/s").check()
    gc.collect()
    assert decision.remaining == 2
