//! Threads and killed processes that take from one hierarchy, at one instant of virtual time.

use crate::common::{rounds, SEC};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tollbar::hierarchy::{ClassId, Hierarchy};
use tollbar::table::{OnFull, Options, PolicyId, Table};

const NOW: u64 = 100 * SEC;
/// 1000/s and four bursts of 1 s: at one instant so many requests without a guarantee pass.
const ROOM: u64 = 4_001;

fn shared(keys: u64) -> (Table, Hierarchy, ClassId) {
    let options = Options { on_full: OnFull::Deny, ..Options::new(keys) };
    let table = Table::shared(&options, &[Hierarchy::policy()]).expect("a table");
    let mut tree = Hierarchy::new(PolicyId::FIRST, "1000/s", SEC, 8).expect("a hierarchy");
    let users = tree.add(ClassId::ROOT, b"users", "", "", 1_000_000).expect("a class");
    (table, tree, users)
}

/// Asks once for a key of its own.
fn ask(table: &Table, tree: &Hierarchy, users: ClassId, who: u64, n: u64) -> bool {
    let key = [who.to_be_bytes(), n.to_be_bytes()].concat();
    tree.take_at(table, users, &key, NOW, 1).expect("an answer").decision.is_allowed()
}

#[test]
fn threads_together_get_exactly_the_room_of_the_root() {
    for round in 0..rounds(10) {
        let (table, tree, users) = shared(20_000);
        let passed: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..8_u64)
                .map(|who| {
                    let (table, tree) = (&table, &tree);
                    scope.spawn(move || {
                        (0..1_000).filter(|n| ask(table, tree, users, who, *n)).count() as u64
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
        });
        assert_eq!(passed, ROOM, "round {round}");
    }
}

/// A process that is killed has charged its leaf, or all nodes. So each kill costs the root one
/// permit at most, and none is admitted twice.
#[test]
fn a_killed_process_costs_the_root_one_permit_at_most() {
    let (table, tree, users) = shared(30_000);
    // SAFETY: a new mapping, of zeroes, that is never unmapped.
    let passed: &AtomicU64 = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANON;
        let at = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast()
    };
    let mut kills = 0;
    for who in 0..rounds(200) {
        let before = passed.load(Ordering::SeqCst);
        // SAFETY: the child only uses memory that it has, and is killed.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            for n in 0.. {
                let mut key = [0; 16];
                key[..8].copy_from_slice(&who.to_be_bytes());
                key[8..].copy_from_slice(&u64::to_be_bytes(n));
                if n < 40
                    && tree
                        .take_at(&table, users, &key, NOW, 1)
                        .is_ok_and(|share| share.decision.is_allowed())
                {
                    passed.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        // After some requests of the child, or a little later.
        let wanted = (before + who % 10).min(ROOM - 500);
        while passed.load(Ordering::SeqCst) < wanted {
            thread::yield_now();
        }
        let mut status = 0;
        // SAFETY: a child that has not been waited for, and a writable status.
        unsafe {
            assert_eq!(libc::kill(child, libc::SIGKILL), 0);
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
        }
        kills += 1;
    }
    let rest = (0..10_000).filter(|n| ask(&table, &tree, users, u64::MAX, *n)).count() as u64;
    let all = passed.load(Ordering::SeqCst) + rest;
    println!("{kills} kills, {} passed before, {rest} after", all - rest);
    assert!((ROOM - kills..=ROOM).contains(&all), "{all} of {ROOM} after {kills} kills");
    assert!(rest > 0);
}
