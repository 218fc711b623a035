//! HTTP header fields about limits. A server writes them in the dialects that clients know, and a
//! client reads them. The module also writes the body of a refusal, which names the limits that
//! refused.
//!
//! ```
//! use tollbar::http::{Draft, Fields, Limit};
//! use tollbar::{Decision, Policy, Reason, Verdict};
//!
//! let policy: Policy = "100/min burst 20".parse()?;
//! let decision = Decision {
//!     verdict: Verdict::Allowed, reason: Reason::Admitted, remaining: 19, retry_after: 0, reset_after: 600_000_000, bound: 0,
//! };
//! let limit = Limit::new(b"client", &policy, &decision).with_more_after(600_000_000);
//! let mut out = [0; 200];
//! let length = Fields::new().with_draft(Draft::Eleven).write(&[limit], 0, &mut out);
//! assert_eq!(&out[..length], b"RateLimit-Policy: \"client\";q=100;w=60\r\nRateLimit: \"client\";r=19;t=1\r\n");
//! # Ok::<(), tollbar::SyntaxError>(())
//! ```

mod fields;
mod read;
mod write;

pub use fields::{Draft, Fields, Limit, Reset, INTEGER_MOST};
pub use read::Seen;
pub use write::problem;

use crate::decision::{Decision, Verdict};
use crate::policy::Policy;
use crate::units::NEVER;

/// Nanoseconds until more permits than `decision.remaining` are left. [`NEVER`] if no permit is
/// missing, if none will come back, or if the policy lends and has permits left: such a policy
/// admits a request that costs more than is left, so a peek does not show when permits come back.
///
/// `cost` is the cost of the request that was decided, with its reserve if the caller gave one
/// (`check_leaving`). `peek` peeks for the given number of permits of the same key, at the time of
/// the decision or just after it: [`Table::peek_uncounted`](crate::table::Table::peek_uncounted) or
/// [`Shared::peek_uncounted_at`](crate::Shared::peek_uncounted_at). Under a policy with `ban` any
/// other peek would show the ban to which its refusal would lead, and no client asks for that.
pub fn more_after(
    policy: &Policy,
    decision: &Decision,
    cost: u64,
    peek: impl FnOnce(u64) -> Decision,
) -> u64 {
    let refused = decision.verdict != Verdict::Allowed;
    // The wait of a class's refusal is for its reserve, too.
    if refused && decision.remaining.checked_add(1) == Some(cost) && policy.classes.is_empty() {
        return decision.retry_after;
    }
    // A fresh bucket with `init` and a fresh slice of a curve still get permits.
    let full = decision.reset_after == 0 && decision.remaining >= policy.burst;
    if full || (decision.remaining != 0 && lends(policy)) {
        return NEVER;
    }
    let Some(more) = decision.remaining.checked_add(1) else {
        return NEVER;
    };
    let peeked = peek(more);
    let after = match peeked.verdict {
        Verdict::Never => return NEVER,
        // The permit has come back between the decision and the peek.
        Verdict::Allowed => 1,
        Verdict::Denied => peeked.retry_after,
    };
    // Other requests may have taken permits since the decision. The time that a client reads must
    // not be later than its Retry-After.
    if refused {
        after.min(decision.retry_after)
    } else {
        after
    }
}

/// Whether a request that costs more than is left may pass.
fn lends(policy: &Policy) -> bool {
    policy.borrow || policy.kind.lends()
}
