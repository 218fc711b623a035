//! Policies that change more often than the 4,096 compiled versions that a process keeps for all
//! its threads. `table_changes` tests the memory that they take.

use crate::common::{Rng, DAY, MS, SEC};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::thread;
use tollbar::table::{Keep, OnFull, Options, PolicyId, Request, Table};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const NOW: u64 = 100 * DAY;
/// Changes after which a process keeps no further version for all its threads.
const MANY: u64 = 4_200;

/// Changes the first policy so often, and makes a request under each version.
fn outlast(table: &Table) {
    for n in 0..MANY {
        let policy = Policy { limit: 1_000_000 + n, ..Policy::new(1, SEC) };
        table.set_policy(FIRST, &policy).unwrap();
        assert_eq!(table.admit_at(FIRST, b"anybody", NOW, 0), Verdict::Allowed);
    }
}

/// A table in memory that outlives it, so that it can be attached again, as another process would.
struct Memory(Vec<[u64; 8]>);

impl Memory {
    fn at(&mut self) -> (NonNull<u8>, usize) {
        let start = self.0.as_mut_ptr().cast::<u8>();
        let aligned = start.align_offset(64);
        // SAFETY: within the vector, which is longer.
        (NonNull::new(unsafe { start.add(aligned) }).unwrap(), self.0.len() * 64 - 64)
    }

    fn init(&mut self, options: &Options, policies: &[Policy]) -> Table {
        let (at, length) = self.at();
        // SAFETY: the memory outlives the table, and only this test uses it.
        unsafe { Table::init_in(at, length, options, policies) }.unwrap()
    }

    fn attach(&mut self) -> Table {
        let (at, length) = self.at();
        // SAFETY: as above; the table before this one has been dropped.
        unsafe { Table::attach_in(at, length) }.unwrap()
    }
}

