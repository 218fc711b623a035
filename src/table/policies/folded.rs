//! Windows and logs in a table with room, where keys come under them from any policy and leave them
//! for any other.
//!
//! A key comes under a window or log with a *folded* word ([`crate::limiter::unfolding`]), which
//! says how many permits are used and since when. The functions here read and write such words.
//! [`Policies::apply`] unfolds the state, and decides as in a limiter.

use super::compiled::Version;
use super::multi_word::{decided, Decided, MultiWord, Op};
use super::{Keep, Policies};
use crate::algorithm::sliding_log::{Packing, SlidingLog};
use crate::algorithm::sliding_window::{Mark, Starts};
use crate::algorithm::{after, Algorithm, Rule};
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::log::LogView;
use crate::limiter::ring::RingView;
use crate::limiter::state_word::given_up;
use crate::limiter::unfolding::{Unfolded, UNFOLDED};
use crate::table::memory::error::TableError;
use crate::table::memory::mix::fold;
use crate::table::memory::slot::{Slot, SlotPair};
use crate::units::NEVER;

/// Words of a table with room.
impl MultiWord {
    /// The room that the policy needs: the segments of a window, or the permits of a log.
    fn room(&self) -> u64 {
        match self {
            MultiWord::Ring(window) => window.segments(),
            MultiWord::Log(log) => log.log().limit(),
        }
    }

    /// Refuses the policy if it needs more room than `has`.
    pub(crate) fn fits_room(&self, has: u64) -> Result<(), TableError> {
        match self.room() {
            needs if needs > has => Err(TableError::SlotRoom { needs, has }),
            _ => Ok(()),
        }
    }

    /// [`MultiWord::expires_at`] of a word, folded or not.
    pub(super) fn expires_in_room(&self, state: u64) -> u64 {
        let word = state >> 1;
        match self {
            MultiWord::Log(log) if log.ceiling(word) >= SlidingLog::LAST => NEVER,
            _ => self.expires_at(word),
        }
    }

    /// The folded word of a key that has used `permits` at `now`, at most all. It is not 0.
    pub(crate) fn used_at(&self, permits: u64, now: u64) -> u64 {
        let permits = permits.min(self.limit());
        let word = match self {
            MultiWord::Ring(window) => {
                let (segment, _) = window.segment_in_time(now.min(window.last_time()));
                window.pack(Mark { segment: segment.max(1), count: permits })
            }
            // No `clamp`, which can panic.
            MultiWord::Log(log) => log.next(0, permits, now.max(log.grain()).min(SlidingLog::LAST)),
        };
        word << 1
    }

    /// The folded word of a key that has used `permits`, which come back at `until` or as soon
    /// after it as the word can say.
    pub(super) fn owing_permits(&self, permits: u64, until: u64) -> u64 {
        match self {
            MultiWord::Ring(window) => {
                let (last, elapsed) = window.segment_in_time(until.min(window.last_time()));
                let is_late = until > window.last_time() || elapsed != 0;
                let free = last + u64::from(is_late);
                let segment = free.saturating_sub(window.counted()).max(1);
                window.pack(Mark { segment, count: permits.min(self.limit()) }) << 1
            }
            MultiWord::Log(log) => self.used_at(permits, until.saturating_sub(log.log().period())),
        }
    }

    /// The permits that a folded state has left at `now`. Of a log it may be too few for as long as
    /// a grain.
    pub(crate) fn left_folded(&self, state: u64, now: u64) -> u64 {
        let word = state >> 1;
        match self {
            _ if now > self.last_time() => 0,
            MultiWord::Ring(window) => {
                let mark = window.unpack(word);
                let (segment, elapsed) = window.segment_in_time(now);
                let judged = segment.max(mark.segment);
                let elapsed = if judged == segment { elapsed } else { 0 };
                let start = |back: u64| match judged.checked_sub(back) {
                    Some(of) if of > mark.segment => mark.count,
                    _ => 0,
                };
                let starts = Starts {
                    whole: start(window.whole()),
                    partial: start(window.whole() + u64::from(window.partial())),
                };
                window.left(mark.count, starts, elapsed)
            }
            MultiWord::Log(_) if self.expires_in_room(state) <= now => self.limit(),
            MultiWord::Log(log) => self.limit() - log.head(word).min(self.limit()),
        }
    }

