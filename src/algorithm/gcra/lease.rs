//! Permits that a thread charges in advance.

use super::Gcra;

/// The outcome of [`Gcra::lease`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The word to store.
    pub(crate) next: u64,
    /// Permits charged in advance, beside the cost of the request.
    pub(crate) credit: u64,
    /// The first clock reading, in nanoseconds, at which the credit is void.
    pub(crate) until: u64,
}

impl Gcra {
    /// Credit is valid for at least this many nanoseconds, or for the time in which an eighth of
    /// the burst refills if that is shorter.
    const LEASE: u64 = 1 << 27;
    /// Buckets of a smaller burst give no credit.
    const LEAST_LEASED: u64 = 32;

    /// Whether [`Gcra::lease`] gives any credit.
    #[cfg(not(loom))]
    pub(crate) fn has_credit(&self) -> bool {
        self.burst >= Self::LEAST_LEASED
    }

    /// Charges `cost` permits and up to `most` more. The additional permits are *credit*: a thread
    /// spends them later without the shared word. `None` if the request would be refused, or if
    /// there is no permit to give as credit.
    ///
    /// Credit is valid until the instant at which the bucket would be full if the credit had not
    /// been charged. If that is sooner than [`Gcra::LEASE`] or the refill of an eighth of the
    /// burst, whichever is shorter, the bucket is charged for the difference first. Credit is at
    /// most a sixteenth of the permits that then remain.
    ///
    /// Why the bound of the policy holds with credit: `table::decide::hot_keys`.
    pub(crate) fn lease(&self, state: u64, now: u64, cost: u64, most: u64) -> Option<Lease> {
        // No sum below can wrap: see `Plain::step`.
        if cost > self.burst
            || self.burst < Self::LEAST_LEASED
            || now > self.last
            || self.floors.is_lowered(state)
        {
            return None;
        }
        let (permit, clock) = (self.grid.per_permit(), self.grid.units_in_time(now));
        let ahead = self.grid.units(Self::LEASE).min(self.tolerance / 8);
        let charge = cost.wrapping_mul(permit.get());
        let charged = self.base(state, clock).checked_add(charge)?.max(clock.wrapping_add(ahead));
        let rest = clock.wrapping_add(self.tolerance).checked_sub(charged)?;
        let credit = most.min(rest / permit / 16);
        if credit == 0 {
            return None;
        }
        // Nothing is admitted after `last`, so credit ends there too.
        let until = self.grid.nanos(charged).min(self.last + 1);
        Some(Lease { next: charged.wrapping_add(credit.wrapping_mul(permit.get())), credit, until })
    }
}
