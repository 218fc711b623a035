//! Lines of `time_ns key cost`.

use super::request::{Key, Request};
use std::borrow::Cow;

pub fn parse(line: &[u8], cut: bool) -> Result<Request<'_>, &'static str> {
    if cut {
        return Err("longer than a mebibyte");
    }
    let mut words =
        line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty());
    let time = words.next().unwrap_or(b"");
    let time = number(time, "the time is not a whole number", "the time does not fit 64 bits")?;
    let key = words.next().ok_or("no key after the time")?;
    let cost = words.next().ok_or("no cost after the key")?;
    let cost = number(cost, "the cost is not a whole number", "the cost does not fit 64 bits")?;
    match words.next() {
        None => {
            Ok(Request { time, key: Key::Text(Cow::Borrowed(key)), cost, ..Request::default() })
        }
        Some(_) => Err("more than a time, a key and a cost"),
    }
}

/// A whole word as a number, or which of the two reasons.
pub(super) fn number(
    word: &[u8],
    no_number: &'static str,
    too_large: &'static str,
) -> Result<u64, &'static str> {
    if word.is_empty() {
        return Err(no_number);
    }
    let mut value: u64 = 0;
    let mut fits = true;
    for &byte in word {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10).ok_or(no_number)?;
        match value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit))) {
            Some(next) => value = next,
            None => fits = false,
        }
    }
    if fits {
        Ok(value)
    } else {
        Err(too_large)
    }
}
