"""A2: callers that give up leave nothing behind. In virtual time (virtual.py), with the library's
limiters. A4 is in test_waiters_bound.py.

The tests count both faults: permits above the limit, and permits that nobody got though somebody
waited for them."""

import asyncio
import random

import aiolimiter
import pytest
from tollbar import Policy, _queue
from virtual import SECOND, At, AtKey, Clock, Loop, above_the_bound, empty, run, time_of

BOOKING = [
    "10/s burst 1",
    "10/s burst 4",
    "7/3s burst 5",
    "10/s burst 1; 1000/min",
    "10/s burst 4 borrow",
    "10/s algo pacer",
    "10/s algo pacer slack 3",
    "10/s algo warm-up warm 2s",
    "1/100ms algo interval",
    "3/300ms algo interval",
]
ASKING = [
    "10/s burst 4 algo interval anchor first",
    "5/s algo fixed-window",
    "5/s algo fixed-window anchor first",
    "5/s algo weighted-window",
    "4/4s algo curve",
]
OF_LIMITERS_ALONE = ["6/3s algo sliding-window segments 6", "5/s algo sliding-log"]
ALL = [(At, policy) for policy in BOOKING + ASKING + OF_LIMITERS_ALONE] + [(AtKey, policy) for policy in BOOKING + ASKING]


@pytest.fixture(autouse=True)
def nobody_is_left_in_a_queue():
    yield
    assert not _queue._queues


def returns_the_last(make, policy):
    """Whether the library takes the last booking back whole."""
    limiter = empty(make(policy, Clock()))
    key = () if make is At else ("key",)
    return limiter.cancel(*key, limiter.reserve(*key, at=SECOND), at=SECOND + 1) == 1


async def within(seconds, waiting):
    """Whether the permits came before a time-out of the caller's own."""
    try:
        async with asyncio.timeout(seconds):
            return await waiting is not False
    except TimeoutError:
        return False


@pytest.mark.parametrize(("make", "policy"), ALL)
def test_a2_twenty_that_give_up_cost_what_one_booking_costs(make, policy):
    """Nothing, where the library returns the last booking whole."""
    clock = Clock()
    limiter, twin = empty(make(policy, clock)), empty(make(policy, clock))
    key = () if make is At else ("key",)

    async def main():
        booked = twin.reserve(*key, None, at=clock.ns)
        assert (booked is None) == (policy in ASKING + OF_LIMITERS_ALONE)
        started = clock.ns
        assert not any(await asyncio.gather(*(within(0.01, limiter.wait_async()) for _ in range(20))))
        if booked is not None:
            twin.cancel(*key, booked, at=clock.ns)
        # Of those that ask, the head has asked once, and the caller below asks, too. Neither takes
        # anything.
        expected = clock.ns - started + (twin.peek().retry_after_ns or 0)
        assert await limiter.wait_async()
        return clock.ns - started, expected

    got, expected = run(clock, main())
    # A round of the event loop takes a nanosecond, and a few permits depart at a rounded one.
    assert expected <= got <= expected + 100


@pytest.mark.parametrize("kind", ["given up", "timeout"])
@pytest.mark.parametrize("policy", ["10/s burst 1", "10/s algo pacer", "1/100ms algo interval"])
@pytest.mark.parametrize("make", [At, AtKey, None])
def test_a2_waves(make, policy, kind):
    """60 callers at a time, each of which has 0.9 s: in each wave 9 get a permit of 10/s. The first
    wave finds one more, and with a time-out of its own ends with it. None: aiolimiter."""
    clock = Clock()
    admitted = []

    async def main():
        limiter = aiolimiter.AsyncLimiter(1, 0.1) if make is None else make(policy, clock)

        async def one():
            if make is None:
                got = await within(0.9, limiter.acquire())
            else:
                got = await (within(0.9, limiter.wait_async()) if kind == "given up" else limiter.wait_async(0.9))
            if got:
                admitted.append((clock.ns, 1))
            return got

        waves = []
        for _ in range(6):
            waves.append(sum(await asyncio.gather(*(one() for _ in range(60)))))
            await asyncio.sleep(max(0.9 * len(waves) - (clock.ns - SECOND) / SECOND, 0))
        return waves

    waves = run(clock, main())
    if make is not None and kind == "given up" and not returns_the_last(make, policy):
        # The booking that the queue has given back is charged, though nobody departs with it.
        waves = [waves[0], *(wave + 1 for wave in waves[1:])]
    assert all(9 <= wave <= 10 for wave in waves) and sum(waves) <= 55, waves
    # A caller wakes some rounds of the loop after its permit has come, and the next one perhaps at
    # once: hundredths of a millionth of a permit.
    if policy == "10/s burst 1" or make is None:
        assert above_the_bound(admitted, Policy("10/s burst 1")) < 1e-6


