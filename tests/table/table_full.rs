//! What a full table does to honest keys, by `on_full`.

use crate::common::{policy, HOUR, SEC};
use tollbar::table::{OnFull, Options, PolicyId, Table};
use tollbar::Verdict;

/// Honest new keys, and a key that has used up its limit, while a stranger fills a table for
/// 100,000 keys with invented keys.
#[derive(Debug, PartialEq)]
struct Fate {
    /// The number of 140 new keys whose first request was refused.
    shut_out: u64,
    /// The number of the same keys that got more than their burst at once.
    above: u64,
    /// Permits of the key that was limited before the flood, beyond its burst.
    limited: u64,
    /// The permits that its rate gives it in the same time.
    earned: u64,
    /// Invented keys that were sent for each slot of the table.
    sent_per_slot: u64,
}

/// `rate` invented keys a second for three times as long as one of them owes; the new keys come in
/// the last third.
fn fate(on_full: OnFull, text: &str, rate: u64) -> Fate {
    let policy = policy(text);
    let table =
        Table::private(&Options::new(100_000).with_seed(7).with_on_full(on_full), &[policy])
            .unwrap();
    let (permit, first) = (policy.period / policy.limit, PolicyId::FIRST);
    let end = HOUR + 3 * permit;
    let admit = |key: &[u8], now| table.admit_at(first, key, now, 1) == Verdict::Allowed;
    let mut fate = Fate { shut_out: 0, above: 0, limited: 0, earned: 3, sent_per_slot: 0 };
    (0..policy.burst).for_each(|_| assert!(admit(b"limited", HOUR)));
    let (mut new_keys, mut step) = (0, 0);
    loop {
        let now = HOUR + step * SEC / rate;
        if now >= end {
            break;
        }
        admit(&step.to_le_bytes(), now);
        if step % 64 == 0 {
            fate.limited += u64::from(admit(b"limited", now));
        }
        if now >= end - permit + new_keys * permit / 140 {
            let key = format!("new key {new_keys}");
            new_keys += 1;
            let tries = (0..=policy.burst).filter(|_| admit(key.as_bytes(), now)).count() as u64;
            fate.shut_out += u64::from(tries == 0);
            fate.above += u64::from(tries > policy.burst);
        }
        step += 1;
    }
    assert_eq!(new_keys, 140);
    fate.sent_per_slot = step / table.stats().slots;
    fate
}

/// The reason for eviction as the default: a stranger who invents keys faster than their debts are
/// paid shuts out no other key. A limited key that owes no more than the invented ones is evicted
/// now and then, and then gets one more burst: less than once for as many invented keys as the
/// table has slots. docs/table.md has the figures that this test prints.
#[test]
fn a_stranger_who_fills_the_table_shuts_out_nobody() {
    assert_eq!(Options::new(1).on_full, OnFull::EvictNearest);
    for (text, rate) in [("5/min burst 3", 30_000), ("1/h", 100)] {
        let denied = fate(OnFull::Deny, text, rate);
        let evicted = fate(OnFull::EvictNearest, text, rate);
        println!(
            "{text}, {rate} invented keys a second: deny {denied:?}, evict-nearest {evicted:?}"
        );
        assert!(denied.shut_out >= 70 && denied.above == 0, "{denied:?}");
        assert_eq!((evicted.shut_out, evicted.above), (0, 0), "{text}");
        assert!(denied.limited <= denied.earned, "{text}: {denied:?}");
        assert!(evicted.limited <= evicted.earned + evicted.sent_per_slot, "{text}: {evicted:?}");
    }
}
