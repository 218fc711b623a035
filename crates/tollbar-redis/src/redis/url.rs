//! A server's address, user and database, as one line of text.
//!
//! ```text
//! redis://[user[:password]@]host[:port][/db]        valkey:// is the same
//! unix:/path/to.sock[?db=N&user=NAME&password=SECRET]
//! ```
//!
//! The default port is 6379 and the default database 0. A host is a name, an IPv4 address or an
//! IPv6 address in brackets. In user, password, path and values `%xx` stands for a byte.

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
    /// The database's number.
    pub db: u32,
}

/// The address to connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host's name or address, and a port.
    Tcp(Text<255>, u16),
    /// The path of a unix socket.
    Unix(Text<107>),
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
    /// The text begins with none of `redis:// valkey:// unix:`.
    Scheme,
    /// `rediss://` or `valkeys://`: TLS is not supported.
    Tls,
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
    /// A user of more than 128 bytes, a password of more than 512, a host of more than 255 or a
    /// path of more than 107.
    TooLong,
    /// The path of the socket is not absolute.
    Path,
    /// An unknown option, or one given twice.
    Option,
    /// Text after the end of the URL.
    End,
}

impl Url {
    /// Parses a URL. The error names the column at which the wrong part begins.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let text = text.as_bytes();
        let plain: [&[u8]; 2] = [b"redis://", b"valkey://"];
        for scheme in plain {
            if starts(text, scheme) {
                return UrlReader { text, at: scheme.len() }.tcp();
            }
        }
        if starts(text, b"unix:") {
            return UrlReader { text, at: 5 }.unix();
        }
        let known: [(&[u8], UrlFault); 6] = [
            (b"rediss:", UrlFault::Tls),
            (b"valkeys:", UrlFault::Tls),
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
        Url { address, user: Text::new(), password: Text::new(), db: 0 }
    }
}

impl UrlFault {
    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            UrlFault::Scheme => "expected redis://, valkey:// or unix:",
            UrlFault::Tls => "TLS (rediss://) is not supported; connect through a local TLS proxy such as stunnel",
            UrlFault::Sentinel => "Sentinel (redis-sentinel://) is not supported; give the address of the master",
            UrlFault::Cluster => "Cluster (redis-cluster://) is not supported; give one server's redis:// address",
            UrlFault::Host => "expected a host",
            UrlFault::HostByte => "expected a host's name, an IPv4 address, or an IPv6 address in brackets",
            UrlFault::Port => "expected a port from 1 to 65535",
            UrlFault::Db => "expected the number of a database, 0 to 4294967295",
            UrlFault::Escape => "expected % and two hexadecimal digits that make text without a zero byte",
            UrlFault::TooLong => "too long: a user has at most 128 bytes, a password 512, a host 255, a path 107",
            UrlFault::Path => "expected an absolute path",
            UrlFault::Option => "expected db=, user= or password=, each once",
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
            .field("db", &self.db)
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
    fn tcp(mut self) -> Result<Url, UrlError> {
        let mut url = Url::of(Address::Tcp(Text::new(), 6379));
        // An @ before the path ends user and password. An @ within them is written %40.
        let rest = self.text.get(self.at..).unwrap_or_default();
        let authority = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        if rest.get(..authority).unwrap_or_default().contains(&b'@') {
            url.user = self.decoded(b":@")?;
            if self.eat(b':') {
                url.password = self.decoded(b"@")?;
            }
            if !self.eat(b'@') {
                return Err(self.wrong(UrlFault::HostByte));
            }
        }
        let host = self.host()?;
        let port = if self.eat(b':') { self.port()? } else { 6379 };
        url.address = Address::Tcp(host, port);
        if self.eat(b'/') && self.peek().is_some() {
            url.db = self.db()?;
        }
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
        let (mut db, mut user, mut password) = (false, false, false);
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
            } else {
                return Err(self.wrong(UrlFault::Option));
            };
            if core::mem::replace(seen, true) {
                self.at = start;
                return Err(self.wrong(UrlFault::Option));
            }
            more = self.eat(b'&');
        }
        self.end(url)
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
            None | Some(b':' | b'/') if host.is_empty() => {
                self.at = start;
                Err(self.wrong(UrlFault::Host))
            }
            None | Some(b':' | b'/') => Ok(host),
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
