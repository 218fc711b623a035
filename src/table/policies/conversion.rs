//! The protocol's view of states: when they expire, and how they are converted from one version of
//! a policy to another.

use super::compiled::Version;
use super::local::Scratch;
use super::{Keep, Policies};
use crate::algorithm::gcra::TAT_MOST;
use crate::algorithm::Algorithm;
use crate::sync::Ordering;
#[cfg(not(loom))]
use crate::table::memory::counters::shards::ShardCounter;
use crate::table::memory::returns::ReturnTurn;
use crate::table::memory::slot::{Slot, SlotPair, TAG};
use crate::table::slots::candidates::{hash_of_tag, Candidates};
use crate::table::slots::states::{Event, Relation, States};
use crate::units::NEVER;

/// The functions of [`States`] for a slot under any version of a policy.
impl Policies {
    pub(crate) fn expires_at(&self, pair: SlotPair) -> u64 {
        if self.memory.fixed.is_multi_word() {
            return self.multi_word().map_or(NEVER, |multi_word| multi_word.expires_at(pair.state));
        }
        if pair.is_vacant() {
            return pair.state;
        }
        match self.stamp_of(pair.key).and_then(|stamp| self.versions.known(stamp)) {
            // In damaged memory a record may hold the stamp of another version.
            Some(version) if version.key == pair.key & !TAG => version.expires_at(pair.state),
            _ => self.expires_at_slow(pair),
        }
    }

    pub(crate) fn adopt(&self, key: u64, pair: SlotPair) -> u64 {
        self.adopt_by(key, pair, &mut Scratches::new())
    }

    pub(crate) fn convert(&self, key: u64, slot: &Slot, pair: SlotPair, now: u64) -> u64 {
        self.convert_by(key, slot, pair, now, &mut Scratches::new())
    }

    pub(crate) fn owing(&self, key: u64, until: u64) -> u64 {
        let mut scratch = Scratch::new();
        self.named(key, &mut scratch).map_or(NEVER, |version| version.owing(until))
    }

    pub(crate) fn hold(&self, pair: SlotPair, until: u64, now: u64, exact: bool) -> Option<u64> {
        let mut scratch = Scratch::new();
        self.named(pair.key, &mut scratch)?.hold(pair.state, until, now, exact)
    }

    pub(crate) fn outlasts(&self, pair: SlotPair, until: u64) -> bool {
        let mut scratch = Scratch::new();
        self.named(pair.key, &mut scratch)
            .is_some_and(|version| version.outlasts(pair.state, until))
    }

    /// The key word of a key under a limit of 0, which keeps its word under the former version of
    /// its policy.
    pub(crate) fn word_before_stop(
        &self,
        version: &Version,
        candidates: &Candidates<'_>,
    ) -> Option<u64> {
        let is_its = |pair: &SlotPair| {
            let mut scratch = Scratch::new();
            let is_tagged = !pair.is_vacant() && pair.key & TAG == candidates.tag;
            is_tagged
                && self
                    .named(pair.key, &mut scratch)
                    .is_some_and(|former| former.number == version.number)
        };
        let pairs = candidates.slots().filter(|_| version.is_closed()).map(Slot::pair);
        pairs.filter(is_its).map(|pair| pair.key).next()
    }

    /// The state after a reset of a key that stays in its slot, which is taken until `expires`: of
    /// a quota, and of a key that finds `no_other` slot.
    pub(crate) fn unused_in_slot(
        &self,
        pair: SlotPair,
        expires: u64,
        now: u64,
        no_other: bool,
    ) -> Option<u64> {
        let mut scratch = Scratch::new();
        let version = self.named(pair.key, &mut scratch)?;
        let hold = |exact| version.hold(0, expires, now, exact);
        let held = || [true, false].into_iter().find_map(hold);
        version.rule.unused_in_slot().or_else(|| if no_other { held() } else { None })
    }

    pub(crate) fn vacated(&self) {
        #[cfg(not(loom))] // a model's memory has no counters
        self.memory.count(ShardCounter::Vacated);
    }

    pub(crate) fn moved(&self, event: Event) {
        let _ = event;
        #[cfg(not(loom))]
        self.count_event(event, 0);
    }
}

/// Memory for two versions of a policy. A call that reads many slots uses one `Scratches` for all
/// of them.
pub(crate) struct Scratches<'t> {
    pub(crate) new: Scratch<'t>,
    pub(crate) old: Scratch<'t>,
}

impl Scratches<'_> {
    pub(crate) const fn new() -> Self {
        Scratches { new: Scratch::new(), old: Scratch::new() }
    }
}

impl Policies {
    /// [`States::expires_at`] for a slot whose version must be compiled.
    #[cold]
    #[inline(never)]
    fn expires_at_slow(&self, pair: SlotPair) -> u64 {
        self.expires_at_by(pair, &mut Scratch::new())
    }

