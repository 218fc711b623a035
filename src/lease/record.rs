//! What the store keeps for all keys of a limit together, as `lease.lua` computes it, line for line: whose data these are, what
//! time it is by them, and the terms in force.
//!
//! **Time.** The server's clock may step. The time of the data goes on by what the clock advances between two questions, never
//! goes back, and goes no further than the asker allows, which counts on its own steady clock from the store's earlier
//! answers ([`Ask::at`]). A machine that has had no answer yet allows everything.
//!
//! **Loss.** After data were lost every key counts as empty at a time ([`Record::floor`]).
//!
//! **Terms.** Machines may disagree while a change is rolled out. The slower rate and the smaller cap are in force until nobody has asked
//! by them for [`Terms::hold`].

use super::bucket::Ask;
use super::terms::{fitting, micros, Terms};

/// The record of a limit. Times are microseconds of the data's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name of the data.
    pub id: u64,
    /// The server process that has them. A restart or a failover may have lost the last of them.
    pub run: u64,
    /// When the data began.
    pub born: u64,
    /// Every key counts as empty at this time...
    pub empty: u64,
    /// ...for good, or only until the data are [`GRACE`] old.
    pub lost: bool,
    /// The time of the data,
    pub now: u64,
    /// and what the server's clock said then.
    pub raw: u64,
    /// The least that the server's clock has been ahead of the data's time. Keys were written to expire by it.
    pub low: i64,
    /// How much longer than needed keys are kept, so that a step ahead of the server's clock does not expire them.
    pub margin: u64,
    /// The rate in force: so many permits
    pub num: u64,
    /// in so many microseconds,
    pub den: u64,
    /// until when at least,
    pub rate_until: u64,
    /// the cap in force,
    pub cap: u64,
    /// until when at least,
    pub cap_until: u64,
    /// how far ahead debts may have driven a key,
    pub wide: u64,
    /// and until when such keys may be there.
    pub wide_until: u64,
}

/// What an asker says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    /// The data that it knows; 0: none yet.
    pub seen: u64,
    /// The process that its connection leads to; 0: unknown.
    pub run: u64,
    /// The name for new data, should there be none.
    pub fresh: u64,
}

/// The record as an asker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The record, brought up to now.
    pub record: Record,
    /// Whether it has to be written back.
    pub write: bool,
    /// Whether stricter terms than the asker's are in force.
    pub mixed: bool,
}

/// How long new data wait for somebody who knew others, in microseconds.
pub const GRACE: u64 = 1_000_000;
/// [`Record::margin`] of new data, and the largest: a day.
const MARGIN: u64 = 1_000_000;
const MARGIN_MOST: u64 = 86_400_000_000;
/// An unchanged record is written again when its time is so old.
const STALE: u64 = 1000;

impl Record {
    /// The record that is in force when `visitor` asks at `raw` by the server's clock.
    pub fn meet(stored: Option<Record>, terms: &Terms, ask: &Ask, visitor: &Visitor, raw: u64) -> Met {
        let Some(mut record) = stored else {
            return Met { record: Record::new(terms, ask, visitor, raw), write: true, mixed: false };
        };
        let mut write = ask.want == 0 && ask.debt == 0;
        write |= record.advance(ask, visitor, raw);
        write |= record.suspect(visitor);
        write |= record.expire();
        let (changed, mixed) = record.agree(terms);
        Met { record, write: write | changed, mixed }
    }

    /// Where no key's TAT is below.
    pub fn floor(&self) -> u64 {
        match self.lost || self.now < self.born.saturating_add(GRACE) {
            true => self.empty.saturating_add(self.cap),
            false => 0,
        }
    }

    /// Microseconds that `permits` take, rounded up.
    pub fn charge(&self, permits: u64) -> u64 {
        u64::try_from(micros(permits, self.num, self.den)).unwrap_or(u64::MAX)
    }

    /// Permits that fit into so many microseconds.
    pub fn fitting(&self, micros: u64) -> u64 {
        fitting(micros, self.num, self.den)
    }

