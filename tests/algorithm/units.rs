//! The arithmetic between time and permits against its definition in whole numbers of any size.

use num_bigint::BigUint;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use std::num::NonZeroU64;
use tollbar::units::{Divisor, Grid, UnitLength, HORIZON, NEVER};

fn big(n: impl Into<BigUint>) -> BigUint {
    n.into()
}

/// Numbers of every size.
fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (any::<u64>(), 0..64u32).prop_map(|(n, shift)| (n >> shift).max(1)),
        1 => (0..64u32, 0..2u64).prop_map(|(shift, less)| ((1 << shift) - less).max(1)),
        1 => (0..20u32).prop_map(|zeros| 10u64.checked_pow(zeros).unwrap_or(1)),
    ]
}

/// Divisors of the clock's range.
const ALL: u32 = 1;
const HALF: u32 = 2;

#[derive(Debug)]
struct Case {
    limit: NonZeroU64,
    period: NonZeroU64,
    span: u64,
    bits: u32,
}

impl Case {
    fn grid(&self) -> Option<Grid> {
        Grid::new(self.limit, self.period, self.span, self.bits)
    }

    /// `units` in nanoseconds is `units · this / units_in(this)`: the length of a unit as a
    /// fraction.
    fn length(&self, grid: &Grid) -> (BigUint, BigUint) {
        (big(self.period.get()), big(self.limit.get()) * grid.per_permit().get())
    }

    /// Units up to `now`, rounded down.
    fn units(&self, grid: &Grid, now: impl Into<BigUint>) -> BigUint {
        let (period, in_period) = self.length(grid);
        now.into() * in_period / period
    }

    /// The first time at which `units` are over.
    fn nanos(&self, grid: &Grid, units: u64) -> BigUint {
        let (period, in_period) = self.length(grid);
        (big(units) * period + &in_period - 1u32) / in_period
    }