    /// The decision on a request of a key that has no slot, and owes what `state` says.
    pub(crate) fn decide_folded(&self, state: u64, now: u64, op: Op) -> Decided {
        let (left, wait) = (self.left_folded(state, now), after(self.expires_in_room(state), now));
        let verdict = match op {
            Op::Check(cost) | Op::Peek(cost) if cost > self.limit() => Verdict::Never,
            Op::Check(cost) | Op::Peek(cost) if cost > left => Verdict::Denied,
            Op::TakeUpTo(1..) if left == 0 => Verdict::Denied,
            _ => Verdict::Allowed,
        };
        let retry_after = match verdict {
            Verdict::Allowed => 0,
            Verdict::Denied => wait,
            Verdict::Never => NEVER,
        };
        let reason = Reason::of(verdict);
        let decision =
            Decision { verdict, reason, remaining: left, retry_after, reset_after: wait, bound: 0 };
        Decided { decision, taken: 0 }
    }
}

/// States of a version of any algorithm.
impl Version {
    pub(crate) fn expires_at(&self, state: u64) -> u64 {
        match &self.multi_word {
            None => self.rule.expires_at(state),
            Some(policy) if self.has_room => policy.expires_in_room(state),
            Some(policy) => policy.expires_at(state),
        }
    }

    /// A state that owes everything until `until` or longer. Of a window or log it expires later
    /// than `until`.
    pub(crate) fn owing(&self, until: u64) -> u64 {
        match &self.multi_word {
            None => self.rule.owing(until),
            Some(policy) => policy.owing_permits(u64::MAX, until.saturating_add(1)),
        }
    }

    /// Whether a slot with this state stays taken until `until`. Of a window or log: longer,
    /// because no folded word may come back to a slot.
    pub(crate) fn outlasts(&self, state: u64, until: u64) -> bool {
        let expires = self.expires_at(state);
        match self.multi_word {
            None => expires >= until,
            Some(_) => expires > until || expires == NEVER,
        }
    }

    /// [`Rule::hold`]. A window or log keeps all permits that are left, and the used ones come back
    /// later.
    pub(crate) fn hold(&self, state: u64, until: u64, now: u64, exact: bool) -> Option<u64> {
        match &self.multi_word {
            None => self.rule.hold(state, until, now, exact),
            Some(policy) if self.has_room && state & UNFOLDED == 0 && !exact => {
                Some(policy.raised(state, until))
            }
            Some(_) => None,
        }
    }
}

impl MultiWord {
    /// A folded state with as many permits left that expires after `until`.
    fn raised(&self, state: u64, until: u64) -> u64 {
        let used = match self {
            MultiWord::Ring(window) => window.unpack(state >> 1).count,
            MultiWord::Log(log) => log.head(state >> 1),
        };
        self.owing_permits(used, until.saturating_add(1)).max(state)
    }
}

/// The permits that a key has left under a version.
struct Standing {
    /// The permits that the key has left.
    left: u64,
    /// The permits of a fresh key.
    most: u64,
    /// The time from which the key is as good as fresh.
    until: u64,
}

impl Policies {
    /// Decides on a request of the key in `slot` under a window or log. `None` if the slot no
    /// longer holds the key, or if the number of `version` is another's.
    pub(crate) fn apply(
        &self,
        version: &Version,
        slot: &Slot,
        key: u64,
        now: u64,
        op: Op,
    ) -> Option<Decided> {
        let policy = version.multi_word.as_ref()?;
        let (first, cells) = self.memory.cells(slot).split_first()?;
        let mark = |(key, state)| fold(&[key, state]);
        let (head, folded) = Unfolded::open(slot, key, first, mark)?;
        if !self.is_numbered(version) {
            return None;
        }
        let found = match policy {
            MultiWord::Ring(window) => {
                let cells = cells.get(..window.places() as usize)?;
                decided(&RingView::new(&head, head.places(cells), window), now, op)
            }
            MultiWord::Log(log) => {
                let cells = cells.get(..log.side_words() as usize)?;
                let view = LogView::new(&head, head.places(cells), log)?;
                if let Some(word) = folded {
                    view.enter_first(word, now);
                }
                decided(&view, now, op)
            }
        }?;
        match (head.is_current(), found.taken) {
            (true, _) => Some(found),
            (false, 0) => None,
            // The permits have been taken, and another call has changed the key's policy since.
            (false, taken) => {
                Some(Decided { decision: given_up(Verdict::Allowed, policy.limit()), taken })
            }
        }
    }

