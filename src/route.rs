//! Which of several nodes a key belongs to: weighted rendezvous hashing.
//!
//! If each node of a cluster limits on its own, all requests of a key must reach one node. Every
//! caller that knows the same nodes chooses the same node for a key, without a table and without
//! messages. If a node leaves, only its keys move, and they spread over the other nodes by their
//! weights. If a node joins, it takes its share of the keys from all others.
//!
//! ```
//! use tollbar::route::{route, Node};
//!
//! let nodes = [Node { name: b"10.0.0.1", weight: 1 }, Node { name: b"10.0.0.2", weight: 2 }];
//! let node = route(nodes, b"alice", 0).unwrap(); // the second node gets two thirds of the keys
//! assert!(node < nodes.len());
//! ```
//!
//! A node's cost for a key is -log2(u) / weight, where u is a hash of the key, the node and the
//! seed as a fraction in (0, 1]. The key goes to the node with the least cost. These costs are
//! independent exponential variables, and the least of them is a node's with probability weight /
//! (sum of weights). (Thaler and Ravishankar 1998 for equal weights; Schindelhauer and Schomaker
//! 2005 for the logarithm.) The arithmetic is on integers, so all machines agree.

#![allow(deprecated)] // core's SipHasher: std's successor may change its algorithm, and a route may not

use core::hash::{Hasher, SipHasher};

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// The name or address of the node. A node keeps its keys if its place in the list changes.
    pub name: &'a [u8],
    /// Its share of the keys is its weight divided by the sum of all weights. 0: no keys.
    pub weight: u32,
}

/// The index of the node that `key` belongs to; `None` if no node has a weight above 0. If two
/// nodes have the same name and weight, the first one counts.
///
/// All callers use the same `seed`. If it is secret, a client cannot invent keys that all belong to
/// one node.
///
/// It takes 100 to 200 ns for each node.
pub fn route<'a>(
    nodes: impl IntoIterator<Item = Node<'a>>,
    key: &[u8],
    seed: u64,
) -> Option<usize> {
    let key = hash(seed, 0, key);
    let mut best: Option<(usize, u128, u32)> = None;
    for (index, node) in nodes.into_iter().enumerate().filter(|(_, node)| node.weight != 0) {
        let cost = u128::from(minus_log2(hash(seed, key, node.name)));
        // cost / weight < least / its weight
        if best.map_or(true, |(_, least, weight)| {
            cost * u128::from(weight) < least * u128::from(node.weight)
        }) {
            best = Some((index, cost, node.weight));
        }
    }
    best.map(|(index, ..)| index)
}

/// SipHash-2-4.
pub(crate) fn hash(seed: u64, of: u64, bytes: &[u8]) -> u64 {
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
    // Squaring m doubles its logarithm. The next bit of the logarithm is 1 if the square is 2 or
    // more.
    for _ in 0..BITS {
        m = (m * m) >> 63;
        let carry = (m >> 64) as u64;
        m >>= carry;
        log = log << 1 | carry;
    }
    (64 << BITS) - log
}

#[cfg(test)]
mod tests;
