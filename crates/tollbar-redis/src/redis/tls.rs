//! TLS of a link, by a library that the program has: this crate has none itself.
//!
//! ```text
//! Link ──plain_in──▶ ┌────────┐ ──cipher_out──▶ socket
//!      ◀──plain_out─ │ Cipher │ ◀──cipher_in──
//!                    └────────┘
//! ```
//!
//! A [`Cipher`] does no input or output, and so it never blocks.

use super::text::Text;
use alloc::boxed::Box;

/// Why there is no TLS, in the library's words.
pub type TlsFault = Text<96>;

/// A TLS library with its certificates: it secures each connection of a link.
pub trait Transport: Send {
    /// Begins TLS with the server of this name or address. The client verifies that the server's
    /// certificate is for `host`, and sends the name (SNI) if it is one.
    fn start(&self, host: &str) -> Result<Box<dyn Cipher>, TlsFault>;
}

/// TLS of one connection. After an error the link closes the connection.
pub trait Cipher: Send {
    /// Takes bytes that the server has sent, and returns how many.
    fn cipher_in(&mut self, from: &[u8]) -> Result<usize, TlsFault>;
    /// Gives bytes for the server, and returns how many.
    fn cipher_out(&mut self, into: &mut [u8]) -> Result<usize, TlsFault>;
    /// Takes bytes to encrypt, and returns how many. Called when [`Cipher::is_open`].
    fn plain_in(&mut self, from: &[u8]) -> Result<usize, TlsFault>;
    /// Gives decrypted bytes, and returns how many. Called when [`Cipher::is_open`].
    fn plain_out(&mut self, into: &mut [u8]) -> Result<usize, TlsFault>;
    /// Goes on with the handshake, and returns whether it is done.
    fn is_open(&mut self) -> Result<bool, TlsFault>;
}
