#!/usr/bin/env python3
"""Every algorithm of tollbar from its definition, in exact fractions and with no thought for speed.

    reference.py random POLICY SEED COUNT PREFIX   makes PREFIX.trace and what is expected of it
    reference.py replay POLICY TRACE PREFIX        the same for a trace that is there

What is expected: PREFIX.decisions and PREFIX.report, as `tollbar replay` writes them. Policies
whose `limit / gcd(limit, period)` is above 8 have rounded clocks and are refused here, but for
warm-up, whose rounding is part of its definition.

SPDX-License-Identifier: MIT OR Apache-2.0
"""

import random
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from math import ceil, floor, gcd

NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "min": 60 * 10**9,
      "h": 3600 * 10**9, "d": 86400 * 10**9, "day": 86400 * 10**9}


def time_ns(text):
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits or 1) * NS[text[len(digits):]]


class Policy:
    """LIMIT/PERIOD and options, as the header describes them; no faults are looked for."""

    def __init__(self, text):
        head, *words = text.split()
        limit, period = head.split("/")
        self.text, self.limit, self.period = text, int(limit), time_ns(period)
        self.algo, self.anchored, self.mode = "gcra", False, "n"
        self.borrow = self.count_rejected = False
        self.burst = self.init = self.warm = None
        self.segments, self.slack, self.cold = 10, 0, 3
        words = iter(words)
        for word in words:
            if word == "borrow":
                self.borrow = True
            elif word == "count":
                self.count_rejected = next(words) == "rejected"
            elif word == "anchor":
                self.anchored = next(words) == "first"
            elif word == "warm":
                self.warm = time_ns(next(words))
            elif word in ("algo", "mode"):
                setattr(self, word, next(words))
            else:
                setattr(self, word, int(next(words)))
        self.burst = self.limit if self.burst is None else self.burst
        if self.init is None:
            self.init = 0 if self.borrow else self.burst
        self.interval = Fraction(self.period, self.limit)
        if self.algo in ("gcra", "pacer") and self.limit // gcd(self.limit, self.period) > 8:
            sys.exit(f"{text}: not exact at every nanosecond")


class Limiter:
    """One key's state. A subclass says what is left, when more will be, and what a charge does."""

    def __init__(self, policy):
        self.p = policy
        self.largest = policy.burst

    def fits(self, now, cost):
        return cost <= self.left(now)

    def refuse(self, now, cost):
        """Most algorithms forget those that they refuse."""

    def decide(self, now, cost):
        """The verdict, what is left after it, and the wait until the same request would pass."""
        if cost == 0:
            verdict = "A"
        elif cost > self.largest:
            verdict = "N"
        elif self.fits(now, cost):
            verdict = "A"
            self.charge(now, cost)
        else:
            verdict = "D"
            self.refuse(now, cost)
        retry = self.admits_at(now, cost) - now if verdict == "D" else None
        return verdict, self.left(now), retry


class Bucket(Limiter):
    """Token bucket: one permit an interval flows in, up to the burst. It is full again at
    `full`."""

    full = None

    def full_at(self, now):
        if self.full is None:
            return now + (self.p.burst - self.p.init) * self.p.interval
        return max(self.full, now)

    def left(self, now):
        return max(0, floor(self.p.burst - (self.full_at(now) - now) / self.p.interval))

    def charge(self, now, cost):
        self.full = self.full_at(now) + cost * self.p.interval

    def refuse(self, now, cost):
        # A bucket that starts short fills from the first request on.
        self.full = self.full_at(now)

    def admits_at(self, now, cost):
        return max(now, ceil(self.full_at(now) + (cost - self.p.burst) * self.p.interval))


