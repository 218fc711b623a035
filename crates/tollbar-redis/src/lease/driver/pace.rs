//! How often a driver asks the store because of debts that could wait for others.

use crate::lease::terms::Terms;

/// Counts the turns in which the driver asks. Times are nanoseconds of the node's clock.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the turns so far were due, a `spacing` after each other.
    due_at: u64,
    asked_at: u64,
}

/// The least and the most nanoseconds from one such turn to the next, on average.
const SPACING_LEAST: u64 = 5_000_000;
const SPACING_MOST: u64 = 10_000_000;
/// So many of them may follow each other at once.
const AT_ONCE: u64 = 16;

impl Pace {
    /// Whether the driver may ask now although the debts could wait.
    pub(super) fn may_ask(&self, now: u64) -> bool {
        now >= self.due_at
    }

    /// Counts a turn with a question.
    pub(super) fn asked(&mut self, terms: &Terms, now: u64) {
        if core::mem::replace(&mut self.asked_at, now) == now {
            return;
        }
        let spacing = spacing(terms);
        let earliest = now.saturating_sub(AT_ONCE * spacing);
        let due_at = self.due_at.max(earliest).saturating_add(spacing);
        self.due_at = due_at.min(now.saturating_add(spacing));
    }
}

/// A key that stays within the limit asks again after a permit's time or later. A fraction of that
/// time is soon enough.
fn spacing(terms: &Terms) -> u64 {
    let permit = terms.den.saturating_mul(1000).checked_div(terms.num).unwrap_or(0);
    (permit / 64).clamp(SPACING_LEAST, SPACING_MOST)
}
