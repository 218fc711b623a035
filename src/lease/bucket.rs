//! The store's side of a lease, as arithmetic: what `lease.lua` computes, line for line. What all keys have together is in
//! [`super::record`].
//!
//! The simulator searches it for violations, and a test asks a real Redis and this the same questions. Times are microseconds
//! of the data's time.

use super::record::{Met, Record, Visitor};
use super::terms::Terms;

/// What a node asks of a key's bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Permits that it would like.
    pub want: u64,
    /// Fewer are of no use to it.
    pub least: u64,
    /// The latest TAT of this key that it has seen: what a store that has lost the key is told.
    pub hint: u64,
    /// Permits that it has admitted without a lease.
    pub debt: u64,
    /// The store's time when the question was put, by the node's steady clock and earlier answers; 0: it has had none.
    pub at: u64,
    /// By how much the store's time may be beyond `at` when the question arrives.
    pub slack: u64,
}

/// What it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Permits; they have been charged.
    pub permits: u64,
    /// If there are none: microseconds until there could be `least`.
    pub retry: u64,
    /// The bucket's TAT now.
    pub tat: u64,
    /// The name of the data that the store has: another one has forgotten.
    pub epoch: u64,
    /// The store's time.
    pub now: u64,
    /// Whether stricter terms than the node's are in force.
    pub mixed: bool,
}

/// The whole script: the limit's record and a key's TAT, as they are stored, and a question, at `raw` by the server's clock.
pub fn execute(
    record: Option<Record>,
    stored: Option<u64>,
    terms: &Terms,
    ask: &Ask,
    visitor: &Visitor,
    raw: u64,
) -> (Met, Grant) {
    let met = Record::meet(record, terms, ask, visitor, raw);
    (met, Grant { mixed: met.mixed, ..grant(&met.record, stored, ask) })
}

/// Grants a lease from the bucket whose TAT is `stored`. `None` stands for a TAT that is not there; a damaged one counts as an
/// empty bucket.
fn grant(record: &Record, stored: Option<u64>, ask: &Ask) -> Grant {
    let Record { now, cap, id, .. } = *record;
    let furthest = now.saturating_add(record.wide);
    let tat = stored.unwrap_or(0).max(ask.hint).max(record.floor()).max(now).min(furthest);
    let tat = tat.saturating_add(record.charge(ask.debt)).min(furthest);
    let free = now.saturating_add(cap).saturating_sub(tat);
    let room = record.fitting(free);
    let least = ask.least.max(1);
    let told = Grant { permits: 0, retry: 0, tat, epoch: id, now, mixed: false };
    if ask.want == 0 {
        return told;
    }
    if room < least {
        let retry = record.charge(least).saturating_add(tat).saturating_sub(now.saturating_add(cap));
        return Grant { retry, ..told };
    }
    // Half of what is there, so that one node does not take it from all others.
    let permits = ask.want.max(least).min((room - room / 2).max(least));
    Grant { permits, tat: tat.saturating_add(record.charge(permits)), ..told }
}
