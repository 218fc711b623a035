//! Requests whose nodes are keys of a table.

use super::share::{Intervals, DEBT_MOST};
use super::take::{take, Link, Nodes};
use super::{ClassId, Hierarchy, HierarchyError, Share, LEVELS_MOST};
use crate::algorithm::Charge;
use crate::decision::Decision;
use crate::table::{RequestError, SeenNode, Table, TableNodes};

impl<'a> Nodes for TableNodes<'a> {
    type Seen = SeenNode<'a>;
    type Error = RequestError;

    #[inline]
    fn see(&self, hash: u64, _: u64) -> SeenNode<'a> {
        TableNodes::see(self, hash)
    }

    #[inline]
    fn debt(&self, seen: &SeenNode<'a>, now: u64) -> u64 {
        TableNodes::debt(self, seen, now)
    }

    #[inline]
    fn charge(
        &self,
        seen: &SeenNode<'a>,
        now: u64,
        charge: u64,
        most: u64,
    ) -> Result<Option<Decision>, RequestError> {
        TableNodes::charge(self, seen, now, charge, most, DEBT_MOST)
    }

    #[inline(never)]
    fn undo(&self, seen: &SeenNode<'a>, charge: Charge, now: &dyn Fn() -> u64) {
        TableNodes::undo(self, seen, charge, now);
    }
}

impl Hierarchy {
    /// Takes `cost` permits for a leaf class, or for a key of it, from the leaf and from all
    /// classes above it, or says when they can be had. An empty `key` is a node of its own.
    ///
    /// # Errors
    /// [`HierarchyError::NoSuchClass`], [`HierarchyError::NotALeaf`], [`HierarchyError::Policy`] or
    /// [`HierarchyError::Table`]. After an error the call has charged nothing.
    #[inline]
    pub fn take(
        &self,
        table: &Table,
        class: ClassId,
        key: &[u8],
        cost: u64,
    ) -> Result<Share, HierarchyError> {
        self.try_take(table, class, key, None, cost)
    }

    /// [`Hierarchy::take`] at the caller's time.
    ///
    /// # Errors
    /// Those of [`Hierarchy::take`].
    #[inline]
    pub fn take_at(
        &self,
        table: &Table,
        class: ClassId,
        key: &[u8],
        now: u64,
        cost: u64,
    ) -> Result<Share, HierarchyError> {
        self.try_take(table, class, key, Some(now), cost)
    }

    /// [`Hierarchy::take`], or [`Hierarchy::take_at`] if `now` is given.
    ///
    /// # Errors
    /// Those of [`Hierarchy::take`].
    pub fn try_take(
        &self,
        table: &Table,
        class: ClassId,
        key: &[u8],
        now: Option<u64>,
        cost: u64,
    ) -> Result<Share, HierarchyError> {
        const NONE: Intervals = Intervals { guaranteed: 0, ceiling: 0 };
        let mut way = [Link { hash: 0, intervals: NONE, most: 0 }; LEVELS_MOST];
        let hash = if key.is_empty() { 0 } else { table.hash_of_leaf(key) };
        let count = self.way(class, hash, &mut way)?;
        let way = way.get(..count).unwrap_or_default();
        let time = now.unwrap_or_else(|| table.now());
        let clock = || now.unwrap_or_else(|| table.now());
        let taken = table.with_nodes(self.policy, DEBT_MOST, |nodes| {
            take(&nodes, way, self.burst, (time, cost), &clock)
        })?;
        let outcome = taken.ok_or(HierarchyError::Policy)??;
        table.count_of_leaf(
            self.policy,
            key,
            time,
            outcome.decision.verdict,
            outcome.decision.reason,
        );
        let bound = self.class_at(class, outcome.bound);
        Ok(Share { decision: outcome.decision, bound, interval: outcome.interval })
    }
}
