//! The slot protocol: how requests change slots, and how a new key gets one.
//!
//! Every change of a slot is one swap of both its words. Each pair of words has a time from which its state is as good as fresh,
//! [`States::expires_at`] (a vacant slot: its state; an empty one: 0), and **no swap makes that time earlier**. A request probes its key's
//! candidates:
//!
//! 1. A slot holds the key: step its state and swap. If the swap fails, step the state that the slot has now.
//! 2. No slot holds the key: choose the candidate that expires first, the first in the key's order among equals ([`Candidates::order`]). If that time
//!    has passed, the new key takes the slot, and no debt is lost. Otherwise [`OnFull`] decides.
//!
//! **A key never has two slots.** Assume that A puts key K into slot a, and later B puts K into slot b while a still holds K. B read a before
//! A's swap (otherwise it would have found K), and A read b before B's swap. Times only grow, and a swap succeeds only on the pair that its
//! caller read. Let `x(s)` be the expiry of the pair that was replaced in s:
//!
//! ```text
//! x(a) <= time of b that A read     A chose a
//!      <= x(b)                      b's time only grew until B's swap
//!      <= time of a that B read     B chose b
//!      <= x(a)                      a's time only grew until A's swap
//! ```
//!
//! So all four times are equal, and the key's order decided both choices: a before b, and b before a. That is a contradiction.
//!
//! **A slot passes no charge or credit from one key to another.** A swap names the key and the state that its caller read. If the slot holds
//! both, that state is the key's, even if the slot held another key meanwhile. If the slot holds another key, the swap fails.
//!
//! **No debt is forgiven**, unless [`OnFull`] or a change of the policy says so. A new key replaces a pair that has expired by its clock.
//!
//! **A key moves to another slot** if a change of its policy makes it expire earlier. A move is three swaps: the key leaves its slot, which
//! keeps the key's tag as a *mark* and the slot's time; the key takes the other slot; the mark is removed. A request between the first two
//! swaps finds no key, but the mark. It decides as if the key owed until the slot's time, which is at least the key's debt. So does each later
//! request if the mover was killed there.
//!
//! **No thread waits.** Each swap leaves the table complete, so a killed thread leaves no work for others. A swap fails only because another
//! swap has succeeded.

use super::candidates::Candidates;
use super::probe::{first_unused, lowest_state};
use crate::algorithm::Step;
use crate::decision::Verdict;
use crate::limiter::head::TRIES;
use crate::table::memory::returns::Turn;
use crate::table::memory::slot::{Pair, Slot, TAG, TAG_BITS};

/// What a new key gets when no candidate of the key has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OnFull {
    /// The table admits the new key as a fresh key, in the candidate that expires first, and forgets that slot's key. The slot stays taken as long as before;
    /// under other algorithms than gcra the new key owes as long. On average a limited key gains a burst for as many invented keys as the table has slots.
    #[default]
    EvictNearest = 0,
    /// The new key takes over the slot that would have expired first, together with its debt, which decides on the request.
    Inherit = 1,
    /// The table admits the new key as a fresh key, and does not store it.
    Allow = 2,
    /// The table refuses the new key, so it forgets no key and admits none uncounted. Use it for keys that a client cannot invent, such as
    /// account numbers: a client that invents keys can fill the table and so shut out all new keys.
    Deny = 3,
}

/// The functions of states that the protocol calls. It knows nothing else of algorithms and policies.
pub(crate) trait States {
    /// The time from which a slot's content is as good as fresh. No swap makes it earlier.
    fn expires_at(&self, pair: Pair) -> u64;

    /// Whether a comparison of the words shows that `pair` expires no sooner than `other`. False if the words do not show it.
    fn no_sooner(&self, pair: Pair, other: Pair) -> bool {
        let _ = (pair, other);
        false
    }

    /// How `found`, a key word with the same tag as `key`, is related to `key`.
    fn relation(&self, found: u64, key: u64) -> Relation;

    /// The state of `pair` as a state of the version of `key`. It expires no earlier than `pair`.
    fn adopt(&self, key: u64, pair: Pair) -> u64;

    /// The state at `now` of the key of `pair` under the version of `key`, whose [`Keep`](crate::policy::Keep) says how the debt is
    /// converted. It may expire earlier than `pair`. 0: the key owes nothing.
    fn convert(&self, key: u64, pair: Pair, now: u64) -> u64 {
        let _ = now;
        self.adopt(key, pair)
    }

