//! The limits of the measurements, once for both sides.

use std::time::Duration;

/// A burst of permits, one of which comes back each period.
#[derive(Clone, Copy)]
pub struct Limit {
    /// As tollbar reads it.
    pub text: &'static str,
    /// The same for governor.
    pub period: Duration,
    pub burst: u32,
}

/// Charges every request and refuses none: the path of an admission. A key owes 10 s a request, more than goes by
/// until its next one, so that the tables are full of keys that owe, and not of slots that anybody may have.
pub const OPEN: Limit = Limit { text: "6/min burst 100000000", period: Duration::from_secs(10), burst: 100_000_000 };

/// Admits a key once, then refuses it for the rest of the run.
pub const SHUT: Limit = Limit { text: "1/day burst 1", period: Duration::from_secs(86_400), burst: 1 };

/// A key is idle again after a millisecond: a flood's keys leave their slots behind.
pub const BRIEF: Limit = Limit { text: "1000/s burst 1", period: Duration::from_millis(1), burst: 1 };
