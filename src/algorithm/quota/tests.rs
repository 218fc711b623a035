use super::*;
use crate::algorithm::Charge;

fn quota(limit: u64) -> Quota {
    Quota::new(&Policy::forever(limit)).expect("a quota")
}

/// A returned permit can be taken once more, and a state that got all of them back still never
/// expires.
#[test]
fn a_return_keeps_the_slot() {
    let (quota, charge) = (quota(5), Charge { at: 7, cost: 3 });
    let back = |permits| GiveBack { charge, permits, booked: false, highest: 0, keeps_slot: true };
    let taken = quota.step(0, 7, 3).next.expect("a charge");
    let returned = quota.give_back(taken, 9, &back(9)).expect("a return");
    assert_eq!((returned.permits, quota.available(returned.next, 9)), (3, 5));
    assert_eq!((returned.next, quota.expires_at(returned.next)), (1, NEVER));
    assert_eq!(quota.give_back(returned.next, 9, &back(1)), None, "nothing is used");
    assert_eq!(quota.give_back(taken, LAST + 1, &back(1)), None, "after the last time");
}

/// The greatest quota counts to its end without overflow.
#[test]
fn the_greatest_quota_ends_exactly() {
    let quota = quota(u64::MAX - 1);
    let step = quota.step(0, 0, u64::MAX - 2);
    assert_eq!(quota.available(step.next.expect("a charge"), 0), 1);
    let full = quota.step(step.next.expect("a charge"), 0, 1).next;
    assert_eq!(full, Some(u64::MAX));
    assert_eq!(quota.step(u64::MAX, LAST, 1), Step::deny());
    assert_eq!(Quota::new(&Policy::forever(u64::MAX)), Err(PolicyError::RateTooHigh));
}
