use super::*;

const FREE: Intervals = Intervals { guaranteed: NO_GUARANTEE, ceiling: 1 };

/// `interval · 2^h · (1 + rest/step)` in numbers of 128 bits, where the fraction is rounded down to
/// 16 bits.
fn exact(interval: u64, debt: u64, burst: u64) -> u64 {
    let step = u128::from(burst) * 4 / 16;
    let (halvings, rest) = (u128::from(debt) / step, u128::from(debt) % step);
    let part = u128::from(interval) * (rest * 65_536 / step) / 65_536;
    u64::try_from(((u128::from(interval) + part) << halvings).min(1 << 39)).expect("64 bits")
}

#[test]
fn a_share_is_what_the_documentation_says() {
    for burst in [BURST_LEAST, 7_654_321, 250_000_000, BURST_MOST] {
        for interval in [1, 999, 1_000, 333_333_334, INTERVAL_MOST] {
            let mut last = 0;
            for n in 0..=1_000 {
                let debt = range(burst) / 1_000 * n;
                let now = share(interval, debt, burst, &FREE);
                assert_eq!(now, exact(interval, debt, burst), "{interval} {debt} {burst}");
                assert!(now >= last, "a greater debt makes permits cheaper");
                last = now;
            }
        }
    }
    let burst = 250_000_000;
    assert_eq!(share(1_000, 0, burst, &FREE), 1_000);
    assert_eq!(share(1_000, range(burst) / 16, burst, &FREE), 2_000);
    assert_eq!(share(1_000, range(burst), burst, &FREE), 65_536_000);
}

#[test]
fn a_guarantee_and_a_ceiling_hold_at_every_debt() {
    let child = Intervals { guaranteed: 50_000, ceiling: 3_000 };
    let burst = 250_000_000;
    assert_eq!(share(1_000, 0, burst, &child), 3_000);
    assert_eq!(share(1_000, range(burst), burst, &child), 50_000);
    assert_eq!(share(1_000, u64::MAX, burst, &child), 50_000);
    for debt in (0..2 * range(burst)).step_by(9_999_991) {
        assert!((3_000..=50_000).contains(&share(1_000, debt, burst, &child)));
    }
}
