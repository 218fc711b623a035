//! A server's address, user and database, as one line of text.
//!
//! ```text
//! redis://[user[:password]@]host[:port][,host[:port]...][/db][?option&option...]
//! rediss://...      the same with TLS
//! unix:/path/to.sock[?option&option...]
//! ```
//!
//! `valkey://` and `valkeys://` are the same as `redis://` and `rediss://`. The default port is 6379
//! and the default database 0. A host is a name, an IPv4 address or an IPv6 address in brackets.
//! Several hosts are tried in turn. In user, password, path and values `%xx` stands for a byte.
//!
//! | option | |
//! |---|---|
//! | `db=N` | the database's number |
//! | `user=NAME`, `password=SECRET` | as before the host |
//! | `password_file=PATH` | the password is the first line of a file, which each connection reads again |
//! | `timeout=TIME` | how long to wait for a connection or an answer, at most an hour: `500ms`, `2s` |

use super::text::Text;
use core::fmt;

/// A server's address, and the user and database for the handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Url {
    /// The address to connect to.
    pub address: Address,
    /// The ACL user; empty for the default user.
    pub user: Text<128>,
    /// The password; empty if there is none.
    pub password: Text<512>,
    /// Whether `password` is the path of a file that has the password.
    pub is_password_file: bool,
    /// The database's number.
    pub db: u32,
    /// Nanoseconds to wait for a connection or an answer; 0: the caller's default.
    pub timeout: u64,
    /// Whether the connection has TLS.
    pub is_tls: bool,
}

/// The address to connect to.
#[allow(clippy::large_enum_variant)] // without an allocator a URL is one value
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// One or more hosts.
    Tcp(Hosts),
    /// The path of a unix socket.
    Unix(Text<107>),
}

/// Hosts and their ports, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// As in the URL: at least one host, with commas between them.
    text: Text<400>,
    default_port: u16,
}

/// The first fault of a text, and its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlError {
    /// The column, from 1, at which the wrong part of the text begins; one past the end if the text
    /// stops early.
    pub column: usize,
    /// The kind of fault.
    pub fault: UrlFault,
}

/// The kinds of fault a text can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlFault {
    /// The text begins with none of `redis:// valkey:// rediss:// valkeys:// unix:`.
    Scheme,
    /// `redis-sentinel://` or `valkey-sentinel://`: Sentinel is not supported.
    Sentinel,
    /// `redis-cluster://` or `valkey-cluster://`: Cluster is not supported.
    Cluster,
    /// The host is missing.
    Host,
    /// A byte that no host has, or a bracket that is not closed.
    HostByte,
    /// The port is not 1 to 65535.
    Port,
    /// The database is not a number of 32 bits.
    Db,
    /// `%` without two hexadecimal digits, or decoded text that is not UTF-8 or has a zero byte.
    Escape,
    /// A user of more than 128 bytes, a password or the path of its file of more than 512, a host
    /// of more than 255, hosts of more than 400 together, or a socket's path of more than 107.
    TooLong,
    /// The path of the socket is not absolute.
    Path,
    /// The time of `timeout` is not 1 ms to an hour, in `ms` or `s`.
    Timeout,
    /// An unknown option, or one given twice.
    Option,
    /// Text after the end of the URL.
    End,
}

impl Url {
    /// Parses a URL. The error names the column at which the wrong part begins.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let text = text.as_bytes();
        let schemes: [(&[u8], bool); 4] = [
            (b"redis://", false),
            (b"valkey://", false),
            (b"rediss://", true),
            (b"valkeys://", true),
        ];
        for (scheme, is_tls) in schemes {
            if starts(text, scheme) {
                return UrlReader { text, at: scheme.len() }.tcp(is_tls);
            }
        }
        if starts(text, b"unix:") {
            return UrlReader { text, at: 5 }.unix();
        }
        let known: [(&[u8], UrlFault); 4] = [
            (b"redis-sentinel:", UrlFault::Sentinel),
            (b"valkey-sentinel:", UrlFault::Sentinel),
            (b"redis-cluster:", UrlFault::Cluster),
            (b"valkey-cluster:", UrlFault::Cluster),
        ];
        let fault = known
            .iter()
            .find(|(scheme, _)| starts(text, scheme))
            .map_or(UrlFault::Scheme, |(_, fault)| *fault);
        Err(UrlError { column: 1, fault })
    }

    const fn of(address: Address) -> Url {
        Url {
            address,
            user: Text::new(),
            password: Text::new(),
            is_password_file: false,
            db: 0,
            timeout: 0,
            is_tls: false,
        }
    }
}

impl Hosts {
    /// How many hosts there are.
    #[allow(clippy::len_without_is_empty)] // there is at least one
    pub fn len(&self) -> usize {
        self.texts().count()
    }

