"""Limiter and Decision, at times of our own where it matters."""

import copy
import math
import pickle
import signal
import threading
import time
from datetime import timedelta

import pytest
import tollbar
from edges import away_from_edges
from tollbar import Limiter, Policy

SECOND = 1_000_000_000


def test_decisions_are_counted():
    limiter = Limiter("10/s burst 3")
    assert sum(limiter.allow(at=SECOND) for _ in range(13)) == 3
    limiter.check(4, at=SECOND)
    limiter.peek(at=SECOND)
    assert limiter.counts() == tollbar.Counts(allowed=3, denied=10, never=1)


def test_a_bucket():
    limiter = Limiter("10/s burst 3")
    answers = [limiter.check(at=SECOND) for _ in range(4)]
    assert [bool(a) for a in answers] == [True, True, True, False]
    assert [a.remaining for a in answers] == [2, 1, 0, 0]
    refused = answers[3]
    assert not refused.allowed and not refused.never
    assert refused.retry_after_ns == 100_000_000 and refused.retry_after == 0.1
    assert refused.reset_after_ns == 300_000_000 and refused.reset_after == 0.3
    assert answers[0].retry_after_ns == 0 and answers[0].retry_after == 0.0
    assert limiter.allow(at=SECOND + 99_999_999) is False
    assert limiter.allow(at=SECOND + 100_000_000) is True


def test_m6_the_most_that_a_policy_admits_in_a_window():
    policy = Policy("120/min")
    assert [policy.worst_case(window) for window in (60, timedelta(hours=1), 1e-9, 0)] == [239, 7319, 120, 0]
    with pytest.raises(ValueError):
        policy.worst_case(-1)


def test_s37_bytes_are_permits():
    """A sender of 100 MB/s in costs of 1,500 bytes is off by less than one cost after 10 s, and one that takes what there is
    by nothing."""
    whole, everything = (Limiter("100mb/s burst 15000 unit bytes") for _ in range(2))
    sent = got = 0
    for now in range(1000 * SECOND, 1010 * SECOND + 1, 100_000):
        while whole.allow(1500, at=now):
            sent += 1500
        got += everything.take_up_to(2**63, at=now)
    assert got == 1_000_015_000 and 0 <= got - sent < 1500


def test_s54_a_policy_of_a_function():
    policy = Policy.curve(1_000_000, 60, lambda time: time**2)
    assert policy.algorithm == "curve" and Policy(str(policy)) == policy
    limiter, taken = Limiter(policy), 0
    for n in range(1, 1001):
        taken += limiter.take_up_to(2_000_000, at=3600 * 10**9 + min(n * 60 * 10**6, 60 * 10**9 - 1))
        assert abs(taken - n * n) <= 1000
    assert taken == 1_000_000
    with pytest.raises(ValueError, match="at time 0.5 of the slice the function gives 0.25, expected a share"):
        Policy.curve(100, 60, lambda time: 0.4 if time < 0.5 else time / 2)
    with pytest.raises(ValueError, match="at time 1 of the slice the function gives 0.5, expected 1"):
        Policy.curve(100, 60, lambda time: time / 2)
    with pytest.raises(ValueError, match="at time 0.33335 of the slice the curve is 1 off the function, expected at most 0.001"):
        Policy.curve(100, 60, lambda time: float(time > 1 / 3))
    assert Policy.curve(1, 1, lambda time: float(time > 1 / 3), within=1).limit == 1
    with pytest.raises(ZeroDivisionError):
        Policy.curve(100, 60, lambda time: 1 / time)


def test_nothing_is_admitted_after_the_last_time():
    policy = Policy("3/min algo interval anchor first")
    assert policy.last_time_ns == 2**61 - 2
    assert Policy("15000000000/s burst 1000").last_time_ns < 2**61 - 2
    limiter = Limiter(policy)
    assert limiter.allow(at=policy.last_time_ns)
    for at in [2**61 - 1, 2**61, 2**62 + 1, 2**63, 2**64 - 1]:
        assert not limiter.allow(at=at) and not limiter.peek(at=at)


