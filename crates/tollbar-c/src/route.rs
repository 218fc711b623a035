//! Which of several nodes a key belongs to.

use super::boundary::*;
use super::status::*;
use core::ffi::c_void;
use tollbar::route::{route, Node};

/// A node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_node {
    /// The bytes that identify the node: a name or an address. Its keys stay if its place in the
    /// list changes.
    pub name: *const c_void,
    /// The bytes of the name.
    pub length: usize,
    /// Its share of the keys is its weight by the sum of all weights. 0: it gets none.
    pub weight: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// The most nodes of tollbar_route.
pub const TOLLBAR_NODES_MOST: usize = 1024;

/// Writes to `*node` the index of the node that a key belongs to: 1 to TOLLBAR_NODES_MOST nodes
/// (TOLLBAR_E_OUT_OF_RANGE), of which one has a weight above 0 (TOLLBAR_NO, and `*node` is left
/// alone; otherwise TOLLBAR_YES).
///
/// `seed` is the same for all callers. With a secret seed nobody outside can invent keys that all
/// belong to one node. The routes of a seed, nodes and weights never change between versions and
/// machines.
///
/// # Safety
/// Pointers are NULL or as said.
#[no_mangle]
pub unsafe extern "C" fn tollbar_route(
    nodes: *const tollbar_node,
    count: usize,
    key: *const c_void,
    length: usize,
    seed: u64,
    node: *mut usize,
) -> i32 {
    call(|| {
        // SAFETY: by the caller's promise.
        let (key, out) = unsafe { (bytes(key.cast(), length)?, place(node)?) };
        if count == 0 || count > TOLLBAR_NODES_MOST {
            return Err(TOLLBAR_E_OUT_OF_RANGE);
        }
        array(nodes, count)?;
        // SAFETY: by the caller's promise `count` nodes, not null and aligned.
        let nodes = unsafe { core::slice::from_raw_parts(nodes, count) };
        for node in nodes {
            // SAFETY: by the caller's promise.
            unsafe { bytes(node.name.cast(), node.length)? };
            if node.reserved != 0 {
                return Err(TOLLBAR_E_RESERVED);
            }
        }
        let named = |node: &tollbar_node| Node {
            // SAFETY: by the caller's promise; the loop above has refused a null with a length.
            name: unsafe { bytes(node.name.cast(), node.length) }.unwrap_or_default(),
            weight: node.weight,
        };
        Ok(match route(nodes.iter().map(named), key, seed) {
            Some(index) => {
                out.write(index);
                TOLLBAR_YES
            }
            None => TOLLBAR_NO,
        })
    })
}
