//! Pacing and warm-up: when requests depart. All but one test run in virtual time.

use crate::common::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tollbar::algorithm::warm_up::WarmUp;
use tollbar::algorithm::Rule;
use tollbar::clock::{Bell, Clock, Manual, Monotonic};
use tollbar::limiter::Cell;
use tollbar::{Limiter, Shared, Verdict, NEVER};

#[test]
fn a_cell_remembers_that_permits_were_booked_ahead() {
    let cell = Cell::new(Rule::new(&policy("10/s burst 2")).unwrap());
    assert_eq!(cell.reserve_at(SEC, 2, NEVER), Some(SEC), "permits of now");
    assert_eq!(cell.reserve_at(SEC, 1, SEC), None, "not in time");
    assert!(!cell.has_booked());
    assert_eq!(cell.reserve_at(SEC, 1, NEVER), Some(SEC + 100 * MS));
    assert!(cell.has_booked());
    cell.reset();
    assert!(cell.has_booked());
}

#[test]
fn s08_pacing() {
    let pacer = Limiter::with(state("100/s algo pacer"), Manual::new(0));
    let departures: Vec<u64> = (0..20).map(|_| pacer.reserve(1, NEVER).unwrap()).collect();
    let want: Vec<u64> = (0..20).map(|i| i * 10 * MS).collect();
    assert_eq!(departures, want);
}

#[test]
fn s08_pacing_waits_its_turn() {
    let pacer = Limiter::with(state("100/s algo pacer"), Manual::new(7 * MS));
    let departures = (0..20).map(|_| {
        assert!(pacer.wait_ns(1, SEC).is_allowed());
        pacer.clock().now()
    });
    assert_eq!(
        departures.collect::<Vec<u64>>(),
        (0..20).map(|i| (7 + i * 10) * MS).collect::<Vec<u64>>()
    );
}

#[test]
fn s08_pacing_after_idleness() {
    // Slack n: n departures follow at once behind the first, n of them back-to-back.
    let pacer = state("100/s algo pacer slack 10");
    assert!(pacer.check_at(SEC, 1).is_allowed());
    let times = vec![31 * SEC; 20];
    assert_eq!(admitted(&pacer, &times).len(), 11);
    assert_eq!(pacer.check_at(31 * SEC, 1).retry_after, 10 * MS);
}

/// A clock in virtual time whose sleepers wake late, by a random time below `most`.
struct Late {
    now: AtomicU64,
    rng: Mutex<Rng>,
    most: u64,
    /// How late the last sleeper woke.
    last: AtomicU64,
}

impl Clock for Late {
    fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }
    fn sleep_until(&self, at: u64) {
        let late = if at > self.now() { self.rng.lock().unwrap().below(self.most) } else { 0 };
        self.last.store(late, Relaxed);
        self.now.fetch_max(at + late, Relaxed);
    }
    fn sleep_until_rung(&self, at: u64, _: &Bell) {
        self.sleep_until(at);
    }
}

/// A sleeper that wakes late delays itself and no sleeper behind it: the n-th departure is n
/// intervals after the first, plus the delay of its own sleep. No departure is early.
#[test]
fn s08_pacing_with_late_sleepers() {
    for (text, interval) in
        [("100/s algo pacer", 10 * MS), ("100/s burst 1", 10 * MS), ("7/s algo pacer", 142_857_143)]
    {
        for seed in 0..100 {
            let clock = Late {
                now: AtomicU64::new(SEC),
                rng: Mutex::new(Rng(seed)),
                most: interval,
                last: AtomicU64::new(0),
            };
            let pacer = Limiter::with(state(text), &clock);
            for n in 0..200 {
                assert!(pacer.wait_ns(1, MIN).is_allowed());
                let (after, late) = (clock.now() - SEC, clock.last.load(Relaxed));
                // 7/s: the exact departure is a fraction of a nanosecond before n rounded
                // intervals.
                let due = if text.starts_with('7') { (n * SEC).div_ceil(7) } else { n * interval };
                assert_eq!(after, due + late, "{text}, seed {seed}, departure {n}");
            }
        }
    }
}

/// The real clock shows the one thing that virtual time cannot: that the system sleeps as long as
/// it is asked to. It never sleeps shorter. It sleeps longer on a busy machine, so each run is
/// compared with as many plain sleeps beside it, and one run of many is enough. A pacer that sleeps
/// for twice the time would fail in each of them on an idle machine.
#[test]
fn s08_pacing_on_the_real_clock() {
    const DEPARTURES: u32 = 10;
    const INTERVAL: Duration = Duration::from_millis(10);
    let (mut least, tests_begin) = (f64::MAX, Instant::now());
    while tests_begin.elapsed() < Duration::from_secs(60) {
        let pacer = Limiter::with(state("100/s algo pacer"), Monotonic);
        let begun = Instant::now();
        for n in 0..DEPARTURES {
            assert!(pacer.wait_ns(1, MIN).is_allowed());
            let after = begun.elapsed();
            assert!(after >= INTERVAL * n, "departure {n} after {after:?}");
        }
        let paced = begun.elapsed();
        let begun = Instant::now();
        (1..DEPARTURES).for_each(|_| std::thread::sleep(INTERVAL));
        least = least.min(paced.as_secs_f64() / begun.elapsed().as_secs_f64());
        if least <= 1.5 {
            return;
        }
    }
    panic!("the fastest run of a minute took {least} times as long as plain sleeps");
}

