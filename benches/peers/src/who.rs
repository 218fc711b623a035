//! The contenders. The names are those in the tables.

/// The side of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Ours,
    Peer,
    /// A floor: it decides nothing, and no decision can be faster.
    Floor,
}

/// One of the contenders.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub name: &'static str,
    pub side: Side,
}

impl Who {
    /// Whether the caller passes the time, so that it reads no clock.
    pub fn is_given_the_time(&self) -> bool {
        self.name.contains("caller's time") || self.name.contains("batches")
    }
}

const fn ours(name: &'static str) -> Who {
    Who { name, side: Side::Ours }
}
const fn peer(name: &'static str) -> Who {
    Who { name, side: Side::Peer }
}
const fn floor(name: &'static str) -> Who {
    Who { name, side: Side::Floor }
}

pub const TOLLBAR: Who = ours("tollbar");
pub const TOLLBAR_AT: Who = ours("tollbar, caller's time");
pub const COUNTED_AT: Who = ours("tollbar, counted, caller's time");
pub const GCRA_AT: Who = ours("tollbar, `Cell<Gcra>`, caller's time");
pub const TOLLBAR_C: Who = ours("tollbar through C");
pub const TOLLBAR_C_AT: Who = ours("tollbar through C, caller's time");
pub const CREDIT: Who = ours("tollbar, credit");
pub const CREDIT_C: Who = ours("tollbar through C, credit");
/// The limiter that is made for a hot key, on which the targets for one are measured.
pub const HOT: Who = CREDIT;

pub const TABLE: Who = ours("tollbar table");
pub const TABLE_AT: Who = ours("tollbar table, caller's time");
pub const TABLE_HOT: Who = ours("tollbar table, hot keys");
pub const TABLE_HOT_AT: Who = ours("tollbar table, hot keys, caller's time");
pub const TABLE_MANY: Who = ours("tollbar table, batches of 32");
pub const TABLE_DECISIONS: Who = ours("tollbar table, batches of 32, full answers");

pub const TABLE_LONG: Who = ours("tollbar table, caller's time, keys of 24 bytes");

pub const IN_FLIGHT: Who = ours("tollbar in flight");
pub const QUEUE: Who = ours("tollbar queue");
pub const TAKE_MANY: Who = ours("tollbar take_many");

pub const MUTEX: Who = peer("a mutex");
pub const MUTEX_MAP: Who = peer("a mutex and a hash map");
pub const GOVERNOR: Who = peer("governor");
pub const GOVERNOR_AT: Who = peer("governor, caller's time");
pub const GOVERNOR_FASTEST: Who = peer("governor, fastest set-up, caller's time");
pub const RATELIMIT: Who = peer("ratelimit");
pub const LEAKY: Who = peer("leaky-bucket");
pub const PINGORA: Who = peer("pingora-limits");
pub const FOLLY: Who = peer("folly's TokenBucket");
pub const FOLLY_AT: Who = peer("folly's TokenBucket, caller's time");
pub const X_TIME: Who = peer("x/time/rate (Go)");
pub const X_TIME_AT: Who = peer("x/time/rate (Go), caller's time");
pub const UBER: Who = peer("uber-go/ratelimit (Go)");
pub const GUAVA: Who = peer("Guava (Java)");
pub const LIMITS: Who = peer("limits (Python)");
pub const PYRATE: Who = peer("pyrate-limiter (Python)");

pub const READ_TSC: Who = floor("reading the TSC clock");
pub const BARE_CAS: Who = floor("a bare CAS");
pub const FETCH_ADD: Who = floor("a fetch-and-add");
pub const LOCAL: Who = floor("a thread-local increment");
pub const PREFETCHED: Who = floor("a prefetched line and a locked add");

/// Every contender.
pub const ALL: [Who; 39] = [
    TOLLBAR,
    TOLLBAR_AT,
    COUNTED_AT,
    GCRA_AT,
    TOLLBAR_C,
    TOLLBAR_C_AT,
    CREDIT,
    CREDIT_C,
    TABLE,
    TABLE_AT,
    TABLE_HOT,
    TABLE_HOT_AT,
    TABLE_MANY,
    TABLE_DECISIONS,
    TABLE_LONG,
    IN_FLIGHT,
    QUEUE,
    TAKE_MANY,
    MUTEX,
    MUTEX_MAP,
    GOVERNOR,
    GOVERNOR_AT,
    GOVERNOR_FASTEST,
    RATELIMIT,
    LEAKY,
    PINGORA,
    FOLLY,
    FOLLY_AT,
    X_TIME,
    X_TIME_AT,
    UBER,
    GUAVA,
    LIMITS,
    PYRATE,
    READ_TSC,
    BARE_CAS,
    FETCH_ADD,
    LOCAL,
    PREFETCHED,
];
