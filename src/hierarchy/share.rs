//! The arithmetic of a hierarchy: how many nanoseconds of a node's time one permit costs.

/// Each of so many steps of a node's debt halves the rate at which its children borrow. So up to
/// 2^16 children share equally.
pub(super) const HALVINGS: u64 = 16;
/// The range of debts over which children borrow, in bursts of a leaf.
const RANGE: u64 = 4;
/// The most levels of classes, the root included.
pub const LEVELS_MOST: usize = 8;
/// The most nanoseconds that one permit can cost.
pub(super) const INTERVAL_MOST: u64 = 1 << 39;
/// The burst of the policy of nodes: the most nanoseconds that a node can owe.
pub(super) const DEBT_MOST: u64 = 1 << 40;
/// The interval of a class without a guarantee.
pub(super) const NO_GUARANTEE: u64 = u64::MAX;
/// The longest burst in nanoseconds. A node of [`LEVELS_MOST`] levels may then owe less than half
/// of [`DEBT_MOST`].
pub(super) const BURST_MOST: u64 = 10_000_000_000;
pub(super) const BURST_LEAST: u64 = 1_000_000;
/// The fewest permits of the root's rate in a burst. With fewer, one permit is a large part of the
/// range, and shares become unequal.
pub(super) const PERMITS_LEAST: u64 = 20;

const _: () = assert!(slack(BURST_MOST, LEVELS_MOST as u64 - 1) <= DEBT_MOST - INTERVAL_MOST);

/// The nanoseconds that one permit of a class costs at its guaranteed rate and at its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Intervals {
    /// Rounded down. [`NO_GUARANTEE`] if there is none.
    pub(super) guaranteed: u64,
    /// Rounded up.
    pub(super) ceiling: u64,
}

/// The debt up to which children borrow from a node.
pub(super) const fn range(burst: u64) -> u64 {
    burst.saturating_mul(RANGE)
}

/// The debt up to which a node of this height admits requests: a leaf (height 0) up to one burst. A
/// node with children keeps the debts above its range for their guarantees, as much as a child may
/// owe.
pub(super) const fn slack(burst: u64, height: u64) -> u64 {
    burst.saturating_mul(1 + RANGE * height)
}

/// The nanoseconds that a permit costs a child of a node. A permit costs the node `interval` and
/// the node owes `debt`.
///
/// Without a debt a child may borrow all of the node's rate. Each sixteenth of the range that the
/// node owes halves the rate, straight between two halvings. Above the range a child has its
/// guarantee only. A child's rate is never below its guarantee, and never above its ceiling.
#[inline]
pub(super) fn share(interval: u64, debt: u64, burst: u64, child: &Intervals) -> u64 {
    let range = range(burst);
    let borrowed = match debt <= range {
        true => {
            // A step is at least 2^17 ns, because a burst is at least 1 ms.
            let step = (range / HALVINGS).max(1);
            let (halvings, rest) = (debt / step, debt % step);
            // interval <= 2^39 and halvings <= 16, so the products are below 2^57.
            let part = interval.saturating_mul((rest << 16) / step) >> 16;
            interval.saturating_add(part) << halvings.min(HALVINGS)
        }
        false => NO_GUARANTEE,
    };
    child.guaranteed.min(borrowed).max(child.ceiling).min(INTERVAL_MOST)
}

#[cfg(all(test, not(loom)))]
mod tests;
