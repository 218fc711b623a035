//! The shared states under every interleaving that loom finds within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --test loom`
//!
//! A thread that loom stops between two steps while the others run to their end looks to them like
//! a killed thread. Every model ends, so no thread ever waits for another. What each model proves
//! is in docs/internals/verification.md.
#![cfg(loom)]

mod log;
mod ring;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use tollbar::algorithm::gcra::Gcra;
use tollbar::algorithm::{Algorithm, Charge};
use tollbar::clock::{Clock, Manual};
use tollbar::internal::sync::{self, deep};
use tollbar::limiter::Cell;
use tollbar::policy::Keep;
use tollbar::take_many::{take_all, Limit};
use tollbar::{Limiter, Policy, Reason, Shared, State, Verdict};

/// Runs `f` under every interleaving of at most `preemptions`, or as many as LOOM_MAX_PREEMPTIONS
/// says.
fn explore(name: &str, preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    explore_within(name, loom::model::Builder::new().preemption_bound.unwrap_or(preemptions), f);
}

/// Runs `f` under every interleaving of at most `preemptions`.
fn explore_within(name: &str, preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let start = std::time::Instant::now();
    let executions = sync::explore_within(preemptions, f);
    println!("{name}: {executions} executions, {:.1} s", start.elapsed().as_secs_f32());
}

fn state(policy: &str) -> Arc<State> {
    let policy: Policy = policy.parse().unwrap();
    Arc::new(State::new(&policy).unwrap())
}

fn admit(state: &State, now: u64, cost: u64) -> u64 {
    match state.admit_at(now, cost) {
        Verdict::Allowed => cost,
        _ => 0,
    }
}

/// Permits that are left, counted by taking them.
fn drain(state: &State, now: u64) -> u64 {
    state.take_up_to_at(now, 100)
}

fn left(state: &State, now: u64) -> u64 {
    state.peek_at(now, 1).remaining
}

/// One thread's requests `(now, cost)`, one after the other.
type Requests = &'static [(u64, u64)];

/// Explores a race on a fresh state. `check` gets the permits that each request of each thread
/// took.
///
/// Loom tries another order only where an access meets the last one of another thread. So it can
/// miss that a thread which only reads could have come later than a thread that reads and then
/// swaps. Therefore each thread has its turn to be the first, the one that runs until it is
/// preempted. Three threads have so many orders that they are [`deep`].
fn model<C>(
    name: &str,
    preemptions: usize,
    policy: &'static str,
    threads: &'static [Requests],
    check: C,
) where
    C: Fn(&State, &[Vec<u64>]) + Copy + Send + Sync + 'static,
{
    let preemptions = if threads.len() > 2 { deep(preemptions) } else { preemptions };
    let alike = threads.iter().all(|requests| *requests == threads[0]);
    let turns = if alike { 1 } else { threads.len() };
    for first in 0..turns {
        explore(&format!("{name} ({first})"), preemptions, move || {
            let state = state(policy);
            let given = race(&state, first, threads);
            check(&state, &given);
        });
    }
}

fn race(state: &Arc<State>, first: usize, threads: &[Requests]) -> Vec<Vec<u64>> {
    let run = |state: &State, requests: Requests| -> Vec<u64> {
        requests.iter().map(|&(now, cost)| admit(state, now, cost)).collect()
    };
    let spawn = |&requests: &Requests| {
        let state = state.clone();
        thread::spawn(move || run(&state, requests))
    };
    let before: Vec<_> = threads[..first].iter().map(spawn).collect();
    let after: Vec<_> = threads[first + 1..].iter().map(spawn).collect();
    let own = run(state, threads[first]);
    let join = |thread: thread::JoinHandle<Vec<u64>>| thread.join().unwrap();
    before
        .into_iter()
        .map(join)
        .chain([own])
        .collect::<Vec<_>>()
        .into_iter()
        .chain(after.into_iter().map(join))
        .collect()
}

