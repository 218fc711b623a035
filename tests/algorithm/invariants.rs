//! Properties of every algorithm: it never over-admits, its `retry_after` is exact, a clock that
//! goes back gains nothing, and costs and limits at the edges get the right answer.

use crate::common::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::clock::{Clock, Manual};
use tollbar::limiter::Cell;
use tollbar::units::HORIZON;
use tollbar::{Kind, Limiter, Policy, Shared, State, Verdict, NEVER};

/// Every algorithm, in each of its shapes, at 10 permits a second.
const EACH: [&str; 25] = [
    "10/s burst 7",
    "10/s burst 7 init 2",
    "10/s burst 7 ban 1min after 1000",
    "10/s burst 7; 600/min burst 9",
    "10/s burst 7 borrow",
    "10/s burst 7 borrow init 4",
    "10/s burst 7 algo interval",
    "10/s burst 15 algo interval",
    "10/s burst 7 algo interval anchor first",
    "10/s algo fixed-window",
    "10/s algo fixed-window anchor first",
    "10/s algo fixed-window count rejected",
    "10/s algo weighted-window",
    "10/s algo sliding-window segments 5",
    "10/s algo sliding-window anchor first segments 4 mode strict",
    "10/s algo sliding-window segments 5 mode interpolated",
    "10/s algo sliding-log",
    "10/s algo sliding-log count rejected",
    "10/s burst 4 algo pacer slack 6",
    "10/s burst 4 algo warm-up warm 2s",
    "10/forever",
    "10/s curve front",
    "10/s curve 0:50% 30%:60% 30%:70% 90%:100%",
    "10/s burst 7 refill 0:50% 50%:100%",
    "10/day zone CET-1CEST,M3.5.0,M10.5.0/3",
];

fn each() -> impl Iterator<Item = String> {
    with_each(Kind::ALL, &EACH).into_iter()
}

/// The permits that a fresh state admits in one instant, and those of a state that was idle for
/// long after its first use.
fn at_once(text: &str) -> (u64, u64) {
    let policy = policy(text);
    match policy.kind {
        Kind::Gcra if policy.borrow => (policy.init + 1, policy.burst + 1),
        Kind::Gcra => (policy.init, policy.burst),
        Kind::Pacer => (1, policy.slack + 1),
        Kind::WarmUp => (1, 1),
        Kind::Quota | Kind::Calendar => (policy.limit, 0),
        // Half of a slice's permits come at its beginning.
        Kind::Curve => (policy.limit / 2, policy.limit / 2),
        _ => (policy.burst, policy.burst),
    }
}

/// Invariant 1. Sixteen threads at one instant.
#[test]
fn invariant_1_a_frozen_clock_admits_exactly_the_burst() {
    const THREADS: u32 = 16;
    const TRIES: u32 = 2_000;
    for text in each() {
        let text = text.as_str();
        let limiter = state(text);
        let (fresh, idle) = at_once(text);
        for (now, want) in [(5 * SEC, fresh), (HOUR, idle)] {
            let admitted = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        let mine = (0..TRIES)
                            .filter(|_| limiter.admit_at(now, 1) == Verdict::Allowed)
                            .count();
                        admitted.fetch_add(mine as u64, Relaxed);
                    });
                }
            });
            assert_eq!(admitted.into_inner(), want, "{text}");
        }
    }
}

/// Invariant 1, with so many permits that the threads meet before these are used up.
#[test]
fn invariant_1_a_frozen_clock_loses_no_update() {
    const BURST: u64 = 40_000;
    // Algorithms that lend admit one at a time. Among them only the bucket that borrows begins with
    // permits.
    for algorithm in Kind::ALL.into_iter().filter(|kind| !kind.lends()).map(Kind::name) {
        for options in if algorithm == "gcra" { ["", " borrow init 39999"] } else { [""; 2] } {
            let period = if algorithm == "quota" { "forever" } else { "day" };
            let options = if algorithm == "curve" { " curve 0:100%" } else { options };
            let text = format!("{BURST}/{period} algo {algorithm}{options}");
            // An algorithm that admits one request at an instant has no update to lose.
            if state(&text).check_at(DAY, 1).remaining != BURST - 1 {
                continue;
            }
            let limiter = state(&text);
            let (start, admitted) = (std::sync::Barrier::new(16), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for _ in 0..16 {
                    scope.spawn(|| {
                        start.wait();
                        let mine = (0..BURST / 8)
                            .filter(|_| limiter.admit_at(DAY, 1) == Verdict::Allowed)
                            .count();
                        admitted.fetch_add(mine as u64, Relaxed);
                    });
                }
            });
            assert_eq!(admitted.into_inner(), BURST, "{algorithm}{options}");
        }
    }
}