def test_now_is_the_time_of_the_calls_without_one():
    limiter = Limiter("1/h")
    assert limiter.allow()
    assert 3590 < limiter.peek(at=limiter.now()).retry_after <= 3600.001


@pytest.mark.parametrize("clock, zero", [("tsc", 1_741_824_000), ("coarse", 1_741_824_000), ("wall", 0)])
def test_time_is_utc(clock, zero):
    limiter = Limiter("1/day algo fixed-window", clock=clock)
    assert abs(limiter.now() / 1e9 + zero - time.time()) < 60
    away_from_edges(86400 * SECOND)
    assert limiter.allow()
    left = 86400 - time.time() % 86400
    assert left - 60 < limiter.peek().retry_after < left + 1


@pytest.mark.parametrize("policy, least, most", [("800/day", 700, 799), ("31/day", 31, 31)])
def test_credit_is_part_of_the_burst(policy, least, most):
    limiter = Limiter(policy, credit=True)
    taken = sum(limiter.allow(at=3600 * 10**9) for _ in range(1000))
    assert least <= taken <= most and limiter.counts().allowed == taken


def test_only_gcra_has_credit():
    with pytest.raises(tollbar.Error):
        Limiter("5/s algo pacer", credit=True)


def test_more_than_there_can_ever_be():
    never = Limiter("10/s burst 3").check(4)
    assert never.never and not never
    assert never.retry_after == math.inf and never.retry_after_ns is None
    assert "never" in repr(never)


def test_peek_takes_nothing():
    limiter = Limiter("1/s")
    assert limiter.peek(at=5) and limiter.peek(at=5)
    assert limiter.check(at=5)
    assert not limiter.peek(at=5)


def test_take_up_to_and_reset():
    limiter = Limiter("1/h burst 5")
    assert limiter.take_up_to(3) == 3
    assert limiter.take_up_to(3) == 2
    assert limiter.take_up_to(3) == 0
    limiter.reset()
    assert limiter.take_up_to(9) == 5


def test_charge():
    limiter = Limiter("1/s burst 5")
    assert limiter.charge(7, at=SECOND) == 0
    # Two permits are owed beyond an empty bucket.
    assert limiter.peek(at=SECOND).retry_after == 3
    assert limiter.charge(7, at=SECOND) == 4
    assert limiter.charge(at=SECOND) == 1
    assert Limiter("5/s algo fixed-window").charge(cost=7) == 2
    for _ in range(3):
        limiter.reset()
        assert limiter.charge(0) == 0 and limiter.charge() == 0


def test_bans():
    limiter = Limiter("2/min ban 1h after 2")
    told = [limiter.check(at=SECOND).reason for _ in range(5)]
    assert told == ["admitted", "admitted", "over the rate", "banned", "banned"]
    assert limiter.peek(at=SECOND).retry_after == 3600
    limiter.reset()
    assert limiter.check(at=SECOND)
    assert Policy.of(2, 60, ban=3600, after=2) == Policy("2/min ban 1h after 2")


def test_batches():
    limiter = Limiter("1/h burst 5")
    assert limiter.check_many(7) == b"\1\1\1\1\1\0\0"
    limiter.reset()
    assert limiter.check_many([3, 3, 2, 1]) == b"\1\0\1\0"
    limiter.reset()
    assert sum(limiter.check_many(1000)) == 5
    assert limiter.check_many([]) == b""
    assert limiter.check_many(0) == b""


@pytest.mark.parametrize(
    "text",
    [
        "5/min",
        "5/min algo interval",
        "5/min algo fixed-window",
        "5/min algo weighted-window",
        "5/min algo sliding-window segments 6 mode strict",
        "5/min algo sliding-log",
        "5/min burst 5 algo pacer slack 4",
        "5/min algo warm-up warm 1s",
    ],
)
def test_every_algorithm_limits(text):
    limiter = Limiter(text)
    passed = sum(limiter.check_many(50))
    assert 1 <= passed <= 6
    assert limiter.policy.algorithm in text or limiter.policy.algorithm == "gcra"
    assert limiter.policy.limit == 5 and limiter.policy.period == 60


