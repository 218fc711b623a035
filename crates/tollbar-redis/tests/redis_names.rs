//! Names of hosts: found where the system finds them, and never waited for. Every wait here is
//! bounded by a minute, because the machine may be busy.

use std::ffi::{c_char, c_int, CStr};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tollbar_redis::lease::{Client, Node, Options};
use tollbar_redis::redis::{Link, LinkError, NameFault, Url};

const SECOND: u64 = 1_000_000_000;
const MINUTE: Duration = Duration::from_secs(60);

/// What this program's resolver does about names that end in `.scripted`. It asks the system for
/// all others.
#[derive(Clone, Copy)]
enum Says {
    /// It does not return before it says something else.
    Nothing,
    Address(&'static str),
    Fault(c_int),
}

static SAYS: Mutex<Says> = Mutex::new(Says::Nothing);
static SAID: Condvar = Condvar::new();
/// Calls of the resolver that have begun, and that wait now.
static ASKED: AtomicU32 = AtomicU32::new(0);
static WAITING: AtomicU32 = AtomicU32::new(0);
/// Calls on a thread that signals can interrupt.
static INTERRUPTIBLE: AtomicU32 = AtomicU32::new(0);

type Resolver = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const libc::addrinfo,
    *mut *mut libc::addrinfo,
) -> c_int;

/// Takes the place of libc's function in this program.
///
/// # Safety
/// As libc's.
#[no_mangle]
unsafe extern "C" fn getaddrinfo(
    host: *const c_char,
    service: *const c_char,
    hints: *const libc::addrinfo,
    list: *mut *mut libc::addrinfo,
) -> c_int {
    // SAFETY: the name is a function of libc, of this type.
    let system: Resolver =
        unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"getaddrinfo".as_ptr())) };
    // SAFETY: the caller's text.
    if host.is_null() || !unsafe { CStr::from_ptr(host) }.to_bytes().ends_with(b".scripted") {
        // SAFETY: the caller's arguments.
        return unsafe { system(host, service, hints, list) };
    }
    // SAFETY: a null set asks for the mask only, and an all-zero mask is valid.
    let blocked = unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        [libc::SIGALRM, libc::SIGCHLD, libc::SIGPIPE, libc::SIGTERM]
            .iter()
            .all(|signal| libc::sigismember(&mask, *signal) == 1)
    };
    INTERRUPTIBLE.fetch_add(u32::from(!blocked), Ordering::SeqCst);
    ASKED.fetch_add(1, Ordering::SeqCst);
    WAITING.fetch_add(1, Ordering::SeqCst);
    let says = SAID
        .wait_timeout_while(says(), MINUTE, |says| matches!(says, Says::Nothing))
        .unwrap_or_else(PoisonError::into_inner);
    let now = *says.0;
    drop(says);
    WAITING.fetch_sub(1, Ordering::SeqCst);
    match now {
        Says::Nothing => libc::EAI_AGAIN,
        Says::Fault(code) => code,
        Says::Address(text) => {
            let text = std::ffi::CString::new(text).expect("an address");
            // SAFETY: a text that ends with a zero byte, and the caller's other arguments.
            unsafe { system(text.as_ptr(), service, hints, list) }
        }
    }
}

fn says() -> MutexGuard<'static, Says> {
    SAYS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One test at a time uses the resolver. It begins with what the test gives, and ends when no call
/// waits.
struct Turn {
    _guard: MutexGuard<'static, ()>,
    asked: u32,
}

impl Turn {
    fn new(first: Says) -> Turn {
        static TURN: Mutex<()> = Mutex::new(());
        let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        *says() = first;
        Turn { _guard: guard, asked: ASKED.load(Ordering::SeqCst) }
    }

    fn says(&self, now: Says) {
        *says() = now;
        SAID.notify_all();
    }

    fn asked(&self) -> u32 {
        ASKED.load(Ordering::SeqCst) - self.asked
    }

