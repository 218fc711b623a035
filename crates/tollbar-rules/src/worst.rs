//! The most that a policy admits of one key in some window of one period.

use tollbar::algorithm::{Algorithm, Rule};
use tollbar::policy::{Anchor, Span};
use tollbar::{Kind, Mode, Policy};

/// The most permits of one key that `policy` admits in some half-open window `[t, t + period)`, by
/// requests of cost 1 at the worst times. The window is that of the policy; of a list, that of its
/// first policy. With `borrow` the largest request comes on top.
///
/// ```
/// use tollbar_rules::worst_case;
///
/// assert_eq!(worst_case(&"120/min".parse()?), 239); // 120 at once, and one each half second after that
/// assert_eq!(worst_case(&"120/min algo sliding-window mode strict".parse()?), 120);
/// # Ok::<(), tollbar::SyntaxError>(())
/// ```
pub fn worst_case(policy: &Policy) -> u64 {
    let (limit, period) = (policy.limit, policy.period);
    if limit == 0 {
        return 0;
    }
    // The permits that the policy refills after the window's first instant and within the window.
    let refill = |limit: u64, of: u64| {
        u64::try_from(u128::from(limit) * u128::from(period - 1) / u128::from(of))
            .unwrap_or(u64::MAX)
    };
    match policy.kind {
        Kind::Gcra => {
            let most = policy.burst.saturating_add(refill(limit, period));
            let second = policy
                .second
                .map(|second| second.burst.saturating_add(refill(second.limit, second.period)));
            most.min(second.unwrap_or(u64::MAX))
        }
        // The key takes the whole bucket just before a refill, and then the refilled permits.
        Kind::Interval if policy.anchor == Anchor::First => {
            (policy.burst - 1).saturating_add(limit.min(policy.burst)).max(policy.burst)
        }
        Kind::Interval => policy.burst.saturating_add(limit.min(policy.burst)),
        // The key takes the whole limit at the end of one of the policy's windows, and again at the
        // start of the next. If the first request begins the window, that request is a whole period
        // earlier, so its permit does not count.
        Kind::FixedWindow if policy.anchor == Anchor::First => limit.saturating_mul(2) - 1,
        Kind::FixedWindow => limit.saturating_mul(2),
        Kind::WeightedWindow => weighted(limit, period),
        Kind::SlidingWindow => match policy.mode {
            Mode::Strict => limit,
            Mode::N => limit.saturating_mul(2),
            Mode::Interpolated => weighted(limit, period / u64::from(policy.segments)),
        },
        Kind::SlidingLog | Kind::Quota => limit,
        // UTC has no short days and weeks.
        Kind::Calendar if policy.zone.is_utc() && period <= Span::Week.nanos() => {
            limit.saturating_mul(2)
        }
        // The end of a window, a whole one that is shorter than the mean, and the start of a third.
        Kind::Calendar => limit.saturating_mul(3),
        Kind::Pacer => policy.slack.saturating_add(1).saturating_add(refill(limit, period)),
        Kind::WarmUp => refill(limit, period).saturating_add(1),
        Kind::Curve if period == 1 => limit,
        // The whole limit in the last nanosecond of a slice, and what comes in the next slice until
        // two nanoseconds before its end.
        Kind::Curve => limit.saturating_add(
            Rule::new(policy).map_or(limit, |rule| rule.available(0, period.saturating_sub(2))),
        ),
        // The fastest band all the time, and then the whole bucket.
        Kind::LevelRefill => {
            let rate = policy.knots.pairs().map(|[_, rate]| rate).max().unwrap_or(100);
            let fastest = u128::from(limit) * u128::from(rate) * u128::from(period - 1)
                / (u128::from(period) * 100);
            policy.burst.saturating_add(u64::try_from(fastest).unwrap_or(u64::MAX))
        }
    }
}

/// The worst case: a key takes the whole limit in the last nanosecond of a part of the window. At
/// the end of the window it takes the permits that no longer count of that part. The window ends
/// one nanosecond before a period has passed, so two nanoseconds of the part still count.
fn weighted(limit: u64, part: u64) -> u64 {
    let counted = (u128::from(limit) * 2).div_ceil(u128::from(part)).min(u128::from(limit));
    limit.saturating_mul(2) - u64::try_from(counted).unwrap_or(limit)
}

/// A policy with the same limit and period that never admits more than the limit in any window:
/// `sliding-window mode strict`. Notes suggest it.
pub fn strict(policy: &Policy) -> String {
    let text = Policy::new(policy.limit, policy.period).to_string();
    format!("{text} algo sliding-window mode strict")
}
