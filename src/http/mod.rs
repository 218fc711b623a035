//! HTTP header fields about limits. A server writes them in the dialects that clients know, and a client reads them.
//! The module also writes the body of a refusal, which names the limits that refused.
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

mod read;
mod write;

pub use read::Seen;

use crate::decision::{Decision, Verdict};
use crate::policy::Policy;
use crate::units::NEVER;

/// The largest integer of a structured field (RFC 9651, section 3.3.1). Larger numbers are written as this one.
pub const INTEGER_MOST: u64 = 999_999_999_999_999;

/// The version of draft-ietf-httpapi-ratelimit-headers whose fields are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Draft {
    /// Versions 00 to 06: `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` and `RateLimit-Policy`.
    Six,
    /// Version 07: `RateLimit: limit=100, remaining=19, reset=1` and `RateLimit-Policy: 100;w=60`.
    Seven,
    /// Versions 08 to 11: `RateLimit: "client";r=19;t=1` and `RateLimit-Policy: "client";q=100;w=60`.
    Eleven,
}

/// What `X-RateLimit-Reset` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reset {
    /// Seconds from now.
    Seconds,
    /// Seconds since 1970.
    Epoch,
}

/// The fields to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// `Retry-After`, in seconds, for a refused request.
    pub retry_after: bool,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the limit that binds.
    pub legacy: Option<Reset>,
    /// The fields of a draft.
    pub draft: Option<Draft>,
}

impl Fields {
    /// `Retry-After` alone.
    pub const fn new() -> Fields {
        Fields { retry_after: true, legacy: None, draft: None }
    }

    /// These fields and those of a draft.
    pub const fn with_draft(self, draft: Draft) -> Fields {
        Fields { draft: Some(draft), ..self }
    }

    /// These fields and the `X-RateLimit-` ones.
    pub const fn with_legacy(self, reset: Reset) -> Fields {
        Fields { legacy: Some(reset), ..self }
    }

    /// Writes one line for each field, `Name: value` and a line break (CR, LF), and returns the length of all lines
    /// in bytes. If that is more than `out.len()`, the end is missing in `out`. Without limits the call writes
    /// nothing.
    ///
    /// `utc` is the time in nanoseconds since 1970; only [`Reset::Epoch`] needs it. A field with room for one limit
    /// describes the limit that binds. If limits refuse, it is the one of them with the longest wait, and otherwise
    /// the one with the fewest permits left.
    pub fn write(&self, limits: &[Limit<'_>], utc: u64, out: &mut [u8]) -> usize {
        write::fields(self, limits, utc, out)
    }
}

/// Writes the body of a refusal's answer as a problem in JSON (RFC 9457; the media type is
/// `application/problem+json`), and returns its length in bytes. If that is more than `out.len()`, the end is missing
/// in `out`.
///
/// The problem is the draft's `quota-exceeded`. Its `violated-policies` are the names of the limits that refuse.
pub fn problem(limits: &[Limit<'_>], status: u16, out: &mut [u8]) -> usize {
    write::problem(limits, status, out)
}

/// A limit of a request, and its decision.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// The name that clients see. Bytes other than printable ASCII are written as `?`.
    pub name: &'a [u8],
    /// The partition key (`pk` of drafts 08 to 11), which names the client or group whose quota this is. Empty: none
    /// is written. Clients see it, so it must not be a secret.
    pub partition: &'a [u8],
    /// Permits per period.
    pub limit: u64,
    /// The period in nanoseconds; [`FOREVER`](crate::policy::FOREVER) for a lifetime quota, which has no window in
    /// the fields.
    pub period: u64,
    /// The most permits that can be taken at once.
    pub burst: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The permits left.
    pub remaining: u64,
    /// Nanoseconds until the request would be admitted; [`NEVER`] if no wait helps.
    pub retry_after: u64,
    /// Nanoseconds until all permits are back; [`NEVER`]: unknown.
    pub reset_after: u64,
    /// Nanoseconds until more permits than `remaining` are left. [`NEVER`]: unknown, or no permit is missing.
    /// [`more_after`] computes it.
    pub more_after: u64,
}

impl<'a> Limit<'a> {
    /// The limit of a policy and its decision. If the policy is a list of two rates, it is the rate that bound the
    /// decision. `more_after` is unknown for an admission, and for a refusal it is `retry_after`.
    /// [`Limit::with_more_after`] sets the exact time.
    pub fn new(name: &'a [u8], policy: &Policy, decision: &Decision) -> Limit<'a> {
        let (limit, period, burst) = match policy.second {
            Some(second) if decision.bound != 0 => (second.limit, second.period, second.burst),
            _ => (policy.limit, policy.period, policy.burst),
        };
        Limit {
            name,
            partition: &[],
            limit,
            period,
            burst,
            verdict: decision.verdict,
            remaining: decision.remaining,
            retry_after: decision.retry_after,
            reset_after: decision.reset_after,
            more_after: if decision.verdict == Verdict::Denied { decision.retry_after } else { NEVER },
        }
    }

    /// This limit with a time until more permits are left, in nanoseconds.
    pub const fn with_more_after(self, more_after: u64) -> Limit<'a> {
        Limit { more_after, ..self }
    }

    /// This limit with a partition key.
    pub const fn with_partition(self, partition: &'a [u8]) -> Limit<'a> {
        Limit { partition, ..self }
    }

    fn refuses(&self) -> bool {
        self.verdict != Verdict::Allowed
    }
}

/// Nanoseconds until more permits than `decision.remaining` are left. [`NEVER`] if no permit is missing, if none will
/// come back, or if the policy lends and has permits left: such a policy admits a request that costs more than is
/// left, so a peek does not show when permits come back.
///
/// `cost` is the cost of the request that was decided, with its reserve if the caller gave one (`check_leaving`).
/// `peek` peeks for the given number of permits of the same key, at the time of the decision or just after it:
/// [`Table::peek_uncounted`](crate::table::Table::peek_uncounted) or
/// [`Shared::peek_uncounted_at`](crate::Shared::peek_uncounted_at). Under a policy with `ban` any other peek would
/// show the ban to which its refusal would lead, and no client asks for that.
pub fn more_after(policy: &Policy, decision: &Decision, cost: u64, peek: impl FnOnce(u64) -> Decision) -> u64 {
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
    // Other requests may have taken permits since the decision. The time that a client reads must not be later than
    // its Retry-After.
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
