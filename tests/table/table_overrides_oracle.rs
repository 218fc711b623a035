//! Overrides that are set, changed and cleared at random between requests, against a model of whole
//! nanoseconds: every verdict and every number of remaining permits is exact.

use crate::common::{policy, rounds, Rng, DAY, HOUR, SEC};
use tollbar::table::{Keep, OnFull, Options, PolicyId, Table};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 40 * DAY;
const KEYS: usize = 5;
/// A permit of each takes a whole number of nanoseconds, so the library rounds nothing.
const TEXTS: [&str; 8] = [
    "10/s",
    "10/s burst 100",
    "2/min burst 7",
    "1/h burst 3",
    "1000/s burst 50",
    "5/s burst 1",
    "8/s burst 40",
    "4/h",
];

/// A policy that a key can be under: its text, what a key keeps when it begins, and whether it is
/// an override.
#[derive(Clone, Copy, PartialEq)]
struct Terms {
    policy: Policy,
    keep: Keep,
    is_override: bool,
    /// The number of the change that made it the table's policy. Equal overrides have one number.
    change: u32,
}

#[derive(Clone, Copy)]
struct Key {
    terms: Terms,
    /// When the bucket is full.
    full: u64,
}

struct Model {
    table: Terms,
    overrides: [Option<Terms>; KEYS],
    keys: [Option<Key>; KEYS],
}

impl Terms {
    fn permit(&self) -> u64 {
        self.policy.period / self.policy.limit
    }

    fn left(&self, full: u64, now: u64) -> u64 {
        (self.permit() * self.policy.burst).saturating_sub(full.saturating_sub(now)) / self.permit()
    }
}

impl Model {
    /// The time at which the key's bucket is full, after the key has come under its present policy.
    fn full(&mut self, key: usize, now: u64) -> (Terms, u64) {
        let now_under = self.overrides[key].unwrap_or(self.table);
        let Some(had) = self.keys[key].filter(|had| had.full > now) else {
            return (now_under, now);
        };
        if had.terms == now_under {
            return (now_under, had.full);
        }
        let keep = if had.terms.is_override && !now_under.is_override {
            had.terms.keep
        } else {
            now_under.keep
        };
        let full = match keep {
            Keep::Reset => now,
            _ if had.terms.policy == now_under.policy => had.full,
            Keep::Time => had.full,
            Keep::Count => {
                // The permits that are left and the debt, to a nanosecond of the new refill.
                let (old, new) = (had.terms.permit(), now_under.permit());
                let (line, most) =
                    (now + had.terms.policy.burst * old, now_under.policy.burst * new);
                let scaled = |nanos: u64| u128::from(nanos) * u128::from(new);
                match line.checked_sub(had.full.max(now)) {
                    Some(left) => now + most - most.min((scaled(left) / u128::from(old)) as u64),
                    None => {
                        now + most
                            + most.min(scaled(had.full - line).div_ceil(u128::from(old)) as u64)
                    }
                }
            }
        };
        self.keys[key] = (full > now).then_some(Key { terms: now_under, full });
        (now_under, full)
    }

    fn check(&mut self, key: usize, now: u64, cost: u64) -> (Verdict, u64) {
        let (terms, full) = self.full(key, now);
        let left = terms.left(full, now);
        if cost > terms.policy.burst {
            return (Verdict::Never, left);
        }
        let next = full + cost * terms.permit();
        if next > now + terms.policy.burst * terms.permit() {
            return (Verdict::Denied, left);
        }
        self.keys[key] = Some(Key { terms, full: next });
        (Verdict::Allowed, left - cost)
    }
}

fn keep(rng: &mut Rng) -> Keep {
    [Keep::Count, Keep::Count, Keep::Time, Keep::Reset][rng.below(4) as usize]
}

#[test]
fn every_answer_is_the_models() {
    let rng = &mut Rng(21);
    let (mut allowed, mut denied, mut changes) = (0u64, 0u64, 0u32);
    for round in 0..rounds(400) {
        let on_full = [OnFull::EvictNearest, OnFull::Inherit, OnFull::Deny][round as usize % 3];
        let first = policy(rng.pick(&TEXTS));
        let options = Options::new(1).with_seed(round).with_on_full(on_full);
        let table = Table::private(&options, &[first]).expect("memory");
        let mut model = Model {
            table: Terms { policy: first, keep: Keep::Count, is_override: false, change: 0 },
            overrides: [None; KEYS],
            keys: [None; KEYS],
        };
        let mut now = NOW;
        for step in 0..300u32 {
            let key = rng.below(KEYS as u64) as usize;
            let name = &[key as u8];
            match rng.below(12) {
                0 => {
                    let (policy, keep) = (policy(rng.pick(&TEXTS)), keep(rng));
                    table.set_override(FIRST, name, &policy, keep).expect("an override");
                    let new = Some(Terms { policy, keep, is_override: true, change: 0 });
                    if keep == Keep::Reset {
                        model.keys[key] = None;
                    }
                    model.overrides[key] = new;
                    changes += 1;
                }
                1 => {
                    let had = model.overrides[key].take();
                    assert_eq!(table.clear_override(FIRST, name), Ok(had.is_some()));
                    if had.is_some_and(|had| had.keep == Keep::Reset) {
                        model.keys[key] = None;
                    }
                    changes += u32::from(had.is_some());
                }
                2 if rng.one_in(4) => {
                    let (policy, keep) = (policy(rng.pick(&TEXTS)), keep(rng));
                    table.set_policy_keeping(FIRST, &policy, keep).expect("a version");
                    if model.table.policy != policy || keep == Keep::Reset {
                        model.table = Terms { policy, keep, is_override: false, change: step + 1 };
                        // All keys under the policy begin anew, whether they make a request before
                        // the next change or not.
                        let reset =
                            |key: &usize| keep == Keep::Reset && model.overrides[*key].is_none();
                        (0..KEYS).filter(reset).for_each(|key| model.keys[key] = None);
                    }
                }
                3 => {
                    let (terms, full) = model.full(key, now);
                    let decision = table.peek_at(FIRST, name, now, 1);
                    assert_eq!(
                        decision.remaining,
                        terms.left(full, now),
                        "a peek in step {step} of round {round}"
                    );
                }
                4 => {
                    let most = rng.within(1, 60);
                    let (terms, full) = model.full(key, now);
                    let there = terms.left(full, now).min(most);
                    assert_eq!(
                        table.take_up_to_at(FIRST, name, now, most),
                        there,
                        "step {step} of round {round}"
                    );
                    if there != 0 {
                        let _ = model.check(key, now, there);
                    }
                }
                _ => {
                    let cost = rng.within(1, 4);
                    let wanted = model.check(key, now, cost);
                    let decision = table.check_at(FIRST, name, now, cost);
                    assert_eq!(
                        (decision.verdict, decision.remaining),
                        wanted,
                        "a check in step {step} of round {round}"
                    );
                    allowed += u64::from(decision.is_allowed());
                    denied += u64::from(!decision.is_allowed());
                }
            }
            let most = rng.pick(&[2, SEC / 20, SEC, 40 * SEC, HOUR]);
            now += rng.below(most);
        }
        assert_eq!(table.overrides().count(), model.overrides.iter().flatten().count());
        assert!(table.validate(now).is_sound());
    }
    // Each case occurred often.
    assert!(allowed > 1000 && denied > 1000 && changes > 500, "{allowed} {denied} {changes}");
}
