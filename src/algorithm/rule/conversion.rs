//! States that come from one rule to another: of a key whose policy changes, and of a key that moves to a table on
//! another clock.

use super::super::{after, Algorithm};
use super::Rule;
use crate::units::{LAST, NEVER};

impl Rule {
    /// Moves a key's state to a changed policy and keeps the time until which it owes: `state` belongs to
    /// `old`, the result to this rule.
    ///
    /// If the two rules count alike, the permits used stay used, up to the new limit. Rules count alike if they
    /// are equal, have windows of the same length and alignment, or refill as many permits at the same times.
    /// Every other pair keeps the time at which the old state would have been as good as fresh, and the result
    /// owes everything until then ([`Algorithm::owing`]).
    ///
    /// The result is 0 only for 0. It expires no earlier than `state` did under `old`. Over a change a key is
    /// admitted at most what `old` could have admitted before it, plus what this rule admits to a fresh state after
    /// it.
    ///
    /// A caller that knows the time should put the fresh word 0 in place of an expired state. Where this rule
    /// counts in windows, a state that has just expired may otherwise owe the rest of a window.
    pub fn adopt(&self, old: &Rule, state: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        match self.adopt_alike(old, state) {
            Some(word) if word != 0 => word,
            _ => self.owing(old.expires_at(state)),
        }
    }

