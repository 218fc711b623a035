//! A client's reader of header fields about limits.

use super::INTEGER_MOST;

const SECOND: u64 = 1_000_000_000;

/// The limits that a server's header fields describe. `None`: no field gives the value, or the
/// field is malformed. The drafts require clients to ignore a malformed field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Permits per window.
    pub limit: Option<u64>,
    /// The window in nanoseconds.
    pub window: Option<u64>,
    /// The permits left.
    pub remaining: Option<u64>,
    /// Nanoseconds until more permits are left.
    pub more_after: Option<u64>,
    /// Nanoseconds to wait before the next request (`Retry-After`).
    pub retry_after: Option<u64>,
}

impl Seen {
    /// Reads the lines of an answer's header, `Name: value`, each ended by LF or CR LF. It skips
    /// other fields. Names may have any case. The lines of `RateLimit` are one list, and so are
    /// those of `RateLimit-Policy` (RFC 9110, section 5.3). Of the lines of `Retry-After` the one
    /// with the longest wait counts, and of other fields the first line. If an item has a parameter
    /// twice, the last one counts (RFC 9651, section 4.2.3.2).
    ///
    /// It knows `Retry-After` as seconds, with or without a fraction, or as a date in one of the
    /// three forms of RFC 9110, section 5.6.7; `X-RateLimit-` and `X-Rate-Limit-` with `Limit`,
    /// `Remaining` and `Reset`; and all versions of draft-ietf-httpapi-ratelimit-headers. If an
    /// answer has several dialects, the newest counts. If a field describes several limits, the one
    /// with the fewest permits left counts. `RateLimit-Policy` describes it only if it names that
    /// limit.
    ///
    /// `utc` is the time of the answer in nanoseconds since 1970: dates and epochs are counted from
    /// it. Servers write the reset of each dialect in several ways: a number from 10^12 on is read
    /// as milliseconds since 1970, from 10^9 on as seconds since 1970, and a smaller one as seconds
    /// from now, with or without a fraction. A time that is past is 0, and one beyond 64 bits of
    /// nanoseconds is the largest of these.
    pub fn read(text: &[u8], utc: u64) -> Seen {
        let field = |name: &'static str| values_of(text, name).next();
        let newest = service_limit(text, utc);
        let limit = field("ratelimit-limit").and_then(first_integer);
        let of = match newest.remaining {
            // The newest dialect has looked for the policy of its limit. The others are of other
            // limits.
            Some(_) => Seen { limit, ..Seen::default() },
            None => policy(text, None, limit),
        };
        let older = Seen {
            remaining: field("ratelimit-remaining").and_then(first_integer),
            more_after: field("ratelimit-reset").and_then(|text| reset(text, utc)),
            ..of
        };
        let legacy = |what: [&'static str; 2]| field(what[0]).or_else(|| field(what[1]));
        let legacy = Seen {
            limit: legacy(["x-ratelimit-limit", "x-rate-limit-limit"]).and_then(integer),
            remaining: legacy(["x-ratelimit-remaining", "x-rate-limit-remaining"])
                .and_then(integer),
            more_after: legacy(["x-ratelimit-reset", "x-rate-limit-reset"])
                .and_then(|text| reset(text, utc)),
            ..Seen::default()
        };
        let first = |of: fn(&Seen) -> Option<u64>| of(&newest).or(of(&older)).or(of(&legacy));
        Seen {
            limit: first(|seen| seen.limit),
            window: first(|seen| seen.window),
            remaining: first(|seen| seen.remaining),
            more_after: first(|seen| seen.more_after),
            retry_after: values_of(text, "retry-after")
                .filter_map(|value| retry_after(value, utc))
                .max(),
        }
    }
}

/// Reads `RateLimit`. In version 07 its members are `limit`, `remaining` and `reset`. In versions
/// 08 to 11 its items are limits.
fn service_limit(text: &[u8], utc: u64) -> Seen {
    let member =
        |name: &str| items_of(text, "ratelimit").filter_map(|one| value_in(one, name)).last();
    if let Some(remaining) = member("remaining").and_then(integer) {
        let more_after = member("reset").and_then(|text| reset(text, utc));
        let of = policy(text, None, member("limit").and_then(integer));
        return Seen { remaining: Some(remaining), more_after, ..of };
    }
    let of = |item| {
        let remaining = parameter(item, "r").and_then(integer)?;
        Some((remaining, parameter(item, "t").and_then(|text| reset(text, utc)), item))
    };
    // Among limits with equally few permits left, the one with the longest wait counts.
    let order = |one: &(u64, Option<u64>, &[u8])| (one.0, u64::MAX - one.1.unwrap_or(0));
    let Some((remaining, more_after, item)) =
        items_of(text, "ratelimit").filter_map(of).min_by_key(order)
    else {
        return Seen::default();
    };
    Seen { remaining: Some(remaining), more_after, ..policy(text, Some(head(item)), None) }
}

/// Finds a policy by its name, or else by its number of permits, or else takes the first one.
/// Returns its limit and its window. If there is no such policy, it returns `limit` alone.
fn policy(text: &[u8], name: Option<&[u8]>, limit: Option<u64>) -> Seen {
    // Up to version 07 the item is the number of permits; from 08 on it is a name, and `q` is the
    // number.
    let permits =
        |item: &[u8]| parameter(item, "q").and_then(integer).or_else(|| integer(head(item)));
    let fits = |item: &&[u8]| match (name, limit) {
        (Some(name), _) => head(item) == name,
        (None, Some(_)) => permits(item) == limit,
        (None, None) => true,
    };
    let found = items_of(text, "ratelimit-policy").find(fits);
    Seen {
        limit: limit.or_else(|| permits(found?)),
        window: found.and_then(|item| parameter(item, "w")).and_then(delay),
        ..Seen::default()
    }
}

/// The items of all lines of a list's field.
fn items_of<'a>(text: &'a [u8], name: &'static str) -> Items<'a> {
    Items { lines: values_of(text, name), parts: FieldParts { rest: None, separator: b',' } }
}

/// The values of the fields of that name, which is in lower case.
fn values_of<'a>(text: &'a [u8], name: &'static str) -> Values<'a> {
    Values { rest: text, name }
}

/// The parts of a list between separators that are not in a quoted string.
fn split(text: &[u8], separator: u8) -> FieldParts<'_> {
    FieldParts { rest: Some(text), separator }
}

