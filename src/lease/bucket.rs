//! The store's side of a lease, as arithmetic: what `lease.lua` computes, line for line.
//!
//! The in-memory store grants by it, the simulator searches it for violations, and a test asks a real Redis and this the same
//! questions. Times are microseconds of the store's clock.

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
}

/// What the store knows about all of a limit's keys: since when it can vouch for its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The name of the data.
    pub id: u64,
    /// The process that has them. A restart or a failover may have lost the last of them.
    pub run: u64,
    /// When the data began.
    pub born: u64,
    /// Every key counts as empty at this time,
    pub empty: u64,
    /// for good, or only until nobody has come who knew other data.
    pub lost: bool,
}

/// How long new data wait for somebody who knew others, in microseconds.
pub const GRACE: u64 = 1_000_000;

impl Epoch {
    /// The epoch that is in force when a node comes which has last seen data called `seen` (0: none), on a
    /// connection to the process `run` (0: unknown); `fresh` is the name for new data.
    pub fn meet(stored: Option<Epoch>, seen: u64, run: u64, fresh: u64, now: u64) -> Epoch {
        let Some(mut epoch) = stored else {
            return Epoch { id: fresh, run, born: now, empty: now, lost: seen != 0 };
        };
        if run != 0 && run != epoch.run {
            epoch = Epoch { run, empty: now, lost: true, ..epoch };
        } else if seen != 0 && seen != epoch.id && !epoch.lost {
            // Up to here every key has counted as empty at the birth: so it goes on.
            epoch.empty = if now > epoch.born.saturating_add(GRACE) { now } else { epoch.born };
            epoch.lost = true;
        }
        epoch
    }

    /// Where no key's TAT is below.
    pub fn floor(&self, terms: &Terms, now: u64) -> u64 {
        match self.lost || now < self.born.saturating_add(GRACE) {
            true => self.empty.saturating_add(terms.cap),
            false => 0,
        }
    }
}

/// Grants a lease from the bucket whose TAT is `stored`; [`Grant::epoch`] is left to the caller. `None` stands for a TAT that
/// is not there; a damaged one counts as an empty bucket.
pub fn grant(terms: &Terms, stored: Option<u64>, floor: u64, ask: &Ask, now: u64) -> Grant {
    let furthest = now.saturating_add(terms.debt_cap);
    let tat = stored.unwrap_or(0).max(ask.hint).max(floor).max(now).min(furthest);
    let tat = tat.saturating_add(terms.charge(ask.debt)).min(furthest);
    let free = now.saturating_add(terms.cap).saturating_sub(tat);
    let room = terms.fitting(free);
    let least = ask.least.max(1);
    if ask.want == 0 || room < least {
        let retry = terms.charge(least).saturating_add(tat).saturating_sub(now.saturating_add(terms.cap));
        return Grant { permits: 0, retry: if ask.want == 0 { 0 } else { retry }, tat, epoch: 0 };
    }
    // Half of what is there, so that one node does not take it from all others.
    let permits = ask.want.max(least).min((room - room / 2).max(least));
    Grant { permits, retry: 0, tat: tat.saturating_add(terms.charge(permits)), epoch: 0 }
}
