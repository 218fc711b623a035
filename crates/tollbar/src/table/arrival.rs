//! The short way for a newcomer whose candidates are all under its own policy, one of them expired or empty.
//!
//! That is what a flood of fresh keys meets. [`super::protocol`] works out when each candidate expires; here their words
//! are compared instead, without a branch, and only the least is worked out. It is the same candidate: the greater word of
//! a token bucket expires no sooner, and where two are so close that they may expire at one time, where order would
//! decide, or where anything else is out of the ordinary, nothing is chosen, and the long way asked.
//!
//! Where the policy is a plain one there are two ways that are shorter still ([`Table::arrive_shortly`]): where a candidate is empty, whoever
//! has the others, since no word but that of an empty slot expires at the beginning of time; and where none is.

use super::compiled::Version;
use super::home::{Home, TAG_BITS};
use super::lines::Of;
use super::quick::Course;
use super::slot::{Bucket, Pair, Slot, SLOTS};
use super::twelve::{first_empty, foremost, is_strange, least};
use super::Table;
use crate::algorithm::gcra::Gcra;
use crate::algorithm::{Algorithm, Rule, Step};
use crate::decision::Verdict;

impl Table {
    /// [`Table::arrive`] under a plain policy, as far as most newcomers go: into a table that has room, or that floods of their own have
    /// filled; it is counted. The state after it. `None`: nothing has been changed, and the key may be there.
    #[inline(always)]
    pub(super) fn arrive_shortly(
        &self,
        version: &Version,
        home: &Home<'_>,
        key: u64,
        now: u64,
        cost: u64,
    ) -> Option<u64> {
        let state = version.plain.step(0, now, cost)??;
        // The last that is taken of all slots: empty in a table that is not as full as it was made for.
        let (slot, was, count) = if home.spare.0.last()?.key() == 0 {
            (first_empty(home, key)?, Pair::EMPTY, Of::Inserted)
        } else {
            let buckets = [home.first, home.second, home.spare];
            let (place, word) = foremost(buckets, key, version.plain.apart())?;
            let slot = buckets.get(place / SLOTS)?.0.get(place % SLOTS)?;
            // Whose it is now: whoever has it with that word, under the same version, has expired with it.
            let was = slot.key();
            let kin = (was ^ key).wrapping_sub(1) >> TAG_BITS == 0;
            if !kin || !version.plain.expired_before(word, now) {
                return None;
            }
            (slot, Pair { key: was, state: word }, Of::Reclaimed)
        };
        slot.swap(was, Pair { key, state }).ok()?;
        self.count_newcomer(version.policy, count);
        Some(state)
    }

    /// Whether a key is in none of its places, and there is one for it that nobody has ever had. `false` may be either.
    #[inline(never)]
    pub(super) fn is_new(&self, key: u64, second: &Bucket) -> bool {
        first_empty(&self.home_with(key, second), key).is_some()
    }

    /// Admits a key that was in none of its buckets, puts it there and counts it; or nothing has been changed.
    #[inline(never)]
    pub(super) fn arrive(&self, version: &Version, home: &Home<'_>, now: u64, cost: u64) -> (Course, u64) {
        let Rule::Gcra(gcra) = &version.rule else { return (Course::Absent, 0) };
        let key = version.key | home.tag;
        let Some((slot, seen)) = first_by_word(home, key, gcra) else { return (Course::Absent, 0) };
        if gcra.expires_at(seen.state) > now {
            return (Course::Absent, 0);
        }
        let Step { verdict: Verdict::Allowed, next: Some(state) } = gcra.step(0, now, cost) else {
            return (Course::Absent, 0);
        };
        // The slot's time does not become earlier: what was in it expired by `now`, and what begins at `now` expires later.
        if slot.swap(seen, Pair { key, state }).is_err() {
            return (Course::Unusual, 0);
        }
        self.count_newcomer(version.policy, if seen.key == 0 { Of::Inserted } else { Of::Reclaimed });
        (Course::Decided(Verdict::Allowed), state)
    }
}

/// The candidate that [`super::protocol::first_to_expire`] chooses, or none.
#[inline(always)]
fn first_by_word<'a>(home: &Home<'a>, key: u64, gcra: &Gcra) -> Option<(&'a Slot, Pair)> {
    let least = least(home, key, gcra.apart())?;
    // The fresh word has expired for ever, so the first of those is the one. Of others there may be only one about: and words
    // that are as good as fresh by their time have, as it were, lost their order.
    if least.state != 0 && (!least.alone || !gcra.keeps_order(least.state)) {
        return None;
    }
    let slot = home.candidate(least.place)?;
    // Which key had it; if it has become another's meanwhile, that expires as the other did.
    let pair = slot.pair();
    (pair.state == least.state && !is_strange(pair, key)).then_some((slot, pair))
}