@pytest.mark.parametrize("costs", [(1,), (1, 2, 3, 4)])
@pytest.mark.parametrize("policy", ["10/s burst 4", "1000/s burst 4"])
def test_a2_in_every_order(policy, costs):
    """20 that give up in any order, some at once and some later, leave the limiter as it was.
    Refused too much: permits that did not come back. Too much admitted: permits that came back and
    had not been taken."""
    random.seed(policy)
    clock = Clock()

    async def main():
        for trial in range(2500):
            limiter = empty(At(policy, clock))
            clock.ns += random.randrange(SECOND // limiter.policy.limit)
            before = clock.ns + limiter.peek().retry_after_ns
            tasks = [asyncio.create_task(limiter.wait_async(cost=random.choice(costs))) for _ in range(20)]
            await asyncio.sleep(0)
            random.shuffle(tasks)
            for task in tasks:
                task.cancel()
                if random.random() < 0.3:
                    await asyncio.sleep(0)
            await asyncio.gather(*tasks, return_exceptions=True)
            assert clock.ns + limiter.peek().retry_after_ns == before, trial

    run(clock, main())


def exact(make, policy, callers):
    """The numbers of those whom a queue without bookings admits, whose head asks at every instant
    at which its permits could come."""
    limiter, free, admitted = make(policy, Clock()), 0, set()
    for number, (arrives, cost, leaves) in enumerate(callers):
        now = max(arrives, free)
        while now < leaves:
            limiter.clock.ns = free = now
            decision = limiter.check(cost=cost)
            if decision:
                admitted.add(number)
                break
            now += decision.retry_after_ns
            free = min(now, leaves)
    return admitted


@pytest.mark.parametrize(("make", "policy"), ALL)
def test_a2_callers_that_come_and_leave_at_random(make, policy):
    """The same callers get permits as from a queue without bookings, and in the order in which they
    came."""
    random.seed(policy)
    clock = Clock()
    order, admitted = [], []
    # A table's key that was once lowered gives back less of a booking that is earlier than the one
    # before.
    most = min(Policy(policy).burst, 3) if make is At else 1
    arrives, callers = SECOND, []
    for _ in range(300):
        arrives += random.choice([1000, 1000, 20_000_000, 300_000_000]) + random.randrange(1_000_000)
        callers.append((arrives, random.randint(1, most), arrives + random.choice([50, 200, 1000, 5000]) * 1_000_000 + random.randrange(10_000_000)))

    async def one(limiter, number, cost, leaves):
        if await within((leaves - clock.ns) / SECOND, limiter.wait_async(cost=cost)):
            order.append(number)
            admitted.append((clock.ns, cost))

    async def main():
        limiter = make(policy, clock)
        tasks = []
        for number, (arrives, cost, leaves) in enumerate(callers):
            await asyncio.sleep((arrives - clock.ns) / SECOND)
            tasks.append(asyncio.create_task(one(limiter, number, cost, leaves)))
        await asyncio.gather(*tasks)

    run(clock, main())
    assert order == sorted(order)
    if policy in ("10/s burst 1", "10/s burst 4", "7/3s burst 5"):
        assert above_the_bound(admitted, Policy(policy)) < 1e-4
    if Policy(policy)._lends or "curve" in policy:
        # Who lends admits a request before its whole cost is there, and books it for when it is.
        # The last permit of a curve's slice is there for a nanosecond, and a caller may wake later.
        return
    expected, got = exact(make, policy, callers), set(order)
    refused, too_many = len(expected - got), len(got - expected)
    is_exact = policy in BOOKING and returns_the_last(make, policy) and Policy(policy).period_ns % Policy(policy).limit == 0
    # An interval's booking takes the whole bucket of its departure, and some permits may have been
    # there before. If it is cancelled, those come with the interval's end.
    keeps_some = "algo interval" in policy and most > 1
    if policy in ASKING + OF_LIMITERS_ALONE or is_exact and not keeps_some:
        assert (refused, too_many) == (0, 0)
    elif is_exact:
        assert too_many == 0 and refused <= len(expected) // 20
    else:
        # What the library keeps of the bookings that nobody took over is lost: at most one a caller
        # that gave up as the last.
        assert too_many <= refused + 5 and refused < len(expected) // 2


@pytest.mark.parametrize("make", [At, AtKey])
def test_a2_a_poller_starves_nobody(make):
    """Beside 200 waiters one that asks every millisecond: the waiters have their permits in 200
    intervals."""
    clock = Clock()

    async def main():
        limiter = make("10/s burst 1", clock)
        polled = 0

        async def poll():
            nonlocal polled
            while True:
                polled += bool(limiter.check())
                await asyncio.sleep(0.001)

        started = clock.ns
        waiting = asyncio.gather(*(limiter.wait_async() for _ in range(200)))
        poller = asyncio.create_task(poll())
        assert await waiting == [True] * 200
        poller.cancel()
        # The first is there at once.
        return polled, (clock.ns - started) / SECOND

    polled, took = run(clock, main())
    assert polled <= 1 and took == pytest.approx(19.9 + 0.1 * polled, abs=1e-3)


def test_a2_the_turn_goes_on_with_its_booking():
    """The head leaves: the next one departs when the head would have. One that wants another cost
    books anew."""
    clock = Clock()
    limiter = empty(At("10/s burst 4", clock))

    async def main():
        tasks = [asyncio.create_task(limiter.wait_async(cost=cost)) for cost in (1, 1, 3, 1)]
        await asyncio.sleep(0.01)
        (queue,) = _queue._queues.values()
        first = queue.booked
        tasks[0].cancel()
        await asyncio.sleep(0.01)
        assert queue.booked is first
        tasks[1].cancel()
        await asyncio.sleep(0.01)
        assert queue.booked[2] == 3
        assert await tasks[2] and clock.ns == pytest.approx(SECOND + 0.3 * SECOND, abs=100)
        assert await tasks[3] and clock.ns == pytest.approx(SECOND + 0.4 * SECOND, abs=100)
        await asyncio.gather(*tasks, return_exceptions=True)

    run(clock, main())
    assert limiter.counts().denied == 1


def test_a2_permits_of_one_cancelled_in_the_same_instant_are_the_next_ones():
    clock = Clock()
    limiter = empty(At("10/s burst 1", clock))

    async def main():
        tasks = [asyncio.create_task(limiter.wait_async()) for _ in range(3)]
        await asyncio.sleep(0)
        (queue,) = _queue._queues.values()
        clock.ns = queue.due
        _queue.settle(queue)
        # The first one has its permit, and has not run since.
        tasks[0].cancel()
        assert await tasks[1] and clock.ns < SECOND + 0.1 * SECOND + 100
        tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = run(clock, main())
    assert isinstance(answers[0], asyncio.CancelledError) and answers[1] is True
    assert limiter.peek().retry_after_ns <= SECOND // 10


@pytest.mark.parametrize("patience", [None, 5])
@pytest.mark.parametrize("policy", ["10/s burst 2", "1/100ms algo fixed-window anchor first", "1/100ms algo interval anchor first"])
def test_a2_the_impatient_are_refused_at_once(policy, patience):
    clock = Clock()

    async def main():
        limiter = empty(At(policy, clock))
        waiting = [asyncio.create_task(limiter.wait_async(patience)) for _ in range(10)]
        await asyncio.sleep(0)
        started, denied = clock.ns, limiter.counts().denied
        # The eleventh permit comes after 1.1 s. Of a window's three, which may come at once, the
        # queue is not so sure.
        late = 1.09 if "burst" in policy else 0.79
        assert await limiter.wait_async(late) is False and await limiter.wait_async(0) is False and await limiter.wait_async(cost=3) is False
        assert clock.ns - started < 10 and limiter.counts().denied == denied
        waiting.append(asyncio.create_task(limiter.wait_async(1.1 + 1e-7)))
        assert await asyncio.gather(*waiting) == [True] * 11
        return clock.ns - started

    assert run(clock, main()) == pytest.approx(1.1 * SECOND, abs=200)


class Stands:
    def __init__(self, cost):
        self.cost = cost


@pytest.mark.parametrize("policy", BOOKING + ASKING + OF_LIMITERS_ALONE)
def test_a2_who_is_refused_at_once_could_not_have_been_served(policy):
    """The estimate of a newcomer's wait beside what a queue of callers gets. Both sides: it is
    never too late, and where callers book nearly exact."""
    random.seed(policy)
    clock = Clock()
    most = min(Policy(policy).burst, 3)
    waited = exact = 0
    for trial in range(300):
        limiter = At(policy, clock)
        clock.ns = SECOND + random.randrange(10**6) * 1_000_003
        for _ in range(random.randrange(12)):
            limiter.check(random.randint(1, most))
            clock.ns += random.randrange(SECOND // 9)
        costs = [random.randint(1, most) for _ in range(random.randint(2, 20))]
        now = clock.ns
        queue = _queue.Queue(None, limiter)
        turn = _queue.ask(limiter, costs[0], _queue.FOREVER)
        if turn is None or not turn.wait:
            continue
        for cost in costs[:-1]:
            queue.waiters[Stands(cost)] = None
        with time_of(clock):
            queue.take(next(iter(queue.waiters)), turn)
            bound = queue.earliest(costs[-1])
        for cost in costs[1:] if turn.booked else costs:
            while turn := _queue.ask(limiter, cost, _queue.FOREVER):
                if turn.booked or not turn.wait:
                    break
                clock.ns += turn.wait
        served = clock.ns + turn.wait - now
        assert bound is not None and bound <= served, trial
        # Each wait is rounded up to a nanosecond.
        waited += 1
        exact += served - bound <= len(costs)
    # A second bucket and a cold limiter are slower, and an interval may have begun with permits.
    assert waited > 5 and (exact == waited or policy not in BOOKING or any(slow in policy for slow in (";", "warm", "interval", "borrow", "slack")))


@pytest.mark.parametrize("leaves", [False, True])
def test_a2_a_deadline_that_another_process_brings_nearer_is_kept(leaves):
    """The other process takes what the queue has counted on. One in the midst of the queue returns
    at its deadline, or when the one before it leaves it a booking that departs later."""
    clock = Clock()

    async def main():
        limiter = empty(At("2/s burst 1", clock))
        started = clock.ns
        first, second, third = (asyncio.create_task(limiter.wait_async(timeout)) for timeout in (None, None, 1.7))
        await asyncio.sleep(0.1)
        for _ in range(4):
            limiter._book(1, _queue.FOREVER)
        await asyncio.sleep(0.9)
        if leaves:
            second.cancel()
        assert await third is False and clock.ns - started == pytest.approx((1 if leaves else 1.7) * SECOND, abs=1000)
        assert await first
        # After the other process's four.
        assert leaves or await second and clock.ns - started == pytest.approx(3 * SECOND, abs=1000)

    run(clock, main())


def test_a2_loops_that_stop_and_close():
    """A loop that is stopped with the head in it holds up no other loop: its waiter gets its
    permit, and those behind it theirs. A closed one gets none."""
    clock = Clock()
    limiter = empty(At("10/s burst 1", clock))
    with time_of(clock):
        stopped, closed, last = Loop(clock), Loop(clock), Loop(clock)
        orphans = []
        for loop in (stopped, closed):

            async def begin(loop=loop):
                orphans.append(loop.create_task(limiter.wait_async()))
                await asyncio.sleep(0)

            loop.run_until_complete(begin())
        closed.close()
        started = clock.ns
        assert last.run_until_complete(limiter.wait_async())
        assert clock.ns - started == pytest.approx(0.2 * SECOND, abs=1000)
        assert stopped.run_until_complete(orphans[0]) is True and clock.ns - started < 0.2 * SECOND + 1000
        for loop in (stopped, last):
            loop.close()
        # asyncio would report it as destroyed while it was pending.
        orphans[1]._log_destroy_pending = False
