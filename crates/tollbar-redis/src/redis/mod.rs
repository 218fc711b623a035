//! A connection to a Redis or Valkey server in three parts: URL, socket and session.
//!
//! ```text
//! Url ──▶ Link (a non-blocking socket) ◀──bytes──▶ Session (calls of scripts, replies in order; no input or output)
//! ```
//!
//! [`Session`] never touches the socket and [`Link`] never interprets the bytes. So a blocking
//! caller ([`crate::store::RedisStore`]), a thread, or the caller's event loop can drive a session.
//! Each part allocates when it is made and never after that. Nothing here can panic, because it is
//! part of the freestanding C library.

mod answer;
mod buffer;
mod channel;
mod expect;
mod fault;
mod link;
mod link_error;
mod lookup;
pub mod resp;
#[cfg(feature = "rustls")]
mod rustls;
mod secret;
mod session;
mod socket;
mod text;
mod tls;
mod url;

pub use answer::Answer;
pub(crate) use buffer::Buffer;
pub use fault::{Fault, Why};
pub use link::Link;
pub use link_error::{LinkError, NameFault, Operation};
#[cfg(feature = "rustls")]
pub use rustls::Rustls;
pub use session::{Arg, NoMemory, Script, Session, SCRIPTS_MOST};
pub use socket::Wants;
pub use text::Text;
pub use tls::{Cipher, TlsFault, Transport};
pub use url::{Address, Hosts, Url, UrlError, UrlFault};

#[cfg(test)]
mod tests;
