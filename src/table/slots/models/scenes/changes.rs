//! The scenes in which a policy changes while its keys make requests.

use super::*;

/// A policy changes while its keys make requests: a key has one slot and keeps its debt.
#[test]
fn a_policy_changes() {
    let sum = |played: &Played| {
        // All versions have one rate, so the time of expiry at the end tells the number of charges.
        let slot = played
            .last()
            .iter()
            .find(|pair| related(pair.key, 1 << TAG_BITS | K.0))
            .copied()
            .unwrap();
        assert_eq!(expires(slot), 100 + PERMIT * played.admitted(K));
    };
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(K, 100, 1), Ask(K, 100, 1)]];
    model("change, not there yet", deep(4), scene(Deny, &[EMPTY, EMPTY], threads), move |played| {
        assert_eq!(played.admitted(K), 2);
        sum(played);
    });
    model(
        "change, expired",
        deep(4),
        scene(Deny, &[other(0, 50), held(K, 60)], threads),
        move |played| {
            assert_eq!(played.admitted(K), 2);
            sum(played);
        },
    );
    model("change, owing", deep(4), scene(Deny, &[EMPTY, held(K, 110)], threads), |played| {
        assert_eq!(played.admitted(K), 1);
        assert_eq!(expires(played.last()[1]), 120);
    });
    let threads: &[&[Act]] =
        &[&[SetVersion(2), Ask(K, 100, 1)], &[SetVersion(3), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("change, twice", 2, scene(Deny, &[EMPTY, EMPTY], threads), move |played| {
        assert!((2..=3).contains(&played.admitted(K)));
        sum(played);
    });
    // Another key takes the slot while the key is converted.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model(
        "change, replaced",
        deep(4),
        scene(Deny, &[held(K, 50), other(0, 60)], threads),
        |played| {
            assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
        },
    );
    // The key has expired, and a request of cost 0 makes its slot vacant. The slot must not expire
    // earlier for N.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 0), Ask(N, 100, 1)], &[Ask(N, 100, 1)]];
    model(
        "change, vacated",
        deep(4),
        scene(Deny, &[held(K, 60), other(0, 50)], threads),
        |played| {
            assert_eq!((played.admitted(N), played.state(N)), (2, Some(120 * FINE)));
        },
    );
    let threads: &[&[Act]] =
        &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, 3×1", deep(3), scene(Deny, &[other(0, 20), other(1, 30)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (2, 1));
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Reset(K, 100), Ask(K, 100, 1)]];
    model("change, reset", deep(4), scene(Deny, &[held(K, 120), EMPTY], threads), |_| ());
    // A key of another policy with the same tag is another key.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 2)], &[Ask(NAMESAKE, 100, 2)]];
    model("namesake", 4, scene(Deny, &[EMPTY, EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(NAMESAKE)), (2, 2));
    });
}

/// A change that makes a key owe for a shorter time. The key moves to another slot, once, and keeps
/// its number of permits. No key takes its former slot before that slot's time.
#[test]
fn a_key_moves_to_a_faster_policy() {
    const OLD: u64 = 120;
    const START: [SlotPair; 2] = [held(K, OLD), EMPTY];
    let fast = |played: &Played| {
        let is_fast = |pair: &&SlotPair| pair.key >> TAG_BITS == 6 && pair.key & TAG == K.0;
        played.last().iter().filter(is_fast).map(|pair| pair.state).collect::<Vec<_>>()
    };
    // K has no permits at 100 under both versions. At 102 it has one under the new version.
    let asks: &[Act] = &[Ask(K, 100, 1), Ask(K, 102, 1)];
    let changes: &[Act] = &[SetVersion(6), Ask(K, 100, 1), Ask(K, 102, 1)];
    // A request between the swaps of a move gains nothing.
    const REFILLED: u64 = 1;
    model("moves", deep(3), scene(Deny, &START, &[changes, asks]), move |played| {
        assert!(played.admitted(K) <= REFILLED, "{:?}", played.changes);
        assert_eq!(fast(played).len(), 1);
        assert!(played.last().iter().any(|pair| expires(*pair) >= OLD), "{:?}", played.changes);
    });
    let once: &[Act] = &[Ask(K, 102, 1)];
    let change: &[Act] = &[SetVersion(6), Ask(K, 100, 1)];
    model("moves, 3 threads", deep(2), scene(Deny, &START, &[change, once, once]), move |played| {
        assert!(played.admitted(K) <= REFILLED, "{:?}", played.changes);
        assert_eq!(fast(played).len(), 1);
    });
    // By the clock of one thread the neighbour has expired, and that thread moves the key. The
    // other thread converts the key in its slot.
    let clocks: &[&[Act]] = &[&[SetVersion(6), Ask(K, 110, 1)], &[Ask(K, 100, 1)]];
    model(
        "moves, two clocks",
        deep(4),
        scene(Deny, &[held(K, OLD), other(0, 105)], clocks),
        move |played| {
            assert!(fast(played).len() <= 1, "{:?}", played.changes);
        },
    );
    // A new key can take the slot to which K moves; with a clock that is ahead, also K's former
    // slot.
    for now in [100, 130] {
        let threads: &[&[Act]] = &[change, once, &[Ask(N, now, 1)]];
        model("moves, new key", deep(2), scene(Deny, &START, threads), move |played| {
            // By the clock of N the key has expired, and N takes its slot and the mark. Then K
            // begins as a fresh key of two permits.
            let most = if now >= OLD { 2 + REFILLED } else { REFILLED };
            assert!(played.admitted(K) <= most && fast(played).len() <= 1, "{:?}", played.changes);
        });
    }
    // N takes the slot to which K moves, so K is in no slot, and its mark stays. N may also evict K
    // from there.
    let threads: &[&[Act]] = &[change, &[Ask(K, 102, 2)], &[Ask(N, 100, 1)]];
    model("moves, no room", deep(2), scene(EvictNearest, &START, threads), move |played| {
        let evicted =
            played.done().any(|done| done.key & TAG == N.0 && done.event() == Some(Event::Evicted));
        assert!(evicted || played.admitted(K) <= REFILLED, "{:?}", played.changes);
    });
    // No other slot has expired, so the key keeps the time of its debt.
    model(
        "moves, full",
        deep(3),
        scene(Deny, &[held(K, OLD), other(0, 300)], &[changes, asks]),
        move |played| {
            assert_eq!((played.admitted(K), fast(played)), (0, Vec::from([OLD])));
        },
    );
}
