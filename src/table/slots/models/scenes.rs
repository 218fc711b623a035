//! The scenes: the slots, the acts of the threads, and the results that each must have.
//!
//! Most keys have the buckets 0 and 1. Bucket 2 belongs to L only.

use super::*;

const K: Key = Key(1, By::Changing, [0, 1]);
const N: Key = Key(2, By::Fixed, [0, 1]);
/// Its buckets are in the other order.
const M: Key = Key(3, By::Fixed, [1, 0]);
/// It shares only one candidate with K.
const L: Key = Key(4, By::Fixed, [0, 2]);
/// It has K's tag and another policy.
const NAMESAKE: Key = Key(1, By::Fixed, [0, 1]);
/// Keys of the window policy.
const W: Key = Key(5, By::Window, [0, 1]);
const V: Key = Key(6, By::Window, [0, 1]);

const EMPTY: SlotPair = SlotPair { key: 0, state: 0 };

/// A slot that holds a key under version 1, whose states are nanoseconds.
const fn held(Key(tag, ..): Key, state: u64) -> SlotPair {
    SlotPair { key: 1 << TAG_BITS | tag, state }
}

/// A slot of a key for which no thread makes requests. It expires at `until`.
const fn other(tag: u64, until: u64) -> SlotPair {
    SlotPair { key: 1 << TAG_BITS | (0x80 + tag), state: until }
}

const fn windowed(Key(tag, ..): Key, end: u64, taken: u64) -> SlotPair {
    SlotPair { key: 5 << TAG_BITS | tag, state: end * FINE + taken }
}

use OnFull::{Allow, Deny, EvictNearest, Inherit};

mod changes;

/// Two or three threads insert one key: the key gets one slot, and all requests are charged there.
#[test]
fn one_key_is_inserted_once() {
    let once: &[Act] = &[Ask(K, 100, 1)];
    let sum = |played: &Played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.changes.len(), 2);
    };
    model("one key, empty, 3×1", 3, scene(Deny, &[EMPTY, EMPTY], &[once, once, once]), sum);
    model(
        "one key, empty, 2 and 1",
        3,
        scene(Deny, &[EMPTY, EMPTY], &[&[Ask(K, 100, 1), Ask(K, 100, 1)], once]),
        sum,
    );
    model(
        "one key, expired at once",
        3,
        scene(Deny, &[other(0, 50), other(1, 50)], &[once, once]),
        sum,
    );
    model("one key, expired", 3, scene(Deny, &[other(0, 50), other(1, 30)], &[once, once]), sum);
    // By the clock of one thread only the second slot has expired.
    let late: &[Act] = &[Ask(K, 40, 1)];
    model(
        "one key, late clock",
        3,
        scene(Deny, &[other(0, 50), other(1, 30)], &[once, late]),
        |played| {
            assert_eq!(played.state(K), Some(110));
            assert_eq!(played.last()[0], other(0, 50));
        },
    );
}

