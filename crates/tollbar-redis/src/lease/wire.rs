//! Encodes questions as calls of `lease.lua`, and decodes its answers.

use super::bucket::Grant;
use super::driver::Question;
use super::node::Node;
use super::record::GRACE;
use super::ring::KEY_MOST;
use crate::redis::resp::Full;
use crate::redis::{Answer, Arg, Script, Session};
use tollbar::internal::sync::Ordering;

/// The scripts that a client loads into the store.
pub(super) const SCRIPTS: &[Script] =
    &[Script { name: "lease", source: include_str!("lease.lua") }];
const LEASE: usize = 0;

const PREFIX: &[u8] = b"tollbar:{";
const NAME_MOST: usize = 64;

/// A key's name in the store. The limit's name is in braces, so a cluster places all keys of a
/// limit in one slot.
struct StoreKey {
    bytes: [u8; PREFIX.len() + NAME_MOST + 8 + KEY_MOST],
    length: usize,
}

impl StoreKey {
    fn new(parts: &[&[u8]]) -> StoreKey {
        let mut key = StoreKey { bytes: [0; PREFIX.len() + NAME_MOST + 8 + KEY_MOST], length: 0 };
        // The parts always fit: `Fixed::new` refuses a longer name than NAME_MOST, and the ring
        // holds at most KEY_MOST bytes of a key.
        for (place, byte) in key.bytes.iter_mut().zip(parts.iter().flat_map(|part| part.iter())) {
            *place = *byte;
            key.length += 1;
        }
        key
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Queues a question. `fresh` becomes the data's name if the store has no record of the limit.
/// `Full`: nothing was queued.
pub(super) fn put(
    session: &mut Session,
    node: &Node,
    question: &Question<'_>,
    fresh: u64,
) -> Result<(), Full> {
    let epoch = StoreKey::new(&[PREFIX, node.name(), b"}:epoch"]);
    let key = StoreKey::new(&[PREFIX, node.name(), b"}:k:", question.key]);
    let mut run = [0; 40];
    let run_length = session.run_id().iter().zip(&mut run).map(|(from, to)| *to = *from).count();
    let (mut seen_digits, mut fresh_digits) = ([0; 16], [0; 16]);
    let seen = match node.header().epoch.load(Ordering::Relaxed) {
        0 => &[],
        seen => hex(seen, &mut seen_digits),
    };
    let int = |number: u64| Arg::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let (terms, ask) = (&node.terms, &question.ask);
    session.call(
        LEASE,
        &[epoch.bytes(), key.bytes()],
        &[
            int(terms.num),
            int(terms.den),
            int(terms.cap),
            int(terms.debt_cap),
            int(ask.want),
            int(ask.least),
            int(ask.hint),
            int(ask.debt),
            Arg::Bytes(run.get(..run_length).unwrap_or_default()),
            Arg::Bytes(seen),
            Arg::Bytes(hex(fresh.max(1), &mut fresh_digits)),
            int(GRACE),
            int(ask.at),
            int(ask.slack),
            int(terms.hold()),
            int(ask.waiting),
            int(ask.cost),
            int(ask.life),
            int(terms.on_loss),
        ],
    )
}

/// Decodes the script's return value; `None` if it has another form.
pub(super) fn grant(answer: &Answer<'_>) -> Option<Grant> {
    let number = |n| answer.int(n).and_then(|number| u64::try_from(number).ok());
    Some(Grant {
        permits: number(0)?,
        retry: number(1)?,
        tat: decimal(answer.bytes(2)?)?,
        epoch: from_hex(answer.bytes(3)?)?,
        now: decimal(answer.bytes(4)?)?,
        mixed: number(5)? != 0,
        served: number(6)?,
        life: decimal(answer.bytes(7)?)?,
        open: number(8)? != 0,
        most: number(9)?,
    })
}

/// `number` in lower-case hexadecimal without leading zeroes, at the end of `digits`.
fn hex(mut number: u64, digits: &mut [u8; 16]) -> &[u8] {
    let mut length = 0;
    for place in digits.iter_mut().rev() {
        let digit = (number & 15) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' - 10 + digit };
        number >>= 4;
        length += 1;
        if number == 0 {
            break;
        }
    }
    digits.get(16 - length..).unwrap_or_default()
}

fn from_hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        Some(number << 4 | u64::from(char::from(digit).to_digit(16)?))
    })
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        number.checked_mul(10)?.checked_add(u64::from(char::from(digit).to_digit(10)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_back() {
        let mut digits = [0; 16];
        for number in [1, 15, 16, 0xdead_beef, u64::MAX] {
            assert_eq!(from_hex(hex(number, &mut digits)), Some(number));
        }
        assert_eq!((from_hex(b""), from_hex(b"x"), from_hex(&[b'f'; 17])), (None, None, None));
        assert_eq!((decimal(b"120"), decimal(b""), decimal(b"1e3")), (Some(120), None, None));
        assert_eq!(decimal(b"99999999999999999999"), None);
    }

    #[test]
    fn the_longest_name_and_key_fit() {
        let key = StoreKey::new(&[PREFIX, &[b'n'; NAME_MOST], b"}:k:", &[b'k'; KEY_MOST]]);
        assert_eq!(key.bytes().len(), PREFIX.len() + NAME_MOST + 4 + KEY_MOST);
    }
}
