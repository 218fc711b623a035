//! Units beside exact arithmetic.

use super::*;

/// A word holds twice the span beyond the clock, also at the rates that get half the horizon.
#[test]
fn a_span_fits_twice() {
    let grid = |limit: u64, span: u64| {
        let (limit, period) = (NonZeroU64::new(limit), NonZeroU64::new(1_000_000_000));
        Grid::new(limit.expect("a limit"), period.expect("a period"), span, 64)
    };
    // 15 units a nanosecond for 2^60 ns leave 2^60, and 7 for 2^61 ns leave 2^61.
    for (limit, most) in [(15_000_000_000, (1 << 59) - 1), (7_000_000_000, (1 << 60) - 1)] {
        let last = grid(limit, most).expect("the largest span").max_now();
        assert!(last >= u64::MAX / 16, "{last}");
    }
    assert_eq!(grid(15_000_000_000, 1 << 59), None);
    // The next span gets half the horizon.
    assert!(grid(7_000_000_000, 1 << 60).is_some());
}

/// A grid converts readings up to its last one and none after it, with whole and with fractional
/// units a nanosecond.
#[test]
fn a_grid_ends_after_its_last_reading() {
    let (mut whole, mut fractional, mut ends) = (0, 0, 0);
    for (limit, period) in [
        (1, 1),
        (10, 120),
        (1, 1_000_000_000),
        (1000, 1_000_000_000),
        (3, 7),
        (999_983, 1_000_000_000),
        (7, 1 << 60),
    ] {
        let (limit, period) =
            (NonZeroU64::new(limit).expect("a limit"), NonZeroU64::new(period).expect("a period"));
        let grid = Grid::new(limit, period, 1000, 64).expect("a grid");
        let last = grid.max_now();
        let most = grid.units(last);
        assert!(
            last.checked_add(1).map_or(true, |after| grid.units(after) == u64::MAX),
            "{limit} in {period}"
        );
        if let Some(beyond) = most.checked_add(1) {
            assert_eq!(
                (grid.nanos(beyond), grid.nanos(u64::MAX)),
                (NEVER, NEVER),
                "{limit} in {period}"
            );
            ends += 1;
        }
        for now in [0, 1, 2, 1000, last / 2, last - 1, last] {
            let first = grid.nanos(grid.units(now));
            assert!(
                first <= now && grid.units(first) == grid.units(now),
                "{limit} in {period}: {now}"
            );
            assert!(
                first == 0 || grid.units(first - 1) < grid.units(now),
                "{limit} in {period}: {now}"
            );
        }
        let a_nanosecond = u128::from(limit.get()) * u128::from(grid.per_permit().get());
        assert_eq!(
            grid.whole().is_some(),
            a_nanosecond % u128::from(period.get()) == 0,
            "{limit} in {period}"
        );
        (whole, fractional) = (
            whole + u32::from(grid.whole().is_some()),
            fractional + u32::from(grid.whole().is_none()),
        );
    }
    assert!(whole > 0 && fractional > 0 && ends > 0, "{whole} {fractional} {ends}");
}

/// The last reading is the last one whose units fit the bits of the word.
#[test]
fn a_grid_ends_where_its_bits_do() {
    for (limit, period) in
        [(1, 120), (10, 1_000_000_000), (3, 700), (999_983, 1_000_000_000), (7, 1 << 50)]
    {
        for bits in [55, 60, 63, 64] {
            let (l, p) = (
                NonZeroU64::new(limit).expect("a limit"),
                NonZeroU64::new(period).expect("a period"),
            );
            let grid = Grid::new(l, p, 10, bits).expect("a grid");
            let a_nanosecond = u128::from(limit) * u128::from(grid.per_permit().get());
            let fits = |now: u64| u128::from(now) * a_nanosecond / u128::from(period) < 1 << bits;
            let last = grid.max_now();
            assert!(fits(last), "{limit} in {period}, {bits} bits: {last}");
            assert!(
                last.checked_add(1).map_or(true, |after| !fits(after)),
                "{limit} in {period}, {bits} bits: {last}"
            );
        }
    }
}
