//! Decisions that give no permit.

use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::units::NEVER;

pub(super) fn denied(reason: Reason, remaining: u64, retry_after: u64) -> Decision {
    Decision { verdict: Verdict::Denied, reason, remaining, retry_after, reset_after: 0, bound: 0 }
}

pub(super) fn never(remaining: u64) -> Decision {
    Decision {
        verdict: Verdict::Never,
        reason: Reason::Burst,
        remaining,
        retry_after: NEVER,
        reset_after: 0,
        bound: 0,
    }
}