    /// The host with this index from 0, and its port.
    pub(super) fn get(&self, index: usize) -> Option<(Text<255>, u16)> {
        let mut reader = UrlReader { text: self.texts().nth(index)?, at: 0 };
        let host = reader.host().ok()?;
        let port = if reader.eat(b':') { reader.port().ok()? } else { self.default_port };
        Some((host, port))
    }

    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.text.as_bytes().split(|byte| *byte == b',')
    }
}

/// As in a URL.
impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl UrlFault {
    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            UrlFault::Scheme => "expected redis://, rediss://, valkey://, valkeys:// or unix:",
            UrlFault::Sentinel => "Sentinel (redis-sentinel://) is not supported; give the address of the master",
            UrlFault::Cluster => "Cluster (redis-cluster://) is not supported; give one server's redis:// address",
            UrlFault::Host => "expected a host",
            UrlFault::HostByte => "expected a host's name, an IPv4 address, or an IPv6 address in brackets",
            UrlFault::Port => "expected a port from 1 to 65535",
            UrlFault::Db => "expected the number of a database, 0 to 4294967295",
            UrlFault::Escape => "expected % and two hexadecimal digits that make text without a zero byte",
            UrlFault::TooLong => "too long: a user has at most 128 bytes, a password or its file's path 512, a host 255, all hosts 400, a socket's path 107",
            UrlFault::Path => "expected an absolute path",
            UrlFault::Option => "expected db=, user=, password=, password_file= or timeout=, each once",
            UrlFault::Timeout => "expected a time from 1ms to 3600s, such as 500ms or 2s",
            UrlFault::End => "expected the end of the URL",
        }
    }
}

/// The password is left out, because this text ends in logs.
impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Url")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("password", &if self.password.is_empty() { "" } else { "***" })
            .field("is_password_file", &self.is_password_file)
            .field("db", &self.db)
            .field("timeout", &self.timeout)
            .field("is_tls", &self.is_tls)
            .finish()
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.fault.message())
    }
}

impl core::error::Error for UrlError {}

