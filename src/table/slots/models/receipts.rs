//! Receipts: a settlement beside requests, other settlements, other keys in the slot, and changes
//! of the policy.

use super::*;

const K: Key = Key(7, By::Lent, [0, 1]);
const N: Key = Key(2, By::Fixed, [0, 1]);
const EMPTY: SlotPair = SlotPair { key: 0, state: 0 };
/// A slot of a key for which no thread makes requests, which expires last.
const OTHER: SlotPair = SlotPair { key: 1 << TAG_BITS | 0x80, state: 300 };

/// A slot of K, from which `cost` permits were taken at 100.
const fn charged(cost: u64) -> SlotPair {
    SlotPair { key: 7 << TAG_BITS | K.0, state: 100 + cost * PERMIT }
}

/// A scene in which the slot of K has a charge of `cost` at 100, with an open receipt.
fn paid(on_full: OnFull, cost: u64, neighbour: SlotPair, threads: &[&[Act]]) -> Scene {
    Scene {
        charges: Vec::from([(K, 100, cost)]),
        ..scene(on_full, &[charged(cost), neighbour], threads)
    }
}

impl Played {
    fn settlements(&self) -> impl Iterator<Item = Settled> + '_ {
        self.done().filter_map(|done| done.settled)
    }

    /// The permits that went back, after a check that no receipt was settled twice.
    fn returned(&self) -> u64 {
        for settled in self.settlements().filter(|settled| settled.first) {
            let number = settled.paper.number;
            let firsts =
                self.settlements().filter(|other| other.first && other.paper.number == number);
            assert_eq!(firsts.count(), 1, "receipt {number} was settled twice: {:?}", self.changes);
        }
        self.settlements().map(|settled| settled.back).sum()
    }

    /// Checks that at 100, when nothing refills, K lacks exactly what was taken and did not go
    /// back.
    fn balances(&self, before: u64) {
        let lacking = before + self.admitted(K) - self.returned();
        assert_eq!(self.state(K).map(full_at), Some(100 + lacking * PERMIT), "{:?}", self.changes);
    }
}

/// The first settlement of a receipt gives its permits back, whatever requests of the key run
/// beside it.
#[test]
fn a_settlement_beside_takes() {
    let settle: &[Act] = &[Settle(0, 100, 0)];
    let check = |played: &Played| {
        assert_eq!(played.returned(), 2);
        played.balances(2);
    };
    let takes: &[Act] = &[Ask(K, 100, 2), Ask(K, 100, 1)];
    model("settle, takes", 4, paid(OnFull::Deny, 2, EMPTY, &[settle, takes]), check);
    model(
        "settle, fast takes",
        4,
        paid(OnFull::Deny, 2, EMPTY, &[settle, &[Short(K, 100, 2)]]),
        check,
    );
    let threads: &[&[Act]] = &[settle, &[Ask(K, 100, 1)], &[Ask(K, 100, 2)]];
    model("settle, takes, 3×1", 2, paid(OnFull::Deny, 2, EMPTY, threads), check);
}

/// Of several settlements of one receipt one gives permits back, even if a request brings the state
/// of before back in between.
#[test]
fn a_receipt_is_settled_once() {
    let check = |played: &Played| {
        assert_eq!(played.settlements().filter(|settled| settled.first).count(), 1);
        played.balances(2);
    };
    let threads: &[&[Act]] = &[&[Settle(0, 100, 0), Ask(K, 100, 2)], &[Settle(0, 100, 1)]];
    model("settle twice", 4, paid(OnFull::Deny, 2, EMPTY, threads), check);
    let threads: &[&[Act]] = &[&[Settle(0, 100, 0)], &[Settle(0, 100, 0)], &[Ask(K, 100, 3)]];
    model("settle twice, take", 3, paid(OnFull::Deny, 2, EMPTY, threads), check);
}

/// E10: a return reads the state and the time, and sleeps. Another return and a request at a later
/// time bring the state back to the same value. Without turns the first return gives back what the
/// limit has refilled since, and four permits pass at 110.
#[test]
fn a_state_that_came_back_gives_nothing_twice() {
    let start = SlotPair { key: 7 << TAG_BITS | K.0, state: rules::lent(100 + 3 * PERMIT, 200) };
    let threads: &[&[Act]] = &[&[Settle(0, 100, 0)], &[Settle(1, 100, 0), Ask(K, 100 + PERMIT, 1)]];
    let charges = Vec::from([(K, 100, 2), (K, 100, 1)]);
    let scene = Scene { charges, ..scene(OnFull::Deny, &[start, EMPTY], threads) };
    // The fault needs two preemptions, so `make check`, which allows one, would not see it.
    model("settle beside settle and take", 3, scene, |played| {
        let left =
            (100 + PERMIT + 3 * PERMIT).saturating_sub(played.state(K).map_or(0, full_at)) / PERMIT;
        assert!(played.admitted(K) + left <= 3, "{left} left: {:?}", played.changes);
    });
}