def test_policies():
    policy = Policy("100/s burst 20")
    assert (policy.limit, policy.period_ns, policy.burst, policy.algorithm) == (100, SECOND, 20, "gcra")
    assert policy == Policy(str(policy)) and hash(policy) == hash(Policy(str(policy)))
    assert policy != Policy("100/s") and policy != "100/s burst 20"
    assert eval(repr(policy)) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert Limiter(policy).policy == policy
    assert Policy.of(100, timedelta(seconds=1), burst=20) == policy
    assert Policy.of(100, burst=20) == policy
    assert Policy.of(6, timedelta(milliseconds=1.5)).period_ns == 1_500_000
    window = Policy.of(60, timedelta(minutes=1), algorithm="sliding-window", segments=6, mode="strict")
    assert window == Policy("60/min algo sliding-window segments 6 mode strict")
    assert Policy.of(5, algorithm="warm-up", warm=timedelta(seconds=2)) == Policy("5/s algo warm-up warm 2s")
    assert Policy.of(5, borrow=True) == Policy("5/s borrow") and Policy.of(5, borrow=False) == Policy("5/s")


@pytest.mark.parametrize("wrong", [{"limit": 1.5}, {"limit": 1, "burst": 2.5}, {"limit": 1, "per": "min"}])
def test_policies_of_what_are_no_numbers(wrong):
    with pytest.raises(TypeError):
        Policy.of(**wrong)


def test_policies_of_numbers_that_make_none():
    for wrong in ({"per": 0}, {"per": -1}, {"algorithm": "magic"}, {"nonsense": 3}, {"segments": 6}):
        with pytest.raises(ValueError):
            Policy.of(5, **wrong)


def test_a_policy_that_is_wrong_says_where():
    with pytest.raises(tollbar.PolicyError) as caught:
        Limiter("100/parsec")
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, tollbar.Error)
    assert error.column == 5 and error.name == "TOLLBAR_E_SYNTAX" and error.code == -10
    assert error.text == "100/parsec" and error.expected in str(error)
    with pytest.raises(tollbar.PolicyError) as caught:
        Policy("100/s burst 0")
    assert caught.value.name == "TOLLBAR_E_BURST_ZERO"


@pytest.mark.parametrize("wrong", [None, 5, b"100/s", 1.5, [], object()])
def test_a_policy_of_another_type(wrong):
    with pytest.raises(TypeError):
        Limiter(wrong)


@pytest.mark.parametrize("name", ["check", "allow", "peek", "take_up_to", "charge"])
def test_wrong_arguments(name):
    call = getattr(Limiter("1/s"), name)
    for wrong in ("1", 1.0, b"1", [], None):
        with pytest.raises(TypeError, match="must be an int"):
            call(wrong)
    for wrong in (-1, 2**64, -(2**80)):
        with pytest.raises(ValueError, match="0 to 2"):
            call(wrong)
    with pytest.raises(TypeError, match="unexpected keyword"):
        call(1, when=3)
    with pytest.raises(TypeError, match="at most 1"):
        call(1, 2)
    with pytest.raises(TypeError, match="must be an int"):
        call(1, at=1.5)


def test_arguments_twice_or_missing():
    limiter = Limiter("1/s")
    with pytest.raises(TypeError, match="multiple values"):
        limiter.check(1, cost=2)
    with pytest.raises(TypeError, match="missing"):
        limiter.take_up_to()
    with pytest.raises(TypeError, match="missing"):
        limiter.check_many()
    with pytest.raises(ValueError):
        limiter.check_many([1, -1])
    with pytest.raises((MemoryError, OverflowError)):
        limiter.check_many(2**63 - 100)
    with pytest.raises(MemoryError):
        limiter.check_many(2**64 - 1)
    with pytest.raises(ValueError, match="clock"):
        Limiter("1/s", clock="sundial")