class Ticks(Limiter):
    """Interval refill aligned to time 0: a token bucket on a clock that moves in whole periods."""

    def __init__(self, policy):
        super().__init__(policy)
        self.bucket = Bucket(policy)
        self.bucket.p = type("PerTick", (), dict(burst=policy.burst, init=policy.burst,
                                                 interval=Fraction(1, policy.limit)))

    def left(self, now):
        return self.bucket.left(now // self.p.period)

    def charge(self, now, cost):
        self.bucket.charge(now // self.p.period, cost)

    def admits_at(self, now, cost):
        return max(now, self.bucket.admits_at(now // self.p.period, cost) * self.p.period)


class Departures(Limiter):
    """Pacer, and the bucket that lends: a take may go once those before are paid for, and of an
    idle time up to `slack` permits are kept."""

    next = None

    def __init__(self, policy):
        super().__init__(policy)
        self.slack, self.start = (policy.burst, policy.init) if policy.borrow else (policy.slack, 0)
        if policy.borrow:
            self.largest = 2**64  # what a word can lend is less, and is not tried here
        self.slack, self.start = self.slack * policy.interval, self.start * policy.interval

    def departure(self, now):
        if self.next is None:
            return now - self.start
        return max(self.next, now - self.slack)

    def fits(self, now, cost):
        return self.departure(now) <= now

    def left(self, now):
        """Single permits: each departure is one interval after the other."""
        return max(0, floor((now - self.departure(now)) / self.p.interval) + 1)

    def charge(self, now, cost):
        self.next = self.departure(now) + cost * self.p.interval

    def admits_at(self, now, cost):
        return max(now, ceil(self.departure(now)))


class Window(Limiter):
    """A counter for each window; a clock that went back is judged in the latest one."""

    start, used = None, 0

    def here(self, now):
        if self.start is not None and now < self.start + self.p.period:
            return self.start, self.used
        if not self.p.anchored:
            return now // self.p.period * self.p.period, 0
        # Starts are rounded up to a grid of 1, 2, 5, 10, 20 ... ns that leaves room for the
        # counter.
        decade = 1
        while True:
            for grain in (decade, 2 * decade, 5 * decade):
                if (self.p.burst + 1) * Fraction(2**61, grain) < 2**64:
                    return ceil(Fraction(now, grain)) * grain, 0
            decade *= 10

    def left(self, now):
        return max(0, self.p.burst - self.here(now)[1])

    def charge(self, now, cost):
        start, used = self.here(now)
        self.start, self.used = start, used + cost

    def refuse(self, now, cost):
        if self.p.count_rejected:
            self.charge(now, cost)

    def admits_at(self, now, cost):
        return self.here(now)[0] + self.p.period


class Weighted(Limiter):
    """Two windows: the last one's count fades out while the running one's grows."""

    def __init__(self, policy):
        super().__init__(policy)
        self.counts, self.latest = Counter(), 0

    def estimate(self, now):
        window, into = divmod(max(now, self.latest * self.p.period), self.p.period)
        fading = self.counts[window - 1] * Fraction(self.p.period - into, self.p.period)
        return self.counts[window] + fading

    def left(self, now):
        return max(0, floor(self.p.limit - self.estimate(now)))

    def charge(self, now, cost):
        self.latest = max(self.latest, now // self.p.period)
        self.counts[self.latest] += cost

    def admits_at(self, now, cost):
        """The estimate never rises by itself, so the first instant is found by halving."""
        window = max(now // self.p.period, self.latest)
        return first(now, (window + 2) * self.p.period, lambda t: self.fits(t, cost))


class Segments(Limiter):
    """A window of equal segments, counted each, in three ways to treat the oldest one."""

    def __init__(self, policy):
        super().__init__(policy)
        self.length = policy.period // policy.segments
        self.counts, self.latest = Counter(), 0
        self.origin = None if policy.anchored else 0

    def since(self, now):
        """The time since the origin, and no earlier than the latest segment."""
        origin = now if self.origin is None else self.origin
        return max(now - origin, self.latest * self.length, 0)

    def used(self, now):
        segment, into = divmod(self.since(now), self.length)
        n = self.p.segments
        whole = sum(self.counts[segment - i] for i in range(n))
        if self.p.mode == "strict":
            whole += self.counts[segment - n]
        if self.p.mode == "interpolated":
            whole += self.counts[segment - n] * Fraction(self.length - into, self.length)
        return whole

    def left(self, now):
        return max(0, floor(self.p.limit - self.used(now)))

    def charge(self, now, cost):
        if self.origin is None:
            self.origin = now
        self.latest = self.since(now) // self.length
        self.counts[self.latest] += cost

    def admits_at(self, now, cost):
        """What is used never grows by itself; after all segments and one more it is 0."""
        origin = now if self.origin is None else self.origin
        over = origin + (self.since(now) // self.length + self.p.segments + 1) * self.length
        return first(now, over, lambda t: self.fits(t, cost))


class Log(Limiter):
    """The time of each permit; a clock that went back is judged at the newest time entered."""

    def __init__(self, policy):
        super().__init__(policy)
        self.times = []

    def judged(self, now):
        return max([now] + self.times[-1:])

    def left(self, now):
        judged = self.judged(now)
        return max(0, self.p.limit - sum(judged - t < self.p.period for t in self.times))

    def charge(self, now, cost):
        # More than a log's worth of entries is never looked at.
        self.times = (self.times + [self.judged(now)] * cost)[-self.p.limit:]

    def refuse(self, now, cost):
        if self.p.count_rejected:
            self.charge(now, cost)

    def admits_at(self, now, cost):
        leaves = [t + self.p.period for t in self.times]
        return min(t for t in leaves if t > now and self.fits(t, cost))


class WarmUp(Limiter):
    """Guava's trapezoid. Discrete are: the time of the next departure (in `1/unit` permits), what
    is stored (in `1/fine` permits), and the area under the curve from 0 to what is stored."""

    state = None

    def __init__(self, policy):
        super().__init__(policy)
        p = policy
        self.threshold = Fraction(p.warm) / (2 * p.interval)
        self.most = self.threshold + 2 * p.warm / (p.interval * (1 + p.cold))
        self.fine = 1
        while self.fine < 1024 and floor(self.most * self.fine) < 256:
            self.fine *= 2
        self.full = floor(self.most * self.fine)
        # The finest unit for which 61 bits of nanoseconds, and twice the burst, fit the word beside
        # what is stored, and whose clock is exact at multiples of the smallest possible power of
        # ten.
        room = 2 ** (64 - self.full.bit_length()) - 1
        most = room // (ceil(2**61 / p.interval) + 2 * p.burst)
        step = 1
        while p.period // gcd(p.period, p.limit * step) > most:
            step *= 10
        self.unit = p.period // gcd(p.period, p.limit * step)
        if step > 1:
            self.unit *= most // self.unit
        self.areas = {}

    def area(self, level):
        """The price, in units, of emptying a store of so many levels; its two parts rounded
        each."""
        if level not in self.areas:
            stored = Fraction(level, self.fine)
            above = max(stored - self.threshold, 0)
            slope = (self.p.cold - 1) / (self.most - self.threshold)
            self.areas[level] = floor(stored * self.unit) + floor(slope * above * above / 2 * self.unit)
        return self.areas[level]

    def clock(self, now):
        return floor(now / self.p.interval * self.unit)

    def nanos(self, units):
        return ceil(units * self.p.interval / self.unit)

    def found(self, now):
        """When the next one may go, and what is stored."""
        clock = self.clock(now)
        if self.state is None:
            return clock, self.full
        due, level = self.state
        if due >= clock:
            return due, level
        idle = max(0, now - self.nanos(due) - ceil(self.p.interval))
        return clock, min(self.full, level + idle * self.full // self.p.warm)

    def fits(self, now, cost):
        return self.found(now)[0] <= self.clock(now)

    def left(self, now):
        return int(self.fits(now, 1))

    def charge(self, now, cost):
        due, level = self.found(now)
        drawn = min(level, cost * self.fine)
        price = self.area(level) - self.area(level - drawn)
        price += ceil((cost - Fraction(drawn, self.fine)) * self.unit)
        self.state = due + max(1, price), level - drawn

    def admits_at(self, now, cost):
        return max(now, self.nanos(self.found(now)[0]))


def first(no, yes, holds):
    """The first time after `no` at which something holds that goes on to hold until `yes`."""
    while yes - no > 1:
        middle = (no + yes) // 2
        if holds(middle):
            yes = middle
        else:
            no = middle
    return yes


def limiter(policy):
    if policy.borrow or policy.algo == "pacer":
        return Departures(policy)
    if policy.algo == "interval":
        return Window(policy) if policy.anchored else Ticks(policy)
    return {"gcra": Bucket, "fixed-window": Window, "weighted-window": Weighted, "sliding-window": Segments,
            "sliding-log": Log, "warm-up": WarmUp}[policy.algo](policy)


def moved(rng, policy, now, retry):
    """The time of a key's next request: near what matters, and now and then in the past."""
    interval = max(1, policy.period // policy.limit)
    near = rng.choice((-1, 0, 0, 1))
    edge = policy.period // (policy.segments if policy.algo == "sliding-window" else 1)
    what = rng.randrange(20)
    if what < 5:
        return now
    if what < 9 and retry is not None:
        return now + retry + near
    if what < 11:
        return now + rng.randrange(2 * interval + 1)
    if what < 13:
        return now + interval * rng.randrange(1, 4) + near
    if what < 15:
        return (now // edge + rng.randrange(1, 3)) * edge + near
    if what < 16:
        return now + policy.period + near
    if what < 17:
        return now + rng.randrange(3 * policy.period)
    if what < 19:
        return now - rng.randrange(1, 2 * interval + 2)
    return now - rng.randrange(2 * policy.period)


def costs(rng, policy):
    what = rng.randrange(20)
    if what < 12:
        return 1
    if what < 18:
        return rng.randrange(policy.burst + 2)
    return (0, policy.burst, policy.burst + 1, 2**64 - 1)[rng.randrange(4)]


def random_trace(policy, seed, count):
    """Some keys at a time, each replaced by a fresh one now and then. The limiters here only say
    where the next request is worth making."""
    rng = random.Random(f"{seed} {policy.text}")
    keys, live = 0, []
    for _ in range(count):
        if len(live) < 6 or rng.randrange(250) == 0:
            start = rng.choice((0, 1, policy.period - 1, policy.period, rng.randrange(10**16),
                                1_431_857_103_000_000_000 + rng.randrange(10 * policy.period)))
            live.insert(rng.randrange(len(live) + 1), [f"k{keys}", start, limiter(policy)])
            keys += 1
            del live[6:]
        one = rng.choice(live)
        cost = costs(rng, policy)
        if policy.borrow and cost == 2**64 - 1:
            cost = 1  # how much may be lent is a matter of the word's size, not of the definition
        yield one[1], one[0], cost
        retry = one[2].decide(one[1], cost)[2]
        one[1] = min(2**61 - 4 * policy.period, max(0, moved(rng, policy, one[1], retry)))


def fullest(policy, admitted):
    """The most in any window (t - period, t], and the first key in order that has it. Each time is
    the latest of the log so far."""
    best = (0, None)
    for key in sorted(admitted):
        taken = admitted[key]
        oldest = total = 0
        for now, cost in taken:
            total += cost
            while taken[oldest][0] <= now - policy.period:
                total -= taken[oldest][1]
                oldest += 1
            if total > best[0]:
                best = (total, key)
    return best


def expect(policy, trace, prefix):
    limiters, admitted, denied = {}, defaultdict(list), Counter()
    verdicts, count, newest = Counter(), 0, 0
    with open(prefix + ".decisions", "w") as out:
        for now, key, cost in trace:
            if key not in limiters:
                limiters[key] = limiter(policy)
            verdict, left, retry = limiters[key].decide(now, cost)
            out.write(f"{verdict} {left} {'-' if retry is None else retry}\n")
            verdicts[verdict] += 1
            count += 1
            if verdict == "A":
                newest = max(newest, now)
                admitted[key].append((newest, cost))
            else:
                denied[key] += 1
    most, who = fullest(policy, admitted)
    ranks = sorted(denied.items(), key=lambda item: (-item[1], item[0]))[:10]
    with open(prefix + ".report", "w") as out:
        out.write(f"policy         {policy.text}\nrequests       {count}\n")
        out.write(f"allowed        {verdicts['A']}\n")
        out.write(f"denied         {verdicts['D'] + verdicts['N']}, of them never {verdicts['N']}\n")
        out.write(f"keys           {len(limiters)}, of them denied {len(denied)}\n")
        out.write(f"most admitted  {most} in one period" + (f", {who}" if who else "") + "\n")
        out.write("most denied    " + ("" if ranks else "none\n"))
        for i, (key, n) in enumerate(ranks):
            out.write(f"{'               ' if i else ''}{n:8}  {key}\n")


def main():
    what, text, *rest = sys.argv[1:]
    policy = Policy(text)
    if what == "random":
        seed, count, prefix = int(rest[0]), int(rest[1]), rest[2]
        trace = list(random_trace(policy, seed, count))
        with open(prefix + ".trace", "w") as out:
            out.writelines(f"{now} {key} {cost}\n" for now, key, cost in trace)
    else:
        path, prefix = rest
        with open(path) as lines:
            fields = [line.split() for line in lines]
        trace = [(int(now), key, int(cost)) for now, key, cost in fields]
    expect(policy, trace, prefix)


if __name__ == "__main__":
    main()
