//! What a limiter answers.

use crate::units::NEVER;

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Verdict {
    /// It may, and its cost has been charged.
    Allowed = 0,
    /// Not now. Nothing has been charged.
    Denied = 1,
    /// Not at any time: the cost is more than the policy can ever have at once. Nothing has been charged.
    Never = 2,
}

/// An answer with everything a caller may want to pass on to its own client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// Whether the request may pass.
    pub verdict: Verdict,
    /// Permits that could be taken at this instant, after this decision.
    pub remaining: u64,
    /// Nanoseconds after which the same request would be admitted if nobody else came between, and
    /// one nanosecond before which it would still be refused. 0 when it was admitted,
    /// [`NEVER`] when waiting would not help.
    pub retry_after: u64,
    /// Nanoseconds until the state is as good as fresh, if nobody comes between.
    pub reset_after: u64,
}

impl Decision {
    /// Whether the request may pass.
    #[inline(always)]
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allowed)
    }

    /// The nanoseconds to wait before the same request could pass; `None` if it passed or never will.
    pub const fn retry(&self) -> Option<u64> {
        match self.verdict {
            Verdict::Denied if self.retry_after != NEVER => Some(self.retry_after),
            _ => None,
        }
    }
}
