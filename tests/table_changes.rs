//! The memory that changes of a policy take, and the statistics of slots that wait.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Policy, Verdict};

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

/// The compiled versions that a process keeps for all its threads: 4,096 of at most 1,048 bytes.
const MOST: isize = 4_096 * 1_048;

// SAFETY: the system's allocator with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: by the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: by the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SEC: u64 = 1_000_000_000;

/// Policies that never come back: after 4,096 of them neither requests nor administrative calls
/// allocate memory.
fn policies_that_never_come_back_take_memory_to_a_bound() {
    const KEY: &[u8] = b"a key";
    let policy =
        |n: u64| Policy { limit: 100 + n, burst: 5 + n, init: 5 + n, ..Policy::new(100, SEC) };
    let before = IN_USE.load(Ordering::Relaxed);
    let table = Table::private(&Options::new(1), &[policy(0), policy(0)]).expect("a table");
    let second = PolicyId::new(1);
    let mut at = [0; 10];
    for (round, in_use) in at.iter_mut().enumerate() {
        for n in 0..5_000 {
            let n = round as u64 * 5_000 + n + 1;
            table.set_policy(PolicyId::FIRST, &policy(n)).expect("a record");
            table.set_policy(second, &policy(n)).expect("a record");
            let now = n * 1_000 * SEC;
            // The key has expired, and has the whole burst of the policy that is current.
            assert_eq!(table.admit_at(PolicyId::FIRST, KEY, now, 6 + n), Verdict::Never);
            assert_eq!(table.admit_at(second, KEY, now, 5 + n), Verdict::Allowed);
            assert_eq!(table.check_at(second, KEY, now, 1).remaining, 0);
            assert!(table.peek_at(second, b"another", now, 5 + n).is_allowed());
        }
        let now = (round as u64 * 5_000 + 5_000) * 1_000 * SEC;
        assert_eq!((table.validate(now).unknown, table.entries(now).count()), (0, 1));
        *in_use = IN_USE.load(Ordering::Relaxed) - before;
    }
    assert!(at[9] <= MOST, "{at:?} bytes after each 10,000 policies");
    assert!(at[0] == at[9], "{at:?}: it still grows");
    drop(table);
    let left = IN_USE.load(Ordering::Relaxed) - before;
    assert!(left < 1_000, "{left} bytes are left of a table that is closed");
    println!("{} bytes for 100,000 policies", at[9]);
}

/// The only test of this kind here, since others would allocate at the same time.
#[test]
fn policies_that_come_back_take_no_more_memory_and_decide_as_new_ones() {
    const AMONG: u64 = 10;
    let policy =
        |n: u64| Policy { limit: 100 + n, burst: 5 + n, init: 5 + n, ..Policy::new(100, SEC) };
    let table = Table::private(&Options::new(1), &[policy(0)]).expect("a table");
    let mut at = [0; 3];
    for (round, in_use) in at.iter_mut().enumerate() {
        for change in 0..20_000u64 {
            let n = change % AMONG;
            table.set_policy(PolicyId::FIRST, &policy(n)).expect("a record");
            if change % 16 == 0 {
                // A key that was never asked for has the whole burst of the policy that is current,
                // and no more.
                let key = (round as u64 * 20_000 + change).to_le_bytes();
                let now = (round as u64 * 20_000 + change) * SEC;
                assert_eq!(table.admit_at(PolicyId::FIRST, &key, now, 6 + n), Verdict::Never);
                assert_eq!(table.admit_at(PolicyId::FIRST, &key, now, 5 + n), Verdict::Allowed);
                assert_eq!(table.admit_at(PolicyId::FIRST, &key, now, 1), Verdict::Denied);
            } else {
                let _ = table.admit_at(PolicyId::FIRST, b"k", 0, 0);
            }
        }
        *in_use = IN_USE.load(Ordering::Relaxed);
    }
    // 255 numbers, each with each policy, of some 600 bytes.
    assert!(at[2] - at[1] < 20_000 * 600 / 20, "{at:?}: it still grows");
    assert!(at[2] < 255 * AMONG as isize * 600 + 1_000_000, "{at:?}");

    policies_that_never_come_back_take_memory_to_a_bound();

    // A slot that waits after a reset holds no key.
    let table = Table::private(&Options::new(100), &[policy(0)]).expect("a table");
    for key in 0..50u64 {
        assert_eq!(table.admit_at(PolicyId::FIRST, &key.to_le_bytes(), 0, 5), Verdict::Allowed);
        assert_eq!(table.reset_at(PolicyId::FIRST, &key.to_le_bytes(), 0), Ok(true));
    }
    let (stats, health) = (table.stats(), table.validate(0));
    assert_eq!((stats.keys, stats.resets, health.waiting, health.live), (0, 50, 50, 0));
}