/// The fast path, which compares the candidates' words, inserts new keys beside other fast paths
/// and beside the slow path.
#[test]
fn the_fast_path_inserts_new_keys() {
    let fast: &[Act] = &[Short(K, 100, 1)];
    let sum = |played: &Played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!(played.changes.len(), 2);
    };
    let tight = [other(0, 50), other(1, 50)];
    let spread = [other(0, 50), other(1, 30)];
    for (name, slots) in
        [("empty", [EMPTY, EMPTY]), ("expired at once", tight), ("expired", spread)]
    {
        model(
            &format!("fast, {name}, 3×1"),
            deep(3),
            scene(Deny, &slots, &[fast, fast, fast]),
            sum,
        );
        model(
            &format!("fast beside the protocol, {name}"),
            deep(3),
            scene(Deny, &slots, &[fast, &[Ask(K, 100, 1)], fast]),
            sum,
        );
    }
    // Another key takes the slot that both threads choose.
    for (name, slots, third) in
        [("empty", [EMPTY, EMPTY], L), ("expired", spread, L), ("expired, other order", spread, N)]
    {
        let threads: &[&[Act]] = &[fast, fast, &[Ask(third, 100, 1)]];
        let slots = [slots[0], slots[1], EMPTY];
        let slots = if third.2[1] == 2 { &slots[..] } else { &slots[..2] };
        model(
            &format!("fast, a third, {name}"),
            deep(3),
            scene(Deny, slots, threads),
            move |played| {
                assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
                assert_eq!(played.admitted(third), 1);
            },
        );
    }
    // The slot's key makes a request while another key takes its slot.
    let threads: &[&[Act]] = &[&[Ask(M, 100, 1), Short(K, 100, 1)], fast];
    model("fast, replaced", 3, scene(Deny, &[other(0, 90), other(1, 60)], threads), sum_of_two);
    // Keys with a debt keep their slots.
    let debtors = [other(0, 200), other(1, 150)];
    model("fast, full", 3, scene(Deny, &debtors, &[fast, &[Short(N, 100, 1)]]), |played| {
        assert_eq!((played.changes.len(), played.count(Event::Refused)), (0, 2));
    });
    // If two slots expire together, both calls for K take the first in K's order.
    let early: &[Act] = &[Ask(M, 100, 1), Ask(N, 100, 1)];
    model("fast, equals", deep(3), scene(EvictNearest, &tight, &[fast, fast, early]), |_| ());
    model("fast, late clock", 3, scene(Deny, &spread, &[fast, &[Short(K, 40, 1)]]), |played| {
        assert_eq!(played.state(K), Some(110));
        assert_eq!(played.last()[0], other(0, 50));
    });
}

/// K has two charges, in any slot.
fn sum_of_two(played: &Played) {
    assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
}

/// A key makes a request while another key takes its slot: neither key loses a charge.
#[test]
fn a_key_makes_a_request_while_it_is_replaced() {
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("replaced, room", 3, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
        assert_eq!((played.admitted(N), played.state(N)), (1, Some(110 * FINE)));
    });
    model("replaced, no room", 3, scene(Deny, &[held(K, 50), other(0, 200)], threads), |played| {
        // The key that has the slot has all of its charges in it.
        let (k, n) = (played.admitted(K), played.admitted(N));
        assert!((k, n) == (2, 0) || (k, n) == (0, 1));
        assert_eq!(played.count(Event::Refused) as u64, 3 - k - n);
    });
}

