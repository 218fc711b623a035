//! Sliding logs under loom.

use super::*;

#[test]
fn ring_and_log_reset() {
    for policy in ["2/20ns algo sliding-window segments 2", "2/20ns algo sliding-log"] {
        for first in [true, false] {
            explore(&format!("reset, {policy} ({first})"), 3, move || {
                let state = state(policy);
                assert_eq!(admit(&state, 15, 2), 2);
                let other = state.clone();
                let mine = if first {
                    let thread = thread::spawn(move || other.reset());
                    let mine = admit(&state, 25, 1);
                    thread.join().unwrap();
                    mine
                } else {
                    let thread = thread::spawn(move || admit(&other, 25, 1));
                    state.reset();
                    thread.join().unwrap()
                };
                let after = drain(&state, 25);
                assert!(after <= 2 && after + mine >= 2, "{mine} and {after}");
                assert_eq!(drain(&state, 65), 2);
            });
        }
    }
}

// Sliding log.

#[test]
fn log_gives_the_last_permit_once() {
    exact("log 3×1", 2, "2/20ns algo sliding-log", &[&[(5, 1)], &[(5, 1)], &[(5, 1)]]);
    exact("log 2 against 1", 4, "2/20ns algo sliding-log", &[&[(5, 2)], &[(5, 1), (5, 1)]]);
    exact("log 2 against 2", 3, "3/20ns algo sliding-log", &[&[(5, 2), (5, 1)], &[(5, 2), (5, 1)]]);
}

/// A permit whose entry is not written yet counts in the window, for every thread.
#[test]
fn log_counts_a_pending_entry() {
    model(
        "log wraps",
        2,
        "1/100ns algo sliding-log",
        &[&[(100, 1)], &[(199, 1)], &[(150, 1)]],
        |state, given| {
            assert_eq!(sum(given), 1, "{given:?}");
            assert_eq!(drain(state, 199), 0);
            assert_eq!(drain(state, 299), 1);
        },
    );
    model(
        "log wraps, 2 permits",
        3,
        "2/100ns algo sliding-log",
        &[&[(100, 1), (199, 1)], &[(150, 1), (160, 1)]],
        |state, given| {
            assert_eq!(sum(given), 2, "{given:?}");
            assert_eq!(drain(state, 199), 0);
            assert_eq!(drain(state, 299), 2);
        },
    );
}

/// A thread with an older clock settles the pending entry of one with a newer clock, at the newer
/// time.
#[test]
fn log_keeps_the_later_time() {
    model(
        "log late clock",
        4,
        "1/100ns algo sliding-log",
        &[&[(100, 1), (250, 1)], &[(199, 1)]],
        |state, given| {
            assert!(given[0][1] + given[1][0] <= 1, "{given:?}");
            assert!(sum(given) >= 1);
            assert_eq!(drain(state, 400), 1);
        },
    );
}

/// A thread sleeps over more laps than an entry's three bits tell apart.
#[test]
fn log_outlives_a_long_sleep() {
    const LATE: Requests = &[
        (20, 1),
        (30, 1),
        (40, 1),
        (50, 1),
        (60, 1),
        (70, 1),
        (80, 1),
        (90, 1),
        (100, 1),
        (110, 1),
    ];
    for laps in 6..=10 {
        explore_sleeper(
            &format!("log sleeper, {laps}"),
            "1/10ns algo sliding-log",
            (10, 1),
            &LATE[..laps],
        );
    }
}

#[test]
fn log_outlives_laps_of_rejected_requests() {
    const MANY: Requests = &[(5, 1); 18];
    for laps in [1, 6, 7, 8, 9, 14, 15, 16, 17] {
        let policy = "1/10ns algo sliding-log count rejected";
        explore_sleeper(&format!("log rejected, {laps}"), policy, (5, 1), &MANY[..laps]);
    }
}

/// Stops one request once, at each of its steps, while another thread does all that it has to do.
fn explore_sleeper(name: &str, policy: &'static str, asleep: (u64, u64), awake: Requests) {
    let period = policy.parse::<Policy>().unwrap().period;
    let last = awake[awake.len() - 1].0;
    let frozen = last == asleep.0;
    // Each execution is asked once, because a question settles the entries that it takes for
    // pending.
    for (later, there) in [(period - 1, 0), (period, 1)] {
        explore(&format!("{name} laps, {later} later"), 1, move || {
            let state = state(policy);
            let other = state.clone();
            let thread = thread::spawn(move || {
                awake.iter().map(|&(now, cost)| admit(&other, now, cost)).sum::<u64>()
            });
            let given = admit(&state, asleep.0, asleep.1) + thread.join().unwrap();
            // The stopped request is admitted in its turn, decided at a later request's time, or
            // refused.
            assert!(if frozen { given == 1 } else { given >= awake.len() as u64 }, "{given}");
            assert_eq!(drain(&state, last + later), there);
        });
    }
}

#[test]
fn log_counts_rejected_requests() {
    model(
        "log rejected 3×1",
        1,
        "1/10ns algo sliding-log count rejected",
        &[&[(5, 1)], &[(5, 1)], &[(5, 1)]],
        |state, given| {
            assert_eq!(sum(given), 1);
            // Each refused request starts the window again.
            assert_eq!(admit(state, 14, 1), 0);
            assert_eq!(admit(state, 20, 1), 0);
            assert_eq!(drain(state, 40), 1);
        },
    );
}
