//! Encodes questions as calls of `lease.lua`, and decodes its answers.

use super::ask::{Ask, Requester};
use super::bucket::Grant;
use super::driver::Question;
use super::node::Node;
use super::ring::KEY_MOST;
use super::terms::{fitting, Terms, PERMITS_MOST};
use crate::redis::resp::Full;
use crate::redis::{Answer, Arg, Script, Session};
use crate::store::{Connection, StoreError};
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

/// Queues a question. `first`: it is the first on its connection. `fresh` becomes the data's name
/// if the store has no record of the limit. `Full`: nothing was queued.
pub(super) fn put(
    session: &mut Session,
    node: &Node,
    question: &Question<'_>,
    first: bool,
    fresh: u64,
) -> Result<(), Full> {
    let record = StoreKey::new(&[PREFIX, node.name(), b"}:record"]);
    let key = StoreKey::new(&[PREFIX, node.name(), b"}:k:", question.key]);
    let header = node.header();
    let seen = header.epoch.load(Ordering::Relaxed);
    let heard = header.heard.load(Ordering::Relaxed);
    let text = TermsText::new(&node.terms());
    call(
        session,
        [&record, &key],
        text.bytes(),
        &question.ask,
        &Requester { seen, heard, first, fresh },
    )
}

/// Asks the record of the limit `name`, without a key's question: with terms of a higher version
/// than the record's puts them in force. Returns the terms in force; `None`: those of the question.
pub(super) fn ask_record(
    connection: &mut Connection,
    name: &[u8],
    terms: &[u8],
    deadline: u64,
) -> Result<Recorded, StoreError> {
    let record = StoreKey::new(&[PREFIX, name, b"}:record"]);
    let key = StoreKey::new(&[PREFIX, name, b"}:k:"]);
    let from = Requester { first: true, ..Requester::default() };
    with_args(terms, &Ask::default(), &from, |args| {
        connection.call(LEASE, &[record.bytes(), key.bytes()], args, deadline, |answer| {
            Ok(match (answer.bytes(9), answer.int(0)) {
                (Some(b""), _) => Recorded::Same,
                (Some(text), _) => Recorded::Other(self::terms(text).ok_or(StoreError::Protocol)?),
                (None, None) => Recorded::Missing,
                (None, _) => return Err(StoreError::Protocol),
            })
        })
    })
}

/// What a store's record of a limit has.
pub(super) enum Recorded {
    /// There is no record.
    Missing,
    /// The terms of the question.
    Same,
    /// These terms.
    Other(Terms),
}

fn call(
    session: &mut Session,
    [record, key]: [&StoreKey; 2],
    terms: &[u8],
    ask: &Ask,
    from: &Requester,
) -> Result<(), Full> {
    with_args(terms, ask, from, |args| session.call(LEASE, &[record.bytes(), key.bytes()], args))
}

fn with_args<T>(
    terms: &[u8],
    ask: &Ask,
    from: &Requester,
    call: impl FnOnce(&[Arg<'_>]) -> T,
) -> T {
    let (mut seen_digits, mut fresh_digits) = ([0; 16], [0; 16]);
    let seen = match from.seen {
        0 => &[],
        seen => hex(seen, &mut seen_digits),
    };
    let int = |number: u64| Arg::Int(i64::try_from(number).unwrap_or(i64::MAX));
    call(&[
        Arg::Bytes(terms),
        int(ask.want),
        int(ask.least),
        int(ask.hint),
        int(ask.debt),
        Arg::Bytes(seen),
        Arg::Bytes(hex(from.fresh.max(1), &mut fresh_digits)),
        int(from.heard),
        int(ask.at),
        int(ask.slack),
        int(ask.waiting),
        int(ask.cost),
        int(ask.life),
        int(u64::from(from.first)),
    ])
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
        served: number(5)?,
        life: decimal(answer.bytes(6)?)?,
        open: number(7)? != 0,
        most: number(8)?,
        terms: match answer.bytes(9)? {
            b"" => None,
            text => Some(terms(text)?),
        },
    })
}

/// Terms as the script takes them: their numbers in decimal.
pub(super) struct TermsText {
    bytes: [u8; TERMS_MOST],
    length: usize,
}

const TERMS_MOST: usize = 13 * 21;

impl TermsText {
    pub(super) fn new(terms: &Terms) -> TermsText {
        let mut text = TermsText { bytes: [0; TERMS_MOST], length: 0 };
        for number in [
            terms.version,
            terms.num,
            terms.den,
            terms.burst,
            terms.cap,
            terms.debt_cap,
            terms.life,
            terms.overdraft,
            terms.nodes,
            terms.on_loss,
            terms.flags,
            terms.overdraft_before,
            terms.since,
        ] {
            if text.length != 0 {
                text.push(b' ');
            }
            text.push_decimal(number);
        }
        text
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn push_decimal(&mut self, number: u64) {
        let digits = number.checked_ilog10().unwrap_or(0);
        for digit in (0..=digits).rev() {
            let power = 10_u64.saturating_pow(digit);
            self.push(b'0' + (number.checked_div(power).unwrap_or(0) % 10) as u8);
        }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

/// The terms of a text; `None` if it is none, or no machine could have made its numbers.
fn terms(text: &[u8]) -> Option<Terms> {
    let mut numbers = text.split(|byte| *byte == b' ').map(decimal);
    let mut next = || numbers.next().flatten();
    let mut terms = Terms {
        version: next()?,
        num: next()?,
        den: next()?,
        burst: next()?,
        cap: next()?,
        debt_cap: next()?,
        most: 0,
        life: next()?,
        overdraft: next()?,
        nodes: next()?,
        on_loss: next()?,
        flags: next()?,
        overdraft_before: next()?,
        since: next()?,
        fallback: 0,
    };
    terms.most = fitting(terms.cap, terms.num, terms.den).min(PERMITS_MOST);
    terms.may_be_made().then_some(terms)
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
