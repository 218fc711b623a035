//! The crate leaky-bucket, without waiting.

use super::{One, Says};
use leaky_bucket::RateLimiter;
use std::time::Duration;

pub struct Leaky(RateLimiter);

impl Leaky {
    pub fn new(says: Says) -> Leaky {
        let mut builder = RateLimiter::builder();
        match says {
            Says::Yes => builder
                .max(1 << 50)
                .initial(1 << 50)
                .refill(1_000_000)
                .interval(Duration::from_millis(1)),
            Says::No => builder.max(1).initial(1).refill(1).interval(Duration::from_secs(86_400)),
        };
        Leaky(builder.build())
    }
}

impl One for Leaky {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.0.try_acquire(1)
    }
}
