//! Rules of zones in POSIX's text, as in the variable TZ: `CET-1CEST,M3.5.0,M10.5.0/3`.

use super::{Law, On, Transition, Zone, OFFSET_MOST};
use crate::writer::Writer;

/// A transition without a time is at two.
const TWO: i32 = 7200;

/// The law of a whole text; `None` if it is no rule.
pub(crate) fn law(text: &[u8]) -> Option<Law> {
    let mut reader = ZoneReader(text);
    reader.abbreviation()?;
    let standard = reader.offset()?;
    if reader.0.is_empty() {
        return Some(Law::fixed(standard));
    }
    reader.abbreviation()?;
    let daylight = match reader.0.first()? {
        b',' => standard + 3600,
        _ => reader.offset()?,
    };
    let (begins, ends) = (reader.transition()?, reader.transition()?);
    (reader.0.is_empty() && i64::from(daylight) <= OFFSET_MOST)
        .then_some(Law { standard, daylight: Some((daylight, begins, ends)) })
}

struct ZoneReader<'a>(&'a [u8]);

impl ZoneReader<'_> {
    fn skip(&mut self, byte: u8) -> bool {
        let Some(rest) = self.0.strip_prefix(&[byte]) else { return false };
        self.0 = rest;
        true
    }

    /// Three letters or more, or as many letters, digits and signs in angle brackets.
    fn abbreviation(&mut self) -> Option<()> {
        let quoted = self.skip(b'<');
        let letters = |byte: &u8| {
            byte.is_ascii_alphabetic() || quoted && (byte.is_ascii_digit() || b"+-".contains(byte))
        };
        let len = self.0.iter().take_while(|byte| letters(byte)).count();
        self.0 = self.0.get(len..)?;
        (len >= 3 && (!quoted || self.skip(b'>'))).then_some(())
    }

    fn number(&mut self, most: i32) -> Option<i32> {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = (self.0.get(..len)?, self.0.get(len..)?);
        if !(1..=3).contains(&len) {
            return None;
        }
        self.0 = rest;
        let number = digits.iter().fold(0, |number, digit| number * 10 + i32::from(digit - b'0'));
        (number <= most).then_some(number)
    }

    /// `[+-]h[:mm[:ss]]` in seconds.
    fn time(&mut self, hours: i32) -> Option<i32> {
        let back = self.skip(b'-');
        if !back {
            self.skip(b'+');
        }
        let mut time = self.number(hours)? * 3600;
        for unit in [60, 1] {
            if !self.skip(b':') {
                break;
            }
            time += self.number(59)? * unit;
        }
        Some(if back { -time } else { time })
    }

    /// POSIX counts offsets to the west.
    fn offset(&mut self) -> Option<i32> {
        self.time(24).map(|west| -west)
    }

    fn transition(&mut self) -> Option<Transition> {
        if !self.skip(b',') {
            return None;
        }
        let on = if self.skip(b'M') {
            let month = self.number(12)?;
            let week = self.skip(b'.').then(|| self.number(5)).flatten()?;
            let weekday = self.skip(b'.').then(|| self.number(6)).flatten()?;
            On::Month(month as u8, week as u8, weekday as u8)
        } else if self.skip(b'J') {
            On::Julian(self.number(365)? as u16)
        } else {
            On::Day(self.number(365)? as u16)
        };
        let time = match self.skip(b'/') {
            true => self.time(167)?,
            false => TWO,
        };
        Some(Transition { on, time }).filter(Transition::is_valid)
    }
}

/// Writes a zone as the text of a policy has it: abbreviations are always `STD` and `DST`.
pub(crate) fn print(zone: &Zone, out: &mut Writer<'_>) {
    if zone.is_utc() {
        return out.text("UTC");
    }
    let [(first, _, until), (then, ..)] = zone.laws();
    print_law(&first, out);
    if until != i64::MAX {
        out.text(" until ");
        out.number(until as u64);
        out.text(" ");
        print_law(&then, out);
    }
}

fn print_law(law: &Law, out: &mut Writer<'_>) {
    out.text("STD");
    time(-law.standard, out);
    let Some((daylight, begins, ends)) = law.daylight else { return };
    out.text("DST");
    if daylight != law.standard + 3600 {
        time(-daylight, out);
    }
    for transition in [begins, ends] {
        out.text(",");
        let (mark, parts) = match transition.on {
            On::Month(month, week, weekday) => {
                ("M", [Some(u16::from(month)), Some(week.into()), Some(weekday.into())])
            }
            On::Julian(n) => ("J", [Some(n), None, None]),
            On::Day(n) => ("", [Some(n), None, None]),
        };
        out.text(mark);
        for (n, part) in parts.into_iter().flatten().enumerate() {
            out.text(if n == 0 { "" } else { "." });
            out.number(part.into());
        }
        if transition.time != TWO {
            out.text("/");
            time(transition.time, out);
        }
    }
}

/// `[-]h[:mm[:ss]]`.
fn time(seconds: i32, out: &mut Writer<'_>) {
    if seconds < 0 {
        out.text("-");
    }
    let all = u64::from(seconds.unsigned_abs());
    out.number(all / 3600);
    let (minutes, rest) = (all / 60 % 60, all % 60);
    for (part, wanted) in [(minutes, minutes != 0 || rest != 0), (rest, rest != 0)] {
        if wanted {
            out.text(if part < 10 { ":0" } else { ":" });
            out.number(part);
        }
    }
}
