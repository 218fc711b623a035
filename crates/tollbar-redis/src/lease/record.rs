//! The record that the store keeps for all keys of a limit: the data's name, their time, and the
//! terms in force. `lease.lua` computes the same, line for line.
//!
//! **Time.** The server's clock may step, so the data have a time of their own. Between two
//! questions it advances by as much as the server's clock, and never goes back. The asking node
//! limits the advance: it sends its estimate of the store's time, from its own steady clock and
//! earlier answers ([`Ask::at`]). A node that has had no answer yet sets no limit.
//!
//! **Loss.** A key that the data lack has a full bucket. With [`OnLoss::Refill`] every key's bucket
//! counts as empty at the time of a loss ([`Record::floor`]).
//!
//! [`OnLoss::Refill`]: super::terms::OnLoss::Refill
//!
//! **Terms.** Machines may have different terms while a change is rolled out. The slower rate and
//! the smaller cap are in force until no machine has asked by them for [`Terms::hold`].

use super::ask::{Ask, Requester};
use super::terms::{fitting, micros, Terms};

/// The record of a limit. Times are microseconds on the record's own clock (above). `raw` alone is
/// on the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The name of the data (the epoch): a random number.
    pub id: u64,
    /// The server process that holds the data. Another process may have lost the last writes in a
    /// restart or a failover.
    pub run: u64,
    /// When the data began.
    pub born: u64,
    /// The time at which every key's bucket counts as empty.
    pub empty: u64,
    /// Whether data were lost. If so, `empty` holds for good, and otherwise until the data are
    /// [`GRACE`] old.
    pub lost: bool,
    /// The data's time at the last written question.
    pub now: u64,
    /// The server's clock at `now`, in microseconds since 1970.
    pub raw: u64,
    /// The least difference of the server's clock and the data's time since the last jump beyond
    /// `margin`. The server expires keys by its own clock.
    pub low: i64,
    /// The script expires keys this many microseconds later than necessary. So no key expires too
    /// early if the server's clock steps ahead by less.
    pub margin: u64,
    /// The rate in force is `num` permits in `den` microseconds.
    pub num: u64,
    /// See `num`.
    pub den: u64,
    /// The rate in force stands until this time at least.
    pub rate_until: u64,
    /// The cap in force: how far ahead of `now` grants may drive a key's TAT.
    pub cap: u64,
    /// The cap in force stands until this time at least.
    pub cap_until: u64,
    /// How far ahead of `now` debts may have driven a key's TAT.
    pub reach: u64,
    /// The time until which keys with debts of the former `reach` may exist.
    pub reach_until: u64,
}

/// The record after a question, before it is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The record, brought up to the question's time.
    pub record: Record,
    /// Whether the record has to be written back.
    pub write: bool,
    /// Whether stricter terms than the asking node's are in force.
    pub mixed: bool,
}

/// With [`OnLoss::Refill`](super::terms::OnLoss::Refill) every bucket of new data counts as empty
/// for this many microseconds. In that time a node that knew other data asks, and the record learns
/// that data were lost.
pub const GRACE: u64 = 1_000_000;
/// [`Record::margin`] of new data, in microseconds.
const MARGIN: u64 = 1_000_000;
/// The largest [`Record::margin`]: a day, in microseconds.
const MARGIN_MOST: u64 = 86_400_000_000;
/// An unchanged record is written again when it is this many microseconds old.
const STALE: u64 = 1000;

impl Record {
    /// Brings the stored record up to a question that `requester` asks when the server's clock says
    /// `raw` microseconds, or begins a record.
    pub fn apply(
        stored: Option<Record>,
        terms: &Terms,
        ask: &Ask,
        requester: &Requester,
        raw: u64,
    ) -> Update {
        let Some(mut record) = stored else {
            return Update {
                record: Record::new(terms, ask, requester, raw),
                write: true,
                mixed: false,
            };
        };
        let mut write = ask.want == 0 && ask.debt == 0 && ask.waiting == 0;
        write |= record.advance(ask, requester, raw);
        let refill = terms.refills();
        write |= record.suspect(requester, refill);
        write |= record.expire(refill);
        let (changed, mixed) = record.agree(terms);
        Update { record, write: write | changed, mixed }
    }

    /// The least TAT that any key counts with: an empty bucket at `empty`, or 0 if no data were
    /// lost. With `refill` new data count as lost until they are [`GRACE`] old.
    pub fn floor(&self, refill: bool) -> u64 {
        match self.lost || refill && self.now < self.born.saturating_add(GRACE) {
            true => self.empty.saturating_add(self.reach),
            false => 0,
        }
    }

    /// Microseconds that `permits` take, rounded up.
    pub fn charge(&self, permits: u64) -> u64 {
        u64::try_from(micros(permits, self.num, self.den)).unwrap_or(u64::MAX)
    }

