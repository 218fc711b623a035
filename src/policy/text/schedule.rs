//! The text of a schedule: policies, each with its days and its time of day.

use super::names::{find, name, same, Name, WEEKDAYS};
use super::{print, Reader, TEXT_MOST};
use crate::policy::schedule::{Schedule, ScheduleEntry, ENTRIES_MOST, SCHEDULE_TEXT_MOST};
use crate::policy::zone;
use crate::policy::{Fault, Policy, PolicyError, SyntaxError};
use crate::writer::Writer;
use core::ffi::CStr;

const ENTRY: &CStr =
    c"days such as `mon-fri` or `sat sun`, a time such as `09:00-18:00`, or `zone`";
const FROM: &CStr = c"a time from `00:00` to `23:59`";
const TO: &CStr = c"a time from `00:00` to `24:00`, which is not the first one again";
const _: () = assert!(ENTRIES_MOST == 16);
const MOST: &CStr = c"at most 16 entries";

impl Schedule {
    /// Reads a text, and checks each policy by `check` in place of [`Policy::validate`].
    ///
    /// # Errors
    /// [`SyntaxError`]: the column, what was expected there, and the kind of fault.
    pub fn parse(
        text: &[u8],
        check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
    ) -> Result<Schedule, SyntaxError> {
        schedule(text, check)
    }

    /// Writes the canonical text, with the zone's rule in place of its name, as far as `out` has
    /// room. Returns the length of the whole text in bytes, at most [`SCHEDULE_TEXT_MOST`].
    pub fn print(&self, out: &mut [u8]) -> usize {
        let mut out = Writer::new(out);
        print_policy(&self.usual, &mut out);
        for entry in self.entries() {
            out.text(", ");
            print_time(entry, &mut out);
            print_policy(&entry.policy, &mut out);
        }
        if !self.zone().is_utc() {
            out.text(", zone ");
            zone::text::print(self.zone(), &mut out);
        }
        out.length
    }
}

impl core::str::FromStr for Schedule {
    type Err = SyntaxError;
    fn from_str(text: &str) -> Result<Schedule, SyntaxError> {
        Schedule::parse(text.as_bytes(), &|policy| policy.validate())
    }
}

impl core::fmt::Display for Schedule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = [0u8; SCHEDULE_TEXT_MOST];
        let len = self.print(&mut out);
        f.write_str(core::str::from_utf8(out.get(..len).unwrap_or(&out)).unwrap_or_default())
    }
}

/// Reads a schedule. The whole text must be that schedule.
fn schedule(
    text: &[u8],
    check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
) -> Result<Schedule, SyntaxError> {
    let mut reader = Reader { text, at: 0 };
    let usual = reader.list(check)?;
    let no_memory =
        SyntaxError { column: 1, expected: c"memory for the entries", fault: Fault::NoMemory };
    let mut schedule = Schedule::new(usual).ok_or(no_memory)?;
    let mut has_zone = false;
    while reader.comma()? {
        reader.blanks();
        let start = reader.at;
        if same(&const { name("zone") }, reader.word()) {
            if has_zone {
                return Err(SyntaxError {
                    column: start + 1,
                    expected: c"one zone",
                    fault: Fault::Duplicate,
                });
            }
            has_zone = true;
            reader.blanks();
            schedule.set_zone(reader.zone()?);
            continue;
        }
        reader.at = start;
        let entry = reader.entry(check)?;
        let wrong =
            |expected| Err(SyntaxError { column: start + 1, expected, fault: Fault::Syntax });
        if schedule.entries().any(|earlier| earlier.overlaps(&entry)) {
            return wrong(c"days and times at which no earlier entry is in force");
        }
        if !schedule.add(entry) {
            return wrong(MOST);
        }
    }
    Ok(schedule)
}

fn print_policy(policy: &Policy, out: &mut Writer<'_>) {
    let mut line = [0; TEXT_MOST];
    let len = print(policy, &mut line);
    line.iter().take(len).for_each(|byte| out.byte(*byte));
}

