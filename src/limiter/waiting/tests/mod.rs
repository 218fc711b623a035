//! Queues at virtual times: callers that come, give up and are served, in one process and in
//! several, beside callers that only check.

mod leaving;
mod processes;
mod world;

pub(crate) use leaving::{stay_charged, twenty, within_the_bound};
pub(crate) use world::{caller, Caller, End, World};

use super::line::{Seat, Waiter, WaiterAction};
use super::{wait, WaiterQueues};
use crate::clock::{Bell, Clock, Manual};
pub(crate) use crate::limiter::striped::tests::random::Rng;
use crate::{Limiter, Policy, Reason, State, Verdict, NEVER};
use std::println;
use std::vec::Vec;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SEC: u64 = 1_000_000_000;

/// Algorithms that book ahead, at one permit in 100 ms and one at once. The second value: whether
/// the last booking comes back.
pub(crate) const BOOK: [(&str, bool); 8] = [
    ("10/s burst 1", true),
    ("10/s burst 1; 300/min burst 1000", true),
    ("1/100ms algo interval", true),
    ("10/s algo pacer", true),
    ("10/s burst 1 borrow", true),
    ("10/s burst 1 ban 1h after 1000", false),
    // 8 units a nanosecond, and 7 permits a second: departures are no whole nanoseconds.
    ("7/s burst 1", true),
    ("10/s algo warm-up warm 1s", true),
];
/// Algorithms that do not.
pub(crate) const ASK: [&str; 6] = [
    "1/100ms algo fixed-window",
    "1/100ms algo weighted-window",
    "1/100ms algo sliding-window",
    "1/100ms algo sliding-log",
    "1/100ms algo interval anchor first",
    "10/s burst 1 refill 0:100%",
];

fn limiter<'a>(text: &str, clock: &'a Manual) -> Limiter<State, &'a Manual> {
    Limiter::with(State::new(&text.parse::<Policy>().unwrap()).unwrap(), clock)
}

/// The time at which every test begins. Then one permit is taken, and the limiter has no other.
pub(crate) const START: u64 = 1_000 * SEC;

fn taken<'a>(text: &str, clock: &'a Manual) -> Limiter<State, &'a Manual> {
    clock.set(START);
    let limiter = limiter(text, clock);
    assert!(limiter.check(1).is_allowed(), "{text}");
    limiter
}

/// When the next callers of an untouched limiter depart, from [`START`] on.
pub(crate) fn departures(text: &str, n: usize) -> Vec<u64> {
    let clock = Manual::default();
    let limiter = taken(text, &clock);
    let callers: Vec<Caller> = (0..n).map(|_| caller(START)).collect();
    let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
    ends.into_iter().map(|end| end.admitted().expect("endless patience")).collect()
}

pub(crate) fn at_random(rng: &mut Rng) -> impl FnMut(usize) -> usize + '_ {
    |n| rng.below(n as u64) as usize
}

/// Permits that come back to a list may be some steps late; a step is half a millisecond to 1.2 ms
/// in these tests.
fn late_in(text: &str) -> u64 {
    if text.contains(';') {
        5 * MS
    } else {
        0
    }
}

/// 20 callers give up after 50 ms. One caller comes then, alone.
#[test]
fn a2_callers_that_give_up_leave_nothing() {
    for (text, comes_back) in BOOK.into_iter().chain(ASK.map(|text| (text, true))) {
        let clock = Manual::default();
        let expected = departures(text, 2);
        let limiter = taken(text, &clock);
        let mut callers: Vec<Caller> =
            (0..20).map(|_| Caller { gives_up: START + 50 * MS, ..caller(START) }).collect();
        callers.push(caller(START + 50 * MS));
        let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
        let at = ends[20].admitted().unwrap();
        // The last caller's booking stays where the algorithm takes no permits back.
        let wanted = if comes_back { expected[0] } else { expected[1] } + late_in(text);
        assert!(at <= wanted, "{text}: {} ms after the start", (at - START) / MS);
    }
}

/// Six waves of 60 callers, a second apart, with 0.9 s of patience.
#[test]
fn a2_every_wave_is_admitted() {
    for (text, comes_back) in BOOK.into_iter().chain(ASK.map(|text| (text, true))) {
        for leave in ["by their deadline", "by giving up"] {
            let clock = Manual::default();
            let limiter = taken(text, &clock);
            let wave = |n: u64| {
                let (comes, ends) = (START + n * SEC, START + n * SEC + 900 * MS);
                (0..60).map(move |_| match leave {
                    "by giving up" => Caller { gives_up: ends + 1, ..caller(comes) },
                    _ => Caller { deadline: ends, ..caller(comes) },
                })
            };
            let callers: Vec<Caller> = (0..6).flat_map(wave).collect();
            let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
            let admitted: Vec<usize> = ends
                .chunks(60)
                .map(|wave| wave.iter().filter(|end| end.admitted().is_some()).count())
                .collect();
            println!("{text}, {leave}: {admitted:?}");
            // As many as one wave finds alone. A booking that does not come back is the next wave's
            // first permit.
            let alone = departures(text, 60).iter().filter(|&&at| at <= START + 900 * MS).count();
            let least = if comes_back || leave == "by their deadline" { alone } else { alone - 1 };
            assert!(
                admitted.iter().all(|&n| n >= least),
                "{text}, {leave}: {admitted:?}, at least {least}"
            );
        }
    }
}

