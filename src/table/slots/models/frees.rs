//! A version's number becomes free while a call moves a key.

use super::*;
use OnFull::Deny;

const K: Key = Key(1, By::Changing, [0, 1]);
const EMPTY: SlotPair = SlotPair { key: 0, state: 0 };
/// K under version 1.
const HELD: SlotPair = SlotPair { key: 1 << TAG_BITS | K.0, state: 120 };
/// A key for which no thread makes requests.
const EXPIRED: SlotPair = SlotPair { key: 1 << TAG_BITS | 0x80, state: 60 };

/// A call moves a key, and the policy changes until the number of the call's version is free. The
/// key does not come under that version afterwards.
#[test]
fn a_slow_move_ends_under_no_free_version() {
    let change: &[Act] = &[SetVersion(6), Ask(K, 100, 1)];
    let frees: &[Act] = &[SetVersion(12), Free(K, 100)];
    let is_once = |played: &Played| {
        let places =
            played.last().iter().filter(|pair| related(pair.key, 12 << TAG_BITS | K.0)).count();
        assert!(places <= 1, "{:?}", played.changes);
    };
    model("frees", deep(4), scene(Deny, &[HELD, EMPTY], &[change, frees]), is_once);
    model("frees, expired", deep(3), scene(Deny, &[HELD, EXPIRED], &[change, frees]), is_once);
    let once: &[Act] = &[Ask(K, 102, 1)];
    model(
        "frees, 3 threads",
        deep(2),
        scene(Deny, &[HELD, EMPTY], &[change, frees, once]),
        is_once,
    );
    // Another call has killed the mover. A request finds the mark, and inserts the key with the
    // permits that are left.
    let marked = SlotPair { key: K.0, state: 115 };
    model(
        "frees, mark",
        deep(4),
        scene(Deny, &[marked, EMPTY], &[&[SetVersion(6), Ask(K, 112, 1)], frees]),
        is_once,
    );
}

/// A call sleeps while it converts a key. Meanwhile the number of the call's version becomes free,
/// and the policy comes back to the number that the key had. The slot then holds the words that the
/// call has read, under a version that the call does not know. The call leaves them to a later one.
#[test]
fn a_slow_conversion_ends_under_no_free_version() {
    let full = SlotPair { state: 300, ..EXPIRED };
    // In place, in place without room, and to another slot.
    for (version, neighbour) in [(2, EMPTY), (6, full), (6, EMPTY)] {
        let asleep =
            Vec::from([SetVersion(12), Free(K, 100), SetVersion(GENERATION + 1), Free(K, 100)]);
        let once: &[&[Act]] = &[&[SetVersion(version), Ask(K, 100, 1)]];
        // A key that comes back to a former number does so here as at the end of an override.
        let overrides = Some(Vec::new());
        let scene = Scene { asleep, overrides, ..scene(Deny, &[HELD, neighbour], once) };
        model("frees, number used again", 1, scene, move |played| {
            let is_freed = |change: &Change| change.new.key >> TAG_BITS == version;
            assert!(!played.changes.iter().any(is_freed), "{:?}", played.changes);
            assert_eq!((played.state(K), played.admitted(K)), (Some(120), 0));
        });
    }
}
