//! The system calls of a link, and the addresses that a name has.

use super::link::{LinkError, Operation, Wants};
use super::url::Address;
use crate::table::{again, errno};
use core::ffi::c_int;
use core::mem::{size_of, zeroed};
use core::ptr::{addr_of, addr_of_mut, null_mut};

/// The addresses of one server that have not been tried yet.
pub(super) struct Places {
    list: [Place; Places::MOST],
    len: usize,
    next: usize,
}

/// An address as the system has it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    address: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl Places {
    const MOST: usize = 8;

    /// None.
    pub(super) fn new() -> Places {
        // SAFETY: a sockaddr_storage is numbers, of which all may be 0.
        let place = Place { address: unsafe { zeroed() }, len: 0 };
        Places { list: [place; Places::MOST], len: 0, next: 0 }
    }

    /// The first eight that `address` has.
    pub(super) fn of(address: &Address) -> Result<Places, LinkError> {
        let mut places = Places::new();
        match address {
            Address::Unix(path) => places.push_path(path.as_bytes()),
            Address::Tcp(host, port) => places.look_up(host.as_bytes(), *port)?,
        }
        Ok(places)
    }

    /// The next one to try.
    pub(super) fn next(&mut self) -> Option<Place> {
        let place = self.list.get(self.next).copied().filter(|_| self.has_next())?;
        self.next = self.next.saturating_add(1);
        Some(place)
    }

    pub(super) fn has_next(&self) -> bool {
        self.next < self.len
    }

    /// The others are not to be tried.
    pub(super) fn forget(&mut self) {
        self.next = self.len;
    }

    fn push_path(&mut self, path: &[u8]) {
        let Some(place) = self.list.first_mut() else { return };
        // SAFETY: a sockaddr_un is numbers, of which all may be 0.
        let mut name: libc::sockaddr_un = unsafe { zeroed() };
        name.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // A 0 stays at the end: paths have 107 bytes at most (103 count where the system's place is smaller).
        let room = name.sun_path.len().saturating_sub(1);
        name.sun_path.iter_mut().zip(path).take(room).for_each(|(to, from)| *to = *from as libc::c_char);
        // SAFETY: a sockaddr_storage has room for, and the alignment of, every kind of address.
        unsafe { addr_of_mut!(place.address).cast::<libc::sockaddr_un>().write(name) };
        place.len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        self.len = 1;
    }

    fn look_up(&mut self, host: &[u8], port: u16) -> Result<(), LinkError> {
        // A 0 at the end of each: a host has 255 bytes at most.
        let mut name = [0_u8; 256];
        name.iter_mut().zip(host).take(255).for_each(|(to, from)| *to = *from);
        let mut digits = [0_u8; 20];
        let mut service = [0_u8; 8];
        let text = super::resp::decimal(i64::from(port), &mut digits);
        service.iter_mut().zip(text).take(7).for_each(|(to, from)| *to = *from);
        // SAFETY: an addrinfo is numbers and pointers, of which all may be 0.
        let mut hints: libc::addrinfo = unsafe { zeroed() };
        hints.ai_socktype = libc::SOCK_STREAM;
        hints.ai_flags = libc::AI_NUMERICSERV;
        let mut found: *mut libc::addrinfo = null_mut();
        // SAFETY: both texts end with a 0, the hints are readable and `found` is writable for the call.
        let code = unsafe { libc::getaddrinfo(name.as_ptr().cast(), service.as_ptr().cast(), &hints, &mut found) };
        if code != 0 {
            return Err(LinkError::Unknown(code));
        }
        let mut entry = found;
        // SAFETY: getaddrinfo's list: each entry is readable until it is freed, and the last one's next is null.
        while let Some(info) = unsafe { entry.as_ref() } {
            self.push(info);
            entry = info.ai_next;
        }
        // SAFETY: from getaddrinfo, freed once, and not looked at any more.
        unsafe { libc::freeaddrinfo(found) };
        Ok(())
    }

    fn push(&mut self, info: &libc::addrinfo) {
        let fits = info.ai_addrlen as usize <= size_of::<libc::sockaddr_storage>();
        if let Some(place) = self.list.get_mut(self.len).filter(|_| fits && !info.ai_addr.is_null()) {
            // SAFETY: getaddrinfo says that there are so many bytes, and they fit.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    info.ai_addr.cast::<u8>(),
                    addr_of_mut!(place.address).cast::<u8>(),
                    info.ai_addrlen as usize,
                )
            };
            place.len = info.ai_addrlen;
            self.len = self.len.saturating_add(1);
        }
    }
}

impl core::fmt::Debug for Places {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} of {}", self.next, self.len)
    }
}

impl Place {
    pub(super) fn family(&self) -> c_int {
        c_int::from(self.address.ss_family)
    }
}

/// A non-blocking socket for this program only, that does not hold small writes back.
pub(super) fn open(family: c_int) -> Result<c_int, i32> {
    let fd = create(family)?;
    if family != libc::AF_UNIX {
        // Without it a call could wait for the acknowledgement of the one before; a system that refuses is slower, not wrong.
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

/// Sets an option to 1.
fn set(fd: c_int, level: c_int, option: c_int) -> Result<c_int, i32> {
    let on: c_int = 1;
    // SAFETY: the value is an int, readable for the call.
    again(|| unsafe { libc::setsockopt(fd, level, option, addr_of!(on).cast(), size_of::<c_int>() as libc::socklen_t) })
}

/// 0, or an errno.
pub(super) fn connect(fd: c_int, place: &Place) -> i32 {
    // SAFETY: the place has an address of so many bytes.
    match unsafe { libc::connect(fd, addr_of!(place.address).cast(), place.len) } {
        0 => 0,
        _ => errno(),
    }
}

/// How connecting has ended: 0, or an errno.
pub(super) fn pending_error(fd: c_int) -> i32 {
    let mut error: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: both are writable for the call, and the first has `len` bytes.
    match unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, addr_of_mut!(error).cast(), &mut len) } {
        0 => error,
        _ => errno(),
    }
}

/// How many bytes came: 0 at the end.
pub(super) fn receive(fd: c_int, into: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: `into` is writable for its length.
    retried(|| unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), 0) })
}

/// How many bytes went.
pub(super) fn send(fd: c_int, from: &[u8]) -> Result<usize, i32> {
    // Apple's systems have an option of the socket instead.
    #[cfg(target_vendor = "apple")]
    const FLAGS: c_int = 0;
    #[cfg(not(target_vendor = "apple"))]
    const FLAGS: c_int = libc::MSG_NOSIGNAL;
    // SAFETY: `from` is readable for its length.
    retried(|| unsafe { libc::send(fd, from.as_ptr().cast(), from.len(), FLAGS) })
}

/// Waits `millis` at most for what is wanted. A descriptor that has failed is both.
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
            // The caller looks at its clock and comes again.
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

/// Made again as long as signals interrupt it.
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
