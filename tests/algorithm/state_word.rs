//! A second implementation, written from docs/internals/state-word.md alone. Its words must equal
//! the library's, bit for bit, because other languages rely on that page.

use crate::common::{scale, Rng, DAY};
use num_bigint::BigUint;
use tollbar::algorithm::Rule;
use tollbar::limiter::Cell;
use tollbar::{Anchor, Kind, Policy, Shared, Verdict};

const H: u128 = 1 << 61;

/// The outcome of a step: the verdict and the word after it.
type Stepped = (Verdict, u128);

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// The page's section "The grid": S, and the clock in units.
struct Grid {
    s: u128,
    limit: u128,
    period: u128,
}

impl Grid {
    /// For a word of 64 bits.
    fn new(policy: &Policy, span: u64) -> Grid {
        Grid::of(policy, span, u64::MAX)
    }

    /// The section "gcra": one bit less if units a nanosecond are not whole and the last time stays
    /// what it is.
    fn gcra(policy: &Policy) -> Grid {
        let (wide, narrow) =
            (Grid::new(policy, policy.burst), Grid::of(policy, policy.burst, u64::MAX >> 1));
        let whole = wide.s * u128::from(policy.limit) % u128::from(policy.period) == 0;
        let most = narrow.units((H - 1) as u64) + 2 * u128::from(policy.burst) * narrow.s;
        match !whole && most < u128::from(u64::MAX >> 1) {
            true => narrow,
            false => wide,
        }
    }

    fn of(policy: &Policy, span: u64, room: u64) -> Grid {
        let (limit, period) = (u128::from(policy.limit), u128::from(policy.period));
        let permits = (H * limit).div_ceil(period) + 2 * u128::from(span);
        let most = u128::from(room) / permits;
        assert_ne!(most, 0, "these policies leave the second line out");
        let mut step = 1;
        loop {
            let base = period / gcd(period, limit * step);
            if base <= most {
                let s = if step == 1 { base } else { most / base * base };
                return Grid { s, limit, period };
            }
            step *= 10;
        }
    }

    fn units(&self, now: u64) -> u128 {
        let exact = BigUint::from(now) * self.s * self.limit / self.period;
        u128::try_from(exact).expect("within the clock's range")
    }
}

fn gcra(policy: &Policy, word: u128, now: u64, cost: u128) -> Stepped {
    let grid = Grid::gcra(policy);
    let (tolerance, lacking) =
        (u128::from(policy.burst) * grid.s, u128::from(policy.burst - policy.init) * grid.s);
    let clock = grid.units(now);
    let base = if word == 0 { clock + lacking } else { word.max(clock) };
    let next = base + cost * grid.s;
    if next <= clock + tolerance {
        (Verdict::Allowed, next)
    } else {
        (Verdict::Denied, if word == 0 && lacking > 0 { base } else { word })
    }
}

fn ban(policy: &Policy, word: u128, now: u64, cost: u128) -> Stepped {
    let after = u128::from(policy.ban_after);
    let b = 32 - policy.ban_after.leading_zeros();
    let banned =
        (u128::from(policy.ban) * u128::from(policy.limit)).div_ceil(u128::from(policy.period));
    let grid = Grid::of(policy, policy.burst + (banned / 2) as u64 + 1, u64::MAX >> b);
    let tolerance = u128::from(policy.burst) * grid.s;
    let clock = grid.units(now);
    let (mut tat, mut mark) = (word >> b, word & ((1 << b) - 1));
    if tat <= clock {
        (tat, mark) = (clock, 0);
    }
    if mark == after {
        if tat + grid.s > clock + tolerance {
            return (Verdict::Denied, word);
        }
        mark = 0;
    }
    let next = tat + cost * grid.s;
    if next <= clock + tolerance {
        return (Verdict::Allowed, next << b | mark);
    }
    if mark + 1 < after {
        return (Verdict::Denied, tat << b | (mark + 1));
    }
    let until = now + policy.ban;
    let u = grid.units(until) + u128::from(grid.units(until) == grid.units(until - 1));
    (Verdict::Denied, tat.max(u + tolerance - grid.s) << b | after)
}

