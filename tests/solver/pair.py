"""src/algorithm/pair: two buckets in one word, in whole steps.

`pair/one.rs` decides the usual request in fewer instructions than `Pair::step_any`. Whether the
buckets started in the running step is a product of the word, which both compute alike or one does
not need. So `here` stands for it, with what follows from it. That words say it truly is tests' to
show, not these.

A word is its parts here: the slow TAT, the count in that TAT's lowest bits, and the difference of
the TATs. One adds a charge to the whole word. That adds to each part as long as no part leaves its
bits, which each claim says.
"""

from z3 import And, Bool, If, Implies, Ints, Not, Or, Real, Reals

from restated import restates, states

PAIR, ONE, START = (
    "src/algorithm/pair.rs",
    "src/algorithm/pair/one.rs",
    "src/algorithm/pair/start.rs",
)
STEP_ANY = """
    if cost.wrapping_sub(1) >= self.burst { return if cost == 0 { Step::ask() } else { Step::never() }; }
    if now > LAST { return Step::deny(); }
    let clock = self.steps.clock(now);
    let word = self.word_at(state, clock);
    let tats = self.seen(word, clock);
    if tats.fast.wrapping_add(self.fast.charge(cost)) > clock.down.wrapping_add(self.fast.tolerance)
        || tats.slow.wrapping_add(self.slow.charge(cost)) > clock.down.wrapping_add(self.slow.tolerance)
    { return Step::deny(); }
    let (tats, count) = self.charge_both(word, clock, cost, cost);
    Step::allow(self.pack_counted(tats, count))
"""
CHARGE_BOTH = """
    let tats = word.tats;
    let (fast_from, count) = match (tats.fast <= clock.down, word.here) {
        (true, _) => (clock.up, fast),
        (false, Some(count)) => (tats.fast, count.saturating_add(fast)),
        (false, None) => (tats.fast, 0),
    };
    let slow_from = match self.start {
        _ if tats.slow <= clock.down => self.on_grid(clock.up),
        Start::Spaced(_) if tats.slow == clock.up => clock.up.wrapping_add(1),
        _ => tats.slow,
    };
    let after = Tats {
        fast: fast_from.wrapping_add(self.fast.charge(fast)),
        slow: slow_from.wrapping_add(self.slow.charge(slow)),
    };
    (after, count)
"""
SEEN = """
    let early = match word.here { Some(_) => clock.up.wrapping_sub(clock.down), None => 0, };
    let slow_early = match self.start { Start::Counts(_) => 0, Start::Spaced(_) => early, };
    Tats {
        fast: word.tats.fast.wrapping_sub(early),
        slow: word.tats.slow.wrapping_sub(slow_early),
    }
"""


class Word:
    """A word of a pair at a clock reading, and what both ways to decide make of a request of one
    permit.

    Numbers are whole. `fits` says of each that the code computes that it fits the code's words.
    """

    def __init__(self):
        states(
            "src/algorithm/pair/bucket.rs",
            "new",
            "permit.get().checked_mul(burst).filter(|tolerance| tolerance >> 61 == 0)?;",
        )
        states(
            "src/algorithm/pair/fit.rs",
            "pair",
            "let divides = slow.permit.get() & counts.wrapping_sub(1) == 0;",
            "let fits = divides && counts <= slow.permit.get() / 2 && meanwhile < slow.burst;",
            "let ahead = slow.tolerance.checked_mul(2)?.checked_add(start.grid())?.checked_add(2)?;",
            "let low = bits(ahead);",
        )
        names = "clock fast_permit slow_permit fast_most slow_most bits grid slow count difference on_grid"
        (
            self.clock,
            self.fast_permit,
            self.slow_permit,
            self.fast_most,
            self.slow_most,
            self.bits,
            self.grid,
            self.slow,
            self.count,
            self.difference,
            self.on_grid,
        ) = Ints(names)
        self.here, self.between = Bool("here"), Bool("between")
        self.up = self.clock + If(self.between, 1, 0)
        self.fast = self.slow - self.difference
        self.spaced = self.grid == 1
        self.known = [
            # TokenBucket::new; the slow bucket takes longer for a permit, or as long.
            self.fast_most < 2**61,
            self.slow_most < 2**61,
            self.fast_permit >= 1,
            self.fast_permit <= self.slow_permit,
            self.fast_permit <= self.fast_most,
            self.slow_permit <= self.slow_most,
            # Rates::pair: a permit of the slow bucket takes at least two grids.
            self.grid >= 1,
            Or(self.spaced, 2 * self.grid <= self.slow_permit),
            # The lower part of a word has room for what is ahead of the clock; `bits` is 2^low.
            self.clock >= 0,
            self.clock < 2**61,
            2 * self.slow_most + self.grid + 2 < self.bits,
            # A word that a pair has written. Its slow TAT is a multiple of the grid.
            self.slow >= 0,
            self.slow < 2**62,
            self.difference >= 0,
            self.difference < self.bits,
            self.difference <= self.slow,
            self.count >= 0,
            self.count < self.grid,
            # The first multiple of the grid from the clock, rounded up, on.
            self.on_grid >= self.up,
            self.on_grid < self.up + self.grid,
            # A start in the running step: at least a permit has been charged from its end on.
            Implies(self.here, And(self.up < self.fast, self.up < self.slow)),
            Implies(And(self.here, Not(self.spaced)), self.count > 0),
        ]

    def any(self):
        """Pair::step_any: whether it admits, and the slow TAT, the count and the difference after
        it.
        """
        early = If(self.here, self.up - self.clock, 0)
        slow_early = If(self.spaced, early, 0)
        admits = And(
            self.fast - early + self.fast_permit <= self.clock + self.fast_most,
            self.slow - slow_early + self.slow_permit <= self.clock + self.slow_most,
        )
        full = self.fast <= self.clock
        count = If(full, 1, If(self.here, self.count + 1, 0))
        fast = If(full, self.up, self.fast) + self.fast_permit
        slow = self.slow_permit + If(
            self.slow <= self.clock,
            self.on_grid,
            If(And(self.spaced, self.slow == self.up), self.up + 1, self.slow),
        )
        return admits, slow, If(count > self.grid - 1, 0, count), slow - fast

    def read(self):
        """One::read: the steps above a permit of the slow bucket, of the fast one, and One::owing."""
        room, fast_room = self.slow_most - self.slow_permit, self.fast_most - self.fast_permit
        gap = If(room > fast_room, room - fast_room, 0)
        above = self.clock + room - self.slow
        return above, above + self.difference - gap, If(fast_room < room, fast_room, room) - 2

    def fits(self):
        """The differences of One::read are words with a sign, and the TATs of both ways have none."""
        above, fast_above, owing = self.read()
        _, slow, _, _ = self.any()
        return And(
            *(And(n >= -(2**63), n < 2**63) for n in (above, fast_above, owing)), slow < 2**63
        )

    def holds(self, slow, count, difference):
        """What One stores, once the charge is added, is what Pair::step_any stores of an admission."""
        admits, *expected = self.any()
        stored = slow + self.slow_permit, count, difference + self.slow_permit - self.fast_permit
        same = [a == b for a, b in zip(stored, expected)]
        return And(admits, *same, stored[2] >= 0, stored[2] < self.bits)


