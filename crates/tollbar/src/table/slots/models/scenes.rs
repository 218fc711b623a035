//! The scenes: who does what to which slots, and what must have come of it.

use super::*;

const K: Key = Key(1, By::Changing, [0, 1]);
const N: Key = Key(2, By::Fixed, [0, 1]);
/// In the other order.
const M: Key = Key(3, By::Fixed, [1, 0]);
/// Has only one candidate in common with K.
const L: Key = Key(4, By::Fixed, [0, 2]);
/// Has K's tag, and is another policy's.
const NAMESAKE: Key = Key(1, By::Fixed, [0, 1]);
/// Windows.
const W: Key = Key(5, By::Window, [0, 1]);
const V: Key = Key(6, By::Window, [0, 1]);

const EMPTY: Pair = Pair { key: 0, state: 0 };

/// A slot of a version whose states are nanoseconds.
const fn held(Key(tag, ..): Key, state: u64) -> Pair {
    Pair { key: 1 << TAG_BITS | tag, state }
}

/// Of some other key that is not asked for.
const fn other(tag: u64, until: u64) -> Pair {
    Pair { key: 1 << TAG_BITS | (0x80 + tag), state: until }
}

const fn windowed(Key(tag, ..): Key, end: u64, taken: u64) -> Pair {
    Pair { key: 5 << TAG_BITS | tag, state: end * FINE + taken }
}

use OnFull::{Allow, Deny, EvictNearest, Inherit};

/// Two or three threads put one key into a table: it has one slot then, and all of them are charged there.
#[test]
fn one_key_is_put_in_once() {
    let once: &[Act] = &[Ask(K, 100, 1)];
    let sum = |played: &Played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.changes.len(), 2);
    };
    model("one key, empty, 3×1", 3, scene(Deny, &[EMPTY, EMPTY], &[once, once, once]), sum);
    model("one key, empty, 2 and 1", 3, scene(Deny, &[EMPTY, EMPTY], &[&[Ask(K, 100, 1), Ask(K, 100, 1)], once]), sum);
    model("one key, expired at once", 3, scene(Deny, &[other(0, 50), other(1, 50)], &[once, once]), sum);
    model("one key, expired", 3, scene(Deny, &[other(0, 50), other(1, 30)], &[once, once]), sum);
    // To one of them only the second has expired.
    let late: &[Act] = &[Ask(K, 40, 1)];
    model("one key, late clock", 3, scene(Deny, &[other(0, 50), other(1, 30)], &[once, late]), |played| {
        assert_eq!(played.state(K), Some(110));
        assert_eq!(played.last()[0], other(0, 50));
    });
}

/// New keys are put in by the fast path, which compares the candidates' words: beside one another, and beside the protocol.
#[test]
fn new_keys_are_put_in_by_the_fast_path() {
    let fast: &[Act] = &[Short(K, 100, 1)];
    let sum = |played: &Played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.changes.len(), 2);
    };
    let tight = [other(0, 50), other(1, 50)];
    let apart = [other(0, 50), other(1, 30)];
    for (name, slots) in [("empty", [EMPTY, EMPTY]), ("expired at once", tight), ("expired", apart)] {
        model(&format!("fast, {name}, 3×1"), 3, scene(Deny, &slots, &[fast, fast, fast]), sum);
        model(
            &format!("fast beside the protocol, {name}"),
            3,
            scene(Deny, &slots, &[fast, &[Ask(K, 100, 1)], fast]),
            sum,
        );
    }
    // Another key takes the slot that both want.
    for (name, slots, third) in
        [("empty", [EMPTY, EMPTY], L), ("expired", apart, L), ("expired, other order", apart, N)]
    {
        let threads: &[&[Act]] = &[fast, fast, &[Ask(third, 100, 1)]];
        let slots = [slots[0], slots[1], EMPTY];
        let slots = if third.2[1] == 2 { &slots[..] } else { &slots[..2] };
        model(&format!("fast, a third, {name}"), 3, scene(Deny, slots, threads), move |played| {
            assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
            assert_eq!(played.admitted(third), 1);
        });
    }
    // The slot's key comes back while it is given away, and a key that has debts keeps its slot.
    let threads: &[&[Act]] = &[&[Ask(M, 100, 1), Short(K, 100, 1)], fast];
    model("fast, replaced", 3, scene(Deny, &[other(0, 90), other(1, 60)], threads), sum_of_two);
    let debtors = [other(0, 200), other(1, 150)];
    model("fast, full", 3, scene(Deny, &debtors, &[fast, &[Short(N, 100, 1)]]), |played| {
        assert_eq!((played.changes.len(), played.count(Event::Refused)), (0, 2));
    });
    // Of two that expire together the first in the key's order is taken, so that two calls for one key meet.
    let early: &[Act] = &[Ask(M, 100, 1), Ask(N, 100, 1)];
    model("fast, equals", 3, scene(EvictNearest, &tight, &[fast, fast, early]), |_| ());
    model("fast, late clock", 3, scene(Deny, &apart, &[fast, &[Short(K, 40, 1)]]), |played| {
        assert_eq!(played.state(K), Some(110));
        assert_eq!(played.last()[0], other(0, 50));
    });
}

