//! The limits of the measurements, once for both sides.

use std::time::Duration;

/// A burst of permits, one of which comes back each period.
#[derive(Clone, Copy)]
pub struct Limit {
    /// The limit as tollbar reads it.
    pub text: &'static str,
    /// The limit as governor takes it.
    pub period: Duration,
    pub burst: u32,
}

/// Charges every request and refuses none: the path of an admission. Each request costs a key 10 s,
/// which is more than the time until its next one. So the tables are full of keys that owe, and not
/// of slots that are free to take.
pub const OPEN: Limit =
    Limit { text: "6/min burst 100000000", period: Duration::from_secs(10), burst: 100_000_000 };

/// The same for few keys that many threads ask for: the burst of [`OPEN`] would not last for one
/// row.
pub const BUSY: Limit = Limit {
    text: "1000000000/s burst 4000000000",
    period: Duration::from_nanos(1),
    burst: 4_000_000_000,
};

/// Admits a key once, then refuses it for the rest of the run.
pub const SHUT: Limit =
    Limit { text: "1/day burst 1", period: Duration::from_secs(86_400), burst: 1 };

/// A key has expired after a millisecond, so a flood's keys leave slots that are free to take.
pub const BRIEF: Limit =
    Limit { text: "1000/s burst 1", period: Duration::from_millis(1), burst: 1 };