fn pacer(policy: &Policy, word: u128, now: u64, cost: u128) -> Stepped {
    let (span, lag, start) = match policy.borrow {
        true => (policy.burst, policy.burst, policy.init),
        false => (policy.burst.max(policy.slack), policy.slack, 0),
    };
    let grid = Grid::new(policy, span);
    let (lag, start) = (u128::from(lag) * grid.s, u128::from(start) * grid.s);
    let clock = grid.units(now) + start;
    let departure = if word == 0 { clock - start } else { word.max(clock.saturating_sub(lag)) };
    if departure <= clock {
        (Verdict::Allowed, departure + cost * grid.s)
    } else {
        (Verdict::Denied, word)
    }
}

fn interval(policy: &Policy, word: u128, now: u64, cost: u128) -> Stepped {
    let clock = u128::from(now / policy.period) * u128::from(policy.limit);
    let next = word.max(clock) + cost;
    if next <= clock + u128::from(policy.burst) {
        (Verdict::Allowed, next)
    } else {
        (Verdict::Denied, word)
    }
}

fn fixed_window(policy: &Policy, limit: u64, word: u128, now: u64, cost: u128) -> Stepped {
    let (limit, period, now) = (u128::from(limit), u128::from(policy.period), u128::from(now));
    let (stored, used) = (word / (limit + 1), word % (limit + 1));
    let (start, used) = if policy.anchor == Anchor::First {
        let starts = u128::from(u64::MAX) / (limit + 1) - 2;
        let grains = (0..).flat_map(|tens| [1, 2, 5].map(|times| times * 10u128.pow(tens)));
        let grain = grains.into_iter().find(|grain| starts >= H / grain + 2).expect("there is one");
        if word != 0 && now < (stored - 1) * grain + period {
            (stored, used)
        } else {
            (now.div_ceil(grain) + 1, 0)
        }
    } else if stored >= now / period {
        (stored, used)
    } else {
        (now / period, 0)
    };
    if used + cost <= limit {
        (Verdict::Allowed, start * (limit + 1) + used + cost)
    } else if policy.count_rejected {
        (Verdict::Denied, start * (limit + 1) + limit)
    } else {
        (Verdict::Denied, word)
    }
}

/// For limits whose two counters fit without rounding.
fn weighted_window(policy: &Policy, word: u128, now: u64, cost: u128) -> Stepped {
    let bits = 64 - policy.limit.leading_zeros();
    let (limit, period, now) =
        (u128::from(policy.limit), u128::from(policy.period), u128::from(now));
    let mask = (1 << bits) - 1;
    let (stored, old, new) = (word >> (2 * bits), word >> bits & mask, word & mask);
    let window = (now / period).max(stored);
    let elapsed = now.saturating_sub(window * period);
    let (previous, current) = match window - stored {
        0 => (old, new),
        1 => (new, 0),
        _ => (0, 0),
    };
    if previous * (period - elapsed) + (current + cost) * period <= limit * period {
        (Verdict::Allowed, window << (2 * bits) | previous << bits | (current + cost))
    } else {
        (Verdict::Denied, word)
    }
}

fn quota(policy: &Policy, word: u128, cost: u128) -> Stepped {
    let used = word.saturating_sub(1);
    if used + cost <= u128::from(policy.limit) {
        (Verdict::Allowed, used + cost + 1)
    } else {
        (Verdict::Denied, word)
    }
}

