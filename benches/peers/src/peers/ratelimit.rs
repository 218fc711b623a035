//! The crate ratelimit.

use super::{One, Says};
use ratelimit::Ratelimiter;
use std::time::Duration;

pub struct Ratelimit(Ratelimiter);

impl Ratelimit {
    pub fn new(says: Says) -> Ratelimit {
        let builder = match says {
            Says::Yes => {
                Ratelimiter::builder(1_000_000_000).max_tokens(1 << 40).initial_available(1 << 40)
            }
            Says::No => Ratelimiter::builder(1)
                .period(Duration::from_secs(86_400))
                .max_tokens(1)
                .initial_available(1),
        };
        Ratelimit(builder.build().expect("builds"))
    }
}

impl One for Ratelimit {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.0.try_wait().is_ok()
    }
}
