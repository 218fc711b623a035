//! Common and Combined Log Format.

use super::{address, method_of, path_of, Request};
use crate::civil;
use std::borrow::Cow;

/// Lines that follow each other mostly have the same hour, which is remembered.
pub struct Clf {
    details: bool,
    /// `17/May/2015:10:`, of the last time that was read in full.
    hour: [u8; 15],
    /// ` +0000]`, likewise.
    zone: [u8; 7],
    /// The Unix time, in nanoseconds, at which that hour began.
    begins: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Clf {
    pub fn new(details: bool) -> Clf {
        Clf { details, hour: [0; 15], zone: [0; 7], begins: 0 }
    }

    #[inline]
    pub fn parse<'a>(&mut self, line: &'a [u8], cut: bool) -> Result<Request<'a>, &'static str> {
        let line = without_blanks(line);
        let end = line.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(line.len());
        let key = address(&line[..end])?;
        let mut rest = &line[end..];
        let mut why = if cut { "no time in brackets within the first mebibyte" } else { "no time in brackets" };
        let mut is_first = true;
        // The two names before the time may hold blanks and brackets, so the first bracket need not be the time's. But nothing from the
        // request counts, which its sender could choose: it begins with a quote.
        while let Some(at) = memchr::memchr2(b'[', b'"', rest) {
            if rest[at] == b'"' {
                break;
            }
            rest = &rest[at + 1..];
            match self.time(rest) {
                Ok((time, after)) => {
                    let mut request = Request { time, key: Cow::Borrowed(key), cost: 1, ..Request::default() };
                    if self.details {
                        [request.method, request.path, request.agent] = details(after);
                    }
                    return Ok(request);
                }
                Err(wrong) if is_first => why = wrong,
                Err(_) => {}
            }
            is_first = false;
        }
        Err(why)
    }

    /// The time at the beginning of `text`, and what follows the bracket behind it.
    #[inline]
    fn time<'a>(&mut self, text: &'a [u8]) -> Result<(u64, &'a [u8]), &'static str> {
        if text.len() >= 27 && text[..15] == self.hour && text[20..27] == self.zone {
            if let Some(second) = minute_and_second(&text[15..20]) {
                return Ok((self.begins + second * SECOND, &text[27..]));
            }
        }
        let (stamp, after) = civil::clf(text)?;
        let Some((b']', after)) = after.split_first() else {
            return Err("the time does not end with a bracket");
        };
        let time = stamp.unix_ns()?;
        if text.len() - after.len() == 27 {
            let of_hour = u64::try_from(stamp.second % 3_600).unwrap_or(0) * SECOND;
            // A leap second that ends the hour is of the next hour, and is not remembered.
            if text[18..20] != *b"60" && time >= of_hour {
                self.hour.copy_from_slice(&text[..15]);
                self.zone.copy_from_slice(&text[20..27]);
                self.begins = time - of_hour;
            }
        }
        Ok((time, after))
    }
}

/// `05:03` as seconds.
#[inline]
fn minute_and_second(text: &[u8]) -> Option<u64> {
    let digit = |at: usize| text[at].wrapping_sub(b'0');
    let (minute, second) = (digit(0) * 10 + digit(1), digit(3) * 10 + digit(4));
    let is_fine = digit(0) < 6 && digit(1) < 10 && text[2] == b':' && digit(3) < 6 && digit(4) < 10;
    is_fine.then(|| u64::from(minute) * 60 + u64::from(second))
}

#[inline]
fn without_blanks(line: &[u8]) -> &[u8] {
    let begin = line.iter().position(|&byte| byte != b' ' && byte != b'\t').unwrap_or(line.len());
    &line[begin..]
}

/// The method and the path from the first quoted text, and the user agent from the last one.
fn details(after: &[u8]) -> [Cow<'_, [u8]>; 3] {
    let Some(begin) = memchr::memchr(b'"', after) else {
        return [const { Cow::Borrowed(&[]) }; 3];
    };
    let request = &after[begin + 1..];
    let end = memchr::memchr(b'"', request).unwrap_or(request.len());
    let rest = request.get(end + 1..).unwrap_or(b"").trim_ascii_end();
    let agent = match rest.strip_suffix(b"\"") {
        Some(inner) => memchr::memrchr(b'"', inner).map_or(&b""[..], |at| &inner[at + 1..]),
        None => b"",
    };
    let request = &request[..end];
    [method_of(request), path_of(request), agent].map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remembered_hour_gives_the_same_times() {
        // Alternating zones, hours and leap seconds: each line's time by a parser that remembers and by a fresh one.
        let mut remembers = Clf::new(true);
        for day in ["17/May/2015", "18/May/2015"] {
            for time in ["10:05:03", "10:59:60", "10:00:00", "10:05:60", "10:59:59", "11:00:00", "10:05:03.5"] {
                for zone in ["+0000", "+0530", "-0100", "+0545"] {
                    let line = format!("a - - [{day}:{time} {zone}] \"GET /x HTTP/1.1\" 200 1 \"-\" \"agent\"");
                    let one = remembers.parse(line.as_bytes(), false).expect(&line);
                    let other = Clf::new(true).parse(line.as_bytes(), false).expect(&line);
                    assert_eq!((one.time, one.path, one.agent), (other.time, other.path, other.agent), "{line}");
                }
            }
        }
    }

    #[test]
    fn path_and_agent_of_combined_lines() {
        let of = |line: &'static str| {
            let request = Clf::new(true).parse(line.as_bytes(), false).expect("a request");
            (String::from_utf8_lossy(&request.path).into_owned(), String::from_utf8_lossy(&request.agent).into_owned())
        };
        let t = "[17/May/2015:10:05:03 +0000]";
        assert_eq!(
            of("a - - [17/May/2015:10:05:03 +0000] \"GET /p?q HTTP/1.1\" 200 1 \"-\" \"b c\""),
            ("/p?q".into(), "b c".into())
        );
        assert_eq!(of("a - - [17/May/2015:10:05:03 +0000]"), (String::new(), String::new()));
        assert_eq!(of("a - - [17/May/2015:10:05:03 +0000] \"GET /p"), ("/p".into(), String::new()));
        assert_eq!(of("a - - [17/May/2015:10:05:03 +0000] \"\" 400 0"), (String::new(), String::new()));
        assert_eq!(t.len(), 28);
    }
}