/// Two threads that do different things. Neither is the thread in which the model began, because
/// loom tries fewer orders of that one.
fn beside<A: 'static, B: 'static>(
    state: &Arc<State>,
    one: impl FnOnce(&State) -> A + 'static,
    other: impl FnOnce(&State) -> B + 'static,
) -> (A, B) {
    let (first, second) = (state.clone(), state.clone());
    let (one, other) = (thread::spawn(move || one(&first)), thread::spawn(move || other(&second)));
    (one.join().unwrap(), other.join().unwrap())
}

fn sum(given: &[Vec<u64>]) -> u64 {
    given.iter().flatten().sum()
}

/// If the threads ask for more than `limit` permits at one time, they get exactly `limit`. All are
/// refilled when two periods have passed.
fn exact(name: &str, preemptions: usize, policy: &'static str, threads: &'static [Requests]) {
    let parsed: Policy = policy.parse().unwrap();
    let last = threads.iter().copied().flatten().map(|&(now, _)| now).max().unwrap();
    model(name, preemptions, policy, threads, move |state, given| {
        assert_eq!(sum(given), parsed.limit, "{given:?}");
        assert_eq!(drain(state, last), 0);
        assert_eq!(drain(state, last + 2 * parsed.period), parsed.limit);
    });
}

// Several limits at once.

/// A limiter whose clock stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        5
    }

    fn sleep_until(&self, _: u64) {}
}

type Stopped = Limiter<State, Still>;

fn stopped(policy: &str) -> Arc<Stopped> {
    let policy: Policy = policy.parse().unwrap();
    Arc::new(Limiter::with(State::new(&policy).unwrap(), Still))
}

fn takes_both(first: &Stopped, second: &Stopped, cost: u64) -> bool {
    let limits = [Limit::Limiter(first, cost), Limit::Limiter(second, cost)];
    take_all(&limits, Some(5), None).unwrap().decision.is_allowed()
}

/// Two calls for the last permits of two limits, named in opposite orders: one call gets both, and
/// no permit is lost.
#[test]
fn many_limits_are_won_by_one() {
    explore("take_many 2×2", 4, || {
        let (fast, slow) = (stopped("1/10ns"), stopped("1/20ns"));
        let (f, s) = (fast.clone(), slow.clone());
        let other = thread::spawn(move || takes_both(&s, &f, 1));
        let one = takes_both(&fast, &slow, 1);
        let other = other.join().unwrap();
        assert!(one != other, "{one} {other}");
        assert_eq!((fast.take_up_to(9), slow.take_up_to(9)), (0, 0));
    });
}

/// `take_many` beside a call for one of its limits: the permits that the winners took and those
/// left add up to all permits.
#[test]
fn many_limits_beside_one() {
    explore("take_many beside one", 4, || {
        let (fast, slow) = (stopped("2/10ns"), stopped("2/20ns"));
        let (f, s) = (fast.clone(), slow.clone());
        let both = thread::spawn(move || takes_both(&f, &s, 2));
        let one = u64::from(slow.admit(1) == Verdict::Allowed);
        let both = both.join().unwrap();
        assert!(both || one == 1, "a permit was free for one of them");
        let both = 2 * u64::from(both);
        assert_eq!((both + fast.take_up_to(9), both + one + slow.take_up_to(9)), (2, 2));
    });
}

// A policy that changes.

/// A change beside calls: each call is decided under one of the two policies. Both states together
/// give the permits that were left when the change read the first state, and calls that began
/// before may take at most as many again.
#[test]
fn set_policy_beside_take() {
    explore("set_policy beside take", 2, || {
        let limiter = Arc::new(Limiter::with(
            State::new(&"2/20ns".parse().unwrap()).unwrap(),
            Manual::new(5),
        ));
        assert_eq!(limiter.admit_at(5, 1), Verdict::Allowed);
        let (changes, takes) = (limiter.clone(), limiter.clone());
        let changing = thread::spawn(move || {
            changes.set_policy_at(5, &"3/30ns".parse().unwrap(), Keep::Count)
        });
        let taking = thread::spawn(move || {
            (0..3).filter(|_| takes.admit_at(5, 1) == Verdict::Allowed).count()
        });
        let taken = taking.join().unwrap();
        changing.join().unwrap().unwrap();
        assert!(taken <= 2, "{taken} by one thread");
        // A permit of the first policy, which the change may not have seen, and the permit that it
        // kept.
        let left = limiter.take_up_to_at(5, 10) as usize;
        assert!((1..=2).contains(&(taken + left)), "{taken} and {left}");
        assert_eq!(limiter.admit_at(5, 1), Verdict::Denied);
    });
}

