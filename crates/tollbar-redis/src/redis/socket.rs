//! The system calls of a link, and socket addresses.

use super::link_error::{LinkError, Operation};
use core::ffi::c_int;
use core::mem::{align_of, size_of, zeroed};
use core::ptr::{addr_of, addr_of_mut};
use tollbar::internal::{again, errno};

/// What an event loop waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The descriptor is readable.
    pub readable: bool,
    /// The descriptor is writable, or the connection has been made.
    pub writable: bool,
}

/// A list of one server's addresses, and the index of the next to try.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct HostAddresses {
    list: [HostAddress; HostAddresses::MOST],
    len: usize,
    next: usize,
}

/// An internet address with a port. It has room for IPv6 and no more, because lists of places are
/// copied on the stacks of callers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct HostAddress {
    address: libc::sockaddr_in6,
    len: libc::socklen_t,
}

const _: () = assert!(size_of::<libc::sockaddr_in>() <= size_of::<libc::sockaddr_in6>());
const _: () = assert!(align_of::<libc::sockaddr_in>() <= align_of::<libc::sockaddr_in6>());

impl HostAddresses {
    const MOST: usize = 8;

    /// No address.
    pub(super) fn new() -> HostAddresses {
        HostAddresses { list: [HostAddress::none(); HostAddresses::MOST], len: 0, next: 0 }
    }

    /// Adds an address. The list holds eight, and drops further ones.
    pub(super) fn push(&mut self, place: HostAddress) {
        if let Some(to) = self.list.get_mut(self.len) {
            *to = place;
            self.len = self.len.saturating_add(1);
        }
    }

    /// The next address to try.
    pub(super) fn next(&mut self) -> Option<HostAddress> {
        let place = self.list.get(self.next).copied().filter(|_| self.has_next())?;
        self.next = self.next.saturating_add(1);
        Some(place)
    }

    pub(super) fn has_next(&self) -> bool {
        self.next < self.len
    }

    /// Drops the addresses that have not been tried.
    pub(super) fn forget(&mut self) {
        self.next = self.len;
    }
}

impl core::fmt::Debug for HostAddresses {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} of {}", self.next, self.len)
    }
}

impl HostAddress {
    /// No address: the filler of a list.
    pub(super) const fn none() -> HostAddress {
        // SAFETY: a sockaddr_in6 consists of integers, for which zeroes are valid.
        HostAddress { address: unsafe { zeroed() }, len: 0 }
    }

    /// The resolver's address. `None`: it is neither IPv4 nor IPv6.
    ///
    /// # Safety
    /// `entry.ai_addr` is readable for `entry.ai_addrlen` bytes.
    pub(super) unsafe fn of_entry(entry: &libc::addrinfo, port: u16) -> Option<HostAddress> {
        let mut place = HostAddress::none();
        let (len, most) = (entry.ai_addrlen as usize, size_of::<libc::sockaddr_in6>());
        if ![libc::AF_INET, libc::AF_INET6].contains(&entry.ai_family) || len > most {
            return None;
        }
        // SAFETY: readable by the caller's promise, and at most the size of a sockaddr_in6.
        unsafe {
            let to = addr_of_mut!(place.address).cast::<u8>();
            core::ptr::copy_nonoverlapping(entry.ai_addr.cast::<u8>(), to, len);
        }
        // The port is at the same place for both kinds.
        place.address.sin6_port = port.to_be();
        place.len = entry.ai_addrlen;
        Some(place)
    }

    /// An address as text: IPv4, or IPv6 without brackets.
    pub(super) fn of_text(text: &[u8], port: u16) -> Option<HostAddress> {
        extern "C" {
            fn inet_pton(
                family: c_int,
                text: *const core::ffi::c_char,
                address: *mut core::ffi::c_void,
            ) -> c_int;
        }
        // The longest textual address has 45 bytes; the array ends with a zero byte for C.
        let mut name = [0_u8; 64];
        if text.len() >= name.len() || text.contains(&0) {
            return None;
        }
        name.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
        let mut octets = [0_u8; 16];
        let families = [(libc::AF_INET, 4), (libc::AF_INET6, 16)];
        let (_, length) = families.into_iter().find(|(family, _)| {
            // SAFETY: the text ends with a zero byte, and `octets` has 16 bytes, enough for either
            // family.
            unsafe { inet_pton(*family, name.as_ptr().cast(), octets.as_mut_ptr().cast()) == 1 }
        })?;
        HostAddress::of_octets(octets.get(..length)?, port)
    }

