//! The slot protocol: how requests change slots, and how a new key gets one.
//!
//! A request changes a slot by one swap of both its words, the key word and the state word. A slot
//! *expires* when its key has its full burst again ([`States::expires_at`]). A vacant slot expires
//! at the time in its state word, and a slot that no key has ever had expires at 0. **No swap makes
//! that time earlier.** A request probes the candidates of its key:
//!
//! 1. A slot holds the key. The request steps the state and swaps. If the swap fails, it steps the
//!    new state.
//! 2. No slot holds the key. The request chooses the candidate that expires first. Among equals it
//!    chooses the first in the key's order ([`Candidates::order`]). If the candidate has expired,
//!    the new key takes it, and no debt is lost. Otherwise [`OnFull`] decides.
//!
//! **A key never has two slots.** Assume that A puts key K into slot a, and later B puts K into
//! slot b while a still holds K. B read a before A's swap (otherwise it would have found K), and A
//! read b before B's swap. Times only grow, and a swap succeeds only on the pair that its caller
//! read. Let `x(s)` be the expiry of the pair that was replaced in s:
//!
//! ```text
//! x(a) <= time of b that A read     A chose a
//!      <= x(b)                      b's time only grew until B's swap
//!      <= time of a that B read     B chose b
//!      <= x(a)                      a's time only grew until A's swap
//! ```
//!
//! So all four times are equal, and the key's order decided both choices: a before b, and b before
//! a. That is a contradiction.
//!
//! **A slot passes no charge or credit from one key to another.** A swap names the key and the
//! state that its caller read. If the slot holds both, that state is the key's, even if the slot
//! held another key meanwhile. If the slot holds another key, the swap fails.
//!
//! **No debt is forgiven**, unless [`OnFull`] or a change of the policy says so. A new key replaces
//! a pair that has expired by its clock.
//!
//! **A key moves to another slot** if a change of its policy makes it expire earlier. The call that
//! moves it is the *mover*. It makes four swaps:
//!
//! 1. It reserves the new slot, which has expired: it stores the key's tag there, without a
//!    version.
//! 2. It removes the key from the old slot. The old slot keeps its time, and the key's tag as a
//!    *mark*.
//! 3. It inserts the key with its debt into the new slot.
//! 4. It removes the mark.
//!
//! A request between swaps 2 and 3 finds the mark and no key. It decides as if the key owed until
//! the old slot's time, which is at least the key's debt. If the mover is killed there, later
//! requests decide in the same way.
//!
//! **A mover inserts no key under a freed version.** Slots name a version by a number of eight
//! bits. While a mover sleeps, the table may free the number of the mover's version and give it to
//! another version. The table frees a number only after a sweep of all slots. The sweep converts
//! the keys under the number, and changes the time of each vacant slot that has a tag
//! ([`disturb`]). The mover checks after swap 1 that its version is still current. If it is, that
//! sweep has not begun. So the sweep either converts the key in the new slot, or makes swap 3 fail.
//!
//! **A request decides under no freed version.** It asks after it has read a slot whether its
//! version's number is still the version's ([`States::is_numbered`]). If not, it begins again.
//!
//! **No thread waits.** Each swap leaves the table complete, so a killed thread leaves no work for
//! others. A swap fails only because another swap has succeeded.

use super::candidates::Candidates;
use super::probe::{first_unused, lowest_state};
use super::states::{Event, KeyChanged, OnFull, Relation, RequestOutcome, States};
use crate::algorithm::Step;
use crate::decision::Verdict;
use crate::limiter::state_word::TRIES;
use crate::sync::{fence, Ordering};
use crate::table::memory::slot::{Slot, SlotPair, TAG, TAG_BITS};

/// Step 1 of a request for `key` at `now`, or step 2 if no slot holds the key. `step` is the
/// request as a function of the state. The protocol may call `step` more than once; the last call
/// counts.
#[inline(always)]
pub(crate) fn request(
    states: &impl States,
    candidates: &Candidates<'_>,
    key: u64,
    now: u64,
    on_full: OnFull,
    mut step: impl FnMut(u64) -> Step,
) -> Result<RequestOutcome, KeyChanged> {
    match candidates.find(key) {
        Some(slot) => step_known(states, slot, key, &mut step),
        None => insert(states, candidates, key, now, on_full, &mut step),
    }
}

