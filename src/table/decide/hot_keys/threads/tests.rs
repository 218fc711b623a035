use super::*;

/// A handler that interrupts a decision finds no credit. The next decision does.
#[test]
fn a_block_in_use_is_not_given_again() {
    let hot = HotKeys::new(64).expect("memory").expect("Linux 4.14 or later");
    for _ in 0..3 {
        let credit = hot.enter().expect("a free block");
        assert!(hot.enter().is_none() && hot.enter_first().is_none());
        HotKeys::leave(credit);
    }
}

/// Every thread that has a block finds it again, after any number of probes, and no other thread
/// finds it.
#[test]
fn a_thread_keeps_its_block() {
    let hot = HotKeys::new(64).expect("memory").expect("Linux 4.14 or later");
    let all_are_there = std::sync::Barrier::new(2 * THREADS);
    std::thread::scope(|scope| {
        for n in 0..2 * THREADS as u64 {
            let (hot, all_are_there) = (&hot, &all_are_there);
            scope.spawn(move || {
                let had = hot.enter().map(|mut credit| {
                    credit.miss(n + 1);
                    credit.fill(n + 1, n, 0, u64::MAX);
                    HotKeys::leave(credit);
                });
                all_are_there.wait();
                let again = hot.enter();
                assert_eq!(again.is_some(), had.is_some());
                if let Some(mut credit) = again {
                    assert_eq!(credit.find(n + 1).map(|credit| credit.permits(0)), Some(n));
                    HotKeys::leave(credit);
                }
            });
        }
    });
}
