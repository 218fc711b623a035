//! Whose request a line is.

use super::request::{Key, WrongLine};
use crate::text;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use tollbar::address;

/// Reads a client's address, with or without a port, brackets and a zone. `what` says in a message
/// where it stands.
#[inline]
pub fn address(written: &[u8], what: &str) -> Result<IpAddr, WrongLine> {
    match plain_ipv4(written).map(IpAddr::V4).or_else(|| address::parse(written)) {
        Some(address) => Ok(address),
        None => Err(no_address(written, what)),
    }
}

/// Reads a key from a field that the caller has named: an address, or any other text. A text that
/// is no address may not be empty, `-`, which logs write for nothing, or have control bytes, which
/// could steer a terminal.
pub fn any<'a>(written: Cow<'a, [u8]>, what: &str) -> Result<Key<'a>, WrongLine> {
    if let Some(address) = address::parse(&written) {
        return Ok(Key::Address(address));
    }
    match &*written {
        [] | [b'-'] => Err(no_address(&written, what)),
        text if text.iter().any(|&byte| byte < 0x20 || byte == 0x7f) => {
            Err(Cow::Borrowed("a control byte in the client's key"))
        }
        _ => Ok(Key::Text(written)),
    }
}

/// The last address of an X-Forwarded-For list: the one that the nearest proxy has added.
pub fn last_hop(list: &[u8]) -> &[u8] {
    list.rsplit(|&byte| byte == b',').next().unwrap_or(list).trim_ascii()
}

/// The longest part of a wrong text that a message repeats.
const SHOWN: usize = 40;

#[cold]
fn no_address(written: &[u8], what: &str) -> WrongLine {
    let shown = text::plain(&written[..written.len().min(SHOWN)]);
    let more = if written.len() > SHOWN { "..." } else { "" };
    Cow::Owned(match written {
        [] | [b'-'] => format!("no client: {what} is \"{shown}\""),
        _ => format!("{what} is no address: \"{shown}{more}\""),
    })
}

/// `192.0.2.1` and nothing else: most addresses of most logs, in a quarter of the general reader's
/// time.
#[inline]
fn plain_ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    if text.len() > 15 {
        return None;
    }
    let (mut octets, mut at, mut octet, mut digits) = ([0u8; 4], 0, 0u32, 0);
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                // Some programs read 010 as the octal number 8, others as 10. So a text with a
                // leading zero is no address.
                if digits > 0 && octet == 0 {
                    return None;
                }
                octet = octet * 10 + u32::from(byte - b'0');
                if octet > 255 {
                    return None;
                }
                digits += 1;
            }
            b'.' if at < 3 && digits > 0 => {
                octets[at] = octet as u8;
                (at, octet, digits) = (at + 1, 0, 0);
            }
            _ => return None,
        }
    }
    if at < 3 || digits == 0 {
        return None;
    }
    octets[3] = octet as u8;
    Some(octets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_addresses_are_those_of_the_general_reader() {
        for text in [
            "0.0.0.0",
            "255.255.255.255",
            "192.0.2.1",
            "1.2.3",
            "1.2.3.",
            "1.2.3.4.",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.1.1.256",
            "01.2.3.4",
            "1.2.3.04",
            "1.2.3.00",
            "1..2.3",
            ".1.2.3",
            "",
            "1.2.3.4a",
            "1.2.3.4444444444",
            "0000000001.2.3",
        ] {
            let general = address::parse(text.as_bytes());
            assert_eq!(plain_ipv4(text.as_bytes()).map(IpAddr::V4), general, "{text}");
        }
    }

    #[test]
    fn keys_of_named_fields() {
        let read = |text: &'static str| any(Cow::Borrowed(text.as_bytes()), "the key");
        for text in ["192.0.2.1", "192.0.2.1:80", "[::ffff:192.0.2.1]:80", "::ffff:c000:201"] {
            assert_eq!(
                read(text),
                Ok(Key::Address(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))),
                "{text}"
            );
        }
        assert_eq!(read("gold"), Ok(Key::Text(Cow::Borrowed(b"gold"))));
        for (text, why) in
            [("", "no client: the key is \"\""), ("-", "no client: the key is \"-\"")]
        {
            assert_eq!(read(text), Err(Cow::Borrowed(why)));
        }
        assert!(read("a\x07").is_err());
        assert_eq!(last_hop(b"198.51.100.1, 192.0.2.7 "), b"192.0.2.7");
    }
}
