//! How the store answers one question: the arithmetic of `lease.lua`, line for line. The record
//! that all keys of a limit share is in [`super::record`].
//!
//! The simulator (tests/lease_simulation.rs) searches this arithmetic for violations of the bound.
//! tests/redis_lease_script.rs asks it and a real Redis the same questions. Times are microseconds
//! on the record's own clock, which never goes back ([`super::record`]).

use super::ask::{Ask, Requester};
use super::change::Stored;
use super::record::Record;
use super::terms::Terms;

/// The store's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grant {
    /// Permits granted. The store has charged them.
    pub permits: u64,
    /// Permits for the requests that wait. The store has charged them as spent now.
    pub served: u64,
    /// Microseconds until the key has permits again: for the largest waiting cost if not all
    /// waiting requests were served, otherwise for `least` if a lease was wanted and not granted.
    pub retry: u64,
    /// The life of the lease in microseconds, from the sending of the question.
    pub life: u64,
    /// Whether at least an eighth of the largest grant is left. Then the key's right on the node is
    /// whole again.
    pub open: bool,
    /// The largest grant by the cap in force, in permits.
    pub most: u64,
    /// The key's TAT after this question.
    pub tat: u64,
    /// The name of the store's data. Another name than in earlier answers means that the store has
    /// lost the earlier data.
    pub epoch: u64,
    /// The data's time.
    pub now: u64,
    /// The terms in force, if they are not those of the question.
    pub terms: Option<Terms>,
}

/// Answers `ask` as the script does, from the stored record and the key's value, when the server's
/// clock says `raw` microseconds. Returns the record that the script stores, the answer, and the
/// key's new value. The script stores the value if its TAT is after the data's time.
pub fn execute(
    record: Option<Record>,
    stored: Option<Stored>,
    terms: &Terms,
    ask: &Ask,
    requester: &Requester,
    raw: u64,
) -> (Record, Grant, Stored) {
    let record = Record::apply(record, terms, ask, requester, raw);
    let same = record.terms == Terms { fallback: 0, ..*terms };
    // A TAT counts by the terms under which it was told.
    let hint = if record.terms.version == terms.version { ask.hint } else { 0 };
    let grant = grant(&record, stored, &Ask { hint, ..*ask });
    let answer = Grant { terms: (!same).then_some(record.terms), ..grant };
    let mut until = stored.map_or(0, |key| key.until);
    if answer.permits != 0 {
        until = until.max(answer.now.saturating_add(answer.life));
    }
    let until = if until > answer.now { until } else { 0 };
    (record, answer, Stored { tat: answer.tat, version: record.terms.version, until })
}

/// The store's answer to a question about no key: its time and the limit's terms.
pub fn probe(
    record: Option<Record>,
    terms: &Terms,
    ask: &Ask,
    requester: &Requester,
    raw: u64,
) -> (Record, Grant) {
    let record = Record::apply(record, terms, ask, requester, raw);
    let same = record.terms == Terms { fallback: 0, ..*terms };
    let (now, epoch, most) = (record.now, record.id, record.fitting(record.cap()));
    let terms = (!same).then_some(record.terms);
    (record, Grant { now, epoch, most, terms, ..Grant::default() })
}

/// Charges the debt, serves the requests that wait, and grants a lease, from the bucket whose value
/// is `stored`. `None`: the store has no value for the key, so the bucket is as full as the
/// question's hint and the record's floor allow. Debts drive a TAT at most [`Record::reach`] ahead
/// of now, so a later one is lowered to that.
///
/// A lease is charged as if the node spent it at the end of its life. So the bound needs nothing
/// kept back for lives.
fn grant(record: &Record, stored: Option<Stored>, ask: &Ask) -> Grant {
    let (Record { now, id, .. }, cap) = (*record, record.cap());
    let (furthest, limit) = (now.saturating_add(record.reach()), now.saturating_add(cap));
    let Terms { num, den, .. } = record.terms;
    let known = stored.map_or(0, |key| record.changes.convert(&key, num, den));
    let mut tat = known.max(ask.hint).max(record.floor()).max(now).min(furthest);
    tat = tat.saturating_add(record.charge(ask.debt)).min(furthest);
    let served = served(record.fitting(limit.saturating_sub(tat)), ask);
    tat = tat.saturating_add(record.charge(served));
    let mut grant = Grant { served, most: record.fitting(cap), epoch: id, now, ..Grant::default() };
    let (least, cost) = (ask.least.max(1), ask.cost.max(1));
    let missing = |permits| record.charge(permits).saturating_add(tat).saturating_sub(limit);
    if served < ask.waiting {
        grant.retry = missing(cost).max(1);
    } else if ask.want != 0 {
        // A key with a backlog may have a long life for nothing. A life never leaves less than
        // `least`.
        let life = ask.life.max((tat - now).min(cap / 2));
        grant.life = life.min(cap.saturating_sub(record.charge(least)));
        let from = tat.max(now.saturating_add(grant.life));
        let room = record.fitting(limit.saturating_sub(from));
        if room < least {
            grant.retry = missing(least).max(1);
        } else {
            // The grant is at most half of the permits left, unless `least` is more. The other half
            // stays for the other nodes.
            grant.permits = ask.want.max(least).min((room - room / 2).max(least));
            tat = from.saturating_add(record.charge(grant.permits));
        }
    }
    let margin = record.charge(grant.most / 8);
    Grant { tat, open: tat.saturating_add(margin) <= limit, ..grant }
}

/// As many of the waiting permits as there is room for. If not all fit, the largest waiting cost
/// divides them.
fn served(room: u64, ask: &Ask) -> u64 {
    match ask.waiting <= room {
        true => ask.waiting,
        false => room - room.checked_rem(ask.cost).unwrap_or(0),
    }
}