    /// An address as bytes: 4 or 16.
    fn of_octets(octets: &[u8], port: u16) -> Option<HostAddress> {
        let mut place = HostAddress::none();
        if let Ok(octets) = <[u8; 4]>::try_from(octets) {
            // SAFETY: a sockaddr_in consists of integers, for which zeroes are valid.
            let mut name: libc::sockaddr_in = unsafe { zeroed() };
            name.sin_family = libc::AF_INET as libc::sa_family_t;
            name.sin_port = port.to_be();
            name.sin_addr.s_addr = u32::from_ne_bytes(octets);
            // SAFETY: a sockaddr_in6 has the room and the alignment of a sockaddr_in, by the
            // assertions above.
            unsafe { addr_of_mut!(place.address).cast::<libc::sockaddr_in>().write(name) };
            place.len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        } else {
            // SAFETY: a sockaddr_in6 consists of integers, for which zeroes are valid.
            let mut name: libc::sockaddr_in6 = unsafe { zeroed() };
            name.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            name.sin6_port = port.to_be();
            name.sin6_addr.s6_addr = <[u8; 16]>::try_from(octets).ok()?;
            place.address = name;
            place.len = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        }
        Some(place)
    }

    pub(super) fn family(&self) -> c_int {
        c_int::from(self.address.sin6_family)
    }
}

/// A pipe that is closed on exec: its reading end, which does not block, and its writing end.
pub(super) fn pipe() -> Result<[c_int; 2], i32> {
    let mut ends = [-1; 2];
    #[cfg(not(target_vendor = "apple"))]
    // SAFETY: two ints, writable for the call.
    again(|| unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) })?;
    #[cfg(target_vendor = "apple")]
    {
        // SAFETY: two ints, writable for the call.
        again(|| unsafe { libc::pipe(ends.as_mut_ptr()) })?;
        for fd in ends {
            // SAFETY: numbers only. These calls cannot fail for a descriptor that is open.
            unsafe {
                libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
                libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK);
            }
        }
    }
    Ok(ends)
}

/// Reads bytes and returns how many; 0: the other end is closed.
pub(super) fn read(fd: c_int, into: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: `into` is writable for its length.
    retried(|| unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) })
}

/// A non-blocking stream socket that is closed on exec and sends small writes at once.
pub(super) fn open(family: c_int) -> Result<c_int, i32> {
    let fd = create(family)?;
    if family != libc::AF_UNIX {
        // Without TCP_NODELAY a call could wait for the acknowledgement of the call before. If the
        // system refuses the option, calls are slower and still correct, so the result is ignored.
        let _ = set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY);
    }
    Ok(fd)
}

#[cfg(not(target_vendor = "apple"))]
fn create(family: c_int) -> Result<c_int, i32> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: numbers only.
    again(|| unsafe { libc::socket(family, kind, 0) })
}

#[cfg(target_vendor = "apple")]
fn create(family: c_int) -> Result<c_int, i32> {
    // SAFETY: numbers only, here and below.
    let fd = again(|| unsafe { libc::socket(family, libc::SOCK_STREAM, 0) })?;
    let done = again(|| unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })
        .and_then(|_| again(|| unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) }))
        .and_then(|_| set(fd, libc::SOL_SOCKET, libc::SO_NOSIGPIPE));
    if let Err(errno) = done {
        // SAFETY: the descriptor is this function's own.
        unsafe { libc::close(fd) };
        return Err(errno);
    }
    Ok(fd)
}

