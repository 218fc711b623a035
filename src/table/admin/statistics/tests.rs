use super::*;
use crate::table::Options;

/// A change of policy that reads every slot uses the newest time of all callers, with a counter
/// line or without.
#[test]
fn the_newest_time_is_that_of_all_callers() {
    let table =
        Table::private(&Options::new(1), &["5/s".parse().expect("a policy")]).expect("memory");
    for now in [5_000_000_000, 9_000_000_000, 7_000_000_000] {
        let _ = table.admit_at(PolicyId::FIRST, b"a client", now, 1);
    }
    assert_eq!(table.policies.memory.newest_time(), 9_000_000_000);
    table.policies.memory.note_time(12_000_000_000);
    assert_eq!(table.policies.memory.newest_time(), 12_000_000_000);
}