// Each iterator is a type with one `next`: adapters would be compiled into each of their callers.

struct Items<'a> {
    lines: Values<'a>,
    parts: FieldParts<'a>,
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    #[inline(never)]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(item) = self.parts.next() {
                return Some(item);
            }
            self.parts.rest = Some(self.lines.next()?);
        }
    }
}

struct Values<'a> {
    rest: &'a [u8],
    name: &'static str,
}

impl<'a> Iterator for Values<'a> {
    type Item = &'a [u8];

    #[inline(never)]
    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let (line, rest) = cut(self.rest, |byte| byte == b'\n');
            self.rest = rest.unwrap_or(&[]);
            if let (name, Some(value)) = cut(line, |byte| byte == b':') {
                if name.eq_ignore_ascii_case(self.name.as_bytes()) {
                    return Some(value.trim_ascii());
                }
            }
        }
        None
    }
}

struct FieldParts<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for FieldParts<'a> {
    type Item = &'a [u8];

    #[inline(never)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (mut quoted, mut escaped) = (false, false);
        let (part, rest) = cut(self.rest?, |byte| {
            let ends = byte == self.separator && !quoted;
            if !escaped && byte == b'"' {
                quoted = !quoted;
            }
            escaped = quoted && !escaped && byte == b'\\';
            ends
        });
        self.rest = rest;
        Some(part.trim_ascii())
    }
}

/// The text before the first byte that `ends` names, and the text after it.
fn cut(text: &[u8], mut ends: impl FnMut(u8) -> bool) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| ends(*byte)) {
        Some(at) => (text.get(..at).unwrap_or(&[]), text.get(at + 1..)),
        None => (text, None),
    }
}

/// An item without its parameters.
fn head(item: &[u8]) -> &[u8] {
    split(item, b';').next().unwrap_or(&[])
}

/// The value of an item's parameter, and the last one if the item has it twice.
fn parameter<'a>(item: &'a [u8], name: &str) -> Option<&'a [u8]> {
    split(item, b';').skip(1).filter_map(|one| value_in(one, name)).last()
}

/// The value of `name=value`. That of a `name` alone, which means true, is empty: it is no number.
fn value_in<'a>(member: &'a [u8], name: &str) -> Option<&'a [u8]> {
    match member.strip_prefix(name.as_bytes())? {
        [] => Some(&[]),
        rest => rest.strip_prefix(b"="),
    }
}

/// An integer of structured fields that is not negative.
fn integer(text: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| match byte {
        b'0'..=b'9' => sum
            .checked_mul(10)?
            .checked_add(u64::from(byte - b'0'))
            .filter(|sum| *sum <= INTEGER_MOST),
        _ => None,
    };
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0, digit)
}

