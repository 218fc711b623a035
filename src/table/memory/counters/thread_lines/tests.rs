use super::*;
use crate::table::{Options, PolicyId, Table};

/// Each of many processes decides once under two policies and ends: they use the same lines, one
/// after the other.
#[test]
fn lines_of_dead_processes_are_used_again() {
    let policy = "5/s".parse().expect("a policy");
    let table = Table::shared(&Options::new(1000), &[policy, policy]).expect("memory");
    for _ in 0..LINES + 100 {
        // SAFETY: the child only decides, which takes no lock and allocates nothing, and exits.
        match unsafe { libc::fork() } {
            0 => {
                let _ = table.admit(PolicyId::FIRST, b"a client", 1);
                let _ = table.admit(PolicyId::new(1), b"a client", 1);
                // SAFETY: integer arguments only.
                unsafe { libc::_exit(0) }
            }
            child => {
                let mut status = 0;
                // SAFETY: `status` is writable.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            }
        }
    }
    let used = table.policies.memory.lines().iter().filter(|line| line.policy().is_some()).count();
    assert!(used <= 4, "{used} lines for one process at a time and two policies");
    let decisions = table.stats().decisions;
    assert_eq!(decisions.allowed + decisions.denied, 2 * (LINES as u64 + 100));
}

/// With damaged lines each call still ends and counts its decision.
#[test]
fn with_damaged_lines_calls_end_and_count() {
    let policy = "5/s".parse().expect("a policy");
    for word in [u64::MAX, 1, 1 << 63, 1 << 32, 0x5555_5555_5555_5555] {
        let table = Table::private(&Options::new(1000), &[policy]).expect("memory");
        for line in table.policies.memory.lines() {
            // SAFETY: only this thread uses the table; a line is eight words.
            let words = unsafe { &*core::ptr::from_ref(line).cast::<[AtomicU64; 8]>() };
            words.iter().for_each(|at| at.store(word, Ordering::Relaxed));
        }
        let (before, stats) = (table.counts(PolicyId::FIRST), table.stats());
        assert!(before.is_ok() && stats.capacity == 1000);
        for _ in 0..10 {
            let _ = table.admit(PolicyId::FIRST, b"a client", 1);
        }
        let (before, after) =
            (before.expect("counts"), table.counts(PolicyId::FIRST).expect("counts"));
        let ten =
            after.allowed.wrapping_sub(before.allowed) + after.denied.wrapping_sub(before.denied);
        assert_eq!(ten, 10, "{word:#x}");
    }
}
