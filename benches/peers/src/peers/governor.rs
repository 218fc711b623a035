//! governor: one limit, and keyed limits on DashMap in two set-ups: its default, and the fastest
//! that its interface allows.

use super::{One, Says};
use crate::keys::{word, Key};
use crate::limit::Limit;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::DashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::cell::Cell;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::time::Duration;

/// A seeded hasher than which none was found faster for eight bytes: ahash, rapidhash and a seeded
/// FxHash are about as fast in DashMap, and std's takes twice as long. `--hashers` measures them
/// all.
pub type Fastest = foldhash::fast::RandomState;
/// The hasher's name, for the table.
pub const FASTEST: &str = "foldhash";
/// DashMap's shards in the fast set-up: more than its default of 4 a processor, so that threads
/// meet on a shard's lock less often.
pub const SHARDS: usize = 64;

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(1) };
}

/// Governor takes no time from its caller, but it takes a clock of any type. This is the cheapest
/// clock that threads can share: one load of a word of the thread's own, which the caller has set.
#[derive(Clone, Copy)]
pub struct CallersTime;

impl Clock for CallersTime {
    type Instant = Nanos;

    #[inline(always)]
    fn now(&self) -> Nanos {
        Nanos::new(NOW.get())
    }
}

/// Sets what a `CallersTime` of this thread says from now on.
#[inline(always)]
pub fn set_now(now: u64) {
    NOW.set(now);
}

fn quota(limit: Limit) -> Quota {
    let burst = NonZeroU32::new(limit.burst).expect("not zero");
    Quota::with_period(limit.period).expect("not zero").allow_burst(burst)
}

/// `RateLimiter::keyed`: DashMap, std's hasher, governor's clock.
pub struct Default(DefaultKeyedRateLimiter<u64>);

impl Default {
    pub fn new(limit: Limit) -> Default {
        Default(RateLimiter::keyed(quota(limit)))
    }

    /// Reads the clock.
    #[inline(always)]
    pub fn admit(&self, key: &Key<8>) -> bool {
        self.0.check_key(&word(key)).is_ok()
    }
}

/// DashMap with another hasher and room for all keys from the start; the caller's time.
pub struct Tuned<S: BuildHasher + Clone>(
    RateLimiter<u64, DashMapStateStore<u64, S>, CallersTime, NoOpMiddleware<Nanos>>,
);

impl<S: BuildHasher + Clone + std::default::Default> Tuned<S> {
    pub fn new(limit: Limit, keys: usize, shards: usize) -> Tuned<S> {
        let map = DashMapStateStore::with_capacity_and_hasher_and_shard_amount(
            keys,
            S::default(),
            shards,
        );
        Tuned(RateLimiter::new(quota(limit), map, CallersTime))
    }

    /// At the time that `set_now` has set.
    #[inline(always)]
    pub fn admit(&self, key: &Key<8>) -> bool {
        self.0.check_key(&word(key)).is_ok()
    }
}

/// `RateLimiter::direct`: one limit, governor's clock.
pub struct Direct(DefaultDirectRateLimiter);

impl Direct {
    pub fn new(says: Says) -> Direct {
        Direct(RateLimiter::direct(one(says)))
    }
}

impl One for Direct {
    #[inline(always)]
    fn admit(&self, _now: u64) -> bool {
        self.0.check().is_ok()
    }
}

/// `RateLimiter::direct` at the caller's time.
pub struct DirectAt(RateLimiter<NotKeyed, InMemoryState, CallersTime, NoOpMiddleware<Nanos>>);

impl DirectAt {
    pub fn new(says: Says) -> DirectAt {
        DirectAt(RateLimiter::new(one(says), InMemoryState::default(), CallersTime))
    }
}

impl One for DirectAt {
    #[inline(always)]
    fn admit(&self, now: u64) -> bool {
        set_now(now);
        self.0.check().is_ok()
    }
}

fn one(says: Says) -> Quota {
    let most = NonZeroU32::MAX;
    match says {
        Says::Yes => {
            Quota::with_period(Duration::from_nanos(1)).expect("not zero").allow_burst(most)
        }
        Says::No => Quota::with_period(Duration::from_secs(86_400)).expect("not zero"),
    }
}

/// The name of the clock of the default set-up.
pub fn clock_of_default() -> &'static str {
    std::any::type_name::<DefaultClock>()
}