/// The integer before a list of policies or a parameter (`100, 100;w=60` of versions 00 to 02).
fn first_integer(text: &[u8]) -> Option<u64> {
    split(text, b',').next().map(head).and_then(integer)
}

/// Seconds as nanoseconds.
fn delay(text: &[u8]) -> Option<u64> {
    integer(text)?.checked_mul(SECOND)
}

/// Reads the value of a field `Retry-After`, and returns the wait in nanoseconds. A proxy may join
/// several values with commas. Then the function returns the longest wait.
fn retry_after(text: &[u8], utc: u64) -> Option<u64> {
    let seconds =
        |text| decimal(text).map(|(whole, ns)| whole.saturating_mul(SECOND).saturating_add(ns));
    date(text, utc)
        .map(|at| at.saturating_sub(utc))
        .or_else(|| split(text, b',').filter_map(seconds).max())
}

/// Nanoseconds until a reset, which is a time since 1970 or a delay, by its size.
fn reset(text: &[u8], utc: u64) -> Option<u64> {
    let (whole, ns) = decimal(text)?;
    let seconds = whole.saturating_mul(SECOND).saturating_add(ns);
    Some(match whole {
        1_000_000_000_000.. => whole.saturating_mul(1_000_000).saturating_sub(utc),
        1_000_000_000.. => seconds.saturating_sub(utc),
        _ => seconds,
    })
}

/// A number with or without a fraction, as its whole and its billionths. A whole beyond 64 bits is
/// the largest of these.
fn decimal(text: &[u8]) -> Option<(u64, u64)> {
    let (whole, fraction) = cut(text, |byte| byte == b'.');
    let fraction = fraction.unwrap_or(b"0");
    let are_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let digit = |byte: &u8| u64::from(byte - b'0');
    let whole =
        whole.iter().fold(0, |sum: u64, byte| sum.saturating_mul(10).saturating_add(digit(byte)));
    let (ns, _) = fraction
        .iter()
        .fold((0, SECOND / 10), |(ns, place), byte| (ns + digit(byte) * place, place / 10));
    Some((whole, ns))
}

/// A date in nanoseconds since 1970, 0 for a day before, the largest number of 64 bits if it has
/// more: `Sun, 06 Nov 1994 08:49:37 GMT`, or one of the two forms before it,
/// `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov 6 08:49:37 1994`. Two digits of a year are of the
/// year that is at most 50 years after `utc`.
fn date(text: &[u8], utc: u64) -> Option<u64> {
    let mut parts =
        text.split(|byte| b" ,-".contains(byte)).filter(|part| !part.is_empty()).skip(1);
    let mut part = || parts.next();
    let (first, second) = (part()?, part()?);
    let (day, month, year, time) = match month(first) {
        // `Nov 6 08:49:37 1994`
        Some(month) => {
            let time = part()?;
            (integer(second)?, month, integer(part()?)?, time)
        }
        None => {
            let (day, month, year) = (integer(first)?, self::month(second)?, part()?);
            let time = part()?;
            if part()? != b"GMT" {
                return None;
            }
            let short = year.len() == 2;
            (day, month, if short { of_century(integer(year)?, utc) } else { integer(year)? }, time)
        }
    };
    let mut numbers = split(time, b':').map(integer);
    let mut number = || numbers.next().flatten();
    let (hour, minute, second) = (number()?, number()?, number()?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_date = (1..=longest).contains(&day) && (1..=9999).contains(&year);
    if !is_date
        || hour > 23
        || minute > 59
        || second > 60
        || parts.next().is_some()
        || numbers.next().is_some()
    {
        return None;
    }
    // Days since 1970 in the Gregorian calendar. A year begins in March here, so the leap day is
    // its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.saturating_sub(719_468);
    Some((((days * 24 + hour) * 60 + minute) * 60 + second).saturating_mul(SECOND))
}

/// 1 for `Jan` to 12 for `Dec`.
fn month(name: &[u8]) -> Option<u64> {
    let names = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    names.chunks_exact(3).position(|month| month == name).map(|at| at as u64 + 1)
}

/// The last year with these two digits that is at most 50 years after `utc` (RFC 9110, section
/// 5.6.7).
fn of_century(digits: u64, utc: u64) -> u64 {
    // A year of 365.25 days. The result is wrong for at most a day around New Year, which moves the
    // limit of 50 years by one.
    let now = 1970 + utc / (1_461 * 6 * 3_600 * SECOND);
    let year = now / 100 * 100 + digits;
    match year > now + 50 {
        true => year - 100,
        false if year + 50 <= now => year + 100,
        false => year,
    }
}
