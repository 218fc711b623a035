//! The record that the store keeps for all keys of a limit: the data's name, their time, and the
//! terms in force. `lease.lua` computes the same, line for line.
//!
//! **Time.** The server's clock may step, so the data have a time of their own. Between two
//! questions it advances by as much as the server's clock, and never goes back. The asking node
//! limits the advance: it sends its estimate of the store's time, from its own steady clock and
//! earlier answers ([`Ask::at`]). A node that has had no answer yet sets no limit.
//!
//! **Loss.** The script writes the record before it answers, so each time that a node has heard was
//! the record's. If a node has heard a later time than the record's, or one at which no question
//! was asked, the data were rolled back. A node that has heard of data with another name knows that
//! those were lost. A key that the data lack has a full bucket. With [`OnLoss::Refill`] every
//! key's bucket counts as empty at the time of a loss ([`Record::floor`]).
//!
//! **Terms.** The terms in force are the record's. A question with terms of a higher version puts
//! these in force ([`super::change`]).
//!
//! [`OnLoss::Refill`]: super::terms::OnLoss::Refill

use super::ask::{Ask, Requester};
use super::change::{ceiling, ratio, Change, Changes, FARTHEST, HOLD};
use super::terms::{fitting, micros, Terms, EXACT};

/// The record of a limit. Times are microseconds on the record's own clock (above). `raw` alone is
/// on the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The name of the data (the epoch): a random number.
    pub id: u64,
    /// When the data began.
    pub born: u64,
    /// When data were last lost; before the first loss when the data began.
    pub empty: u64,
    /// The least TAT of every key, by which its bucket was empty at `empty`.
    pub floor: u64,
    /// Whether data were lost. If so, `floor` holds for good, and otherwise until the data are
    /// [`GRACE`] old.
    pub lost: bool,
    /// The data's time at the last question.
    pub now: u64,
    /// The server's clock at `now`, in microseconds since 1970.
    pub raw: u64,
    /// The least difference of the server's clock and the data's time since the last jump beyond
    /// `margin`. The server expires keys by its own clock.
    pub low: i64,
    /// The script expires keys this many microseconds later than necessary. So no key expires too
    /// early if the server's clock steps ahead by less.
    pub margin: u64,
    /// Times without a question that ended with the first question on a connection.
    pub gaps: Gaps,
    /// The terms in force.
    pub terms: Terms,
    /// The cap in force until `tight_until`, if it is smaller than the terms'.
    pub tight: u64,
    /// Until this time a machine may have the former terms.
    pub tight_until: u64,
    /// From this time on a smaller burst may cut what a key has used to that burst.
    pub cut_from: u64,
    /// How far ahead of `now` a TAT may be until `far_until`, if the terms' `debt_cap` is less.
    pub far: u64,
    /// The time until which keys may have TATs of former terms.
    pub far_until: u64,
    /// The last changes of the terms.
    pub changes: Changes,
}

/// A time without a question, in microseconds of the data's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gap {
    /// The question before it.
    pub from: u64,
    /// The question after it.
    pub to: u64,
}

/// The longest gaps that ended within the last [`GRACE`]. A machine that asked before a loss asks
/// again within that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gaps {
    list: [Gap; GAPS],
    count: usize,
}

const GAPS: usize = 4;

impl Gaps {
    /// The gaps.
    pub fn list(&self) -> &[Gap] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// Forgets old gaps and, with `first`, remembers the gap between `before` and `now`.
    fn update(&mut self, before: u64, now: u64, first: bool) {
        let old = core::mem::take(self);
        for gap in old.list() {
            if gap.to.saturating_add(GRACE) >= now {
                self.push(*gap);
            }
        }
        if first && now > before {
            self.push(Gap { from: before, to: now });
        }
    }

    /// Adds a gap. If there is no room, the shortest gives way.
    fn push(&mut self, gap: Gap) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = gap;
            self.count += 1;
            return;
        }
        let shortest = self.list.iter_mut().min_by_key(|gap| gap.to - gap.from);
        if let Some(shortest) = shortest.filter(|least| least.to - least.from < gap.to - gap.from) {
            *shortest = gap;
        }
    }
}

