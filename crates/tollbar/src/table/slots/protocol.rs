//! How slots change hands.
//!
//! Every change of a slot is one swap of both its words. Each pair of words has a time from which its state is as good as fresh,
//! [`States::expires_at`] (a vacant slot: its state; an empty one: 0), and **no swap makes that time earlier**. A request looks through its
//! key's candidates:
//!
//! 1. The key is there: step its state, swap. If the swap fails, start again from what is there now.
//! 2. It is not: take the candidate that expires first, the first in the key's order among equals. If that time has passed, the new key
//!    takes the slot and nothing is forgotten; if not, [`OnFull`] decides.
//!
//! **A key never has two slots.** Say A puts key K into slot a, and later B puts K into slot b, while K is in a
//! all the time. B has looked at a before A's swap (or it would have found K), and A at b before B's. Times
//! only grow, and a swap succeeds only on the very pair that was looked at. With `x(s)` the expiry of what was
//! replaced in s, and `seen` what the other one saw there:
//!
//! ```text
//! x(a) <= seen by A in b     A chose a
//!      <= x(b)               b's time only grew until B's swap
//!      <= seen by B in a     B chose b
//!      <= x(a)               a's time only grew until A's swap
//! ```
//!
//! So all are equal, and the key's order decided: a before b, and b before a. That cannot be.
//!
//! **A slot never hands on charge or credit.** A straggler's swap names the key and the state it has seen. If
//! both are there, that state is the key's, however it came about; if the key has changed, the swap fails.
//!
//! **Nothing is forgiven.** A new key replaces what has expired by its own clock, or takes its debt over.
//!
//! **Nobody waits.** Each swap leaves the table whole, so a thread that is killed leaves nothing to be cleaned up;
//! and a swap fails only because another has succeeded.

use super::placement::{Candidates, CANDIDATES, TAG, TAG_BITS};
use super::probe::{first_unused, lowest_state};
use crate::algorithm::Step;
use crate::decision::Verdict;
use crate::limiter::head::TRIES;
use crate::table::memory::slot::{Pair, Slot};

/// What a new key gets when no candidate of the key has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OnFull {
    /// The new key is admitted as a fresh key would be. It takes the slot that would have expired first and owes until then, and
    /// the key that had the slot is forgotten. That key owed less than the eleven others that share the new key's places.
    #[default]
    EvictNearest = 0,
    /// The new key takes over the slot that would have expired first, together with its debt, and is judged by that.
    Inherit = 1,
    /// The new key is admitted as a fresh key would be, and not remembered.
    Allow = 2,
    /// The new key is refused: no key is forgotten, and none gets in uncounted. For keys that a stranger cannot invent, such as
    /// account numbers: whoever can invent keys can fill the table, and then shuts out all new keys.
    Deny = 3,
}

/// What the protocol must know of states.
pub(crate) trait States {
    /// The time from which a slot's content is as good as fresh: never earlier after a swap.
    fn expires_at(&self, pair: Pair) -> u64;

    /// Whether a comparison of the words alone shows that `pair` expires no sooner than `other`.
    fn no_sooner(&self, pair: Pair, other: Pair) -> bool {
        let _ = (pair, other);
        false
    }

    /// What `found`, a key word with the tag of `key`, is to it.
    fn relation(&self, found: u64, key: u64) -> Relation;

    /// The state of `pair` under the version of `key`, expiring no earlier.
    fn adopt(&self, key: u64, pair: Pair) -> u64;

    /// The state at `now` of the key of `pair` under the version of `key`, as that version wants debts to be kept. It may
    /// expire earlier than `pair`. 0: it owes nothing.
    fn convert(&self, key: u64, pair: Pair, now: u64) -> u64 {
        let _ = now;
        self.adopt(key, pair)
    }

    /// A state of `key` that owes until `until` at least.
    fn owing(&self, key: u64, until: u64) -> u64;

    /// Called when a key has been taken out of its slot, so that it can be counted.
    fn vacated(&self) {}

    /// Called when a key has moved to another slot, so that it can be counted.
    fn moved(&self, event: Event) {
        let _ = event;
    }
}

/// What a key word with the same tag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// A key of another policy.
    Other,
    /// The key itself, under a version of its policy that has been replaced.
    Former,
    /// The key itself, and the version that the request is under is the same or has been replaced.
    Same,
}

/// What a request did to the table, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The key was there, or nothing had to be remembered.
    Known,
    /// The key was put into a slot that no key has ever had, or into a vacant one.
    Inserted,
    /// The key replaced a key that had expired.
    Reclaimed,
    /// No candidate has expired: refused.
    Refused,
    /// No candidate has expired, and the debt that the key would have taken over refuses it.
    RefusedByDebt,
    /// The key took over a debtor's slot and debt.
    Inherited,
    /// The key was admitted and not remembered.
    Unremembered,
    /// The key took a debtor's slot.
    Evicted,
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// The key's state after the request.
    pub(crate) state: u64,
    pub(crate) event: Event,
    /// [`Event::Refused`]: when the first candidate expires.
    pub(crate) until: u64,
    /// Swaps that failed.
    pub(crate) retries: u32,
}