    fn new(terms: &Terms, ask: &Ask, visitor: &Visitor, raw: u64) -> Record {
        // The asker's times go on if it has any, so that what it knows of the keys still holds.
        let now = if ask.at > 0 { ask.at } else { raw };
        Record {
            id: visitor.fresh,
            run: visitor.run,
            born: now,
            empty: now,
            lost: visitor.seen != 0,
            now,
            raw,
            low: difference(raw, now),
            margin: MARGIN,
            num: terms.num,
            den: terms.den,
            rate_until: now.saturating_add(terms.hold()),
            cap: terms.cap,
            cap_until: now.saturating_add(terms.hold()),
            wide: terms.debt_cap,
            wide_until: now.saturating_add(terms.debt_cap),
        }
    }

    /// Brings the time up to now. Whether it has to be written.
    fn advance(&mut self, ask: &Ask, visitor: &Visitor, raw: u64) -> bool {
        let (before, was) = (self.now, self.raw);
        self.now = before.saturating_add(raw.saturating_sub(was));
        // An asker's time is that of the data that it knows.
        if ask.at > 0 && visitor.seen == self.id {
            self.now = self.now.min(ask.at.saturating_add(ask.slack).max(before));
        }
        self.raw = raw;
        raw >= was.saturating_add(STALE) || difference(raw, self.now) != difference(was, before)
    }

    /// Whether data have been lost, by what the asker knows.
    fn suspect(&mut self, visitor: &Visitor) -> bool {
        if visitor.run != 0 && visitor.run != self.run {
            *self = Record { run: visitor.run, empty: self.now, lost: true, ..*self };
            return true;
        }
        if visitor.seen != 0 && visitor.seen != self.id && !self.lost {
            // Up to here every key has counted as empty at the birth: so it goes on.
            self.empty = if self.now > self.born.saturating_add(GRACE) { self.now } else { self.born };
            self.lost = true;
            return true;
        }
        false
    }

    /// The server forgets keys by its own clock: one that jumped ahead by more than the margin may have forgotten debts. After that the margin
    /// covers twice the jump.
    fn expire(&mut self) -> bool {
        let offset = difference(self.raw, self.now);
        let jumped = offset.saturating_sub(self.low);
        let lost = jumped > self.margin as i64;
        if lost {
            self.margin = (jumped as u64).saturating_mul(2).min(MARGIN_MOST);
            (self.empty, self.lost, self.low) = (self.now, true, offset);
        }
        self.low = self.low.min(offset);
        lost
    }

    /// The terms in force, now that somebody has asked by `terms`: whether they have changed, and whether they are stricter.
    fn agree(&mut self, terms: &Terms) -> (bool, bool) {
        let until = self.now.saturating_add(terms.hold());
        let (mut cap, mut wide) = (terms.cap, terms.debt_cap);
        let (mut changed, mut mixed) = (false, false);
        if (terms.num, terms.den) == (self.num, self.den) {
            self.rate_until = until;
        } else {
            let (own, agreed) = (terms.num as f64 / terms.den as f64, self.num as f64 / self.den as f64);
            if own < agreed || self.now > self.rate_until {
                // What keys have used was counted at another rate, so all of them begin empty.
                self.cap = least(self.cap as f64 * agreed / own, cap);
                (self.num, self.den, self.rate_until) = (terms.num, terms.den, until);
                (self.wide, self.wide_until) = (wide, self.now.saturating_add(wide));
                (self.empty, self.lost, changed) = (self.now, true, true);
            } else {
                (cap, wide, mixed) = (least(cap as f64 * own / agreed, self.cap), self.wide, true);
            }
        }
        if cap <= self.cap || self.now > self.cap_until {
            changed |= cap != self.cap;
            (self.cap, self.cap_until) = (cap, until);
        } else {
            mixed = true;
        }
        if wide >= self.wide || self.now > self.wide_until {
            changed |= wide != self.wide;
            (self.wide, self.wide_until) = (wide, self.now.saturating_add(wide));
        }
        (changed, mixed)
    }
}

/// The lesser of the two, in whole microseconds.
fn least(converted: f64, own: u64) -> u64 {
    match converted < own as f64 {
        true => converted as u64,
        false => own,
    }
}

fn difference(a: u64, b: u64) -> i64 {
    (a as i64).wrapping_sub(b as i64)
}
