//! The classes of a hierarchy.

use super::rates::ClassRate;
use super::share::{
    range, slack, Intervals, BURST_LEAST, BURST_MOST, DEBT_MOST, LEVELS_MOST, NO_GUARANTEE,
    PERMITS_LEAST,
};
use super::take::Link;
use super::HierarchyError;
use crate::decision::Decision;
use crate::policy::Policy;
use crate::sync::filled;
use crate::table::{mix, PolicyId};
use alloc::boxed::Box;

/// The most classes of a hierarchy.
pub const CLASSES_MOST: usize = 65_536;

/// A class of a hierarchy, by the order in which the classes were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(u32);

impl ClassId {
    /// The class that [`Hierarchy::new`] makes.
    pub const ROOT: ClassId = ClassId(0);

    /// The class with this number.
    pub const fn new(number: u32) -> ClassId {
        ClassId(number)
    }

    /// The number of the class.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The decision. `remaining` is the number of permits that the leaf could take at once at its
    /// present interval. A refusal's `retry_after` is the earliest time at which the same request
    /// passes if no other comes first.
    pub decision: Decision,
    /// The class of the binding node: the one with the longest wait, or of an admitted request the
    /// one with the fewest permits left.
    pub bound: ClassId,
    /// The nanoseconds that one permit costs the leaf at present: its rate is 10^9 / `interval` a
    /// second.
    pub interval: u64,
}

/// A tree of classes. It is plain data: the nodes' states are in a table.
#[derive(Debug)]
pub struct Hierarchy {
    classes: Box<[Class]>,
    /// The number of classes added.
    count: usize,
    pub(super) burst: u64,
    pub(super) policy: PolicyId,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    parent: u32,
    /// The class's part of the hashes of its nodes.
    hash: u64,
    intervals: Intervals,
    /// What the children of this class may still be guaranteed.
    free: ClassRate,
    /// The levels of classes below this one.
    height: u32,
    depth: u32,
    /// Whether the class has a node for each key.
    keyed: bool,
}

impl Hierarchy {
    /// The policy of a table's nodes, in which a permit is a nanosecond:
    /// `1000000000/s burst 1099511627776`.
    pub const fn policy() -> Policy {
        Policy::new(1_000_000_000, 1_000_000_000).with_burst(DEBT_MOST)
    }

    /// A hierarchy of up to `classes` classes, whose root admits `rate`, such as "1000/s". Its
    /// nodes are keys under `policy` of a table, which is [`Hierarchy::policy`]. Processes that
    /// share the table make the same hierarchy. A hierarchy of other rates whose classes have the
    /// same names finds the same nodes, with their debts.
    ///
    /// `burst`, 1 ms to 10 s in nanoseconds and at least twenty permits of `rate`, is the time for
    /// which a leaf may be ahead of its rate. Requests that come more evenly than that lose nothing
    /// of their share. With a longer burst, shares are more exact if all callers ask at the same
    /// instants. A root above `h` levels may admit `1 + 4h` bursts of its rate at once.
    ///
    /// # Errors
    /// [`HierarchyError::Rate`], [`HierarchyError::Burst`], [`HierarchyError::Classes`] or
    /// [`HierarchyError::NoMemory`].
    pub fn new(
        policy: PolicyId,
        rate: &str,
        burst: u64,
        classes: usize,
    ) -> Result<Hierarchy, HierarchyError> {
        let rate = ClassRate::parse(rate).ok_or(HierarchyError::Rate)?;
        let ceiling = rate.rounded_up().ok_or(HierarchyError::Rate)?;
        if !(BURST_LEAST..=BURST_MOST).contains(&burst)
            || ceiling.saturating_mul(PERMITS_LEAST) > burst
        {
            return Err(HierarchyError::Burst);
        }
        if !(1..=CLASSES_MOST).contains(&classes) {
            return Err(HierarchyError::Classes);
        }
        let intervals = Intervals { guaranteed: ceiling, ceiling };
        let root = Class {
            parent: 0,
            hash: name(0, b"root"),
            intervals,
            free: rate,
            height: 0,
            depth: 0,
            keyed: false,
        };
        let classes = filled(classes, root).ok_or(HierarchyError::NoMemory)?;
        Ok(Hierarchy { classes, count: 1, burst, policy })
    }