/// Step 1 in `slot`, as long as it holds `key`.
#[inline(always)]
fn step_known(
    states: &impl States,
    slot: &Slot,
    key: u64,
    step: &mut impl FnMut(u64) -> Step,
) -> Result<RequestOutcome, KeyChanged> {
    let mut state = slot.state();
    let mut retries = 0;
    // Whether one access read `state` together with the key.
    let mut sure = false;
    for _ in 0..TRIES {
        if !states.is_numbered() {
            return Err(KeyChanged);
        }
        let Step { verdict, next } = step(state);
        let seen = match next {
            Some(next) => match slot.swap(SlotPair { key, state }, SlotPair { key, state: next }) {
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
            return Err(KeyChanged);
        }
        if next.is_none() && seen.state == state {
            return Ok(outcome(verdict, state, Event::Known, retries));
        }
        state = seen.state;
        sure = true;
    }
    Err(KeyChanged)
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
) -> Result<RequestOutcome, KeyChanged> {
    let Some(room) = first_to_expire(states, candidates, key, now)? else { return Err(KeyChanged) };
    let (first, begin) = (&room.first, room.state(states, key));
    if !states.is_numbered() {
        return Err(KeyChanged);
    }
    let Step { verdict, next } = step(begin);
    // The request is refused, or charges nothing. Then there is no state to store.
    let Some(fresh) = next else { return Ok(outcome(verdict, begin, Event::Known, 0)) };
    let (state, mut event) = if first.expires <= now {
        (fresh, taken_from(first.pair))
    } else {
        match on_full {
            OnFull::Deny => {
                let refused = outcome(Verdict::Denied, 0, Event::Refused, 0);
                return Ok(RequestOutcome { until: first.expires, ..refused });
            }
            OnFull::Allow => return Ok(outcome(verdict, fresh, Event::Unremembered, 0)),
            OnFull::EvictNearest => (fresh, Event::Evicted),
            OnFull::Inherit => {
                // A key that is between two slots owes at least until the first candidate expires.
                let debt = if begin == 0 { states.adopt(key, first.pair) } else { begin };
                let Step { verdict, next } = step(debt);
                let Some(next) = next else {
                    return Ok(outcome(verdict, debt, Event::RefusedByDebt, 0));
                };
                take(first.slot, first.pair, SlotPair { key, state: next })?;
                room.forget();
                return Ok(outcome(verdict, next, Event::Inherited, 0));
            }
        }
    };
    // If the fresh state expires earlier, its word keeps the slot's time beside it. If no word
    // does, the key owes until then.
    let state = stay(states, SlotPair { key, state }, first.expires, now, false)
        .unwrap_or_else(|| states.owing(key, first.expires));
    if room.mark.is_some() && first.expires <= now {
        // The key inherits the debt of its mark. A late swap under a freed version would lose it,
        // so this insertion reserves the slot first, as a move does.
        let reserved = reserve(states, *first, key)?;
        take(reserved.slot, reserved.pair, SlotPair { key, state })?;
        event = Event::Inserted;
    } else {
        take(first.slot, first.pair, SlotPair { key, state })?;
    }
    room.forget();
    Ok(outcome(verdict, state, event, 0))
}

/// Step 2 for the two common cases: some candidates have never held a key, or all are under the
/// key's own version. States of that version must be times that differ by `gap` or more if they
/// expire at different times. It chooses the same slot as [`first_to_expire`] by a comparison of
/// the words. `expired` says whether a state of the key's version has expired. `fresh` is the state
/// of the new key, which must expire later than every state that has expired. `None`: no slot has
/// changed, some slot may hold the key, and the caller must call [`request`].
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
        (first_unused(candidates, key)?, SlotPair { key: 0, state: 0 })
    } else {
        let (slot, state) = lowest_state(candidates, key, gap)?;
        // The key that the slot holds now may not be the one that `lowest_state` saw. With the same
        // version and state it has expired, too.
        let found = slot.key();
        let is_own = (found ^ key).wrapping_sub(1) >> TAG_BITS == 0;
        if !is_own || !expired(state) {
            return None;
        }
        (slot, SlotPair { key: found, state })
    };
    take(slot, found, SlotPair { key, state: fresh }).ok()?;
    Some(taken_from(found))
}

/// Whether no candidate holds `key`, and an insertion would take a slot that no key has ever had.
/// It may be false although both are true.
#[inline(always)]
pub(crate) fn is_new(candidates: &Candidates<'_>, key: u64) -> bool {
    first_unused(candidates, key).is_some()
}