    /// Whole permits that fit into `micros` microseconds.
    pub fn fitting(&self, micros: u64) -> u64 {
        fitting(micros, self.num, self.den)
    }

    fn new(terms: &Terms, ask: &Ask, requester: &Requester, raw: u64) -> Record {
        // If the asking node knows the time of earlier data, the new data's time goes on from it,
        // so that the node's hints and estimates still hold.
        let now = if ask.at > 0 { ask.at } else { raw };
        Record {
            id: requester.fresh,
            run: requester.run,
            born: now,
            empty: now,
            lost: requester.seen != 0 && terms.refills(),
            now,
            raw,
            low: difference(raw, now),
            margin: MARGIN,
            num: terms.num,
            den: terms.den,
            rate_until: now.saturating_add(terms.hold()),
            cap: terms.cap,
            cap_until: now.saturating_add(terms.hold()),
            reach: terms.debt_cap,
            reach_until: now.saturating_add(terms.debt_cap),
        }
    }

    /// Advances the data's time. Returns whether the script must write the record.
    fn advance(&mut self, ask: &Ask, requester: &Requester, raw: u64) -> bool {
        let (before, was) = (self.now, self.raw);
        self.now = before.saturating_add(raw.saturating_sub(was));
        // The asking node's time limits only the data that it knows: other data have another time.
        if ask.at > 0 && requester.seen == self.id {
            self.now = self.now.min(ask.at.saturating_add(ask.slack).max(before));
        }
        self.raw = raw;
        raw >= was.saturating_add(STALE) || difference(raw, self.now) != difference(was, before)
    }

    /// Whether this question shows for the first time that data were lost: the server runs as
    /// another process, or the asking node knows other data.
    /// Without `refill` a loss empties no bucket.
    fn suspect(&mut self, requester: &Requester, refill: bool) -> bool {
        if requester.run != 0 && requester.run != self.run {
            self.run = requester.run;
            if refill {
                (self.empty, self.lost) = (self.now, true);
            }
            return true;
        }
        if refill && requester.seen != 0 && requester.seen != self.id && !self.lost {
            // Within GRACE every bucket has counted as empty at `born`. It keeps doing so.
            self.empty =
                if self.now > self.born.saturating_add(GRACE) { self.now } else { self.born };
            self.lost = true;
            return true;
        }
        false
    }

    /// Detects a jump of the server's clock ahead by more than the margin. The server expires keys
    /// by that clock, so it may have dropped TATs too early. Then the margin becomes twice the
    /// jump, at most a day, and with `refill` every bucket counts as empty now. Returns whether
    /// there was such a jump.
    fn expire(&mut self, refill: bool) -> bool {
        let offset = difference(self.raw, self.now);
        let jumped = offset.saturating_sub(self.low);
        let lost = jumped > self.margin as i64;
        if lost {
            self.margin = (jumped as u64).saturating_mul(2).min(MARGIN_MOST);
            self.low = offset;
            if refill {
                (self.empty, self.lost) = (self.now, true);
            }
        }
        self.low = self.low.min(offset);
        lost
    }

    /// Merges the asking node's `terms` into those in force. Returns whether the terms in force
    /// have changed, and whether they are stricter than the node's own.
    fn agree(&mut self, terms: &Terms) -> (bool, bool) {
        let until = self.now.saturating_add(terms.hold());
        let (mut cap, mut reach) = (terms.cap, terms.debt_cap);
        let (mut changed, mut mixed) = (false, false);
        if (terms.num, terms.den) == (self.num, self.den) {
            self.rate_until = until;
        } else {
            let (own, agreed) =
                (terms.num as f64 / terms.den as f64, self.num as f64 / self.den as f64);
            if own < agreed || self.now > self.rate_until {
                // A TAT is a time, which is another number of permits at another rate. So every
                // bucket counts as empty.
                self.cap = least(self.cap as f64 * agreed / own, cap);
                (self.num, self.den, self.rate_until) = (terms.num, terms.den, until);
                (self.reach, self.reach_until) = (reach, self.now.saturating_add(reach));
                (self.empty, self.lost, changed) = (self.now, true, true);
            } else {
                (cap, reach, mixed) =
                    (least(cap as f64 * own / agreed, self.cap), self.reach, true);
            }
        }
        if cap <= self.cap || self.now > self.cap_until {
            changed |= cap != self.cap;
            (self.cap, self.cap_until) = (cap, until);
        } else {
            mixed = true;
        }
        if reach >= self.reach || self.now > self.reach_until {
            changed |= reach != self.reach;
            (self.reach, self.reach_until) = (reach, self.now.saturating_add(reach));
        }
        (changed, mixed)
    }
}

/// The smaller of the two, in microseconds, rounded down.
fn least(converted: f64, own: u64) -> u64 {
    match converted < own as f64 {
        true => converted as u64,
        false => own,
    }
}

fn difference(a: u64, b: u64) -> i64 {
    (a as i64).wrapping_sub(b as i64)
}