    /// Adds a child of `parent`. `guaranteed` is the rate that it gets whatever others ask for, or
    /// "" for none. `ceiling` is the rate that it never exceeds, or "" for that of its parent.
    /// `keys` is 1, or the number of keys that each get such a node: at least as many as ask at one
    /// time, because their guarantees count for the parent.
    ///
    /// # Errors
    /// [`HierarchyError`]: nothing has been added.
    pub fn add(
        &mut self,
        parent: ClassId,
        name: &[u8],
        guaranteed: &str,
        ceiling: &str,
        keys: u32,
    ) -> Result<ClassId, HierarchyError> {
        let above = *self.class(parent).ok_or(HierarchyError::NoSuchClass)?;
        if above.keyed || above.depth as usize + 2 > LEVELS_MOST {
            return Err(HierarchyError::Levels);
        }
        if keys == 0 {
            return Err(HierarchyError::Keys);
        }
        let (intervals, rate, free) = terms(&above, guaranteed, ceiling, keys)?;
        let hash = self::name(above.hash, name);
        if name.is_empty() || self.added().iter().any(|class| class.hash == hash) {
            return Err(HierarchyError::Name);
        }
        let number = self.count;
        let place = self.classes.get_mut(number).ok_or(HierarchyError::Classes)?;
        let depth = above.depth + 1;
        *place = Class {
            parent: parent.0,
            hash,
            intervals,
            free: rate,
            height: 0,
            depth,
            keyed: keys > 1,
        };
        self.count += 1;
        if let Some(above) = self.classes.get_mut(parent.0 as usize) {
            above.free = free;
        }
        self.raise(parent.0);
        // `classes` has at most 2^16 places.
        Ok(ClassId(number as u32))
    }

    /// Sets the heights of a class that got a child, and of those above it.
    fn raise(&mut self, mut class: u32) {
        for height in 1..LEVELS_MOST as u32 {
            let Some(above) = self.classes.get_mut(class as usize) else { return };
            if above.height >= height {
                return;
            }
            above.height = height;
            if above.depth == 0 {
                return;
            }
            class = above.parent;
        }
    }

    /// The most permits that a node of this class may take at one instant, beside one request: its
    /// ceiling times its slack.
    pub fn burst_of(&self, class: ClassId) -> Option<u64> {
        let class = self.class(class)?;
        slack(self.burst, u64::from(class.height)).checked_div(class.intervals.ceiling)
    }

    fn added(&self) -> &[Class] {
        self.classes.get(..self.count).unwrap_or_default()
    }

    fn class(&self, class: ClassId) -> Option<&Class> {
        self.added().get(class.0 as usize)
    }

    /// Writes the nodes from the root to the leaf of a class, and returns their number. `key` is
    /// the hash of the leaf's key, 0 for none.
    pub(super) fn way(
        &self,
        leaf: ClassId,
        key: u64,
        way: &mut [Link; LEVELS_MOST],
    ) -> Result<usize, HierarchyError> {
        let class = self.class(leaf).ok_or(HierarchyError::NoSuchClass)?;
        if class.height != 0 {
            return Err(HierarchyError::NotALeaf);
        }
        let mut link =
            Link { hash: class.hash ^ key, intervals: class.intervals, most: slack(self.burst, 0) };
        let (mut class, mut guaranteed) = (*class, class.intervals.guaranteed != NO_GUARANTEE);
        let count = class.depth as usize + 1;
        for place in way.iter_mut().take(count).rev() {
            *place = link;
            let Some(above) = self.classes.get(class.parent as usize) else { break };
            class = *above;
            let most = match guaranteed {
                true => slack(self.burst, u64::from(class.height)),
                false => range(self.burst),
            };
            guaranteed = class.intervals.guaranteed != NO_GUARANTEE;
            link = Link { hash: class.hash, intervals: class.intervals, most };
        }
        Ok(count)
    }

    /// The class at a place on the way to a leaf: 0 is the root.
    pub(super) fn class_at(&self, leaf: ClassId, place: usize) -> ClassId {
        let mut at = leaf;
        while let Some(class) = self.class(at).filter(|class| class.depth as usize > place) {
            at = ClassId(class.parent);
        }
        at
    }
}

/// The intervals of a new child, its guaranteed rate, and what its parent can still guarantee to
/// others.
fn terms(
    above: &Class,
    guaranteed: &str,
    ceiling: &str,
    keys: u32,
) -> Result<(Intervals, ClassRate, ClassRate), HierarchyError> {
    let mut intervals = Intervals { guaranteed: NO_GUARANTEE, ceiling: above.intervals.ceiling };
    let mut rate = ClassRate::NONE;
    if !ceiling.is_empty() {
        let most = ClassRate::parse(ceiling)
            .and_then(|rate| rate.rounded_up())
            .ok_or(HierarchyError::Rate)?;
        // A node never gets more than the node above it.
        intervals.ceiling = intervals.ceiling.max(most);
    }
    if !guaranteed.is_empty() {
        rate = ClassRate::parse(guaranteed).ok_or(HierarchyError::Rate)?;
        intervals.guaranteed = rate.rounded_down().ok_or(HierarchyError::Rate)?;
        if rate.rounded_up().map_or(true, |interval| interval < intervals.ceiling) {
            return Err(HierarchyError::Guarantee);
        }
    }
    let free = above.free.without(rate, keys).ok_or(HierarchyError::Guarantee)?;
    Ok((intervals, rate, free))
}

/// The hash of a class with this name below the class with the hash `above`.
fn name(above: u64, name: &[u8]) -> u64 {
    name.iter().fold(mix(above), |hash, byte| mix(hash ^ u64::from(*byte)))
}
