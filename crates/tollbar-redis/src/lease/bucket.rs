//! How the store answers one question: the arithmetic of `lease.lua`, line for line. The record
//! that all keys of a limit share is in [`super::record`].
//!
//! The simulator (tests/lease_simulation.rs) searches this arithmetic for violations of the bound.
//! tests/redis_lease_script.rs asks it and a real Redis the same questions. Times are microseconds
//! on the record's own clock, which never goes back ([`super::record`]).

use super::ask::{Ask, Requester};
use super::record::{Record, Update};
use super::terms::Terms;

/// The store's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Permits granted. The store has charged them.
    pub permits: u64,
    /// Microseconds until `least` permits could be granted, if none were.
    pub retry: u64,
    /// The key's TAT after this question.
    pub tat: u64,
    /// The name of the store's data. Another name than in earlier answers means that the store has
    /// lost the earlier data.
    pub epoch: u64,
    /// The data's time.
    pub now: u64,
    /// Whether stricter terms than the node's are in force.
    pub mixed: bool,
}

/// Answers `ask` as the script does, from the stored record and TAT, when the server's clock says
/// `raw` microseconds. Returns the record that the script stores, and the answer.
pub fn execute(
    record: Option<Record>,
    stored: Option<u64>,
    terms: &Terms,
    ask: &Ask,
    requester: &Requester,
    raw: u64,
) -> (Update, Grant) {
    let update = Record::apply(record, terms, ask, requester, raw);
    (update, Grant { mixed: update.mixed, ..grant(&update.record, stored, ask) })
}

/// Charges the debt and grants a lease from the bucket whose TAT is `stored`. `None`: the store has
/// no TAT for the key, so the bucket is as full as the question's hint and the record's floor
/// allow. Debts drive a TAT at most `reach` ahead of now, so a later one is lowered to that.
fn grant(record: &Record, stored: Option<u64>, ask: &Ask) -> Grant {
    let Record { now, cap, id, .. } = *record;
    let furthest = now.saturating_add(record.reach);
    let tat = stored.unwrap_or(0).max(ask.hint).max(record.floor()).max(now).min(furthest);
    let tat = tat.saturating_add(record.charge(ask.debt)).min(furthest);
    let free = now.saturating_add(cap).saturating_sub(tat);
    let room = record.fitting(free);
    let least = ask.least.max(1);
    let none = Grant { permits: 0, retry: 0, tat, epoch: id, now, mixed: false };
    if ask.want == 0 {
        return none;
    }
    if room < least {
        let retry =
            record.charge(least).saturating_add(tat).saturating_sub(now.saturating_add(cap));
        return Grant { retry, ..none };
    }
    // The grant is at most half of the permits left, unless `least` is more. The other half stays
    // for the other nodes.
    let permits = ask.want.max(least).min((room - room / 2).max(least));
    Grant { permits, tat: tat.saturating_add(record.charge(permits)), ..none }
}
