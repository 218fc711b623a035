//! Looks up a host's name by the system's resolver (getaddrinfo), on a thread for each lookup.
//!
//! So a name is found where every other program of the machine finds it: /etc/hosts, name servers
//! with the search list and `ndots`, and all else that /etc/nsswitch.conf names. The resolver may
//! wait for minutes, and its thread waits alone: it has the name and the writing end of a pipe, and
//! writes what it found into the pipe. No memory is shared with it, so a link that is dropped or
//! forked meanwhile leaves nothing to clean up.
//!
//! A link has one lookup at a time, and keeps it over its connections. A process has at most
//! [`LOOKUPS_MOST`] at a time, whatever its links do: a resolver that never returns costs as many
//! threads and no more. docs/internals/decisions/0019-names-without-waiting.md

use super::link_error::{LinkError, NameFault, Operation};
use super::socket::{self, HostAddress, HostAddresses};
use super::text::Text;
use core::ffi::{c_int, c_void};
use core::mem::{size_of, zeroed, MaybeUninit};
use core::ptr::{addr_of, addr_of_mut, null, null_mut, NonNull};
use tollbar::internal::sync::{AtomicU64, Ordering};
use tollbar::internal::{errno, generation};

/// Lookups of one name, one after the other. [`Lookup::begin`] begins each.
#[derive(Debug)]
pub(super) struct Lookup {
    /// The host and the port of the last lookup that has begun.
    host: Text<255>,
    port: u16,
    /// The reading end of the pipe; -1: none.
    fd: c_int,
    is_running: bool,
    /// The process that began the lookup. In a process forked from it nobody may read the pipe.
    process: u32,
}

/// The most threads of a process that wait for the resolver.
pub(super) const LOOKUPS_MOST: u64 = 16;

/// The lookups of this process that run.
///
/// ```text
///  63            32 31        0
/// ┌────────────────┬───────────┐
/// │ the process    │ lookups   │     of another process, forked from it: 0
/// └────────────────┴───────────┘
/// ```
static RUNNING: AtomicU64 = AtomicU64::new(0);

/// What a thread writes into its pipe.
#[repr(C)]
#[derive(Clone, Copy)]
struct Resolved {
    places: HostAddresses,
    /// The resolver's error code; 0: none.
    code: c_int,
    /// The errno of a failed system call.
    errno: c_int,
}

// A pipe takes a message of this length whole or not at all, by POSIX.
const _: () = assert!(size_of::<Resolved>() <= 512);

/// What a thread looks up.
struct Job {
    host: [u8; 256],
    port: u16,
    /// The writing end of the pipe.
    to: c_int,
}

impl Lookup {
    /// A lookup that has not begun.
    pub(super) fn new() -> Lookup {
        Lookup { host: Text::new(), port: 0, fd: -1, is_running: false, process: 0 }
    }

    /// Begins a lookup, unless one of this host runs. It gives up one of another host, whose thread
    /// ends by itself. Returns the addresses if the host is one itself.
    pub(super) fn begin(
        &mut self,
        host: &Text<255>,
        port: u16,
    ) -> Result<Option<HostAddresses>, LinkError> {
        if self.is_running() && (self.host, self.port) == (*host, port) {
            return Ok(None);
        }
        if let Some(place) = HostAddress::of_text(host.as_bytes(), port) {
            let mut places = HostAddresses::new();
            places.push(place);
            return Ok(Some(places));
        }
        let [from, to] =
            socket::pipe().map_err(|errno| LinkError::System(Operation::Open, errno))?;
        // The old pipe was open until here, so the new one has another number.
        self.drop_pipe();
        (self.fd, self.process) = (from, generation());
        if let Err(error) = start(host, port, to) {
            // SAFETY: the descriptor is this function's own, because no thread has it.
            unsafe { libc::close(to) };
            self.drop_pipe();
            return Err(error);
        }
        (self.host, self.port, self.is_running) = (*host, port, true);
        Ok(None)
    }