    /// A state of `key` that owes at least until `until`.
    fn owing(&self, key: u64, until: u64) -> u64;

    /// `pair.state` at `now` as a state that expires at `until` or later, and otherwise decides as before. `None` if no state does.
    fn hold(&self, pair: Pair, until: u64, now: u64, exact: bool) -> Option<u64> {
        let _ = (pair, until, now, exact);
        None
    }

    /// The turn of a return to the key with this tag. `None`: no permits can go back now.
    fn turn(&self, tag: u64) -> Option<Turn<'_>>;

    /// The protocol calls it when it has taken a key out of its slot, so that the table can count it.
    fn vacated(&self) {}

    /// The protocol calls it when a key has moved to another slot, so that the table can count it.
    fn moved(&self, event: Event) {
        let _ = event;
    }
}

/// The relation of a key word to the request's key word with the same tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// A key of another policy.
    Other,
    /// The same key, under a version of its policy that has been replaced.
    Former,
    /// The same key, under the request's version, or under another one while the request's has been replaced.
    Same,
}

/// What a request did to the table, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A slot held the key, or the request has no state to store.
    Known,
    /// The key took a slot that no key has ever had, or a vacant one.
    Inserted,
    /// The key took the slot of an expired key.
    Reclaimed,
    /// No candidate has expired, and [`OnFull::Deny`] refuses the key.
    Refused,
    /// No candidate has expired, and the debt that the key would inherit refuses it.
    RefusedByDebt,
    /// No candidate has expired, and under [`OnFull::Inherit`] the key took a slot together with its debt.
    Inherited,
    /// No candidate has expired, and [`OnFull::Allow`] admits the key without storing it.
    Unremembered,
    /// No candidate has expired, and under [`OnFull::EvictNearest`] the key took the slot of another key, which the table forgot.
    Evicted,
}

/// The result of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// The key's state after the request.
    pub(crate) state: u64,
    pub(crate) event: Event,
    /// The time at which the first candidate expires, for [`Event::Refused`]; otherwise 0.
    pub(crate) until: u64,
    /// The number of swaps that failed.
    pub(crate) retries: u32,
}

/// The caller must repeat the request, because another call has changed the key's policy or slot. The request has charged nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed;

/// Step 1 of a request for `key` at `now`, or step 2 if no slot holds the key. `step` is the request as a function of the state. The protocol
/// may call `step` more than once; the last call counts.
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
    // Whether one access read `state` together with the key.
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

/// Step 2 of a request: the key is new.
#[inline(never)]
pub(crate) fn insert(
    states: &impl States,
    candidates: &Candidates<'_>,
    key: u64,
    now: u64,
    on_full: OnFull,
    step: &mut dyn FnMut(u64) -> Step,
) -> Result<Outcome, Changed> {
    let Some(room) = first_to_expire(states, candidates, key, now)? else { return Err(Changed) };
    let (first, begin) = (&room.first, room.state(states, key));
    let Step { verdict, next } = step(begin);
    // The request is refused, or charges nothing. Then there is no state to store.
    let Some(fresh) = next else { return Ok(outcome(verdict, begin, Event::Known, 0)) };
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
                // A key that is between two slots owes at least until the first candidate expires.
                let debt = if begin == 0 { states.adopt(key, first.pair) } else { begin };
                let Step { verdict, next } = step(debt);
                let Some(next) = next else { return Ok(outcome(verdict, debt, Event::RefusedByDebt, 0)) };
                take(first.slot, first.pair, Pair { key, state: next })?;
                room.forget();
                return Ok(outcome(verdict, next, Event::Inherited, 0));
            }
        }
    };
    // If the fresh state expires earlier, its word keeps the slot's time beside it. If no word does, the key owes until then.
    let state = stay(states, Pair { key, state }, first.expires, now, false)
        .unwrap_or_else(|| states.owing(key, first.expires));
    take(first.slot, first.pair, Pair { key, state })?;
    room.forget();
    Ok(outcome(verdict, state, event, 0))
}

