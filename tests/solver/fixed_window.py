"""src/algorithm/fixed_window.rs: a word is `start · (limit + 1) + used`, and every step keeps it
so.
"""

from z3 import And, If, Implies, Ints, Or

from restated import restates, states
from words import MOST

WINDOW = "src/algorithm/fixed_window.rs"
USAGE = """
    if now > self.last { return None; }
    let (grain, rest) = self.grain.div_rem(now);
    if !self.anchored {
        let from = grain.wrapping_mul(self.radix.get());
        let Some(used) = state.checked_sub(from) else {
            return Some(WindowUsage { start: grain, used: 0 });
        };
        if used <= self.limit { return Some(WindowUsage { start: grain, used }); }
        let (start, used) = self.radix.div_rem(state);
        return Some(WindowUsage { start, used });
    }
    let (start, used) = self.radix.div_rem(state);
    if state != 0 && now < self.end(start) { return Some(WindowUsage { start, used }); }
    let start = grain + u64::from(rest != 0) + 1;
    Some(WindowUsage { start, used: 0 })
"""


def compiled():
    """The constants that FixedWindow::with computes, and what it promises of them."""
    states(
        WINDOW,
        "with",
        "limit.checked_add(1).and_then(NonZeroU64::new).ok_or(PolicyError::RateTooHigh)?;",
        "let starts = (u64::MAX / radix).saturating_sub(2);",
        "if starts < needed.max(1) { return Err(PolicyError::RateTooHigh); }",
        "let ahead = if anchored { starts - 1 } else { starts.saturating_add(1) };",
        "let last = ahead.saturating_mul(grain.get()).saturating_sub(u64::from(!anchored));",
    )
    limit, radix, starts = Ints("limit radix starts")
    return (
        limit,
        radix,
        starts,
        [
            limit >= 1,
            radix == limit + 1,
            radix <= MOST,
            # starts = MOST / radix - 2, and a policy with less than 1 is refused.
            starts >= 1,
            (starts + 2) * radix <= MOST,
            MOST < (starts + 3) * radix,
        ],
    )


def a_word(state, radix, starts):
    """The window and the permits of a word: at most `starts + 1` windows, which is that of `owing`."""
    start, used = Ints("start used")
    return (
        start,
        used,
        [
            state == start * radix + used,
            start >= 0,
            used >= 0,
            used < radix,
            start <= starts + 1,
        ],
    )


def the_window_of_a_request(fault):
    """Aligned to time 0, a request is decided in its own window, or in the word's if that is later."""
    restates(WINDOW, "usage", USAGE)
    state, now_window = Ints("state now_window")
    limit, radix, starts, known = compiled()
    start, used, of_word = a_word(state, radix, starts)
    known = known + of_word + [now_window >= 0, now_window <= starts]
    first = now_window * radix
    yield known, first <= MOST if not fault else first + radix * 3 <= MOST
    # The differences of windows, times the radix: a whole window more is the radix more.
    steps = [
        Implies(start > now_window, start * radix >= first + radix),
        Implies(start < now_window, start * radix + radix <= first),
        Implies(start == now_window, start * radix == first),
    ]
    for step in steps:
        yield known, step if not fault else And(step, start <= now_window)
    early = state < first
    fits = state - first <= (limit if not fault else radix)
    window = If(early, now_window, If(fits, now_window, start))
    permits = If(early, 0, If(fits, state - first, used))
    later = If(start > now_window, start, now_window)
    yield known + steps, And(window == later, permits == If(start >= now_window, used, 0))


def the_word_after_a_request(fault):
    """An admitted request raises the count of its window, and nothing else of the word."""
    restates(WINDOW, "word", "start.wrapping_mul(self.radix.get()).wrapping_add(used)")
    cost, window, permits, after = Ints("cost window permits after")
    limit, radix, starts, known = compiled()
    known = known + [
        window >= 0,
        window <= starts + 1,
        permits >= 0,
        permits <= limit,
        cost >= 1,
        after == window * radix + permits + cost,
    ]
    left = limit - permits
    admits = cost <= (left if not fault else left + 1)
    yield known, admits == (permits + cost <= limit)
    yield (
        known + [window * radix <= (starts + 1) * radix],
        Implies(admits, after <= (MOST if not fault else limit)),
    )
    yield known + [admits], And(after - window * radix >= 0, after - window * radix < radix)


def the_start_of_a_first_request(fault):
    """Anchored, a window begins at its first request, or less than a grain later; its word has
    room.
    """
    restates(WINDOW, "usage", USAGE)
    restates(
        WINDOW,
        "from",
        "start.saturating_sub(u64::from(self.anchored)).saturating_mul(self.grain.get())",
    )
    now, grain, whole, rest, last = Ints("now grain whole rest last")
    _, _, starts, known = compiled()
    known = known + [
        grain >= 1,
        grain <= MOST,
        now == whole * grain + rest,
        rest >= 0,
        rest < grain,
        whole >= 0,
        # FixedWindow::with: the last time is at most `starts - 1` grains.
        last <= (starts - 1) * grain,
        now >= 0,
        now <= last,
    ]
    start = whole + If(rest != 0, 1, 0) + 1
    begins = (start - 1) * grain
    yield known, And(begins >= now, begins < now + (grain if not fault else 1))
    yield (
        known + [Or(start <= starts, whole * grain + rest > (starts - 1) * grain)],
        start <= (starts if not fault else starts - 1),
    )


THEOREMS = [the_window_of_a_request, the_word_after_a_request, the_start_of_a_first_request]