    /// Whether a word has room for the span twice and a part of the clock's range (all of it, or
    /// half) at `per_permit` units a permit.
    fn fits(&self, per_permit: impl Into<BigUint>, part: u32) -> bool {
        let permits =
            (big(HORIZON) * self.limit.get() + self.period.get() - 1u32) / self.period.get() / part;
        per_permit.into() * (permits + big(self.span) * 2u32) < big(1u32) << self.bits
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let bits = prop_oneof![1 => 20..64u32, 3 => Just(64u32)];
    // Most rates are less than a permit a nanosecond, or no word would hold them.
    (sizes(), sizes(), sizes(), 0..3u32, bits).prop_map(|(a, b, span, fast, bits)| {
        let (limit, period) = if fast == 0 { (a, b) } else { (a.min(b), a.max(b)) };
        Case {
            limit: NonZeroU64::new(limit).expect("a limit"),
            // The clock is exact for periods up to this.
            period: NonZeroU64::new(period.min(1 << 62)).expect("a period"),
            span,
            bits,
        }
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// The clock in units is the exact product, rounded down, up to the last reading whose units
    /// fit the word.
    #[test]
    fn the_clock_is_rounded_down(case in cases(), times in prop::collection::vec(any::<u64>(), 8)) {
        let grid = case.grid();
        prop_assume!(grid.is_some());
        let grid = grid.expect("a grid");
        let last = grid.max_now();
        let end = big(1u32) << case.bits;
        prop_assert!(case.units(&grid, last) < end, "{last}");
        prop_assert!(last == u64::MAX || case.units(&grid, big(last) + 1u32) >= end, "{last}");
        let rounded = case.units(&grid, case.period.get()) % case.limit.get() != big(0u32) || grid.whole().is_none();
        for now in times.into_iter().map(|time| time % last.max(1)).chain([0, 1, last.saturating_sub(1), last]) {
            let units = case.units(&grid, now).to_u64().expect("units that fit a word");
            prop_assert_eq!(grid.units(now), units, "{}", now);
            let up = grid.units_up(now);
            prop_assert_eq!(up, units.saturating_add(u64::from(rounded)), "{}", now);
        }
        if let Some(after) = last.checked_add(1) {
            prop_assert_eq!((grid.units(after), grid.units_up(after)), (u64::MAX, u64::MAX));
        }
    }

    /// A time is the first at which its units are over; the fast estimate is that or a little
    /// later, and never falls.
    #[test]
    fn times_are_rounded_up(case in cases(), targets in prop::collection::vec(any::<u64>(), 8)) {
        let grid = case.grid();
        prop_assume!(grid.is_some());
        let grid = grid.expect("a grid");
        let last = grid.max_now();
        let most = grid.units(last);
        let unit = case.nanos(&grid, 1);
        let mut targets: Vec<u64> = targets.into_iter().map(|target| target % most.max(1)).collect();
        targets.extend([0, 1, most.saturating_sub(1), most, most.saturating_add(1), u64::MAX]);
        targets.sort_unstable();
        let mut before = 0;
        for target in targets {
            let exact = case.nanos(&grid, target);
            let want = if exact <= big(last) { exact.to_u64().expect("a time") } else { NEVER };
            prop_assert_eq!(grid.nanos(target), want, "{}", target);
            let over = grid.over(target, NEVER);
            prop_assert!(over >= before, "{target}: {over} after {before}");
            before = over;
            if over != NEVER {
                prop_assert!(big(over) >= exact && big(over) < exact + 4u32 + &unit, "{target}: {over}");
                prop_assert_eq!((grid.over(target, over), grid.over(target, over + 1)), (NEVER, over));
            } else {
                prop_assert!(exact + 4u32 + &unit > big(u64::MAX), "{target}");
            }
        }
    }

    /// The units of a permit are as many as the word has room for, in the finest steps of time that
    /// are exact.
    #[test]
    fn units_are_as_fine_as_fits(case in cases()) {
        let part = if case.fits(1u32, ALL) { ALL } else { HALF };
        let Some(grid) = case.grid() else {
            prop_assert!(!case.fits(1u32, HALF));
            return Ok(());
        };
        let per_permit = big(grid.per_permit().get());
        prop_assert!(case.fits(per_permit.clone(), part) && grid.per_permit().get() <= u64::MAX >> 1);
        let (period, step) = (case.period.get(), grid.exact_step());
        let exact = |step: u64| (big(step) * case.limit.get() * &per_permit % period) == big(0u32);
        prop_assert!(exact(step), "{step}");
        prop_assert_eq!(grid.whole().is_some(), exact(1));
        if let Some(units) = grid.whole() {
            prop_assert_eq!(big(units), case.units(&grid, 1u32));
        }
        let base = |step: u64| period / gcd(period, (big(step) * case.limit.get() % period).to_u64().expect("below the period"));
        if step == 1 {
            prop_assert_eq!(&per_permit, &big(base(1)));
        } else {
            // No finer step would have had room, and no more units.
            let more = &per_permit + if step == period { 1 } else { base(step) };
            prop_assert!(!case.fits(more.clone(), part) || more > big(u64::MAX >> 1), "{more}");
            // A step that is no power of ten comes after all of them.
            let tens = (1..20).any(|zeros| 10u64.pow(zeros) == step);
            let finer = base(if tens { step / 10 } else { 10u64.pow(19) });
            prop_assert!(!case.fits(finer, part) || finer > u64::MAX >> 1, "{finer}");
        }
    }

    /// A length gives the same estimate as its grid.
    #[test]
    fn a_length_is_its_grids(case in cases(), units in sizes(), end in sizes()) {
        let grid = case.grid();
        prop_assume!(grid.is_some());
        let grid = grid.expect("a grid");
        let length = UnitLength::new(case.limit, case.period, grid.per_permit());
        prop_assert_eq!(length.over(units, end), grid.over(units, end));
    }

    #[test]
    fn division(by in sizes(), n in prop_oneof![any::<u64>(), sizes()], times in any::<u64>()) {
        let by = NonZeroU64::new(by).expect("a divisor");
        let divisor = Divisor::new(by);
        prop_assert_eq!(divisor.get(), by.get());
        let multiple = by.get().saturating_mul(times % (u64::MAX / by));
        for n in [n, 0, u64::MAX, multiple, multiple.wrapping_sub(1), multiple + 1] {
            prop_assert_eq!(divisor.div_rem(n), (n / by, n % by), "{} by {}", n, by);
        }
    }
}
