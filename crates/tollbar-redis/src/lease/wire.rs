//! Encodes questions as calls of `lease.lua`, and decodes its answers.

use super::ask::{Ask, Requester};
use super::bucket::Grant;
use super::driver::{Driver, Question};
use super::node::Node;
use super::ring::KEY_MOST;
use super::terms::{fitting, Terms, PERMITS_MOST};
use crate::redis::resp::Writer;
use crate::redis::{Arg, Fault, Script};
use crate::store::{Connection, StoreError};
use core::ffi::CStr;
use tollbar::internal::sync::Ordering;

/// The script of all calls, in Lua. It returns an array of one string.
pub const CALL_SCRIPT: &str = match CALL_SCRIPT_C.to_str() {
    Ok(script) => script,
    Err(_) => "",
};

/// [`CALL_SCRIPT`] for C.
pub const CALL_SCRIPT_C: &CStr =
    match CStr::from_bytes_with_nul(concat!(include_str!("lease.lua"), "\0").as_bytes()) {
        Ok(script) => script,
        Err(_) => c"",
    };

/// The scripts that a client loads into the store.
pub(super) const SCRIPTS: &[Script] = &[Script { name: "lease", source: CALL_SCRIPT }];
/// The number of `lease.lua` among [`SCRIPTS`].
pub(super) const LEASE: usize = 0;

const PREFIX: &[u8] = b"tollbar:{";
const NAME_MOST: usize = 64;

/// A key's name in the store. The limit's name is in braces, so a cluster places all keys of a
/// limit in one slot.
pub(super) struct StoreKey {
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

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The name of the limit's record in the store.
pub(super) fn record_key(node: &Node) -> StoreKey {
    StoreKey::new(&[PREFIX, node.name(), b"}:record"])
}

/// The name of one of the limit's keys in the store.
pub(super) fn key(node: &Node, key: &[u8]) -> StoreKey {
    StoreKey::new(&[PREFIX, node.name(), b"}:k:", key])
}

/// The questions of one limit in a call: the `count` last ones of the driver's flight. One without
/// a key stands alone.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) node: &'a Node,
    pub(super) driver: &'a Driver,
    pub(super) count: usize,
    /// The node's time.
    pub(super) now: u64,
    /// Whether these are the first questions of the limit on the connection.
    pub(super) first: bool,
}

impl<'a> Batch<'a> {
    fn questions(self) -> impl Iterator<Item = Question<'a>> {
        let first = self.driver.in_flight().saturating_sub(self.count);
        (0..self.count)
            .filter_map(move |n| self.driver.asked(self.node, first.saturating_add(n), self.now))
    }

    fn keys(self) -> usize {
        self.questions().filter(|question| question.key.is_some()).count()
    }

    fn header(self) -> Packed {
        let header = self.node.header();
        let from = Requester {
            seen: header.epoch.load(Ordering::Relaxed),
            heard: header.heard.load(Ordering::Relaxed),
            first: self.first,
            fresh: 0,
        };
        let ask = self.questions().next().map_or(Ask::default(), |question| question.ask);
        Packed::header(self.keys(), &ask, &from)
    }
}

/// The most bytes of a call with questions about so many keys of so many limits.
pub(super) const fn bytes_most(limits: usize, keys: usize) -> usize {
    // The lengths and line ends around an argument.
    const FRAME: usize = 12;
    const COMMAND: usize = 160;
    const KEY: usize = PREFIX.len() + NAME_MOST + 8 + KEY_MOST;
    const RECORD: usize = PREFIX.len() + NAME_MOST + 8;
    COMMAND
        + limits * (RECORD + PACKED_MOST + TERMS_MOST + 3 * FRAME)
        + keys * (KEY + PACKED_MOST + 2 * FRAME)
}

/// How many keys and how many arguments a call with these questions has.
pub(super) fn counts<'a>(batches: impl Iterator<Item = Batch<'a>>) -> (usize, usize) {
    let (limits, keys) = batches.fold((0_usize, 0_usize), |(limits, keys), batch| {
        (limits.saturating_add(1), keys.saturating_add(batch.keys()))
    });
    let parameters = 2;
    (limits + keys, parameters + 2 * limits + keys)
}

