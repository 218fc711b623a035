//! RESP2, the protocol's bytes: commands written into a block that does not grow, and replies read out of one.
//!
//! A reply is looked at only when all of it is there, so a reader has no state of its own: give [`decode`] what has come so
//! far, again after every read. What is told apart is `+ - : $ *`; anything else, numbers that are not, lengths beyond
//! [`BULK_MOST`] and arrays deeper than [`DEPTH_MOST`] are [`Malformed`], and always were: no more bytes would make them right.

/// The longest string a server sends.
pub const BULK_MOST: usize = 512 << 20;
/// The most items of an array.
pub const ITEMS_MOST: usize = 1 << 20;
/// Arrays within arrays: the outermost is the first.
pub const DEPTH_MOST: u32 = 4;

/// No room. Nothing has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Not RESP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// One reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// `+OK`
    Simple(&'a [u8]),
    /// `-ERR …`, without the `-`.
    Error(&'a [u8]),
    /// `:1`
    Int(i64),
    /// `$3 abc`
    Bulk(&'a [u8]),
    /// `$-1` or `*-1`
    Nil,
    /// `*2 …`
    Array(Items<'a>),
}

/// The items of an array, in order. All of them are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'a> {
    left: usize,
    bytes: &'a [u8],
}

/// The first reply in `bytes` and how many bytes it has; `None` if not all of it has come.
pub fn decode(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    match measure(bytes, DEPTH_MOST)? {
        Some(len) => Ok(bytes.get(..len).and_then(measured).map(|reply| (reply, len))),
        None => Ok(None),
    }
}

/// Writes commands one after the other into a block. What has not been finished has not been written.
#[derive(Debug)]
pub struct Writer<'a> {
    into: &'a mut [u8],
    at: usize,
    full: bool,
}

impl<'a> Writer<'a> {
    /// Writes at the beginning of `into`.
    pub fn new(into: &'a mut [u8]) -> Writer<'a> {
        Writer { into, at: 0, full: false }
    }

    /// Begins a command of `parts` strings, the name being the first.
    pub fn command(&mut self, parts: usize) -> &mut Self {
        self.header(b'*', parts)
    }

    /// The next string.
    pub fn bulk(&mut self, bytes: &[u8]) -> &mut Self {
        self.header(b'$', bytes.len()).put(bytes).put(b"\r\n")
    }

    /// The next string: a number in decimal.
    pub fn int(&mut self, number: i64) -> &mut Self {
        let mut digits = [0_u8; 20];
        let text = decimal(number, &mut digits);
        self.bulk(text)
    }

    /// How many bytes have been written, if all has found room.
    pub fn finish(&self) -> Result<usize, Full> {
        if self.full {
            return Err(Full);
        }
        Ok(self.at)
    }

    fn header(&mut self, kind: u8, n: usize) -> &mut Self {
        let mut digits = [0_u8; 20];
        let text = decimal(i64::try_from(n).unwrap_or(i64::MAX), &mut digits);
        self.put(&[kind]).put(text).put(b"\r\n")
    }

    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        let end = self.at.saturating_add(bytes.len());
        match self.into.get_mut(self.at..end) {
            Some(place) => {
                // Not copy_from_slice, which compares lengths and can panic as far as a compiler can see.
                place.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                self.at = end;
            }
            None => self.full = true,
        }
        self
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Reply<'a>;

    fn next(&mut self) -> Option<Reply<'a>> {
        self.left = self.left.checked_sub(1)?;
        // Measured with the whole, so neither fails.
        let len = measure(self.bytes, DEPTH_MOST).ok()??;
        let reply = measured(self.bytes.get(..len)?);
        self.bytes = self.bytes.get(len..)?;
        reply
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl Items<'_> {
    /// How many are left.
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

/// How many bytes the first reply has.
fn measure(bytes: &[u8], depth: u32) -> Result<Option<usize>, Malformed> {
    let Some((&kind, rest)) = bytes.split_first() else { return Ok(None) };
    let line = match kind {
        b'+' | b'-' => line(rest, usize::MAX)?,
        b':' | b'$' | b'*' => line(rest, NUMBER_MOST)?,
        _ => return Err(Malformed),
    };
    let Some(line) = line else {
        // A number that is wrong already will not be right when the rest of it is there.
        return if matches!(kind, b'+' | b'-') || begins_a_number(rest) { Ok(None) } else { Err(Malformed) };
    };
    let head = line.len().saturating_add(3);
    match kind {
        b'+' | b'-' => Ok(Some(head)),
        b':' => number(line).map(|_| Some(head)),
        b'$' => match length(line, BULK_MOST)? {
            None => Ok(Some(head)),
            Some(len) => {
                let end = head.saturating_add(len);
                let tail = bytes.get(end..).unwrap_or_default();
                match (tail.first(), tail.get(1)) {
                    (Some(b'\r'), Some(b'\n')) => Ok(Some(end.saturating_add(2))),
                    (None, _) | (Some(b'\r'), None) => Ok(None),
                    _ => Err(Malformed),
                }
            }
        },
        _ => {
            let depth = depth.checked_sub(1).ok_or(Malformed)?;
            let mut end = head;
            for _ in 0..length(line, ITEMS_MOST)?.unwrap_or(0) {
                match measure(bytes.get(end..).unwrap_or_default(), depth)? {
                    Some(len) => end = end.saturating_add(len),
                    None => return Ok(None),
                }
            }
            Ok(Some(end))
        }
    }
}

/// The reply that `bytes` are, exactly.
fn measured(bytes: &[u8]) -> Option<Reply<'_>> {
    let (&kind, rest) = bytes.split_first()?;
    let line = line(rest, usize::MAX).ok()??;
    let body = rest.get(line.len().saturating_add(2)..)?;
    Some(match kind {
        b'+' => Reply::Simple(line),
        b'-' => Reply::Error(line),
        b':' => Reply::Int(number(line).ok()?),
        b'$' => match length(line, BULK_MOST).ok()? {
            Some(len) => Reply::Bulk(body.get(..len)?),
            None => Reply::Nil,
        },
        _ => match length(line, ITEMS_MOST).ok()? {
            Some(left) => Reply::Array(Items { left, bytes: body }),
            None => Reply::Nil,
        },
    })
}

/// A sign, 19 digits and a `\r`.
const NUMBER_MOST: usize = 21;

/// The bytes before the first `\r\n`; `None` if it has not come. A `\r` or `\n` alone, or more than `most` bytes, are
/// malformed.
fn line(bytes: &[u8], most: usize) -> Result<Option<&[u8]>, Malformed> {
    match bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(at) if at <= most => match (bytes.get(at), bytes.get(at.saturating_add(1))) {
            (Some(b'\r'), Some(b'\n')) => Ok(bytes.get(..at)),
            (Some(b'\r'), None) => Ok(None),
            _ => Err(Malformed),
        },
        None if bytes.len() <= most => Ok(None),
        _ => Err(Malformed),
    }
}

fn begins_a_number(bytes: &[u8]) -> bool {
    let digits = if let [b'-', rest @ ..] = bytes { rest } else { bytes };
    digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'\r')
}

