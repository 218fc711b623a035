//! tollbar's table, as the rows use it. Only this file knows its interface.

use crate::keys::{Key, BATCH};
use crate::limit::Limit;
use tollbar::clock::{Clock, Tsc, Utc};
use tollbar::table::{HotKeys, Options, PolicyId, Request, Table};
use tollbar::{Decision, Policy, Verdict};

/// What happens to a key for which there is no slot: the default of `Options::new`.
pub const ON_FULL: &str =
    "on_full = evict-nearest (a key for which there is no place takes that of the key that owes least)";

/// The keys for which a thread may have credit.
pub const HOT_KEYS: u32 = 1024;

/// Reads the table's clock.
#[inline(always)]
pub fn admit_hot(keys: &mut HotKeys, key: &[u8]) -> bool {
    keys.admit(PolicyId::FIRST, key, 1) == Verdict::Allowed
}

/// At the caller's time.
#[inline(always)]
pub fn admit_hot_at(keys: &mut HotKeys, key: &[u8], now: u64) -> bool {
    keys.admit_at(PolicyId::FIRST, key, now, 1) == Verdict::Allowed
}

/// A table on the heap with one policy.
pub struct Ours(Table);

impl Ours {
    /// A table for this many keys, with which it is 80 % full.
    pub fn new(limit: Limit, keys: usize) -> Ours {
        let policy: Policy = limit.text.parse().expect("a policy");
        let table = Table::private(&Options::new(keys as u64), &[policy]).expect("memory");
        assert!(table.now().abs_diff(Ours::now()) < 1_000_000_000, "the clock of `now` is not the table's");
        Ours(table)
    }

    /// Reads the table's clock.
    #[inline(always)]
    pub fn admit(&self, key: &[u8]) -> bool {
        self.0.admit(PolicyId::FIRST, key, 1) == Verdict::Allowed
    }

    /// At the caller's time.
    #[inline(always)]
    pub fn admit_at(&self, key: &[u8], now: u64) -> bool {
        self.0.admit_at(PolicyId::FIRST, key, now, 1) == Verdict::Allowed
    }

    /// A thread's credit.
    pub fn hot_keys(&self) -> HotKeys<'_> {
        HotKeys::new(&self.0, HOT_KEYS).expect("memory")
    }

    /// Decides a batch at the caller's time and returns the number admitted. Making the requests is part of the
    /// cost.
    #[inline(always)]
    pub fn admit_many_at<const N: usize>(&self, keys: &[Key<N>; BATCH], now: u64) -> usize {
        let mut verdicts = [Verdict::Denied; BATCH];
        self.0.admit_many_at(now, &requests(keys), &mut verdicts);
        verdicts.iter().filter(|&&verdict| verdict == Verdict::Allowed).count()
    }

    /// The same with full decisions.
    #[inline(always)]
    pub fn check_many_at<const N: usize>(&self, keys: &[Key<N>; BATCH], now: u64) -> usize {
        let mut decisions = [NOTHING; BATCH];
        self.0.check_many_at(now, &requests(keys), &mut decisions);
        decisions.iter().filter(|decision| decision.is_allowed()).count()
    }

    /// The bytes of the table.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The clock that `admit` reads.
    pub fn now() -> u64 {
        Utc::<Tsc>::default().now()
    }
}

const NOTHING: Decision =
    Decision { verdict: Verdict::Denied, reason: tollbar::Reason::Rate, remaining: 0, retry_after: 0, reset_after: 0 };

#[inline(always)]
fn requests<const N: usize>(keys: &[Key<N>; BATCH]) -> [Request<'_>; BATCH] {
    keys.each_ref().map(|key| Request { policy: PolicyId::FIRST, key: key.as_slice(), cost: 1 })
}