/// Writes the keys and then the arguments of a call with the questions of several limits. `fresh`
/// becomes the data's name where the store has no record of a limit.
pub(super) fn write<'a>(
    writer: &mut Writer<'_>,
    batches: impl Iterator<Item = Batch<'a>> + Clone,
    fresh: u64,
) {
    for batch in batches.clone() {
        writer.bulk(record_key(batch.node).bytes());
    }
    for batch in batches.clone() {
        for name in batch.questions().filter_map(|question| question.key) {
            writer.bulk(key(batch.node, name).bytes());
        }
    }
    writer.bulk(hex(fresh.max(1), &mut [0; 16])).int(batches.clone().count() as i64);
    for batch in batches.clone() {
        writer.bulk(batch.header().bytes());
        writer.bulk(TermsText::new(&batch.node.terms()).bytes());
    }
    for batch in batches {
        let questions = batch.questions().filter(|question| question.key.is_some());
        for Question { ask, .. } in questions {
            let numbers = [ask.want, ask.least, ask.hint, ask.debt, ask.waiting, ask.cost];
            writer.bulk(Packed::new(&numbers).bytes());
        }
    }
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
    let from = Requester { first: true, ..Requester::default() };
    let header = Packed::header(0, &Ask::default(), &from);
    let args = [Arg::Int(1), Arg::Int(1), Arg::Bytes(header.bytes()), Arg::Bytes(terms)];
    connection.call(LEASE, &[record.bytes()], &args, deadline, |answer| {
        match answer.bytes(0).and_then(|item| grants(item, 0)) {
            Some(Ok(Grants { terms: None, .. })) => Ok(Recorded::Same),
            Some(Ok(Grants { terms: Some(terms), .. })) => Ok(Recorded::Other(terms)),
            Some(Err(Refusal { text: b"", .. })) => Ok(Recorded::Missing),
            Some(Err(Refusal { text, .. })) => {
                Err(StoreError::of(Fault::of(text), core::str::from_utf8(text).unwrap_or_default()))
            }
            None => Err(StoreError::Protocol),
        }
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

/// The script's return value for one limit. [`Grants::next`] gives the grants in the order of the
/// questions.
#[derive(Clone, Copy)]
pub(super) struct Grants<'a> {
    now: u64,
    most: u64,
    epoch: u64,
    terms: Option<Terms>,
    rest: &'a [u8],
}

/// Why the script did not answer a limit's questions.
pub(super) struct Refusal<'a> {
    /// The number of the question whose key could not be written, from 1; 0: the record.
    pub(super) question: usize,
    /// The store's error; empty if the store has no record and the question no terms to make one.
    pub(super) text: &'a [u8],
}

/// Decodes an item of the script's return value, which answers `count` questions about keys.
/// `None`: it has another form.
pub(super) fn grants(item: &[u8], count: usize) -> Option<Result<Grants<'_>, Refusal<'_>>> {
    let (kind, bytes) = item.split_first()?;
    match kind {
        b'+' => {
            let (rest, tail) = bytes.split_at_checked(16 + count.checked_mul(48)?)?;
            let mut tail = tail.splitn(2, |byte| *byte == b';');
            let epoch = from_hex(tail.next()?)?;
            let terms = match tail.next()? {
                b"" => None,
                text => Some(terms(text)?),
            };
            let mut grants = Grants { now: 0, most: 0, epoch, terms, rest };
            (grants.now, grants.most) = (grants.number()?, grants.number()?);
            Some(Ok(grants))
        }
        b'-' => {
            let at = bytes.iter().position(|byte| *byte == b' ')?;
            let question = usize::try_from(decimal(bytes.get(..at)?)?).ok()?;
            let text = place_cut(bytes.get(at.saturating_add(1)..)?);
            Some(Err(Refusal { question, text }))
        }
        _ => None,
    }
}

impl Grants<'_> {
    /// The next grant. After the last one, what the record alone says.
    pub(super) fn next(&mut self) -> Grant {
        let mut number = || self.number().unwrap_or(0);
        let (permits, retry, tat) = (number(), number(), number());
        let (served, life, open) = (number(), number(), number() != 0);
        let Grants { now, most, epoch, terms, .. } = *self;
        Grant { permits, served, retry, life, open, most, tat, epoch, now, terms }
    }

    fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(f64::from_le_bytes(*first) as u64)
    }
}

/// An error's text without the place in the script that servers of version 6 put before it:
/// `@user_script: 12: -OOM …`.
fn place_cut(text: &[u8]) -> &[u8] {
    if !text.starts_with(b"@user_script: ") {
        return text;
    }
    let rest = text.splitn(3, |byte| *byte == b':').nth(2).unwrap_or(text).trim_ascii();
    rest.strip_prefix(b"-").unwrap_or(rest)
}

/// Numbers as the script's `struct.unpack` reads them, eight bytes each, and bytes after them.
struct Packed {
    bytes: [u8; PACKED_MOST],
    length: usize,
}

/// Six numbers, or as many and the name of the data.
const PACKED_MOST: usize = 6 * 8 + 16;

impl Packed {
    fn new(numbers: &[u64]) -> Packed {
        let mut packed = Packed { bytes: [0; PACKED_MOST], length: 0 };
        for number in numbers {
            packed.put(&(*number as f64).to_le_bytes());
        }
        packed
    }

    /// What is about one limit of a call with `keys` questions.
    fn header(keys: usize, ask: &Ask, from: &Requester) -> Packed {
        let first = u64::from(from.first);
        let mut packed =
            Packed::new(&[keys as u64, from.heard, first, ask.at, ask.slack, ask.life]);
        if from.seen != 0 {
            packed.put(hex(from.seen, &mut [0; 16]));
        }
        packed
    }

    fn put(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        self.length += room.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count();
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
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
    fn an_error_without_its_place() {
        for text in ["@user_script: 71: -OOM no room\r\n", "@user_script: 71: OOM no room"] {
            assert_eq!(place_cut(text.as_bytes()), b"OOM no room");
        }
        assert_eq!(place_cut(b"OOM no room"), b"OOM no room");
    }

    #[test]
    fn the_longest_name_and_key_fit() {
        let key = StoreKey::new(&[PREFIX, &[b'n'; NAME_MOST], b"}:k:", &[b'k'; KEY_MOST]]);
        assert_eq!(key.bytes().len(), PREFIX.len() + NAME_MOST + 4 + KEY_MOST);
    }
}