/// K has two charges, wherever it is.
fn sum_of_two(played: &Played) {
    assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
}

/// A key comes back while its slot is given to another: neither loses a charge.
#[test]
fn a_key_comes_back_while_it_is_replaced() {
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("replaced, room", 3, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!((played.admitted(N), played.state(N)), (1, Some(110 * FINE)));
    });
    model("replaced, no room", 3, scene(Deny, &[held(K, 50), other(0, 200)], threads), |played| {
        // Whoever has the slot has all of its charges.
        let (k, n) = (played.admitted(K), played.admitted(N));
        assert!((k, n) == (2, 0) || (k, n) == (0, 1));
        assert_eq!(played.count(Event::Refused) as u64, 3 - k - n);
    });
}

/// Two put a key into a table while a third takes the place that it would have had.
#[test]
fn a_third_takes_the_place() {
    for (name, slots, third) in [
        ("a third, empty", [EMPTY, EMPTY], N),
        ("a third, empty, other order", [EMPTY, EMPTY], M),
        ("a third, first", [other(0, 20), other(1, 30)], N),
        ("a third, second", [other(0, 30), other(1, 20)], N),
    ] {
        let threads: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(third, 100, 1)]];
        model(name, 3, scene(Deny, &slots, threads), move |played| {
            assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
            assert_eq!((played.admitted(third), played.state(third)), (1, Some(110 * FINE)));
        });
    }
}

/// A key that was seen in a slot has left it, and is back: a swap for what was seen either is right or fails.
#[test]
fn a_slot_comes_back_to_a_straggler() {
    // N was there at 60 and has expired at 100.
    let there_and_back: &[Act] = &[Ask(N, 60, 1), Ask(K, 100, 1)];
    let straggler: &[Act] = &[Ask(K, 100, 1)];
    for late in [50, 100] {
        let straggler: &[Act] = if late == 100 { straggler } else { &[Ask(K, 50, 1)] };
        let scene = scene(Deny, &[held(K, 50), other(0, 300)], &[there_and_back, straggler]);
        model(&format!("straggler at {late}"), 4, scene, move |played| {
            assert!(played.admitted(K) >= 1 && (late == 50 || played.admitted(K) == 2 || played.admitted(N) == 0));
            assert_eq!(played.last()[1], other(0, 300));
        });
    }
    // V leaves the very words behind that it has found, but for the key; then W is back with those that it had.
    let there_and_back: &[Act] = &[Ask(V, 150, 1), Ask(W, 150, 1)];
    let straggler: &[Act] = &[Ask(W, 150, 1)];
    let full = [windowed(W, 200, 1), other(0, 300)];
    model("straggler, same words", 4, scene(EvictNearest, &full, &[there_and_back, straggler]), |played| {
        assert!(played.admitted(V) == 1 && played.state(W).is_some());
    });
    let threads: &[&[Act]] = &[&[Ask(V, 150, 1)], &[Ask(W, 150, 1), Ask(W, 150, 1)], &[Ask(W, 150, 1)]];
    model("straggler, three threads", 3, scene(EvictNearest, &full, threads), |_| ());
}

