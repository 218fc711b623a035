//! Which of several nodes a key belongs to: weighted rendezvous hashing.
//!
//! Where each node of a cluster limits on its own, the requests of a key must reach one node. Every caller that knows the same nodes
//! chooses the same node for a key, without a table and without a message. If a node leaves, only its own keys move, and they spread over
//! the others by their weights. If a node joins, it takes its share from all others.
//!
//! ```
//! use tollbar::route::{route, Node};
//!
//! let nodes = [Node { name: b"10.0.0.1", weight: 1 }, Node { name: b"10.0.0.2", weight: 2 }];
//! let node = route(nodes, b"alice", 0).unwrap(); // the second node gets two thirds of the keys
//! assert!(node < nodes.len());
//! ```
//!
//! A node's cost for a key is -log2(u) / weight, where u is a hash of the key, the node and the seed as a fraction in (0, 1]. The key goes to the node with
//! the least cost. These costs are independent exponential variables, and the least of them is a node's with probability weight / (sum of
//! weights). (Thaler and Ravishankar 1998 for equal weights; Schindelhauer and Schomaker 2005 for the logarithm.) The
//! arithmetic is on integers, so all machines agree.

#![allow(deprecated)] // core's SipHasher: std's successor may change its algorithm, and a route may not

use core::hash::{Hasher, SipHasher};

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// The name or address that distinguishes it. A node keeps its keys if its place in the list changes.
    pub name: &'a [u8],
    /// Its share of the keys is its weight divided by the sum of all weights. 0: no keys.
    pub weight: u32,
}

/// The index of the node that `key` belongs to; `None` if no node has a weight above 0. If two nodes have the same name and weight, the
/// first one counts.
///
/// All callers use the same `seed`. If it is secret, a client cannot invent keys that all belong to one node.
///
/// It takes 100 to 200 ns for each node.
pub fn route<'a>(nodes: impl IntoIterator<Item = Node<'a>>, key: &[u8], seed: u64) -> Option<usize> {
    let key = hash(seed, 0, key);
    let mut best: Option<(usize, u128, u32)> = None;
    for (index, node) in nodes.into_iter().enumerate().filter(|(_, node)| node.weight != 0) {
        let cost = u128::from(minus_log2(hash(seed, key, node.name)));
        // cost / weight < least / its weight
        if best.map_or(true, |(_, least, weight)| cost * u128::from(weight) < least * u128::from(node.weight)) {
            best = Some((index, cost, node.weight));
        }
    }
    best.map(|(index, ..)| index)
}

/// SipHash-2-4.
fn hash(seed: u64, of: u64, bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher::new_with_keys(seed, of);
    hasher.write(bytes);
    hasher.finish()
}

/// -log2((n + 1) / 2^64) in units of 2^-48, rounded down; below 2^54.
fn minus_log2(n: u64) -> u64 {
    const BITS: u32 = 48;
    let n = u128::from(n) + 1;
    // n = m * 2^e with m in [1, 2)
    let e = n.ilog2();
    let mut m = (n << (127 - e)) >> 64;
    let mut log = u64::from(e);
    // A squaring doubles the logarithm, whose next bit is whether the square is 2 or more.
    for _ in 0..BITS {
        m = (m * m) >> 63;
        let carry = (m >> 64) as u64;
        m >>= carry;
        log = log << 1 | carry;
    }
    (64 << BITS) - log
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const NAMES: [&[u8]; 4] = [b"a", b"b", b"c", b"10.0.0.4:8080"];

    fn nodes(weights: [u32; 4]) -> Vec<Node<'static>> {
        NAMES.iter().zip(weights).map(|(&name, weight)| Node { name, weight }).collect()
    }

    fn all(nodes: &[Node<'_>], seed: u64) -> Vec<usize> {
        (0..100_000_u32).map(|key| route(nodes.iter().copied(), &key.to_le_bytes(), seed).unwrap()).collect()
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
            let got = before.iter().zip(&after).filter(|(&before, &after)| before == 2 && after == node).count();
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

    /// A route must not change from version to version, or a cluster that is being upgraded has two nodes for a key.
    #[test]
    fn routes_never_change() {
        let found: Vec<usize> = ["alice", "bob", "carol", "dave", "erin", "frank", "", "192.0.2.1"]
            .iter()
            .map(|key| route(nodes([1, 2, 3, 4]), key.as_bytes(), 42).unwrap())
            .collect();
        assert_eq!(found, [1, 3, 2, 3, 3, 2, 2, 2]);
    }
}