def test_what_cannot_be_made_otherwise():
    with pytest.raises(TypeError):
        type(Limiter("1/s").check())()
    with pytest.raises(TypeError):
        object.__new__(Limiter)
    with pytest.raises(TypeError):
        copy.copy(Limiter("1/s"))
    with pytest.raises(TypeError):
        Limiter.check("a limiter")


def test_a_cost_like_an_int():
    class Three:
        def __index__(self):
            return 3

    assert Limiter("5/h").check(Three()).remaining == 2


@pytest.mark.parametrize("text", ["5/s burst 1", "1/200ms algo sliding-log"])
def test_wait(text):
    limiter = Limiter(text)
    started = time.monotonic()
    limiter.take_up_to(100)
    assert limiter.wait(timedelta(seconds=60)) is True
    assert 0.19 < time.monotonic() - started < 30


def test_wait_that_is_too_short_takes_nothing():
    limiter = Limiter("1/h")
    assert limiter.allow()
    started = time.monotonic()
    assert limiter.wait(600) is False
    assert limiter.wait(0) is False
    assert limiter.wait(cost=5) is False
    assert time.monotonic() - started < 300
    limiter.reset()
    assert limiter.wait(0) is True
    for wrong in (-1, float("nan"), timedelta(seconds=-1)):
        with pytest.raises(ValueError):
            limiter.wait(wrong)
    for wrong in ("soon", b"1", []):
        with pytest.raises(TypeError):
            limiter.wait(wrong)
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError):
            limiter.wait(0, cost=wrong)
    with pytest.raises(TypeError):
        limiter.wait(0, cost=1.0)


def test_waiting_lets_other_threads_run():
    def counted():
        limiter = Limiter("4/s burst 1")
        assert limiter.allow()
        waiter = threading.Thread(target=limiter.wait)
        waiter.start()
        turns = 0
        while waiter.is_alive():
            turns += 1
            time.sleep(0.001)
        return turns

    # Where a waiter kept the others from running it would be one or two, each time.
    assert any(counted() > 5 for _ in range(10))


def test_a_signal_ends_waiting():
    def handler(number, frame):
        raise InterruptedError

    limiter = Limiter("1/h")
    assert limiter.allow()
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(InterruptedError):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            limiter.wait()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_threads_admit_no_more_than_the_limit():
    limiter = Limiter("1000/day")
    passed = []

    def run():
        passed.append(sum(limiter.allow() for _ in range(1000)))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 1000


def test_the_version():
    from importlib.metadata import version

    assert tollbar.__version__ == version("tollbar")


def test_a_policy_changes():
    limiter = Limiter("10/h")
    assert limiter.allow(4)
    limiter.set_policy("100/h")
    assert limiter.policy.limit == 100 and limiter.peek().remaining == 6
    limiter.set_policy("20/h algo sliding-log", keep="reset")
    assert limiter.take_up_to(99) == 20 and limiter.reserve() is None
    limiter.set_policy("5/h", keep="time")
    assert limiter.take_up_to(99) == 0 and limiter.reserve() is not None
    for wrong in (lambda: limiter.set_policy("5/mn"), lambda: limiter.set_policy("5/s", keep="all")):
        with pytest.raises(ValueError):
            wrong()
    assert limiter.policy.limit == 5


def test_a_list_of_two_policies():
    limiter = Limiter("10/s; 25/day")
    day = 86_400 * SECOND
    assert all(limiter.allow(10, at=day + n * SECOND) for n in range(2))
    refused = limiter.check(6, at=day + 2 * SECOND)
    assert (refused.allowed, refused.bound, refused.remaining) == (False, 1, 5)
    assert limiter.check(5, at=day + 2 * SECOND).bound == 1
    assert limiter.check(11, at=day + 2 * SECOND).bound == 0
    policy = Policy("10 per second ;1000/24 hours")
    assert str(policy) == "10/s; 1000/day" and Policy(str(policy)) == policy
    with pytest.raises(tollbar.PolicyError) as refusal:
        Policy("100/s; 1000000/day")
    assert refusal.value.column == 8
