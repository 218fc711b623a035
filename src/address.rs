//! Addresses of clients: one reader for what connections, proxies and logs write, and the client
//! behind proxies.
//!
//! ```
//! use tollbar::address::{self, Network, Peer};
//!
//! let read = |text: &str| address::parse(text.as_bytes()).map(|address| address.to_string());
//! assert_eq!(read("192.0.2.1:4711").as_deref(), Some("192.0.2.1"));
//! assert_eq!(read("[2001:db8::1]:443").as_deref(), Some("2001:db8::1"));
//! assert_eq!(read("fe80::1%eth0").as_deref(), Some("fe80::1"));
//! assert_eq!(read("::ffff:192.0.2.1").as_deref(), Some("192.0.2.1"));
//! assert_eq!(read("unknown"), None);
//!
//! // The client is the last hop that no trusted proxy has. What stands before it was written by the client itself.
//! let proxies = [Network::parse(b"10.0.0.0/8").unwrap()];
//! let peer = Peer::parse(b"10.0.0.7").unwrap();
//! let client = address::client(peer, proxies.into_iter(), [&b"203.0.113.9, 192.0.2.1, 10.0.0.3"[..]].into_iter());
//! assert_eq!(client, address::parse(b"192.0.2.1"));
//! ```

#[cfg(unix)]
use core::ffi::{c_char, c_int, c_void};
use core::net::{IpAddr, Ipv4Addr};

/// Reads an address: `192.0.2.1`, `2001:db8::1`, and what servers and proxies write in their place:
/// with a port (`192.0.2.1:80`, `[2001:db8::1]:80`), in brackets (`[2001:db8::1]`), with a zone
/// (`fe80::1%eth0`), and with blanks around it. The port and the zone do not count. An IPv4-mapped
/// address (`::ffff:192.0.2.1`) is IPv4. `None` for every other text.
pub fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = text.trim_ascii();
    let (address, port) = match text.strip_prefix(b"[") {
        Some(inside) => {
            let (address, rest) = split(inside, b']')?;
            (address, if rest.is_empty() { None } else { Some(rest.strip_prefix(b":")?) })
        }
        // With more than one colon it is an IPv6 address, which has a port only behind brackets.
        None => match split(text, b':') {
            Some((address, port)) if !port.contains(&b':') => (address, Some(port)),
            _ => (text, None),
        },
    };
    if port.is_some_and(|port| number(port, u16::MAX.into()).is_none()) {
        return None;
    }
    let read = match split(address, b'%') {
        Some((_, [])) => None,
        Some((address, _)) => plain(address).filter(IpAddr::is_ipv6),
        None => plain(address),
    };
    read.map(|address| address.to_canonical())
}

/// The IPv4 address that a translator (NAT64) has put into an IPv6 address of the well-known prefix
/// 64:ff9b::/96; every other address as it is, IPv4-mapped ones as IPv4. All of IPv4 is one /64
/// there, so a limit for each /64 would be one limit for all these clients.
pub fn translated(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ipv6) => match ipv6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
            }
            _ => IpAddr::V6(ipv6),
        },
        ipv4 => ipv4,
    }
}

/// Networks of trusted proxies: `10.0.0.0/8`, one address, or `unix:` for connections by a Unix
/// socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first address, and how many of its bits count. `None`: Unix sockets.
    addresses: Option<(IpAddr, u8)>,
}

impl Network {
    /// Connections by a Unix socket.
    pub const UNIX: Network = Network { addresses: None };

    /// A network of all addresses with the first `bits` bits of `address`. `None` for more bits
    /// than the address has, and for an address with bits behind these.
    pub fn new(address: IpAddr, bits: u8) -> Option<Network> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let fits = bits <= most && value(address) & !mask(address, bits) == 0;
        fits.then_some(Network { addresses: Some((address, bits)) })
    }

    /// Reads `10.0.0.0/8`, `2001:db8::/32`, an address, or `unix:`. `None` for another text, and
    /// for a network with bits beyond its prefix.
    pub fn parse(text: &[u8]) -> Option<Network> {
        if text == b"unix:" {
            return Some(Network::UNIX);
        }
        let Some((address, bits)) = split(text, b'/') else {
            let address = plain(text)?;
            return Network::new(address, if address.is_ipv4() { 32 } else { 128 });
        };
        Network::new(plain(address)?, number(bits, 128)? as u8)
    }

    /// The first address, and how many of its bits count. `None` for Unix sockets.
    pub fn addresses(&self) -> Option<(IpAddr, u8)> {
        self.addresses
    }

    /// Whether the address is in the network. IPv4-mapped IPv6 addresses are IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.addresses.is_some_and(|(first, bits)| {
            address.is_ipv4() == first.is_ipv4()
                && value(address) & mask(first, bits) == value(first)
        })
    }

    /// Whether the network has every address of its family.
    pub fn is_everything(&self) -> bool {
        self.addresses.is_some_and(|(_, bits)| bits == 0)
    }

    fn has(&self, peer: Peer) -> bool {
        match peer {
            Peer::Unix => self.addresses.is_none(),
            Peer::Address(address) => self.contains(address),
        }
    }
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A Unix socket, which has no address.
    Unix,
    /// An address.
    Address(IpAddr),
}