/// Two changes at once, one of them to a policy that has a state already: afterwards the policy is
/// that of one change, and keeps the permits left.
#[test]
fn set_policy_beside_set_policy() {
    explore("set_policy beside set_policy", 2, || {
        let limiter = Arc::new(Limiter::with(
            State::new(&"2/20ns".parse().unwrap()).unwrap(),
            Manual::new(5),
        ));
        let (three, four): (Policy, Policy) =
            ("3/30ns".parse().unwrap(), "4/40ns".parse().unwrap());
        limiter.set_policy_at(5, &three, Keep::Count).unwrap();
        for other in ["5/50ns", "6/60ns", "7/70ns"] {
            limiter.set_policy_at(5, &other.parse().unwrap(), Keep::Count).unwrap();
        }
        limiter.set_policy_at(5, &four, Keep::Count).unwrap();
        assert_eq!(limiter.take_up_to_at(5, 3), 3);
        // Each finds the state of `three` free, taken by the other change (the list has no room for
        // a sixth), or current.
        let change_and_take = |limiter: Arc<Limiter<State, Manual>>| {
            thread::spawn(move || {
                let done = limiter.set_policy_at(5, &three, Keep::Count);
                done.map(|()| limiter.take_up_to_at(5, 10))
            })
        };
        let (first, second) = (change_and_take(limiter.clone()), change_and_take(limiter.clone()));
        let taken = [first.join().unwrap(), second.join().unwrap()];
        assert!(taken.iter().any(|taken| taken.is_ok()), "{taken:?}");
        let taken: u64 = taken.iter().flatten().sum();
        assert_eq!(
            (limiter.changed_policy(), taken + limiter.take_up_to_at(5, 10)),
            (Some(&three), 1)
        );
        assert_eq!(limiter.take_up_to_at(1_000, 10), 3);
    });
}

/// A limit of 0 keeps the state before it, while another call changes the policy: the permit that
/// was left is there after both, once.
#[test]
fn set_policy_beside_a_limit_of_0() {
    explore("set_policy beside a limit of 0", 2, || {
        let limiter = Arc::new(Limiter::with(
            State::new(&"2/20ns".parse().unwrap()).unwrap(),
            Manual::new(5),
        ));
        let (three, four): (Policy, Policy) =
            ("3/30ns".parse().unwrap(), "4/40ns".parse().unwrap());
        let closed = Policy::new(0, 1_000_000_000);
        assert_eq!(limiter.admit_at(5, 1), Verdict::Allowed);
        limiter.set_policy_at(5, &closed, Keep::Count).unwrap();
        let closes = limiter.clone();
        // This call makes a state, and the state of the limit of 0 refers to it then.
        let closing = thread::spawn(move || {
            closes.set_policy_at(5, &three, Keep::Count).unwrap();
            closes.set_policy_at(5, &closed, Keep::Count).unwrap();
        });
        limiter.set_policy_at(5, &four, Keep::Count).unwrap();
        closing.join().unwrap();
        // Both changes gave back the states that they replaced: the state of `three` is free,
        // although there is no room for another after these two.
        limiter.set_policy_at(5, &"5/50ns".parse().unwrap(), Keep::Count).unwrap();
        let _ = limiter.set_policy_at(5, &"6/60ns".parse().unwrap(), Keep::Count);
        limiter.set_policy_at(5, &three, Keep::Count).unwrap();
        assert_eq!(limiter.take_up_to_at(5, 10), 1);
    });
}

// One word.

