//! Words that hold a slot's time beside the bucket's, and the last booking of a word.

use super::Gcra;
use crate::algorithm::{Algorithm, Charge, GiveBack, Reservation};
use crate::units::NEVER;

impl Gcra {
    /// The plain word of the same TAT, if `old` is the same bucket with perhaps another quantum of floors.
    pub(crate) fn same_tat(&self, old: &Gcra, state: u64) -> Option<u64> {
        (Gcra { floors: old.floors, ..*self } == *old).then(|| old.floors.tat(state).max(1))
    }

    /// Whether the slot of `state` stays taken for longer than the bucket needs to be full.
    pub(crate) fn is_held(&self, state: u64) -> bool {
        self.floors.is_lowered(state)
    }

    /// `state` in a slot that stays taken until `until`, at the time `now`: [`Rule::hold`](crate::algorithm::Rule).
    pub(crate) fn hold(&self, state: u64, until: u64, now: u64, exact: bool) -> Option<u64> {
        if !self.floors.exist() || until > self.last || now > self.last {
            return None;
        }
        let tat = self.base(state, self.grid.units_in_time(now));
        // `expires_at` is some nanoseconds late. If the slot's time comes from a floor already, the same floor is 8 ns earlier than it, and is kept: otherwise
        // each change of policy would make it a step later.
        [until.saturating_sub(8), until].into_iter().find_map(|from| {
            let floor = self.grid.units_up(from).checked_add(self.lacking)?;
            let word = self.floors.held(tat, floor, exact)?;
            (until..NEVER).contains(&self.expires_at(word)).then_some(word)
        })
    }

    /// [`Algorithm::last_booking`].
    pub(super) fn booked_last(&self, state: u64, charge: Charge) -> Option<Reservation> {
        let tat = self.floors.tat(state);
        let due = tat.checked_sub(self.tolerance)?;
        let units = charge.cost.checked_mul(self.grid.per_permit().get())?;
        if !self.is_distinct(due) {
            return None;
        }
        Some(Reservation { at: self.grid.nanos(due), next: tat.checked_sub(units)?.max(1) })
    }

    /// Whether no other booking departs in the nanosecond in which a booking for `due` does: it would depart a permit later or earlier, and that is a
    /// nanosecond or more, or `due` is the nanosecond's last unit.
    pub(super) fn is_distinct(&self, due: u64) -> bool {
        self.grid.nanos(self.grid.per_permit().get()) > 1
            || self.grid.whole().is_some_and(|units| due.checked_rem(units) == Some(0))
    }

    /// The units that the limit has refilled from the charge to `newest`, the latest instant for which a request has been admitted.
    pub(super) fn passed(&self, back: &GiveBack, clock: u64, newest: u64) -> u64 {
        let at = back.charge.at;
        // The last booking departs at `newest` itself.
        if back.booked && newest > clock && self.is_distinct(newest) && self.grid.nanos(newest) == at {
            return 0;
        }
        match newest.saturating_sub(self.grid.units(at)) {
            // A booking's instant was rounded up to a nanosecond, unless a nanosecond is a unit.
            1.. if back.booked && self.grid.whole() != Some(1) => {
                newest.saturating_sub(self.grid.units(at.saturating_sub(1)))
            }
            passed => passed,
        }
    }
}
