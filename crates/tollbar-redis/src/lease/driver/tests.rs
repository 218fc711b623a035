//! A driver without a store, in virtual time.

use super::*;
use crate::lease::Options;

/// `Driver::owed` is the sum of the keys' debts, whether questions are answered, refused or lost.
#[test]
fn what_is_owed() {
    let policy = "1000/s burst 1000".parse().expect("a policy");
    let options = Options { overdraft: 50, capacity: 64, ..Options::new(1) };
    let node = Node::private("owed", &policy, &options).expect("a node");
    let mut driver = Driver::new(64, 7).expect("memory");
    let (mut now, mut most) = (node.now(), 0);
    // In the last hundred turns there are no requests, and every question is answered.
    for turn in 0_u64..500 {
        now += 1_000_000;
        for key in 0..if turn < 400 { 8_u64 } else { 0 } {
            let _ = node.check_at(&(turn * key % 97).to_le_bytes(), now, 1);
        }
        driver.collect(&node, now);
        while driver.ask(&node, now).is_some() {
            match if turn < 400 { turn % 5 } else { 3 } {
                0 => driver.refused(&node, false, now),
                1 => driver.dropped(&node, now),
                2 => driver.answered(&node, &Grant { permits: 1, ..Grant::default() }, now),
                _ => driver.answered(&node, &Grant { retry: 500, ..Grant::default() }, now),
            }
            assert_eq!(driver.owed(), driver.keys.owed());
            if turn < 400 && turn % 5 < 2 {
                break;
            }
        }
        assert_eq!(driver.owed(), driver.keys.owed());
        most = most.max(driver.owed());
    }
    assert!(most > 8, "{most}");
    assert_eq!((driver.owed(), driver.has_confirmed_all()), (0, true));
}

/// A node whose leases live for ten minutes, with a driver whose first question has been answered.
fn patient() -> (Node, Driver, u64) {
    let policy = "10/s burst 100000".parse().expect("a policy");
    let options = Options { overdraft: 50, life: 600_000_000_000, ..Options::new(1) };
    let node = Node::private("patient", &policy, &options).expect("a node");
    let (mut driver, now) = (Driver::new(64, 7).expect("memory"), node.now());
    driver.collect(&node, now);
    assert!(driver.ask(&node, now).is_some());
    driver.answered(&node, &Grant { epoch: 1, now: now / 1000, ..Grant::default() }, now);
    (node, driver, now)
}

/// A question without an answer opens the circuit after the patience, even if leases live for ten
/// minutes.
#[test]
fn a_question_has_a_deadline_of_its_own() {
    let (node, mut driver, now) = patient();
    let patience = node.terms().patience();
    assert!(patience * 1000 < node.terms().life);
    let _ = node.check_at(b"k", now, 1);
    driver.collect(&node, now);
    assert!(driver.ask(&node, now).is_some());
    driver.collect(&node, now + patience);
    assert_eq!(driver.circuit(), Circuit::Closed);
    driver.collect(&node, now + patience + 1);
    assert_eq!(driver.circuit(), Circuit::Open);
}

/// The circuit opens when a key keeps overdrawing while the store never hears of its debts. The
/// store answers every question in time, but the driver never asks about this key.
#[test]
fn a_debt_has_a_deadline_too() {
    let (node, mut driver, begin) = patient();
    let patience = node.terms().patience();
    for millis in 0..1000 {
        let now = begin + millis * 1_000_000;
        node.header().beat.store(now, Ordering::Relaxed);
        if millis % 20 == 0 {
            let _ = node.check_at(b"k", now, 1);
        }
        driver.collect(&node, now);
        if driver.circuit() == Circuit::Open {
            assert!(now - begin > patience && now - begin <= patience + 20_000_000, "{millis} ms");
            return;
        }
    }
    panic!("nobody has noticed");
}

/// Callers make no debts once the client has been silent for the patience: nobody would tell the
/// store.
#[test]
fn a_silent_client_ends_overdrafts() {
    let node = Node::private(
        "silent",
        &"1000/s burst 1000".parse().expect("a policy"),
        &Options { overdraft: 50, ..Options::new(1) },
    )
    .expect("a node");
    let (mut driver, now) = (Driver::new(64, 7).expect("memory"), node.now());
    driver.collect(&node, now);
    assert!(driver.ask(&node, now).is_some());
    driver.answered(&node, &Grant { epoch: 1, now: now / 1000, ..Grant::default() }, now);
    let patience = node.terms().patience();
    assert!(patience < 100_000_000 && node.check_at(b"a", now + patience, 1).is_allowed());
    assert_eq!(node.check_at(b"b", now + patience + 1, 1).reason, tollbar::Reason::Pending);
}