#[test]
fn cell_gives_the_last_permit_once() {
    exact("cell gcra 3×1", 3, "2/20ns", &[&[(5, 1)], &[(5, 1)], &[(5, 1)]]);
    exact("cell gcra 2×2", 9, "3/30ns", &[&[(5, 2), (5, 1)], &[(5, 1), (5, 1)]]);
    exact(
        "cell fixed-window 3×1",
        3,
        "2/20ns algo fixed-window",
        &[&[(5, 1)], &[(5, 1)], &[(5, 1)]],
    );
}

/// A thread that reads a word that a booking wrote, or a word that a later call made of it, sees
/// the flag of the booking.
#[test]
fn cell_tells_of_a_booking() {
    explore("cell booked", 2, || {
        let cell = Arc::new(Cell::new(Gcra::new(&"2/20ns".parse().unwrap()).unwrap()));
        let _ = cell.admit_at(5, 2);
        let before = cell.word();
        let alone = cell.algorithm().step(before, 30, 1).next.unwrap();
        let (books, takes, looks) = (cell.clone(), cell.clone(), cell.clone());
        let booking = thread::spawn(move || books.reserve_at(5, 1, u64::MAX));
        let taking = thread::spawn(move || takes.admit_at(30, 1));
        let looking = thread::spawn(move || (looks.word(), looks.has_booked()));
        let (word, booked) = looking.join().unwrap();
        assert!(booked || [before, alone].contains(&word), "the word is {word}");
        assert!(booking.join().unwrap().is_some());
        let _ = taking.join().unwrap();
        assert!(cell.has_booked());
    });
}

/// Permits are given back while another thread takes permits at a later time. The bucket had two
/// permits, and both were taken at 0 ns.
fn gives_back(name: &str, policy: &'static str, clock_first: bool) {
    // The fault needs two preemptions, so `make check`, which allows one, would not see it.
    let explore = if clock_first { explore_within } else { explore };
    explore(name, 4, move || {
        let state = state(policy);
        // A lock, because a clock goes forward for all threads at once.
        let clock = Arc::new(Mutex::new(0));
        assert_eq!(admit(&state, 0, 2), 2);
        let (gives, time) = (state.clone(), clock.clone());
        let back = thread::spawn(move || {
            let read = || *time.lock().unwrap();
            let before = read();
            gives.give_back(
                Charge { at: 0, cost: 2 },
                2,
                || if clock_first { before } else { read() },
            )
        });
        *clock.lock().unwrap() = 10;
        let taken = admit(&state, 10, 1);
        let back = back.join().unwrap();
        let more = drain(&state, 10);
        assert!(
            taken + more <= 2,
            "{back} came back, and {taken} and {more} were taken at one instant"
        );
        assert!(
            2 - back + taken + more <= 3,
            "{back} came back, {taken} and {more} were taken within 10 ns"
        );
    });
}

#[test]
fn cell_gives_back_what_time_has_not() {
    gives_back("cell give back", "1/10ns burst 2", false);
}

/// The second policy of the list is that of `cell_gives_back_what_time_has_not`. The first has a
/// burst of one permit more.
#[test]
fn a_list_gives_back_what_time_has_not() {
    gives_back("list give back", "1/10ns burst 3; 1/10ns burst 2", false);
}

/// The same list, with a clock that is read before the word: the model finds the fault.
#[test]
#[should_panic(expected = "were taken at one instant")]
fn a_list_gives_back_too_much_by_an_older_time() {
    gives_back("list give back, clock first", "1/10ns burst 3; 1/10ns burst 2", true);
}

/// The model finds the fault that it was written for.
#[test]
#[should_panic(expected = "were taken at one instant")]
fn cell_gives_back_too_much_by_an_older_time() {
    gives_back("cell give back, clock first", "1/10ns burst 2", true);
}

