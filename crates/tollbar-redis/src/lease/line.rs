//! A key's line: the leases that a node's threads and processes spend, the key's right, and what
//! the store last said of it.
//!
//! ```text
//!  one cache line, four slots of two words that change together ({ hash, word }, tollbar::table::memory::slot)
//! ┌──────────────────┬──────────────────┬───────────────────┬───────────────────┐
//! │ lease            │ lease            │ state             │ size              │
//! │ hash │ permits,  │ hash │ permits,  │ hash │ right used,│ hash │ permits of │
//! │      │ until     │      │ until     │      │ phase, time│      │ the last   │
//! │      │           │      │           │      │ (`state`)  │      │ grant, shut│
//! │      │           │      │           │      │            │      │ until      │
//! └──────┴───────────┴──────┴───────────┴──────┴────────────┴──────┴────────────┘
//! ```
//!
//! There is room for two leases, because a new lease comes before the old one is spent, and nothing
//! prolongs a lease. Each slot holds its key's hash and changes by one swap of both words. So a
//! slow thread never spends the permits of another key.
//!
//! The bound does not depend on leases: the store charges every permit before it grants it. So a
//! lost lease costs the node permits and never adds any. It does depend on rights. A key has four
//! candidate lines, and [`claim`] puts it into one of them only.

use super::said::Said;
use super::state::{self, KeyPhase, KeyState};
use super::word;
use tollbar::internal::{Slot, SlotPair};

/// The four slots of a key.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line(pub [Slot; 4]);

/// The most tries of one swap. After that many a request is decided without the lease, and a lease
/// that was being installed is lost.
const TRIES: u32 = if cfg!(loom) { 16 } else { 1 << 10 };
/// A lease that has a quarter of its permits left asks for the next one, if it had so many at
/// first.
const SIZE_LEAST: u64 = 4;

/// The outcome of a request that a lease covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Permits left in the key's leases.
    pub(super) left: u64,
    /// Whether at most a quarter of the last grant is left. The caller should then ask for the next
    /// lease.
    pub(super) low: bool,
}

/// The lines in which a key may be.
pub(super) type Candidates<'a> = [&'a Line; CANDIDATES];
pub(super) const CANDIDATES: usize = if cfg!(loom) { 2 } else { 4 };

/// The key's line among its candidates, if it has one.
#[inline]
pub(super) fn known<'a>(lines: &Candidates<'a>, hash: u64) -> Option<&'a Line> {
    lines.iter().copied().find(|line| line.state_of(hash).is_some())
}

/// The key's line, which it claims if it has none. `number` differs from that of any other claim at
/// the time. `None`: other keys use all its lines.
///
/// Two callers may claim two lines for one key. So a caller first writes a claim, then looks at
/// the other lines, and removes claims of the key there. The key is in the line when the caller has
/// replaced its own claim, which fails if another caller has removed it.
pub(super) fn claim<'a>(
    lines: &Candidates<'a>,
    hash: u64,
    now: u64,
    number: u64,
) -> Option<&'a Line> {
    for _ in 0..TRIES {
        if let Some(line) = known(lines, hash) {
            return Some(line);
        }
        let (line, old) =
            lines.iter().find_map(|line| line.room(hash, now).map(|old| (*line, old)))?;
        let own = SlotPair { key: hash, state: state::claim(now, number) };
        if line.state().swap(old, own).is_err() {
            continue;
        }
        if lines.iter().all(|other| core::ptr::eq(line, *other) || other.yields(hash)) {
            let idle = KeyState::default().until(KeyPhase::Idle, now).pack();
            if line.state().swap(own, SlotPair { key: hash, state: idle }).is_ok() {
                return Some(line);
            }
        } else {
            // The key is in another line.
            let _ = line.state().swap(own, SlotPair { key: 0, state: 0 });
        }
    }
    None
}

