//! The options of calendars: the first day and the zone.

use super::names::{name, same, WEEKDAYS};
use super::Reader;
#[cfg(unix)]
use crate::policy::zone::system;
use crate::policy::zone::{text, Zone};
use crate::policy::{Span, SyntaxError};
use core::ffi::CStr;

const ZONE: &CStr = c"a zone whose future is one rule: `UTC`, a name in the system's zone data such as `Europe/Berlin`, or a rule as in TZ such as `CET-1CEST,M3.5.0,M10.5.0/3`";
const RULE: &CStr = c"a rule as in TZ, such as `CET-1CEST,M3.5.0,M10.5.0/3`";

impl Reader<'_> {
    /// The first day of a calendar's windows, as [`Policy::from`](crate::policy::Policy::from) has
    /// it.
    pub(super) fn first_day(&mut self, period: u64) -> Result<u32, SyntaxError> {
        let start = self.at;
        let day = match Span::ALL.into_iter().find(|span| span.nanos() == period) {
            Some(Span::Week) => self.choice(c"a day from `mon` to `sun`", &WEEKDAYS)?,
            Some(Span::Year) => {
                let expected = c"a month and a day, such as `04-06`";
                let month = self.small(expected)?;
                if self.peek() != Some(b'-') {
                    return Err(self.wrong(expected));
                }
                self.at += 1;
                match (month, self.small(expected)?) {
                    (month @ 1..=12, day @ 1..=31) => (month - 1) * 32 + day - 1,
                    _ => {
                        self.at = start;
                        return Err(self.wrong(expected));
                    }
                }
            }
            Some(Span::Month) => match self.small(c"a day from 1 to 31")? {
                day @ 1..=31 => day - 1,
                _ => {
                    self.at = start;
                    return Err(self.wrong(c"a day from 1 to 31"));
                }
            },
            _ => {
                return Err(self
                    .wrong(c"no first day, because the period is not `week`, `month` or `year`"))
            }
        };
        Ok(day)
    }

    /// A zone: a name or a rule, or two rules and the instant between them.
    pub(super) fn zone(&mut self) -> Result<Zone, SyntaxError> {
        let start = self.at;
        let Some(zone) = named(self.token()) else {
            self.at = start;
            return Err(self.wrong(ZONE));
        };
        let end = self.at;
        self.blanks();
        if !same(&const { name("until") }, self.word()) {
            self.at = end;
            return Ok(zone);
        }
        self.blanks();
        let column = self.at;
        let until = self.digits(c"an instant in Unix seconds")?;
        self.blanks();
        let second = self.at;
        let then = text::law(self.token());
        let [(first, ..), _] = zone.laws();
        let both = then.map(|then| Zone::changing(first, until, then));
        let Some(both) = both else {
            self.at = second;
            return Err(self.wrong(RULE));
        };
        match Zone::from_words(both.to_words()) {
            Some(both) if !zone.changes() => Ok(both),
            _ => {
                self.at = column;
                Err(self.wrong(c"an instant in Unix seconds between two rules"))
            }
        }
    }

    /// Everything up to a blank or the end of the policy. A rule has commas, so only one before a
    /// blank or the end is a schedule's.
    fn token(&mut self) -> &[u8] {
        let start = self.at;
        loop {
            match (self.peek(), self.text.get(self.at + 1)) {
                (None | Some(b' ' | b'\t' | b';'), _) | (Some(b','), None | Some(b' ' | b'\t')) => {
                    break
                }
                _ => self.at += 1,
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }
}

/// The zone of a rule, or of a name in the system's data.
fn named(name: &[u8]) -> Option<Zone> {
    if name == b"UTC" {
        return Some(Zone::UTC);
    }
    if let Some(law) = text::law(name) {
        return Some(Zone::of(law));
    }
    #[cfg(unix)]
    return system::zone(name);
    #[cfg(not(unix))]
    None
}