/// A random policy of any kind, seldom the same one twice.
fn any_policy(rng: &mut Rng) -> Policy {
    let (limit, ms, burst) = (rng.within(1, 50), rng.within(10, 5_000), rng.within(1, 60));
    let text = match rng.below(9) {
        0 => format!("{limit}/{ms}ms algo fixed-window reserve low {}", rng.below(limit)),
        1 => format!("{limit}/{ms}ms algo weighted-window"),
        2 => format!("{limit}/{ms}ms burst {burst} algo interval"),
        3 => format!("{limit}/{ms}ms algo pacer"),
        4 => format!("{limit}/{ms}ms burst {burst} borrow"),
        _ => format!("{limit}/{ms}ms burst {burst} reserve low {} high 0", rng.below(burst)),
    };
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// Two tables get the same changes and requests. One is attached again and again, so it always
/// decides by versions that the process keeps for all threads. The other has far more versions. All
/// answers are the same.
#[test]
fn decisions_after_many_changes_are_those_of_a_process_that_has_seen_few() {
    const POLICIES: u32 = 3;
    for (seed, on_full) in [(1, OnFull::EvictNearest), (2, OnFull::Inherit), (3, OnFull::Deny)] {
        let rng = &mut Rng(seed);
        let options = Options::new(1).with_seed(seed).with_on_full(on_full);
        let first: Vec<Policy> = (0..POLICIES).map(|_| any_policy(rng)).collect();
        let (mut here, mut there) = (Memory(vec![[0; 8]; 8_192]), Memory(vec![[0; 8]; 8_192]));
        let (old, mut young) = (here.init(&options, &first), there.init(&options, &first));
        let (mut now, mut changes, mut allowed) = (NOW, 0, 0u64);
        while changes < 3 * MANY {
            now += rng.below(4) * MS;
            let id = PolicyId::new(rng.below(u64::from(POLICIES)) as u32);
            // More keys than there are slots, and some that are always there.
            let number = if rng.one_in(2) { rng.below(30) } else { rng.below(9_000) };
            let (key, cost) = (number.to_le_bytes(), rng.below(4));
            match rng.below(12) {
                0 | 1 => {
                    let policy = any_policy(rng);
                    let keep = if rng.one_in(4) { Keep::Time } else { Keep::Count };
                    old.set_policy_keeping(id, &policy, keep).unwrap();
                    young.set_policy_keeping(id, &policy, keep).unwrap();
                    assert_eq!(
                        old.admit_at(id, b"anybody", now, 1),
                        young.admit_at(id, b"anybody", now, 1)
                    );
                    changes += 1;
                    if changes % 1_000 == 0 {
                        drop(young);
                        young = there.attach();
                        assert_eq!(old.validate(now), young.validate(now));
                        assert!(old.entries(now).eq(young.entries(now)), "after {changes} changes");
                    }
                }
                2 => {
                    assert_eq!(old.peek_at(id, &key, now, cost), young.peek_at(id, &key, now, cost))
                }
                3 => assert_eq!(
                    old.take_up_to_at(id, &key, now, cost),
                    young.take_up_to_at(id, &key, now, cost)
                ),
                4 if rng.one_in(50) => {
                    assert_eq!(old.sweep(0, u64::MAX, now), young.sweep(0, u64::MAX, now))
                }
                5 if rng.one_in(20) => {
                    assert_eq!(old.reset_at(id, &key, now), young.reset_at(id, &key, now))
                }
                6 => {
                    let keys = [(); 5].map(|()| rng.below(9_000).to_le_bytes());
                    let requests = keys.each_ref().map(|key| Request { policy: id, key, cost });
                    let mut verdicts = [[Verdict::Never; 5]; 2];
                    old.admit_many_at(now, &requests, &mut verdicts[0]);
                    young.admit_many_at(now, &requests, &mut verdicts[1]);
                    assert_eq!(verdicts[0], verdicts[1]);
                }
                _ => {
                    let decision = old.check_at(id, &key, now, cost);
                    assert_eq!(
                        decision,
                        young.check_at(id, &key, now, cost),
                        "after {changes} changes"
                    );
                    allowed += u64::from(decision.is_allowed());
                }
            }
        }
        assert!(allowed > 10_000, "hardly anybody was admitted: {allowed}");
        for id in (0..POLICIES).map(PolicyId::new) {
            assert_eq!(old.counts(id), young.counts(id));
        }
    }
}

/// The permits of a key while the clock stands still.
const BURST: u64 = 20;

/// The policies of the requests while they change: each is new, and every second one pays debts ten
/// times as fast, so keys move to other slots.
///
/// All have one burst. Under a smaller burst a key with as many permits left would be full, and so
/// begin anew under the next larger one.
fn fresh(n: u64) -> Policy {
    let limit = if n % 2 == 0 { 1_000 + n } else { 10_000 + n };
    Policy { limit, burst: BURST, init: BURST, ..Policy::new(1, 1_000 * SEC) }
}

const KEYS: u64 = 1_000;

/// A thread that sleeps through more than a hundred changes may leave a slot under a version that
/// is gone (docs/internals/table-inside.md). These tests change less often while one sleeps.
const ASLEEP: u64 = 32;

/// Waits until each thread has made another request, which began after this call.
fn wait_for_each(asked: &[AtomicU64]) {
    for asked in asked {
        let before = asked.load(Ordering::Relaxed);
        while asked.load(Ordering::Relaxed) < before + 2 {
            thread::yield_now();
        }
    }
}

/// While the clock stands still, each key is admitted at most one burst, under however many
/// policies. (The tables refuse new keys when they are full, because a key that is evicted begins
/// anew.)
fn assert_within_the_burst(admitted: &[AtomicU64]) {
    let admitted: Vec<u64> = admitted.iter().map(|key| key.load(Ordering::Relaxed)).collect();
    assert!(admitted.iter().all(|got| *got <= BURST), "{:?}", admitted.iter().max());
    assert!(admitted.iter().sum::<u64>() >= KEYS * 4, "hardly anybody was admitted");
}

/// Threads decide while the policy changes without end: each thread compiles the versions that the
/// process does not keep.
#[test]
fn threads_decide_while_policies_change_without_end() {
    const THREADS: u64 = 4;
    const CHANGES: u64 = 3_000;
    let table = Table::private(
        &Options::new(1).with_seed(5).with_on_full(OnFull::Deny),
        &[Policy::new(1, SEC)],
    )
    .unwrap();
    outlast(&table);
    table.set_policy(FIRST, &fresh(0)).unwrap();
    let admitted: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    let asked: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for (thread, asked) in (0..).zip(&asked) {
            let (table, admitted, done) = (&table, &admitted, &done);
            scope.spawn(move || {
                let rng = &mut Rng(thread);
                while !done.load(Ordering::Relaxed) {
                    let key = rng.below(KEYS);
                    let bytes = key.to_le_bytes();
                    let got = match rng.below(4) {
                        0 => table.take_up_to_at(FIRST, &bytes, NOW, 2),
                        1 => u64::from(table.check_at(FIRST, &bytes, NOW, 1).is_allowed()),
                        _ => u64::from(table.admit_at(FIRST, &bytes, NOW, 1) == Verdict::Allowed),
                    };
                    admitted[key as usize].fetch_add(got, Ordering::Relaxed);
                    assert!(table.peek_at(FIRST, &bytes, NOW, 1).remaining <= BURST);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for n in 1..=CHANGES {
            table.set_policy(FIRST, &fresh(n)).unwrap();
            if n % ASLEEP == 0 {
                table.sweep(0, u64::MAX, NOW);
                wait_for_each(&asked);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_within_the_burst(&admitted);
    let counts = table.counts(FIRST).unwrap();
    let asked: u64 = asked.iter().map(|asked| asked.load(Ordering::Relaxed)).sum();
    assert_eq!(counts.allowed + counts.denied, asked + MANY);
    assert!(table.validate(NOW).is_sound());
}

static INTERRUPTED: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());
static BY_HANDLER: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

extern "C" fn decide(_: libc::c_int) {
    // SAFETY: the pointer is set before the handler, and the table is never dropped.
    let table = unsafe { &*INTERRUPTED.load(Ordering::Relaxed) };
    let allowed = table.admit_at(FIRST, b"handler", NOW, 1) == Verdict::Allowed;
    BY_HANDLER[usize::from(allowed)].fetch_add(1, Ordering::Relaxed);
}

/// A signal handler decides on a thread that it interrupts in the middle of a decision, mostly
/// under a newer version.
#[test]
fn a_handler_decides_in_the_midst_of_a_decision() {
    const SIGNALS: u64 = 1_000;
    let table = Table::private(
        &Options::new(1).with_seed(5).with_on_full(OnFull::Deny),
        &[Policy::new(1, SEC)],
    )
    .unwrap();
    let table: &'static Table = Box::leak(Box::new(table));
    outlast(table);
    table.set_policy(FIRST, &fresh(0)).unwrap();
    INTERRUPTED.store(std::ptr::from_ref(table).cast_mut(), Ordering::Relaxed);
    // SAFETY: the handler decides, which takes no lock and, after so many changes, no memory.
    unsafe {
        libc::signal(libc::SIGUSR1, decide as extern "C" fn(libc::c_int) as libc::sighandler_t)
    };
    let admitted: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let (done, asked, deciding) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: it takes nothing and cannot fail.
            deciding.store(unsafe { libc::pthread_self() }, Ordering::Release);
            let rng = &mut Rng(7);
            while !done.load(Ordering::Relaxed) {
                let key = rng.below(KEYS);
                let allowed = table.admit_at(FIRST, &key.to_le_bytes(), NOW, 1) == Verdict::Allowed;
                admitted[key as usize].fetch_add(u64::from(allowed), Ordering::Relaxed);
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        while deciding.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        let handled =
            || BY_HANDLER[0].load(Ordering::Relaxed) + BY_HANDLER[1].load(Ordering::Relaxed);
        let mut changes = 0;
        while handled() < SIGNALS && changes < 10_000_000 {
            changes += 1;
            table.set_policy(FIRST, &fresh(changes % 100_000)).unwrap();
            assert_eq!(
                // SAFETY: the thread ends after `done` is set, below.
                unsafe { libc::pthread_kill(deciding.load(Ordering::Relaxed), libc::SIGUSR1) },
                0
            );
            if changes % ASLEEP == 0 {
                wait_for_each(std::slice::from_ref(&asked));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_within_the_burst(&admitted);
    let [denied, allowed] = [0, 1].map(|n| BY_HANDLER[n].load(Ordering::Relaxed));
    assert!(
        denied + allowed >= SIGNALS && allowed <= BURST,
        "{denied} and {allowed} by the handler"
    );
    let counts = table.counts(FIRST).unwrap();
    assert_eq!(
        counts.allowed + counts.denied,
        asked.load(Ordering::Relaxed) + denied + allowed + MANY
    );
    assert!(table.validate(NOW).is_sound());
}