struct UrlReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl UrlReader<'_> {
    fn tcp(mut self, is_tls: bool) -> Result<Url, UrlError> {
        let mut url = Url::of(Address::Unix(Text::new()));
        url.is_tls = is_tls;
        // An @ before the path and the options ends user and password. An @ within them is written
        // %40.
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
        let (mut user, mut password) = (false, false);
        if rest.get(..end).unwrap_or_default().contains(&b'@') {
            url.user = self.decoded(b":@")?;
            user = !url.user.is_empty();
            if self.eat(b':') {
                url.password = self.decoded(b"@")?;
                password = true;
            }
            if !self.eat(b'@') {
                return Err(self.wrong(UrlFault::HostByte));
            }
        }
        url.address = Address::Tcp(self.hosts(6379)?);
        let db = self.eat(b'/') && self.peek().is_some_and(|byte| byte != b'?');
        if db {
            url.db = self.db()?;
        }
        self.options(&mut url, [db, user, password])?;
        self.end(url)
    }

    fn unix(mut self) -> Result<Url, UrlError> {
        // unix:///path has an empty authority and means unix:/path.
        if starts(self.text.get(self.at..).unwrap_or_default(), b"///") {
            self.at = self.at.saturating_add(2);
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !starts(rest, b"/") || starts(rest, b"//") {
            return Err(self.wrong(UrlFault::Path));
        }
        let mut url = Url::of(Address::Unix(self.decoded(b"?")?));
        self.options(&mut url, [false; 3])?;
        self.end(url)
    }

    /// Reads the options, if there are any. `given`: whether the text before them had the database,
    /// the user and the password.
    fn options(&mut self, url: &mut Url, given: [bool; 3]) -> Result<(), UrlError> {
        let ([mut db, mut user, mut password], mut timeout) = (given, false);
        let mut more = self.eat(b'?');
        while more {
            let start = self.at;
            let seen = if self.eat_word(b"db=") {
                url.db = self.db()?;
                &mut db
            } else if self.eat_word(b"user=") {
                url.user = self.decoded(b"&")?;
                &mut user
            } else if self.eat_word(b"password=") {
                url.password = self.decoded(b"&")?;
                &mut password
            } else if self.eat_word(b"password_file=") {
                (url.password, url.is_password_file) = (self.decoded(b"&")?, true);
                &mut password
            } else if self.eat_word(b"timeout=") {
                url.timeout = self.time()?;
                &mut timeout
            } else {
                return Err(self.wrong(UrlFault::Option));
            };
            if core::mem::replace(seen, true) {
                self.at = start;
                return Err(self.wrong(UrlFault::Option));
            }
            more = self.eat(b'&');
        }
        Ok(())
    }

    /// A time in nanoseconds.
    fn time(&mut self) -> Result<u64, UrlError> {
        let start = self.at;
        let number = self.number().map(u64::from);
        let unit = if self.eat_word(b"ms") {
            1_000_000
        } else if self.eat(b's') {
            1_000_000_000
        } else {
            0
        };
        let nanos = number.and_then(|number| number.checked_mul(unit));
        nanos
            .filter(|nanos| (1_000_000..=3_600_000_000_000).contains(nanos))
            .ok_or(UrlError { column: start.saturating_add(1), fault: UrlFault::Timeout })
    }

    fn hosts(&mut self, default_port: u16) -> Result<Hosts, UrlError> {
        let start = self.at;
        loop {
            self.host()?;
            if self.eat(b':') {
                self.port()?;
            }
            if !self.eat(b',') {
                break;
            }
        }
        let mut text = Text::new();
        for &byte in self.text.get(start..self.at).unwrap_or_default() {
            if !text.push(byte) {
                self.at = start.saturating_add(text.as_bytes().len());
                return Err(self.wrong(UrlFault::TooLong));
            }
        }
        Ok(Hosts { text, default_port })
    }

    fn host(&mut self) -> Result<Text<255>, UrlError> {
        let start = self.at;
        let mut host = Text::new();
        if self.eat(b'[') {
            while let Some(byte @ (b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b':' | b'.')) =
                self.peek()
            {
                self.keep(&mut host, byte)?;
            }
            if !self.eat(b']') {
                return Err(self.wrong(UrlFault::HostByte));
            }
        } else {
            while let Some(byte @ (b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'-' | b'_')) =
                self.peek()
            {
                self.keep(&mut host, byte)?;
            }
        }
        match self.peek() {
            None | Some(b':' | b'/' | b',' | b'?') if host.is_empty() => {
                self.at = start;
                Err(self.wrong(UrlFault::Host))
            }
            None | Some(b':' | b'/' | b',' | b'?') => Ok(host),
            Some(_) => Err(self.wrong(UrlFault::HostByte)),
        }
    }

    fn port(&mut self) -> Result<u16, UrlError> {
        let start = self.at;
        match self.number().map(u16::try_from) {
            Some(Ok(port)) if port > 0 => Ok(port),
            _ => Err(UrlError { column: start.saturating_add(1), fault: UrlFault::Port }),
        }
    }

    fn db(&mut self) -> Result<u32, UrlError> {
        let start = self.at;
        self.number().ok_or(UrlError { column: start.saturating_add(1), fault: UrlFault::Db })
    }

    /// A decimal number; `None` if there is no digit, or the number does not fit into 32 bits.
    fn number(&mut self) -> Option<u32> {
        let start = self.at;
        let mut value = 0_u32;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            value = value.checked_mul(10)?.checked_add(u32::from(byte & 15))?;
            self.at = self.at.saturating_add(1);
        }
        (self.at > start).then_some(value)
    }

    /// Decodes the text up to the first of `stops`, or to the end.
    fn decoded<const N: usize>(&mut self, stops: &[u8]) -> Result<Text<N>, UrlError> {
        let start = self.at;
        let mut text = Text::new();
        while let Some(byte) = self.peek().filter(|byte| !stops.contains(byte)) {
            if byte != b'%' {
                self.keep(&mut text, byte)?;
                continue;
            }
            let digit = |place: usize| {
                let at = self.at.saturating_add(place);
                self.text.get(at).and_then(|byte| char::from(*byte).to_digit(16))
            };
            let value = match (digit(1), digit(2)) {
                (Some(high), Some(low)) => (high << 4 | low) as u8,
                _ => 0,
            };
            if value == 0 {
                return Err(self.wrong(UrlFault::Escape));
            }
            self.keep(&mut text, value)?;
            self.at = self.at.saturating_add(2);
        }
        if core::str::from_utf8(text.as_bytes()).is_err() {
            self.at = start;
            return Err(self.wrong(UrlFault::Escape));
        }
        Ok(text)
    }

    fn keep<const N: usize>(&mut self, text: &mut Text<N>, byte: u8) -> Result<(), UrlError> {
        if !text.push(byte) {
            return Err(self.wrong(UrlFault::TooLong));
        }
        self.at = self.at.saturating_add(1);
        Ok(())
    }

    fn end(&self, url: Url) -> Result<Url, UrlError> {
        match self.peek() {
            None => Ok(url),
            Some(_) => Err(self.wrong(UrlFault::End)),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.eat_word(&[byte])
    }

    fn eat_word(&mut self, word: &[u8]) -> bool {
        let here = starts(self.text.get(self.at..).unwrap_or_default(), word);
        if here {
            self.at = self.at.saturating_add(word.len());
        }
        here
    }

    fn wrong(&self, fault: UrlFault) -> UrlError {
        UrlError { column: self.at.saturating_add(1), fault }
    }
}

fn starts(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()) == Some(with)
}
