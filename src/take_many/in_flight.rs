//! A permit in flight as one limit of several.

use super::AnyInFlight;
use crate::decision::{Decision, Reason, Verdict};
use crate::in_flight::{Refusal, Ticket};
use crate::units::NEVER;
use core::cell::Cell;

/// A key of an in-flight table, its limit, and the place for the ticket.
#[derive(Clone, Copy)]
pub(super) struct InFlightLimit<'a> {
    pub(super) table: &'a dyn AnyInFlight,
    pub(super) key: &'a [u8],
    pub(super) limit: u32,
    pub(super) ticket: &'a Cell<Ticket>,
}

impl InFlightLimit<'_> {
    /// `None` if the limit refuses, an error if the table is too small.
    #[inline(never)]
    pub(super) fn acquire(&self) -> Result<Option<Ticket>, Refusal> {
        match self.table.acquire(self.key, self.limit) {
            Ok(ticket) => Ok(Some(ticket)),
            Err(Refusal::Limit) => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    pub(super) fn release(&self, ticket: Ticket) {
        self.table.release(ticket);
    }

    /// The decision that an acquisition would make now.
    #[inline(never)]
    pub(super) fn peek(&self) -> Decision {
        let left = u64::from(self.limit).saturating_sub(self.table.in_flight(self.key, self.limit));
        match left {
            0 => self.refused(),
            _ => Decision::admitted(left),
        }
    }

    /// The decision after an acquisition that succeeded.
    pub(super) fn held(&self) -> Decision {
        // A permit in flight comes back when its holder releases it, and not with time. So it adds
        // nothing to the time until all limits are fresh.
        Decision::admitted(
            u64::from(self.limit).saturating_sub(self.table.in_flight(self.key, self.limit)),
        )
    }

    /// The decision after an acquisition that the limit refused. Nobody knows when a holder
    /// releases its permit.
    pub(super) fn refused(&self) -> Decision {
        Decision {
            verdict: Verdict::Denied,
            reason: Reason::InFlight,
            retry_after: NEVER,
            ..Decision::admitted(0)
        }
    }
}
