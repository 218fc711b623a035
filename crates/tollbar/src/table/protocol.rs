//! How slots change hands.
//!
//! Every change of a slot is one swap of both its words. Each pair of words has a time from which its state is
//! as good as fresh, [`Terms::expires_at`] (a vacant slot: its state; an empty one: 0), and **no swap makes
//! that time earlier**. A request looks through its key's candidates:
//!
//! 1. The key is there: step its state, swap. If the swap fails, start again from what is there now.
//! 2. It is not: take the candidate that expires first, the first in the key's order among equals. If that is
//!    in the past, nothing is forgotten by giving it to the newcomer; if not, [`OnFull`] decides.
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
//! **Nothing is forgiven.** A newcomer replaces what has expired by its own clock, or takes its debt over.
//!
//! **Nobody waits.** Each swap leaves the table whole, so a thread that is killed leaves nothing to be cleaned up;
//! and a swap fails only because another has succeeded.

use super::home::{Home, CANDIDATES, TAG};
use super::slot::{Pair, Slot};
use crate::algorithm::Step;
use crate::decision::Verdict;
use crate::limiter::head::TRIES;

/// What a newcomer gets when no candidate of its key has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OnFull {
    /// The newcomer is admitted as a fresh key would be. It takes the slot that would have expired first and owes until then, and
    /// the key that had the slot is forgotten. That key owed less than the eleven others that share the newcomer's places.
    #[default]
    EvictNearest = 0,
    /// The newcomer takes over the slot that would have expired first, together with its debt, and is judged by that.
    Inherit = 1,
    /// The newcomer is admitted as a fresh key would be, and not remembered.
    Allow = 2,
    /// The newcomer is refused: no key is forgotten, and none gets in uncounted. For keys that a stranger cannot invent, such as
    /// account numbers: whoever can invent keys can fill the table, and then shuts out all newcomers.
    Deny = 3,
}

/// What the protocol must know of states.
pub(super) trait Terms {
    /// The time from which a slot's content is as good as fresh: never earlier after a swap.
    fn expires_at(&self, pair: Pair) -> u64;

    /// Whether it is plain without computing either that `pair` expires no sooner than `other`.
    fn no_sooner(&self, pair: Pair, other: Pair) -> bool {
        let _ = (pair, other);
        false
    }

    /// What `found`, a key word with the tag of `key`, is to it.
    fn kin(&self, found: u64, key: u64) -> Kin;

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

    /// Told of a key that was taken out of its slot, for those who count.
    fn vacated(&self) {}

    /// Told of a key that has moved to another slot.
    fn moved(&self, event: Event) {
        let _ = event;
    }
}

/// What a key word with the same tag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kin {
    /// Another policy's.
    Stranger,
    /// The key itself, under a version of its policy that has been replaced.
    Former,
    /// The key itself, and it is the version that is asked for that has been replaced, or the same.
    Later,
}

/// What came of a request, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The key was there, or nothing had to be remembered.
    Known,
    /// It was put into a slot that has never held one, or into a vacant one.
    Inserted,
    /// It replaced a key that had expired.
    Reclaimed,
    /// No candidate has expired: refused.
    Refused,
    /// No candidate has expired, and the debt that it would have taken over refuses it.
    RefusedByDebt,
    /// It took over a debtor's slot and debt.
    Inherited,
    /// It was admitted and not remembered.
    Unremembered,
    /// It took a debtor's slot.
    Evicted,
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// The key's state after it.
    pub(super) state: u64,
    pub(super) event: Event,
    /// [`Event::Refused`]: when the first candidate expires.
    pub(super) until: u64,
    /// Swaps that failed.
    pub(super) retries: u32,
}

/// Why a request must be put again: the key's policy or place may have changed.
pub(super) struct Again;