def the_usual_pair(fault):
    """One::step admits and refuses what Pair::step_any does, and stores the same word."""
    restates(PAIR, "step_any", STEP_ANY)
    restates(START, "charge_both", CHARGE_BOTH)
    restates(START, "seen", SEEN)
    restates(
        ONE,
        "step",
        """
        let Read { high, slow, above, fast_above, .. } = self.read(state, now);
        let least = fast_above.min(above);
        if least < 0 { return if least < -1 { OneStep::Refused } else { OneStep::Other }; }
        match fast_above <= self.owing && high == slow {
            true => OneStep::Admitted(state.wrapping_add(self.charge)),
            false => OneStep::Other,
        }
        """,
    )
    of = Word()
    above, fast_above, owing = of.read()
    yield of.known, of.fits() if not fault else And(of.fits(), of.slow < 2**61)
    least = If(fast_above < above, fast_above, above)
    refused = least < (-1 if not fault else 0)
    yield of.known + [refused], Not(of.any()[0])
    admitted = And(least >= 0, fast_above <= (owing if not fault else owing + 2), of.count == 0)
    yield of.known + [admitted], of.holds(of.slow, 0, of.difference)


def the_start_of_a_pair(fault):
    """One::start does so where a bucket starts, or where the word has a count."""
    restates(
        ONE,
        "start",
        """
        let Read { clock, high, slow, difference, above, fast_above } = self.read(state, now);
        if above < 0 || fast_above < 0 { return OneStep::Other; }
        let is_whole = now.wrapping_mul(self.per) == clock.wrapping_mul(self.nanos);
        let up = clock.wrapping_add(u64::from(!is_whole));
        if fast_above <= self.owing {
            let count = high.wrapping_sub(slow);
            let here = slow.wrapping_sub(difference).wrapping_sub(count.wrapping_mul(self.permit)) == up;
            let next = if here { count.wrapping_add(1) & self.counted } else { 0 };
            let counted = (slow.wrapping_add(next) << (self.low & 63)).wrapping_add(difference);
            return OneStep::Admitted(counted.wrapping_add(self.charge));
        }
        let slow_is_full = slow <= clock;
        if fast_above == self.owing.wrapping_add(1) || (!slow_is_full && slow <= clock.wrapping_add(1)) {
            return OneStep::Other;
        }
        let start = if slow_is_full { up.wrapping_add(self.counted) & !self.counted } else { slow };
        let started = (start << (self.low & 63)).wrapping_add(start.wrapping_sub(up));
        OneStep::Admitted(started.wrapping_add(self.charge).wrapping_add(self.first))
        """,
    )
    of = Word()
    above, fast_above, owing = of.read()
    decides = And(above >= 0, fast_above >= 0)
    # `here` of both is one product. Without a count it is whether the fast TAT is the clock.
    here = If(of.count == 0, of.fast == of.up, of.here)
    # (count + 1) & counted: a count that has no room is 0.
    count = If(And(here, of.count + 1 < of.grid), of.count + 1, 0)
    owes = fast_above <= (owing if not fault else owing + 2)
    yield of.known + [decides, owes], of.holds(of.slow, count, of.difference)
    full = of.slow <= of.clock
    other = Or(
        fast_above == owing + 1, And(Not(full), of.slow <= of.clock + (1 if not fault else 0))
    )
    start = If(full, of.on_grid, of.slow)
    first = If(of.spaced, 0, 1)
    yield (
        of.known + [decides, fast_above > owing, Not(other)],
        of.holds(start, first, start - of.up),
    )


