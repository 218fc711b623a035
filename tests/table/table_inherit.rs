//! A full table under `inherit`: a new key takes the slot of another key, which then begins anew.
//! The permits that the other key gains are bounded.

use crate::common::*;
use tollbar::table::{OnFull, Options, PolicyId, Table};

const FIRST: PolicyId = PolicyId::FIRST;
const BURST: u64 = 4;
/// The refill of a permit.
const PERMIT: u64 = HOUR;

fn table(seed: u64) -> Table {
    let options = Options::new(1).with_seed(seed).with_on_full(OnFull::Inherit);
    Table::private(&options, &[policy("1/h burst 4")]).unwrap()
}

/// Keys that a bucket of their own each would limit, beside the table's decisions.
struct Keys {
    /// When each key's own bucket would be full.
    full_at: Vec<u64>,
    /// The most that one admission was above its key's own bucket, and the sum, as times.
    most: u64,
    sum: u64,
}

impl Keys {
    fn new(count: usize) -> Keys {
        Keys { full_at: vec![0; count], most: 0, sum: 0 }
    }

    fn request(&mut self, table: &Table, key: usize, now: u64, cost: u64) -> bool {
        let admitted = table.check_at(FIRST, &(key as u64).to_le_bytes(), now, cost).is_allowed();
        if admitted {
            let full_at = &mut self.full_at[key];
            *full_at = (*full_at).max(now) + cost * PERMIT;
            let gained = full_at.saturating_sub(now + BURST * PERMIT);
            *full_at -= gained;
            self.most = self.most.max(gained);
            self.sum += gained;
        }
        admitted
    }
}

/// The new key is judged by the debt, so it takes a slot only whose debt leaves room for its cost.
/// The key that loses the slot had at most the burst less that cost in debt. If one of its other
/// slots is free when it comes back, it has lost that debt: it gains burst − 1 permits.
#[test]
fn a_key_whose_slot_was_inherited_gains_less_than_a_burst() {
    for (debt, gained) in [(BURST - 1, BURST - 1), (BURST, 0)] {
        let table = table(1);
        let mut keys = Keys::new(40_000);
        let now = 100 * DAY;
        // Four fifths of the slots have the debt, and the others are free.
        for key in 0..4_100 {
            keys.request(&table, key, now, debt);
        }
        for key in 4_100..6_000 {
            keys.request(&table, key, now, 1);
        }
        for key in 0..4_100 {
            keys.request(&table, key, now, BURST);
        }
        let inherited = table.stats().inherited;
        assert!(inherited > 20, "{inherited} slots were taken over");
        assert_eq!(keys.most, gained * PERMIT, "debts of {debt}");
        assert!(keys.sum <= inherited * (BURST - 1) * PERMIT);
    }
}

/// Random requests of more keys than the table has slots: no admission is further above its key's
/// own bucket than a burst less one permit, and all of them together no further than so much for
/// each slot that was taken over.
#[test]
fn inherited_slots_bound_what_all_keys_gain() {
    let mut nearest = 0;
    for seed in 0..4 {
        for live in [4_000, 5_500, 9_000] {
            let table = table(seed + 2);
            let mut keys = Keys::new(live);
            let mut rng = Rng(seed + 1);
            let mut now = 100 * DAY;
            for _ in 0..rounds(100_000) {
                now += rng.below(3 * HOUR) / live as u64;
                keys.request(&table, rng.below(live as u64) as usize, now, rng.within(1, BURST));
            }
            let inherited = table.stats().inherited;
            assert!(keys.most <= (BURST - 1) * PERMIT, "{} ns", keys.most);
            assert!(
                keys.sum <= inherited * (BURST - 1) * PERMIT,
                "{} ns for {inherited} slots",
                keys.sum
            );
            nearest = nearest.max(keys.most);
            println!(
                "{live} keys: {inherited} slots taken over, the most that one gained is {:.2} permits",
                keys.most as f64 / PERMIT as f64
            );
        }
    }
    // A tenth of the rounds comes less near.
    assert!(is_short() || nearest > PERMIT, "a key gains more than a permit: {nearest} ns");
}
