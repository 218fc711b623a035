//! The memory of a table: private, shared with forked children, the caller's, or a file's.

mod boot;
mod file;
mod mapping;
mod named;
mod presence;
mod process;
mod system;
#[cfg(test)]
mod tests;
mod trust;

pub(crate) use boot::{Agreement, Boot, Noted};
pub use mapping::Region;
pub(crate) use presence::Others;
pub(crate) use process::{has_ended, is_process_gone, namespace, process, start_of};
pub use system::{again, errno, random_u64, set_errno};
pub(crate) use trust::Access;
pub use trust::Trust;
