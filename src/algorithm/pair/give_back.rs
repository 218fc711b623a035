//! Permits of an unused charge, given back to both buckets by one swap.
//!
//! Each bucket has its own bound, so each takes back the permits that are safe for it
//! ([`GiveBack`]): the charge minus the permits that this bucket has refilled since. The fast
//! bucket may have refilled the whole charge when the slow bucket takes nearly all of it back.
//!
//! All instants below are steps. A charge starts from the clock rounded *up* and is admitted by the
//! clock rounded down, which is stricter than an exact bucket on the clock rounded up. So "from the
//! charge to now" is the difference of two clocks rounded up, and no TAT falls below the present
//! rounded up.
//!
//! A booking departs when both buckets have its permits: at `TAT - burst` of the bucket that bound
//! it, or at once. The later of the two buckets' instants `TAT - burst` is the latest instant for
//! which any request has been admitted. The other bucket's may be much earlier.
//!
//! *In a slot of a table* the slow TAT stays, because the slot's time may not become earlier and
//! the word has no bits for a second time. Only the fast bucket takes permits back there.

use super::bucket::TokenBucket;
use super::start::{Pair, Start, Tats, WordAt};
use super::steps::StepReading;
use crate::algorithm::{Charge, GiveBack, Reservation, Returned};
use crate::units::LAST;

impl Pair {
    /// [`Algorithm::give_back`](crate::algorithm::Algorithm::give_back).
    #[inline(never)]
    pub(super) fn lower(&self, state: u64, now: u64, back: &GiveBack) -> Option<Returned> {
        if state == 0 || now > LAST {
            return None;
        }
        let clock = self.steps.clock(now);
        let WordAt { tats, here } = self.word_at(state, clock);
        let newest = match back.booked {
            true => clock.up.max(self.latest_departure(tats, back)),
            false => clock.up,
        };
        let passed = newest.saturating_sub(self.steps.clock(back.charge.at.min(LAST)).up);
        let lowered = |bucket: &TokenBucket, tat: u64| {
            let permit = bucket.permit.get();
            let kept = back.charge.cost.saturating_mul(permit).saturating_sub(passed);
            let ahead = tat.saturating_sub(clock.up);
            tat.saturating_sub(back.permits.saturating_mul(permit).min(kept).min(ahead))
        };
        let fast = lowered(&self.fast, tats.fast);
        let slow = if back.keeps_slot { tats.slow } else { lowered(&self.slow, tats.slow) };
        if fast == tats.fast && slow == tats.slow {
            return None;
        }
        // The word cannot hold a slow TAT before the fast one, so `pack_later` may lower a TAT by
        // less. That is safe.
        let next = match here
            .and_then(|count| self.start_with_less(count, tats, Tats { fast, slow }, clock))
        {
            Some(next) => next,
            None => self.pack_later(fast, slow, clock.up),
        };
        let after = self.unpack(next);
        let permits =
            |bucket: &TokenBucket, from: u64, to: u64| from.saturating_sub(to) / bucket.permit;
        let returned = permits(&self.fast, tats.fast, after.fast)
            .max(permits(&self.slow, tats.slow, after.slow));
        // Less than a permit would come back. That is not worth a lower state, because a lower
        // state no longer shows which booking is the last one. Callers that give up a booking would
        // then get nothing back.
        let is_worth = returned != 0 || !back.booked;
        (next != state && is_worth).then_some(Returned { next, permits: returned })
    }

    /// [`Algorithm::last_booking`](crate::algorithm::Algorithm::last_booking). A bucket that did
    /// not bind was charged from the departure on, so before the booking it was full at the
    /// departure or earlier. The state says: at the departure.
    pub(super) fn booked_last(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let tats = self.unpack(state);
        let before = Tats {
            fast: tats.fast.checked_sub(self.fast.permit.get().checked_mul(charge.cost)?)?,
            slow: tats.slow.checked_sub(self.slow.permit.get().checked_mul(charge.cost)?)?,
        };
        let due = self.due(before, charge.cost);
        // A bucket whose burst is the cost was charged from the step after the departure. The next
        // booking would depart two steps later or more.
        let at = match self.steps.nanos(due.saturating_sub(1)) <= charge.at {
            true => charge.at.min(self.steps.nanos(due)),
            false => self.steps.nanos(due),
        };
        Some(Reservation { at, next: self.pack_later(before.fast, before.slow, 0) })
    }

    /// The word of a start in the running step that has lost whole permits: from the TATs `from`
    /// with `count` permits to the TATs `to`. A bucket without a charge is full again. `None` if
    /// the buckets have not lost the same number of whole permits.
    fn start_with_less(&self, count: u64, from: Tats, to: Tats, clock: StepReading) -> Option<u64> {
        let steps = from.fast.saturating_sub(to.fast);
        let permits = steps / self.fast.permit;
        let left = count.checked_sub(permits).filter(|_| self.fast.charge(permits) == steps)?;
        let fast = if left == 0 { clock.down } else { to.fast };
        match self.start {
            Start::Counts(_) => {
                Some(self.pack_counted(Tats { fast, slow: self.on_grid(to.slow) }, left))
            }
            Start::Spaced(_) if from.slow.saturating_sub(to.slow) != self.slow.charge(permits) => {
                None
            }
            // At least 1, since 0 is the fresh word.
            Start::Spaced(_) if left == 0 => {
                Some(self.pack(Tats { fast, slow: clock.down.max(1) }))
            }
            Start::Spaced(_) => Some(self.pack(to)),
        }
    }

    /// The latest instant at which a request of this state departs, or a later one. If a give-back
    /// may have lowered the fast TAT, its former value is unknown. Then the highest slow TAT, which
    /// is no earlier, replaces it, and fewer permits go back.
    fn latest_departure(&self, tats: Tats, back: &GiveBack) -> u64 {
        let highest = self.unpack(back.highest).slow.max(tats.slow);
        let fast = if back.keeps_slot || back.highest != 0 { highest } else { tats.fast };
        // If a step is a whole number of nanoseconds, bookings depart at the start of a step.
        // Otherwise their instants were rounded up to a nanosecond, which may be in the next step.
        let rounded = u64::from(self.steps.per.get() != 1);
        let departs = |bucket: &TokenBucket, tat: u64| {
            tat.saturating_sub(bucket.tolerance).saturating_add(rounded)
        };
        departs(&self.slow, highest).max(departs(&self.fast, fast))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
