//! The calls beside checks, other threads and other processes.

use super::*;

/// The credit of a view's thread: the permits that it could take, less those that any other thread
/// could.
fn credit(keys: &Table, table: &Table, now: u64) -> u64 {
    keys.peek_at(FIRST, KEY, now, 1).remaining - left(table, now)
}

/// Full decisions, peeks, `take_up_to`, batches and resets of a thread that has credit.
#[test]
fn other_calls_know_of_credit() {
    let table = table("1/day burst 100000");
    let keys = warm(&table, SEC);
    let mut had = credit(&keys, &table, SEC);
    assert!(had > 16, "{had}");
    // A full decision spends credit, and `remaining` counts both.
    let before = left(&table, SEC);
    let decision = keys.check_at(FIRST, KEY, SEC, 2);
    assert_eq!((decision.verdict, decision.remaining), (Verdict::Allowed, before + had - 2));
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before, had - 2));
    assert_eq!(decision.reset_after, table.peek_at(FIRST, KEY, SEC, 0).reset_after);
    // `take_up_to` spends credit, too, and takes the rest from the table.
    assert_eq!(keys.take_up_to_at(FIRST, KEY, SEC, 3), 3);
    had -= 5;
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before, had));
    assert_eq!(keys.take_up_to_at(FIRST, KEY, SEC, had + 10), had + 10);
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before - 10, 0));
    // A booking and a wait spend credit that pays for them at once, and otherwise book on the
    // table.
    while credit(&keys, &table, SEC) < 8 {
        assert!(admits(&keys, SEC, 1));
    }
    let (before, had) = (left(&table, SEC), credit(&keys, &table, SEC));
    assert_eq!(keys.reserve_at(FIRST, KEY, SEC, 3, SEC), Ok(Charge { at: SEC, cost: 3 }));
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before, had - 3));
    assert_eq!(keys.reserve_at(FIRST, KEY, SEC, had, SEC), Ok(Charge { at: SEC, cost: had }));
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before - had, had - 3));
    // A charge without asking charges the table.
    assert_eq!(keys.charge_at(FIRST, KEY, SEC, 2), 0);
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before - had - 2, had - 3));
    // A batch asks the table.
    while credit(&keys, &table, SEC) == 0 {
        assert!(admits(&keys, SEC, 1));
    }
    let (before, had) = (left(&table, SEC), credit(&keys, &table, SEC));
    let mut verdicts = [Verdict::Denied; 4];
    keys.admit_many_at(SEC, &[Request { policy: FIRST, key: KEY, cost: 1 }; 4], &mut verdicts);
    assert_eq!(verdicts, [Verdict::Allowed; 4]);
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (before - 4, had));
    // A request that only credit pays for: the table has nothing left.
    assert_eq!(table.take_up_to_at(FIRST, KEY, SEC, u64::MAX), before - 4);
    let peeked = keys.peek_at(FIRST, KEY, SEC, had);
    assert_eq!((peeked.verdict, peeked.remaining, peeked.retry_after), (Verdict::Allowed, had, 0));
    assert_eq!(keys.peek_at(FIRST, KEY, SEC, had + 1).verdict, Verdict::Denied);
    let decision = keys.check_at(FIRST, KEY, SEC, had + 1);
    assert_eq!((decision.verdict, decision.remaining), (Verdict::Denied, had));
    // A reset voids the calling thread's credit of the key.
    assert_eq!(keys.reset_at(FIRST, KEY, SEC), Ok(true));
    assert_eq!((left(&table, SEC), credit(&keys, &table, SEC)), (100_000, 0));
}

/// Each thread has its own credit. A thread that finds no block has none, and decides without.
#[test]
fn more_threads_than_blocks() {
    const THREADS: usize = 200;
    let table = table("1/day burst 100000000");
    let keys = table.view(64);
    let all_have_asked = std::sync::Barrier::new(THREADS);
    let with_credit = AtomicU64::new(0);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let (table, keys, all_have_asked, with_credit) =
                (&table, &keys, &all_have_asked, &with_credit);
            scope.spawn(move || {
                let key = n.to_le_bytes();
                let ask = || keys.admit_at(FIRST, &key, SEC, 1);
                (0..100).for_each(|_| assert_eq!(ask(), Verdict::Allowed));
                all_have_asked.wait();
                // With credit the table has been charged for more permits than the requests cost.
                let charged = 100_000_000 - table.peek_at(FIRST, &key, SEC, 1).remaining;
                with_credit.fetch_add(u64::from(charged != 100), Ordering::Relaxed);
                all_have_asked.wait();
            });
        }
    });
    let with_credit = with_credit.into_inner();
    assert!((60..=128).contains(&with_credit), "{with_credit}");
    // Threads that come later have the pointers of those that have ended, or find no block.
    for _ in 0..500 {
        thread::scope(|scope| scope.spawn(|| assert!(admits(&keys, SEC, 1))).join().unwrap());
    }
}

