//! A striped bucket with a limiter's calls, for threads whose numbers the test chooses.

use super::Striped;
#[cfg(not(loom))]
use crate::decision::Decision;
use crate::decision::{Counts, Verdict};
use crate::limiter::fast::Fast;
use crate::limiter::tally::Tally;
use core::ops::Deref;

pub(super) struct Counted {
    striped: Striped,
    tally: Tally,
}

impl Counted {
    pub(super) fn new(striped: Striped) -> Counted {
        Counted { striped, tally: Tally::default() }
    }

    /// [`crate::Limiter::admit`] of thread `who`.
    pub(super) fn admit_as(&self, who: u64, cost: u64, now: impl FnOnce() -> u64) -> Verdict {
        match self.stripes.spend_first(who, cost) || self.stripes.spend_second(who, cost) {
            true => Verdict::Allowed,
            false => self.tally.count(self.ask(who, now(), cost)),
        }
    }

    /// [`crate::Limiter::check_at`] of thread `who`.
    #[cfg(not(loom))]
    pub(super) fn check_as(&self, who: u64, now: u64, cost: u64) -> Decision {
        let decision = self.striped.check_as(who, now, cost);
        let _ = self.tally.count(decision.verdict);
        decision
    }

    /// The permits that thread `who` could take, one by one.
    #[cfg(not(loom))]
    pub(super) fn available_as(&self, who: u64, now: u64) -> u64 {
        self.peek_as(who, now, 0).remaining
    }

    pub(super) fn counts(&self) -> Counts {
        let counts = self.tally.counts();
        Counts { allowed: counts.allowed + self.spent(), ..counts }
    }
}

impl Deref for Counted {
    type Target = Striped;

    fn deref(&self) -> &Striped {
        &self.striped
    }
}
