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

/// A key's right is its overdraft, until the store has charged it.
#[test]
fn a_key_has_its_right() {
    let (node, now) = node();
    assert_eq!(passed(&node, b"key", now), OVERDRAFT as usize);
    assert_eq!(passed(&node, b"key", now + 1_000_000_000), 0);
    assert_eq!(passed(&node, b"other", now), OVERDRAFT as usize);
    let hash = node.hash(b"key");
    node.heard(hash, &Said { confirmed: 3, shut: Some(0), ..Said::default() }, now);
    assert_eq!(passed(&node, b"key", now), 3);
    // A key that is shut has no right before its time, although nothing is owed.
    let shut = now + 9_000_000_000;
    node.heard(hash, &Said { confirmed: OVERDRAFT, shut: Some(shut), ..Said::default() }, now);
    assert_eq!((passed(&node, b"key", shut - 1), passed(&node, b"key", shut + 200_000)), (0, 8));
}

/// A key that the store refuses is denied until the store's time, and its right stays.
#[test]
fn a_dry_key_waits_for_its_time() {
    let (node, now) = node();
    assert_eq!(passed(&node, b"key", now), OVERDRAFT as usize);
    let (hash, dry) = (node.hash(b"key"), now + 3_000_000);
    node.heard(hash, &Said { dry: Some((dry, true)), shut: Some(dry), ..Said::default() }, now);
    let decision = node.check_at(b"key", now, 1);
    assert_eq!(decision.reason, Reason::StoreDenied);
    assert!((3_000_000..3_200_000).contains(&decision.retry_after), "{decision:?}");
    assert_eq!(node.peek_at(b"key", now, 1).reason, Reason::StoreDenied);
    assert_eq!(node.check_at(b"key", dry + 200_000, 1).reason, Reason::Pending);
    assert_eq!(passed(&node, b"other", dry), OVERDRAFT as usize);
}

/// A node has a place for each key that is in use, and says when it has none. A key whose debt is
/// confirmed needs no place.
#[test]
fn a_node_without_a_place_says_so() {
    let policy = "1000/s burst 1000".parse().expect("a policy");
    let options = Options { capacity: 64, ..Options::new(1) };
    let node = Node::private("full", &policy, &options).expect("a node");
    let now = 1 << 40;
    beat(&node, now);
    let check = |key: u64| {
        let decision = node.check_at(&key.to_le_bytes(), now, 1);
        while node.pop() != Found::Empty {}
        decision
    };
    let full = (0..1000).filter(|key| check(*key).reason == Reason::TableFull).count() as u64;
    assert!((936..=960).contains(&full) && node.stats().full == full, "{full}");
    for key in 0..1000_u64 {
        let said = Said { confirmed: 1, shut: Some(0), ..Said::default() };
        node.heard(node.hash(&key.to_le_bytes()), &said, now);
    }
    for key in 0..1000_u64 {
        assert!(check(key).is_allowed(), "{key}");
        let said = Said { confirmed: 1, shut: Some(0), ..Said::default() };
        node.heard(node.hash(&key.to_le_bytes()), &said, now);
    }
}

/// A request that the right admits and that finds no room for its message is denied, until the
/// client has made room: after an answer's time, and not at once.
#[test]
fn a_full_ring_is_not_tried_again_at_once() {
    let (node, now) = node();
    while node.write_message(1, b"another", MessageKind::Right, 1, 0) {}
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
    assert_eq!(passed(&node, b"key", now), OVERDRAFT as usize);
    while node.pop() != Found::Empty {}
    let (hash, dry) = (node.hash(b"key"), now + 3_000_000);
    node.heard(hash, &Said { dry: Some((dry, true)), ..Said::default() }, now);
    assert_eq!((passed(&node, b"key", dry - 1), node.pop()), (0, Found::Empty));
    assert_eq!(passed(&node, b"key", dry + 200_000), 0);
    assert!(matches!(node.pop(), Found::Message(KeyMessage { want: 1, debt: 0, .. })));
    assert_eq!(node.pop(), Found::Empty);
    // The others are counted, and the driver asks for them, too.
    assert_eq!(node.take_requests(hash, true), (7, 0));
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

/// Nobody attaches to a node whose terms are damaged so that sums over them could overflow.
#[test]
fn damaged_terms_are_refused() {
    let policy = "1000/s burst 1000".parse().expect("a policy");
    let terms = Node::private("node", &policy, &Options::new(2)).expect("a node").terms();
    assert!(terms.may_be_made());
    let large = [1 << 60, 0x5700_0000_0000_0000, u64::MAX];
    for word in large {
        let damaged = [
            Terms { num: word, ..terms },
            Terms { cap: word, ..terms },
            Terms { debt_cap: word, ..terms },
            Terms { most: word, ..terms },
            Terms { life: word, ..terms },
            Terms { overdraft: word, ..terms },
            Terms { nodes: word, ..terms },
            Terms { on_loss: word, ..terms },
            Terms { version: word, ..terms },
            Terms { burst: word, ..terms },
            Terms { flags: word, ..terms },
            Terms { overdraft_before: word, ..terms },
            Terms { since: word, ..terms },
        ];
        for terms in damaged {
            assert!(!terms.may_be_made(), "{terms:?}");
        }
    }
    for terms in [Terms { nodes: 0, ..terms }, Terms { den: 0, ..terms }] {
        assert!(!terms.may_be_made(), "{terms:?}");
    }
}
