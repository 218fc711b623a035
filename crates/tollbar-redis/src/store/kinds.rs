//! The algorithms that the Redis store has.

use tollbar::policy::Kind;

/// Whether a script decides by that algorithm.
pub(super) const fn supports(kind: Kind) -> bool {
    match kind {
        Kind::Gcra | Kind::Interval | Kind::FixedWindow | Kind::WeightedWindow | Kind::SlidingLog => true,
        Kind::SlidingWindow
        | Kind::Pacer
        | Kind::WarmUp
        | Kind::Quota
        | Kind::Curve
        | Kind::LevelRefill
        | Kind::Calendar => false,
    }
}