/// Newcomers where nothing has expired.
#[test]
fn newcomers_meet_in_a_full_table() {
    let keys: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    let one: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    let three: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    let ties = [other(0, 110), other(1, 110)];
    let near = [other(0, 300), other(1, 110)];
    let far = [other(0, 300), other(1, 200)];
    for slots in [&ties, &near, &far] {
        for on_full in [Deny, Allow] {
            model("full", 3, scene(on_full, slots, keys), move |played| {
                assert_eq!(played.changes.len(), 0);
                let event = if on_full == Deny { Event::Refused } else { Event::Unremembered };
                assert_eq!(played.count(event), 2);
            });
        }
    }
    // Of a debt of one permit another can be had.
    model("full, two keys", 3, scene(Inherit, &ties, keys), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
        assert_eq!((played.state(K), played.state(N)).0.is_some(), played.state(N).is_some());
    });
    model("full, two keys, near", 3, scene(Inherit, &near, keys), |played| {
        // The second would inherit two permits.
        assert_eq!(played.admitted(K) + played.admitted(N), 1);
    });
    model("full, two keys, far", 3, scene(Inherit, &far, keys), |played| {
        assert_eq!(played.changes.len(), 0);
    });
    model("full, one key", 3, scene(Inherit, &ties, one), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (1, Some(120)));
    });
    model("full, three threads", 2, scene(Inherit, &ties, three), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
    });
    for slots in [&ties, &near, &far] {
        model("full, two keys", 3, scene(EvictNearest, slots, keys), |played| {
            assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
        });
        model("full, one key", 3, scene(EvictNearest, slots, one), |played| {
            assert!(played.admitted(K) >= 1 && played.state(K) >= Some(110));
        });
        model("full, three threads", 2, scene(EvictNearest, slots, three), |played| {
            assert!(played.admitted(K) >= 1 && played.admitted(N) == 1);
        });
    }
}

/// A thread has found a place for a key and sleeps. If a neighbour makes another place look earlier meanwhile, the key
/// gets a second slot there.
#[test]
fn a_place_stays_the_first_to_expire() {
    let threads: &[&[Act]] = &[&[Ask(L, 100, 1), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    for (name, slots) in [
        ("neighbour", [other(0, 300), other(1, 250), other(2, 400)]),
        // K may have what is owed and one more; so may L.
        ("neighbour, near", [other(0, 110), other(1, 108), other(2, 120)]),
    ] {
        for on_full in [EvictNearest, Inherit] {
            model(name, 3, scene(on_full, &slots, threads), |played| assert!(played.count(Event::Refused) == 0));
        }
    }
    let threads: &[&[Act]] = &[&[Reset(L, 100), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    let debtor = Pair { key: 4 << TAG_BITS | L.0, state: 300 * FINE };
    model("neighbour is reset", 3, scene(Deny, &[debtor, other(1, 50), EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.last()[0], Pair { key: 0, state: 300 });
    });
}

/// A slot goes to a key whose states are in other units while it is looked at: read as one pair that never was, it
/// would seem to expire late, and the key would get a second slot.
#[test]
fn a_slot_is_looked_at_in_one_instant() {
    let threads: &[&[Act]] = &[&[Ask(L, 25, 1), Ask(K, 50, 1)], &[Ask(K, 50, 1)]];
    model("torn look", 3, scene(Deny, &[other(0, 20), other(1, 40), other(2, 90)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(70)));
    });
    let threads: &[&[Act]] = &[&[Ask(L, 25, 1)], &[Ask(K, 50, 1)], &[Ask(K, 50, 1)]];
    model("torn look, 3×1", 3, scene(Deny, &[other(0, 20), other(1, 40), other(2, 90)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(70)));
    });
}

/// A refusal is never made from another key's state.
#[test]
fn a_refusal_is_the_keys_own() {
    // K has all its permits; N takes all of its own in K's slot.
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(N, 100, 2)]];
    model("refusal", 4, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    model("refusal, no room", 4, scene(Deny, &[held(K, 50), other(0, 400)], threads), |played| {
        assert_eq!(played.admitted(K) == 1, played.admitted(N) == 0);
        assert_eq!(played.count(Event::Refused), 1);
    });
    // K itself is refused until 120, and by then its slot is another's.
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1), Ask(K, 120, 1)], &[Ask(N, 120, 2)]];
    model("refusal, then admitted", 4, scene(Deny, &[held(K, 120), EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    let threads: &[&[Act]] = &[&[Ask(W, 150, 1)], &[Ask(V, 150, 1), Ask(V, 150, 1)]];
    model("refusal, evicted", 4, scene(EvictNearest, &[windowed(W, 200, 0), other(0, 300)], threads), |played| {
        assert!(played.admitted(W) == 1);
    });
}

/// A reset beside the same key's requests, another's, and another reset.
#[test]
fn a_reset_leaves_no_second_slot() {
    let debtor = [held(K, 120), EMPTY];
    let threads: &[&[Act]] = &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("reset", 4, scene(Deny, &debtor, threads), |played| {
        let k = played.admitted(K);
        assert!((1..=2).contains(&k));
        assert_eq!(played.last(), [Pair { key: 0, state: 120 }, held(K, 100 + k * PERMIT)]);
    });
    // It has credit while it is reset.
    model("reset, credit", 4, scene(Deny, &[held(K, 110), EMPTY], threads), |played| {
        assert!(played.admitted(K) == 2);
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("reset, another", 4, scene(Deny, &debtor, threads), |played| {
        // Who has the last place.
        let (k, n) = (played.admitted(K), played.admitted(N));
        assert!(n == 1 || k == 1, "{k} {n}");
    });
    model("reset, another", 4, scene(EvictNearest, &debtor, threads), |played| {
        assert_eq!(played.admitted(N), 1);
    });
    model("reset, another", 4, scene(Inherit, &debtor, threads), |played| assert_eq!(played.admitted(N), 1));
    let threads: &[&[Act]] = &[&[Reset(K, 100)], &[Reset(K, 100)], &[Ask(K, 100, 1)]];
    model("resets", 3, scene(Deny, &debtor, threads), |played| {
        assert!(played.changes.len() <= 2 && played.last()[0] == Pair { key: 0, state: 120 });
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100)], &[Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("reset, 3×1", 3, scene(Deny, &debtor, threads), |played| {
        assert_eq!(played.last()[0], Pair { key: 0, state: 120 });
    });
    model(
        "reset, late clock",
        3,
        scene(Deny, &[held(K, 110), other(0, 50)], &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(K, 120, 1)]]),
        |_| (),
    );
}

/// A policy changes while its keys are asked for: a key stays one, and what it owes stays.
#[test]
fn a_policy_changes() {
    let sum = |played: &Played| {
        // All versions have one rate, so it is seen in the end what has been charged.
        let slot = played.last().iter().find(|pair| akin(pair.key, 1 << TAG_BITS | K.0)).copied().unwrap();
        assert_eq!(expires(slot), 100 + PERMIT * played.admitted(K));
    };
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(K, 100, 1), Ask(K, 100, 1)]];
    model("change, not there yet", 4, scene(Deny, &[EMPTY, EMPTY], threads), move |played| {
        assert_eq!(played.admitted(K), 2);
        sum(played);
    });
    model("change, expired", 4, scene(Deny, &[other(0, 50), held(K, 60)], threads), move |played| {
        assert_eq!(played.admitted(K), 2);
        sum(played);
    });
    model("change, owing", 4, scene(Deny, &[EMPTY, held(K, 110)], threads), |played| {
        assert_eq!(played.admitted(K), 1);
        assert_eq!(expires(played.last()[1]), 120);
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[SetVersion(3), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("change, twice", 2, scene(Deny, &[EMPTY, EMPTY], threads), move |played| {
        assert!((2..=3).contains(&played.admitted(K)));
        sum(played);
    });
    // Its slot is given to another while it is brought over.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, replaced", 4, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
    });
    // It has expired, is only looked at, and so loses its slot: which must not look earlier to N for that.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 0), Ask(N, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, vacated", 4, scene(Deny, &[held(K, 60), other(0, 50)], threads), |played| {
        assert_eq!((played.admitted(N), played.state(N)), (2, Some(120 * FINE)));
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("change, 3×1", 3, scene(Deny, &[other(0, 20), other(1, 30)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (2, 1));
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Reset(K, 100), Ask(K, 100, 1)]];
    model("change, reset", 4, scene(Deny, &[held(K, 120), EMPTY], threads), |_| ());
    // Another policy's key of the same tag is another key.
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 2)], &[Ask(NAMESAKE, 100, 2)]];
    model("namesake", 4, scene(Deny, &[EMPTY, EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(NAMESAKE)), (2, 2));
    });
}