/// Step 1, and 2 if need be, of a request for `key` at `now`. `step` is the request as a function of the state; it may be
/// called more than once, and the last call counts.
#[inline(always)]
pub(super) fn request(
    terms: &impl Terms,
    home: &Home<'_>,
    key: u64,
    now: u64,
    on_full: OnFull,
    mut step: impl FnMut(u64) -> Step,
) -> Result<Outcome, Again> {
    match home.find(key) {
        Some(slot) => known(slot, key, &mut step),
        None => newcomer(terms, home, key, now, on_full, &mut step),
    }
}

/// Step 1 in `slot`, as long as it holds `key`.
#[inline(always)]
fn known(slot: &Slot, key: u64, step: &mut impl FnMut(u64) -> Step) -> Result<Outcome, Again> {
    let mut state = slot.state();
    let mut retries = 0;
    // Whether `state` was read together with the key.
    let mut sure = false;
    for _ in 0..TRIES {
        let Step { verdict, next } = step(state);
        let seen = match next {
            Some(next) => match slot.swap(Pair { key, state }, Pair { key, state: next }) {
                Ok(()) => return Ok(settled(verdict, next, Event::Known, retries)),
                Err(seen) => {
                    retries += 1;
                    seen
                }
            },
            None if sure => return Ok(settled(verdict, state, Event::Known, retries)),
            // A refusal writes nothing, so nothing has told yet whether the state is this key's.
            None => slot.pair(),
        };
        if seen.key != key {
            return Err(Again);
        }
        if next.is_none() && seen.state == state {
            return Ok(settled(verdict, state, Event::Known, retries));
        }
        state = seen.state;
        sure = true;
    }
    Err(Again)
}

/// Step 1 once in a slot that had `key` and then `state`: writes `next`, or sees that both were there at one instant where nothing
/// is to be written. If not, nothing has been charged, and the request is to be made as [`request`].
#[inline(always)]
pub(super) fn once(slot: &Slot, key: u64, state: u64, next: Option<u64>) -> bool {
    let pair = Pair { key, state };
    match next {
        Some(next) => slot.swap(pair, Pair { key, state: next }).is_ok(),
        // A refusal writes nothing, so nothing has told yet whether the state is this key's.
        None => slot.pair() == pair,
    }
}

/// Step 2.
#[inline(never)]
pub(super) fn newcomer(
    terms: &impl Terms,
    home: &Home<'_>,
    key: u64,
    now: u64,
    on_full: OnFull,
    step: &mut dyn FnMut(u64) -> Step,
) -> Result<Outcome, Again> {
    let Some(first) = first_to_expire(terms, home, key, now)? else { return Err(Again) };
    let Step { verdict, next } = step(0);
    // Refused however fresh, or only asked.
    let Some(fresh) = next else { return Ok(settled(verdict, 0, Event::Known, 0)) };
    let (state, event) = if first.expires <= now {
        (fresh, if first.pair.key == 0 { Event::Inserted } else { Event::Reclaimed })
    } else {
        match on_full {
            OnFull::Deny => {
                let refused = settled(Verdict::Denied, 0, Event::Refused, 0);
                return Ok(Outcome { until: first.expires, ..refused });
            }
            OnFull::Allow => return Ok(settled(verdict, fresh, Event::Unremembered, 0)),
            OnFull::EvictNearest => (fresh, Event::Evicted),
            OnFull::Inherit => {
                let debt = terms.adopt(key, first.pair);
                let Step { verdict, next } = step(debt);
                let Some(next) = next else { return Ok(settled(verdict, debt, Event::RefusedByDebt, 0)) };
                return take(first, key, next, verdict, Event::Inherited);
            }
        }
    };
    // The slot's time may not become earlier: a fresh state that would is made to owe until then.
    let state = match terms.expires_at(Pair { key, state }) < first.expires {
        true => terms.owing(key, first.expires),
        false => state,
    };
    take(first, key, state, verdict, event)
}

fn take(first: Candidate<'_>, key: u64, state: u64, verdict: Verdict, event: Event) -> Result<Outcome, Again> {
    match first.slot.swap(first.pair, Pair { key, state }) {
        Ok(()) => Ok(settled(verdict, state, event, 0)),
        Err(_) => Err(Again),
    }
}