/// Swaps `new` into a slot in which the caller read `found`.
#[inline(always)]
fn take(slot: &Slot, found: SlotPair, new: SlotPair) -> Result<(), KeyChanged> {
    slot.swap(found, new).map_err(|_| KeyChanged)
}

/// The event of a new key that replaces `found`, which has expired.
#[inline(always)]
fn taken_from(found: SlotPair) -> Event {
    match found.is_vacant() {
        true => Event::Inserted,
        false => Event::Reclaimed,
    }
}

/// A slot, the pair that was read from it, and the time at which that pair expires.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) pair: SlotPair,
    pub(crate) expires: u64,
}

/// The candidates of a key that no slot holds.
pub(crate) struct Room<'a> {
    /// The candidate that expires first; among equals the first in the key's order.
    pub(crate) first: Candidate<'a>,
    /// The slot that the key has left, if a call is moving the key to another slot, or was killed
    /// before the key was there.
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

/// The candidates, none of which holds the key. [`KeyChanged`] if a slot holds the key. If the key
/// was there under a former version of its policy, the function has tried to convert it to this
/// one.
pub(crate) fn first_to_expire<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: u64,
    now: u64,
) -> Result<Option<Room<'a>>, KeyChanged> {
    let mut first: Option<Candidate<'a>> = None;
    let mut mark: Option<Candidate<'a>> = None;
    // The key's slot if it holds the key under a former version of its policy.
    let mut former: Option<Candidate<'a>> = None;
    let (mut place, mut left) = (0, false);
    for n in candidates.order() {
        let Some(slot) = candidates.slot(n) else { continue };
        let pair = slot.pair(); // At one instant: a torn pair could have a later time than the slot ever had.
        let is_tagged = pair.key != 0 && (pair.key ^ key) & TAG == 0;
        if is_tagged
            && pair.is_vacant()
            && pair.state > now.max(mark.as_ref().map_or(0, |mark| mark.expires))
        {
            mark = Some(Candidate { slot, pair, expires: pair.state });
        }
        // A slot that waits for its time, which a key has left.
        left |= pair.key == 0 && pair.state > now;
        if is_tagged && !pair.is_vacant() {
            match states.relation(pair.key, key) {
                // A sweep may have converted the key and freed its version since this call read the
                // pair.
                Relation::Other if slot.pair() != pair => return Err(KeyChanged),
                Relation::Other => {}
                Relation::Same => return Err(KeyChanged),
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
        let is_first = |first: &Candidate<'_>| {
            expires < first.expires || (expires == 0 && first.expires == 0 && n < place)
        };
        if first.as_ref().map_or(true, is_first) {
            (first, place) = (Some(Candidate { slot, pair, expires }), n);
        }
    }
    let Some(former) = former else {
        // This call may have read the key's new slot before the key moved there, and its old slot
        // afterwards.
        let is_there =
            left && candidates.tagged().any(|found| states.relation(found, key) != Relation::Other);
        return if is_there {
            Err(KeyChanged)
        } else {
            Ok(first.map(|first| Room { first, mark }))
        };
    };
    migrate(states, candidates, key, now, former, first);
    Err(KeyChanged)
}

/// Converts a key from the version in `former` to the current version of its policy, that of `key`.
/// `first` is the first to expire of its other candidates. The caller must probe for the key again,
/// whether this succeeds or not.
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
    // This call may have slept while the table freed the version's number and reused it. Then the
    // slot may hold the same two words with another meaning, and the swap would succeed. So each
    // swap checks first that the request's version is still current. That leaves a sleep between
    // the check and the swap.
    let swap = |new| states.is_current(key) && slot.swap(pair, new).is_ok();
    let vacate = |new| {
        let is_done = swap(new);
        if is_done {
            states.vacated();
        }
        is_done
    };
    // The key owes nothing any more, and a conversion could give it a debt.
    if expires <= now {
        vacate(SlotPair { key: 0, state: expires });
        return;
    }
    let converted = SlotPair { key, state: states.convert(key, slot, pair, now) };
    // The key stays in its slot, and the word keeps the slot's time: of itself, or beside the
    // smaller debt.
    if let Some(state) = stay(states, converted, expires, now, true) {
        swap(SlotPair { key, state });
        return;
    }
    if let Some(first) = first.filter(|first| first.expires <= now) {
        if converted.state == 0 {
            vacate(SlotPair { key: 0, state: expires });
            return;
        }
        // The key moves. It leaves the old slot first, or another thread could convert it there
        // meanwhile, and the key would have two slots.
        let mark = SlotPair { key: key & TAG, state: expires };
        let Ok(first) = reserve(states, first, key) else { return };
        if vacate(mark) && reinsert(states, candidates, converted, now, first) {
            remove_mark(slot, mark);
        }
        return;
    }
    // No other slot has expired. The key stays, with a debt that is a microsecond late.
    match stay(states, converted, expires, now, false) {
        Some(state) => swap(SlotPair { key, state }),
        // No word has both. The key owes as long as under the former version; without a debt it
        // leaves its slot.
        None if converted.state != 0 => swap(SlotPair { key, state: states.adopt(key, pair) }),
        None => vacate(SlotPair { key: 0, state: expires }),
    };
}

