//! The algorithms that the Redis store has.

use tollbar::policy::Kind;

/// How a script decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// By a debt that falls from microsecond to microsecond.
    Debt,
    /// By a debt that falls at the end of each period, or by windows that begin with a first
    /// request.
    Steps,
    Window,
    Weighted,
    Segments,
    Log,
}

/// `None` for an algorithm by which no script decides.
pub(super) const fn means(kind: Kind) -> Option<Means> {
    match kind {
        Kind::Gcra => Some(Means::Debt),
        Kind::Interval => Some(Means::Steps),
        Kind::FixedWindow => Some(Means::Window),
        Kind::WeightedWindow => Some(Means::Weighted),
        Kind::SlidingLog => Some(Means::Log),
        Kind::SlidingWindow => Some(Means::Segments),
        Kind::Pacer
        | Kind::WarmUp
        | Kind::Quota
        | Kind::Curve
        | Kind::LevelRefill
        | Kind::Calendar => None,
    }
}
