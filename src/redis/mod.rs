//! A connection to a Redis or Valkey server: URL, socket and conversation, each usable without the others.
//!
//! ```text
//! Url ──▶ Link (a non-blocking socket) ◀──bytes──▶ Session (scripts called, replies in order; no input or output)
//! ```
//!
//! [`Session`] never touches the socket and [`Link`] never looks at the bytes, so one conversation can be driven by
//! a blocking caller ([`crate::store::RedisStore`]), by a thread, or by somebody else's event loop. Memory is taken when
//! something is opened and never after that, and nothing here can panic: it is part of the freestanding C library.

mod answer;
mod buffer;
mod dns;
mod expect;
mod fault;
mod hosts;
mod link;
mod lookup;
pub mod resp;
mod session;
mod socket;
mod text;
mod url;

pub use answer::Answer;
pub use fault::{Fault, Why};
pub use link::{Link, LinkError, NameFault, Operation, Wants};
pub use session::{Arg, NoMemory, Script, Session, SCRIPTS_MOST};
pub use text::Text;
pub use url::{Address, Url, UrlError, UrlFault};

#[cfg(test)]
mod tests;
