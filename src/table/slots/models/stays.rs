//! A key that stays in its slot when its policy changes.

use super::*;
use OnFull::{Deny, EvictNearest};

const N: Key = Key(2, By::Fixed, [0, 1]);
const EMPTY: SlotPair = SlotPair { key: 0, state: 0 };

/// A slot of a key for which no thread makes requests. It expires at `until`.
const fn other(tag: u64, until: u64) -> SlotPair {
    SlotPair { key: 1 << TAG_BITS | (0x80 + tag), state: until }
}

/// A change that makes a key owe for a shorter or longer time. The key stays in its slot, which is
/// taken as long as before, in a table without room.
#[test]
fn a_key_stays_in_its_slot() {
    const S: Key = Key(8, By::Staying, [0, 1]);
    const OLD: u64 = 120;
    const DEBTOR: SlotPair = SlotPair { key: 9 << TAG_BITS | S.0, state: OLD };
    // One of three permits is left at 100.
    let full = [DEBTOR, other(0, 300)];
    let stays = |played: &Played| {
        let last = played.last();
        assert!(
            related(last[0].key, DEBTOR.key) && expires(last[0]) >= OLD,
            "{:?}",
            played.changes
        );
        assert_eq!(last[1], other(0, 300));
    };
    let twice: &[Act] = &[Ask(S, 100, 1), Ask(S, 102, 1)];
    let faster: &[Act] = &[SetVersion(10), Ask(S, 100, 1), Ask(S, 102, 1)];
    model("stays, faster", deep(3), scene(Deny, &full, &[faster, twice]), move |played| {
        assert!((1..=2).contains(&played.admitted(S)), "{:?}", played.changes);
        stays(played);
    });
    let slower: &[Act] = &[SetVersion(11), Ask(S, 100, 1)];
    let once: &[Act] = &[Ask(S, 100, 1)];
    model("stays, slower", deep(3), scene(Deny, &full, &[slower, once]), move |played| {
        assert_eq!(played.admitted(S), 1, "{:?}", played.changes);
        stays(played);
    });
    // Two threads convert the key to different versions, and a third holds the first.
    let change: &[Act] = &[SetVersion(10), Ask(S, 100, 1)];
    model(
        "stays, two versions",
        deep(2),
        scene(Deny, &full, &[change, slower, once]),
        move |played| {
            assert_eq!(played.admitted(S), 1, "{:?}", played.changes);
            stays(played);
        },
    );
    // Another key gets the slot at its former time and not before. At 110 the key has all its
    // permits under version 10.
    for (now, taken) in [(110, 0), (130, 1)] {
        model(
            "stays, new key",
            deep(3),
            scene(Deny, &full, &[change, &[Ask(N, now, 1)]]),
            move |played| {
                // By the clock of N the key has expired at 130.
                assert!(
                    played.admitted(S) + taken >= 1 && played.admitted(S) <= 1,
                    "{:?}",
                    played.changes
                );
                assert!(played.admitted(N) <= taken, "{:?}", played.changes);
            },
        );
    }
    model(
        "stays, evicted",
        deep(3),
        scene(EvictNearest, &full, &[change, &[Ask(N, 100, 1)], once]),
        |_| (),
    );
    model(
        "stays, room",
        deep(3),
        scene(Deny, &[DEBTOR, EMPTY], &[change, once, &[Ask(N, 100, 1)]]),
        move |played| {
            assert_eq!((played.admitted(S), played.admitted(N)), (1, 1), "{:?}", played.changes);
        },
    );
    model(
        "stays, late clock",
        deep(3),
        scene(Deny, &[DEBTOR, other(0, 105)], &[&[SetVersion(10), Ask(S, 110, 1)], once]),
        move |played| {
            assert!(related(played.last()[0].key, DEBTOR.key), "{:?}", played.changes);
        },
    );
}
