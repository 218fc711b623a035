//! Keys with a policy of their own: one is set, changed and ended beside requests of the key and
//! beside changes of its policy.

use super::*;
use crate::table::memory::special::{SpecialCounts, GROUP};
use crate::table::slots::overrides::OverridePlaces;
use loom::sync::atomic::AtomicI64;

const K: Key = Key(1, By::Changing, [0, 1]);
/// A key with the places of K.
const M: Key = Key(2, By::Changing, [0, 1]);
const EMPTY: SlotPair = SlotPair::EMPTY;
/// Two permits of a key under version 1, which it has taken.
const TAKEN: SlotPair = SlotPair { key: 1 << TAG_BITS | K.0, state: 120 };

/// A map with room for one hash, and the references that `Policies::set_override` would hold of
/// each version.
pub(super) struct Map {
    places: Vec<Slot>,
    counts: SpecialCounts,
    references: [AtomicI64; 8],
}

impl Map {
    pub(super) fn new(weak: bool, keys: &[(Key, u64)]) -> Map {
        let journal = std::sync::Arc::new(Journal::new(weak));
        let places = (0..2 * GROUP).map(|number| Slot::new(number, EMPTY, &journal)).collect();
        let references = core::array::from_fn(|_| AtomicI64::new(0));
        let map = Map { places, counts: SpecialCounts::new(), references };
        keys.iter().for_each(|&(Key(tag, ..), version)| map.set(tag, version));
        map
    }

    fn places(&self, tag: u64) -> OverridePlaces<'_> {
        OverridePlaces::of(&self.places, &self.counts, tag << 56).expect("places")
    }

    fn release(&self, version: u64) {
        self.references[version as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// Like `Policies::stamp_for`. A version's number is its stamp.
    pub(super) fn lookup(&self, tag: u64) -> Option<u64> {
        match self.counts.read().has_overrides() {
            true => self.places(tag).lookup(),
            false => None,
        }
    }

    /// Like `Policies::set_override`.
    pub(super) fn set(&self, tag: u64, version: u64) {
        self.references[version as usize].fetch_add(1, Ordering::Relaxed);
        self.places(tag).put(version, 2, &|old| self.release(old)).expect("room");
    }

    pub(super) fn clear(&self, tag: u64) {
        self.places(tag).clear(&|old| self.release(old));
    }

    /// The places at the end, after a check that each version has as many references as keys, and
    /// that the count of overrides is right.
    pub(super) fn end(&self) -> Vec<SlotPair> {
        let used: Vec<SlotPair> =
            self.places.iter().map(Slot::pair).filter(|pair| pair.key != 0).collect();
        assert_eq!(self.counts.read().overrides(), used.len() as u64, "{used:?}");
        for (version, references) in self.references.iter().enumerate() {
            let keys = used.iter().filter(|pair| pair.state == version as u64).count();
            assert_eq!(
                references.load(Ordering::Relaxed),
                keys as i64,
                "references of version {version}: {used:?}"
            );
        }
        used
    }
}

fn own(slots: &[SlotPair], threads: &[&[Act]]) -> Scene {
    Scene { overrides: Some(Vec::new()), ..scene(OnFull::Deny, slots, threads) }
}

impl Played {
    /// The key's own version at the end.
    fn own(&self) -> Option<u64> {
        assert!(self.overrides.len() <= 1, "a key has two overrides: {:?}", self.overrides);
        self.overrides.first().map(|pair| pair.state)
    }

    /// The versions under which the requests of a thread were decided after its first act that
    /// `is_it` accepts.
    fn versions_after(&self, is_it: fn(&Act) -> bool) -> impl Iterator<Item = u64> + '_ {
        let after = move |acts: &Vec<Done>| {
            let from = acts.iter().position(|done| is_it(&done.act)).unwrap_or(acts.len());
            acts[from..]
                .iter()
                .filter(|done| done.outcome.is_some())
                .map(|done| done.key >> TAG_BITS)
                .collect()
        };
        self.threads.iter().flat_map(move |(_, acts)| -> Vec<u64> { after(acts) })
    }

    /// At 100 K lacks exactly what was taken.
    fn sums(&self, before: u64) {
        let state =
            self.last().iter().find(|pair| related(pair.key, TAKEN.key)).map(|pair| expires(*pair));
        let lacking = before + self.admitted(K);
        assert_eq!(state, (lacking != 0).then_some(100 + lacking * PERMIT), "{:?}", self.changes);
    }
}