/// The request must be made again: another call has changed the key's policy or slot. Nothing has been charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed;

/// Step 1, and 2 if need be, of a request for `key` at `now`. `step` is the request as a function of the state; it may be
/// called more than once, and the last call counts.
#[inline(always)]
pub(crate) fn request(
    states: &impl States,
    candidates: &Candidates<'_>,
    key: u64,
    now: u64,
    on_full: OnFull,
    mut step: impl FnMut(u64) -> Step,
) -> Result<Outcome, Changed> {
    match candidates.find(key) {
        Some(slot) => step_known(slot, key, &mut step),
        None => insert(states, candidates, key, now, on_full, &mut step),
    }
}

/// Step 1 in `slot`, as long as it holds `key`.
#[inline(always)]
fn step_known(slot: &Slot, key: u64, step: &mut impl FnMut(u64) -> Step) -> Result<Outcome, Changed> {
    let mut state = slot.state();
    let mut retries = 0;
    // Whether `state` was read together with the key.
    let mut sure = false;
    for _ in 0..TRIES {
        let Step { verdict, next } = step(state);
        let seen = match next {
            Some(next) => match slot.swap(Pair { key, state }, Pair { key, state: next }) {
                Ok(()) => return Ok(outcome(verdict, next, Event::Known, retries)),
                Err(seen) => {
                    retries += 1;
                    seen
                }
            },
            None if sure => return Ok(outcome(verdict, state, Event::Known, retries)),
            // A refusal writes nothing, so no swap has shown that the state is this key's.
            None => slot.pair(),
        };
        if seen.key != key {
            return Err(Changed);
        }
        if next.is_none() && seen.state == state {
            return Ok(outcome(verdict, state, Event::Known, retries));
        }
        state = seen.state;
        sure = true;
    }
    Err(Changed)
}

/// One try of step 1 in a slot that had `key` and then `state`: writes `next`, or, where nothing is to be written, sees that both were
/// there at one instant. False: nothing has been charged, and [`request`] must be called.
#[inline(always)]
pub(crate) fn step_once(slot: &Slot, key: u64, state: u64, next: Option<u64>) -> bool {
    let pair = Pair { key, state };
    match next {
        Some(next) => slot.swap(pair, Pair { key, state: next }).is_ok(),
        // A refusal writes nothing, so no swap has shown that the state is this key's.
        None => slot.pair() == pair,
    }
}

/// Step 2.
#[inline(never)]
pub(crate) fn insert(
    states: &impl States,
    candidates: &Candidates<'_>,
    key: u64,
    now: u64,
    on_full: OnFull,
    step: &mut dyn FnMut(u64) -> Step,
) -> Result<Outcome, Changed> {
    let Some(first) = first_to_expire(states, candidates, key, now)? else { return Err(Changed) };
    let Step { verdict, next } = step(0);
    // A fresh key would be refused, or the request charges nothing.
    let Some(fresh) = next else { return Ok(outcome(verdict, 0, Event::Known, 0)) };
    let (state, event) = if first.expires <= now {
        (fresh, taken_from(first.pair))
    } else {
        match on_full {
            OnFull::Deny => {
                let refused = outcome(Verdict::Denied, 0, Event::Refused, 0);
                return Ok(Outcome { until: first.expires, ..refused });
            }
            OnFull::Allow => return Ok(outcome(verdict, fresh, Event::Unremembered, 0)),
            OnFull::EvictNearest => (fresh, Event::Evicted),
            OnFull::Inherit => {
                let debt = states.adopt(key, first.pair);
                let Step { verdict, next } = step(debt);
                let Some(next) = next else { return Ok(outcome(verdict, debt, Event::RefusedByDebt, 0)) };
                take(first.slot, first.pair, Pair { key, state: next })?;
                return Ok(outcome(verdict, next, Event::Inherited, 0));
            }
        }
    };
    // The slot's time may not become earlier: a fresh state that would is made to owe until then.
    let state = match states.expires_at(Pair { key, state }) < first.expires {
        true => states.owing(key, first.expires),
        false => state,
    };
    take(first.slot, first.pair, Pair { key, state })?;
    Ok(outcome(verdict, state, event, 0))
}

/// Step 2 of a new key whose candidates are the usual ones: some have never been used, or all are under the key's own version, and their
/// words are times that are `apart` or more from each other when they expire at different times. It chooses the slot that
/// [`first_to_expire`] would choose, by a comparison of the words. `expired` tells whether a word of the key's version has expired.
/// `fresh` is the state of the new key, which expires later than anything that has expired. `None`: nothing has been changed, the key may
/// be there, and [`request`] must be called.
#[inline(always)]
pub(crate) fn insert_among_own(
    candidates: &Candidates<'_>,
    key: u64,
    fresh: u64,
    apart: u64,
    expired: impl FnOnce(u64) -> bool,
) -> Option<Event> {
    // The candidate that is taken last: empty unless the table is fuller than it was made for.
    let (slot, found) = if candidates.last()?.key() == 0 {
        (first_unused(candidates, key)?, Pair { key: 0, state: 0 })
    } else {
        let (slot, state) = lowest_state(candidates, key, apart)?;
        // The key that the slot has now. A key of the same version with that state has expired as the other had.
        let found = slot.key();
        let is_own = (found ^ key).wrapping_sub(1) >> TAG_BITS == 0;
        if !is_own || !expired(state) {
            return None;
        }
        (slot, Pair { key: found, state })
    };
    take(slot, found, Pair { key, state: fresh }).ok()?;
    Some(taken_from(found))
}