/// A caller whose permits come exactly at its deadline waits for them. A nanosecond less, and it is
/// refused when it comes.
#[test]
fn a2_a_caller_behind_others_knows_whether_it_can_pass() {
    for text in BOOK.map(|(text, _)| text).into_iter().chain(ASK) {
        // Sliding windows and logs see one window ahead.
        let ahead = if text.contains("sliding") { 1 } else { 7 };
        let expected = departures(text, ahead);
        for n in 0..ahead {
            for (deadline, passes) in [(expected[n], true), (expected[n] - 1, false)] {
                let clock = Manual::default();
                let limiter = taken(text, &clock);
                let mut callers: Vec<Caller> = (0..n).map(|_| caller(START)).collect();
                callers.push(Caller { deadline, ..caller(START) });
                let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
                let wanted = if passes { End::Admitted(expected[n]) } else { End::Refused(START) };
                assert_eq!(
                    ends[n],
                    wanted,
                    "{text}: caller {n}, deadline {} ms",
                    (deadline - START) / MS
                );
            }
        }
    }
}

/// 200 callers come one after the other beside a caller that checks each millisecond.
#[test]
fn a2_a_caller_that_checks_does_not_starve_those_that_wait() {
    for text in BOOK.map(|(text, _)| text).into_iter().chain(ASK) {
        let clock = Manual::default();
        let limiter = taken(text, &clock);
        let expected = departures(text, 200);
        let callers: Vec<Caller> = expected
            .iter()
            .map(|&at| Caller { deadline: at + SEC, ..caller(at - 50 * MS) })
            .collect();
        // Each sleep ends a little late, so that a check comes first at the time of a permit.
        let world = World { polls_every: Some(MS), late: MS / 3, ..World::new(&clock) };
        let (ends, polled) = world.run(&limiter, &callers, &mut |_| 0);
        let passed: Vec<u64> = ends.iter().filter_map(|end| end.admitted()).collect();
        println!("{text}: {} of 200 beside {polled} by checks", passed.len());
        // The bound holds for both together.
        let last = ends.iter().map(|end| end.at()).max().unwrap_or(START);
        assert!(
            passed.len() as u64 + polled <= (last - START) / (100 * MS),
            "{text}: {} + {polled}",
            passed.len()
        );
        // The refusals of the other caller ban the key.
        if BOOK.iter().any(|(book, _)| *book == text) && !text.contains("ban") {
            assert_eq!(passed.len(), 200, "{text}");
        }
    }
}

/// A clock that stops each sleep with a panic.
struct Panics(Manual);

impl Clock for &Panics {
    fn now(&self) -> u64 {
        self.0.now()
    }
    fn sleep_until(&self, _: u64) {
        unreachable!()
    }
    fn sleep_until_rung(&self, _: u64, _: &Bell) {
        std::panic::resume_unwind(std::boxed::Box::new("the sleep is over"))
    }
}

/// A wait that ends by a panic gives its booking back and its place, whatever it waited for.
#[test]
fn a2_a_panic_in_the_sleep_leaves_the_queue() {
    let clock = Panics(Manual::new(START));
    let state = State::new(&"10/s burst 1".parse::<Policy>().unwrap()).unwrap();
    let limiter = Limiter::with(state, &clock);
    assert!(limiter.check(1).is_allowed());
    for _ in 0..20 {
        let ended =
            std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| limiter.wait_ns(1, SEC)));
        assert!(ended.is_err());
    }
    assert_eq!(limiter.peek(1).retry_after, 100 * MS);
    assert_eq!(limiter.snapshot().waiting, 0);
}

/// A child of a fork finds the lock held by a thread that it does not have, and callers in the list
/// that it does not have.
#[test]
fn a2_a_child_forgets_its_parents_queue() {
    let clock = Manual::default();
    let limiter = taken("10/s burst 1", &clock);
    let queues: WaiterQueues<1> = WaiterQueues::new(1);
    let parents = [Waiter::new(0, 1, NEVER - 1), Waiter::new(0, 1, NEVER - 1)];
    let seats = parents.each_ref().map(|waiter| Seat::new(queues.list(0), waiter, &limiter));
    assert_eq!(seats[0].join(START, None), Ok(WaiterAction::Until(START + 100 * MS)));
    assert_eq!(seats[1].join(START, None), Ok(WaiterAction::Until(START + 200 * MS)));
    queues.list(0).hold_by_another_process();
    assert!(!queues.list(0).anybody(0));
    let decision = wait(&limiter, limiter.clock(), &queues, 0, 1, NEVER - 1).unwrap();
    assert_eq!(
        (decision.verdict, clock.now()),
        (Verdict::Allowed, START + 200 * MS),
        "behind the booking of its parent's memory"
    );
    // A caller that was in its sleep when its own signal handler forked joins again, without its
    // parent's booking.
    assert_eq!(seats[1].action(clock.now(), None), Ok(WaiterAction::Until(START + 300 * MS)));
    assert_eq!(seats[1].action(START + 300 * MS, None), Ok(WaiterAction::Admitted));
    drop(seats);
    assert!(!queues.list(0).anybody(0));
}

/// A4: the default bound of callers, its refusal, and that a caller of another queue needs no place
/// if it need not wait.
#[test]
fn a4_the_queue_has_a_bound() {
    let clock = Manual::default();
    let limiter = taken("10/s burst 1", &clock);
    let queues: WaiterQueues<1> = WaiterQueues::new(super::WAITERS);
    let places: Vec<_> = (0..1024).map_while(|_| queues.waiters.enter()).collect();
    assert_eq!((places.len(), queues.asleep()), (1024, 1024));
    let refused = wait(&limiter, limiter.clock(), &queues, 0, 1, NEVER - 1).unwrap();
    assert_eq!(
        (refused.verdict, refused.reason, refused.retry_after),
        (Verdict::Denied, Reason::QueueFull, 100 * MS)
    );
    clock.advance(100 * MS);
    assert!(
        wait(&limiter, limiter.clock(), &queues, 0, 1, NEVER - 1).unwrap().is_allowed(),
        "it need not wait"
    );
}
