//! The protocol RESP2: writes commands into a block of fixed size, and reads replies from one.
//!
//! The reader is stateless: the caller gives [`decode`] all bytes that have come so far, again
//! after each read, and gets a reply when it is complete. Replies begin with one of `+ - : $ *`.
//! Any other beginning, a malformed number, a length beyond [`BULK_MOST`] or [`ITEMS_MOST`], and an
//! array deeper than [`DEPTH_MOST`] are [`Malformed`], whatever bytes follow.

/// The longest string that is accepted, in bytes: 512 MiB, a server's default limit.
pub const BULK_MOST: usize = 512 << 20;
/// The most items of an array that is accepted.
pub const ITEMS_MOST: usize = 1 << 20;
/// The deepest nesting of arrays; an array without arrays in it has depth 1.
pub const DEPTH_MOST: u32 = 4;

/// There is no room. Nothing was written or queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The bytes are not RESP2.
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

/// The items of a complete array, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items<'a> {
    left: usize,
    bytes: &'a [u8],
}

/// The first reply in `bytes` and its length in bytes; `None` if it is not complete.
pub fn decode(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    match measure(bytes, DEPTH_MOST)? {
        Some(len) => Ok(bytes.get(..len).and_then(measured).map(|reply| (reply, len))),
        None => Ok(None),
    }
}

/// Writes commands one after the other into a block. They count as written when [`Writer::finish`]
/// returns their length.
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

    /// Begins a command of `parts` strings. The first is the command's name.
    pub fn command(&mut self, parts: usize) -> &mut Self {
        self.header(b'*', parts)
    }

    /// Writes the command's next string.
    pub fn bulk(&mut self, bytes: &[u8]) -> &mut Self {
        self.header(b'$', bytes.len()).put(bytes).put(b"\r\n")
    }

    /// Writes a decimal number as the command's next string.
    pub fn int(&mut self, number: i64) -> &mut Self {
        let mut digits = [0_u8; 20];
        let text = decimal(number, &mut digits);
        self.bulk(text)
    }

    /// The number of bytes written; [`Full`] if anything did not fit.
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
                // `copy_from_slice` has a panic for unequal lengths, which the compiler would keep.
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
        // `measure` accepted the whole array, so it accepts each item.
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

/// The length of the first reply in bytes; `None` if it is not complete. It accepts arrays nested
/// at most `depth` deep.
fn measure(bytes: &[u8], depth: u32) -> Result<Option<usize>, Malformed> {
    let Some((&kind, rest)) = bytes.split_first() else { return Ok(None) };
    let line = match kind {
        b'+' | b'-' => line(rest, usize::MAX)?,
        b':' | b'$' | b'*' => line(rest, NUMBER_MOST)?,
        _ => return Err(Malformed),
    };
    let Some(line) = line else {
        // If the number is malformed already, further bytes cannot make it valid.
        return if matches!(kind, b'+' | b'-') || begins_a_number(rest) {
            Ok(None)
        } else {
            Err(Malformed)
        };
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

/// Decodes `bytes`, which are exactly one reply that `measure` accepted.
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

/// The longest number in bytes: a sign, 19 digits and a `\r`.
const NUMBER_MOST: usize = 21;

/// The bytes before the first `\r\n`; `None` if it has not come. A `\r` or `\n` alone, and a line
/// of more than `most` bytes, are malformed.
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
    let (negative, digits) =
        if let [b'-', rest @ ..] = line { (true, rest) } else { (false, line) };
    if digits.is_empty() {
        return Err(Malformed);
    }
    // The value is negative while it grows, because i64 has one more negative number.
    let mut value = 0_i64;
    for &digit in digits {
        let digit = char::from(digit).to_digit(10).ok_or(Malformed)?;
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_sub(i64::from(digit)))
            .ok_or(Malformed)?;
    }
    if negative {
        return Ok(value);
    }
    value.checked_neg().ok_or(Malformed)
}

/// Writes `number` in decimal at the end of `digits`, and returns that part.
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
