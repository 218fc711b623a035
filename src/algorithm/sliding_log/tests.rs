//! The log's arithmetic.

use super::*;
use std::vec::Vec;

fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

/// Enters 3,000 permits by the rule, and checks after each which of the last 40 are the newest of
/// their places.
fn run(packing: &impl Packing, mut seen: impl FnMut(u64, u64)) {
    let log = *packing.log();
    let (mut word, mut count, mut now) = (0, 0u64, 5 * log.period);
    // Each permit's number, its number in the log's head (which has fewer bits), and its time.
    let mut entered: Vec<(u64, u64, u64)> = Vec::new();
    for step in 0..3_000 {
        let cost = step % log.limit() + 1;
        // Some permits at once, and some after an idle time.
        now += [0, 0, log.period / 3, 0, 1, 3 * log.period + 1][step as usize % 6];
        // Waits until no window holds more permits than the limit.
        if let Some(first) = (count + cost).checked_sub(log.limit() + 1) {
            now = entered
                .iter()
                .filter(|permit| permit.0 <= first)
                .map(|permit| permit.2 + log.period)
                .fold(now, u64::max);
        }
        let head = packing.head(word);
        entered.extend((0..cost).map(|more| (count + more, head + more, now)));
        entered.drain(..entered.len().saturating_sub(40));
        (word, count) = (packing.next(word, cost, now), count + cost);
        assert_eq!(log.place(packing.head(word)), log.place(count), "{word}");
        assert!(packing.ceiling(word) >= now, "{word}");
        seen(word, now);
        for &(number, k, at) in &entered {
            let newest = count <= number + log.limit();
            if packing.newest(word, k, at) {
                assert!(newest, "{count} permits, number {number} as {k}");
            } else {
                assert!(
                    !newest || now > at + log.period,
                    "{count} permits at {now}, number {number} as {k} at {at}"
                );
            }
        }
    }
}

#[test]
fn a_permit_is_the_newest_of_its_place_until_the_limit() {
    for text in ["3/8ns", "7/8ns", "1/s", "2/5us", "31/50ns", "9/min"] {
        let policy = policy(&std::format!("{text} algo sliding-log"));
        run(&SlidingLog::new(&policy).expect("a log"), |_, _| ());
        let keyed = KeyedLog::new(&policy).expect("a log of a key");
        let grain = 1 << keyed.grain;
        run(&keyed, |word, now| {
            assert!((1..=keyed.turn).contains(&keyed.head(word)), "{text}: {word}");
            assert!(keyed.ceiling(word) < now + grain, "{text}: {word}");
            assert_eq!(keyed.expires_at(word), keyed.ceiling(word) + policy.period);
        });
        assert_eq!(keyed.expires_at(0), 0);
    }
}

/// With `count rejected`, any number of refused requests can enter the log in a period. So a
/// straggler gives up in the second grain after its own (limiter/log.rs).
#[test]
fn a_straggler_among_refused_requests_is_late_after_a_grain() {
    let keyed =
        KeyedLog::new(&policy("9/s algo sliding-log count rejected")).expect("a log of a key");
    let (grain, at) = (1u64 << keyed.grain, 1 << 40);
    let first = keyed.next(0, 1, at);
    assert!(keyed.newest(first, 0, at));
    assert!(keyed.newest(keyed.next(first, 1, at + grain), 0, at));
    assert!(!keyed.newest(keyed.next(first, 1, at + 2 * grain), 0, at));
}

#[test]
fn the_word_is_used_up() {
    for (limit, period) in
        [(1, 1 << 40), (9, 1_000_000_000), (4095, 8_200), (7, 8), (1, 2), (3, 60_000_000_000)]
    {
        let keyed = KeyedLog::new(&Policy::new(limit, period).with_kind(Kind::SlidingLog))
            .expect("a log of a key");
        let (grain, lap) = (keyed.grain, 8 * limit);
        let heads = 1u64 << (grain + 3);
        assert!(
            keyed.turn % lap == 0 && keyed.turn < heads && keyed.turn + lap >= heads,
            "{limit} in {period}"
        );
        assert!(1 << grain <= period && 1 << grain > limit, "{limit} in {period}");
        let sixteenth = (period / 16) >> grain;
        assert!(
            sixteenth == 1 || (sixteenth == 0 && 1 << grain <= 2 * limit),
            "{limit} in {period}"
        );
        assert!(LAST >> grain < 1 << (64 - (grain + 3)), "{limit} in {period}");
        assert_eq!((keyed.side_words(), keyed.patience), (limit + 1, period));
    }
}

#[test]
fn a_key_has_the_entries_that_the_period_has_room_for() {
    for (period, most) in [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 1),
        (4, 3),
        (8, 7),
        (15, 7),
        (8_192, 8_191),
        (u64::MAX, (1 << 63) - 1),
    ] {
        assert_eq!(KeyedLog::most(period), most, "{period}");
    }
    let log = |limit| KeyedLog::new(&Policy::new(limit, 100).with_kind(Kind::SlidingLog));
    assert_eq!(log(63).map(|log| log.log().limit()), Ok(63));
    assert_eq!(log(64), Err(PolicyError::LogTooLarge));
}

#[test]
fn an_entry_keeps_its_time_and_lap() {
    let log = SlidingLog::new(&policy("3/s algo sliding-log")).expect("a log");
    assert_eq!(SlidingLog::unpack(0), Entry { at: None, lap: 0 });
    assert_eq!(log.leaves(SlidingLog::unpack(0)), 0);
    for lap in 0..8 {
        assert_eq!(SlidingLog::next_lap(lap), if lap == 7 { 0 } else { lap + 1 });
        for at in [0, 1, 1 << 40, LAST] {
            let entry = SlidingLog::unpack(SlidingLog::pack(at, lap));
            assert_eq!(entry, Entry { at: Some(at), lap });
            assert_eq!(log.leaves(entry), at + 1_000_000_000);
        }
    }
    for k in 0..100 {
        assert_eq!(log.place(k), (k % 3, k / 3 % 8));
    }
}
