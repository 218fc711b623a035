//! A machine: the key's line, the debts that the store does not know, and a question on its way.

use crate::world::Fault;
use tollbar::internal::SlotPair;
use tollbar_redis::lease::ask::Ask;
use tollbar_redis::lease::bucket::Grant;
use tollbar_redis::lease::internal::{KeyPhase, KeyState, Line, Said};
use tollbar_redis::lease::{word, Terms};

/// The key's hash.
const KEY: u64 = 7;

/// What one machine knows. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    /// The content of the key's line.
    line: [(u64, u64); 4],
    /// Permits of the right that are in no question.
    pub debt: u64,
    /// Whether a request waits.
    pub waits: bool,
    /// The TAT of the last answer.
    hint: u64,
    /// The name of the store's data in the last answer.
    seen: u64,
    /// How far the store's time is ahead of the machine's by its answers, in microseconds.
    ahead: Option<i64>,
    /// The question in flight.
    pub flight: Option<Flight>,
}

/// A question, and its answer once the store has executed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// When the machine sent it, in nanoseconds.
    pub sent: u64,
    /// The name of the data that the machine knew then.
    pub seen: u64,
    /// The question.
    pub ask: Ask,
    /// The answer.
    pub answer: Option<Grant>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            // The third slot is the state: the key is in the line, and idle.
            line: [(0, 0), (0, 0), (KEY, 0), (0, 0)],
            debt: 0,
            waits: false,
            hint: 0,
            seen: 0,
            ahead: None,
            flight: None,
        }
    }
}

impl Machine {
    /// Admits a request for one permit at `now`, by a lease or by the right, if either covers it.
    pub fn admits(&mut self, terms: &Terms, now: u64) -> bool {
        let admitted = self.with_line(|line| {
            if line.take(KEY, now, 1).is_some() {
                return Some(0);
            }
            line.use_right(KEY, now, 1, terms.overdraft).map(|_| 1)
        });
        self.debt += admitted.unwrap_or(0);
        admitted.is_some()
    }

    /// Whether a request that waits would be refused without a question.
    pub fn is_firm(&mut self, now: u64) -> bool {
        self.with_line(|line| line.state_of(KEY))
            .is_some_and(|state| state.phase_at(now) == KeyPhase::Firm)
    }

    /// Sends a question that asks for a lease of `want` permits; 0: for none.
    pub fn send(&mut self, terms: &Terms, want: u64, now: u64, fault: Fault) {
        let waiting = u64::from(self.waits);
        let known = self.ahead.filter(|_| fault != Fault::TimeUnreported);
        let at = known.map_or(0, |ahead| (now / 1000).saturating_add_signed(ahead));
        let ask = Ask {
            want,
            least: want.min(1),
            waiting,
            cost: waiting,
            life: terms.life / 1000,
            hint: self.hint,
            debt: core::mem::take(&mut self.debt),
            at,
            slack: terms.slack(),
        };
        self.flight = Some(Flight { sent: now, seen: self.seen, ask, answer: None });
    }

    /// Applies the answer in flight at `now`. Returns whether the request that waits was admitted.
    pub fn hear(&mut self, terms: &Terms, now: u64, fault: Fault) -> bool {
        let Some(Flight { sent, ask, answer: Some(mut grant), .. }) = self.flight.take() else {
            return false;
        };
        self.learn(terms, &grant, sent, now);
        self.hint = grant.tat;
        if fault == Fault::AlwaysOpen {
            grant.open = true;
        }
        // The model has costs of 1.
        let confirmed = if fault == Fault::Unconfirmed { 0 } else { ask.debt };
        let said = Said::of(terms, &grant, (confirmed, ask.waiting), 0, now);
        self.with_line(|line| {
            if grant.served != 0 {
                line.install(KEY, word::lease(grant.served, sent + terms.patience()), now);
            }
            if grant.permits != 0 {
                let until = sent + grant.life * 1000;
                line.install(KEY, word::lease(grant.permits, until), now);
            }
            line.heard(KEY, &said, now, now + terms.patience());
        });
        // The request that waits looks again.
        let admitted = self.waits && self.admits(terms, now);
        self.waits &= !admitted && !self.is_firm(now);
        admitted
    }

    /// The connection is gone. The machine reports the debts of the question again.
    pub fn lose(&mut self, now: u64) {
        let Some(flight) = self.flight.take() else { return };
        self.debt += flight.ask.debt;
        self.with_line(|line| line.heard(KEY, &Said::default(), now, now));
    }

    /// Whether nothing is on its way or waits to be reported.
    pub fn is_quiet(&self) -> bool {
        self.flight.is_none() && self.debt == 0 && !self.waits
    }

    /// Forgets what decides nothing any more, so that states which differ in nothing else are one:
    /// leases that have ended, a wait that is over, counts of answers. `keeps_time` says whether
    /// the store can lose data or step its clock; otherwise no hint and no estimate decides.
    pub fn tidy(&mut self, now: u64, keeps_time: bool) {
        let shut_until = word::until(self.line[3].1);
        for (key, lease) in &mut self.line[..2] {
            if word::permits(*lease, now) == 0 {
                (*key, *lease) = (0, 0);
            }
        }
        let state = KeyState::of(self.line[2].1).expect("the key is in the line");
        let shut = state.shut && shut_until > now;
        let firm = state.phase_at(now) == KeyPhase::Firm;
        let tidied = KeyState {
            used: state.used,
            shut,
            phase: if firm { KeyPhase::Firm } else { KeyPhase::Idle },
            units: if firm { state.units } else { 0 },
            ..KeyState::default()
        };
        self.line[2].1 = tidied.pack();
        self.line[3] = if shut { (KEY, word::lease(1, shut_until)) } else { (0, 0) };
        if !keeps_time {
            (self.hint, self.ahead) = (0, None);
        }
    }

    /// As `horizon.rs` does, but for the drift of clocks: the least that an answer allows, or what
    /// an answer proves.
    fn learn(&mut self, terms: &Terms, grant: &Grant, sent: u64, received: u64) {
        let store = grant.now as i64;
        let (most, slack) = (store - (sent / 1000) as i64, terms.slack() as i64);
        let proved = store - (received / 1000) as i64 - slack;
        let known = self.ahead.filter(|_| self.seen == grant.epoch);
        self.ahead = Some(known.map_or(most, |known| known.min(most).max(proved)));
        self.seen = grant.epoch;
    }

    /// Runs `change` on the key's line.
    fn with_line<T>(&mut self, change: impl FnOnce(&Line) -> T) -> T {
        let line = Line(core::array::from_fn(|_| Default::default()));
        for (slot, (key, state)) in line.0.iter().zip(self.line) {
            let empty = SlotPair { key: 0, state: 0 };
            slot.swap(empty, SlotPair { key, state }).expect("a new slot is empty");
        }
        let result = change(&line);
        for (to, slot) in self.line.iter_mut().zip(&line.0) {
            let pair = slot.pair();
            *to = (pair.key, pair.state);
        }
        result
    }
}