    /// [`States::expires_at`].
    pub(crate) fn expires_at_by<'t>(&'t self, pair: SlotPair, scratch: &mut Scratch<'t>) -> u64 {
        if self.memory.fixed.is_multi_word() || pair.is_vacant() {
            return self.expires_at(pair);
        }
        // The key of a slot with an unknown version may have a debt, so no new key may take the
        // slot.
        self.named(pair.key, scratch).map_or(NEVER, |version| version.expires_at(pair.state))
    }

    /// The content of the slot after its key is removed. The slot still expires at the same time.
    pub(crate) fn vacant(&self, pair: SlotPair, expires: u64) -> SlotPair {
        // The next key continues the ring or log with this state word.
        let state = if self.memory.fixed.is_multi_word() { pair.state } else { expires };
        SlotPair { key: 0, state }
    }

    /// [`States::adopt`].
    pub(crate) fn adopt_by<'t>(
        &'t self,
        key: u64,
        pair: SlotPair,
        scratches: &mut Scratches<'t>,
    ) -> u64 {
        let Some(new) = self.named(key, &mut scratches.new) else { return 0 };
        match self.named(pair.key, &mut scratches.old) {
            Some(old) if !pair.is_vacant() && both_one_word(new, old) => {
                new.rule.adopt(&old.rule, pair.state)
            }
            _ => new.owing(self.expires_at(pair)),
        }
    }

    /// [`States::convert`].
    pub(crate) fn convert_by<'t>(
        &'t self,
        key: u64,
        slot: &Slot,
        pair: SlotPair,
        now: u64,
        scratches: &mut Scratches<'t>,
    ) -> u64 {
        if let (Some(new), Some(old)) =
            (self.named(key, &mut scratches.new), self.named(pair.key, &mut scratches.old))
        {
            if !both_one_word(new, old) {
                return self.convert_standing((new, old), slot, pair, now);
            }
            if old.rule.full_before_floor(pair.state).is_some_and(|full| full <= now) {
                return 0;
            }
            match new.terms.keep_from(old.terms) {
                Keep::Count => return new.rule.convert(&old.rule, pair.state, now),
                // The slot of a key under a quota would never come free, so the key keeps it.
                Keep::Reset => {
                    return old.rule.unused_in_slot().and(new.rule.unused_in_slot()).unwrap_or(0)
                }
                Keep::Time if !pair.is_vacant() => {
                    return new.rule.adopt_at(&old.rule, pair.state, now)
                }
                Keep::Time => {}
            }
        }
        self.adopt_by(key, pair, scratches)
    }
}

/// Whether the state of both versions is one word.
fn both_one_word(new: &Version, old: &Version) -> bool {
    new.multi_word.is_none() && old.multi_word.is_none()
}

/// [`States`] for a request under `version`. Most slots are under the same version, so it saves
/// most lookups in [`Policies`].
pub(crate) struct UnderVersion<'t> {
    pub(crate) policies: &'t Policies,
    pub(crate) version: &'t Version,
}

impl States for UnderVersion<'_> {
    #[inline]
    fn expires_at(&self, pair: SlotPair) -> u64 {
        if pair.key & !TAG == self.version.key {
            return self.version.expires_at(pair.state);
        }
        self.policies.expires_at(pair)
    }

    /// Of two states of one version that are times, the greater one expires no sooner.
    #[inline(always)]
    fn no_sooner(&self, pair: SlotPair, other: SlotPair) -> bool {
        let version = self.version.key;
        (other.state..=TAT_MOST).contains(&pair.state)
            && pair.key & !TAG == version
            && other.key & !TAG == version
            && self.version.words_are_times
    }

    fn relation(&self, found: u64, key: u64) -> Relation {
        match self.policies.relation(found, key, self.version.number) {
            // A limit of 0 refuses whatever the slot says, so the key keeps its word for the next
            // version.
            Relation::Former if self.version.is_closed() => Relation::Other,
            relation => relation,
        }
    }

    fn adopt(&self, key: u64, pair: SlotPair) -> u64 {
        self.policies.adopt(key, pair)
    }

    fn convert(&self, key: u64, slot: &Slot, pair: SlotPair, now: u64) -> u64 {
        self.policies.convert(key, slot, pair, now)
    }

    fn outlasts(&self, pair: SlotPair, until: u64) -> bool {
        match pair.key & !TAG == self.version.key {
            true => self.version.outlasts(pair.state, until),
            false => self.policies.outlasts(pair, until),
        }
    }

    fn owing(&self, key: u64, until: u64) -> u64 {
        self.policies.owing(key, until)
    }

    fn hold(&self, pair: SlotPair, until: u64, now: u64, exact: bool) -> Option<u64> {
        self.policies.hold(pair, until, now, exact)
    }

    fn is_current(&self, key: u64) -> bool {
        let stamp = self.policies.stamp_for(self.version.number, hash_of_tag(key & TAG));
        stamp == self.version.stamp.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn is_numbered(&self) -> bool {
        self.policies.is_numbered(self.version)
    }

    fn turn(&self, tag: u64) -> Option<ReturnTurn<'_>> {
        self.policies.memory.turn(tag)
    }

    fn vacated(&self) {
        self.policies.vacated();
    }

    fn moved(&self, event: Event) {
        self.policies.moved(event);
    }
}