/// The times, in nanoseconds, of all permits that an adversary gets by random pauses and bursts of
/// requests.
fn adversary(policy: &Policy, rng: &mut Rng) -> Vec<u64> {
    let limiter = State::new(policy).unwrap();
    let mut now = rng.below(3 * policy.period);
    let mut got = Vec::new();
    for _ in 0..rng.within(2, 8) {
        // Requests at one instant, or at each nanosecond for a while; then a rest, often just up to
        // an edge.
        let burst = rng.pick(&[1, policy.limit, 1_000]);
        for _ in 0..rng.pick(&[1, 1, 2, policy.period / 2, policy.period]) {
            let taken = limiter.take_up_to_at(now, burst);
            got.extend((0..taken).map(|_| now));
            now += 1;
        }
        now = match rng.below(5) {
            // A little less than a period later, so that both ends are in one window.
            4 => now + policy.period - rng.within(1, 3),
            0 => (now / policy.period + 1) * policy.period - 1,
            1 => (now / policy.period + 1) * policy.period,
            2 => now + rng.below(2 * policy.period),
            _ => now + limiter.peek_at(now, 1).retry_after.saturating_sub(1).min(3 * policy.period),
        };
    }
    got
}

/// Invariant 1. The documented worst case over a window of one period is never exceeded. The search
/// comes near it, so the documentation does not overstate it by much.
#[test]
fn invariant_1_no_window_admits_more_than_documented() {
    let rows = [
        // (policy, documented most in (t − W, t])
        ("10/120ns algo fixed-window", 20),
        // The first permit of a window starts it, and so is a period away from the next window's
        // first.
        ("5/120ns algo fixed-window anchor first", 9),
        ("40/4800ns algo weighted-window", 79),
        ("10/120ns algo sliding-window segments 4", 20),
        ("40/4800ns algo sliding-window segments 4 mode interpolated", 79),
        ("10/120ns algo sliding-window segments 4 mode strict", 10),
        ("10/120ns algo sliding-window segments 1 mode strict", 10),
        ("10/120ns algo sliding-log", 10),
        // Each interval refills as many permits as there is room for.
        ("10/120ns burst 7 algo interval", 14),
        ("10/120ns burst 15 algo interval", 25),
        ("5/120ns burst 4 algo interval anchor first", 7),
        ("40/4800ns burst 28", 68),
        ("10/120ns curve front", 20),
        ("40/4800ns burst 28 refill 0:100% 50%:50%", 68),
    ];
    let mut rng = Rng(1);
    for (text, documented) in rows {
        let policy = policy(text);
        let most = (0..1_000)
            .map(|_| most_in_window(&adversary(&policy, &mut rng), policy.period))
            .max()
            .unwrap();
        assert!(most as u64 <= documented, "{text}: {most}");
        assert_near(text, most as u64, documented);
    }
}