/// A change under which a key owes for a shorter time: it moves to another slot, once, and keeps its number of permits; its former slot
/// stays taken until its time.
#[test]
fn a_key_moves_to_a_faster_policy() {
    const OLD: u64 = 120;
    let fast = |played: &Played| {
        let is_fast = |pair: &&Pair| pair.key >> TAG_BITS == 6 && pair.key & TAG == K.0;
        played.last().iter().filter(is_fast).map(|pair| pair.state).collect::<Vec<_>>()
    };
    // Empty at 100 under both versions; at 102 one permit has come back under the new one.
    let asks: &[Act] = &[Ask(K, 100, 1), Ask(K, 102, 1)];
    let changes: &[Act] = &[SetVersion(6), Ask(K, 100, 1), Ask(K, 102, 1)];
    // A request between the two swaps of a move finds a fresh key: two permits at once, and the one that comes back.
    const FRESH: u64 = 3;
    model("moves", 3, scene(Deny, &[held(K, OLD), EMPTY], &[changes, asks]), move |played| {
        assert!(played.admitted(K) <= FRESH, "{:?}", played.changes);
        assert_eq!(fast(played).len(), 1);
        assert!(played.last().iter().any(|pair| expires(*pair) >= OLD), "{:?}", played.changes);
    });
    model(
        "moves, 3 threads",
        2,
        scene(Deny, &[held(K, OLD), EMPTY], &[changes, asks, &[Ask(K, 102, 1)]]),
        move |played| {
            assert!(played.admitted(K) <= FRESH, "{:?}", played.changes);
            assert_eq!(fast(played).len(), 1);
        },
    );
    // One clock says that the neighbour has expired, and its thread moves the key; the other brings the key over in place.
    let clocks: &[&[Act]] = &[&[SetVersion(6), Ask(K, 110, 1)], &[Ask(K, 100, 1)]];
    model("moves, two clocks", 4, scene(Deny, &[held(K, OLD), other(0, 105)], clocks), move |played| {
        assert!(fast(played).len() <= 1, "{:?}", played.changes);
    });
    // A newcomer wants the slot too; with a clock that is ahead, the former one as well.
    for now in [100, 130] {
        let threads: &[&[Act]] = &[changes, asks, &[Ask(N, now, 1)]];
        model("moves, newcomer", 2, scene(Deny, &[held(K, OLD), EMPTY], threads), move |played| {
            assert!(played.admitted(K) <= FRESH && fast(played).len() <= 1, "{:?}", played.changes);
        });
    }
    // No place to move to: it keeps the time.
    model("moves, full", 3, scene(Deny, &[held(K, OLD), other(0, 300)], &[changes, asks]), move |played| {
        assert_eq!((played.admitted(K), fast(played)), (0, Vec::from([OLD])));
    });
}