#[cfg(test)]
mod tests {
    use super::super::home::CANDIDATES;
    use super::super::layout::mix;
    use super::super::local::Scratch;
    use super::super::protocol;
    use super::super::terms::Near;
    use super::super::twelve::{first_empty_in_turn, foremost_in_turn, least_in_turn};
    use super::super::{Options, PolicyId};
    use super::*;

    /// Whatever is chosen by word is what the protocol chooses; and in a flood something is.
    #[test]
    fn the_protocol_chooses_the_same() {
        for policy in ["1000/s burst 1", "7/min burst 3", "3/s burst 5 init 2", "10000000000/s burst 100", "1/day"] {
            let policy = policy.parse().expect("a policy");
            let table = super::super::Table::private(&Options::new(4096), &[policy, policy]).expect("memory");
            let (mut scratch, mut second) = (Scratch::new(), Scratch::new());
            let version = table.current(PolicyId(0), &mut scratch);
            let other = table.current(PolicyId(1), &mut second);
            let (version, other) = (version.expect("a policy"), other.expect("a policy"));
            let Rule::Gcra(gcra) = &version.rule else { panic!("a token bucket") };
            let plain = gcra.plain();
            let (mut chosen, mut among_its_own, mut empty) = (0, 0, 0);
            for n in 0..40_000 {
                let random = |salt: u64| mix(n << 8 | salt);
                let home = table.home(random(1));
                let key = version.key | home.tag;
                let base = gcra.grid().units(1 << 40);
                // Far apart, a few units apart, at the end of what can be said, or near a fresh bucket.
                let spread = [base, 3, base / 1000 + 1, 1 << 20][(n & 3) as usize];
                for place in 0..CANDIDATES {
                    let slot = home.candidate(place).expect("a candidate");
                    let word = base + random(place as u64 + 2) % spread;
                    let mut new = Pair { key: version.key | random(place as u64 + 20) >> 8, state: word };
                    match random(place as u64 + 40) % 150 {
                        0 => new.key = other.key | new.key << 8 >> 8,
                        1 => new.key = [key, other.key | home.tag][(n & 1) as usize],
                        2 => new = Pair { key: 0, state: 0 },
                        3 => new = Pair { key: 0, state: 1 << 40 },
                        4 => new.state = u64::MAX,
                        5 => new.state = 1 + word % 4,
                        _ => {}
                    }
                    slot.swap(slot.pair(), new).expect("nobody else");
                }
                let buckets = [home.first, home.second, home.spare];
                let apart = gcra.apart();
                let foremost = foremost(buckets, key, apart);
                assert_eq!(foremost, foremost_in_turn(buckets, key, apart));
                let by_word = first_by_word(&home, key, gcra);
                assert_eq!(least(&home, key, gcra.apart()), least_in_turn(&home, key, gcra.apart()));
                let terms = Near { table: &table, version };
                if let Some((slot, pair)) = by_word {
                    let Ok(Some(first)) = protocol::first_to_expire(&terms, &home, key, 1 << 40) else {
                        panic!("the key is there, and one was chosen all the same")
                    };
                    assert!(core::ptr::eq(first.slot, slot), "{pair:?} and not {:?}", first.pair);
                    assert_eq!(first.expires, gcra.expires_at(pair.state));
                    chosen += 1;
                }
                let place = first_empty(&home, key);
                let in_turn = first_empty_in_turn(&home, key);
                assert_eq!(place.map(core::ptr::from_ref), in_turn.map(core::ptr::from_ref));
                if let Some(slot) = place {
                    let Ok(Some(first)) = protocol::first_to_expire(&terms, &home, key, 0) else {
                        panic!("the key is there, and a place was chosen all the same")
                    };
                    assert!(core::ptr::eq(first.slot, slot) && first.pair == Pair::EMPTY, "{:?}", first.pair);
                    empty += 1;
                }
                // Of plain policies only, which are the ones that it is asked for.
                if let (Some((place, word)), Some(_)) = (foremost, plain.step(0, 1 << 40, 1)) {
                    let (slot, pair) = by_word.expect("what is foremost is least");
                    assert!(core::ptr::eq(&buckets[place / SLOTS].0[place % SLOTS], slot) && pair.state == word);
                    let expires = gcra.expires_at(word);
                    assert!(!plain.expired_before(word, expires - 1), "{word} under {policy}");
                    assert!(plain.expired_before(word, expires + 8), "{word} under {policy}");
                    among_its_own += 1;
                }
            }
            assert!(chosen > 5_000, "{chosen} chosen by word under {policy}");
            assert!(empty > 1_000, "{empty} empty under {policy}");
            assert_eq!(among_its_own > 5_000, plain.step(0, 1 << 40, 1).is_some(), "{among_its_own} under {policy}");
        }
    }
}
