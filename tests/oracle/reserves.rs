//! The oracle of requests that leave a reserve: a policy of each algorithm that keeps reserves, and
//! its model.

use super::bans::Ban;
use super::buckets::{Bucket, Refill};
use super::quotas::Quota;
use super::windows::{Counter, Weighted};
use super::{q, Model};
use tollbar::{Anchor, Kind, Policy};

/// Policies whose requests may leave a reserve.
pub const TEXTS: [&str; 13] = [
    "10/s",
    "3/s burst 5",
    "3/min burst 40",
    "5/7ns burst 9",
    "10/s burst 6 init 0",
    "5/s burst 8 ban 2s after 3",
    "10/s algo interval",
    "2/s burst 15 algo interval",
    "3/min algo interval anchor first",
    "10/s algo fixed-window",
    "20/min algo fixed-window anchor first",
    "10/s algo weighted-window",
    "30/forever",
];

/// The model of one of these policies.
pub fn model(policy: &Policy) -> Box<dyn Model> {
    match policy.kind {
        Kind::Gcra if policy.ban != 0 => Box::new(Ban::new(policy)),
        Kind::Gcra => Box::new(Bucket::new(policy, q(0))),
        Kind::Interval if policy.anchor == Anchor::Epoch => Box::new(Refill::new(policy)),
        Kind::Interval | Kind::FixedWindow => Box::new(Counter::new(policy)),
        Kind::WeightedWindow => Box::new(Weighted::new(policy)),
        Kind::Quota => Box::new(Quota::new(policy)),
        kind => panic!("{} has no model of requests that leave a reserve", kind.name()),
    }
}
