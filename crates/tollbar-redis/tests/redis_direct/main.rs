//! `RedisStore` against a real server: equal to the local core, exact over many clients, and safe
//! in each failure.

#[path = "../../../../tests/common/mod.rs"]
mod common;
mod failures;
#[path = "../common/redis.rs"]
mod server;
mod sharing;
mod traces;

use tollbar_redis::redis::Url;
use tollbar_redis::store::{RedisStore, Store, StoreLimit};

/// Waits for 30 seconds: a busy machine may keep the server from answering within the default
/// deadline.
fn store(url: &str) -> RedisStore {
    impatient(url).with_timeout(30_000_000_000)
}

/// With the default deadline.
fn impatient(url: &str) -> RedisStore {
    RedisStore::new(&Url::parse(url).unwrap()).unwrap()
}

/// A limit called `test`, whose keys are `tollbar:{test}:…`.
fn limit(store: &RedisStore, text: &str) -> StoreLimit {
    // A permit of `500/day algo interval` comes back each 172.8 s of the server's clock.
    common::away_from_edges(common::DAY / 500);
    store.limit("test", &common::policy(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// A policy of each algorithm: five permits at once, and then none for a long time.
const SLOW: [&str; 7] = [
    "5/day",
    "5/day algo interval",
    "5/day algo interval anchor first",
    "5/day algo fixed-window",
    "5/day algo weighted-window",
    "5/day algo sliding-window segments 24",
    "5/day algo sliding-log",
];
