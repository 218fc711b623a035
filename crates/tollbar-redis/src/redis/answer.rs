//! The return value of a script.

use super::resp::{Items, Reply};

/// The return value of a script: the items of an array. One value counts as an array of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a>(Reply<'a>);

impl<'a> Answer<'a> {
    pub(super) fn new(reply: Reply<'a>) -> Answer<'a> {
        Answer(reply)
    }

    /// Item `n`, from 0, if it is an integer.
    pub fn int(&self, n: usize) -> Option<i64> {
        match self.item(n)? {
            Reply::Int(value) => Some(value),
            _ => None,
        }
    }

    /// Item `n`, from 0, if it is a string.
    pub fn bytes(&self, n: usize) -> Option<&'a [u8]> {
        match self.item(n)? {
            Reply::Bulk(bytes) | Reply::Simple(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Item `n`, from 0.
    pub fn item(&self, n: usize) -> Option<Reply<'a>> {
        match self.items() {
            Some(mut items) => items.nth(n),
            None => (n == 0).then_some(self.0),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items().map_or(1, |items| items.len())
    }

    /// Whether it is an empty array.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn items(&self) -> Option<Items<'a>> {
        match self.0 {
            Reply::Array(items) => Some(items),
            _ => None,
        }
    }
}
