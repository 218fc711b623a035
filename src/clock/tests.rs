use super::*;

const DAY: u64 = 86_400_000_000_000;

#[test]
fn common_windows_begin_at_time_zero() {
    // `date -u -d @1741824000`: Thu Mar 13 00:00:00 UTC 2025.
    assert_eq!(TIME_ZERO, 1_741_824_000_000_000_000);
    for days in (1..=10).chain([12, 14, 28]) {
        assert_eq!(TIME_ZERO % (days * DAY), 0, "{days} days");
    }
}

#[test]
fn the_distance_to_utc_may_be_negative() {
    let (now, wall) = (5_000, TIME_ZERO + 3 * DAY);
    assert_eq!(now + offset_at(now, wall), 3 * DAY);
    // The machine has been up for longer than since TIME_ZERO, so the distance is negative.
    assert_eq!((9 * DAY).wrapping_add(offset_at(9 * DAY, wall)), 3 * DAY);
}

#[test]
fn a_clock_that_is_not_set_gives_distance_zero() {
    for wall in [0, 1, TIME_ZERO - 1, TIME_ZERO + PLAUSIBLE, u64::MAX] {
        assert_eq!(offset_at(77, wall), 0, "{wall}");
    }
    for wall in [TIME_ZERO, TIME_ZERO + PLAUSIBLE - 1] {
        assert_eq!(77_u64.wrapping_add(offset_at(77, wall)), wall - TIME_ZERO);
    }
}

/// The test reads real clocks one after the other. On a loaded machine seconds may pass between two
/// readings.
#[test]
fn every_source_tells_the_same_utc() {
    for source in [Source::Tsc, Source::Monotonic, Source::Coarse] {
        let time = Utc::new(source).now() + TIME_ZERO;
        assert!(time.abs_diff(Wall.now()) < 5_000_000_000, "{source:?}");
    }
    assert!(Utc::new(Source::Wall).now().abs_diff(Wall.now()) < 5_000_000_000);
}
