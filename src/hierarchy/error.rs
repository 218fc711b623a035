//! Why a class cannot be added, and why a request cannot be decided.

#[cfg(not(loom))]
use crate::table::RequestError;
use core::fmt;

/// The error of a hierarchy's call. Nothing has been charged or added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HierarchyError {
    /// The hierarchy has no such class.
    NoSuchClass,
    /// A request names a class that has children.
    NotALeaf,
    /// The hierarchy has as many classes as it was made for, or it was made for none or more than
    /// [`CLASSES_MOST`](super::CLASSES_MOST).
    Classes,
    /// The class would be below more than [`LEVELS_MOST`](super::LEVELS_MOST) - 1 others, or below
    /// a class whose nodes have keys.
    Levels,
    /// The name is empty, or another child of the same class has it.
    Name,
    /// A rate is not `LIMIT/PERIOD` between 1 in 9 minutes and 1,000,000 a second.
    Rate,
    /// The guaranteed rate is above the ceiling, or the guaranteed rates of a class's children are
    /// together above its own.
    Guarantee,
    /// The number of keys of a class is 0.
    Keys,
    /// The burst is not between 1 ms and 10 s, or has fewer than twenty permits of the root's rate.
    Burst,
    /// The table's policy of this number is not [`Hierarchy::policy`](super::Hierarchy::policy).
    Policy,
    /// The allocator has no memory.
    NoMemory,
    /// The table cannot decide.
    #[cfg(not(loom))]
    Table(RequestError),
}

impl fmt::Display for HierarchyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HierarchyError::NoSuchClass => "the hierarchy has no such class",
            HierarchyError::Keys => "a class has 1 key or more, and not 0",
            HierarchyError::NotALeaf => "a class with children takes no requests",
            HierarchyError::Classes => "the hierarchy has no room for another class",
            HierarchyError::Levels => "a hierarchy has at most 8 levels, and a class with keys has no children",
            HierarchyError::Name => "a class needs a name that no other child of its parent has",
            HierarchyError::Rate => "a class's rate is LIMIT/PERIOD, from 1 in 9 minutes to 1000000/s",
            HierarchyError::Guarantee => "more is guaranteed than the ceiling or the parent's guaranteed rate",
            HierarchyError::Burst => {
                "the burst of a hierarchy is 1 ms to 10 s, and at least 20 permits of the root's rate"
            }
            HierarchyError::Policy => "the table's policy is not that of a hierarchy's nodes",
            HierarchyError::NoMemory => "no memory",
            #[cfg(not(loom))]
            HierarchyError::Table(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for HierarchyError {}

#[cfg(not(loom))]
impl From<RequestError> for HierarchyError {
    fn from(error: RequestError) -> HierarchyError {
        HierarchyError::Table(error)
    }
}