/// A slot, what was seen in it, and when that expires.
pub(super) struct Candidate<'a> {
    pub(super) slot: &'a Slot,
    pub(super) pair: Pair,
    pub(super) expires: u64,
}

/// The candidate that expires first; in the key's order among equals. `Again` if the key itself is there: then, if it is
/// under another version of its policy, it has been brought to this one.
#[inline]
pub(super) fn first_to_expire<'a>(
    terms: &impl Terms,
    home: &Home<'a>,
    key: u64,
    now: u64,
) -> Result<Option<Candidate<'a>>, Again> {
    let mut first: Option<Candidate<'a>> = None;
    // The key itself under a former version of its policy.
    let mut former: Option<Candidate<'a>> = None;
    for n in 0..CANDIDATES {
        let Some(slot) = home.candidate(n) else { continue };
        // Both words at one instant: the time of a torn pair could be later than the slot ever had.
        let pair = slot.pair();
        if (pair.key ^ key) & TAG == 0 && pair.key != 0 {
            match terms.kin(pair.key, key) {
                Kin::Stranger => {}
                Kin::Later => return Err(Again),
                Kin::Former => {
                    former = Some(Candidate { slot, pair, expires: terms.expires_at(pair) });
                    continue;
                }
            }
        }
        match &first {
            Some(first) if terms.no_sooner(pair, first.pair) => continue,
            _ => {}
        }
        let expires = terms.expires_at(pair);
        if first.as_ref().map_or(true, |first| expires < first.expires) {
            first = Some(Candidate { slot, pair, expires });
        }
    }
    match former {
        None => Ok(first),
        Some(former) => {
            bring_over(terms, home, key, now, former, first);
            Err(Again)
        }
    }
}

/// Brings a key to the current version of its policy, `key`, from `former`. `first` is the first to expire of its other candidates.
/// Whether it succeeds or not, the key is to be looked up again.
fn bring_over<'a>(
    terms: &impl Terms,
    home: &Home<'a>,
    key: u64,
    now: u64,
    former: Candidate<'_>,
    first: Option<Candidate<'a>>,
) {
    let Candidate { slot, pair, expires } = former;
    let vacant = Pair { key: 0, state: expires };
    // What has expired owes nothing, and may not be made to.
    let state = if expires <= now { 0 } else { terms.convert(key, pair, now) };
    let new = match (state, first) {
        (0, _) => vacant,
        _ if terms.expires_at(Pair { key, state }) >= expires => Pair { key, state },
        // A slot's time may not fall: the key moves to a slot that has expired, and its old one stays taken until its time. The
        // old slot is left first: another thread may bring the key over in place, and then the key would have two slots.
        (_, Some(first)) if first.expires <= now => {
            if slot.swap(pair, vacant).is_ok() {
                terms.vacated();
                put(terms, home, key, state, now, first);
            }
            return;
        }
        // There is no place for it: it owes as long as it did, which is longer.
        _ => Pair { key, state: terms.adopt(key, pair) },
    };
    // Failing, somebody else has changed it.
    if slot.swap(pair, new).is_ok() && new.key == 0 {
        terms.vacated();
    }
}

/// Puts a key that has just left its slot into `first`, or into what is first to expire by then, with `state`. A thread that is killed
/// before, or that finds the key put in by another request, leaves the key as that request made it: a fresh key of the new policy.
fn put<'a>(terms: &impl Terms, home: &Home<'a>, key: u64, state: u64, now: u64, mut first: Candidate<'a>) {
    for _ in 0..TRIES {
        if first.expires > now {
            return;
        }
        if first.slot.swap(first.pair, Pair { key, state }).is_ok() {
            terms.moved(if first.pair.key == 0 { Event::Inserted } else { Event::Reclaimed });
            return;
        }
        match first_to_expire(terms, home, key, now) {
            Ok(Some(next)) => first = next,
            _ => return,
        }
    }
}

#[inline(always)]
fn settled(verdict: Verdict, state: u64, event: Event, retries: u32) -> Outcome {
    Outcome { verdict, state, event, until: 0, retries }
}
