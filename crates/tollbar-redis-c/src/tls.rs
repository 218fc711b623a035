//! TLS of a client's connections, by a library of the program.

use alloc::boxed::Box;
use core::ffi::{c_char, c_void, CStr};
use core::mem::size_of;
use core::ptr::NonNull;
use tollbar_c::boundary::*;
use tollbar_c::status::*;
use tollbar_redis::redis::{Cipher, Text, TlsFault, Transport};

/// tollbar_tls.wants: TLS is made, and bytes pass.
pub const TOLLBAR_TLS_OPEN: i32 = 0;
/// tollbar_tls.wants: the handshake goes on.
pub const TOLLBAR_TLS_HANDSHAKE: i32 = 1;
/// tollbar_tls.wants, and the calls that move bytes: TLS has failed.
pub const TOLLBAR_TLS_FAULT: i32 = -1;

/// A TLS library, as functions that move bytes between memory and memory. None of them may wait,
/// and none touches a socket. tollbar_openssl.h has a table for OpenSSL. The thread that drives the
/// client makes all calls.
///
/// The calls that move bytes return how many, 0 for none now, or TOLLBAR_TLS_FAULT.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tollbar_tls {
    /// sizeof(tollbar_tls), as the caller's compiler sees it.
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// The first argument of `start`.
    pub context: *mut c_void,
    /// Begins TLS as a client of the server with this name or address, and returns the connection;
    /// NULL if it cannot. The certificate must be for `host`.
    pub start:
        Option<unsafe extern "C" fn(context: *mut c_void, host: *const c_char) -> *mut c_void>,
    /// Takes bytes that the server has sent.
    pub cipher_in: Option<
        unsafe extern "C" fn(connection: *mut c_void, bytes: *const c_void, length: usize) -> i64,
    >,
    /// Gives bytes for the server.
    pub cipher_out: Option<
        unsafe extern "C" fn(connection: *mut c_void, bytes: *mut c_void, length: usize) -> i64,
    >,
    /// Takes bytes to encrypt.
    pub plain_in: Option<
        unsafe extern "C" fn(connection: *mut c_void, bytes: *const c_void, length: usize) -> i64,
    >,
    /// Gives decrypted bytes.
    pub plain_out: Option<
        unsafe extern "C" fn(connection: *mut c_void, bytes: *mut c_void, length: usize) -> i64,
    >,
    /// Goes on with the handshake. Returns a TOLLBAR_TLS_ number.
    pub wants: Option<unsafe extern "C" fn(connection: *mut c_void) -> i32>,
    /// Why TLS has failed, as text; NULL if the library does not say.
    pub fault: Option<unsafe extern "C" fn(connection: *mut c_void) -> *const c_char>,
    /// Frees the connection. It sends nothing.
    pub end: Option<unsafe extern "C" fn(connection: *mut c_void)>,
}

// SAFETY: repr(C), u32 first, fields without holes. Zero bytes are no function.
unsafe impl Growable for tollbar_tls {
    const FIRST_SIZE: usize = 8 + 9 * size_of::<*mut c_void>();
}

/// The program's table, all of whose functions are there.
pub(crate) struct TlsLibrary(tollbar_tls);

// SAFETY: by the caller's promise the functions may be called from the thread that drives the
// client, which is one at a time.
unsafe impl Send for TlsLibrary {}

struct TlsConnection {
    calls: tollbar_tls,
    connection: NonNull<c_void>,
}

// SAFETY: as for the library.
unsafe impl Send for TlsConnection {}

impl TlsLibrary {
    /// # Safety
    /// `table` is null or a table as `tollbar_tls` says, whose functions and context live as long
    /// as the value.
    pub(crate) unsafe fn boxed(table: *const tollbar_tls) -> Result<Box<dyn Transport>, i32> {
        // SAFETY: by the caller's promise.
        let table = unsafe { read(table) }?;
        let all = table.start.is_some()
            && table.cipher_in.is_some()
            && table.cipher_out.is_some()
            && table.plain_in.is_some()
            && table.plain_out.is_some()
            && table.wants.is_some()
            && table.fault.is_some()
            && table.end.is_some();
        match (all, table.flags) {
            (false, _) => Err(TOLLBAR_E_NULL),
            // SAFETY: `boxed` gives memory of the global allocator with a value in it.
            (_, 0) => boxed(TlsLibrary(table)).map(|made| unsafe { Box::from_raw(made) } as _),
            _ => Err(TOLLBAR_E_RESERVED),
        }
    }
}