/// Invariant 1, for the algorithms that promise it of every interval: at most `at once + rate · t`.
#[test]
fn invariant_1_no_interval_admits_more_than_the_burst_and_the_rate() {
    let mut rng = Rng(2);
    for (text, at_once) in [
        ("10/120ns burst 7", 7),
        ("7/120ns burst 3 init 1", 3),
        ("10/120ns burst 7 borrow", 8),
        ("10/120ns algo pacer slack 4", 5),
        ("10/120ns algo pacer", 1),
        ("3/1200ns algo warm-up warm 3us", 1),
    ] {
        let policy = policy(text);
        // The clock of a warm-up shares its word with the store. It goes in units of many
        // nanoseconds, so a decision may be early by less than one unit.
        let unit = match Rule::new(&policy) {
            Ok(Rule::WarmUp(rule)) => policy.period / policy.limit / rule.grid().per_permit(),
            _ => 0,
        };
        let mut reached = 0;
        for _ in 0..2_000 {
            let times = adversary(&policy, &mut rng);
            for (i, from) in times.iter().enumerate() {
                for (n, to) in times[i..].iter().enumerate() {
                    let bound = at_once + policy.limit * (to - from + unit) / policy.period;
                    let n = n as u64 + 1;
                    assert!(n <= bound, "{text}: {n} in [{from}, {to}]");
                    reached = reached.max(n * u64::from(n == bound));
                }
            }
        }
        assert!(reached > at_once, "{text}: the search never came to the bound");
    }
}

/// Policies for invariant 3: those above, and rates whose clock is rounded, whose counters are
/// coarse, or that are near the ends of what is possible.
const MORE: [&str; 20] = [
    "7/s",
    "700000000/s burst 100",
    "10000000000/s burst 1000",
    "999983/s burst 9 init 3",
    "1/365d burst 2",
    "44100/s burst 5 borrow",
    "999983/s burst 3 algo pacer slack 7",
    "1/365d algo pacer",
    "44100/s burst 9 algo warm-up warm 10ms",
    "3/s burst 9 algo warm-up warm 1min cold 10",
    "1000000/s algo weighted-window",
    "123456789/min algo weighted-window",
    "1000000/s algo fixed-window",
    "1000000/s algo fixed-window anchor first",
    "7/700ns algo sliding-window segments 7 mode interpolated",
    "100/day algo sliding-log",
    "999983/s curve log2",
    "3/7ns curve 0:50% 100%:100%",
    "44100/s burst 9 refill 0:33% 20%:77% 60%:100%",
    "7/s burst 100 refill 0:100% 50%:10%",
];

/// Invariant 3. Admitted at `retry_after`, refused one nanosecond earlier.
#[test]
fn invariant_3_retry_after_is_exact() {
    let texts = each().chain(MORE.map(str::to_owned)).collect::<Vec<_>>();
    let (mut states, most) = ([0; Kind::ALL.len()], rounds(100_000));
    // A quota's refusal has no time to wait for.
    states[Kind::Quota as usize] = most;
    let (mut rng, mut round) = (Rng(3), 0);
    while states.iter().any(|n| *n < most) {
        let text = &texts[round % texts.len()];
        round += 1;
        let policy = policy(text);
        let seen = &mut states[policy.kind as usize];
        for _ in 0..if *seen < most { 200 } else { 0 } {
            let limiter = State::new(&policy).unwrap();
            let mut shape = Shape::new(&policy, &mut rng);
            for _ in 0..shape.length {
                let (now, cost) = (shape.now, shape.cost(&mut rng));
                let answer = limiter.check_at(now, cost);
                if let Some(wait) = answer.retry_ns() {
                    *seen += 1;
                    let context = || format!("{text}: cost {cost} at {now}: {answer:?}");
                    assert_ne!(wait, 0, "{}", context());
                    assert!(
                        limiter.peek_at(now + wait, cost).is_allowed(),
                        "refused then: {}",
                        context()
                    );
                    let earlier = limiter.peek_at(now + wait - 1, cost);
                    assert_eq!(
                        (earlier.verdict, earlier.retry_after),
                        (Verdict::Denied, 1),
                        "{}",
                        context()
                    );
                    // A booking is for the same instant.
                    if limiter.books_ahead() {
                        assert_eq!(
                            limiter.reserve_at(now, cost, now + wait - 1),
                            None,
                            "{}",
                            context()
                        );
                        if rng.one_in(8) {
                            assert_eq!(
                                limiter.reserve_at(now, cost, now + wait),
                                Some(now + wait),
                                "{}",
                                context()
                            );
                        }
                    }
                }
                // As good as fresh after `reset_after`, unless the clock ends before.
                if let Some(then) = now.checked_add(limiter.peek_at(now, 0).reset_after) {
                    let fresh = State::new(&policy).unwrap().peek_at(then, 0).remaining;
                    assert!(
                        limiter.peek_at(then, 0).remaining >= fresh,
                        "{text} at {now}, reset by {then}"
                    );
                }
                shape.advance(&mut rng, answer.retry_after);
            }
        }
    }
}