def a_step_late(fault):
    """A bucket in steps admits nothing that an exact one refuses, and its TAT is less than a step
    late.
    """
    restates(PAIR, "step_any", STEP_ANY)
    restates(START, "charge_both", CHARGE_BOTH)
    restates(START, "seen", SEEN)
    time, exact = Reals("time exact")
    down, tat, charge, most, charged = Ints("down tat charge most charged")
    between = Bool("between")
    up = down + If(between, 1, 0)
    known = [
        down >= 0,
        tat >= 0,
        charge >= 1,
        charge <= most,
        # The exact clock, in steps, is where both roundings say.
        time >= down,
        time <= up,
        Implies(between, And(time > down, time < up)),
        exact >= 0,
        tat - exact >= 0,
        tat - exact < 1,
    ]
    exact_from = If(exact > time, exact, time)
    exact_admits = exact_from + charge <= time + most
    starts = If(tat <= down, up, tat)
    late = And(starts - exact_from >= 0, starts - exact_from < 1)
    yield known, late if not fault else And(late, starts - exact_from < 0.5)
    admits = tat + charge <= down + (most if not fault else most + 1)
    yield known, Implies(admits, exact_admits)
    # If all charges since the bucket was full were made in the running step, its exact TAT is that
    # of the first of them, which was made at some instant of the step up to now, plus the charges.
    began = Real("began")
    here = known + [
        began >= down,
        began <= time,
        tat == up + charged,
        exact == began + charged,
        charged >= 0,
    ]
    early = tat - (up - down) + charge <= down + (most if not fault else most + 1)
    yield here, Implies(early, exact + charge <= time + most)


def the_clock_in_steps(fault):
    """Steps::clock is the whole quotient, and the remainder tells whether it is exact."""
    restates(
        "src/algorithm/pair/steps.rs",
        "clock",
        """
        let estimate = ((u128::from(now) * u128::from(self.reciprocal)) >> 64) as u64 >> self.shift;
        let rest = now.wrapping_mul(self.per.get()).wrapping_sub(estimate.wrapping_mul(self.nanos));
        let (down, rest) = match rest >= self.nanos {
            true => (estimate.wrapping_add(1), rest.wrapping_sub(self.nanos)),
            false => (estimate, rest),
        };
        StepReading { down, up: down.wrapping_add(u64::from(rest != 0)) }
        """,
    )
    states(
        "src/algorithm/pair/steps.rs",
        "new",
        "filter(|nanos| *nanos >= per.get() && *nanos >> 63 == 0)?;",
        "(u128::from(per.get()) << shift.saturating_add(64).min(127)) / divisor;",
        "reciprocal: u64::try_from(reciprocal).unwrap_or(u64::MAX)",
    )
    now, nanos, per, reciprocal, rest, scale, q, low = Ints(
        "now nanos per reciprocal rest scale q low"
    )
    known = [
        now >= 0,
        now < 2**61,
        per >= 1,
        per <= nanos,
        nanos < 2**63,
        # `scale` is 2^(64 + shift). A reciprocal of 2^64 is stored as one less, so `rest` may be
        # `nanos`.
        scale >= 2**64,
        reciprocal * nanos + rest == scale * per,
        rest >= 0,
        rest <= nanos,
        q * scale + low == now * reciprocal,
        low >= 0,
        low < scale,
        q >= 0,
    ]
    # Both sides times `nanos`.
    times = [q * scale * nanos + low * nanos == now * (scale * per - rest)]
    bounds = [
        low * nanos < scale * nanos,
        low * nanos >= 0,
        now * rest >= 0,
        now * rest <= 2**61 * nanos,
        2**61 * nanos < scale * nanos,
    ]
    for fact in times + bounds:
        yield known, fact if not fault else And(fact, now * rest > 2**61 * nanos)
    left = now * per - q * nanos
    # Divided by `scale`: left · scale = low · nanos + now · rest.
    scaled = [left * scale == low * nanos + now * rest]
    yield known + times + bounds, scaled[0] if not fault else And(scaled[0], left < 0)
    only = [
        left * scale == low * nanos + now * rest,
        low * nanos < scale * nanos,
        low * nanos >= 0,
        now * rest >= 0,
        now * rest < scale * nanos,
        scale >= 2**64,
        nanos >= 1,
    ]
    yield only, And(left >= 0, left < (1 if fault else 2) * nanos)


THEOREMS = [the_usual_pair, the_start_of_a_pair, a_step_late, the_clock_in_steps]
