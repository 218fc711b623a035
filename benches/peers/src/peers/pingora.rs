//! pingora-limits: events counted in a sketch of hashes, one window at a time. It counts refused
//! requests too, and keys that collide in the sketch are counted together.

use super::{One, Says};
use crate::keys::{word, Key};
use pingora_limits::rate::Rate;
use std::time::Duration;

pub struct Pingora {
    rate: Rate,
    limit: isize,
}

impl Pingora {
    /// A limit of one key, with the default sketch.
    pub fn new(says: Says) -> Pingora {
        Pingora { rate: Rate::new(Duration::from_secs(86_400)), limit: limit(says) }
    }

    /// Keyed limits, with as many columns as there are keys.
    pub fn keyed(says: Says, keys: usize) -> Pingora {
        let rate = Rate::new_with_estimator_config(Duration::from_secs(86_400), 4, keys);
        Pingora { rate, limit: limit(says) }
    }

    #[inline(always)]
    pub fn admit_key(&self, key: &Key<8>) -> bool {
        self.rate.observe(&word(key), 1) <= self.limit
    }
}

fn limit(says: Says) -> isize {
    match says {
        Says::Yes => isize::MAX,
        Says::No => 1,
    }
}

impl One for Pingora {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.rate.observe(&0u64, 1) <= self.limit
    }
}