    /// The permits that the key of `pair` has left under `version`. The caller has read `pair` from
    /// `slot`. If the slot has changed since, the answer is wrong, and the caller's swap from `pair`
    /// fails.
    fn standing(&self, version: &Version, slot: &Slot, pair: SlotPair, now: u64) -> Standing {
        let until = version.expires_at(pair.state);
        match &version.multi_word {
            None => Standing {
                left: version.rule.available(pair.state, now),
                most: version.rule.available(0, now),
                until: version.rule.full_before_floor(pair.state).unwrap_or(until),
            },
            Some(policy) if pair.state & UNFOLDED == 0 => {
                Standing { left: policy.left_folded(pair.state, now), most: policy.limit(), until }
            }
            Some(policy) => {
                let peeked = self.apply(version, slot, pair.key, now, Op::Peek(1));
                let (left, wait) = peeked.map_or((0, NEVER), |peeked| {
                    (peeked.decision.remaining, peeked.decision.reset_after)
                });
                Standing { left, most: policy.limit(), until: now.saturating_add(wait) }
            }
        }
    }

    /// The permits that the key in `slot` has left, for a report.
    pub(crate) fn remaining(
        &self,
        version: &Version,
        slot: &Slot,
        pair: SlotPair,
        now: u64,
    ) -> u64 {
        self.standing(version, slot, pair, now).left
    }

    /// The permits by which the key in `slot` falls short of a fresh key under `last`, the current
    /// version of its policy, at `now`. The slot's version is `old`.
    pub(crate) fn used(
        &self,
        last: &Version,
        old: &Version,
        slot: &Slot,
        pair: SlotPair,
        now: u64,
    ) -> u64 {
        let Standing { left, most, until } = self.standing(old, slot, pair, now);
        let most = match &last.multi_word {
            _ if until <= now || last.key == old.key => most,
            Some(policy) => policy.limit(),
            None => last.rule.available(0, now),
        };
        if until <= now {
            0
        } else {
            most.saturating_sub(left)
        }
    }

    /// Converts the state of the key in `slot` from `old` to `new`, one of which is a window or
    /// log. The result is 0 if the key is as good as fresh. The state of a limiter changes in the
    /// same way (`crate::limiter::change`).
    pub(super) fn convert_standing(
        &self,
        (new, old): (&Version, &Version),
        slot: &Slot,
        pair: SlotPair,
        now: u64,
    ) -> u64 {
        let keep = new.terms.keep_from(old.terms);
        let Standing { left, most, until } = self.standing(old, slot, pair, now);
        let is_quota = |version: &Version| matches!(version.rule, Rule::Quota(_));
        let used = match keep {
            Keep::Reset => return 0,
            _ if until <= now || left >= most && old.multi_word.is_some() => return 0,
            // A limit of 0 counts nothing.
            _ if new.is_closed() || old.is_closed() => return new.owing(until),
            // A quota has no time until which it owes, so the permits used are kept.
            Keep::Time if is_quota(old) || is_quota(new) => most.saturating_sub(left),
            Keep::Time => match &new.multi_word {
                None => return new.rule.owing(until),
                Some(policy) => return policy.owing_permits(u64::MAX, until),
            },
            Keep::Count => match &new.multi_word {
                None => new.rule.available(0, now).saturating_sub(left),
                Some(policy) => policy.limit().saturating_sub(left),
            },
        };
        match &new.multi_word {
            None => new.rule.charged(used, now),
            Some(_) if used == 0 => 0,
            Some(policy) => policy.used_at(used, now),
        }
    }
}