impl Line {
    /// Spends `cost` permits of one lease: of the one that ends first, if it has so many, because
    /// its slot is the next lease's. `None`: neither lease covers it, or [`TRIES`] swaps failed.
    #[inline(always)]
    pub fn take(&self, hash: u64, now: u64, cost: u64) -> Option<Taken> {
        let [first, second, _, size] = &self.0;
        // A try fails because another thread's swap succeeded.
        for _ in 0..TRIES {
            let (mut slot, mut other) = (first, second);
            if word::until(other.state()) < word::until(slot.state()) {
                (slot, other) = (other, slot);
            }
            let mut old = SlotPair { key: slot.key(), state: slot.state() };
            let mut next = spend(old, hash, now, cost);
            if next.is_none() {
                (slot, other) = (other, slot);
                old = SlotPair { key: slot.key(), state: slot.state() };
                next = spend(old, hash, now, cost);
            }
            let state = next?;
            // `old` was read as two words. If they were never a pair, the swap fails.
            if slot.swap(old, SlotPair { key: hash, state }).is_err() {
                continue;
            }
            let left = word::permits(state, now).saturating_add(live(other, hash, now));
            let whole = if size.key() == hash { word::all(size.state()) } else { 0 };
            let low = whole >= SIZE_LEAST && left.saturating_mul(4) <= whole;
            return Some(Taken { left, low });
        }
        None
    }

    /// Lets both leases end at `until` at the latest.
    pub(super) fn cut(&self, until: u64) {
        for slot in self.leases() {
            let mut old = slot.pair();
            loop {
                let next = SlotPair { state: word::cut(old.state, until), ..old };
                // A swap fails because a caller has spent, which happens once for each permit, or
                // because the words of `old` were no pair.
                if next.state == old.state || slot.swap(old, next).is_ok() {
                    break;
                }
                old = slot.pair();
            }
        }
    }

    /// Permits that both leases have left at `now`. A request takes its whole cost from one of
    /// them.
    #[inline]
    pub(super) fn left(&self, hash: u64, now: u64) -> u64 {
        self.leases().iter().fold(0, |sum, slot| live(slot, hash, now).saturating_add(sum))
    }

    /// The key's state, if the key is in this line.
    #[inline]
    pub fn state_of(&self, hash: u64) -> Option<KeyState> {
        let pair = self.state().pair();
        match pair.key == hash {
            true => KeyState::of(pair.state),
            false => None,
        }
    }

    /// Permits of the key's right that are left at `now`, of `most`.
    #[inline]
    pub(super) fn right_left(&self, hash: u64, state: KeyState, now: u64, most: u64) -> u64 {
        match state.shut && self.is_shut(hash, now) {
            true => 0,
            false => most.saturating_sub(state.used),
        }
    }

    /// Uses `cost` permits of the key's right, of `most`. Returns how many are left; `None`: too
    /// few.
    pub fn use_right(&self, hash: u64, now: u64, cost: u64, most: u64) -> Option<u64> {
        self.change(hash, |state| {
            let left = self.right_left(hash, state, now, most).checked_sub(cost)?;
            let state = KeyState { used: state.used.saturating_add(cost), shut: false, ..state };
            let state = match state.phase {
                KeyPhase::Idle => state.until(KeyPhase::Idle, now),
                _ => state,
            };
            Some((state, left))
        })
    }

    /// Undoes [`Line::use_right`] of a request that was not admitted.
    pub(super) fn return_right(&self, hash: u64, cost: u64) {
        self.change(hash, |state| {
            Some((KeyState { used: state.used.saturating_sub(cost), ..state }, ()))
        });
    }

    /// Claims the question about the key: `true` if the caller asks the store, and no other caller
    /// does so before `until`. Otherwise the request counts as pending.
    pub(super) fn ask(&self, hash: u64, now: u64, until: u64) -> bool {
        self.change(hash, |state| match state.phase_at(now) {
            KeyPhase::Asked => {
                Some((KeyState { pending: state.pending.saturating_add(1), ..state }, false))
            }
            _ => Some((KeyState { pending: 1, ..state.until(KeyPhase::Asked, until) }, true)),
        })
        .unwrap_or(false)
    }