fn warm_up(text: &str) -> WarmUp {
    WarmUp::new(&policy(text)).unwrap()
}

#[test]
fn s14_warm_up() {
    let curve = warm_up("100/s algo warm-up warm 2s");
    assert_eq!(curve.stored(0, 0), 200 << 10);

    let limiter = Limiter::with(Cell::new(curve), Manual::new(0));
    let departures: Vec<u64> = (0..=400).map(|_| limiter.reserve(1, NEVER).unwrap()).collect();
    let gaps: Vec<u64> = departures.windows(2).map(|w| w[1] - w[0]).collect();
    for (i, gap) in gaps.iter().enumerate() {
        let tenths = (299u64.saturating_sub(2 * i as u64)).max(100);
        assert_eq!(*gap, tenths * MS / 10, "gap {i}");
    }
    assert_eq!((gaps[99], gaps[100]), (10_100 * US, 10 * MS));
    assert_eq!([departures[100], departures[200], departures[300]], [2 * SEC, 3 * SEC, 4 * SEC]);
}

#[test]
fn s14_warm_up_in_one_take() {
    let limiter = Limiter::with(state("100/s burst 400 algo warm-up warm 2s"), Manual::new(0));
    for (cost, until) in [(100, 2 * SEC), (100, 3 * SEC), (100, 4 * SEC)] {
        limiter.reserve(cost, NEVER).unwrap();
        assert_eq!(limiter.peek(1).retry_after, until);
    }
}

/// The threshold is where the slope ends: 100 permits stored at 100/s and 2 s.
#[test]
fn s14_warm_up_threshold() {
    let curve = warm_up("100/s burst 400 algo warm-up warm 2s");
    let cell = Cell::new(curve);
    cell.reserve_at(0, 100, NEVER).unwrap();
    assert_eq!(curve.stored(cell.word(), 0), 100 << 10);
    assert_eq!(cell.peek_at(0, 1).retry_after, 2 * SEC);
    cell.reserve_at(0, 1, NEVER).unwrap();
    assert_eq!(cell.peek_at(0, 1).retry_after, 2 * SEC + 10 * MS);
}

/// Tries every `step` until `tries` in a row have passed. Returns the number of tries before those.
fn warms(text: &str, step: u64, tries: u32) -> Option<u32> {
    let limiter = state(text);
    let mut row = 0;
    for i in 1..=10_000 {
        row = if limiter.check_at(u64::from(i) * step, 1).is_allowed() { row + 1 } else { 0 };
        if row == tries {
            return Some(i - tries);
        }
    }
    None
}

#[test]
fn s14_warm_up_gets_warm_when_polled_a_little_slower_than_the_limit() {
    // 10/s, 500 ms, one try every 120 ms: denied now and then while cold, then never again.
    let before = warms("10/s algo warm-up warm 500ms", 120 * MS, 1_000);
    assert!(before.is_some_and(|n| n < 50), "{before:?}");
}

#[test]
fn s14_warm_up_at_slow_rates() {
    for (text, interval) in [
        ("1/5s algo warm-up warm 10s", 5 * SEC),
        ("1/s algo warm-up warm 10s", SEC),
        ("2/s algo warm-up warm 10s", SEC / 2),
        ("1/5s algo warm-up warm 500ms", 5 * SEC),
        ("1/s algo warm-up warm 500ms", SEC),
        ("2/s algo warm-up warm 500ms", SEC / 2),
    ] {
        // The first request passes. Polled at exactly its rate, the limiter comes to admit each
        // time.
        assert_eq!(state(text).admit_at(0, 1), Verdict::Allowed, "{text}");
        let before = warms(text, interval, 1_000);
        assert!(before.is_some_and(|n| n < 100), "{text}: {before:?}");
    }
}

#[test]
fn s14_warm_up_cools_within_its_time() {
    let curve = warm_up("100/s burst 400 algo warm-up warm 2s");
    let cell = Cell::new(curve);
    cell.reserve_at(0, 200, NEVER).unwrap();
    let paid = 3 * SEC;
    assert_eq!(curve.stored(cell.word(), paid), 0);
    // Idleness begins one interval after all has been paid.
    assert_eq!(curve.stored(cell.word(), paid + 10 * MS + SEC), 100 << 10);
    assert_eq!(curve.stored(cell.word(), paid + 10 * MS + 2 * SEC), 200 << 10);
    assert_eq!(cell.peek_at(paid, 1).reset_after, 10 * MS + 2 * SEC);
}
