//! A flood of new keys: the table takes no additional page, and a limited key regains no permit.
//!
//! `TOLLBAR_LONG=1` sends 10^8 keys through a million slots in place of 10^6 through ten thousand.

mod common;

use common::{policy, Rng, DAY, SEC};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::time::Instant;
use tollbar::table::{OnFull, Options, PolicyId, Request, Table};
use tollbar::{Policy, Shared, State, Verdict};

const LIMITED: PolicyId = PolicyId::new(0);
const FLOOD: PolicyId = PolicyId::new(1);

/// Counts each thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

// SAFETY: the system's allocator, with a counter beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A number of kilobytes from the system's own walk over the page tables. The figures of
/// /proc/self/statm are kept by each processor in portions and may be off by some hundred pages;
/// these are exact. It counts anonymous memory only, without the pages of the program's code, which
/// the system loads on use.
fn kilobytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn long() -> bool {
    std::env::var_os("TOLLBAR_LONG").is_some()
}

/// Keys and slots of the run.
fn size() -> (u64, u64) {
    if long() {
        (100_000_000, 1_000_000)
    } else {
        (1_000_000, 10_000)
    }
}

fn table(on_full: OnFull, slots: u64) -> Table {
    // The flood's keys owe for a second. The limited one's bucket is never full again in the time
    // of the test.
    let policies: [Policy; 2] = [policy("20/h burst 50"), policy("1/s burst 1")];
    let options = Options::new(slots * 4 / 5).with_seed(4).with_on_full(on_full);
    Table::private(&options, &policies).unwrap()
}

/// One test, so that no other thread's stack grows while this one measures the process.
#[test]
fn s30_m3_floods() {
    a_flood_of_keys_takes_no_memory_and_forgives_nothing();
    churn_at_one_time_gives_a_limited_key_nothing();
    a_limited_key_gets_its_rate_through_the_flood_and_no_more();
}

/// New keys without end, as many in a second as a third of the slots. Memory stays the same to the
/// page, no call allocates, and a limited key among them is decided as if it were alone.
fn a_flood_of_keys_takes_no_memory_and_forgives_nothing() {
    let (keys, slots) = size();
    let table = table(OnFull::Deny, slots);
    let alone = State::new(&policy("20/h burst 50")).unwrap();
    let step = SEC / (table.slots() / 3);
    let (mut now, mut fresh, mut rng) = (DAY, 0u64, Rng(30));
    let mut flood = |n: u64, now: &mut u64| {
        let mut admitted = 0;
        for _ in 0..n {
            *now += step;
            fresh += 1;
            admitted +=
                u64::from(table.admit_at(FLOOD, &fresh.to_le_bytes(), *now, 1) == Verdict::Allowed);
        }
        admitted
    };
    // By then every page has been touched, and the reading of /proc has made its allocations.
    flood(8 * table.slots(), &mut now);
    // The limited key's policy is compiled, too, which is the only other allocation.
    let _ = table.peek_at(LIMITED, b"limited", now, 1);
    kilobytes("Anonymous:");
    let before = kilobytes("Anonymous:");

    let start = Instant::now();
    let (mut sent, mut admitted, mut taken) = (0, 0, 0);
    let allocated = allocations();
    while sent < keys {
        let n = rng.within(1, 2_000);
        admitted += flood(n, &mut now);
        sent += n;
        // More permits than the key has in the first second, and single permits after that.
        let cost = rng.within(1, 3);
        let decision = table.check_at(LIMITED, b"limited", now, cost);
        assert_eq!(decision, alone.check_at(now, cost), "after {sent} keys");
        taken += if decision.is_allowed() { cost } else { 0 };
    }
    let took = start.elapsed();
    assert_eq!(allocations(), allocated, "a request allocated");
    let after = kilobytes("Anonymous:");

    let stats = table.stats();
    println!(
        "{sent} keys through {} slots ({} KB) in {took:.1?}: {before} KB before, {after} KB after; {} reclaimed, {} refused; \
         the limited key got {taken}",
        table.slots(),
        table.bytes() / 1024,
        stats.reclaimed,
        stats.refused,
    );
    // No new page: the slots were touched before, and besides them the calls write only counters.
    assert_eq!(before, after, "kilobytes");
    // Every fresh key was admitted or has been counted as refused, some of them before the first
    // measurement.
    assert!(admitted <= sent && sent - admitted <= stats.refused);
    assert!(stats.reclaimed > 50 * table.slots() || long());
    // Each of a new key's twelve slots holds a debt with a chance of about a third, so few new keys
    // find no slot.
    assert!(stats.refused * 1_000 < sent, "{} refused", stats.refused);
    let most = 50 + (now - DAY) / (SEC * 180);
    assert!(taken <= most, "the limited key got {taken} of {most}");
}

/// A hundred times the capacity while the clock stands still: no debt is paid, so a key without
/// permits stays without permits.
fn churn_at_one_time_gives_a_limited_key_nothing() {
    let (keys, slots) = size();
    for on_full in [OnFull::Deny, OnFull::Allow] {
        let table = table(on_full, slots);
        assert_eq!(table.take_up_to_at(LIMITED, b"limited", DAY, u64::MAX), 50);
        for key in 0..keys {
            let _ = table.admit_at(FLOOD, &key.to_le_bytes(), DAY, 1);
            if key % 997 == 0 {
                assert_eq!(
                    table.admit_at(LIMITED, b"limited", DAY, 1),
                    Verdict::Denied,
                    "{on_full:?}, {key} keys"
                );
            }
        }
        assert!(table.stats().keys > table.slots() * 99 / 100, "{:?}", table.stats());
    }
}

/// The same in batches, with a clock that moves on for the limited key's permits to come back: it
/// gets its rate, on time, and the flood does not change when.
fn a_limited_key_gets_its_rate_through_the_flood_and_no_more() {
    let (keys, slots) = size();
    let table = table(OnFull::Deny, slots);
    let alone = State::new(&policy("20/h burst 50")).unwrap();
    assert_eq!(table.take_up_to_at(LIMITED, b"limited", DAY, 50), alone.take_up_to_at(DAY, 50));
    let mut now = DAY;
    let mut fresh = 0u64;
    for _ in 0..keys / 10 / 1000 {
        // 1,000 fresh keys in a batch and a permit's time of 180 s in 30 parts: every key before
        // has expired by then.
        now += 6 * SEC;
        for _ in 0..25 {
            let names: Vec<[u8; 8]> = (0..39).map(|n| (fresh + n).to_le_bytes()).collect();
            fresh += 39;
            let mut requests: Vec<Request> =
                names.iter().map(|key| Request { policy: FLOOD, key, cost: 1 }).collect();
            requests.insert(7, Request { policy: LIMITED, key: b"limited", cost: 1 });
            let mut verdicts = vec![Verdict::Never; requests.len()];
            table.admit_many_at(now, &requests, &mut verdicts);
            assert_eq!(verdicts.remove(7), alone.admit_at(now, 1), "at {now}");
            assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Allowed));
        }
    }
}