/// Invariant 6. Once all permits are taken at some instant, no request at an earlier instant
/// passes.
#[test]
fn invariant_6_going_back_grants_nothing() {
    let mut rng = Rng(6);
    for text in each() {
        let text = text.as_str();
        for _ in 0..200 {
            let limiter = state(text);
            // A start far from any edge of the clock's range, some requests, then one for all
            // remaining permits.
            let mut now = DAY + rng.below(DAY);
            for _ in 0..rng.below(20) {
                let _ = limiter.admit_at(now, rng.within(1, 4));
                now += rng.below(SEC);
            }
            while limiter.admit_at(now, 1) == Verdict::Allowed {}
            for _ in 0..50 {
                let back = match rng.below(3) {
                    0 => rng.below(3),
                    1 => rng.below(3 * SEC),
                    _ => rng.below(now + 1),
                };
                assert_eq!(
                    limiter.admit_at(now - back, 1),
                    Verdict::Denied,
                    "{text} at {now}, {back} back"
                );
                assert_eq!(
                    limiter.take_up_to_at(now - back, 100),
                    0,
                    "{text} at {now}, {back} back"
                );
                assert_eq!(
                    limiter.peek_at(now - back, 1).remaining,
                    0,
                    "{text} at {now}, {back} back"
                );
            }
        }
    }
}

/// Invariant 6. The instants of an interval give no more in any other order than in theirs.
#[test]
fn invariant_6_no_order_of_times_grants_more() {
    let mut rng = Rng(66);
    for (text, at_once) in [
        ("10/s burst 7", 7),
        ("10/s burst 7 borrow", 8),
        ("10/s burst 4 algo pacer slack 6", 7),
        ("10/s algo warm-up warm 2s", 1),
        ("10/s algo sliding-log", 10),
        ("10/s algo sliding-window segments 5 mode strict", 10),
    ] {
        let mut nearest = 0;
        for _ in 0..300 {
            let limiter = state(text);
            let (from, span) = (HOUR + rng.below(DAY), rng.within(1, 990 * MS));
            // An hour of rest after the first use, with which a bucket that starts empty has
            // filled.
            let _ = limiter.admit_at(from - HOUR, 1);
            // And half a minute of use, for algorithms that rest makes slow.
            if text.contains("warm-up") {
                for n in 0..300 {
                    let _ = limiter.admit_at(from - 30 * SEC + n * 100 * MS, 1);
                }
            }
            let mut times: Vec<u64> = (0..200).map(|_| from + rng.below(span)).collect();
            // In half of the rounds only few instants are out of order, which gives the most.
            if rng.one_in(2) {
                times.sort_unstable();
                let (a, b) = (rng.below(200) as usize, rng.below(200) as usize);
                times.swap(a, b);
            }
            let taken =
                times.iter().filter(|now| limiter.admit_at(**now, 1) == Verdict::Allowed).count()
                    as u64;
            let bound = at_once + if text.contains("sliding") { 0 } else { 10 * span / SEC };
            assert!(taken <= bound, "{text}: {taken} in {span} ns");
            if span > SEC / 2 {
                nearest = nearest.max(taken * 100 / bound);
            }
        }
        assert_near(text, nearest, 100);
    }
}

/// Invariant 6. Steps back are counted: requests older than the newest one admitted.
#[test]
fn invariant_6_backward_steps_are_counted() {
    let mut rng = Rng(666);
    for text in each() {
        let text = text.as_str();
        let limiter = state(text);
        let (mut now, mut newest, mut steps) = (DAY, 0, 0);
        for _ in 0..2_000 {
            now = if rng.one_in(4) { now - rng.below(SEC) } else { now + rng.below(SEC) };
            steps += u64::from(now < newest);
            if limiter.admit_at(now, 1) == Verdict::Allowed {
                newest = newest.max(now);
            }
        }
        assert!(steps > 0);
        assert_eq!(limiter.watch().backward_steps(), steps, "{text}");
    }
}