/// E10: a thread reads the word and the time to give permits back, and sleeps. Another thread gives
/// permits back, and takes permits at a later time, until the word has the same value. If the first
/// thread's swap compared the word alone, it would succeed, and four permits would pass at one
/// instant. Both policies are tried: a single bucket and a list of two.
#[test]
fn a_word_that_came_back_gives_nothing_twice() {
    for policy in ["1/10ns burst 3", "1/10ns burst 4; 1/10ns burst 3"] {
        // The fault needs two preemptions, so `make check`, which allows one, would not see it.
        explore_within(&format!("return beside returns, {policy}"), 3, move || {
            let state = state(policy);
            let clock = Arc::new(Mutex::new(0));
            assert_eq!(admit(&state, 0, 2) + admit(&state, 0, 1), 3);
            let (time, later) = (clock.clone(), clock.clone());
            let (back, taken) = beside(
                &state,
                move |state| {
                    state.give_back(Charge { at: 0, cost: 2 }, 2, || *time.lock().unwrap())
                },
                move |state| {
                    state.give_back(Charge { at: 0, cost: 1 }, 1, || 0);
                    *later.lock().unwrap() = 10;
                    admit(state, 10, 1)
                },
            );
            let more = drain(&state, 10);
            assert!(
                taken + more <= 3,
                "{back} came back, and {taken} and {more} were taken at one instant"
            );
        });
    }
}

/// A booking in the middle leaves, and that after it: the last to leave gives both back, and
/// nothing is given back twice.
#[test]
fn a_gap_is_closed_by_the_last_to_leave() {
    explore_within("gap", 2, || {
        let state = state("1/10ns");
        let book = |state: &State| {
            state.reserve_at(5, 1, 10_000).map(|at| Charge { at, cost: 1 }).unwrap()
        };
        let (_, first, second) = (book(&state), book(&state), book(&state));
        let leave = |charge: Charge| move |state: &State| state.give_back(charge, 1, || 5);
        beside(&state, leave(first), leave(second));
        // No gap is left: one would hide what is lost, since the next booking takes it.
        assert_eq!(state.peek_at(5, 1).retry_after, 10);
        assert_eq!(book(&state).at, first.at);
        assert_eq!(book(&state).at, second.at);
    });
    // A caller comes meanwhile: it departs where the two were, or after them, and alone.
    explore_within("gap taken", 2, || {
        let state = state("1/10ns");
        let book = |state: &State| {
            state.reserve_at(5, 1, 10_000).map(|at| Charge { at, cost: 1 }).unwrap()
        };
        let (_, first, second, last) = (book(&state), book(&state), book(&state), book(&state));
        let (_, third) = beside(
            &state,
            move |state| state.give_back(first, 1, || 5) + state.give_back(second, 1, || 5),
            book,
        );
        assert!(third.at != last.at && third.at <= last.at + 10, "{third:?}");
        let fourth = book(&state);
        assert!(
            fourth.at != last.at && fourth.at != third.at && fourth.at <= last.at + 10,
            "{third:?} {fourth:?}"
        );
    });
}

#[test]
fn cell_takes_up_to_what_is_left() {
    explore("cell take_up_to", 9, || {
        let admits = |state: &State| admit(state, 5, 1) + admit(state, 5, 1);
        let (one, other) = beside(&state("3/30ns"), admits, |state| state.take_up_to_at(5, 2));
        assert_eq!(one + other, 3);
    });
}

#[test]
fn cell_reserves_an_instant_once() {
    explore("cell reserve", deep(4), || {
        let state = state("1/10ns");
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let state = state.clone();
                thread::spawn(move || state.reserve_at(5, 1, 100).unwrap())
            })
            .collect();
        let mut at = vec![state.reserve_at(5, 1, 100).unwrap()];
        at.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        at.sort_unstable();
        assert_eq!(at, [5, 15, 25]);
    });
}

#[test]
fn cell_resets() {
    explore("cell reset", 9, || {
        let state = state("2/20ns algo fixed-window");
        assert_eq!(admit(&state, 5, 2), 2);
        let (given, ()) =
            beside(&state, |state| admit(state, 5, 1) + admit(state, 5, 1), State::reset);
        assert_eq!(given + drain(&state, 5), 2);
    });
}

// Sliding window.

// Bans and charges.

