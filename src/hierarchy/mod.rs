//! A hierarchy of classes, for example tenants and their users: each has a guaranteed rate and a
//! ceiling, and borrows what is idle.
//!
//! ```
//! use tollbar::hierarchy::{ClassId, Hierarchy};
//! use tollbar::table::{Options, PolicyId, Table};
//!
//! let table = Table::private(&Options::new(10_000), &[Hierarchy::policy()])?;
//! let mut shop = Hierarchy::new(PolicyId::FIRST, "1000/s", 100_000_000, 8)?;
//! let acme = shop.add(ClassId::ROOT, b"acme", "400/s", "", 1)?; // up to the root's 1000/s
//! let byte = shop.add(ClassId::ROOT, b"byte", "100/s", "500/s", 1)?;
//! let users = shop.add(acme, b"users", "1/s", "50/s", 100)?; // up to 100 users with a guarantee
//!
//! assert!(shop.take(&table, users, b"ann", 1)?.decision.is_allowed());
//! assert!(shop.take(&table, byte, b"", 1)?.decision.is_allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The rules
//!
//! A class is the root, or a child of another class. A class without children is a leaf and takes
//! requests. A class has one node, or one for each key under which a caller asks. Each node is a
//! key of a table, with one state word. So processes share it, and it survives them.
//!
//! 1. A node's rate is never above its ceiling, and never above that of a node above it.
//! 2. A node's rate is not below its guaranteed rate while it has requests. Guaranteed rates of
//!    children are together at most the guaranteed rate of their parent; the root's is its ceiling.
//!    So [`Hierarchy::add`] refuses a guarantee that the parent cannot keep.
//! 3. What is idle is borrowed from the nearest class that has it: first the rate that other
//!    children of the same parent leave, then that of its parent's siblings. All borrowers of a
//!    class get the same rate, or as much of it as they ask for. So rates are max-min fair: no
//!    child can get more unless a child with less gets less.
//!
//! These are the rules of HTB, the queueing discipline of Linux, with one difference: children
//! share a rate equally, not in proportion to their guarantees.
//!
//! # How it works
//!
//! A node's word is the time at which its debt is paid, as in gcra, and a permit costs the node
//! some nanoseconds. The root's interval is one over its rate. A child's interval is its parent's,
//! doubled for each sixteenth of a range that the parent owes, within the child's ceiling and
//! guarantee. If the children ask for more than the parent's rate, its debt grows, and permits cost
//! all borrowers more, until the rate suffices. If they ask for less, the debt is paid and permits
//! become cheaper. No call keeps a list of who is active.
//!
//! # The guarantee
//!
//! *Each node admits in any interval of length t at most `ceiling · (t + slack)` permits and one
//! request, whatever calls race and whichever process is killed.* `slack` is one burst for a leaf,
//! and four bursts more for each level of classes below a node. *A call charges all nodes of its
//! leaf or none*, with two exceptions. A call that loses a race for a node has charged the nodes
//! below it. It gives these charges back, without what has been refilled meanwhile. And a process
//! that is killed between two charges leaves those that it has made, at the leaf first. The root is
//! never charged for a request that another node refuses.
//!
//! A guaranteed request is refused for its own rate only, if the guaranteed children of each class
//! leave room: `n` children with a guaranteed rate of `g` together, who may all ask at one instant,
//! need `g · s + (n + 1) · cost <= guaranteed · s`, where `s` is the slack of a child. Otherwise a
//! guaranteed request may be refused while all of them spend their bursts.

mod error;
#[cfg(all(test, loom))]
mod models;
#[cfg(not(loom))]
mod rates;
mod share;
#[cfg(not(loom))]
mod table;
mod take;
#[cfg(not(loom))]
mod tree;

pub use error::HierarchyError;
pub use share::LEVELS_MOST;
#[cfg(not(loom))]
pub use tree::{ClassId, Hierarchy, Share, CLASSES_MOST};
