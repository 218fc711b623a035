//! States that come from one rule to another: of a key whose policy changes, and of a key that
//! moves to a table on another clock.

use super::super::closed::Closed;
use super::super::facts::{Charging, Facts};
use super::super::Algorithm;
use super::Rule;

impl Rule {
    /// Moves a key's state to a changed policy and keeps the time until which it owes: `state`
    /// belongs to `old`, the result to this rule.
    ///
    /// If the two rules count alike, the permits used stay used, up to the new limit. Rules count
    /// alike if they are equal, have windows of the same length and alignment, or refill as many
    /// permits at the same times. Every other pair keeps the time at which the old state would have
    /// been as good as fresh, and the result owes everything until then ([`Algorithm::owing`]).
    ///
    /// The result is 0 only for 0. It expires no earlier than `state` did under `old`. Over a
    /// change a key is admitted at most what `old` could have admitted before it, plus what this
    /// rule admits to a fresh state after it.
    ///
    /// A caller that knows the time should put the fresh word 0 in place of an expired state. Where
    /// this rule counts in windows, a state that has just expired may otherwise owe the rest of a
    /// window.
    pub fn adopt(&self, old: &Rule, state: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        match self.adopt_alike(old, state) {
            Some(word) if word != 0 => word,
            _ => self.owing(old.expires_at(state)),
        }
    }

    /// `state` under a rule that counts alike ([`Facts::adopt`]). A closed rule keeps a quota's
    /// count.
    fn adopt_alike(&self, old: &Rule, state: u64) -> Option<u64> {
        if let (Rule::Quota(new), Rule::Closed(_)) = (self, old) {
            // A closed rule's word holds a quota's count or a time. A time says no number of
            // permits, so it counts as none.
            return Some(new.used(Closed::count(state).unwrap_or(0)));
        }
        if let (Rule::Closed(_), Rule::Quota(old)) = (self, old) {
            return Some(Closed::of_count(old.used_of(state)));
        }
        alike!(self, old, (new, old) => new.adopt(old, state))
    }

    /// Moves a key's state to a changed policy and keeps its permits as a number: `state` belongs
    /// to `old`, the result to this rule, which takes over at `now`.
    ///
    /// The result has as many permits left as `state`, rounded down, and no more than a fresh
    /// state. Only between token buckets it also keeps the part of a permit that has been refilled.
    /// A debt stays as many permits, up to this rule's burst. So no wait is longer than this rule
    /// takes to refill (a token bucket: twice), and the change admits no request that was refused
    /// before it.
    ///
    /// If the two rules count alike ([`Rule::adopt`]), the permits used are kept. A closed rule
    /// counts nothing, so a change to or from it keeps the time; but a quota's count stays in the
    /// word while the rule is closed. The result is 0 for a fresh state. Unlike the result of
    /// [`Rule::adopt`] it may expire earlier than `state` did.
    pub fn convert(&self, old: &Rule, state: u64, now: u64) -> u64 {
        if state == 0 || self == old {
            return state;
        }
        if let Some(word) = alike!(self, old, (new, old) => new.convert(old, state, now)) {
            return word;
        }
        match self.adopt_alike(old, state) {
            Some(word) if word != 0 => word,
            _ if matches!((self, old), (Rule::Closed(_), _) | (_, Rule::Closed(_))) => {
                self.adopt_at(old, state, now)
            }
            _ => {
                let lacking = self.available(0, now).saturating_sub(old.available(state, now));
                self.charged(lacking.saturating_add(old.debt(state, now)), now)
            }
        }
    }

    /// [`Rule::adopt`] at a known time, with two differences. The end of a ban stays, whereas
    /// [`Rule::adopt`] keeps the time at which the bucket is full after the ban. If one of the
    /// rules is a quota, which has no time until which it owes, the permits used are kept
    /// ([`Rule::carry`]). So the result may expire earlier than `state` did.
    pub fn adopt_at(&self, old: &Rule, state: u64, now: u64) -> u64 {
        if let (Rule::Ban(new), Rule::Ban(old)) = (self, old) {
            if let Some(banned) = new.convert(old, state, now) {
                return banned;
            }
        }
        let is_quota = |rule: &Rule| matches!(rule, Rule::Quota(_));
        let is_closed = |rule: &Rule| matches!(rule, Rule::Closed(_));
        if !is_closed(self) && !is_closed(old) && is_quota(self) != is_quota(old) {
            return self.carry(old, state, now, now);
        }
        match Closed::count(state) {
            Some(used) if is_closed(old) && !is_closed(self) && !is_quota(self) => {
                self.charged(used, now)
            }
            _ => match old.full_before_floor(state) {
                Some(full) if self != old => self.owing(full),
                _ => self.adopt(old, state),
            },
        }
    }

    /// [`Facts::full_before_floor`].
    pub(crate) fn full_before_floor(&self, state: u64) -> Option<u64> {
        each!(self, a => a.full_before_floor(state))
    }

    /// [`Facts::debt`].
    fn debt(&self, state: u64, now: u64) -> u64 {
        each!(self, a => a.debt(state, now))
    }

    /// The permits by which a state falls short of a fresh one at `now`, rounded up. The debt of
    /// pacer, borrow, warm-up and gcra is included.
    pub fn owed(&self, state: u64, now: u64) -> u64 {
        if state == 0 {
            return 0;
        }
        match each!(self, a => a.owed(state, now)) {
            Some(permits) => permits,
            None => {
                let lacking = self.available(0, now).saturating_sub(self.available(state, now));
                lacking.saturating_add(self.debt(state, now))
            }
        }
    }

    /// Converts `state`, which a key had under `old` at the time `there` of another clock, to this
    /// rule at the time `here`. The result lacks as many permits of a fresh state as before, and a
    /// ban ends after the same time. 0 for a fresh state.
    pub fn carry(&self, old: &Rule, state: u64, there: u64, here: u64) -> u64 {
        match alike!(self, old, (new, old) => new.carry(old, state, there, here)) {
            Some(word) => word,
            None => self.charged(old.owed(state, there), here),
        }
    }

    /// A state that falls short of a fresh one at `now` by `permits`, at most by the burst. Under
    /// gcra, with or without bans, and interval the debt may be another burst. 0 for no permits.
    pub fn charged(&self, permits: u64, now: u64) -> u64 {
        match each!(self, a => a.charging(permits, now)) {
            Charging::To(state) => state,
            Charging::Step(_) if permits == 0 => 0,
            // At least 1: a bucket that starts empty refuses this request, and stores the time at
            // which it began to fill.
            Charging::Step(most) => {
                self.step_out_of_line(0, now, permits.min(most).max(1)).next.unwrap_or(0)
            }
        }
    }
}
