//! Sliding windows under loom.

use super::*;

#[test]
fn ring_gives_the_last_permit_once() {
    exact(
        "ring 3×1",
        2,
        "2/20ns algo sliding-window segments 2",
        &[&[(5, 1)], &[(5, 1)], &[(5, 1)]],
    );
    exact(
        "ring next",
        2,
        "2/20ns algo sliding-window segments 2",
        &[&[(15, 1)], &[(15, 1)], &[(15, 1)]],
    );
}

/// One thread admits a request at 9 ns, the end of segment 0. Two others admit at 10 ns, and each
/// tries to write the start of segment 1. The model checks that the window's limit of two holds in
/// every order.
#[test]
fn ring_begins_a_segment_once() {
    let threads: &[Requests] = &[&[(9, 1)], &[(10, 1)], &[(10, 1)]];
    // The start of segment 1 is the count of permits before it, or less if a request with a late
    // clock was decided in it. So the permits of the two in segment 1 have not left when segment 0
    // has.
    model("ring begins, n", 2, "2/20ns algo sliding-window segments 2", threads, |state, given| {
        assert_eq!(sum(given), 2);
        assert!(left(state, 20) <= 2 - given[1][0] - given[2][0], "{given:?}");
        assert_eq!(drain(state, 30), 2);
    });
    model(
        "ring begins, strict",
        2,
        "2/20ns algo sliding-window segments 2 mode strict",
        threads,
        |state, given| {
            assert_eq!(sum(given), 2);
            assert_eq!(left(state, 20), 0);
            assert!(left(state, 30) <= 2 - given[1][0] - given[2][0], "{given:?}");
            assert_eq!(drain(state, 40), 2);
        },
    );
    let policy = "2/20ns algo sliding-window segments 2 mode interpolated";
    model("ring begins, interpolated", 2, policy, threads, |state, given| {
        assert_eq!(sum(given), 2);
        assert_eq!(left(state, 20), 0);
        assert!(left(state, 29) <= 2 - given[1][0] - given[2][0], "{given:?}");
        assert_eq!(drain(state, 40), 2);
    });
}

/// The start that one thread is about to write is one permit short of the count by then.
#[test]
fn ring_start_counts_the_straggler() {
    model(
        "ring straggler",
        3,
        "3/20ns algo sliding-window segments 2",
        &[&[(9, 1), (10, 1)], &[(11, 1)]],
        |state, given| {
            assert_eq!(sum(given), 3);
            // A request is decided in segment 0, or in 1 if its clock was late.
            let late = left(state, 20);
            assert!(late <= 1);
            assert_eq!(drain(state, 20), late);
            assert_eq!(drain(state, 30), 3 - late);
        },
    );
}

#[test]
fn ring_is_strict_in_every_window() {
    model(
        "ring strict",
        2,
        "1/20ns algo sliding-window segments 2 mode strict",
        &[&[(9, 1), (29, 1)], &[(19, 1), (39, 1)], &[(28, 1)]],
        |state, given| {
            // No thread's clock is late by a whole window, so a request shares its window with its
            // neighbours: of times less than 20 apart one is given.
            let at = [
                (9, given[0][0]),
                (19, given[1][0]),
                (28, given[2][0]),
                (29, given[0][1]),
                (39, given[1][1]),
            ];
            for (i, &(from, _)) in at.iter().enumerate() {
                let within: u64 =
                    at[i..].iter().filter(|(t, _)| t - from < 20).map(|(_, n)| n).sum();
                assert!(within <= 1, "{at:?}");
            }
            assert_eq!(drain(state, 90), 1);
        },
    );
}

/// A jump takes the places of starts that a thread with an older clock is about to read or to
/// write.
#[test]
fn ring_jumps_over_an_older_clock() {
    let threads: &[Requests] = &[&[(20, 1)], &[(55, 1)]];
    for (name, policy) in [
        ("ring jump, n", "1/20ns algo sliding-window segments 2"),
        ("ring jump, strict", "1/20ns algo sliding-window segments 2 mode strict"),
        ("ring jump, interpolated", "1/20ns algo sliding-window segments 2 mode interpolated"),
    ] {
        model(name, 3, policy, threads, |state, given| {
            assert!(sum(given) >= 1);
            // One of the threads has taken the permit of segment 5.
            assert_eq!(drain(state, 55), 0);
            assert_eq!(drain(state, 85), 1);
        });
    }
}

/// A jump takes the place of a start that a window still needs.
#[test]
fn ring_sees_that_a_start_has_gone() {
    model(
        "ring start gone",
        3,
        "1/20ns algo sliding-window segments 2",
        &[&[(10, 1), (20, 1)], &[(55, 1)]],
        |state, given| {
            // One permit in segment 1 and one in 5; segment 2 has none.
            assert!(sum(given) <= 2, "{given:?}");
            assert_eq!(drain(state, 55), 0);
            assert_eq!(drain(state, 70), 1);
        },
    );
}

/// A start that was written for a segment far ahead is further behind than counts (modulo 4 here)
/// can tell.
#[test]
fn ring_start_left_behind_is_written_again() {
    model(
        "ring old start",
        2,
        "1/20ns algo sliding-window segments 2",
        &[&[(0, 1), (20, 1), (40, 1), (40, 1)], &[(30, 1)]],
        |state, given| {
            // The other thread gets its permit before, between or not at all; at 40 there is never
            // a second.
            assert!(given[0][2] + given[0][3] <= 1, "{given:?}");
            assert!(given[0][2] + given[0][3] + given[1][0] >= 1, "{given:?}");
            assert_eq!(
                drain(state, 40) + given[0][2] + given[0][3],
                if given[1][0] == 1 { 0 } else { 1 }
            );
            assert_eq!(drain(state, 80), 1);
        },
    );
}

#[test]
fn ring_has_one_first_request() {
    let policy = "1/20ns algo sliding-window segments 2 anchor first";
    model("ring anchor", 3, policy, &[&[(100, 1)], &[(205, 1)]], |state, given| {
        assert!(sum(given) >= 1);
        // Whichever was first, the later one's window is full.
        assert_eq!(drain(state, 205), 0, "{given:?}");
        assert_eq!(drain(state, 245), 1);
    });
    exact("ring anchor 3×1", 3, policy, &[&[(7, 1)], &[(7, 1)], &[(7, 1)]]);
}

/// A full decision counts its own permit, and `remaining` never includes a permit that another
/// thread has.
#[test]
fn ring_and_log_show_no_phantom_room() {
    for policy in ["2/20ns algo sliding-window segments 2", "2/20ns algo sliding-log"] {
        explore(&format!("phantom, {policy}"), 2, move || {
            let twice = |state: &State| [state.check_at(25, 1), state.check_at(25, 1)];
            let (mine, theirs) = beside(&state(policy), twice, |state| state.check_at(25, 1));
            let allowed =
                mine.iter().chain([&theirs]).filter(|d| d.verdict == Verdict::Allowed).count();
            assert_eq!(allowed, 2);
            assert!(mine[0].verdict != Verdict::Allowed || mine[0].remaining <= 1);
            assert!(theirs.verdict != Verdict::Allowed || theirs.remaining <= 1);
            assert_eq!(mine[1].remaining, 0);
            for denied in mine.iter().chain([&theirs]).filter(|d| d.verdict == Verdict::Denied) {
                assert!(denied.retry_after > 0 && denied.retry_after <= 20);
            }
        });
    }
}