    /// Returns the addresses when the lookup is over. The pipe stays open until
    /// [`Lookup::release`], so that the connection's descriptor has another number.
    pub(super) fn advance(&mut self) -> Result<Option<HostAddresses>, LinkError> {
        let mut found = MaybeUninit::<Resolved>::zeroed();
        // SAFETY: the memory is writable for its size.
        let into = unsafe {
            core::slice::from_raw_parts_mut(found.as_mut_ptr().cast::<u8>(), size_of::<Resolved>())
        };
        let read = match self.is_ours() {
            true => socket::read(self.fd, into),
            false => Err(libc::EBADF),
        };
        // SAFETY: the structure consists of integers, for which all bytes are valid.
        let found = unsafe { found.assume_init() };
        self.is_running = false;
        match read {
            Err(libc::EAGAIN) => {
                self.is_running = true;
                Ok(None)
            }
            Ok(length) if length == size_of::<Resolved>() => match found.code {
                0 if found.places.has_next() => Ok(Some(found.places)),
                0 => Err(LinkError::Name(NameFault::Absent)),
                code => Err(fault(code, found.errno)),
            },
            Ok(_) => Err(LinkError::Name(NameFault::NoAnswer)),
            Err(errno) => Err(LinkError::System(Operation::Read, errno)),
        }
    }

    /// Whether the lookup has begun and is not over.
    pub(super) fn is_running(&self) -> bool {
        self.is_running && self.is_ours()
    }

    /// The reading end of the pipe; -1 if there is none.
    pub(super) fn fd(&self) -> c_int {
        self.fd
    }

    /// Closes the pipe, unless a lookup runs.
    pub(super) fn release(&mut self) {
        if !self.is_running() {
            self.drop_pipe();
        }
    }

    fn is_ours(&self) -> bool {
        self.process == generation()
    }

    fn drop_pipe(&mut self) {
        if self.fd >= 0 {
            // SAFETY: the descriptor is this value's own.
            unsafe { libc::close(self.fd) };
        }
        (self.fd, self.is_running) = (-1, false);
    }
}

/// The thread of a running lookup finds its pipe closed, and ends.
impl Drop for Lookup {
    fn drop(&mut self) {
        self.drop_pipe();
    }
}

fn fault(code: c_int, errno: c_int) -> LinkError {
    match code {
        libc::EAI_SYSTEM => LinkError::System(Operation::Lookup, errno),
        libc::EAI_MEMORY => LinkError::System(Operation::Lookup, libc::ENOMEM),
        libc::EAI_AGAIN | libc::EAI_FAIL => LinkError::Name(NameFault::NoAnswer),
        _ => LinkError::Name(NameFault::Absent),
    }
}

/// Starts a thread that looks the name up and writes what it found to `to`, which it closes. After
/// an error the caller still has `to`.
fn start(host: &Text<255>, port: u16, to: c_int) -> Result<(), LinkError> {
    let no_memory = LinkError::System(Operation::Lookup, libc::ENOMEM);
    let layout = core::alloc::Layout::new::<Job>();
    // SAFETY: the layout's size is not 0.
    let job = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) }.cast::<Job>());
    let job = job.ok_or(no_memory)?;
    // SAFETY: the block has the layout of a job and is zeroed, which is valid for its integers.
    let named = unsafe { &mut *job.as_ptr() };
    (named.port, named.to) = (port, to);
    // The name has at most 255 bytes, so a zero byte stays at its end.
    named.host.iter_mut().zip(host.as_bytes()).for_each(|(to, from)| *to = *from);
    let started = match count(1) {
        true => spawn(job).inspect_err(|_| _ = count(-1)),
        false => Err(LinkError::Name(NameFault::TooMany)),
    };
    if started.is_err() {
        // SAFETY: this function's own block, which no thread has.
        unsafe { alloc::alloc::dealloc(job.as_ptr().cast(), layout) };
    }
    started
}

/// Counts a lookup of this process that begins (1) or ends (-1). `false`: there are too many.
fn count(by: i64) -> bool {
    let mine = u64::from(generation()) << 32;
    // Relaxed: the word guards no other memory.
    let counted = RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
        // The threads of the parent are not in a forked process.
        let running = if word >> 32 == mine >> 32 { word as u32 } else { 0 };
        let next = u64::from(running).saturating_add_signed(by);
        (next <= LOOKUPS_MOST).then_some(mine | next)
    });
    counted.is_ok()
}

