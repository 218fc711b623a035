"""src/algorithm/gcra.rs: the fast step, and the step of all cases, decide as the specification.

Products are not multiplied out. `products` proves what the steps need to know of them, for all
whole numbers; `the_usual_step` and `the_step_of_all` assume that, for all words.
"""

from z3 import And, If, Implies, Ints, Or, ULE, ULT

from restated import restates, states
from words import MOST, at_most, greater, saturating_add, wide, word

GCRA = "src/algorithm/gcra.rs"


def specification(tat, clock, charge, tolerance):
    """Whether a request is admitted, and the TAT after it, without wrapping."""
    after = If(ULT(wide(tat), wide(clock)), wide(clock), wide(tat)) + wide(charge)
    return ULE(after, wide(clock) + wide(tolerance)), after


def products(fault):
    """Up to the last time, the clock and two bursts fit a word, and no charge is above a burst."""
    states(
        GCRA,
        "compile",
        "let tolerance = policy.burst.checked_mul(permit).ok_or(PolicyError::BurstTooLarge)?;",
        "let end = most.checked_sub(tolerance).and_then(|end| end.checked_sub(tolerance));",
        """
        let last = grid.nanos(end.ok_or(PolicyError::BurstTooLarge)?)
            .min(grid.max_now()).saturating_sub(1).min(LAST);
        """,
    )
    states(
        GCRA, "ending_at", "self.plain.end = if self.plain.units == 0 { 0 } else { self.last + 1 };"
    )
    now, units, cost, burst, permit, tolerance, last, end = Ints(
        "now units cost burst permit tolerance last end"
    )
    compiled = [
        units >= 1,
        permit >= 1,
        burst >= 1,
        last >= 0,
        # Gcra::compile: `tolerance` is checked, `end` is what two bursts leave of a word, and
        # `last` is below the first reading whose units are `end` or more (Grid::nanos).
        tolerance == burst * permit,
        tolerance <= MOST,
        end == MOST - 2 * tolerance,
        end >= 0,
        Or(last == 0, last * units < end),
    ]
    request = [
        now >= 0,
        now <= last + (1 if fault else 0),
        cost >= 1,
        cost <= burst + (1 if fault else 0),
    ]
    yield compiled + request, now * units + 2 * tolerance <= MOST
    yield compiled + request, cost * permit <= tolerance


def the_usual_step(fault):
    """Plain::step_before admits what the specification admits, and stores its TAT."""
    restates(
        GCRA,
        "step_before",
        """
        if now >= end { rarely(); return None; }
        let mut charge = self.permit;
        if cost != 1 {
            rarely();
            if cost.wrapping_sub(1) >= self.burst { return None; }
            charge = charge.wrapping_mul(cost);
        }
        let clock = now.wrapping_mul(self.units);
        let latest = clock.wrapping_add(self.tolerance).wrapping_sub(charge);
        if state > latest { return Some(None); }
        Some(Some(state.max(clock).wrapping_add(charge)))
        """,
    )
    state, clock, charge, tolerance = map(word, ("state", "clock", "charge", "tolerance"))
    known = [at_most(charge, tolerance), ULE(wide(clock) + wide(tolerance) + wide(tolerance), MOST)]
    latest = clock + tolerance - charge
    refused = ULT(latest, state) if not fault else ULE(latest, state)
    after = greater(state, clock) + charge
    admits, expected = specification(state, clock, charge, tolerance)
    yield known, And(refused != admits, Implies(admits, wide(after) == expected))


def the_step_of_all(fault):
    """Gcra::step_of_all does so too, and begins a fresh bucket that lacks permits."""
    restates(
        GCRA,
        "base",
        """
        let tat = self.floors.tat(state);
        if state == 0 { clock.saturating_add(self.lacking) } else if tat > clock { tat } else { clock }
        """,
    )
    restates(
        GCRA,
        "step_of_all",
        """
        if cost == 0 { return Step::ask(); }
        if cost > self.burst { return Step::never(); }
        if now > self.last { return Step::deny(); }
        let clock = self.grid.units_in_time(now);
        let base = self.base(state, clock);
        let charge = cost.wrapping_mul(self.grid.per_permit().get());
        match base.checked_add(charge) {
            Some(next) if next <= clock.wrapping_add(self.tolerance) => {
                Step::allow(self.raise(state, next))
            }
            _ if state == 0 && self.lacking != 0 => Step::deny_and(base),
            _ => Step::deny(),
        }
        """,
    )
    state, tat, clock, charge, tolerance, lacking = map(
        word, ("state", "tat", "clock", "charge", "tolerance", "lacking")
    )
    known = [
        at_most(charge, tolerance),
        at_most(lacking, tolerance),
        ULE(wide(clock) + wide(tolerance) + wide(tolerance), MOST),
    ]
    base = If(state == 0, saturating_add(clock, lacking), greater(tat, clock))
    sum_fits = ULE(wide(base) + wide(charge), MOST)
    line = clock + tolerance if not fault else clock + tolerance + 1
    admitted = And(sum_fits, at_most(base + charge, line))
    # A fresh bucket lacks permits: its TAT is that much after the clock.
    begins = If(state == 0, clock + lacking, tat)
    admits, expected = specification(begins, clock, charge, tolerance)
    yield known, And(admitted == admits, Implies(admits, wide(base + charge) == expected))


THEOREMS = [products, the_usual_step, the_step_of_all]