/// Requests that go the short way, and leases, which are such of a higher cost: beside each other, and beside everything that can become
/// of their slot.
#[test]
fn the_short_way_is_as_good() {
    let both = scene(Deny, &[held(K, 50), EMPTY], &[&[Short(K, 100, 2), Short(K, 100, 1)], &[Short(K, 100, 1)]]);
    model("short, lease", 4, both, |played| {
        // Two at once, or one and one: never three, and all that is charged was given.
        let given = played.admitted(K);
        assert_eq!(given, 2);
        assert_eq!(played.state(K), Some(120));
    });
    let threads: &[&[Act]] = &[&[Short(K, 100, 1)], &[Short(K, 100, 1)], &[Short(K, 100, 1)]];
    model("short, 3×1", 3, scene(Deny, &[held(K, 50), EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
    });
    let there_and_back: &[Act] = &[Ask(N, 60, 1), Short(K, 100, 1)];
    let full = [held(K, 50), other(0, 300)];
    model("short, straggler", 4, scene(Deny, &full, &[there_and_back, &[Short(K, 100, 1)]]), |played| {
        assert!(played.admitted(K) == 2 || played.admitted(N) == 0);
    });
    let there_and_back: &[Act] = &[Ask(V, 150, 1), Ask(W, 150, 1)];
    let full = [windowed(W, 200, 1), other(0, 300)];
    model("short, same words", 4, scene(EvictNearest, &full, &[there_and_back, &[Short(W, 150, 1)]]), |played| {
        assert!(played.admitted(V) == 1 && played.state(W).is_some());
    });
    let threads: &[&[Act]] = &[&[Short(K, 100, 1)], &[Ask(N, 100, 2)]];
    model("short, refusal", 4, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    let threads: &[&[Act]] = &[&[Short(W, 150, 1)], &[Ask(V, 150, 1), Short(V, 150, 1)]];
    model(
        "short, refusal, evicted",
        4,
        scene(EvictNearest, &[windowed(W, 200, 0), other(0, 300)], threads),
        |played| {
            assert!(played.admitted(W) == 1);
        },
    );
    let threads: &[&[Act]] = &[&[Reset(K, 100), Short(K, 100, 1)], &[Short(K, 100, 1)]];
    model("short, reset", 4, scene(Deny, &[held(K, 120), EMPTY], threads), |played| {
        let k = played.admitted(K);
        assert!((1..=2).contains(&k));
        assert_eq!(played.last(), [Pair { key: 0, state: 120 }, held(K, 100 + k * PERMIT)]);
    });
    let threads: &[&[Act]] = &[&[SetVersion(2), Short(K, 100, 1)], &[Short(K, 100, 1), Short(K, 100, 1)]];
    model("short, change", 4, scene(Deny, &[held(K, 60), EMPTY], threads), |played| {
        assert_eq!(played.admitted(K), 2);
    });
}