/// Two threads insert a key while a third takes the slot that they would have chosen.
#[test]
fn a_third_key_takes_the_chosen_slot() {
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

/// A thread reads a key in a slot, and the key leaves the slot and comes back before the thread's
/// swap. The swap is right or fails.
#[test]
fn a_slot_comes_back_to_a_straggler() {
    // N takes the slot at 60 and has expired at 100.
    let there_and_back: &[Act] = &[Ask(N, 60, 1), Ask(K, 100, 1)];
    let straggler: &[Act] = &[Ask(K, 100, 1)];
    for late in [50, 100] {
        let straggler: &[Act] = if late == 100 { straggler } else { &[Ask(K, 50, 1)] };
        let scene = scene(Deny, &[held(K, 50), other(0, 300)], &[there_and_back, straggler]);
        model(&format!("straggler at {late}"), 4, scene, move |played| {
            assert!(
                played.admitted(K) >= 1
                    && (late == 50 || played.admitted(K) == 2 || played.admitted(N) == 0)
            );
            assert_eq!(played.last()[1], other(0, 300));
        });
    }
    // V leaves the state that it found. Then W is back in the slot with the same words as before.
    let there_and_back: &[Act] = &[Ask(V, 150, 1), Ask(W, 150, 1)];
    let straggler: &[Act] = &[Ask(W, 150, 1)];
    let full = [windowed(W, 200, 1), other(0, 300)];
    model(
        "straggler, same words",
        4,
        scene(EvictNearest, &full, &[there_and_back, straggler]),
        |played| {
            assert!(played.admitted(V) == 1 && played.state(W).is_some());
        },
    );
    let threads: &[&[Act]] =
        &[&[Ask(V, 150, 1)], &[Ask(W, 150, 1), Ask(W, 150, 1)], &[Ask(W, 150, 1)]];
    model("straggler, three threads", 3, scene(EvictNearest, &full, threads), |_| ());
}

/// New keys in a table where no slot has expired.
#[test]
fn two_new_keys_in_a_full_table() {
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
    // A key that inherits a debt of one permit can take one more.
    model("full, two keys", 3, scene(Inherit, &ties, keys), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 1));
        assert_eq!((played.state(K), played.state(N)).0.is_some(), played.state(N).is_some());
    });
    model("full, two keys, near", 3, scene(Inherit, &near, keys), |played| {
        // The second key would inherit a debt of two permits.
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

/// A thread has chosen a slot for a key and sleeps. The key would get a second slot if a neighbour
/// made another slot expire earlier meanwhile.
#[test]
fn the_chosen_slot_stays_the_first_to_expire() {
    let threads: &[&[Act]] = &[&[Ask(L, 100, 1), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    for (name, slots) in [
        ("neighbour", [other(0, 300), other(1, 250), other(2, 400)]),
        // K and L can each inherit the debt and take one more permit.
        ("neighbour, near", [other(0, 110), other(1, 108), other(2, 120)]),
    ] {
        for on_full in [EvictNearest, Inherit] {
            model(name, 3, scene(on_full, &slots, threads), |played| {
                assert!(played.count(Event::Refused) == 0)
            });
        }
    }
    let threads: &[&[Act]] = &[&[Reset(L, 100), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    let debtor = SlotPair { key: 4 << TAG_BITS | L.0, state: 300 * FINE };
    model(
        "neighbour is reset",
        3,
        scene(Deny, &[debtor, other(1, 50), EMPTY], threads),
        |played| {
            assert_eq!((played.admitted(K), played.state(K)), (2, Some(120)));
            assert_eq!(played.last()[0], SlotPair { key: 0, state: 300 });
        },
    );
}

/// A key whose states have another unit takes a slot while a thread reads it. A torn pair would
/// seem to expire late, and the key would get a second slot.
#[test]
fn a_slot_is_read_at_one_instant() {
    let threads: &[&[Act]] = &[&[Ask(L, 25, 1), Ask(K, 50, 1)], &[Ask(K, 50, 1)]];
    model(
        "torn read",
        3,
        scene(Deny, &[other(0, 20), other(1, 40), other(2, 90)], threads),
        |played| {
            assert_eq!((played.admitted(K), played.state(K)), (2, Some(70)));
        },
    );
    let threads: &[&[Act]] = &[&[Ask(L, 25, 1)], &[Ask(K, 50, 1)], &[Ask(K, 50, 1)]];
    model(
        "torn read, 3×1",
        3,
        scene(Deny, &[other(0, 20), other(1, 40), other(2, 90)], threads),
        |played| {
            assert_eq!((played.admitted(K), played.state(K)), (2, Some(70)));
        },
    );
}

/// A refusal never depends on another key's state.
#[test]
fn a_refusal_depends_on_the_key_s_own_state() {
    // K has all its permits. N takes K's slot and uses all of its own permits there.
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1)], &[Ask(N, 100, 2)]];
    model("refusal", 4, scene(Deny, &[held(K, 50), other(0, 60)], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    model("refusal, no room", 4, scene(Deny, &[held(K, 50), other(0, 400)], threads), |played| {
        assert_eq!(played.admitted(K) == 1, played.admitted(N) == 0);
        assert_eq!(played.count(Event::Refused), 1);
    });
    // K is refused until 120. By then N may have its slot.
    let threads: &[&[Act]] = &[&[Ask(K, 100, 1), Ask(K, 120, 1)], &[Ask(N, 120, 2)]];
    model("refusal, then admitted", 4, scene(Deny, &[held(K, 120), EMPTY], threads), |played| {
        assert_eq!((played.admitted(K), played.admitted(N)), (1, 2));
    });
    let threads: &[&[Act]] = &[&[Ask(W, 150, 1)], &[Ask(V, 150, 1), Ask(V, 150, 1)]];
    model(
        "refusal, evicted",
        4,
        scene(EvictNearest, &[windowed(W, 200, 0), other(0, 300)], threads),
        |played| {
            assert!(played.admitted(W) == 1);
        },
    );
}

/// A reset beside requests of the same key, requests of another key, and another reset.
#[test]
fn a_reset_leaves_no_second_slot() {
    let debtor = [held(K, 120), EMPTY];
    let threads: &[&[Act]] = &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("reset", 4, scene(Deny, &debtor, threads), |played| {
        let k = played.admitted(K);
        assert!((1..=2).contains(&k));
        assert_eq!(played.last(), [SlotPair { key: 0, state: 120 }, held(K, 100 + k * PERMIT)]);
    });
    // The key has permits left when it is reset.
    model("reset, credit", 4, scene(Deny, &[held(K, 110), EMPTY], threads), |played| {
        assert!(played.admitted(K) == 2);
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(N, 100, 1)]];
    model("reset, another", 4, scene(Deny, &debtor, threads), |played| {
        // The last free slot goes to K or N.
        let (k, n) = (played.admitted(K), played.admitted(N));
        assert!(n == 1 || k == 1, "{k} {n}");
    });
    model("reset, another", 4, scene(EvictNearest, &debtor, threads), |played| {
        assert_eq!(played.admitted(N), 1);
    });
    model("reset, another", 4, scene(Inherit, &debtor, threads), |played| {
        assert_eq!(played.admitted(N), 1)
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100)], &[Reset(K, 100)], &[Ask(K, 100, 1)]];
    model("resets", 3, scene(Deny, &debtor, threads), |played| {
        assert!(played.changes.len() <= 2 && played.last()[0] == SlotPair { key: 0, state: 120 });
    });
    let threads: &[&[Act]] = &[&[Reset(K, 100)], &[Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("reset, 3×1", 3, scene(Deny, &debtor, threads), |played| {
        assert_eq!(played.last()[0], SlotPair { key: 0, state: 120 });
    });
    model(
        "reset, late clock",
        3,
        scene(
            Deny,
            &[held(K, 110), other(0, 50)],
            &[&[Reset(K, 100), Ask(K, 100, 1)], &[Ask(K, 120, 1)]],
        ),
        |_| (),
    );
}

/// Requests on the fast path, also with a cost above one (as leases have): beside each other, and
/// beside every change of their slot.
#[test]
fn the_fast_path_steps_known_keys() {
    let both = scene(
        Deny,
        &[held(K, 50), EMPTY],
        &[&[Short(K, 100, 2), Short(K, 100, 1)], &[Short(K, 100, 1)]],
    );
    model("short, lease", 4, both, |played| {
        // K has two permits: one request of two, or two of one, but never three.
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
    model(
        "short, straggler",
        4,
        scene(Deny, &full, &[there_and_back, &[Short(K, 100, 1)]]),
        |played| {
            assert!(played.admitted(K) == 2 || played.admitted(N) == 0);
        },
    );
    let there_and_back: &[Act] = &[Ask(V, 150, 1), Ask(W, 150, 1)];
    let full = [windowed(W, 200, 1), other(0, 300)];
    model(
        "short, same words",
        4,
        scene(EvictNearest, &full, &[there_and_back, &[Short(W, 150, 1)]]),
        |played| {
            assert!(played.admitted(V) == 1 && played.state(W).is_some());
        },
    );
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
        assert_eq!(played.last(), [SlotPair { key: 0, state: 120 }, held(K, 100 + k * PERMIT)]);
    });
    let threads: &[&[Act]] =
        &[&[SetVersion(2), Short(K, 100, 1)], &[Short(K, 100, 1), Short(K, 100, 1)]];
    model("short, change", 4, scene(Deny, &[held(K, 60), EMPTY], threads), |played| {
        assert_eq!(played.admitted(K), 2);
    });
}
