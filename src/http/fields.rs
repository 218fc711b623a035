//! What a server writes: the fields of which dialect, and the limits of a request.

use crate::decision::{Decision, Verdict};
use crate::policy::Policy;
use crate::units::NEVER;

/// The largest integer of a structured field (RFC 9651, section 3.3.1). Larger numbers are written
/// as this one.
pub const INTEGER_MOST: u64 = 999_999_999_999_999;

/// The version of draft-ietf-httpapi-ratelimit-headers whose fields are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Draft {
    /// Versions 00 to 06: `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset` and
    /// `RateLimit-Policy`.
    Six,
    /// Version 07: `RateLimit: limit=100, remaining=19, reset=1` and `RateLimit-Policy: 100;w=60`.
    Seven,
    /// Versions 08 to 11: `RateLimit: "client";r=19;t=1` and
    /// `RateLimit-Policy: "client";q=100;w=60`.
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
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` of the limit that
    /// binds.
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
}

/// A limit of a request, and its decision.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// The name that clients see. Bytes other than printable ASCII are written as `?`.
    pub name: &'a [u8],
    /// The partition key (`pk` of drafts 08 to 11), which names the client or group whose quota
    /// this is. Empty: none is written. Clients see it, so it must not be a secret.
    pub partition: &'a [u8],
    /// Permits per period.
    pub limit: u64,
    /// The period in nanoseconds; [`FOREVER`](crate::policy::FOREVER) for a lifetime quota, which
    /// has no window in the fields.
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
    /// Nanoseconds until more permits than `remaining` are left. [`NEVER`]: unknown, or no permit
    /// is missing. [`more_after`](super::more_after) computes it.
    pub more_after: u64,
}

impl<'a> Limit<'a> {
    /// The limit of a policy and its decision. If the policy is a list of two rates, it is the rate
    /// that bound the decision. `more_after` is unknown for an admission, and for a refusal it is
    /// `retry_after`. [`Limit::with_more_after`] sets the exact time.
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
            more_after: if decision.verdict == Verdict::Denied {
                decision.retry_after
            } else {
                NEVER
            },
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

    pub(super) fn refuses(&self) -> bool {
        self.verdict != Verdict::Allowed
    }
}
