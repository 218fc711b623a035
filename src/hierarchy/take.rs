//! One request: a look at the nodes from the root to the leaf, and their charges from the leaf to
//! the root.

use super::share::{share, Intervals, DEBT_MOST, LEVELS_MOST};
use crate::algorithm::Charge;
use crate::decision::{Decision, Reason, Verdict};
use crate::units::NEVER;

/// Where the nodes of a hierarchy are.
pub(super) trait Nodes {
    /// A node as a call has read it.
    type Seen: Copy;
    type Error;

    /// Reads a node.
    fn see(&self, hash: u64, now: u64) -> Self::Seen;

    /// The nanoseconds that the node owed.
    fn debt(&self, seen: &Self::Seen, now: u64) -> u64;

    /// Charges a node, unless it owes more than `most` nanoseconds. A refusal is returned as a
    /// decision.
    fn charge(
        &self,
        seen: &Self::Seen,
        now: u64,
        charge: u64,
        most: u64,
    ) -> Result<Option<Decision>, Self::Error>;

    /// Gives a charge back, without the nanoseconds that have passed since.
    fn undo(&self, seen: &Self::Seen, charge: Charge, now: &dyn Fn() -> u64);
}

/// A node on the way from the root to a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) hash: u64,
    pub(super) intervals: Intervals,
    /// The node admits the request if it owes at most so much.
    pub(super) most: u64,
}

/// The result of a request, with places on the way in place of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeDecision {
    pub(super) decision: Decision,
    /// The place of the binding node: 0 is the root.
    pub(super) bound: usize,
    /// The nanoseconds that a permit costs the leaf.
    pub(super) interval: u64,
}

/// A charge that a call will make.
#[derive(Clone, Copy)]
struct Planned<S> {
    seen: S,
    charge: u64,
    most: u64,
}

/// Decides on `cost` permits for the leaf at the end of `way`, and charges all nodes or none.
///
/// The leaf is charged first and the root last. So a call that loses a race for a node has charged
/// only nodes below it, which fewer callers share, and gives these charges back.
#[inline(never)]
pub(super) fn take<N: Nodes>(
    nodes: &N,
    way: &[Link],
    burst: u64,
    (now, cost): (u64, u64),
    clock: &dyn Fn() -> u64,
) -> Result<TreeDecision, N::Error> {
    let mut planned: [Option<Planned<N::Seen>>; LEVELS_MOST] = [None; LEVELS_MOST];
    let mut outcome =
        TreeDecision { decision: Decision::admitted(u64::MAX), bound: 0, interval: 0 };
    let mut above: Option<(u64, u64)> = None;
    for ((place, link), plan) in way.iter().enumerate().zip(planned.iter_mut()) {
        let seen = nodes.see(link.hash, now);
        let debt = nodes.debt(&seen, now);
        let interval = match above {
            None => link.intervals.ceiling,
            Some((interval, debt)) => share(interval, debt, burst, &link.intervals),
        };
        above = Some((interval, debt));
        // Every charge covers the cost at the ceiling, or the ceiling would not hold.
        let room = DEBT_MOST.saturating_sub(link.most);
        let never = cost.saturating_mul(link.intervals.ceiling) > room;
        let charge = cost.saturating_mul(interval).min(room);
        outcome.note(place, link, interval, debt, charge, never);
        *plan = Some(Planned { seen, charge, most: link.most });
    }
    if cost == 0 || !outcome.decision.is_allowed() {
        return Ok(outcome);
    }
    let planned = planned.get(..way.len()).unwrap_or_default();
    for (place, plan) in planned.iter().enumerate().rev() {
        let Some(Planned { seen, charge, most }) = plan else { continue };
        let refused = match nodes.charge(seen, now, *charge, *most) {
            Ok(None) => continue,
            refused => refused,
        };
        // The root's charge is the last one. So the call that gives charges back has made those of
        // the places after `place`.
        for Planned { seen, charge, .. } in planned.iter().skip(place + 1).flatten() {
            nodes.undo(seen, Charge { at: now, cost: *charge }, clock);
        }
        return Ok(match refused? {
            Some(decision) => TreeDecision {
                decision: Decision { remaining: 0, ..decision },
                bound: place,
                ..outcome
            },
            None => outcome,
        });
    }
    Ok(outcome)
}

impl TreeDecision {
    /// Adds a node's part of the decision.
    #[inline]
    fn note(
        &mut self,
        place: usize,
        link: &Link,
        interval: u64,
        debt: u64,
        charge: u64,
        never: bool,
    ) {
        self.interval = interval;
        let all = &mut self.decision;
        if never {
            (all.verdict, all.reason, all.retry_after, all.remaining) =
                (Verdict::Never, Reason::Burst, NEVER, 0);
            self.bound = place;
        } else if debt > link.most {
            let wait = debt - link.most;
            if wait > all.retry_after {
                (all.retry_after, all.remaining) = (wait, 0);
                self.bound = place;
            }
            if all.verdict == Verdict::Allowed {
                (all.verdict, all.reason) = (Verdict::Denied, Reason::Rate);
            }
        } else if all.verdict == Verdict::Allowed {
            let after = debt.saturating_add(charge);
            // A node that owes `most` or less admits one more.
            let left = link.most.checked_sub(after).map_or(0, |room| room / interval.max(1) + 1);
            if left <= all.remaining {
                all.remaining = left;
                self.bound = place;
            }
        }
        let owed = if all.verdict == Verdict::Allowed { debt.saturating_add(charge) } else { debt };
        all.reset_after = all.reset_after.max(owed);
    }
}
