//! What states mean to the protocol: when they expire, and how they pass from one version of a policy to another.

use super::compiled::Version;
use super::home::{TAG, TAG_BITS};
use super::local::Scratch;
use super::protocol::{Event, Kin, Terms};
use super::slot::Pair;
use super::versions::version_of;
use super::{Keep, Table};
use crate::algorithm::Algorithm;
use crate::sync::Ordering;
use crate::units::NEVER;

impl Terms for Table {
    #[inline(always)]
    fn expires_at(&self, pair: Pair) -> u64 {
        if self.fixed.side != 0 {
            return self.wide().map_or(NEVER, |wide| wide.expires_at(pair.state));
        }
        if pair.key == 0 {
            return pair.state;
        }
        match self.stamp_of(pair.key).and_then(|stamp| self.versions.known(stamp)) {
            // A damaged stamp may be another version's.
            Some(version) if version.key == pair.key & !TAG => version.rule.expires_at(pair.state),
            _ => self.expires_at_apart(pair),
        }
    }

    fn kin(&self, found: u64, key: u64) -> Kin {
        // A request that slept until its version's record was freed must not put its key beside the one that is there:
        // it is made again. A version that is current and cannot be read is damaged: that would not end.
        let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
        let Some(asked) = self.named(key, &mut scratch) else {
            let version = (key >> TAG_BITS) as usize;
            let known = self.header().current.iter().any(|stamp| version_of(stamp.load(Ordering::Acquire)) == version);
            return if known { Kin::Stranger } else { Kin::Later };
        };
        let Some(found) = self.named(found, &mut other) else { return Kin::Stranger };
        if found.policy != asked.policy {
            return Kin::Stranger;
        }
        let current = self.header().current.get(asked.policy as usize).map_or(0, |c| c.load(Ordering::Acquire));
        let asked = asked.stamp.load(Ordering::Relaxed);
        if current == asked && found.stamp.load(Ordering::Relaxed) != asked {
            Kin::Former
        } else {
            Kin::Later
        }
    }

    fn adopt(&self, key: u64, pair: Pair) -> u64 {
        self.adopt_by(key, pair, &mut Scratches::new())
    }

    fn convert(&self, key: u64, pair: Pair, now: u64) -> u64 {
        self.convert_by(key, pair, now, &mut Scratches::new())
    }

    fn owing(&self, key: u64, until: u64) -> u64 {
        let mut scratch = Scratch::new();
        self.named(key, &mut scratch).map_or(NEVER, |version| version.rule.owing(until))
    }

    fn vacated(&self) {
        self.count_vacated();
    }

    fn moved(&self, event: Event) {
        self.count_event(event, 0);
    }
}

/// What two versions of a policy are held by. Who looks at many slots uses one for all of them.
pub(super) struct Scratches<'t> {
    pub(super) new: Scratch<'t>,
    pub(super) old: Scratch<'t>,
}

impl Scratches<'_> {
    pub(super) const fn new() -> Self {
        Scratches { new: Scratch::new(), old: Scratch::new() }
    }
}

impl Table {
    /// [`Terms::expires_at`] of a slot whose version must be compiled.
    #[cold]
    #[inline(never)]
    fn expires_at_apart(&self, pair: Pair) -> u64 {
        self.expires_at_by(pair, &mut Scratch::new())
    }

    /// [`Terms::expires_at`].
    pub(super) fn expires_at_by<'t>(&'t self, pair: Pair, scratch: &mut Scratch<'t>) -> u64 {
        if self.fixed.side != 0 || pair.key == 0 {
            return self.expires_at(pair);
        }
        // A slot whose version nobody knows is not given away: it may owe.
        self.named(pair.key, scratch).map_or(NEVER, |version| version.rule.expires_at(pair.state))
    }

    /// [`Terms::adopt`].
    pub(super) fn adopt_by<'t>(&'t self, key: u64, pair: Pair, scratches: &mut Scratches<'t>) -> u64 {
        let Some(new) = self.named(key, &mut scratches.new) else { return 0 };
        match self.named(pair.key, &mut scratches.old) {
            Some(old) if pair.key != 0 => new.rule.adopt(&old.rule, pair.state),
            _ => new.rule.owing(self.expires_at(pair)),
        }
    }

    /// [`Terms::convert`].
    pub(super) fn convert_by<'t>(&'t self, key: u64, pair: Pair, now: u64, scratches: &mut Scratches<'t>) -> u64 {
        match (self.named(key, &mut scratches.new), self.named(pair.key, &mut scratches.old)) {
            (Some(new), Some(old)) if new.keep == Keep::Count => new.rule.convert(&old.rule, pair.state, now),
            _ => self.adopt_by(key, pair, scratches),
        }
    }
}

/// The table's terms for a request under `version`: most slots that it meets are under the same one, which then need not be
/// looked up.
pub(super) struct Near<'t> {
    pub(super) table: &'t Table,
    pub(super) version: &'t Version,
}

impl Terms for Near<'_> {
    #[inline(always)]
    fn expires_at(&self, pair: Pair) -> u64 {
        if pair.key & !TAG == self.version.key {
            return self.version.rule.expires_at(pair.state);
        }
        self.table.expires_at(pair)
    }

    /// Of words of one version that are times, the greater one is the later.
    #[inline(always)]
    fn no_sooner(&self, pair: Pair, other: Pair) -> bool {
        let version = self.version.key;
        pair.state >= other.state
            && pair.key & !TAG == version
            && other.key & !TAG == version
            && self.version.words_are_times
    }

    fn kin(&self, found: u64, key: u64) -> Kin {
        self.table.kin(found, key)
    }

    fn adopt(&self, key: u64, pair: Pair) -> u64 {
        self.table.adopt(key, pair)
    }

    fn convert(&self, key: u64, pair: Pair, now: u64) -> u64 {
        self.table.convert(key, pair, now)
    }

    fn owing(&self, key: u64, until: u64) -> u64 {
        self.table.owing(key, until)
    }

    fn vacated(&self) {
        self.table.count_vacated();
    }

    fn moved(&self, event: Event) {
        self.table.count_event(event, 0);
    }
}
