//! Header fields and problems as bytes.

use super::fields::{Draft, Fields, Limit, Reset, INTEGER_MOST};
use crate::policy::FOREVER;
use crate::units::NEVER;
use crate::writer::Writer;

const SECOND: u64 = 1_000_000_000;

impl Fields {
    /// Writes one line for each field, `Name: value` and a line break (CR, LF), and returns the
    /// length of all lines in bytes. If that is more than `out.len()`, the end is missing in `out`.
    /// Without limits the call writes nothing.
    ///
    /// `utc` is the time in nanoseconds since 1970; only [`Reset::Epoch`] needs it. A field with
    /// room for one limit describes the limit that binds. If limits refuse, it is the one of them
    /// with the longest wait, and otherwise the one with the fewest permits left.
    pub fn write(&self, limits: &[Limit<'_>], utc: u64, out: &mut [u8]) -> usize {
        let mut w = FieldLines(Writer::new(out));
        let Some(binding) = binding(limits) else {
            return 0;
        };
        if self.retry_after && binding.refuses() && binding.retry_after != NEVER {
            w.line("Retry-After", seconds(binding.retry_after).max(1));
        }
        if let Some(reset) = self.legacy {
            legacy(&mut w, binding, reset, utc);
        }
        match self.draft {
            None => {}
            Some(Draft::Six) => draft_six(&mut w, limits, binding),
            Some(Draft::Seven) => draft_seven(&mut w, limits, binding),
            Some(Draft::Eleven) => draft_eleven(&mut w, limits),
        }
        w.0.length
    }
}

/// Writes the body of a refusal's answer as a problem in JSON (RFC 9457; the media type is
/// `application/problem+json`), and returns its length in bytes. If that is more than `out.len()`,
/// the end is missing in `out`.
///
/// The problem is the draft's `quota-exceeded`. Its `violated-policies` are the names of the limits
/// that refuse.
pub fn problem(limits: &[Limit<'_>], status: u16, out: &mut [u8]) -> usize {
    let mut w = FieldLines(Writer::new(out));
    w.text("{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Too many requests\",\"status\":");
    w.number(u64::from(status));
    w.text(",\"violated-policies\":[");
    w.list(limits.iter().filter(|limit| limit.refuses()), ",", |w, limit| w.quoted(limit.name));
    w.text("]}");
    w.0.length
}

/// The limit that binds ([`Fields::write`]). The first of equal limits.
fn binding<'a, 'b>(limits: &'a [Limit<'b>]) -> Option<&'a Limit<'b>> {
    let order = |limit: &Limit<'_>| match limit.refuses() {
        true => (0, u64::MAX - limit.retry_after),
        false => (1, limit.remaining),
    };
    limits.iter().min_by_key(|limit| order(limit))
}

fn legacy(w: &mut FieldLines<'_>, limit: &Limit<'_>, reset: Reset, utc: u64) {
    w.line("X-RateLimit-Limit", limit.burst);
    w.line("X-RateLimit-Remaining", limit.remaining);
    if limit.reset_after != NEVER {
        let at = match reset {
            Reset::Seconds => limit.reset_after,
            Reset::Epoch => utc.saturating_add(limit.reset_after),
        };
        w.line("X-RateLimit-Reset", seconds(at));
    }
}

fn draft_six(w: &mut FieldLines<'_>, limits: &[Limit<'_>], binding: &Limit<'_>) {
    w.line("RateLimit-Limit", quota(binding).0);
    w.line("RateLimit-Remaining", binding.remaining.min(INTEGER_MOST));
    w.line("RateLimit-Reset", reset(binding));
    unnamed_policies(w, limits);
}

fn draft_seven(w: &mut FieldLines<'_>, limits: &[Limit<'_>], binding: &Limit<'_>) {
    unnamed_policies(w, limits);
    w.text("RateLimit: limit=");
    w.number(quota(binding).0);
    w.text(", remaining=");
    w.number(binding.remaining.min(INTEGER_MOST));
    w.text(", reset=");
    w.number(reset(binding));
    w.end();
}