    fn adopt_alike(&self, old: &Rule, state: u64) -> Option<u64> {
        match self {
            Rule::Interval(new) => {
                let Rule::Interval(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::FixedWindow(new) => {
                let Rule::FixedWindow(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Curve(new) => {
                let Rule::Curve(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::WeightedWindow(new) => {
                let Rule::WeightedWindow(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Ban(new) => {
                let Rule::Ban(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Pair(new) => {
                let Rule::Pair(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Calendar(new) => {
                let Rule::Calendar(old) = old else { return None };
                new.adopt(old, state)
            }
            Rule::Quota(new) => {
                if let Rule::Closed = old {
                    // A closed rule's word holds a quota's count or a time. A time says no number of permits, so it
                    // counts as none.
                    return Some(new.used(closed_count(state).unwrap_or(0)));
                }
                let Rule::Quota(old) = old else { return None };
                Some(new.adopt(old, state))
            }
            Rule::Closed => {
                let Rule::Quota(old) = old else { return None };
                Some((LAST + 1).saturating_add(old.used_of(state)))
            }
            // The callers have handled equal rules before.
            Rule::Gcra(_) | Rule::Pacer(_) | Rule::WarmUp(_) | Rule::LevelRefill(_) => None,
        }
    }

    /// Moves a key's state to a changed policy and keeps its permits as a number: `state` belongs to `old`, the
    /// result to this rule, which takes over at `now`.
    ///
    /// The result has as many permits left as `state`, rounded down, and no more than a fresh state. Only between
    /// token buckets it also keeps the part of a permit that has been refilled. A debt stays as many permits, up to
    /// this rule's burst. So no wait is longer than this rule takes to refill (a token bucket: twice), and the change
    /// admits no request that was refused before it.
    ///
    /// If the two rules count alike ([`Rule::adopt`]), the permits used are kept. A closed rule counts nothing, so a
    /// change to or from it keeps the time; but a quota's count stays in the word while the rule is closed. The
    /// result is 0 for a fresh state. Unlike the result of [`Rule::adopt`] it may expire earlier than `state` did.
    pub fn convert(&self, old: &Rule, state: u64, now: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        if let Some(banned) = self.keep_ban(old, state, now) {
            return banned;
        }
        if let (Rule::Gcra(gcra), Rule::Gcra(old)) = (self, old) {
            return gcra.convert(old, state, now);
        }
        if let (Rule::Pair(pair), Rule::Pair(old)) = (self, old) {
            return pair.convert(old, state, now);
        }
        match self.adopt_alike(old, state) {
            Some(word) if word != 0 => word,
            _ if matches!((self, old), (Rule::Closed, _) | (_, Rule::Closed)) => self.adopt_at(old, state, now),
            _ => {
                let lacking = self.available(0, now).saturating_sub(old.available(state, now));
                self.charged(lacking.saturating_add(old.debt(state, now)), now)
            }
        }
    }

    /// [`Rule::adopt`] at a known time, with two differences. The end of a ban stays, whereas [`Rule::adopt`] keeps
    /// the time at which the bucket is full after the ban. If one of the rules is a quota, which has no time until
    /// which it owes, the permits used are kept ([`Rule::carry`]). So the result may expire earlier than `state` did.
    pub fn adopt_at(&self, old: &Rule, state: u64, now: u64) -> u64 {
        if let Some(banned) = self.keep_ban(old, state, now) {
            return banned;
        }
        let is_quota = |rule: &Rule| matches!(rule, Rule::Quota(_));
        let is_closed = |rule: &Rule| matches!(rule, Rule::Closed);
        if !is_closed(self) && !is_closed(old) && is_quota(self) != is_quota(old) {
            return self.carry(old, state, now, now);
        }
        match closed_count(state) {
            Some(used) if is_closed(old) && !is_closed(self) && !is_quota(self) => self.charged(used, now),
            _ => match old.full_before_floor(state) {
                Some(full) if self != old => self.owing(full),
                _ => self.adopt(old, state),
            },
        }
    }

    /// The time at which a bucket is full whose slot stays taken for longer.
    pub(crate) fn full_before_floor(&self, state: u64) -> Option<u64> {
        let Rule::Gcra(gcra) = self else { return None };
        gcra.is_held(state).then(|| gcra.fresh_at(state, 0)).filter(|full| *full != NEVER)
    }

    /// The state of a key that `old` has banned at `now`: the ban ends at the same time. `None` for other states, and
    /// if this rule bans no keys.
    #[inline(never)]
    fn keep_ban(&self, old: &Rule, state: u64, now: u64) -> Option<u64> {
        let (Rule::Ban(ban), Rule::Ban(old)) = (self, old) else { return None };
        match old.banned_until(state, now)? {
            NEVER => None,
            until => Some(ban.banned(until)),
        }
    }

    /// The permits that a key must regain before it has none left and owes none. The result is rounded up to whole
    /// permits, and is 0 for a key that owes nothing. Banned keys answer 0, because [`Rule::adopt`] and
    /// [`Rule::carry`] convert a ban by its time.
    fn debt(&self, state: u64, now: u64) -> u64 {
        match self {
            Rule::Pacer(pacer) => pacer.debt(state, now),
            Rule::WarmUp(warm_up) => warm_up.debt(state, now),
            Rule::Curve(curve) => curve.debt(state, now),
            Rule::LevelRefill(bucket) => bucket.debt(state, now),
            Rule::Gcra(gcra) => gcra.debt(state, now),
            Rule::Ban(ban) => ban.debt(state, now),
            Rule::Interval(interval) => interval.debt(state, now),
            Rule::Pair(pair) => pair.debt(state, now),
            Rule::Closed | Rule::FixedWindow(_) | Rule::WeightedWindow(_) | Rule::Quota(_) | Rule::Calendar(_) => 0,
        }
    }

    /// The permits by which a state falls short of a fresh one at `now`, rounded up. The debt of pacer, borrow,
    /// warm-up and gcra is included.
    pub fn owed(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        match self {
            Rule::Pacer(pacer) => pacer.owed(state, now),
            Rule::WarmUp(warm_up) => warm_up.owed(state, now),
            Rule::Closed
            | Rule::Gcra(_)
            | Rule::Ban(_)
            | Rule::Pair(_)
            | Rule::Interval(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Curve(_)
            | Rule::LevelRefill(_)
            | Rule::Calendar(_)
            | Rule::Quota(_) => {
                let lacking = self.available(0, now).saturating_sub(self.available(state, now));
                lacking.saturating_add(self.debt(state, now))
            }
        }
    }

    /// Converts `state`, which a key had under `old` at the time `there` of another clock, to this rule at the time
    /// `here`. The result lacks as many permits of a fresh state as before, and a ban ends after the same time. 0 for
    /// a fresh state.
    pub fn carry(&self, old: &Rule, state: u64, there: u64, here: u64) -> u64 {
        if let (Rule::Ban(ban), Rule::Ban(old)) = (self, old) {
            if let Some(until) = old.banned_until(state, there) {
                return ban.banned(here.saturating_add(after(until, there)));
            }
        }
        if let (Rule::Pair(pair), Rule::Pair(old)) = (self, old) {
            return pair.carry(old, state, there, here);
        }
        self.charged(old.owed(state, there), here)
    }

    /// A state that falls short of a fresh one at `now` by `permits`, at most by the burst. Under gcra, with or
    /// without bans, and interval the debt may be another burst. 0 for no permits.
    pub fn charged(&self, permits: u64, now: u64) -> u64 {
        let most = match self {
            Rule::Pacer(pacer) => return pacer.charged(permits, now),
            Rule::Gcra(gcra) => return gcra.charge(0, now, permits).next.unwrap_or(0),
            Rule::Interval(interval) => return interval.charge(0, now, permits).next.unwrap_or(0),
            // A charge would count as a refusal.
            Rule::Ban(ban) => return ban.charged(permits, now),
            // Under a curve a key may lack more permits than the curve has given so far, so the call charges them
            // without a check.
            Rule::Curve(curve) => return curve.charge(0, now, permits).next.unwrap_or(0),
            Rule::LevelRefill(bucket) => return bucket.charge(0, now, permits).next.unwrap_or(0),
            Rule::WarmUp(warm_up) => warm_up.most(),
            Rule::Closed
            | Rule::Pair(_)
            | Rule::FixedWindow(_)
            | Rule::WeightedWindow(_)
            | Rule::Quota(_)
            | Rule::Calendar(_) => self.available(0, now),
        };
        match permits {
            0 => 0,
            // At least 1: a bucket that starts empty refuses this request, and stores the time at which it began to
            // fill.
            _ => self.step(0, now, permits.min(most).max(1)).next.unwrap_or(0),
        }
    }
}

/// The count of a quota that became a limit of 0: a word after the last time holds it, and never expires.
fn closed_count(state: u64) -> Option<u64> {
    match state.checked_sub(LAST + 1) {
        // A debt without an end, or a count that the word cannot hold: all permits are used.
        Some(_) if state == NEVER => Some(u64::MAX),
        count => count,
    }
}