    /// Counts a request that waits for the answer of the next question. Nobody else asks before
    /// `until`. `false`: the key is not in this line.
    pub(super) fn wait(&self, hash: u64, now: u64, until: u64) -> bool {
        self.change(hash, |state| {
            let state = KeyState { waiting: state.waiting.saturating_add(1), ..state };
            Some(match state.phase_at(now) {
                KeyPhase::Asked => (state, ()),
                _ => (state.until(KeyPhase::Asked, until), ()),
            })
        })
        .is_some()
    }

    /// Takes the number of pending requests, and with `waiting` that of the requests that wait, for
    /// the question that asks on their behalf.
    pub(super) fn take_requests(&self, hash: u64, waiting: bool) -> (u64, u64) {
        self.change(hash, |state| {
            let taken = if waiting { state.waiting } else { 0 };
            let rest = KeyState { pending: 0, waiting: state.waiting - taken, ..state };
            Some((rest, (state.pending, taken)))
        })
        .unwrap_or((0, 0))
    }

    /// Records what the store said at `now`. If requests began to wait after the question, they
    /// count as asked until `until`. The client that asks calls it.
    pub fn heard(&self, hash: u64, said: &Said, now: u64, until: u64) {
        let size = self.size();
        let old = size.pair();
        let (known, before) = match old.key == hash {
            true => (word::all(old.state), word::until(old.state)),
            false => (0, 0),
        };
        // The size comes first: while its question is in flight, the key stays in the line.
        let permits = if said.granted != 0 { said.granted } else { known.max(1) };
        // Rounded up, as the word's time is.
        let shut = said.shut.map_or(before, |shut| shut.saturating_add((1 << word::UNIT_BITS) - 1));
        let _ = size
            .swap(old, SlotPair { key: hash, state: word::lease(permits, shut.min(word::LAST)) });
        self.change(hash, |state| {
            let state = KeyState {
                used: state.used.saturating_sub(said.confirmed),
                pending: 0,
                answers: state.answers.wrapping_add(1),
                shut: said.shut.map_or(state.shut, |until| until != 0),
                ..state
            };
            Some(match said.dry {
                Some((until, true)) => {
                    (KeyState { waiting: 0, ..state }.until(KeyPhase::Firm, until), ())
                }
                _ if state.waiting != 0 => (state.until(KeyPhase::Asked, until), ()),
                Some((until, false)) => (state.until(KeyPhase::Dry, until), ()),
                None => (state.until(KeyPhase::Idle, now), ()),
            })
        });
    }

    /// Forgets a used right that nobody will report: its word has not changed since `before`.
    /// `is_owed` says whether the client still knows a debt of the key.
    pub(super) fn sweep(&self, before: u64, is_owed: impl Fn(u64) -> bool) {
        let old = self.state().pair();
        let Some(state) = KeyState::of(old.state) else { return };
        if state.used != 0 && state.time() < before && !is_owed(old.key) {
            let state = KeyState { used: 0, ..state }.pack();
            let _ = self.state().swap(old, SlotPair { state, ..old });
        }
    }

    /// Installs a granted lease. If both slots have permits of the key, it joins those of one slot
    /// until the earlier of both ends, or one of the two is lost. Of these ways it takes the one
    /// that keeps the most permits for the longest time. So a permit that the store served for a
    /// request that waited, and which ends soon, does not shorten a long lease.
    pub fn install(&self, hash: u64, lease: u64, now: u64) {
        let [first, second] = self.leases();
        for _ in 0..TRIES {
            let (a, b) = (first.pair(), second.pair());
            let (own_a, own_b) = (own(a, hash, now), own(b, hash, now));
            let (in_a, in_b) = (joined(own_a, lease, now), joined(own_b, lease, now));
            let worth = |one, other| word::worth(one, now).saturating_add(word::worth(other, now));
            let (slot, old, state) = match worth(in_a, own_b) >= worth(in_b, own_a) {
                true => (first, a, in_a),
                false => (second, b, in_b),
            };
            // Another key owns the line and has a live lease in this slot. That lease stays, and
            // the new one is lost.
            let is_foreign = old.key != hash && word::permits(old.state, now) != 0;
            if is_foreign && self.state_of(hash).is_none() {
                return;
            }
            if slot.swap(old, SlotPair { key: hash, state }).is_ok() {
                return;
            }
        }
    }