/// A child starts without its parent's credit, and takes as much of its own.
#[test]
fn a_child_has_credit_of_its_own() {
    let table = table("1/day burst 100000");
    let keys = warm(&table, SEC);
    let had = credit(&keys, &table, SEC);
    assert!(had > 16, "{had}");
    // SAFETY: the child decides, which takes no lock and no memory, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let none = credit(&keys, &table, SEC) == 0;
            let before = left(&table, SEC);
            let asked = (0..64).filter(|_| admits(&keys, SEC, 1)).count();
            let some = asked == 64 && before - left(&table, SEC) > 64;
            // SAFETY: a number only.
            unsafe { libc::_exit(i32::from(!(none && some))) }
        }
        child => {
            let mut status = -1;
            // SAFETY: `status` is writable.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    assert_eq!(credit(&keys, &table, SEC), had);
}

/// A caller that waits spends its thread's credit, and sleeps for permits above that.
#[test]
fn a_wait_spends_credit() {
    let table = table("1000/s burst 1000");
    let keys = table.view(64);
    let mut spent = 0;
    for _ in 0..300 {
        let before = left(&table, table.now());
        let decision = keys.wait_ns(FIRST, KEY, 1, SEC);
        assert_eq!(decision.verdict, Verdict::Allowed);
        // The call leaves most of the table's permits, far more than the refill since could
        // explain.
        assert!(admits(&keys, keys.now(), 1));
        spent += u64::from(decision.remaining > before);
    }
    assert!(spent > 100, "{spent}");
    let counts = keys.counts(FIRST).unwrap();
    assert_eq!((counts.allowed, counts.denied), (600, 0));
}

/// A request with several limits that only a thread's credit can pay: the peek and the charge
/// agree.
#[test]
fn several_limits_know_of_credit() {
    let table = table("1/day burst 100000");
    let keys = warm(&table, table.now());
    let now = keys.now();
    assert!(table.take_up_to_at(FIRST, KEY, now, u64::MAX) > 0);
    let had = credit(&keys, &table, now);
    assert!(had > 16, "{had}");
    let ask = || take_many(&[Limit::Key(&keys, FIRST, KEY, 1)]).unwrap().decision.verdict;
    let admitted = (0..1000).filter(|_| ask() == Verdict::Allowed).count() as u64;
    assert_eq!(admitted, had);
}

/// A request at an earlier time than the thread's latest credit does not spend it: at that instant
/// all requests together get the burst at most.
#[test]
fn times_that_go_back_gain_nothing() {
    for (text, burst) in
        [("1000/s burst 4096", 4096), ("100/s burst 64", 64), ("7/s burst 300", 300)]
    {
        let table = table(text);
        let keys = table.view(256);
        // The bucket is full again at `late`.
        let (early, late) = (1_000 * SEC, 2_000 * SEC);
        let mut had_credit = 0;
        for key in 0..500_u32 {
            let key = key.to_le_bytes();
            let mut passed = if keys.admit_at(FIRST, &key, early, burst) == Verdict::Allowed {
                burst
            } else {
                0
            };
            for _ in 0..4 {
                let _ = keys.admit_at(FIRST, &key, late, 1);
            }
            let remaining = |of: &Table| of.peek_at(FIRST, &key, late, 1).remaining;
            had_credit += u64::from(remaining(&keys) > remaining(&table));
            passed += (0..50)
                .filter(|_| keys.admit_at(FIRST, &key, early, 1) == Verdict::Allowed)
                .count() as u64;
            passed += keys.take_up_to_at(FIRST, &key, early, 2 * burst);
            assert!(passed <= burst, "{passed} of {burst} at one instant under {text}");
        }
        assert!(had_credit > 5, "{had_credit} keys had credit under {text}");
    }
}