/// Two permits for four requests of two threads: each of both refusals is counted once, so the next
/// one is the third and bans.
#[test]
fn refusals_are_counted_once_each() {
    explore("ban 2×2", 4, || {
        let state = state("2/20ns ban 100ns after 3");
        let decision = |state: &State| [5, 5].map(|now| state.check_at(now, 1).reason);
        let (one, other) = beside(&state, decision, decision);
        let mut decision: Vec<_> =
            one.into_iter().chain(other).map(|reason| reason as u32).collect();
        decision.sort_unstable();
        assert_eq!(
            decision,
            [Reason::Admitted, Reason::Admitted, Reason::Rate, Reason::Rate]
                .map(|reason| reason as u32)
        );
        let third = state.check_at(5, 1);
        assert_eq!((third.reason, third.retry_after), (Reason::Banned, 100));
    });
}

/// A refusal that bans beside a request for a refilled permit. Either may come first, and the ban
/// ends on time.
#[test]
fn a_ban_beside_a_take() {
    explore("ban beside a take", 4, || {
        let state = state("2/20ns ban 100ns");
        assert_eq!(admit(&state, 5, 2), 2);
        let (bans, takes) =
            beside(&state, |state| state.check_at(5, 1), |state| state.check_at(15, 1));
        assert_eq!((bans.reason, bans.retry_after), (Reason::Banned, 100));
        assert!(matches!(takes.reason, Reason::Admitted | Reason::Banned), "{takes:?}");
        assert_eq!(state.peek_at(104, 1).reason, Reason::Banned);
        assert_eq!((admit(&state, 105, 1), left(&state, 105)), (1, 0));
    });
}

/// Charged and admitted permits add up, whichever call comes first.
#[test]
fn a_charge_beside_takes() {
    explore("charge beside takes", 4, || {
        let state = state("2/20ns");
        let takes = |state: &State| admit(state, 5, 1) + admit(state, 5, 1);
        let (taken, rest) = beside(&state, takes, |state| state.charge_at(5, 2));
        assert_eq!(rest, 0);
        // The word's debt is 10 ns for each permit.
        assert_eq!(state.peek_at(5, 1).retry_after, (taken + 2) * 10 - 10);
    });
}

// Waiting, watching.

/// A clock that counts the threads that sleep on it, and the most that did so at once.
struct Beds {
    now: AtomicU64,
    asleep: AtomicU64,
    most: AtomicU64,
}

impl Clock for Beds {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
    fn sleep_until(&self, at: u64) {
        let asleep = self.asleep.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(asleep, Ordering::Relaxed);
        self.now.fetch_max(at, Ordering::Relaxed);
        self.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn waiters_are_bounded() {
    for policy in ["1/10ns", "1/10ns algo fixed-window"] {
        explore(&format!("waiters, {policy}"), 2, move || {
            let policy: Policy = policy.parse().unwrap();
            let beds =
                Beds { now: AtomicU64::new(5), asleep: AtomicU64::new(0), most: AtomicU64::new(0) };
            let limiter = Limiter::with(State::new(&policy).unwrap(), beds).with_waiters(1);
            let limiter = Arc::new(limiter);
            assert!(limiter.check(1).is_allowed());
            let other = {
                let limiter = limiter.clone();
                thread::spawn(move || limiter.wait_until(1, 1_000).is_allowed())
            };
            let mut allowed = u64::from(limiter.wait_until(1, 1_000).is_allowed());
            allowed += u64::from(other.join().unwrap());
            // Every thread is allowed that found a permit or a place to sleep. A place is free
            // again once its sleeper has left.
            assert!(allowed >= 1, "{allowed}");
            assert!(limiter.clock().most.load(Ordering::Relaxed) <= 1);
            assert_eq!(limiter.snapshot().waiting, 0);
        });
    }
}

#[test]
fn watch_invents_no_step() {
    model("watch", 3, "9/90ns", &[&[(5, 1), (7, 1)], &[(7, 1)]], |state, _| {
        // Of the three requests only the first can have come after a newer one.
        assert!(state.watch().backward_steps() <= 1);
    });
    model("watch, one time", 3, "9/90ns", &[&[(5, 1), (5, 1)], &[(5, 1)]], |state, _| {
        assert_eq!(state.watch().backward_steps(), 0);
        admit(state, 4, 1);
        assert_eq!(state.watch().backward_steps(), 1);
    });
}