fn draft_eleven(w: &mut FieldLines<'_>, limits: &[Limit<'_>]) {
    w.text("RateLimit-Policy: ");
    w.list(limits.iter(), ", ", |w, limit| {
        let (permits, window) = quota(limit);
        w.quoted(limit.name);
        w.parameter("q", permits);
        w.window(window);
        w.partition(limit.partition);
    });
    w.end();
    w.text("RateLimit: ");
    w.list(limits.iter(), ", ", |w, limit| {
        w.quoted(limit.name);
        w.parameter("r", limit.remaining.min(INTEGER_MOST));
        if let Some(after) = more(limit) {
            w.parameter("t", after);
        }
        w.partition(limit.partition);
    });
    w.end();
}

/// `RateLimit-Policy` as in versions up to 07, where policies have no names.
fn unnamed_policies(w: &mut FieldLines<'_>, limits: &[Limit<'_>]) {
    w.text("RateLimit-Policy: ");
    w.list(limits.iter(), ", ", |w, limit| {
        let (permits, window) = quota(limit);
        w.number(permits);
        w.window(window);
    });
    w.end();
}

/// The permits and the seconds of a window. The period is rounded up to whole seconds, and the
/// permits are scaled to the same rate, rounded down. A lifetime quota has no window.
fn quota(limit: &Limit<'_>) -> (u64, Option<u64>) {
    if limit.period == FOREVER {
        return (limit.limit.min(INTEGER_MOST), None);
    }
    let window = seconds(limit.period);
    let permits = (u128::from(limit.limit) * u128::from(window) * u128::from(SECOND))
        .checked_div(u128::from(limit.period))
        .unwrap_or(0);
    (permits.min(u128::from(INTEGER_MOST)) as u64, Some(window.min(INTEGER_MOST)))
}

/// Seconds until more permits are left, at most `Retry-After` and at least 1. `None`: unknown.
fn more(limit: &Limit<'_>) -> Option<u64> {
    let after =
        if limit.refuses() { limit.more_after.min(limit.retry_after) } else { limit.more_after };
    (after != NEVER).then(|| seconds(after).clamp(1, INTEGER_MOST))
}

/// [`more`] for versions that require a number. 0: unknown, or no permit is missing.
fn reset(limit: &Limit<'_>) -> u64 {
    more(limit).unwrap_or(0)
}

/// Nanoseconds as seconds, rounded up, so that a client that waits so long does not come too early.
fn seconds(nanos: u64) -> u64 {
    nanos.div_ceil(SECOND)
}

/// [`Writer`] with the words of header fields.
struct FieldLines<'a>(Writer<'a>);

impl FieldLines<'_> {
    fn byte(&mut self, byte: u8) {
        self.0.byte(byte);
    }

    fn text(&mut self, text: &str) {
        self.0.text(text);
    }

    fn number(&mut self, n: u64) {
        self.0.number(n);
    }

    fn end(&mut self) {
        self.text("\r\n");
    }

    fn line(&mut self, name: &str, value: u64) {
        self.text(name);
        self.text(": ");
        self.number(value);
        self.end();
    }

    fn parameter(&mut self, name: &str, value: u64) {
        self.text(";");
        self.text(name);
        self.text("=");
        self.number(value);
    }

    fn window(&mut self, seconds: Option<u64>) {
        if let Some(seconds) = seconds {
            self.parameter("w", seconds);
        }
    }

    fn list<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        between: &str,
        mut item: impl FnMut(&mut Self, T),
    ) {
        for (n, one) in items.enumerate() {
            if n != 0 {
                self.text(between);
            }
            item(self, one);
        }
    }

    /// A string of structured fields (RFC 9651, section 3.3.3). It is also a string of JSON.
    fn quoted(&mut self, name: &[u8]) {
        self.byte(b'"');
        for &byte in name {
            match byte {
                b'"' | b'\\' => {
                    self.byte(b'\\');
                    self.byte(byte);
                }
                b' '..=b'~' => self.byte(byte),
                _ => self.byte(b'?'),
            }
        }
        self.byte(b'"');
    }

    /// `pk` as a byte sequence of structured fields: base64 (RFC 4648, section 4) between colons.
    fn partition(&mut self, key: &[u8]) {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        if key.is_empty() {
            return;
        }
        self.text(";pk=:");
        for chunk in key.chunks(3) {
            let byte = |n: usize| u32::from(chunk.get(n).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for digit in 0..4 {
                let value = (bits >> (18 - 6 * digit)) & 63;
                // The masked value is below 64.
                let letter = DIGITS.get(value as usize).copied().unwrap_or(b'=');
                self.byte(if digit <= chunk.len() { letter } else { b'=' });
            }
        }
        self.byte(b':');
    }
}
