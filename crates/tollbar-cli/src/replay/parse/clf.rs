//! Common and Combined Log Format, also with the names of virtual hosts, and HAProxy's lines of
//! HTTP requests, which begin alike.

use super::client;
use super::prefixes::{self, word};
use super::request::{method_of, path_of, Key, Request, WrongLine};
use crate::civil;
use std::borrow::Cow;
use std::net::IpAddr;

/// Lines that follow each other mostly have the same hour, which is remembered.
pub struct Clf {
    details: bool,
    /// The number of the word that is the key, if the caller has named it.
    key: Option<usize>,
    /// Whether the lines are HAProxy's.
    is_haproxy: bool,
    /// `17/May/2015:10:`, of the last time that was read in full.
    hour: [u8; 15],
    /// ` +0000]`, likewise.
    zone: [u8; 7],
    /// The Unix time, in nanoseconds, at which that hour began.
    begins: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Clf {
    pub fn new(details: bool, key: Option<usize>) -> Clf {
        Clf { details, key, is_haproxy: false, hour: [0; 15], zone: [0; 7], begins: 0 }
    }

    pub fn haproxy(key: Option<usize>) -> Clf {
        Clf { is_haproxy: true, ..Clf::new(true, key) }
    }

    #[inline]
    pub fn parse<'a>(&mut self, line: &'a [u8], cut: bool) -> Result<Request<'a>, WrongLine> {
        let (time, after) = self.find_time(line, cut).map_err(Cow::Borrowed)?;
        let key = match self.key {
            None => Key::Address(client_of(line)?),
            Some(number) => named_word(line, number)?,
        };
        if self.is_haproxy {
            let (_, behind_client) = word(prefixes::behind(line)).unwrap_or_default();
            if !behind_client.starts_with(b"[") || !after.contains(&b'"') {
                return Err(Cow::Borrowed(
                    "not a client, a time in brackets and a request in quotes",
                ));
            }
        }
        let mut request = Request { time, key, cost: 1, ..Request::default() };
        if self.details {
            [request.method, request.path, request.agent] = details(after);
        }
        Ok(request)
    }

    #[inline]
    fn find_time<'a>(
        &mut self,
        line: &'a [u8],
        cut: bool,
    ) -> Result<(u64, &'a [u8]), &'static str> {
        let line = line.trim_ascii_start();
        // The first word may have a quote or a bracket, if a caller takes it as the key.
        let mut rest = &line[first_word(line).len()..];
        let mut why = if cut {
            "no time in brackets within the first mebibyte"
        } else {
            "no time in brackets"
        };
        let mut is_first = true;
        // The two names before the time may hold blanks and brackets, so the first bracket need not
        // be the time's. But nothing from the request counts, which its sender could choose: it
        // begins with a quote.
        while let Some(at) = memchr::memchr2(b'[', b'"', rest) {
            if rest[at] == b'"' {
                break;
            }
            rest = &rest[at + 1..];
            match self.time(rest) {
                Ok(found) => return Ok(found),
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
        if self.is_haproxy {
            let (stamp, after) = civil::haproxy(text)?;
            let after = after.strip_prefix(b"]").ok_or("the time does not end with a bracket")?;
            return Ok((stamp.unix_ns()?, after));
        }
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

/// The client of a line: its first word, that behind what collectors put before it, or the second
/// one behind the name of a virtual host.
#[inline]
fn client_of(line: &[u8]) -> Result<IpAddr, WrongLine> {
    match client::address(first_word(line.trim_ascii_start()), FIRST) {
        Ok(address) => Ok(address),
        Err(_) => client_behind(line),
    }
}

fn client_behind(line: &[u8]) -> Result<IpAddr, WrongLine> {
    let line = prefixes::behind(line);
    let first = first_word(line);
    client::address(first, FIRST).or_else(|wrong| {
        let second = word(line).filter(|_| is_host(first)).map(|(_, rest)| first_word(rest));
        second.and_then(|second| client::address(second, FIRST).ok()).ok_or_else(|| match first {
            [] | [b'-'] => wrong,
            _ => Cow::Owned(format!(
                "{wrong} (--field key=1 takes the first word as it is, key=2 the second)"
            )),
        })
    })
}

/// What messages call the place of a client's address.
const FIRST: &str = "the first word";

/// Whether it may be the name of a virtual host, with or without a port.
fn is_host(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(byte))
        && text.iter().any(|&byte| byte == b'.' || byte == b':')
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(text.len());
    &text[..end]
}

/// The key that is the word of that number, from 1 on.
fn named_word(line: &[u8], number: usize) -> Result<Key<'_>, WrongLine> {
    let mut words =
        line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty());
    let word = words.nth(number - 1).unwrap_or(b"");
    client::any(Cow::Borrowed(word), &format!("word {number}"))
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
        // Alternating zones, hours and leap seconds: each line's time by a parser that remembers
        // and by a fresh one.
        let mut remembers = Clf::new(true, None);
        for day in ["17/May/2015", "18/May/2015"] {
            for time in [
                "10:05:03",
                "10:59:60",
                "10:00:00",
                "10:05:60",
                "10:59:59",
                "11:00:00",
                "10:05:03.5",
            ] {
                for zone in ["+0000", "+0530", "-0100", "+0545"] {
                    let line = format!(
                        "::1 - - [{day}:{time} {zone}] \"GET /x HTTP/1.1\" 200 1 \"-\" \"agent\""
                    );
                    let one = remembers.parse(line.as_bytes(), false).expect(&line);
                    let other = Clf::new(true, None).parse(line.as_bytes(), false).expect(&line);
                    assert_eq!(
                        (one.time, one.path, one.agent),
                        (other.time, other.path, other.agent),
                        "{line}"
                    );
                }
            }
        }
    }

    #[test]
    fn path_and_agent_of_combined_lines() {
        let of = |line: &'static str| {
            let request = Clf::new(true, None).parse(line.as_bytes(), false).expect("a request");
            (
                String::from_utf8_lossy(&request.path).into_owned(),
                String::from_utf8_lossy(&request.agent).into_owned(),
            )
        };
        let t = "[17/May/2015:10:05:03 +0000]";
        assert_eq!(
            of("::1 - - [17/May/2015:10:05:03 +0000] \"GET http://a.example:80/p?q HTTP/1.1\" 200 1 \"-\" \"b c\""),
            ("/p?q".into(), "b c".into())
        );
        assert_eq!(of("::1 - - [17/May/2015:10:05:03 +0000]"), (String::new(), String::new()));
        assert_eq!(
            of("::1 - - [17/May/2015:10:05:03 +0000] \"GET /p"),
            ("/p".into(), String::new())
        );
        assert_eq!(
            of("::1 - - [17/May/2015:10:05:03 +0000] \"\" 400 0"),
            (String::new(), String::new())
        );
        assert_eq!(t.len(), 28);
    }

    #[test]
    fn c3_the_client_is_found_or_the_line_is_bad() {
        let at = "[17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1";
        let of = |word: Option<usize>, head: &str| {
            let line = format!("{head} - - {at}");
            Clf::new(true, word).parse(line.as_bytes(), false).map(|request| match request.key {
                Key::Address(address) => address.to_string(),
                Key::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            })
        };
        for head in [
            "192.0.2.9",
            "192.0.2.9:33317",
            "::ffff:192.0.2.9",
            "shop.example:443 192.0.2.9",
            "web-1  | 192.0.2.9",
        ] {
            assert_eq!(of(None, head).as_deref(), Ok("192.0.2.9"), "{head}");
        }
        let help = " (--field key=1 takes the first word as it is, key=2 the second)";
        for (head, why) in [
            ("-", "no client: the first word is \"-\""),
            ("client.example", &*format!("the first word is no address: \"client.example\"{help}")),
            ("bob 192.0.2.9", &*format!("the first word is no address: \"bob\"{help}")),
            ("unix:", &*format!("the first word is no address: \"unix:\"{help}")),
        ] {
            assert_eq!(of(None, head), Err(why.to_owned().into()), "{head}");
        }
        assert_eq!(of(Some(1), "client.example").as_deref(), Ok("client.example"));
        assert_eq!(of(Some(2), "10.72.153.53 [192.0.2.9]").as_deref(), Ok("192.0.2.9"));
        assert_eq!(of(Some(90), "192.0.2.9"), Err("no client: word 90 is \"\"".into()));
    }

    #[test]
    fn haproxy_requests() {
        let mut haproxy = Clf::haproxy(None);
        let line = br#"Oct 10 13:55:00 lb haproxy[14389]: 192.0.2.1:33317 [10/Oct/2024:13:55:00.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /p/0 HTTP/1.1""#;
        let request = haproxy.parse(line, false).expect("a request");
        assert_eq!((request.time, &*request.path), (1_728_568_500_655_000_000, &b"/p/0"[..]));
        assert_eq!(request.key, Key::Address([192, 0, 2, 1].into()));
        for line in [
            "192.0.2.1:33317 [10/Oct/2024:13:55:00.655] https-in/1: SSL handshake failure",
            "Proxy http-in started.",
            "192.0.2.1:33317 [10/Oct/2024:13:55:00.655 http-in \"GET / HTTP/1.1\"",
            "192.0.2.1 - - [10/Oct/2024:13:55:00] \"GET / HTTP/1.1\"",
        ] {
            assert!(haproxy.parse(line.as_bytes(), false).is_err(), "{line}");
        }
    }
}