/// Whether `key` is in none of its slots, and a new key would get a slot that no key has ever had. False may be either.
#[inline(always)]
pub(crate) fn is_new(candidates: &Candidates<'_>, key: u64) -> bool {
    first_unused(candidates, key).is_some()
}

/// Puts `new` into a slot in which `found` was seen.
#[inline(always)]
fn take(slot: &Slot, found: Pair, new: Pair) -> Result<(), Changed> {
    slot.swap(found, new).map_err(|_| Changed)
}

/// The event of a new key in a slot in which `found`, which has expired, was seen.
#[inline(always)]
fn taken_from(found: Pair) -> Event {
    match found.key {
        0 => Event::Inserted,
        _ => Event::Reclaimed,
    }
}

/// A slot, what was seen in it, and when that expires.
pub(crate) struct Candidate<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) pair: Pair,
    pub(crate) expires: u64,
}

/// The candidate that expires first; in the key's order among equals. [`Changed`] if the key itself is there: then, if it is
/// under another version of its policy, it has been brought to this one.
pub(crate) fn first_to_expire<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: u64,
    now: u64,
) -> Result<Option<Candidate<'a>>, Changed> {
    let mut first: Option<Candidate<'a>> = None;
    // The key itself under a former version of its policy.
    let mut former: Option<Candidate<'a>> = None;
    for n in 0..CANDIDATES {
        let Some(slot) = candidates.slot(n) else { continue };
        // Both words at one instant: the time of a torn pair could be later than the slot ever had.
        let pair = slot.pair();
        if (pair.key ^ key) & TAG == 0 && pair.key != 0 {
            match states.relation(pair.key, key) {
                Relation::Other => {}
                Relation::Same => return Err(Changed),
                Relation::Former => {
                    former = Some(Candidate { slot, pair, expires: states.expires_at(pair) });
                    continue;
                }
            }
        }
        match &first {
            Some(first) if states.no_sooner(pair, first.pair) => continue,
            _ => {}
        }
        let expires = states.expires_at(pair);
        if first.as_ref().map_or(true, |first| expires < first.expires) {
            first = Some(Candidate { slot, pair, expires });
        }
    }
    match former {
        None => Ok(first),
        Some(former) => {
            migrate(states, candidates, key, now, former, first);
            Err(Changed)
        }
    }
}

/// Brings a key to the current version of its policy, `key`, from `former`. `first` is the first to expire of its other candidates.
/// Whether it succeeds or not, the key is to be looked up again.
fn migrate<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: u64,
    now: u64,
    former: Candidate<'_>,
    first: Option<Candidate<'a>>,
) {
    let Candidate { slot, pair, expires } = former;
    let vacant = Pair { key: 0, state: expires };
    // What has expired owes nothing, and may not be made to.
    let state = if expires <= now { 0 } else { states.convert(key, pair, now) };
    let new = match (state, first) {
        (0, _) => vacant,
        _ if states.expires_at(Pair { key, state }) >= expires => Pair { key, state },
        // A slot's time may not fall: the key moves to a slot that has expired, and its old one stays taken until its time. The
        // old slot is left first: another thread may bring the key over in place, and then the key would have two slots.
        (_, Some(first)) if first.expires <= now => {
            if slot.swap(pair, vacant).is_ok() {
                states.vacated();
                reinsert(states, candidates, Pair { key, state }, now, first);
            }
            return;
        }
        // There is no place for it: it owes as long as it did, which is longer.
        _ => Pair { key, state: states.adopt(key, pair) },
    };
    // If the swap fails, another call has changed the slot.
    if slot.swap(pair, new).is_ok() && new.key == 0 {
        states.vacated();
    }
}

/// Puts a key that has just left its slot into `first`, or into what is first to expire by then. A thread that is killed
/// before, or that finds the key put in by another request, leaves the key as that request made it: a fresh key of the new policy.
fn reinsert<'a>(states: &impl States, candidates: &Candidates<'a>, key: Pair, now: u64, mut first: Candidate<'a>) {
    for _ in 0..TRIES {
        if first.expires > now {
            return;
        }
        if take(first.slot, first.pair, key).is_ok() {
            states.moved(taken_from(first.pair));
            return;
        }
        match first_to_expire(states, candidates, key.key, now) {
            Ok(Some(next)) => first = next,
            _ => return,
        }
    }
}

#[inline(always)]
fn outcome(verdict: Verdict, state: u64, event: Event, retries: u32) -> Outcome {
    Outcome { verdict, state, event, until: 0, retries }
}
