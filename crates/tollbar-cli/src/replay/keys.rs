//! Keys as numbers, in the order of their first request.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

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
        if let Some(&number) = self.numbers.find(hash, |&number| bytes_of(bytes, ends, number) == key) {
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
        self.numbers.insert_unique(hash, number, |&number| hasher.hash_one(bytes_of(bytes, ends, number)));
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

#[inline]
fn bytes_of<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let begin = if number == 0 { 0 } else { ends[number - 1] };
    &bytes[begin..ends[number]]
}
