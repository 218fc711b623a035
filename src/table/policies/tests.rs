use super::*;
use crate::table::{Options, PolicyId, Table};

/// A caller reads the current stamp, and sleeps until the record belongs to another version. It
/// then decides under the policy that is current by then.
#[test]
fn a_caller_that_slept_through_many_changes_gets_the_current_version() {
    let policy = |n: u64| Policy::new(100 + n, 1_000_000_000);
    let table = Table::private(&Options::new(1), &[policy(0)]).expect("memory");
    let current = || {
        table
            .policies
            .memory
            .header()
            .current
            .first()
            .map_or(0, |stamp| stamp.load(Ordering::Relaxed))
    };
    let first = current();
    for n in 1..=600 {
        table.set_policy(PolicyId::FIRST, &policy(n)).expect("a record");
    }
    let mut scratch = Scratch::new();
    assert_eq!(
        table.policies.compile(first, &mut scratch).err(),
        Some(RequestError::Corrupt),
        "the record belongs to another version"
    );
    let compiled = table
        .policies
        .compile_current(0, 0, first, &mut scratch)
        .expect("a version")
        .expect("kept");
    assert_eq!((compiled.stamp.load(Ordering::Relaxed), compiled.policy), (current(), policy(600)));
}
