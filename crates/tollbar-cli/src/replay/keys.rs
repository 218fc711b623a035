//! Keys as numbers, in the order of their first request.
//!
//! The key of an address has the bytes that it has in every table of tollbar (`tollbar::prefix`).

use hashbrown::{DefaultHashBuilder, HashTable};
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, Ipv6Addr};

/// All keys of a log.
#[derive(Default)]
pub struct Keys {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// All keys, one after the other.
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<usize>,
}

impl Keys {
    /// The key's number, a new one if it has none; `None` after 2^32 - 1 keys.
    #[inline]
    pub fn number(&mut self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(&number) =
            self.numbers.find(hash, |&number| bytes_of(bytes, ends, number) == key)
        {
            return Some(number);
        }
        self.insert(hash, key)
    }

    #[cold]
    fn insert(&mut self, hash: u64, key: &[u8]) -> Option<u32> {
        let number = u32::try_from(self.ends.len()).ok().filter(|&number| number < u32::MAX)?;
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.numbers
            .insert_unique(hash, number, |&number| hasher.hash_one(bytes_of(bytes, ends, number)));
        Some(number)
    }

    /// The bytes of the key of that number.
    #[inline]
    pub fn bytes(&self, number: u32) -> &[u8] {
        bytes_of(&self.bytes, &self.ends, number)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

/// How a key is shown: the address or network of an address's key (`192.0.2.1`,
/// `2001:db8:1:2::/64`), or the text.
pub fn shown(bytes: &[u8]) -> Cow<'_, [u8]> {
    let network = match bytes {
        [4, bits @ 0..=32, first @ ..] if first.len() == usize::from(bits.div_ceil(8)) => {
            let network = Ipv4Addr::from(filled(first));
            if *bits == 32 {
                network.to_string()
            } else {
                format!("{network}/{bits}")
            }
        }
        [6, bits @ 0..=128, first @ ..] if first.len() == usize::from(bits.div_ceil(8)) => {
            let network = Ipv6Addr::from(filled(first));
            if *bits == 128 {
                network.to_string()
            } else {
                format!("{network}/{bits}")
            }
        }
        _ => return Cow::Borrowed(bytes),
    };
    Cow::Owned(network.into_bytes())
}

/// `N` bytes, of which the last are 0.
fn filled<const N: usize>(first: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    all[..first.len()].copy_from_slice(first);
    all
}

#[inline]
fn bytes_of<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let begin = if number == 0 { 0 } else { ends[number - 1] };
    &bytes[begin..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollbar::prefix::Prefix;

    #[test]
    fn keys_of_addresses_are_shown_as_networks() {
        for (address, v4, v6, text) in [
            ("192.0.2.1", 32, 64, "192.0.2.1"),
            ("::ffff:192.0.2.1", 24, 64, "192.0.2.0/24"),
            ("192.0.2.1", 0, 64, "0.0.0.0/0"),
            ("2001:db8:1:2:3::4", 32, 64, "2001:db8:1:2::/64"),
            ("2001:db8:1:2:3::4", 32, 128, "2001:db8:1:2:3::4"),
            ("2001:db8:1:2:3::4", 32, 57, "2001:db8:1::/57"),
        ] {
            let key = Prefix::parse(address.as_bytes(), v4, v6).expect("an address");
            assert_eq!(String::from_utf8_lossy(&shown(key.as_bytes())), text);
        }
        for text in [&b"gold"[..], b"", b"\x04", b"\x04\x20abc", b"6"] {
            assert_eq!(&*shown(text), text);
        }
    }
}
