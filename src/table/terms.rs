//! What states mean to the protocol: when they expire, and how they pass from one version of a policy to another.

use super::home::{TAG, TAG_BITS};
use super::protocol::{Event, Kin, Terms};
use super::slot::Pair;
use super::versions::{version_of, Version};
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
        // A slot whose version nobody knows is not given away: it may owe.
        self.named(pair.key).map_or(NEVER, |version| version.rule.expires_at(pair.state))
    }

    fn kin(&self, found: u64, key: u64) -> Kin {
        // A request that slept until its version's record was freed must not put its key beside the one that is there:
        // it is made again. A version that is current and cannot be read is damaged: that would not end.
        let Some(asked) = self.named(key) else {
            let version = (key >> TAG_BITS) as usize;
            let known = self.header().current.iter().any(|stamp| version_of(stamp.load(Ordering::Acquire)) == version);
            return if known { Kin::Stranger } else { Kin::Later };
        };
        let Some(found) = self.named(found) else { return Kin::Stranger };
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
        let Some(new) = self.named(key) else { return 0 };
        match self.named(pair.key) {
            Some(old) if pair.key != 0 => new.rule.adopt(&old.rule, pair.state),
            _ => new.rule.owing(self.expires_at(pair)),
        }
    }

    fn convert(&self, key: u64, pair: Pair, now: u64) -> u64 {
        match (self.named(key), self.named(pair.key)) {
            (Some(new), Some(old)) if new.keep == Keep::Count => new.rule.convert(&old.rule, pair.state, now),
            _ => self.adopt(key, pair),
        }
    }

    fn owing(&self, key: u64, until: u64) -> u64 {
        self.named(key).map_or(NEVER, |version| version.rule.owing(until))
    }

    fn vacated(&self) {
        self.count_vacated();
    }

    fn moved(&self, event: Event) {
        self.count_event(event, 0);
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
