//! The password in a file, which may change while the program runs (tokens of a cloud, secrets that
//! rotate).

use super::buffer::Buffer;
use super::text::Text;
use core::ffi::c_char;
use tollbar::internal::again;

/// The longest password in a file, in bytes: room for a signed token.
const SECRET_MOST: usize = 8 << 10;

/// What was last read of a password's file.
pub(super) struct Secret {
    bytes: Buffer,
}

impl Secret {
    /// `None`: there is no memory.
    pub(super) fn new() -> Option<Secret> {
        Some(Secret { bytes: Buffer::new(SECRET_MOST)? })
    }

    /// Bytes that the password takes at most.
    pub(super) const fn most() -> usize {
        SECRET_MOST
    }

    /// Reads the file. Returns its first line, or the errno.
    pub(super) fn read(&mut self, file: &Text<512>) -> Result<&[u8], i32> {
        self.bytes.clear();
        let mut path = [0_u8; 513];
        path.iter_mut().zip(file.as_bytes()).for_each(|(to, from)| *to = *from);
        // O_NONBLOCK: a pipe in the file's place must not make the caller wait.
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        let path = path.as_ptr().cast::<c_char>();
        // SAFETY: the path ends with a zero byte.
        let fd = again(|| unsafe { libc::openat(libc::AT_FDCWD, path, flags) })?;
        let mut read = Ok(1);
        while read.is_ok_and(|n| n > 0) && !self.bytes.is_full() {
            read = super::socket::read(fd, self.bytes.room());
            self.bytes.filled(read.unwrap_or(0));
        }
        // SAFETY: the descriptor is this function's own.
        unsafe { libc::close(fd) };
        read?;
        if self.bytes.is_full() {
            return Err(libc::EFBIG);
        }
        Ok(self.bytes.used().split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default())
    }
}