/// New receipts take the places of old ones while those are settled. There are two places.
#[test]
fn new_receipts_beside_settlements() {
    let threads: &[&[Act]] =
        &[&[Take(K, 100, 1), SettleOwn(100, 0)], &[Take(K, 100, 1), Settle(0, 100, 0)]];
    model("settle, take", 3, paid(OnFull::Deny, 1, EMPTY, threads), |played| played.balances(1));
    // Receipt 2 has the place and the check of receipt 0, which is settled again beside it.
    let twice: &[Act] = &[Settle(0, 100, 0), Settle(0, 100, 0)];
    let takes: &[Act] = &[Take(K, 100, 1), Take(K, 100, 1)];
    model("settle twice, takes", 3, paid(OnFull::Deny, 1, EMPTY, &[twice, takes]), |played| {
        played.balances(1)
    });
    let takes: &[Act] = &[Take(K, 100, 1), Take(K, 100, 1), SettleOwn(100, 0)];
    model(
        "settle, takes",
        3,
        paid(OnFull::Deny, 1, EMPTY, &[takes, &[Settle(0, 100, 0)]]),
        |played| {
            played.balances(1);
            // The take that opened receipt 2 returned before the own receipt was settled, so that
            // one is open.
            assert!(played
                .done()
                .all(|done| !matches!(done.act, SettleOwn(..)) || done.settled.is_some()));
        },
    );
}

/// Another key takes the slot. The settlement lowers no debt of that key, and its slot keeps its
/// time.
#[test]
fn a_settlement_beside_another_key() {
    let evict: &[Act] = &[Ask(N, 100, 1)];
    let threads: &[&[Act]] = &[&[Settle(0, 100, 0)], evict];
    model("settle, evicted", 4, paid(OnFull::EvictNearest, 3, OTHER, threads), |played| {
        assert_eq!(played.state(N), Some(130 * FINE));
        played.returned();
    });
    model(
        "settle, expired",
        4,
        paid(OnFull::Deny, 1, OTHER, &[&[Settle(0, 105, 0)], &[Ask(N, 120, 1)]]),
        |played| {
            assert_eq!(played.state(N), Some(130 * FINE));
        },
    );
    // The slot goes to N and back to K. By then the limit has refilled the charge, so nothing of it
    // goes back.
    let there_and_back: &[Act] = &[Ask(N, 130, 1), Ask(K, 150, 2)];
    model(
        "settle, evicted, back",
        4,
        paid(OnFull::Deny, 3, OTHER, &[there_and_back, &[Settle(0, 100, 0)]]),
        |played| {
            assert!(
                played.admitted(K) == 0 || played.state(K) == Some(150 + 2 * PERMIT),
                "{:?}",
                played.changes
            );
        },
    );
    let threads: &[&[Act]] =
        &[&[Settle(0, 100, 0), Ask(K, 100, 3)], &[Reset(K, 100), Ask(K, 100, 1)]];
    model("settle, reset", 3, paid(OnFull::Deny, 2, EMPTY, threads), |played| {
        // The reset forgives what K has taken until then. Without it, K has three permits and those
        // that went back.
        assert!(played.admitted(K) <= 1 + 2 + 3, "{:?}", played.changes);
        assert!(
            played.state(K).is_some_and(|state| full_at(state) >= 100 + PERMIT),
            "{:?}",
            played.changes
        );
    });
}

/// The policy changes to one that refills ten times as slowly. The settlement must not count the
/// refill since the charge by the new rate.
#[test]
fn a_settlement_beside_set_policy() {
    let change: &[Act] = &[SetVersion(8), Ask(K, 120, 2)];
    let check = |played: &Played| {
        // At 120 two of the three permits are refilled.
        let back = played.returned();
        assert!(
            back <= 1,
            "{back} permits went back, and 1 was not refilled yet: {:?}",
            played.changes
        );
        assert_eq!(played.admitted(K), 2);
        assert_eq!(played.state(K), Some(120 + (3 - back) * SLOW), "{:?}", played.changes);
    };
    model(
        "settle, set_policy",
        4,
        paid(OnFull::Deny, 3, EMPTY, &[change, &[Settle(0, 120, 0)]]),
        check,
    );
    let threads: &[&[Act]] = &[&[SetVersion(8)], &[Ask(K, 120, 2)], &[Settle(0, 120, 0)]];
    model("settle, set_policy, 3×1", 3, paid(OnFull::Deny, 3, EMPTY, threads), |played| {
        assert!(played.returned() <= 1, "{:?}", played.changes);
    });
}
