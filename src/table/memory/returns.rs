//! Turns of the calls that give permits back.
//!
//! A return reads a key's state, then the time, and swaps the state that follows from both. If
//! another return lowered the state in between, and requests at a later time raised it to the same
//! value, the swap would succeed with a time that is too early, and would return what the limit has
//! refilled since. So of the returns of one key one runs at a time: it takes the *turn* of the
//! key's tag. A request takes none. Without returns it only raises the state, and so makes the swap
//! fail.
//!
//! A turn names the process that has it. If that process has ended, another takes its turn. If it
//! sleeps, others wait for some microseconds, then give nothing back: that refuses permits, and
//! never admits more.

use crate::sync::{AtomicU64, Ordering};

/// The number of turns. The keys of a table share them.
pub(crate) const TURNS: usize = 64;

/// The turn of a return. Dropping it ends the turn.
pub(crate) struct ReturnTurn<'a>(&'a AtomicU64);

impl<'a> ReturnTurn<'a> {
    /// Waits for the turn, for the process `me`, which is not 0. `None`: another return sleeps, or
    /// the memory is damaged.
    pub(crate) fn take(
        turn: &'a AtomicU64,
        me: u64,
        has_ended: impl Fn(u64) -> bool,
        rest: impl Fn(),
    ) -> Option<ReturnTurn<'a>> {
        for _ in 0..ROUNDS {
            for _ in 0..SPINS {
                // Acquire: this return reads what the former one has written. Relaxed on failure:
                // the next try reads again.
                if turn.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return Some(ReturnTurn(turn));
                }
                core::hint::spin_loop();
            }
            let holder = turn.load(Ordering::Relaxed);
            // If two find that the holder has ended, one swap succeeds. (No model notices a weaker
            // ordering, because in the models no process ends.)
            if holder != 0
                && holder != me
                && has_ended(holder)
                && turn.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Some(ReturnTurn(turn));
            }
            rest();
        }
        None
    }
}

impl Drop for ReturnTurn<'_> {
    fn drop(&mut self) {
        // Release: the next return reads what this one has written.
        self.0.store(0, Ordering::Release);
    }
}

/// Tries before a look at the holder.
const SPINS: u32 = if cfg!(loom) { 1 } else { 500 };
/// Looks at the holder, each followed by a rest, in which the system may let it run.
const ROUNDS: u32 = if cfg!(loom) { 2 } else { 64 };
