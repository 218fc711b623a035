//! How permits go back to a key: a swap that lowers the key's debt and leaves the slot's time of
//! expiry.

use super::candidates::Candidates;
use super::protocol::first_to_expire;
use super::states::{KeyChanged, States};
use super::ROUNDS;
use crate::algorithm::Returned;
use crate::table::memory::slot::{SlotPair, TAG};

/// Tries once to give permits back to `key` in its turn ([`States::turn`]), and returns their
/// number. `lower` computes the lowered state. If it returns `None`, the key gets nothing back. It
/// must read the flags of the policy and then the time itself, because
/// [`GiveBack`](crate::algorithm::GiveBack) needs values that were read after the state. After
/// [`KeyChanged`] nothing went back, and the caller may try again under the current version of the
/// key's policy.
pub(crate) fn give_back(
    states: &impl States,
    candidates: &Candidates<'_>,
    key: u64,
    now: &dyn Fn() -> u64,
    lower: &mut dyn FnMut(u64) -> Option<Returned>,
) -> Result<u64, KeyChanged> {
    let Some(slot) = candidates.find(key) else {
        // `KeyChanged`: the key was under a former version of its policy, and this or another call
        // has converted it.
        return first_to_expire(states, candidates, key, now()).map(|_| 0);
    };
    let Some(_turn) = states.turn(key & TAG) else { return Ok(0) };
    let found = slot.pair();
    if found.key != key || !states.is_numbered() {
        return Err(KeyChanged);
    }
    let Some(Returned { next, permits }) = lower(found.state) else { return Ok(0) };
    slot.swap(found, SlotPair { key, state: next }).map(|()| permits).map_err(|_| KeyChanged)
}

/// Gives permits of a charge back to `key`, if the key is still under the version of the charge. A
/// later version may refill more slowly. It would count too few of the permits that the former
/// version has refilled since the charge, and so would return too many.
pub(crate) fn give_back_under(
    states: &impl States,
    candidates: &Candidates<'_>,
    key: u64,
    is_current: impl Fn() -> bool,
    now: &dyn Fn() -> u64,
    lower: &mut dyn FnMut(u64) -> Option<Returned>,
) -> Result<u64, KeyChanged> {
    for _ in 0..ROUNDS {
        match give_back(states, candidates, key, now, lower) {
            Err(KeyChanged) if !is_current() => return Ok(0),
            Err(KeyChanged) => {}
            given => return given,
        }
    }
    Err(KeyChanged)
}