type Thread = extern "C" fn(*mut c_void) -> *mut c_void;
type Spawn = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    Thread,
    *mut c_void,
) -> c_int;

/// Starts a detached thread that gets no signals, because a signal for the program must interrupt
/// the program's own threads.
fn spawn(job: NonNull<Job>) -> Result<(), LinkError> {
    // A glibc before 2.34 has this function in a library of its own, which a program without
    // threads may lack: then its address is 0 (tools/lib.sh), and such a program waits as it does
    // in its own lookups. black_box: the compiler believes that no function is at 0.
    let create = core::hint::black_box(libc::pthread_create as Spawn as *const ());
    if create.is_null() {
        find(job.as_ptr().cast());
        return Ok(());
    }
    // SAFETY: a function of this type, by the line above.
    let create = unsafe { core::mem::transmute::<*const (), Spawn>(create) };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
    let (mut all, mut before) =
        (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::<libc::sigset_t>::zeroed());
    let mut thread = MaybeUninit::<libc::pthread_t>::zeroed();
    // SAFETY: all pointers are to this function's own values, each initialized by the call before
    // its use. The thread owns the job from here, unless there is no thread.
    let refused = unsafe {
        match libc::pthread_attr_init(attributes.as_mut_ptr()) {
            0 => {
                libc::pthread_attr_setdetachstate(
                    attributes.as_mut_ptr(),
                    libc::PTHREAD_CREATE_DETACHED,
                );
                libc::sigfillset(all.as_mut_ptr());
                // The new thread starts with this thread's mask.
                libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
                let refused =
                    create(thread.as_mut_ptr(), attributes.as_ptr(), find, job.as_ptr().cast());
                libc::sigprocmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
                libc::pthread_attr_destroy(attributes.as_mut_ptr());
                refused
            }
            refused => refused,
        }
    };
    match refused {
        0 => Ok(()),
        errno => Err(LinkError::System(Operation::Lookup, errno)),
    }
}

/// The thread. It owns the job, which `job` points to.
extern "C" fn find(job: *mut c_void) -> *mut c_void {
    // SAFETY: `start` gave this thread a job of its own.
    let Job { host, port, to } = unsafe { job.cast::<Job>().read() };
    // SAFETY: the block's own layout, and nobody else has the block.
    unsafe { alloc::alloc::dealloc(job.cast(), core::alloc::Layout::new::<Job>()) };
    let found = resolve(&host, port);
    count(-1);
    // If the link has been dropped, the write fails, and SIGPIPE is blocked here. Otherwise the
    // pipe is empty and takes all bytes. SAFETY: `found` is readable for its size, and the
    // descriptor is this thread's own.
    unsafe {
        libc::write(to, addr_of!(found).cast(), size_of::<Resolved>());
        libc::close(to);
    }
    null_mut()
}

/// Asks the system's resolver, and waits for it. `host` ends with a zero byte.
fn resolve(host: &[u8; 256], port: u16) -> Resolved {
    let mut found = Resolved { places: HostAddresses::new(), code: 0, errno: 0 };
    // SAFETY: an addrinfo consists of integers and pointers, for which zeroes are valid.
    let mut hints: libc::addrinfo = unsafe { zeroed() };
    // Otherwise each address comes once for each kind of socket.
    (hints.ai_family, hints.ai_socktype) = (libc::AF_UNSPEC, libc::SOCK_STREAM);
    let mut list: *mut libc::addrinfo = null_mut();
    // SAFETY: the name ends with a zero byte, there is no service, and `list` is writable.
    found.code =
        unsafe { libc::getaddrinfo(host.as_ptr().cast(), null(), &hints, addr_of_mut!(list)) };
    if found.code != 0 {
        found.errno = errno();
        return found;
    }
    let mut next = list;
    // SAFETY: each entry is valid until freeaddrinfo.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: the address is readable for the entry's length, by getaddrinfo.
        if let Some(place) = unsafe { HostAddress::of_entry(entry, port) } {
            found.places.push(place);
        }
        next = entry.ai_next;
    }
    // SAFETY: the list is getaddrinfo's, and nobody uses it any more.
    unsafe { libc::freeaddrinfo(list) };
    found
}