/// With [`OnLoss::Refill`](super::terms::OnLoss::Refill) every bucket of new data counts as empty
/// for this many microseconds. In that time a node that knew other data asks, and the record learns
/// that data were lost.
pub const GRACE: u64 = 1_000_000;
/// [`Record::margin`] of new data, in microseconds.
const MARGIN: u64 = 1_000_000;
/// The largest [`Record::margin`]: a day, in microseconds.
const MARGIN_MOST: u64 = 86_400_000_000;

impl Record {
    /// Brings the stored record up to a question that `requester` asks when the server's clock says
    /// `raw` microseconds, or begins a record with the `terms` of the asking node.
    pub fn apply(
        stored: Option<Record>,
        terms: &Terms,
        ask: &Ask,
        requester: &Requester,
        raw: u64,
    ) -> Record {
        let Some(mut record) = stored else {
            return Record::new(terms, ask, requester, raw);
        };
        let refill = record.terms.refills();
        let is_rolled_back = requester.seen == record.id && !record.may_have_said(requester.heard);
        record.advance(ask, requester, raw);
        if is_rolled_back {
            // No other node that heard of earlier times finds the same loss.
            record.now = record.now.max(requester.heard);
            record.gaps = Gaps::default();
            if refill {
                record.lose(record.now);
            }
        } else if refill
            && requester.seen != 0
            && requester.seen != record.id
            && (!record.lost || requester.heard > record.empty)
        {
            // Within GRACE every bucket has counted as empty at `born`. It keeps doing so.
            let is_old = record.lost || record.now > record.born.saturating_add(GRACE);
            record.lose(if is_old { record.now } else { record.born });
        }
        record.expire(refill);
        record.agree(terms);
        record
    }

    /// The least TAT that any key counts with: an empty bucket at `empty`, or 0 if no data were
    /// lost. With [`OnLoss::Refill`](super::terms::OnLoss::Refill) new data count as lost until
    /// they are [`GRACE`] old.
    pub fn floor(&self) -> u64 {
        let is_new = self.now < self.born.saturating_add(GRACE);
        match self.lost || self.terms.refills() && is_new {
            true => self.floor,
            false => 0,
        }
    }

    /// How far ahead of `now` grants may drive a key's TAT.
    pub fn cap(&self) -> u64 {
        match self.now < self.tight_until {
            true => self.terms.cap.min(self.tight),
            false => self.terms.cap,
        }
    }

    /// How far ahead of `now` a TAT may be.
    pub fn reach(&self) -> u64 {
        match self.now < self.far_until {
            true => self.terms.debt_cap.max(self.far),
            false => self.terms.debt_cap,
        }
    }

    /// Microseconds that `permits` take, rounded up.
    pub fn charge(&self, permits: u64) -> u64 {
        u64::try_from(micros(permits, self.terms.num, self.terms.den)).unwrap_or(u64::MAX)
    }

    /// Whole permits that fit into `micros` microseconds.
    pub fn fitting(&self, micros: u64) -> u64 {
        fitting(micros, self.terms.num, self.terms.den)
    }

    fn new(terms: &Terms, ask: &Ask, requester: &Requester, raw: u64) -> Record {
        // If the asking node knows the time of earlier data, the new data's time goes on from it,
        // so that the node's hints and estimates still hold.
        let now = if ask.at > 0 { ask.at } else { raw };
        Record {
            id: requester.fresh,
            born: now,
            empty: now,
            floor: now.saturating_add(terms.debt_cap),
            lost: requester.seen != 0 && terms.refills(),
            now,
            raw,
            low: difference(raw, now),
            margin: MARGIN,
            gaps: Gaps::default(),
            terms: Terms { version: terms.version.max(1), fallback: 0, ..*terms },
            tight: 0,
            tight_until: 0,
            cut_from: 0,
            far: 0,
            far_until: 0,
            changes: Changes::default(),
        }
    }

    /// Whether a node may have heard `time` from these data.
    fn may_have_said(&self, time: u64) -> bool {
        time <= self.now && !self.gaps.list().iter().any(|gap| gap.from < time && time < gap.to)
    }

