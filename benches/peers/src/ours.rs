//! tollbar's table, as the rows use it. Only this file knows its interface.

use crate::keys::{Key, BATCH};
use crate::limit::Limit;
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ptr::NonNull;
use tollbar::clock::{Clock, Tsc, Utc};
use tollbar::table::{OnFull, Options, PolicyId, Request, Table};
use tollbar::{Decision, Policy, Verdict};

/// What a table of [`Ours::new`] does with a key for which there is no slot: the default of
/// `Options::new`.
pub const ON_FULL: &str =
    "on_full = evict-nearest (a new key without a free slot evicts the key whose debt ends first)";

/// The keys for which a thread may have credit.
pub const HOT_KEYS: u32 = 1024;

/// A table on the heap with one policy, and a view of it whose threads take permits in advance.
pub struct Ours {
    table: Table,
    hot: Table,
    // Last: both tables are in it.
    _memory: Memory,
}

/// Zeroed memory, aligned to a huge page.
struct Memory(NonNull<u8>, Layout);

// SAFETY: the memory is its owner's alone.
unsafe impl Send for Memory {}
// SAFETY: nobody reads or writes it through this.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes, 2 << 20).expect("a size");
        // SAFETY: the layout's size is not 0.
        Memory(NonNull::new(unsafe { alloc_zeroed(layout) }).expect("memory"), layout)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` has allocated it with this layout.
        unsafe { dealloc(self.0.as_ptr(), self.1) };
    }
}

impl Ours {
    /// A table for this many keys, with which it is 80 % full.
    pub fn new(limit: Limit, keys: usize) -> Ours {
        Ours::that_on_full(OnFull::default(), limit, keys)
    }

    /// The same, which does this with a key for which there is no slot.
    pub fn that_on_full(on_full: OnFull, limit: Limit, keys: usize) -> Ours {
        let policy: Policy = limit.text.parse().expect("a policy");
        let options = Options { on_full, ..Options::new(keys as u64) };
        let memory = Memory::new(Table::bytes_for(&options, &[policy]).expect("a size") as usize);
        // SAFETY: the memory outlives both tables, and only they use it.
        let (table, hot) = unsafe {
            let table =
                Table::init_in(memory.0, memory.1.size(), &options, &[policy]).expect("a table");
            let view = Table::attach_in(memory.0, memory.1.size()).expect("the table");
            (table, view.with_hot_keys(HOT_KEYS).expect("memory"))
        };
        assert!(
            table.now().abs_diff(Ours::now()) < 1_000_000_000,
            "the clock of `now` is not the table's"
        );
        Ours { table, hot, _memory: memory }
    }

    /// Reads the table's clock.
    #[inline(always)]
    pub fn admit_hot(&self, key: &[u8]) -> bool {
        self.hot.admit(PolicyId::FIRST, key, 1) == Verdict::Allowed
    }

    /// At the caller's time.
    #[inline(always)]
    pub fn admit_hot_at(&self, key: &[u8], now: u64) -> bool {
        self.hot.admit_at(PolicyId::FIRST, key, now, 1) == Verdict::Allowed
    }

    /// Reads the table's clock.
    #[inline(always)]
    pub fn admit(&self, key: &[u8]) -> bool {
        self.table.admit(PolicyId::FIRST, key, 1) == Verdict::Allowed
    }

    /// At the caller's time.
    #[inline(always)]
    pub fn admit_at(&self, key: &[u8], now: u64) -> bool {
        self.table.admit_at(PolicyId::FIRST, key, now, 1) == Verdict::Allowed
    }

    /// Decides a batch at the caller's time and returns the number admitted. Making the requests is
    /// part of the cost.
    #[inline(always)]
    pub fn admit_many_at<const N: usize>(&self, keys: &[Key<N>; BATCH], now: u64) -> usize {
        let mut verdicts = [Verdict::Denied; BATCH];
        self.table.admit_many_at(now, &requests(keys), &mut verdicts);
        verdicts.iter().filter(|&&verdict| verdict == Verdict::Allowed).count()
    }

    /// The same with full decisions.
    #[inline(always)]
    pub fn check_many_at<const N: usize>(&self, keys: &[Key<N>; BATCH], now: u64) -> usize {
        let mut decisions = [NOTHING; BATCH];
        self.table.check_many_at(now, &requests(keys), &mut decisions);
        decisions.iter().filter(|decision| decision.is_allowed()).count()
    }

    /// The bytes of the table.
    pub fn bytes(&self) -> u64 {
        self.table.bytes()
    }

    /// The clock that `admit` reads.
    pub fn now() -> u64 {
        Utc::<Tsc>::default().now()
    }
}

const NOTHING: Decision = Decision {
    verdict: Verdict::Denied,
    reason: tollbar::Reason::Rate,
    remaining: 0,
    retry_after: 0,
    reset_after: 0,
    bound: 0,
};

#[inline(always)]
fn requests<const N: usize>(keys: &[Key<N>; BATCH]) -> [Request<'_>; BATCH] {
    keys.each_ref().map(|key| Request { policy: PolicyId::FIRST, key: key.as_slice(), cost: 1 })
}