/// Step 2 for the two common cases: some candidates have never held a key, or all are under the key's own version. States of that version
/// must be times that differ by `gap` or more if they expire at different times. It chooses the same slot as [`first_to_expire`] by a
/// comparison of the words. `expired` says whether a state of the key's version has expired. `fresh` is the state of the new key, which
/// must expire later than every state that has expired. `None`: no slot has changed, some slot may hold the key, and the caller must call
/// [`request`].
#[inline(always)]
pub(crate) fn insert_among_own(
    candidates: &Candidates<'_>,
    key: u64,
    fresh: u64,
    gap: u64,
    expired: impl FnOnce(u64) -> bool,
) -> Option<Event> {
    // In a table that holds no more keys than its capacity, the last candidate is mostly empty.
    let (slot, found) = if candidates.last()?.key() == 0 {
        (first_unused(candidates, key)?, Pair { key: 0, state: 0 })
    } else {
        let (slot, state) = lowest_state(candidates, key, gap)?;
        // The key that the slot holds now may not be the one that `lowest_state` saw. With the same version and state it has expired, too.
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

/// Whether no candidate holds `key`, and an insertion would take a slot that no key has ever had. It may be false although both are true.
#[inline(always)]
pub(crate) fn is_new(candidates: &Candidates<'_>, key: u64) -> bool {
    first_unused(candidates, key).is_some()
}

/// Swaps `new` into a slot in which the caller read `found`.
#[inline(always)]
fn take(slot: &Slot, found: Pair, new: Pair) -> Result<(), Changed> {
    slot.swap(found, new).map_err(|_| Changed)
}

/// The event of a new key that replaces `found`, which has expired.
#[inline(always)]
fn taken_from(found: Pair) -> Event {
    match found.is_vacant() {
        true => Event::Inserted,
        false => Event::Reclaimed,
    }
}

/// A slot, the pair that was read from it, and the time at which that pair expires.
pub(crate) struct Candidate<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) pair: Pair,
    pub(crate) expires: u64,
}

/// The candidates of a key that no slot holds.
pub(crate) struct Room<'a> {
    /// The candidate that expires first; among equals the first in the key's order.
    pub(crate) first: Candidate<'a>,
    /// The slot that the key has left, if a call is moving the key to another slot, or was killed before the key was there.
    mark: Option<Candidate<'a>>,
}

impl Room<'_> {
    /// The state with which the key begins: 0, or the debt of a key that is between two slots.
    pub(crate) fn state(&self, states: &impl States, key: u64) -> u64 {
        self.mark.as_ref().map_or(0, |mark| states.owing(key, mark.expires))
    }

    /// Removes the key's mark: the key has a slot again, or begins anew.
    #[inline]
    pub(crate) fn forget(&self) {
        if let Some(mark) = &self.mark {
            remove_mark(mark.slot, mark.pair);
        }
    }
}

/// The candidates, none of which holds the key. [`Changed`] if a slot holds the key. If the key was there under a former version of its
/// policy, the function has tried to convert it to this one.
pub(crate) fn first_to_expire<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: u64,
    now: u64,
) -> Result<Option<Room<'a>>, Changed> {
    let mut first: Option<Candidate<'a>> = None;
    let mut mark: Option<Candidate<'a>> = None;
    // The key's slot if it holds the key under a former version of its policy.
    let mut former: Option<Candidate<'a>> = None;
    let (mut place, mut left) = (0, false);
    for n in candidates.order() {
        let Some(slot) = candidates.slot(n) else { continue };
        let pair = slot.pair(); // At one instant: a torn pair could have a later time than the slot ever had.
        let is_tagged = pair.key != 0 && (pair.key ^ key) & TAG == 0;
        if is_tagged && pair.is_vacant() && pair.state > now {
            mark = Some(Candidate { slot, pair, expires: pair.state });
        }
        // A slot that waits for its time, which a key has left.
        left |= pair.key == 0 && pair.state > now;
        if is_tagged && !pair.is_vacant() {
            match states.relation(pair.key, key) {
                Relation::Other => {}
                Relation::Same => return Err(Changed),
                Relation::Former => {
                    former = Some(Candidate { slot, pair, expires: states.expires_at(pair) });
                    continue;
                }
            }
        }
        if first.as_ref().is_some_and(|first| states.no_sooner(pair, first.pair)) {
            continue;
        }
        let expires = states.expires_at(pair);
        let is_first =
            |first: &Candidate<'_>| expires < first.expires || (expires == 0 && first.expires == 0 && n < place);
        if first.as_ref().map_or(true, is_first) {
            (first, place) = (Some(Candidate { slot, pair, expires }), n);
        }
    }
    let Some(former) = former else {
        // This call may have read the key's new slot before the key moved there, and its old slot afterwards.
        let is_there = left && candidates.tagged().any(|found| states.relation(found, key) != Relation::Other);
        return if is_there { Err(Changed) } else { Ok(first.map(|first| Room { first, mark })) };
    };
    migrate(states, candidates, key, now, former, first);
    Err(Changed)
}