    /// Waits until as many calls have begun.
    fn until_asked(&self, calls: u32) {
        until("calls of the resolver", || self.asked() >= calls);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.says(Says::Fault(libc::EAI_AGAIN));
        let end = Instant::now() + MINUTE;
        while WAITING.load(Ordering::SeqCst) != 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + MINUTE;
    while !done() {
        assert!(Instant::now() < end, "a minute is not enough for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn link(host: &str, port: u16) -> Link {
    Link::new(&Url::parse(&format!("redis://{host}:{port}")).expect("a URL"))
}

/// Connects, and waits until the link is connected or has failed.
fn through(link: &mut Link) -> Result<(), LinkError> {
    link.connect()?;
    let end = Instant::now() + MINUTE;
    while !link.advance()? {
        assert!(Instant::now() < end, "a minute is not enough to connect");
        link.wait(true, SECOND)?;
    }
    Ok(())
}

/// Listeners at one port of two addresses of this machine.
fn listeners() -> (TcpListener, TcpListener, u16) {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = first.local_addr().expect("an address").port();
        // Another program may have this port of the second address.
        if let Ok(second) = TcpListener::bind(("127.0.0.2", port)) {
            return (first, second, port);
        }
    }
}

/// Each connection looks the name up again, so the link follows a name that moves. While the
/// resolver fails, the link uses the last addresses.
#[test]
fn a_name_that_moves_is_followed() {
    let turn = Turn::new(Says::Address("127.0.0.1"));
    let (first, second, port) = listeners();
    let mut link = link("store.scripted", port);
    through(&mut link).expect("the first");
    first.accept().expect("a connection");
    turn.says(Says::Address("127.0.0.2"));
    through(&mut link).expect("the second");
    second.accept().expect("a connection");
    turn.says(Says::Fault(libc::EAI_AGAIN));
    through(&mut link).expect("the second, by memory");
    second.accept().expect("a connection");
    turn.says(Says::Address("127.0.0.1"));
    through(&mut link).expect("the first");
    first.accept().expect("a connection");
    assert_eq!(turn.asked(), 4);
    assert_eq!(INTERRUPTIBLE.load(Ordering::SeqCst), 0, "a lookup's thread takes signals");
}

/// No call waits for a resolver that does not return: connecting, advancing and closing return at
/// once. However often the link begins again, it has one thread. While that waits, every second
/// connection goes to the last known address.
#[test]
fn a_silent_resolver_costs_no_wait_and_one_thread() {
    let turn = Turn::new(Says::Address("127.0.0.1"));
    let (first, _second, port) = listeners();
    let mut link = link("store.scripted", port);
    through(&mut link).expect("the first");
    first.accept().expect("a connection");
    turn.says(Says::Nothing);
    link.connect().expect("a lookup");
    turn.until_asked(2);
    for _ in 0..100 {
        assert_eq!(link.advance(), Ok(false));
        assert!(link.fd() >= 0 && link.wants(true).readable && !link.wants(true).writable);
        assert!(!link.wait(true, 0).expect("a wait").readable);
    }
    for _ in 0..20 {
        link.close();
        assert_eq!(link.fd(), -1);
        through(&mut link).expect("by memory");
        first.accept().expect("a connection");
        link.close();
        link.connect().expect("the lookup goes on");
        assert_eq!(link.advance(), Ok(false));
    }
    assert_eq!(turn.asked(), 2);
    turn.says(Says::Address("127.0.0.1"));
    until("the lookup", || link.wait(true, SECOND).expect("a wait").readable);
    let end = Instant::now() + MINUTE;
    while !link.advance().expect("the lookup's address") {
        assert!(Instant::now() < end, "a minute is not enough to connect");
    }
    first.accept().expect("a connection");
    assert_eq!(turn.asked(), 2);
}

/// A process has at most 16 lookups that wait, whatever becomes of their links.
#[test]
fn links_that_are_dropped_leave_a_bounded_number_of_threads() {
    let turn = Turn::new(Says::Nothing);
    for round in 0..40 {
        let began = link("store.scripted", 1).connect();
        assert_eq!(
            began,
            if round < 16 { Ok(()) } else { Err(LinkError::Name(NameFault::TooMany)) },
            "{round}"
        );
    }
    turn.until_asked(16);
    turn.says(Says::Fault(libc::EAI_AGAIN));
    let end = Instant::now() + MINUTE;
    // The links are gone, so the threads end one after the other.
    let began = loop {
        match link("store.scripted", 1).connect() {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(1)),
            began => break began,
        }
    };
    assert_eq!(began, Ok(()));
    turn.until_asked(17);
    assert_eq!(turn.asked(), 17);
}

#[test]
fn a_fault_says_whether_the_name_is_unknown() {
    let turn = Turn::new(Says::Nothing);
    for (code, fault) in [
        (libc::EAI_NONAME, NameFault::Absent),
        (libc::EAI_AGAIN, NameFault::NoAnswer),
        (libc::EAI_FAIL, NameFault::NoAnswer),
    ] {
        turn.says(Says::Fault(code));
        assert_eq!(through(&mut link("store.scripted", 1)), Err(LinkError::Name(fault)));
    }
}

/// A process that is forked during a lookup has a lookup of its own, and its parent keeps the
/// answer.
#[test]
fn a_forked_process_looks_up_by_itself() {
    let turn = Turn::new(Says::Nothing);
    let (first, _second, port) = listeners();
    let mut link = link("store.scripted", port);
    link.connect().expect("a lookup");
    turn.until_asked(1);
    // SAFETY: the child calls the link, which allocates by libc's allocator, and ends. libc's fork
    // keeps its allocator usable.
    let child = unsafe { libc::fork() };
    if child == 0 {
        link.close();
        let own = link.connect().is_ok() && link.fd() >= 0 && link.advance() == Ok(false);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!own)) };
    }
    let mut status = 0;
    // SAFETY: the child's number, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    turn.says(Says::Address("127.0.0.1"));
    let end = Instant::now() + MINUTE;
    while !link.advance().expect("the lookup's address") {
        assert!(Instant::now() < end, "a minute is not enough to connect");
        link.wait(true, SECOND).expect("a wait");
    }
    first.accept().expect("a connection");
}

/// The resolver never returns. A tick or a close that waited for it would take a minute.
#[test]
fn no_tick_waits_for_the_resolver() {
    let turn = Turn::new(Says::Nothing);
    let policy = "1000/s burst 500".parse().expect("a policy");
    let node = Node::private("names", &policy, &Options::new(1)).expect("a node");
    let url = Url::parse("redis://store.scripted").expect("a URL");
    let mut client = Client::new(&url).and_then(|client| client.with(&node)).expect("a client");
    for _ in 0..1000 {
        client.tick();
    }
    turn.until_asked(1);
    assert!(node.check(b"k", 1).is_allowed(), "the reserve admits while there is no store");
    assert!(!client.close(0), "the store has not confirmed the debt");
    assert_eq!(WAITING.load(Ordering::SeqCst), 1, "the one lookup still waits");
    let mut other = Client::new(&url).and_then(|client| client.with(&node)).expect("a client");
    assert!(other.close(0), "this client has read no debt");
}

#[test]
fn addresses_ask_nobody() {
    let (first, _second, port) = listeners();
    let mut link = link("127.0.0.1", port);
    assert_eq!(link.connect(), Ok(()));
    through(&mut link).expect("an address");
    first.accept().expect("a connection");
}

#[cfg(target_os = "linux")]
#[path = "redis_names/system.rs"]
mod system;
