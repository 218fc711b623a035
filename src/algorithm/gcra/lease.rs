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
    /// Whether keys of a table have credit.
    #[cfg(not(loom))]
    pub(crate) fn has_credit(&self) -> bool {
        self.burst >= 32
    }

    /// Charges `cost` permits and up to `most` more. The additional permits are *credit*: a thread
    /// spends them later without the shared word. Credit is at most a sixteenth of the permits that
    /// remain. `None` if the request would be refused, or if there is no permit to give as credit.
    ///
    /// [`Lease::until`] is the instant at which the bucket would be full if the credit had not been
    /// charged. If that is sooner than `least` nanoseconds or the refill of an eighth of the burst,
    /// whichever is shorter, the bucket is charged for the difference first.
    ///
    /// Why the bound of the policy holds with credit: `limiter::striped` for credit that is set
    /// aside, `table::decide::hot_keys` for credit that ends at that instant.
    pub(crate) fn lease(
        &self,
        state: u64,
        now: u64,
        cost: u64,
        most: u64,
        least: u64,
    ) -> Option<Lease> {
        // No sum below can wrap: see `Plain::step`.
        if cost > self.burst || now > self.last || self.floors.is_lowered(state) {
            return None;
        }
        let (permit, clock) = (self.grid.per_permit(), self.grid.units_in_time(now));
        let ahead = self.grid.units(least).min(self.tolerance / 8);
        let charge = cost.wrapping_mul(permit.get());
        let charged = self.base(state, clock).checked_add(charge)?.max(clock.wrapping_add(ahead));
        let rest = clock.wrapping_add(self.tolerance).checked_sub(charged)?;
        // Near the limit this comparison takes the place of the division.
        if most == 0 || rest / 16 < permit.get() {
            return None;
        }
        let credit = most.min(rest / permit / 16);
        // Nothing is admitted after `last`, so credit ends there too.
        let until = self.grid.nanos(charged).min(self.last + 1);
        Some(Lease { next: charged.wrapping_add(credit.wrapping_mul(permit.get())), credit, until })
    }
}
