//! Keys from network addresses: one key for a whole prefix.
//!
//! A host on the IPv6 internet usually has a whole /64 and can change its address with every request, so a limit per IPv6 address has no
//! effect. Limit per /64, or per /56 or /48 for customers' networks. For IPv4, limit per address (/32) in most cases.
//!
//! ```
//! use tollbar::prefix::Prefix;
//!
//! let key = |address: &str| Prefix::parse(address.as_bytes(), 32, 64).unwrap();
//! assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9")); // one /64
//! assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
//! assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1")); // IPv4-mapped
//! assert_eq!(key("192.0.2.1").as_bytes(), [4, 32, 192, 0, 2, 1]);
//! ```

#[cfg(unix)]
use core::ffi::{c_char, c_int, c_void};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network prefix as the bytes of a key: the family (4 or 6), the length of the prefix in bits, and the address's first bits. Prefixes of
/// different length or family are different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    bytes: [u8; Prefix::MOST],
    length: u8,
}

impl Prefix {
    /// The number of bytes of the longest prefix, a whole IPv6 address.
    pub const MOST: usize = 18;

    /// The first `bits` bits of an IPv4 address; `None` for more than 32.
    pub fn ipv4(address: Ipv4Addr, bits: u32) -> Option<Prefix> {
        Prefix::new(4, &address.octets(), bits)
    }

    /// The first `bits` bits of an IPv6 address; `None` for more than 128.
    pub fn ipv6(address: Ipv6Addr, bits: u32) -> Option<Prefix> {
        Prefix::new(6, &address.octets(), bits)
    }

    /// The first `ipv4_bits` or `ipv6_bits` bits of an address, by its family. `None` for more than 32 or 128 bits, whichever family the address
    /// has. IPv4-mapped IPv6 addresses (`::ffff:a.b.c.d`) are treated as IPv4.
    pub fn of(address: IpAddr, ipv4_bits: u32, ipv6_bits: u32) -> Option<Prefix> {
        if !Prefix::fits(ipv4_bits, ipv6_bits) {
            return None;
        }
        match address.to_canonical() {
            IpAddr::V4(address) => Prefix::ipv4(address, ipv4_bits),
            IpAddr::V6(address) => Prefix::ipv6(address, ipv6_bits),
        }
    }

    /// The prefix of an address in its text form. It ignores a zone (`%eth0`). `None` if the text is not an address, and for more
    /// than 32 or 128 bits.
    pub fn parse(text: &[u8], ipv4_bits: u32, ipv6_bits: u32) -> Option<Prefix> {
        let end = text.iter().position(|&byte| byte == b'%').unwrap_or(text.len());
        Prefix::of(address(text.get(..end)?)?, ipv4_bits, ipv6_bits)
    }

    /// Whether addresses of both families have so many bits.
    pub const fn fits(ipv4_bits: u32, ipv6_bits: u32) -> bool {
        ipv4_bits <= 32 && ipv6_bits <= 128
    }

    /// The key's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    fn new(family: u8, address: &[u8], bits: u32) -> Option<Prefix> {
        if bits as usize > address.len() * 8 {
            return None;
        }
        let mut prefix = Prefix { bytes: [0; Prefix::MOST], length: 2 + bits.div_ceil(8) as u8 };
        let mut left = bits;
        let kept = address.iter().map(|byte| {
            // Bits beyond the prefix are 0.
            let keep = 0xffu32 << (8 - left.min(8));
            left = left.saturating_sub(8);
            byte & keep as u8
        });
        for (to, byte) in prefix.bytes.iter_mut().zip([family, bits as u8].into_iter().chain(kept)) {
            *to = byte;
        }
        Some(prefix)
    }
}

/// Parses an address with `inet_pton`. The standard library's parser has panics, which the C artefacts must not have.
#[cfg(unix)]
fn address(text: &[u8]) -> Option<IpAddr> {
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
    let found = |family, to: *mut u8| unsafe { inet_pton(family, copy.as_ptr().cast(), to.cast()) } == 1;
    if found(libc::AF_INET, ipv4.as_mut_ptr()) {
        return Some(IpAddr::from(ipv4));
    }
    found(libc::AF_INET6, ipv6.as_mut_ptr()).then(|| IpAddr::from(ipv6))
}

/// Parses an address with the standard library, because only a Unix has `inet_pton`.
#[cfg(not(unix))]
fn address(text: &[u8]) -> Option<IpAddr> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