/// Sets a socket option to 1.
fn set(fd: c_int, level: c_int, option: c_int) -> Result<c_int, i32> {
    let on: c_int = 1;
    // SAFETY: the value is an int, readable for the call.
    again(|| unsafe {
        libc::setsockopt(
            fd,
            level,
            option,
            addr_of!(on).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    })
}

/// Begins to connect; 0 or an errno.
pub(super) fn connect(fd: c_int, place: &HostAddress) -> i32 {
    // SAFETY: `place.address` is readable for `place.len` bytes, at most its size.
    match unsafe { libc::connect(fd, addr_of!(place.address).cast(), place.len) } {
        0 => 0,
        _ => errno(),
    }
}

/// Begins to connect to a socket in the file system; 0 or an errno.
pub(super) fn connect_path(fd: c_int, path: &[u8]) -> i32 {
    // SAFETY: a sockaddr_un consists of integers, for which zeroes are valid.
    let mut name: libc::sockaddr_un = unsafe { zeroed() };
    name.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // A zero byte stays at the end. `Url` allows 107 bytes, which Linux has room for; Apple's
    // systems cut the path at 103.
    let room = name.sun_path.len().saturating_sub(1);
    name.sun_path
        .iter_mut()
        .zip(path)
        .take(room)
        .for_each(|(to, from)| *to = *from as libc::c_char);
    // SAFETY: `name` is readable for its size.
    match unsafe {
        libc::connect(fd, addr_of!(name).cast(), size_of::<libc::sockaddr_un>() as libc::socklen_t)
    } {
        0 => 0,
        _ => errno(),
    }
}

/// The outcome of connecting: 0 or an errno.
pub(super) fn pending_error(fd: c_int) -> i32 {
    let mut error: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: both are writable for the call, and the first has `len` bytes.
    match unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, addr_of_mut!(error).cast(), &mut len)
    } {
        0 => error,
        _ => errno(),
    }
}

/// Receives bytes and returns how many; 0: the peer closed the connection.
pub(super) fn receive(fd: c_int, into: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: `into` is writable for its length.
    retried(|| unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), 0) })
}

/// Sends bytes and returns how many.
pub(super) fn send(fd: c_int, from: &[u8]) -> Result<usize, i32> {
    // No SIGPIPE. Apple's systems have the socket option SO_NOSIGPIPE instead, which `create` sets.
    #[cfg(target_vendor = "apple")]
    const FLAGS: c_int = 0;
    #[cfg(not(target_vendor = "apple"))]
    const FLAGS: c_int = libc::MSG_NOSIGNAL;
    // SAFETY: `from` is readable for its length.
    retried(|| unsafe { libc::send(fd, from.as_ptr().cast(), from.len(), FLAGS) })
}

/// Waits at most `millis` milliseconds until the descriptor is readable or writable, as wanted. A
/// failed descriptor counts as both.
pub(super) fn poll(fd: c_int, wants: Wants, millis: c_int) -> Result<Wants, LinkError> {
    let mut events = 0;
    if wants.readable {
        events |= libc::POLLIN;
    }
    if wants.writable {
        events |= libc::POLLOUT;
    }
    let mut entry = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one entry, writable for the call.
    match unsafe { libc::poll(&mut entry, 1, millis) } {
        -1 => match errno() {
            // The caller reads its clock and calls again.
            libc::EINTR => Ok(Wants::default()),
            errno => Err(LinkError::System(Operation::Wait, errno)),
        },
        _ => {
            let failed = entry.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
            Ok(Wants {
                readable: failed || entry.revents & libc::POLLIN != 0,
                writable: failed || entry.revents & libc::POLLOUT != 0,
            })
        }
    }
}

/// Repeats a system call as long as signals interrupt it.
fn retried(mut call: impl FnMut() -> isize) -> Result<usize, i32> {
    loop {
        match usize::try_from(call()) {
            Ok(n) => return Ok(n),
            Err(_) => match errno() {
                libc::EINTR => {}
                errno => return Err(errno),
            },
        }
    }
}