/// Every call, at every edge of the clock and of cost. Overflow is checked in this profile.
fn call_everything(limiter: &State, rng: &mut Rng) {
    let times = [
        0,
        1,
        SEC,
        HORIZON - 2,
        HORIZON - 1,
        HORIZON,
        HORIZON + 1,
        1 << 62,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    let costs = [0, 1, 2, 7, 8, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];
    for _ in 0..30 {
        let now = if rng.one_in(3) { rng.next() } else { rng.pick(&times) };
        let cost = if rng.one_in(3) { rng.next() >> rng.below(64) } else { rng.pick(&costs) };
        match rng.below(7) {
            0 | 1 => {
                let answer = limiter.check_at(now, cost);
                assert_eq!(answer.is_allowed(), answer.retry_after == 0);
            }
            2 => drop(limiter.admit_at(now, cost)),
            3 => drop(limiter.peek_at(now, cost)),
            4 => assert!(limiter.take_up_to_at(now, cost) <= cost),
            5 => drop(limiter.reserve_at(now, cost, rng.pick(&times))),
            _ if rng.one_in(8) => limiter.reset(),
            _ => {}
        }
    }
}

#[test]
fn invariant_6_extreme_times_never_panic() {
    let mut rng = Rng(6666);
    for text in each().chain(MORE.map(str::to_owned)) {
        let text = text.as_str();
        for _ in 0..300 {
            call_everything(&state(text), &mut rng);
        }
    }
}

/// Invariant 6. After the last instant that a state can hold, it admits no more than it does at
/// once. (That it admits nothing is tested in tests/algorithm/end_of_time.rs.)
#[test]
fn invariant_6_the_end_of_time_has_nothing_to_give() {
    for text in each() {
        let text = text.as_str();
        let limiter = state(text);
        let all: u64 = (0..100).map(|_| limiter.take_up_to_at(u64::MAX, 1)).sum();
        assert!(all <= at_once(text).1, "{text}: {all}");
        // Requests there give nothing more to any earlier instant.
        let limiter = state(text);
        while limiter.admit_at(DAY, 1) == Verdict::Allowed {}
        limiter.take_up_to_at(u64::MAX, 100);
        assert_eq!(limiter.admit_at(DAY, 1), Verdict::Denied, "{text}");
    }
}

/// Invariant 10. A cost of 0 asks, and one above the burst can never pass; neither is charged.
#[test]
fn invariant_10_costs_at_the_edge() {
    for text in each() {
        let text = text.as_str();
        let limiter = state(text);
        let most = if text.contains("borrow") { None } else { Some(policy(text).burst) };
        for now in [SEC, SEC + 1, 2 * SEC] {
            let before = format!("{limiter:#?}");
            let left = limiter.peek_at(now, 1).remaining;
            let asked = limiter.check_at(now, 0);
            assert_eq!(
                (asked.verdict, asked.remaining, asked.retry_after),
                (Verdict::Allowed, left, 0),
                "{text}"
            );
            for cost in most
                .iter()
                .flat_map(|most| [most + 1, most + 2, 1 << 40, u64::MAX])
                .chain([u64::MAX])
            {
                let never = limiter.check_at(now, cost);
                assert_eq!(
                    (never.verdict, never.remaining, never.retry_after),
                    (Verdict::Never, left, NEVER),
                    "{text}"
                );
                assert_eq!(never.retry_ns(), None);
                assert_eq!(limiter.admit_at(now, cost), Verdict::Never, "{text}");
                assert_eq!(limiter.peek_at(now, cost).verdict, Verdict::Never, "{text}");
                assert_eq!(limiter.reserve_at(now, cost, NEVER), None, "{text}");
            }
            assert_eq!(format!("{limiter:#?}"), before, "{text}");
            // A cost of the burst itself can pass.
            if let Some(most) = most.filter(|most| *most <= left) {
                assert_eq!(limiter.peek_at(now, most).verdict, Verdict::Allowed, "{text}");
            }
            let _ = limiter.admit_at(now, 1);
        }
    }
}

/// Invariant 10. A limit of 0 denies all requests, by every algorithm.
#[test]
fn invariant_10_limit_zero_denies_all() {
    let texts = Kind::ALL.map(|kind| match kind {
        Kind::WarmUp => format!("0/s algo {} warm 1s", kind.name()),
        Kind::Quota => "0/forever".to_owned(),
        Kind::Calendar => "0/month".to_owned(),
        _ => format!("0/s algo {}", kind.name()),
    });
    for text in
        texts.iter().map(String::as_str).chain(["0/s burst 10", "0/s borrow", "0/s burst 5 init 0"])
    {
        let limiter = Limiter::with(state(text), Manual::new(SEC));
        for cost in [1, 2, u64::MAX] {
            let answer = limiter.check(cost);
            assert_eq!(
                (answer.verdict, answer.remaining, answer.retry_after),
                (Verdict::Denied, 0, NEVER),
                "{text}"
            );
            assert_eq!(limiter.admit(cost), Verdict::Denied, "{text}");
            assert_eq!(limiter.take_up_to(cost), 0, "{text}");
            assert_eq!(limiter.reserve(cost, NEVER), None, "{text}");
            assert_eq!(limiter.wait_until(cost, u64::MAX).verdict, Verdict::Denied, "{text}");
        }
        assert_eq!(limiter.check(0).verdict, Verdict::Allowed, "a question is no request: {text}");
        assert_eq!(limiter.clock().now(), SEC, "nobody slept");
    }
}

/// Invariant 10. A policy with numbers at the ends of their types compiles or returns an error. A
/// policy that compiles survives every call.
#[test]
fn invariant_10_extreme_policies_never_panic() {
    let mut rng = Rng(10);
    let numbers =
        [0, 1, 2, 3, 7, 10, 1_000, SEC, 1 << 32, 1 << 61, 1 << 63, u64::MAX - 1, u64::MAX];
    let mut compiled = 0;
    for _ in 0..40_000 {
        let number = |rng: &mut Rng| {
            if rng.one_in(4) {
                rng.next() >> rng.below(64)
            } else {
                rng.pick(&numbers)
            }
        };
        let mut policy =
            Policy::new(number(&mut rng), number(&mut rng)).with_kind(rng.pick(&Kind::ALL));
        match policy.kind {
            Kind::SlidingLog => policy = Policy { limit: policy.limit % 5_000, ..policy },
            Kind::SlidingWindow => policy.segments = rng.pick(&[1, 2, 3, 1024]),
            Kind::Pacer => policy.slack = number(&mut rng),
            Kind::WarmUp => {
                (policy.warm_up, policy.cold) = (number(&mut rng), rng.within(1, 1000) as u32)
            }
            Kind::Gcra => policy.borrow = rng.one_in(4),
            _ => {}
        }
        policy.burst = if rng.one_in(2) { number(&mut rng) } else { policy.limit };
        policy.init = if rng.one_in(4) { number(&mut rng) } else { policy.burst };
        if let Ok(limiter) = State::new(&policy) {
            compiled += 1;
            call_everything(&limiter, &mut rng);
        }
    }
    assert!(compiled > 5_000, "{compiled}");
}

/// Invariant 10. Every call survives any state word, since shared memory may hold any.
#[test]
fn invariant_10_any_state_word_never_panics() {
    let mut rng = Rng(100);
    for text in each().chain(MORE.map(str::to_owned)) {
        let text = text.as_str();
        let Ok(rule) = Rule::new(&policy(text)) else { continue };
        for _ in 0..2_000 {
            let cell = Cell::new(rule);
            cell.set_word(rng.next() >> rng.below(64));
            let (now, cost) = (rng.next() >> rng.below(64), rng.next() >> rng.below(64));
            let _ = cell.peek_at(now, cost);
            let _ = cell.check_at(now, cost);
            cell.reserve_at(now, cost, NEVER);
            cell.take_up_to_at(now, cost);
            rule.fresh_at(cell.word(), now);
        }
    }
}
