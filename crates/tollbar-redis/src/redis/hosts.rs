//! Reads /etc/hosts and /etc/resolv.conf.

use super::socket::{HostAddress, HostAddresses};
use super::text::Text;
use core::ffi::{c_int, CStr};
use tollbar::internal::again;

/// The settings of resolv.conf(5) that this resolver follows.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    /// The name servers; the first `count` are set.
    pub(super) servers: [HostAddress; Settings::SERVERS],
    pub(super) count: usize,
    /// The search list: domains with a space after each.
    pub(super) search: Text<255>,
    /// A name with at least this many dots is tried as it is before the search list.
    pub(super) dots: usize,
    /// Nanoseconds for which the resolver waits for one server's answer. The default is a second,
    /// and resolv.conf(5) has five.
    pub(super) timeout: u64,
    /// How many questions each server gets for a name.
    pub(super) attempts: usize,
}

const HOSTS: &CStr = c"/etc/hosts";
const RESOLV_CONF: &CStr = c"/etc/resolv.conf";
const SECOND: u64 = 1_000_000_000;
/// The most bytes that are read of a file.
const FILE_MOST: usize = 64 << 10;
/// The longest line in bytes.
const LINE_MOST: usize = 4096;

impl Settings {
    const SERVERS: usize = 3;

    /// Reads /etc/resolv.conf.
    pub(super) fn read() -> Settings {
        let mut settings = Settings::new();
        each_line(RESOLV_CONF, |line| settings.line(line));
        settings.finish();
        settings
    }

    /// The defaults, before the first line.
    pub(super) fn new() -> Settings {
        Settings {
            servers: [HostAddress::none(); Settings::SERVERS],
            count: 0,
            search: Text::new(),
            dots: 1,
            timeout: SECOND,
            attempts: 2,
        }
    }

    /// Applies a line.
    pub(super) fn line(&mut self, line: &[u8]) {
        let mut words = words(line, b"#;");
        match words.next() {
            Some(b"nameserver") => {
                let place = words.next().and_then(|address| HostAddress::of_text(address, 53));
                if let (Some(to), Some(place)) = (self.servers.get_mut(self.count), place) {
                    *to = place;
                    self.count = self.count.saturating_add(1);
                }
            }
            Some(b"search" | b"domain") => {
                // The last such line counts.
                self.search = Text::new();
                for domain in words {
                    for &byte in domain.iter().chain(b" ") {
                        let _ = self.search.push(byte);
                    }
                }
            }
            Some(b"options") => words.for_each(|option| self.option(option)),
            _ => {}
        }
    }

    /// Ends the reading. Without a name server the resolver asks the one on this machine.
    pub(super) fn finish(&mut self) {
        if let (0, Some(to), Some(here)) =
            (self.count, self.servers.first_mut(), HostAddress::of_text(b"127.0.0.1", 53))
        {
            (*to, self.count) = (here, 1);
        }
    }

    fn option(&mut self, option: &[u8]) {
        let number = |name: &[u8], most: usize| {
            let digits = option.strip_prefix(name).filter(|digits| !digits.is_empty())?;
            let value = digits.iter().try_fold(0_usize, |value, digit| {
                let digit = char::from(*digit).to_digit(10)?;
                value.checked_mul(10)?.checked_add(digit as usize)
            });
            value.map(|value| value.clamp(1, most))
        };
        if let Some(dots) = number(b"ndots:", 15) {
            self.dots = dots;
        } else if let Some(seconds) = number(b"timeout:", 30) {
            self.timeout = SECOND.saturating_mul(seconds as u64);
        } else if let Some(attempts) = number(b"attempts:", 5) {
            self.attempts = attempts;
        }
    }
}

/// The addresses that /etc/hosts has for `host`. If it has none for `localhost`, they are 127.0.0.1
/// and ::1.
pub(super) fn known(host: &[u8], port: u16) -> HostAddresses {
    let mut places = HostAddresses::new();
    each_line(HOSTS, |line| {
        if let Some(place) =
            of_line(line, host).and_then(|address| HostAddress::of_text(address, port))
        {
            places.push(place);
        }
    });
    if !places.has_next() && host.eq_ignore_ascii_case(b"localhost") {
        [b"127.0.0.1".as_slice(), b"::1"]
            .iter()
            .filter_map(|text| HostAddress::of_text(text, port))
            .for_each(|place| {
                places.push(place);
            });
    }
    places
}

/// The address in a line of /etc/hosts, if the line is about `host`.
pub(super) fn of_line<'a>(line: &'a [u8], host: &[u8]) -> Option<&'a [u8]> {
    let host = host.strip_suffix(b".").unwrap_or(host);
    let mut words = words(line, b"#");
    let address = words.next()?;
    words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
}

fn words<'a>(line: &'a [u8], comment: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let line = line.split(move |byte| comment.contains(byte)).next().unwrap_or_default();
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Calls `line` with each line of a file. A file that cannot be read has no lines. Only the first
/// 64 KiB of a file are read, and a line of more than 4 KiB counts as several.
fn each_line(path: &CStr, mut line: impl FnMut(&[u8])) {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: a CStr ends with a zero byte.
    let Ok(fd) = again(|| unsafe { libc::openat(libc::AT_FDCWD, path.as_ptr(), flags) }) else {
        return;
    };
    let mut buffer = [0_u8; LINE_MOST];
    let (mut held, mut total) = (0_usize, 0_usize);
    loop {
        let n = read(fd, buffer.get_mut(held..).unwrap_or_default());
        total = total.saturating_add(n);
        let is_end = n == 0 || total >= FILE_MOST;
        let end = held.saturating_add(n);
        let mut rest = buffer.get(..end).unwrap_or_default();
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            line(rest.get(..at).unwrap_or_default());
            rest = rest.get(at.saturating_add(1)..).unwrap_or_default();
        }
        // The last line may lack its newline, and a line that fills the buffer is cut here.
        held = rest.len();
        if is_end || held == LINE_MOST {
            line(rest);
            held = 0;
        }
        if is_end {
            break;
        }
        let base = buffer.as_mut_ptr();
        // SAFETY: `end` is at most the buffer's length and `held` at most `end`; `copy` allows the
        // two to overlap.
        unsafe { core::ptr::copy(base.add(end.saturating_sub(held)), base, held) };
    }
    // SAFETY: the descriptor is this function's own.
    unsafe { libc::close(fd) };
}

/// Bytes read; 0 at the end, and on an error.
fn read(fd: c_int, into: &mut [u8]) -> usize {
    // SAFETY: `into` is writable for its length.
    let n =
        super::socket::retried(|| unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) });
    n.unwrap_or(0)
}