/// Converts a key from the version in `former` to the current version of its policy, that of `key`. `first` is the first to expire of its
/// other candidates. The caller must probe for the key again, whether this succeeds or not.
#[cold]
#[inline(never)]
fn migrate<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: u64,
    now: u64,
    former: Candidate<'_>,
    first: Option<Candidate<'a>>,
) {
    let Candidate { slot, pair, expires } = former;
    // The key owes nothing any more, and a conversion could give it a debt.
    if expires <= now {
        vacate(states, slot, pair, Pair { key: 0, state: expires });
        return;
    }
    let converted = Pair { key, state: states.convert(key, pair, now) };
    // The key stays in its slot, and the word keeps the slot's time: of itself, or beside the smaller debt.
    if let Some(state) = stay(states, converted, expires, now, true) {
        let _ = slot.swap(pair, Pair { key, state });
        return;
    }
    if let Some(first) = first.filter(|first| first.expires <= now) {
        // The key moves. It leaves the old slot first, or another thread could convert it there meanwhile, and the key would have two slots.
        let mark = Pair { key: if converted.state == 0 { 0 } else { key & TAG }, state: expires };
        if vacate(states, slot, pair, mark) && mark.key != 0 && reinsert(states, candidates, converted, now, first) {
            remove_mark(slot, mark);
        }
        return;
    }
    // No other slot has expired. The key stays, with a debt that is a microsecond late.
    let new = match stay(states, converted, expires, now, false) {
        Some(state) => Pair { key, state },
        // No word has both. The key owes as long as under the former version; without a debt it leaves its slot.
        None if converted.state != 0 => Pair { key, state: states.adopt(key, pair) },
        None => {
            vacate(states, slot, pair, Pair { key: 0, state: expires });
            return;
        }
    };
    // If the swap fails, another call has changed the slot.
    let _ = slot.swap(pair, new);
}

/// The state of `pair` in its slot, which may not expire before `expires`; `None` if no word says both.
fn stay(states: &impl States, pair: Pair, expires: u64, now: u64, exact: bool) -> Option<u64> {
    match pair.state != 0 && states.expires_at(pair) >= expires {
        true => Some(pair.state),
        false => states.hold(pair, expires, now, exact),
    }
}

/// Takes the key of `pair` out of its slot. False if another call has changed the slot.
fn vacate(states: &impl States, slot: &Slot, pair: Pair, vacant: Pair) -> bool {
    let is_done = slot.swap(pair, vacant).is_ok();
    if is_done {
        states.vacated();
    }
    is_done
}

/// Puts a key that has just left its slot into `first`, or into the slot that expires first by then. Returns whether the key is in a slot:
/// this one, or where a request put it under its mark.
fn reinsert<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: Pair,
    now: u64,
    mut first: Candidate<'a>,
) -> bool {
    for _ in 0..TRIES {
        if first.expires > now {
            return false;
        }
        if take(first.slot, first.pair, key).is_ok() {
            states.moved(taken_from(first.pair));
            return true;
        }
        match first_to_expire(states, candidates, key.key, now) {
            Ok(Some(room)) => first = room.first,
            Ok(None) => return false,
            Err(Changed) => return true,
        }
    }
    false
}

/// Makes a marked slot an ordinary vacant one. If the swap fails, a key has taken the slot.
#[cold]
fn remove_mark(slot: &Slot, mark: Pair) {
    let _ = slot.swap(mark, Pair { key: 0, state: mark.state });
}

#[inline(always)]
fn outcome(verdict: Verdict, state: u64, event: Event, retries: u32) -> Outcome {
    Outcome { verdict, state, event, until: 0, retries }
}