    fn leases(&self) -> [&Slot; 2] {
        let [first, second, ..] = &self.0;
        [first, second]
    }

    fn state(&self) -> &Slot {
        let [_, _, state, _] = &self.0;
        state
    }

    fn size(&self) -> &Slot {
        let [_, _, _, size] = &self.0;
        size
    }

    /// Swaps the key's state by `step`, which also gives the result. `None`: the key is not in this
    /// line, `step` gives nothing, or [`TRIES`] swaps failed.
    fn change<T>(&self, hash: u64, step: impl Fn(KeyState) -> Option<(KeyState, T)>) -> Option<T> {
        for _ in 0..TRIES {
            let old = self.state().pair();
            if old.key != hash {
                return None;
            }
            let (state, result) = step(KeyState::of(old.state)?)?;
            let new = SlotPair { key: hash, state: state.pack() };
            if new == old || self.state().swap(old, new).is_ok() {
                return Some(result);
            }
        }
        None
    }

    /// The content of the state slot, if `hash` may claim the line: its key is done, and has
    /// nothing that must be remembered.
    fn room(&self, hash: u64, now: u64) -> Option<SlotPair> {
        let old = self.state().pair();
        let is_done = match KeyState::of(old.state) {
            // A claim of this key, too, is removed by a claim of the same line.
            None => old.key == hash || state::is_abandoned(old.state, now),
            Some(state) => {
                old.key == 0
                    || state.used == 0
                        && state.phase_at(now) == KeyPhase::Idle
                        && !(state.shut && self.is_shut(old.key, now))
                        && self.left(old.key, now) == 0
            }
        };
        match is_done {
            true => Some(old),
            false => None,
        }
    }

    /// Removes a claim of the key from this line. `false`: the key is in this line.
    fn yields(&self, hash: u64) -> bool {
        for _ in 0..TRIES {
            let old = self.state().pair();
            let new = match old.key == hash {
                true if KeyState::of(old.state).is_some() => return false,
                true => SlotPair { key: 0, state: 0 },
                // This swap changes nothing, and orders this look after the caller's own claim: a
                // caller that claims this line after the swap sees the claim in the other line.
                false => old,
            };
            if self.state().swap(old, new).is_ok() {
                return true;
            }
        }
        false
    }

    /// Whether a key that is shut still is. A size slot of another key is damage, and the key stays
    /// shut until an answer opens it.
    fn is_shut(&self, hash: u64, now: u64) -> bool {
        let size = self.size().pair();
        size.key != hash || word::until(size.state) > now
    }
}

#[inline(always)]
fn spend(pair: SlotPair, hash: u64, now: u64, cost: u64) -> Option<u64> {
    match pair.key == hash {
        true => word::spend(pair.state, now, cost),
        false => None,
    }
}

/// The word of a slot if it is a live lease of the key, else 0.
fn own(pair: SlotPair, hash: u64, now: u64) -> u64 {
    match pair.key == hash && word::permits(pair.state, now) != 0 {
        true => pair.state,
        false => 0,
    }
}

/// What a slot keeps of two leases: both until the earlier end, or one of them. If both have ended,
/// it is `b`.
fn joined(a: u64, b: u64, now: u64) -> u64 {
    let permits = word::all(a).saturating_add(word::all(b));
    let both = word::lease(permits, word::until(a).min(word::until(b)));
    [a, both, b].into_iter().max_by_key(|word| word::worth(*word, now)).unwrap_or(b)
}

#[inline(always)]
fn live(slot: &Slot, hash: u64, now: u64) -> u64 {
    // The two words may not belong together. That is harmless, because the result is only a hint:
    // permits are spent by a swap of both words.
    match slot.key() == hash {
        true => word::permits(slot.state(), now),
        false => 0,
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;