/// The state of `pair` in its slot, which may not expire before `expires`; `None` if no word says
/// both.
fn stay(states: &impl States, pair: SlotPair, expires: u64, now: u64, exact: bool) -> Option<u64> {
    match pair.state != 0 && states.outlasts(pair, expires) {
        true => Some(pair.state),
        false => states.hold(pair, expires, now, exact),
    }
}

/// Puts a key that has just left its slot into the slot `first`. If another key has taken `first`,
/// the call chooses the slot that expires first now. It returns true if the key has a slot
/// afterwards: from this call, or from a request for the key that found the mark and inserted the
/// key meanwhile.
fn reinsert<'a>(
    states: &impl States,
    candidates: &Candidates<'a>,
    key: SlotPair,
    now: u64,
    mut first: Candidate<'a>,
) -> bool {
    for _ in 0..TRIES {
        if take(first.slot, first.pair, key).is_ok() {
            states.moved(Event::Inserted);
            return true;
        }
        first = match first_to_expire(states, candidates, key.key, now) {
            Ok(Some(room)) if room.first.expires <= now => {
                match reserve(states, room.first, key.key) {
                    Ok(first) => first,
                    // The key's version is not the current one any more. The mark stays, so the key
                    // owes until its former slot's time.
                    Err(KeyChanged) if !states.is_current(key.key) => return false,
                    Err(KeyChanged) => continue,
                }
            }
            Ok(_) => return false,
            Err(KeyChanged) => return true,
        }
    }
    false
}

/// Swap 1 of a move: stores the key's tag in `free`, a slot that has expired. To other calls the
/// slot remains an expired one. [`KeyChanged`] if another call has changed the slot, or if the
/// version in `key` is no longer current.
fn reserve<'a>(
    states: &impl States,
    free: Candidate<'a>,
    key: u64,
) -> Result<Candidate<'a>, KeyChanged> {
    let reserved = SlotPair { key: key & TAG, state: free.expires };
    if free.pair != reserved {
        take(free.slot, free.pair, reserved)?;
        if !free.pair.is_vacant() {
            states.vacated();
        }
    }
    // SeqCst orders the swap above before the load of the current version below. The sweeping call
    // has the same fence between its change of the policy and its loads of the slots. So this call
    // sees the change, or the sweep sees the tag. No model notices the fence, because loads of a
    // model's slots are read-modify-writes: the swap above sees what a sweep before it has written.
    fence(Ordering::SeqCst);
    match states.is_current(key) {
        true => Ok(Candidate { pair: reserved, ..free }),
        false => Err(KeyChanged),
    }
}

/// Makes the swap of a sleeping mover fail: adds a nanosecond to the time of a vacant slot that has
/// a tag. If the time has passed, it also removes the tag, which no request needs any more.
///
/// # Errors
/// The content of the slot, if another call has changed it. It may be a key that has moved there.
pub(crate) fn disturb(slot: &Slot, pair: SlotPair, now: u64) -> Result<(), SlotPair> {
    match pair.key != 0 {
        true => {
            let key = if pair.state <= now { 0 } else { pair.key };
            slot.swap(pair, SlotPair { key, state: pair.state.saturating_add(1) })
        }
        false => Ok(()),
    }
}

/// Makes a marked slot an ordinary vacant one. If the swap fails, a key has taken the slot.
#[cold]
fn remove_mark(slot: &Slot, mark: SlotPair) {
    let _ = slot.swap(mark, SlotPair { key: 0, state: mark.state });
}

#[inline(always)]
fn outcome(verdict: Verdict, state: u64, event: Event, retries: u32) -> RequestOutcome {
    RequestOutcome { verdict, state, event, until: 0, retries }
}
