//! The token bucket of folly, written from its published formula: the one word is the time at which
//! the bucket was empty, in seconds, as a double. The bucket holds
//! `min((now - empty) * rate, burst)`; a request moves `empty` forward.

use super::{One, Says};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub struct Bucket {
    empty: AtomicU64,
    rate: f64,
    burst: f64,
}

impl Bucket {
    pub fn new(rate: f64, burst: f64) -> Bucket {
        Bucket { empty: AtomicU64::new(0f64.to_bits()), rate, burst }
    }

    /// Takes that many permits, or none.
    #[inline(always)]
    pub fn consume(&self, permits: f64, now: f64) -> bool {
        let mut seen = self.empty.load(Ordering::Relaxed);
        loop {
            let empty = f64::from_bits(seen);
            let held = ((now - empty) * self.rate).min(self.burst);
            if held < permits {
                return false;
            }
            let next = (now - (held - permits) / self.rate).to_bits();
            match self.empty.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    fn of(says: Says) -> Bucket {
        match says {
            // folly's times are doubles. After a long uptime a double still resolves the time of
            // one permit at this rate.
            Says::Yes => Bucket::new(1e8, 1e12),
            Says::No => Bucket::new(1.0 / 86_400.0, 1.0),
        }
    }
}

/// With the system's steady clock, as it comes.
pub struct Folly {
    bucket: Bucket,
    /// The clock's zero, long ago, as a steady clock's is: the machine's start.
    zero: Instant,
}

impl Folly {
    pub fn new(says: Says) -> Folly {
        Folly { bucket: Bucket::of(says), zero: Instant::now() }
    }
}

/// Seconds between the zero and the first request: the bucket is full then.
const UPTIME: f64 = 1e6;

impl One for Folly {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.bucket.consume(1.0, UPTIME + self.zero.elapsed().as_secs_f64())
    }
}

/// With the time passed in, which its interface offers.
pub struct FollyAt(Bucket);

impl FollyAt {
    pub fn new(says: Says) -> FollyAt {
        FollyAt(Bucket::of(says))
    }
}

impl One for FollyAt {
    #[inline(always)]
    fn admit(&self, now: u64) -> bool {
        self.0.consume(1.0, UPTIME + now as f64 * 1e-9)
    }
}
