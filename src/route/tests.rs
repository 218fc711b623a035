//! Routes that never change, and shares.

use super::*;
use std::vec::Vec;

const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"10.0.0.4:8080"];

fn nodes(weights: [u32; 4]) -> Vec<Node<'static>> {
    NAMES.iter().zip(weights).map(|(&name, weight)| Node { name, weight }).collect()
}

fn all(nodes: &[Node<'_>], seed: u64) -> Vec<usize> {
    (0..100_000_u32)
        .map(|key| route(nodes.iter().copied(), &key.to_le_bytes(), seed).unwrap())
        .collect()
}

#[test]
fn the_logarithm_is_right_to_its_last_bits() {
    for n in [0, 1, 2, 3, 1 << 20, (1 << 53) - 1, 1 << 63, u64::MAX - 1, u64::MAX] {
        let expected = 64.0 - (n as f64 + 1.0).log2();
        let got = minus_log2(n) as f64 / (1_u64 << 48) as f64;
        assert!((got - expected).abs() < 1e-13 * 64.0, "{n}: {got}, {expected}");
    }
    assert_eq!((minus_log2(0), minus_log2(u64::MAX)), (64 << 48, 0));
    // It never grows.
    assert!((0..1_000_u64).all(|n| minus_log2(n << 50) >= minus_log2((n + 1) << 50)));
}

/// S35: one of four nodes leaves, and its quarter of the keys moves, no other key.
#[test]
fn s35_only_the_keys_of_a_node_that_leaves_move() {
    let before = all(&nodes([1; 4]), 7);
    let after = all(&nodes([1, 1, 0, 1]), 7);
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert!((24_000..=26_000).contains(&moved), "{moved}");
    assert!(before.iter().zip(&after).all(|(&before, &after)| before == 2 || before == after));
    // Nearly evenly to the three others.
    for node in [0, 1, 3] {
        let got = before
            .iter()
            .zip(&after)
            .filter(|(&before, &after)| before == 2 && after == node)
            .count();
        assert!((moved / 3 - 500..=moved / 3 + 500).contains(&got), "{got}");
    }
}

#[test]
fn shares_follow_the_weights() {
    let weights = [1, 2, 4, 13];
    let found = all(&nodes(weights), 0);
    for (node, weight) in weights.into_iter().enumerate() {
        let share = found.iter().filter(|&&at| at == node).count() as u32;
        assert!(share.abs_diff(weight * 5_000) < 500, "{node}: {share}");
    }
    // The order of the list does not matter, and the seed does.
    let mut turned = nodes(weights);
    turned.reverse();
    assert!(all(&turned, 0).iter().zip(&found).all(|(&turned, &at)| 3 - turned == at));
    assert!(all(&nodes(weights), 1) != found);
}

#[test]
fn no_node_has_a_weight() {
    assert_eq!((route([], b"k", 0), route(nodes([0; 4]), b"k", 0)), (None, None));
    assert_eq!(route(nodes([0, 0, 1, 0]), b"", u64::MAX), Some(2));
    assert!(route(nodes([u32::MAX; 4]), b"k", 0).is_some());
}

/// A route must not change from version to version, or a cluster that is being upgraded has two
/// nodes for a key.
#[test]
fn routes_never_change() {
    let found: Vec<usize> = ["alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1"]
        .iter()
        .map(|key| route(nodes([1, 2, 3, 4]), key.as_bytes(), 42).unwrap())
        .collect();
    assert_eq!(found, [1, 3, 2, 3, 3, 2, 2, 2]);
}