/// Days and weeks of UTC. `tests/algorithm/calendar.rs` has the windows of zones.
fn calendar(policy: &Policy, word: u128, now: u64, cost: u128) -> Stepped {
    let limit = u128::from(policy.limit);
    let days = now / DAY;
    let window = if policy.period == DAY { days } else { (days + 3) / 7 };
    let (stored, used) = (word / (limit + 1), word % (limit + 1));
    let (window, used) =
        if stored < u128::from(window) + 3 { (u128::from(window) + 3, 0) } else { (stored, used) };
    match used + cost <= limit {
        true => (Verdict::Allowed, window * (limit + 1) + used + cost),
        false => (Verdict::Denied, word),
    }
}

fn step(policy: &Policy, word: u128, now: u64, cost: u64) -> Stepped {
    let wide = u128::from(cost);
    match policy.kind {
        _ if cost == 0 => (Verdict::Allowed, word),
        _ if cost > policy.burst && !policy.borrow => (Verdict::Never, word),
        Kind::Pacer => pacer(policy, word, now, wide),
        Kind::Gcra if policy.borrow => pacer(policy, word, now, wide),
        Kind::Gcra if policy.ban != 0 => ban(policy, word, now, wide),
        Kind::Gcra => gcra(policy, word, now, wide),
        Kind::Interval if policy.anchor == Anchor::Epoch => interval(policy, word, now, wide),
        Kind::Interval => fixed_window(policy, policy.burst, word, now, wide),
        Kind::FixedWindow => fixed_window(policy, policy.limit, word, now, wide),
        Kind::WeightedWindow => weighted_window(policy, word, now, wide),
        Kind::Quota => quota(policy, word, wide),
        Kind::Calendar => calendar(policy, word, now, wide),
        Kind::WarmUp | Kind::SlidingWindow | Kind::SlidingLog | Kind::Curve | Kind::LevelRefill => {
            unreachable!("not promised")
        }
    }
}

#[test]
fn the_words_are_those_of_the_documentation() {
    let texts = [
        "100/s burst 20",
        "7/s burst 3",
        "700000000/s burst 9",
        "11/s burst 4",
        "999983/s burst 50",
        "44100/s burst 2",
        "1/365d burst 3",
        "10/s burst 5 init 2",
        "5/s burst 3 ban 2s",
        "100/s burst 20 ban 50ms after 3",
        "44100/s burst 2 ban 1h after 2",
        "999983/s burst 5 ban 3us after 7",
        "1/day burst 3 ban 30d after 1000",
        "5/s burst 5 borrow",
        "5/s burst 5 borrow init 3",
        "100/s algo pacer slack 3",
        "13/s algo pacer",
        "3/min algo interval",
        "3/min burst 7 algo interval",
        "30/min algo interval anchor first",
        "100/s algo fixed-window",
        "5/s algo fixed-window count rejected",
        "6/s algo fixed-window anchor first",
        "1000/min algo fixed-window anchor first",
        "60/min algo weighted-window",
        "60000/s algo weighted-window",
        "9/forever",
        "1000/forever",
        "5/day algo calendar",
        "900/week algo calendar",
    ];
    let mut rng = Rng(41);
    for text in texts {
        let policy: Policy = text.parse().unwrap();
        for _ in 0..500 {
            let cell = Cell::new(Rule::new(&policy).unwrap());
            let mut word = 0;
            let period = scale(&policy);
            let latest = if rng.one_in(2) { 10 * period } else { 1 << 60 };
            let mut now = rng.below(latest);
            for _ in 0..30 {
                let cost = rng.below(policy.burst.min(40) + 2);
                let (verdict, next) = step(&policy, word, now, cost);
                let before = word;
                word = next;
                assert_eq!(
                    cell.admit_at(now, cost),
                    verdict,
                    "{text}: {cost} at {now}, word {before}"
                );
                assert_eq!(u128::from(cell.word()), word, "{text}: {cost} at {now}, word {before}");
                now = match rng.below(6) {
                    0 => now,
                    1 => now.saturating_sub(rng.below(period)),
                    2 => now + period,
                    3 => now + rng.below(2 * period),
                    _ => now + rng.below(3 * period / policy.limit + 2),
                };
            }
        }
    }
}
