//! Which client asks the store for a node: the names of clients, and whether their processes run.

use tollbar::internal::namespace;

/// A client that has taken no turn for this many nanoseconds loses its nodes to another client.
pub(super) const LEADER: u64 = 500_000_000;

/// A client's name. It is never 0.
///
/// ```text
///  63        42 41           26 25      1   0
/// ┌────────────┬───────────────┬─────────┬───┐
/// │ process id │ PID namespace │ random  │ 1 │     the namespace's last 16 bits; 0: unknown
/// └────────────┴───────────────┴─────────┴───┘
/// ```
pub(super) fn name(random: u64) -> u64 {
    pid() << PID_AT | namespace_bits() | random >> (64 - NAMESPACE_AT) | 1
}

const PID_AT: u32 = 42;
const NAMESPACE_AT: u32 = 26;
const NAMESPACE_MOST: u64 = 0xffff;

fn namespace_bits() -> u64 {
    (namespace() & NAMESPACE_MOST) << NAMESPACE_AT
}

/// Linux's ids are below 2^22.
fn pid() -> u64 {
    // SAFETY: getpid takes nothing and cannot fail.
    u64::from(unsafe { libc::getpid() } as u32) & ((1 << (64 - PID_AT)) - 1)
}

/// Whether the owner's process may still run. A process of another PID namespace, or of an unknown
/// one, may: it loses the node by its silence (LEADER).
pub(super) fn is_alive(owner: u64) -> bool {
    let theirs = owner & NAMESPACE_MOST << NAMESPACE_AT;
    // Other systems have one PID namespace, without a number.
    if cfg!(target_os = "linux") && (theirs == 0 || theirs != namespace_bits()) {
        return true;
    }
    // SAFETY: numbers only; signal 0 checks whether the process exists and is never delivered.
    let gone = unsafe { libc::kill((owner >> PID_AT) as libc::pid_t, 0) } != 0;
    // Only ESRCH proves that there is no such process. EPERM means a process of another user. If
    // that one is dead, it loses the node by its silence (LEADER).
    !(gone && tollbar::internal::errno() == libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed client's node is free at once. A client of another PID namespace, whose number may
    /// be no process's here, loses it by its silence.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_owner_of_another_namespace_is_not_known_to_be_dead() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let ended = u64::from(child.id()) << PID_AT | 1;
        child.wait().expect("ended");
        assert!(is_alive(name(7)) && !is_alive(ended | namespace_bits()));
        for theirs in [0, (namespace() + 1) & NAMESPACE_MOST] {
            assert!(is_alive(ended | theirs << NAMESPACE_AT));
        }
    }
}