    /// Every key's bucket counts as empty at `at`.
    fn lose(&mut self, at: u64) {
        (self.empty, self.floor) = (at, at.saturating_add(self.terms.debt_cap));
        self.lost = true;
    }

    /// Puts `terms` in force if their version is higher than the record's, and the last change is
    /// [`HOLD`] old.
    fn agree(&mut self, terms: &Terms) {
        if terms.version <= self.terms.version || self.now < self.tight_until {
            return;
        }
        let (old, now) = (self.terms, self.now);
        let charge =
            |permits| u64::try_from(micros(permits, terms.num, terms.den)).unwrap_or(u64::MAX);
        let slower = ratio(old.num, old.den, terms.num, terms.den);
        let far = self.reach() as f64 * if slower > 1.0 { slower } else { 1.0 };
        let mut most = 0;
        if terms.burst < old.burst && now >= self.cut_from {
            most = charge(terms.burst);
            self.cut_from = now.saturating_add(self.charge(old.burst));
        }
        self.changes.push(Change {
            version: terms.version,
            at: now,
            num: old.num,
            den: old.den,
            most,
        });
        (self.far, self.far_until) = (0, 0);
        self.far = ceiling(far).max(terms.debt_cap).min(FARTHEST);
        self.far_until = now.saturating_add(self.far);
        // Permits of machines' rights before all of them know the change.
        let burst = old.burst.max(terms.burst);
        let rights = match terms.overdraft >= old.overdraft {
            true => terms.nodes * terms.overdraft,
            false => {
                let more = terms.nodes.saturating_sub(old.nodes);
                old.nodes.min(terms.nodes) * old.overdraft + more * terms.overdraft
            }
        };
        self.tight = terms.cap;
        if terms.flags & EXACT != 0 {
            self.tight = terms.cap.min(charge(burst.saturating_sub(rights)));
        }
        self.tight_until = now.saturating_add(HOLD);
        // Nobody knows what keys had used at a loss, so the larger part of a burst counts as used.
        let grown = terms.debt_cap as f64 - old.debt_cap as f64 * slower;
        let left =
            (self.floor as f64 - now as f64) * slower + if grown > 0.0 { grown } else { 0.0 };
        let left = if most > 0 { ceiling(left).min(most) } else { ceiling(left) };
        self.floor = now.saturating_add(left);
        // Permits by which keys and the larger rights may be above the burst now.
        let before = if now < old.since { old.overdraft_before } else { old.overdraft };
        let granted = fitting(old.cap, old.num, old.den) + 1;
        let above = (granted + terms.nodes * terms.overdraft).saturating_sub(burst);
        self.terms = Terms { overdraft_before: terms.overdraft, since: 0, fallback: 0, ..*terms };
        if terms.overdraft > before && above > 0 && terms.flags & EXACT != 0 {
            self.terms.overdraft_before = before;
            self.terms.since = now.saturating_add(charge(above)).max(old.since);
        }
    }

    /// Advances the data's time.
    fn advance(&mut self, ask: &Ask, requester: &Requester, raw: u64) {
        let before = self.now;
        self.now = before.saturating_add(raw.saturating_sub(self.raw));
        // The asking node's time limits only the data that it knows: other data have another time.
        if ask.at > 0 && requester.seen == self.id {
            self.now = self.now.min(ask.at.saturating_add(ask.slack).max(before));
        }
        self.raw = raw;
        self.gaps.update(before, self.now, requester.first);
    }

    /// Detects a jump of the server's clock ahead by more than the margin. The server expires keys
    /// by that clock, so it may have dropped TATs too early. Then the margin becomes twice the
    /// jump, at most a day, and with `refill` every bucket counts as empty now.
    fn expire(&mut self, refill: bool) {
        let offset = difference(self.raw, self.now);
        let jumped = offset.saturating_sub(self.low);
        if jumped > self.margin as i64 {
            self.margin = (jumped as u64).saturating_mul(2).min(MARGIN_MOST);
            self.low = offset;
            if refill {
                self.lose(self.now);
            }
        }
        self.low = self.low.min(offset);
    }
}

fn difference(a: u64, b: u64) -> i64 {
    (a as i64).wrapping_sub(b as i64)
}
