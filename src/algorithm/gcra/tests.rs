use super::lease::Lease;
use super::*;
use crate::algorithm::facts::Facts;
use proptest::prelude::*;

/// The bucket for words of slots.
pub(super) fn in_slots(mut bucket: Gcra) -> Gcra {
    bucket.enter_slots();
    bucket
}

fn gcra(text: &str) -> Gcra {
    Gcra::new(&text.parse().expect("a policy")).expect("a bucket")
}

/// The least time of the leases.
const LEAST: u64 = 1 << 27;

/// Costs above the burst and times after the last get no credit.
#[test]
fn a_lease_is_refused_where_a_step_is() {
    let now = 1 << 40;
    let bucket = gcra("1000/s burst 32");
    assert!(bucket.lease(0, now, 1, 4, LEAST).is_some());
    // A cost whose charge wraps to that of one permit.
    let permit = bucket.grid().per_permit().get();
    let wraps = (u64::MAX / (permit & permit.wrapping_neg())).wrapping_add(2);
    assert_eq!(wraps.wrapping_mul(permit), permit, "{permit}");
    for cost in [33, wraps, u64::MAX] {
        assert_eq!(bucket.lease(0, now, cost, 4, LEAST), None, "{cost}");
    }
    let last = bucket.last_time();
    let lease = bucket.lease(0, last, 1, 4, LEAST).expect("a lease at the last time");
    assert_eq!(lease.until, last + 1);
    assert_eq!(bucket.lease(0, last + 1, 1, 4, LEAST), None);
    assert_eq!(bucket.lease(0, u64::MAX, 1, 4, LEAST), None);
}

/// Fresh buckets and used ones, with room for credit and without.
#[test]
fn a_lease_is_an_eighth_of_the_burst_or_134_ms() {
    const MS: u64 = 1_000_000;
    let now = 1 << 40;
    let small = gcra("1000/s burst 800");
    let word = |owed: u64| small.grid().units(now) + owed * small.grid().per_permit().get();
    // The bucket's debt and the cost. Then: the debt after the charge, credit included; the credit;
    // the time until which it is valid.
    for (state, cost, owed, credit, until) in [
        (0, 1, 143, 43, 100 * MS),
        (word(0), 1, 143, 43, 100 * MS),
        (word(50), 50, 143, 43, 100 * MS),
        (word(0), 300, 331, 31, 300 * MS),
        (word(200), 100, 331, 31, 300 * MS),
        (word(700), 84, 785, 1, 784 * MS),
    ] {
        let lease = small.lease(state, now, cost, u64::MAX, LEAST).expect("a lease");
        assert_eq!(lease, Lease { next: word(owed), credit, until: now + until });
        let least = small.lease(state, now, cost, 1, LEAST).expect("a lease");
        assert_eq!(least, Lease { next: word(owed - credit + 1), credit: 1, until: now + until });
    }
    for (state, cost) in [(word(700), 85), (word(700), 100), (word(700), 101), (word(1), 800)] {
        assert_eq!(small.lease(state, now, cost, u64::MAX, LEAST), None, "{cost}");
    }
    assert_eq!(small.lease(0, now, 1, 0, LEAST), None);
    // Without a least time a full bucket is charged only for the cost and the credit.
    let lease = small.lease(0, now, 1, u64::MAX, 0);
    assert_eq!(lease, Some(Lease { next: word(50), credit: 49, until: now + MS }));
    let large = gcra("1000/s burst 8000").lease(0, now, 1, u64::MAX, LEAST).expect("a lease");
    assert_eq!((large.until - now, large.credit), (1 << 27, 491));
}

fn policies() -> impl Strategy<Value = Policy> {
    let rates = prop_oneof![
        Just((10, 1_000_000_000)),
        Just((44_100, 1_000_000_000)),
        Just((7, 3)),
        (1..1u64 << 40, 1..1u64 << 50)
    ];
    (rates, prop_oneof![1..10u64, 1..1u64 << 40], 0..4u32).prop_map(
        |((limit, period), burst, short)| {
            let mut policy = Policy::new(limit, period).with_burst(burst);
            if short == 0 {
                policy.init = burst / 2;
            }
            policy
        },
    )
}

