//! A node without a client, in virtual time.

use super::*;
use crate::lease::Options;
use std::string::String;
use std::vec::Vec;

const OVERDRAFT: u64 = 8;

/// A node with a closed circuit, and a time.
fn node() -> (Node, u64) {
    let policy = "1000/s burst 1000".parse().expect("a policy");
    let options = Options { overdraft: OVERDRAFT, nodes: 2, ..Options::new(2) };
    let node = Node::private("node", &policy, &options).expect("a node");
    let now = 1 << 40;
    beat(&node, now);
    (node, now)
}

fn beat(node: &Node, now: u64) {
    node.header().circuit.store(Circuit::Closed as u64, Ordering::Relaxed);
    node.header().beat.store(now, Ordering::Relaxed);
}

/// How many of ten requests of cost 1 are allowed.
fn passed(node: &Node, key: &[u8], now: u64) -> usize {
    beat(node, now);
    (0..10).filter(|_| node.check_at(key, now, 1).is_allowed()).count()
}

/// Makes the key hot: it gets a lease of one permit and spends it.
fn mark_hot(node: &Node, key: &[u8], now: u64) {
    let hash = node.hash(key);
    assert!(node.may_ask(hash, now));
    node.install(hash, 1, now + node.terms.life, now, true);
    assert!(node.check_at(key, now, 1).is_allowed());
}

/// A cold key may draw its reserve down to half.
#[test]
fn a_cold_key_has_half_of_the_reserve() {
    let (node, now) = node();
    assert_eq!(passed(&node, b"cold", now), OVERDRAFT as usize / 2);
}

/// A hot key may use its reserve only when that is full: for one permit, and not again before it is
/// full again.
#[test]
fn a_hot_key_has_the_reserve_when_it_is_full() {
    let (node, now) = node();
    mark_hot(&node, b"hot", now);
    assert_eq!(passed(&node, b"hot", now), 1);
    // A permit of the reserve takes 2 ms.
    assert_eq!(passed(&node, b"hot", now + 1_000_000), 0);
    assert_eq!(passed(&node, b"hot", now + 2_000_000), 1);
    // Without leases for HOT_LIVES the key is cold again.
    let later = now + (HOT_LIVES + 2) * node.terms.life;
    assert_eq!(passed(&node, b"hot", later), OVERDRAFT as usize / 2);
}

/// A hot key whose last answer was "nothing left" may not use its reserve, full or not, until the
/// next answer.
#[test]
fn a_dry_key_has_no_reserve() {
    let (node, now) = node();
    mark_hot(&node, b"hot", now);
    let (hash, exhausted) = (node.hash(b"hot"), now + 3_000_000);
    node.mark_exhausted(hash, exhausted);
    let decision = node.check_at(b"hot", now, 1);
    assert_eq!((decision.reason, decision.retry_after / 2), (Reason::StoreDenied, 1_500_000));
    assert_eq!(passed(&node, b"hot", exhausted + 2), 0);
    assert_eq!(passed(&node, b"other", exhausted + 2), OVERDRAFT as usize / 2);
    node.unanswered(hash);
    assert_eq!(passed(&node, b"hot", exhausted + 2), 1);
}

/// A request that the reserve admits and that finds no room for its message is denied, until the
/// client has made room: after an answer's time, and not at once.
#[test]
fn a_full_ring_is_not_tried_again_at_once() {
    let (node, now) = node();
    while node.write_message(1, b"another", 1, 0) {}
    let decision = node.check_at(b"cold", now, 1);
    assert!(!decision.is_allowed());
    assert!(decision.retry_after >= node.answer_takes() / 2, "{decision:?}");
    while node.pop() != Found::Empty {}
    assert!(node.check_at(b"cold", now, 1).is_allowed());
}

/// While the store has nothing for a key, its callers write no message. After that time exactly one
/// of them does.
#[test]
fn a_dry_key_asks_once() {
    let (node, now) = node();
    mark_hot(&node, b"hot", now);
    while node.pop() != Found::Empty {}
    let exhausted = now + 3_000_000;
    node.mark_exhausted(node.hash(b"hot"), exhausted);
    assert_eq!((passed(&node, b"hot", exhausted - 1), node.pop()), (0, Found::Empty));
    assert_eq!(passed(&node, b"hot", exhausted + 2), 0);
    assert!(matches!(node.pop(), Found::Message(KeyMessage { want: 1, debt: 0, .. })));
    assert_eq!(node.pop(), Found::Empty);
}

/// Machines of different versions must agree on a long key's name in the store, so these names must
/// never change.
#[test]
fn the_name_of_a_long_key_never_changes() {
    let name = |key: &[u8]| {
        let mut bytes = [0; KEY_MOST];
        let length = store_key(key, &mut bytes);
        String::from_utf8(bytes[..length].to_vec()).expect("text")
    };
    let numbers: Vec<u8> = (0..=255).collect();
    for (key, expected) in [
        (numbers[..KEY_MOST + 1].to_vec(), "#d068d3dd20274210add4ec8f31b5a5af"),
        (numbers.clone(), "#fde402c25e539b1fba6d194f9fec4097"),
        ([b'x'; 500].to_vec(), "#77eb5bcf10eefbc50da4cd167db34fb4"),
        ([b'k'; KEY_MOST].to_vec(), core::str::from_utf8(&[b'k'; KEY_MOST]).expect("text")),
        (b"192.0.2.1".to_vec(), "192.0.2.1"),
    ] {
        assert_eq!(name(&key), expected);
    }
}