fn length(line: &[u8], most: usize) -> Result<Option<usize>, Malformed> {
    match number(line)? {
        -1 => Ok(None),
        n => match usize::try_from(n) {
            Ok(n) if n <= most => Ok(Some(n)),
            _ => Err(Malformed),
        },
    }
}

fn number(line: &[u8]) -> Result<i64, Malformed> {
    let (negative, digits) = if let [b'-', rest @ ..] = line { (true, rest) } else { (false, line) };
    if digits.is_empty() {
        return Err(Malformed);
    }
    // Downwards, where there is one number more.
    let mut value = 0_i64;
    for &digit in digits {
        let digit = char::from(digit).to_digit(10).ok_or(Malformed)?;
        value = value.checked_mul(10).and_then(|value| value.checked_sub(i64::from(digit))).ok_or(Malformed)?;
    }
    if negative {
        return Ok(value);
    }
    value.checked_neg().ok_or(Malformed)
}

/// `number` as text at the end of `digits`.
pub(super) fn decimal(number: i64, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut at = digits.len();
    for place in digits.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
        at = at.saturating_sub(1);
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        // 19 digits at most, so there is a place before them.
        at = at.saturating_sub(1);
        if let Some(place) = digits.get_mut(at) {
            *place = b'-';
        }
    }
    digits.get(at..).unwrap_or_default()
}