/// Writes the days and the time of an entry, with a blank after each.
fn print_time(entry: &ScheduleEntry, out: &mut Writer<'_>) {
    let whole = entry.is_whole();
    if entry.days != ALL_DAYS || whole {
        print_days(entry.days, out);
    }
    if !whole {
        for (minute, end) in [(entry.from, "-"), (entry.to, " ")] {
            for (part, end) in [(minute / 60, ":"), (minute % 60, end)] {
                out.number(u64::from(part / 10));
                out.number(u64::from(part % 10));
                out.text(end);
            }
        }
    }
}

const ALL_DAYS: u8 = 0x7f;

fn print_days(days: u8, out: &mut Writer<'_>) {
    let day = |day: u32, out: &mut Writer<'_>| {
        let names = WEEKDAYS.iter().filter(|(_, number)| *number == day);
        names.for_each(|(name, _): &(Name, u32)| {
            name.iter().take(3).for_each(|byte| out.byte(*byte))
        });
    };
    let mut from = 0;
    while from < 7 {
        let length = (days >> from).trailing_ones();
        if length > 0 {
            day(from, out);
            // Two days are shorter as names than as a range.
            if length > 1 {
                out.text(if length > 2 { "-" } else { " " });
                day(from + length - 1, out);
            }
            out.text(" ");
        }
        from += length + 1;
    }
}

impl Reader<'_> {
    /// Whether another part of a schedule follows. Then its `,` has been read.
    fn comma(&mut self) -> Result<bool, SyntaxError> {
        self.blanks();
        match self.peek() {
            None => Ok(false),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Err(self.wrong(c"an option, a comma and an entry, or the end")),
        }
    }

    fn entry(
        &mut self,
        check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
    ) -> Result<ScheduleEntry, SyntaxError> {
        let start = self.at;
        let mut days = 0;
        loop {
            self.blanks();
            let column = self.at;
            let word = self.word();
            if word.is_empty() {
                break;
            }
            let Some(more) = range(word) else {
                self.at = column;
                return Err(self.wrong(ENTRY));
            };
            if days & more != 0 {
                return Err(SyntaxError {
                    column: column + 1,
                    expected: c"each day once",
                    fault: Fault::Duplicate,
                });
            }
            days |= more;
        }
        let (mut from, mut to) = (0, 24 * 60);
        let digits =
            self.text.iter().skip(self.at).take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && self.text.get(self.at + digits) == Some(&b':') {
            from = self.clock(FROM, |minute| minute < 24 * 60)?;
            if self.peek() != Some(b'-') {
                return Err(self.wrong(c"`-` and the time at which the entry ends"));
            }
            self.at += 1;
            to = self.clock(TO, |minute| minute <= 24 * 60 && minute != from)?;
            if to == 0 {
                to = 24 * 60;
            }
        } else if days == 0 {
            self.at = start;
            return Err(self.wrong(ENTRY));
        }
        self.blanks();
        let policy = self.list(check)?;
        Ok(ScheduleEntry { days: if days == 0 { ALL_DAYS } else { days }, from, to, policy })
    }

    /// A time of day, in minutes.
    fn clock(
        &mut self,
        expected: &'static CStr,
        is_valid: impl Fn(u32) -> bool,
    ) -> Result<u32, SyntaxError> {
        let start = self.at;
        let hour = self.small(expected)?;
        if self.peek() == Some(b':') {
            self.at += 1;
            let digits = self.at;
            let minute = self.small(expected)?;
            if let (true, 0..=24, 0..=59) = (self.at == digits + 2, hour, minute) {
                if is_valid(hour * 60 + minute) {
                    return Ok(hour * 60 + minute);
                }
            }
        }
        self.at = start;
        Err(self.wrong(expected))
    }
}

/// The days of `sat`, `mon-fri` or `fri-mon`, from Monday (bit 0).
fn range(word: &[u8]) -> Option<u8> {
    let mut ends = word.splitn(2, |byte| *byte == b'-');
    let first = find(&WEEKDAYS, ends.next()?)?;
    let last = match ends.next() {
        Some(last) => find(&WEEKDAYS, last)?,
        None => first,
    };
    let length = (last + 7 - first) % 7 + 1;
    // The first `length` of two weeks, moved to the first day; the second week's days are the
    // first's.
    let two_weeks = ((1u32 << length) - 1) << first;
    Some((two_weeks | two_weeks >> 7) as u8 & ALL_DAYS)
}
