//! Numbers, times and hostile bytes as text for a terminal.

use crate::civil;

const SECOND: u64 = 1_000_000_000;

/// The bytes as printable ASCII: every other byte, blanks and backslashes are `\xNN`.
pub fn plain(bytes: &[u8]) -> String {
    escape(bytes, |byte| byte > 0x20 && byte < 0x7f && byte != b'\\')
}

/// [`plain`] with blanks as they are: for paths and user agents.
pub fn plain_line(bytes: &[u8]) -> String {
    escape(bytes, |byte| (0x20..0x7f).contains(&byte) && byte != b'\\')
}

fn escape(bytes: &[u8], is_plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// The system's text for an error, without the number that the standard library adds.
pub fn system(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// `2015-05-17 10:05:03`, in UTC.
pub fn time(ns: u64) -> String {
    let (date, second) = civil::of_unix(ns / SECOND);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{:04}-{:02}-{:02} {hour:02}:{minute:02}:{second:02}", date.year, date.month, date.day)
}

/// A duration as one or two units: `250 ms`, `59 s`, `1 min 30 s`, `3 days 4 h`.
pub fn span(ns: u64) -> String {
    const UNITS: [(u64, &str); 7] = [
        (86_400 * SECOND, "days"),
        (3_600 * SECOND, "h"),
        (60 * SECOND, "min"),
        (SECOND, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let Some(at) = UNITS.iter().position(|&(unit, _)| ns >= unit) else {
        return "0 s".to_owned();
    };
    let (unit, name) = UNITS[at];
    let (whole, rest) = (ns / unit, ns % unit);
    let name = if name == "days" && whole == 1 { "day" } else { name };
    match UNITS.get(at + 1) {
        // Two units for long times; seconds and less get one digit after the point where it says
        // something.
        Some(&(below, next)) if at < 3 && rest >= below => {
            format!("{whole} {name} {} {next}", rest / below)
        }
        Some(&(below, _)) if at >= 3 && whole < 10 && rest >= unit / 10 => {
            format!("{whole}.{} {name}", rest / (below * (unit / below / 10).max(1)))
        }
        _ => format!("{whole} {name}"),
    }
}

/// `12345678` as `12,345,678`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n` things: `1 key`, `12 keys`.
pub fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_one_or_two_units() {
        for (ns, text) in [
            (0, "0 s"),
            (1, "1 ns"),
            (1_500, "1.5 us"),
            (250_000_000, "250 ms"),
            (59 * SECOND, "59 s"),
            (2 * SECOND + 500_000_000, "2.5 s"),
            (90 * SECOND, "1 min 30 s"),
            (60 * SECOND, "1 min"),
            (86_400 * SECOND, "1 day"),
            (273_600 * SECOND, "3 days 4 h"),
        ] {
            assert_eq!(span(ns), text);
        }
    }

    #[test]
    fn hostile_bytes_are_printable() {
        assert_eq!(plain(b"a b\\\x1b[2J\xc3\xa9"), "a\\x20b\\x5c\\x1b[2J\\xc3\\xa9");
        assert_eq!(plain_line(b"<script> \x07"), "<script> \\x07");
    }
}
