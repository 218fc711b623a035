//! A connection with TLS: the bytes between a [`Cipher`] and a socket.

use super::buffer::Buffer;
use super::link_error::{LinkError, Operation};
use super::socket;
use super::text::Text;
use super::tls::Cipher;
use alloc::boxed::Box;
use core::ffi::c_int;

/// A cipher and the bytes between it and the socket.
pub(super) struct Channel {
    cipher: Box<dyn Cipher>,
    input: Buffer,
    output: Buffer,
    /// Whether the last read gave bytes, so that the cipher may have more.
    has_more: bool,
}

/// Bytes of each buffer: a record of TLS has at most 16 KiB.
const BUFFER: usize = 16 << 10;

impl Channel {
    /// `None`: there is no memory.
    pub(super) fn new(cipher: Box<dyn Cipher>) -> Option<Channel> {
        let (input, output) = (Buffer::new(BUFFER)?, Buffer::new(BUFFER)?);
        Some(Channel { cipher, input, output, has_more: false })
    }

    /// Goes on with the handshake, and returns whether it is done.
    pub(super) fn handshake(&mut self, fd: c_int) -> Result<bool, LinkError> {
        loop {
            let open = self.cipher.is_open();
            // Also after a fault: the server learns of it by an alert.
            let sent = self.send(fd);
            if open.map_err(LinkError::Tls)? {
                return sent.map(|()| true);
            }
            sent?;
            if !self.receive(fd)? {
                return Ok(false);
            }
        }
    }

    pub(super) fn read(&mut self, fd: c_int, into: &mut [u8]) -> Result<usize, LinkError> {
        // TLS may have to write in order to read.
        self.send(fd)?;
        loop {
            let n = self.cipher.plain_out(into).map_err(LinkError::Tls)?;
            self.has_more = n > 0;
            if n > 0 || !self.receive(fd)? {
                self.send(fd)?;
                return Ok(n);
            }
        }
    }

    pub(super) fn write(&mut self, fd: c_int, from: &[u8]) -> Result<usize, LinkError> {
        self.send(fd)?;
        if self.has_unsent() {
            return Ok(0);
        }
        let n = self.cipher.plain_in(from).map_err(LinkError::Tls)?;
        self.send(fd)?;
        Ok(n)
    }

    /// Whether the socket had no room for encrypted bytes.
    pub(super) fn has_unsent(&self) -> bool {
        !self.output.used().is_empty()
    }

    /// Whether there may be bytes to read that no descriptor tells of.
    pub(super) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Sends what the cipher gives, as far as the socket has room.
    fn send(&mut self, fd: c_int) -> Result<(), LinkError> {
        loop {
            if self.output.used().is_empty() {
                let n = self.cipher.cipher_out(self.output.room()).map_err(LinkError::Tls)?;
                self.output.filled(n);
                if n == 0 {
                    return Ok(());
                }
            }
            match socket::send(fd, self.output.used()) {
                Ok(n) => self.output.taken(n),
                Err(libc::EAGAIN) => return Ok(()),
                Err(errno) => return Err(LinkError::System(Operation::Write, errno)),
            }
        }
    }

    /// Gives the cipher bytes that have come. `false`: there are none.
    fn receive(&mut self, fd: c_int) -> Result<bool, LinkError> {
        if self.input.used().is_empty() {
            match socket::receive(fd, self.input.room()) {
                Ok(0) => return Err(LinkError::Ended),
                Ok(n) => self.input.filled(n),
                Err(libc::EAGAIN) => return Ok(false),
                Err(errno) => return Err(LinkError::System(Operation::Read, errno)),
            }
        }
        match self.cipher.cipher_in(self.input.used()) {
            Ok(0) => Err(LinkError::Tls(Text::printable(b"the library takes no bytes"))),
            Ok(n) => {
                self.input.taken(n);
                Ok(true)
            }
            Err(why) => {
                // The server learns of it by an alert.
                let _ = self.send(fd);
                Err(LinkError::Tls(why))
            }
        }
    }
}