/// Times around the last one, the zero and any other.
fn times(last: u64) -> impl Strategy<Value = u64> {
    prop_oneof![2 => 0..=last, 1 => last.saturating_sub(2)..=last.saturating_add(2), 1 => 0..3u64, 1 => Just(u64::MAX)]
}

/// A bucket, its word, a time and a cost. Most words have a debt of up to the burst at that time,
/// and some are of other times.
fn cases() -> impl Strategy<Value = (Gcra, u64, u64, u64)> {
    let buckets =
        policies().prop_filter_map("a policy that compiles", |policy| Gcra::new(&policy).ok());
    buckets.prop_flat_map(|bucket| {
        let burst = bucket.burst;
        let costs = prop_oneof![0..=burst + 1, 0..3u64, Just(u64::MAX)];
        let words = (any::<bool>(), 0..=burst, any::<u64>(), 0..8u32);
        (Just(bucket), words, times(bucket.last), costs).prop_map(
            |(bucket, (whole, owed, any, other), now, cost)| {
                let permit = bucket.grid.per_permit().get();
                let owed = if whole { owed * permit } else { any % (bucket.tolerance + 2) };
                let word = match other {
                    0 => 0,
                    1 => any,
                    _ => bucket.grid.units(now).saturating_add(owed),
                };
                (bucket, word, now, cost)
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    /// `step`, `Plain::step` and `describe` have fast paths. These decide as the general code does.
    /// `Plain::step` decides exactly for whole-unit buckets that start full, words below 2^63,
    /// times up to the last one, and costs from 1 to the burst.
    #[test]
    fn short_ways_are_right((bucket, state, now, cost) in cases()) {
        let step = bucket.step_of_all(state, now, cost);
        prop_assert_eq!(in_slots(bucket).step(state, now, cost), step);
        if bucket.floors.is_lowered(state) {
            return Ok(());
        }
        prop_assert_eq!(bucket.step(state, now, cost), step);
        let plain = bucket.grid.whole().is_some() && bucket.lacking == 0 && now <= bucket.last && (1..=bucket.burst).contains(&cost);
        match bucket.plain.step(state, now, cost) {
            Some(next) => prop_assert!(plain && next == step.next && (next.is_some() == (step.verdict == Verdict::Allowed))),
            None => prop_assert!(!plain),
        }
        let next = step.next.unwrap_or(state);
        prop_assert_eq!(bucket.describe(step.verdict, next, now, cost), describe(&bucket, step.verdict, next, now, cost));
    }

    /// Twice the burst can be added to the clock up to the last time, and the last time is the
    /// latest for which that is so.
    #[test]
    fn the_last_time_leaves_room((bucket, _, _, _) in cases()) {
        let Gcra { grid, tolerance, last, .. } = bucket;
        let room = |now: u64| now < grid.max_now() && u128::from(grid.units(now)) + 2 * u128::from(tolerance) < u128::from(if bucket.floors.exist() { TAT_MOST } else { u64::MAX });
        prop_assert!(last <= LAST && room(last), "{last}");
        prop_assert!(last == LAST || !room(last + 1), "{last}");
        let early = bucket.ending_at(last / 2);
        prop_assert_eq!((early.last, early.plain.end), (last / 2, if bucket.plain.end == 0 { 0 } else { last / 2 + 1 }));
        prop_assert_eq!(bucket.ending_at(u64::MAX), bucket);
    }

    /// Of two words of a plain bucket that differ by `gap`, the greater one expires later.
    #[test]
    fn words_with_a_gap_expire_in_turn((bucket, state, now, _) in cases()) {
        let first = bucket.expires_at(state);
        if bucket.plain.end != 0 && state <= TAT_MOST {
            let gap = bucket.plain.gap();
            prop_assert_eq!(gap, bucket.grid.units_up(1));
            let second = bucket.expires_at(state.saturating_add(gap).min(TAT_MOST));
            prop_assert!(state == 0 || first == NEVER || first < second, "{first} {second}");
        }
        if bucket.plain.end != 0 && state <= TAT_MOST && state != 0 && now <= bucket.last {
            let expired = bucket.plain.expired_before(state, now);
            prop_assert!(!expired || first <= now, "{first}");
            prop_assert!(expired || first == NEVER || first.saturating_add(8) > now, "{first}");
        }
    }
}