/// After a call has set a key's policy, its requests are decided under it, and their charges add up
/// with those from before.
#[test]
fn an_override_beside_requests() {
    let set: &[Act] = &[Own(K, 3), Ask(K, 100, 1)];
    let ask: &[Act] = &[Ask(K, 100, 1), Ask(K, 100, 1)];
    let check = |played: &Played| {
        assert_eq!(played.own(), Some(3));
        assert!(played.versions_after(|act| matches!(act, Own(..))).all(|version| version == 3));
        // Two permits under the policy, three under the key's own.
        assert!((2..=3).contains(&played.admitted(K)));
        played.sums(0);
    };
    model("override, set", 3, own(&[EMPTY, EMPTY], &[set, ask]), check);
    model(
        "override, set, 3×1",
        2,
        own(&[EMPTY, EMPTY], &[set, &[Ask(K, 100, 1)], &[Ask(K, 100, 1)]]),
        check,
    );
    model("override, set, owing", 3, own(&[TAKEN, EMPTY], &[set, &[Short(K, 100, 1)]]), |played| {
        assert_eq!(played.admitted(K), 1);
        played.sums(2);
    });
    let threads: &[&[Act]] =
        &[&[Own(K, 3), Ask(K, 100, 1), End(K), Ask(K, 100, 1)], &[Ask(K, 100, 1)]];
    model("override, set and ended", 3, own(&[EMPTY, EMPTY], threads), |played| {
        assert_eq!(played.own(), None);
        assert!(played.versions_after(|act| matches!(act, End(_))).all(|version| version == 1));
        played.sums(0);
    });
}

/// Two calls set policies of their own for one key: the key has one of them, and never that of all
/// keys after either call has returned.
#[test]
fn an_override_beside_an_override() {
    let threads: &[&[Act]] = &[&[Own(K, 3), Ask(K, 100, 1)], &[Own(K, 2), Ask(K, 100, 1)]];
    model("override, two", deep(4), own(&[EMPTY, EMPTY], threads), |played| {
        assert!(matches!(played.own(), Some(2 | 3)));
        assert!(played.versions_after(|act| matches!(act, Own(..))).all(|version| version != 1));
        played.sums(0);
    });
    // M has the first place, so the first call takes the second one. The second call takes the
    // first place, which M leaves, and empties the second. A lookup beside that sees the first
    // place too early and the second one too late.
    let threads: &[&[Act]] = &[&[Own(K, 3), Ask(K, 100, 0)], &[End(M), Own(K, 2)]];
    let scene = Scene { overrides: Some(Vec::from([(M, 3)])), ..own(&[EMPTY, EMPTY], threads) };
    model("override, two, freed", deep(4), scene, |played| {
        assert!(matches!(played.own(), Some(2 | 3)));
        assert!(played.versions_after(|act| matches!(act, Own(..))).all(|version| version != 1));
    });
}

/// One call ends what another sets: the key has one policy of its own or none, and each version as
/// many references as keys.
#[test]
fn an_override_beside_its_end() {
    let threads: &[&[Act]] = &[&[Own(K, 3), Ask(K, 100, 1)], &[End(K), Ask(K, 100, 1)]];
    model("override, ended", 4, own(&[EMPTY, EMPTY], threads), |played| {
        assert!(matches!(played.own(), None | Some(3)));
        played.sums(0);
    });
    let threads: &[&[Act]] = &[&[Own(K, 3)], &[Own(K, 2)], &[End(K)]];
    model("override, two, ended", 2, own(&[EMPTY, EMPTY], threads), |played| {
        played.own();
    });
}

/// The policy of all keys changes beside a call that sets a key's own, and beside one that ends it.
#[test]
fn an_override_beside_set_policy() {
    let threads: &[&[Act]] = &[&[SetVersion(2), Ask(K, 100, 1)], &[Own(K, 3), Ask(K, 100, 1)]];
    model("override, set_policy", deep(4), own(&[EMPTY, EMPTY], threads), |played| {
        assert_eq!(played.own(), Some(3));
        assert!(played.versions_after(|act| matches!(act, Own(..))).all(|version| version == 3));
        assert!(played
            .versions_after(|act| matches!(act, SetVersion(_)))
            .all(|version| version != 1));
        played.sums(0);
    });
    let threads: &[&[Act]] =
        &[&[SetVersion(2), Ask(K, 100, 1)], &[Own(K, 3), End(K), Ask(K, 100, 1)]];
    model("override, set_policy, ended", deep(3), own(&[TAKEN, EMPTY], threads), |played| {
        assert_eq!((played.own(), played.admitted(K) <= 1), (None, true));
        assert!(played.versions_after(|act| matches!(act, End(_))).all(|version| version != 3));
        played.sums(2);
    });
    // A key that owes for a shorter time under its own policy moves to another slot, once.
    let threads: &[&[Act]] = &[&[Own(K, 6), Ask(K, 100, 1)], &[SetVersion(2), Ask(K, 100, 1)]];
    model("override, moves", deep(3), own(&[TAKEN, EMPTY], threads), |played| {
        let places = played.last().iter().filter(|pair| pair.key != 0 && pair.key & TAG == K.0);
        assert!(places.count() <= 1, "{:?}", played.changes);
    });
}
