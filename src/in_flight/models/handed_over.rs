//! Models of a permit that passes from one thread to another: the next holder sees all writes that
//! the former holder made before its release.

use super::{report, World};
use crate::in_flight::SendWindow;
use crate::sync::{explore, AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;

/// Adds one to a count that only the holder of a limit's one permit may change. The count is exact
/// if each holder sees the count that the former holder wrote before its release.
pub(super) fn add_as_holder(count: &AtomicU64) {
    let seen = count.load(Ordering::Relaxed);
    count.store(seen + 1, Ordering::Relaxed);
}

/// A thread that gets the permit sees the count that the former holder wrote.
#[test]
fn a_send_window_hands_over_what_its_holders_wrote() {
    let executions = explore(3, || {
        let shared = Arc::new((SendWindow::new(1), AtomicU64::new(0)));
        let threads = [0, 1].map(|_| {
            let shared = shared.clone();
            thread::spawn(move || hold_once(&shared.0, &shared.1))
        });
        let sent: u64 = threads.map(|thread| thread.join().expect("a thread")).iter().sum();
        assert_eq!(shared.1.load(Ordering::Relaxed), sent);
    });
    report("send window, handed over", executions);
}

/// A thread that reads from the window that a permit has come back also sees the count that the
/// permit's holder wrote. Loom tries every order only if the thread that reads is not the first.
#[test]
fn a_send_window_shows_what_its_holders_wrote() {
    let executions = explore(3, || {
        let shared = Arc::new((SendWindow::new(1), AtomicU64::new(0)));
        let reading = {
            let shared = shared.clone();
            thread::spawn(move || {
                let came_back = shared.0.read().acknowledged;
                assert!(shared.1.load(Ordering::Relaxed) >= u64::from(came_back));
            })
        };
        assert_eq!(hold_once(&shared.0, &shared.1), 1);
        reading.join().expect("a thread");
    });
    report("send window, read", executions);
}

/// Holds a permit, and adds one to the count. Returns the number of permits that it got.
fn hold_once(window: &SendWindow, count: &AtomicU64) -> u64 {
    if window.acquire(1).is_none() {
        return 0;
    }
    add_as_holder(count);
    assert!(window.release(1));
    1
}

/// A thread that gets the permit sees the count that the former holder wrote, whether that holder
/// was in another process or in the same one.
#[test]
fn a_permit_hands_over_what_its_holders_wrote() {
    for processes in [1, 2] {
        let executions = explore(3, move || {
            let world = World::new();
            let count = Arc::new(AtomicU64::new(0));
            let me = world.process(1);
            let other = if processes == 1 { me.clone() } else { world.process(2) };
            me.join();
            other.join();
            let threads = [me, other].map(|me| {
                let count = count.clone();
                thread::spawn(move || match me.try_acquire(1) {
                    Ok(ticket) => {
                        add_as_holder(&count);
                        assert!(me.give_back(ticket));
                        1
                    }
                    Err(_) => 0,
                })
            });
            let held: u64 = threads.map(|thread| thread.join().expect("a thread")).iter().sum();
            assert_eq!(count.load(Ordering::Relaxed), held);
        });
        report("handed over", executions);
    }
}
