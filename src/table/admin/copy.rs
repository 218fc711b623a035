//! Copying the keys of one table into another, which usually has another size.
//!
//! No model notices a weaker ordering in this file, because loom copies no tables.

use crate::algorithm::{Algorithm, Rule, Step};
use crate::sync::Ordering;
use crate::table::decide::Table;
use crate::table::memory::error::TableError;
use crate::table::memory::slot::{Slot, SlotPair};
use crate::table::policies::compiled::Version;
use crate::table::policies::conversion::UnderVersion;
use crate::table::policies::local::Scratch;
use crate::table::policies::{Keep, PolicyId, ROUNDS};
use crate::table::slots::protocol;
use crate::table::slots::states::{Event, OnFull};

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Keys with a debt that were copied.
    pub copied: u64,
    /// Keys with a debt that were not copied, because no slot was free for them or their version of
    /// a policy is unknown.
    pub lost: u64,
}

impl Table {
    /// Copies the debts of the keys of `from` at `now` (this table's time) and the exempt keys into
    /// this table. The tables must have been made with the same seed and clock, this one must have
    /// a policy of each number that `from` has, and all policies must have states of one word.
    ///
    /// If the policies with one number differ, a key lacks as many whole permits of the burst as
    /// before, or all of them if the new burst is smaller. A partly repaid permit counts as unpaid.
    /// ([`Table::set_policy`] keeps the number of permits that a key has left instead.)
    ///
    /// Both tables may be in use during the copy. Later charges in `from` reach this table only by
    /// another copy. If both tables have a key, the state that owes longer stays, so the copy
    /// forgives no debt and charges no key twice.
    ///
    /// # Errors
    /// [`TableError::OtherOptions`] if the seeds or clocks differ, [`TableError::OtherPolicies`] if
    /// this table lacks a policy's number, [`TableError::Mixed`] for a table of a sliding window or
    /// log without room ([`Options::room`](crate::table::Options)): the call has copied nothing.
    /// [`TableError::Exempt`], [`TableError::Overrides`] or
    /// [`TableError::Versions`] if this table has no room for the exempt keys or the overrides:
    /// those that had room stay, and no debt has been copied.
    pub fn copy_from(&self, from: &Table, now: u64) -> Result<Copied, TableError> {
        self.can_take(from)?;
        // Both tables count UTC, but their offsets differ if the processes that made them started
        // before and after a step of the system's clock.
        let there = now.wrapping_sub(self.offset).wrapping_add(from.offset);
        for exempt in from.policies.exempt_hashes() {
            self.policies.exempt(exempt)?;
        }
        self.copy_overrides(from)?;
        let mut copied = Copied::default();
        let (mut old, mut last, mut here) = (Scratch::new(), Scratch::new(), Scratch::new());
        let mut n = 0;
        while let Some((slot, bucket)) = from.slots.get(n) {
            n += 1;
            let pair = slot.pair();
            if pair.is_vacant() || from.policies.expires_at_by(pair, &mut old) <= there {
                continue;
            }
            let carried = match (
                from.policies.named(pair.key, &mut old),
                from.slots.hash_in_bucket(pair.key, bucket),
            ) {
                (Some(version), Some(hash)) => {
                    // A copied state may hold a booking or credit. The notes are read after the
                    // slot and stored before the copy.
                    if from.policies.memory.has_bookings(version.number) {
                        self.policies.memory.note_booking(version.number);
                    }
                    if from.policies.memory.has_credit(version.number) {
                        self.policies.memory.note_credit(version.number);
                    }
                    let last =
                        from.policies.current(PolicyId::new(version.number), hash, &mut last)?;
                    let moment = Moment { here: now, there };
                    match from.had(version, last, slot, pair, there) {
                        Some(debt) => self.carry(last, debt, hash, moment, &mut here)?,
                        None => true,
                    }
                }
                _ => false,
            };
            if carried {
                copied.copied += 1;
            } else {
                copied.lost += 1;
            }
        }
        Ok(copied)
    }