impl Peer {
    /// Reads an address as [`parse`] does, or a Unix socket as servers name it: an empty text,
    /// `unix:` or `@` with or without a name. `None` for another text.
    pub fn parse(text: &[u8]) -> Option<Peer> {
        match text.first() {
            None | Some(b'@') => Some(Peer::Unix),
            _ if text.starts_with(b"unix:") => Some(Peer::Unix),
            _ => parse(text).map(Peer::Address),
        }
    }
}

/// The client's address: the peer's or, if the peer is a trusted proxy, that of the right-most hop
/// in X-Forwarded-For which is no trusted proxy. `forwarded` yields the header's values from the
/// last to the first. `None` for a Unix socket without such a hop.
///
/// A client can write anything at the left of the header, and each proxy adds at the right the
/// address that it saw. So the walk goes from the right and ends at the first address that is not
/// trusted. It also ends at a text that is no address. Then the last trusted proxy is the client.
pub fn client<'a>(
    peer: Peer,
    trusted: impl Iterator<Item = Network> + Clone,
    forwarded: impl Iterator<Item = &'a [u8]>,
) -> Option<IpAddr> {
    let is_trusted = |peer: Peer| trusted.clone().any(|network| network.has(peer));
    let mut client = match peer {
        Peer::Unix => None,
        Peer::Address(address) => Some(address.to_canonical()),
    };
    if !is_trusted(peer) {
        return client;
    }
    for value in forwarded {
        for hop in value.rsplit(|&byte| byte == b',') {
            let Some(address) = parse(hop) else { return client };
            client = Some(address);
            if !is_trusted(Peer::Address(address)) {
                return client;
            }
        }
    }
    client
}

fn value(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// A 1 for each bit of the address that counts.
fn mask(address: IpAddr, bits: u8) -> u128 {
    let all = if address.is_ipv4() { 32u32 } else { 128 };
    u128::MAX.checked_shl(all.saturating_sub(u32::from(bits))).unwrap_or(0)
}

/// What is before the first `at`, and what is behind it.
fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|&byte| byte == at)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// A number of decimal digits, up to `most`, which is less than 10^8.
fn number(digits: &[u8], most: u32) -> Option<u32> {
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    (number <= most).then_some(number)
}

/// Parses an address without additions, with `inet_pton`. The standard library's parser has panics,
/// which the C artefacts must not have.
#[cfg(unix)]
fn plain(text: &[u8]) -> Option<IpAddr> {
    extern "C" {
        fn inet_pton(family: c_int, text: *const c_char, address: *mut c_void) -> c_int;
    }
    // Room for the longest address and a NUL.
    let mut copy = [0u8; 46];
    if text.len() >= copy.len() || text.contains(&0) {
        return None;
    }
    for (to, byte) in copy.iter_mut().zip(text) {
        *to = *byte;
    }
    let (mut ipv4, mut ipv6) = ([0u8; 4], [0u8; 16]);
    // SAFETY: `copy` is NUL-terminated, and `to` has room for an address of the family.
    let found =
        |family, to: *mut u8| unsafe { inet_pton(family, copy.as_ptr().cast(), to.cast()) } == 1;
    if found(libc::AF_INET, ipv4.as_mut_ptr()) {
        return Some(IpAddr::from(ipv4));
    }
    found(libc::AF_INET6, ipv6.as_mut_ptr()).then(|| IpAddr::from(ipv6))
}

/// Parses an address without additions, with the standard library, because only a Unix has
/// `inet_pton`.
#[cfg(not(unix))]
fn plain(text: &[u8]) -> Option<IpAddr> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