impl Transport for TlsLibrary {
    fn start(&self, host: &str) -> Result<Box<dyn Cipher>, TlsFault> {
        // A host has at most 255 bytes, so a zero byte stays at the end.
        let mut name = [0_u8; 256];
        name.iter_mut().take(255).zip(host.as_bytes()).for_each(|(to, from)| *to = *from);
        let connection = self.0.start.and_then(|start| {
            // SAFETY: by the promise of `boxed`, and the name ends with a zero byte.
            NonNull::new(unsafe { start(self.0.context, name.as_ptr().cast()) })
        });
        let connection = connection.ok_or(Text::printable(b"the library cannot start it"))?;
        let cipher = TlsConnection { calls: self.0, connection };
        match boxed(cipher) {
            // SAFETY: `boxed` gives memory of the global allocator with a value in it.
            Ok(made) => Ok(unsafe { Box::from_raw(made) }),
            Err(_) => Err(Text::printable(b"out of memory")),
        }
    }
}

impl TlsConnection {
    /// What a call has returned: a count of at most `most` bytes, or a fault.
    fn moved(&self, result: i64, most: usize) -> Result<usize, TlsFault> {
        usize::try_from(result).map(|count| count.min(most)).map_err(|_| self.why())
    }

    fn why(&self) -> TlsFault {
        let text = self.calls.fault.and_then(|fault| {
            // SAFETY: by the promise of `TlsLibrary::boxed`.
            let text = unsafe { fault(self.connection.as_ptr()) };
            // SAFETY: as above, the text ends with a zero byte.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
        });
        Text::printable(text.map_or(b"no reason given", CStr::to_bytes))
    }
}

impl Cipher for TlsConnection {
    fn cipher_in(&mut self, from: &[u8]) -> Result<usize, TlsFault> {
        // SAFETY: by the promise of `TlsLibrary::boxed`, and the bytes are there for their length.
        let moved = self.calls.cipher_in.map_or(-1, |call| unsafe {
            call(self.connection.as_ptr(), from.as_ptr().cast(), from.len())
        });
        self.moved(moved, from.len())
    }

    fn cipher_out(&mut self, into: &mut [u8]) -> Result<usize, TlsFault> {
        // SAFETY: by the promise of `TlsLibrary::boxed`, and the bytes are there for their length.
        let moved = self.calls.cipher_out.map_or(-1, |call| unsafe {
            call(self.connection.as_ptr(), into.as_mut_ptr().cast(), into.len())
        });
        self.moved(moved, into.len())
    }

    fn plain_in(&mut self, from: &[u8]) -> Result<usize, TlsFault> {
        // SAFETY: by the promise of `TlsLibrary::boxed`, and the bytes are there for their length.
        let moved = self.calls.plain_in.map_or(-1, |call| unsafe {
            call(self.connection.as_ptr(), from.as_ptr().cast(), from.len())
        });
        self.moved(moved, from.len())
    }

    fn plain_out(&mut self, into: &mut [u8]) -> Result<usize, TlsFault> {
        // SAFETY: by the promise of `TlsLibrary::boxed`, and the bytes are there for their length.
        let moved = self.calls.plain_out.map_or(-1, |call| unsafe {
            call(self.connection.as_ptr(), into.as_mut_ptr().cast(), into.len())
        });
        self.moved(moved, into.len())
    }

    fn is_open(&mut self) -> Result<bool, TlsFault> {
        // SAFETY: by the promise of `TlsLibrary::boxed`, and the bytes are there for their length.
        let wants = self
            .calls
            .wants
            .map_or(TOLLBAR_TLS_FAULT, |call| unsafe { call(self.connection.as_ptr()) });
        match wants {
            TOLLBAR_TLS_OPEN => Ok(true),
            TOLLBAR_TLS_HANDSHAKE => Ok(false),
            _ => Err(self.why()),
        }
    }
}

impl Drop for TlsConnection {
    fn drop(&mut self) {
        if let Some(end) = self.calls.end {
            // SAFETY: by the promise of `TlsLibrary::boxed`, and nobody uses the connection.
            unsafe { end(self.connection.as_ptr()) };
        }
    }
}
