//! Keys from network addresses: one key for a whole prefix.
//!
//! A host on the IPv6 internet usually has a whole /64 and can change its address with every
//! request, so a limit per IPv6 address has no effect. Limit per /64, or per /56 or /48 for
//! customers' networks. For IPv4, limit per address (/32) in most cases.
//!
//! ```
//! use tollbar::prefix::Prefix;
//!
//! let key = |address: &str| Prefix::parse(address.as_bytes(), 32, 64).unwrap();
//! assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9")); // one /64
//! assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
//! assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1")); // IPv4-mapped
//! assert_eq!(key("192.0.2.1"), key("192.0.2.1:4711")); // as some proxies write it
//! assert_eq!(key("192.0.2.1").as_bytes(), [4, 32, 192, 0, 2, 1]);
//! ```

use crate::address;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network prefix as the bytes of a key: the family (4 or 6), the length of the prefix in bits,
/// and the address's first bits. Prefixes of different length or family are different keys.
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

    /// The first `ipv4_bits` or `ipv6_bits` bits of an address, by its family. `None` for more than
    /// 32 or 128 bits, whichever family the address has. IPv6 addresses that stand for an IPv4
    /// address are treated as IPv4: `::ffff:a.b.c.d`, and `64:ff9b::a.b.c.d`
    /// ([`address::translated`]).
    pub fn of(address: IpAddr, ipv4_bits: u32, ipv6_bits: u32) -> Option<Prefix> {
        if !Prefix::fits(ipv4_bits, ipv6_bits) {
            return None;
        }
        match address::translated(address) {
            IpAddr::V4(address) => Prefix::ipv4(address, ipv4_bits),
            IpAddr::V6(address) => Prefix::ipv6(address, ipv6_bits),
        }
    }

    /// The prefix of an address in text, with or without a port, brackets and a zone
    /// ([`address::parse`]). `None` if the text is not an address, and for more than 32 or 128
    /// bits.
    pub fn parse(text: &[u8], ipv4_bits: u32, ipv6_bits: u32) -> Option<Prefix> {
        Prefix::of(address::parse(text)?, ipv4_bits, ipv6_bits)
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
        for (to, byte) in prefix.bytes.iter_mut().zip([family, bits as u8].into_iter().chain(kept))
        {
            *to = byte;
        }
        Some(prefix)
    }
}

#[cfg(test)]
mod tests;