    /// Checks that a key of `from` has the same hash here, and that this table has its policy, with
    /// states of one word.
    fn can_take(&self, from: &Table) -> Result<(), TableError> {
        let (mine, other) = (&self.policies.memory.fixed, &from.policies.memory.fixed);
        if (mine.seed, mine.clock) != (other.seed, other.clock) {
            return Err(TableError::OtherOptions);
        }
        if mine.is_multi_word() || other.is_multi_word() {
            return Err(TableError::Mixed);
        }
        for (number, current) in from.policies.memory.header().current.iter().enumerate() {
            if current.load(Ordering::Acquire) != 0 {
                let id = PolicyId::new(number as u32);
                match self.policy(id) {
                    Ok(_) => {}
                    Err(_) => return Err(TableError::OtherPolicies),
                }
            }
        }
        Ok(())
    }

    /// The permits that the key in `slot` of this table has used at `now` under the version `old`.
    /// `last` is the current version of the policy, to which this table would first convert the
    /// key. `None` if the key would begin anew.
    fn had(
        &self,
        old: &Version,
        last: &Version,
        slot: &Slot,
        pair: SlotPair,
        now: u64,
    ) -> Option<Debt> {
        let is_same = last.key == old.key;
        if old.multi_word.is_some() || last.multi_word.is_some() {
            let keep = if is_same { None } else { Some(last.terms.keep_from(old.terms)) };
            let keeps = keep != Some(Keep::Reset);
            return keeps.then(|| Debt::Permits(self.policies.used(last, old, slot, pair, now)));
        }
        Some(Debt::Word(match last.terms.keep_from(old.terms) {
            Keep::Count => last.rule.convert(&old.rule, pair.state, now),
            Keep::Time => last.rule.adopt_at(&old.rule, pair.state, now),
            Keep::Reset if !is_same => return None,
            Keep::Reset => pair.state,
        }))
    }

    /// Gives the key with `hash` the debt that it had under `last`, a version of the other table.
    /// The insertion is a request whose step returns the state. False if no slot is free.
    fn carry<'t>(
        &'t self,
        last: &Version,
        debt: Debt,
        hash: u64,
        now: Moment,
        scratch: &mut Scratch<'t>,
    ) -> Result<bool, TableError> {
        let candidates = self.slots.candidates(hash);
        let id = PolicyId::new(last.number);
        for _ in 0..ROUNDS {
            let version = self.policies.current(id, hash, scratch)?;
            let rule = &version.rule;
            if version.multi_word.is_some() {
                let used = match debt {
                    Debt::Permits(used) => used,
                    Debt::Word(state) => last.rule.owed(state, now.there),
                };
                match self.owe_in_room(version.number, hash, now.here, used)? {
                    Some(has_slot) => return Ok(has_slot),
                    None => continue,
                }
            }
            let carried = match debt {
                Debt::Permits(used) => Some(rule.charged(used, now.here)).filter(|&word| word != 0),
                Debt::Word(state) if version.policy == last.policy && now.here == now.there => {
                    Some(state)
                }
                Debt::Word(state) => convert(&last.rule, state, rule, now),
            };
            let Some(carried) = carried else { return Ok(true) };
            let expires = rule.expires_at(carried);
            let step = |there| {
                let until = rule.expires_at(there);
                // If two states of a window expire together, the one with the greater count owes
                // more.
                let more = until == expires
                    && rule.available(carried, now.here) < rule.available(there, now.here);
                match until < expires || more {
                    true => Step::allow(carried),
                    false => Step::ask(),
                }
            };
            let states = UnderVersion { policies: &self.policies, version };
            // With `Deny` a copied key evicts no other.
            let asked = protocol::request(
                &states,
                &candidates,
                version.key | candidates.tag,
                now.here,
                OnFull::Deny,
                step,
            );
            // An error means that another call has changed the slot or the policy, and the loop
            // tries again.
            if let Ok(outcome) = asked {
                self.policies.count_event(outcome.event, outcome.retries);
                return Ok(outcome.event != Event::Refused);
            }
        }
        Err(TableError::Corrupt)
    }
}

/// The state under `new` that lacks as many permits as `state` does under `old`; `None` if it lacks
/// none.
fn convert(old: &Rule, state: u64, new: &Rule, now: Moment) -> Option<u64> {
    match new.carry(old, state, now.there, now.here) {
        0 => None,
        word => Some(word),
    }
}

/// The debt of a copied key.
#[derive(Clone, Copy)]
enum Debt {
    /// A state word of the current version of its policy.
    Word(u64),
    /// The permits by which it falls short of a fresh key under that version.
    Permits(u64),
}

/// One instant, on the scales of the target table and of the source table.
#[derive(Clone, Copy)]
struct Moment {
    here: u64,
    there: u64,
}
