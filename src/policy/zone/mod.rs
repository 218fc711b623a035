//! Time zones, as laws and not as data: a zone is the rule by which its offset changes every year.
//!
//! A [`Zone`] is five words, so it fits a policy, a record of shared memory and a C struct, and
//! means the same in every process. It is the rule that POSIX writes as
//! `CET-1CEST,M3.5.0,M10.5.0/3`: an offset, and for zones with daylight time a second offset and
//! the two transitions of each year. A second rule may take over at one instant: for a change of
//! law that has been announced, or a zone that moves across the date line.
//!
//! The core has no zone data. A name such as `Europe/Berlin` becomes a rule when a policy's text is
//! read, from the system's data ([`tzif`]). A zone whose future has no such rule is refused then.

pub(crate) mod civil;
#[cfg(unix)]
pub(crate) mod system;
pub(crate) mod text;
pub mod tzif;

use civil::{date, day, length, weekday};

/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;
/// The greatest offset and the greatest time of a transition, in seconds: those that a rule can
/// have as text (RFC 8536).
const OFFSET_MOST: i64 = 25 * 3600 - 1;
const TIME_MOST: i64 = 168 * 3600 - 1;

/// A time zone. [`Zone::UTC`] is the default. Two zones are equal if their rules are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Zone {
    /// Before `until`: the law, as [`Law::pack`] writes it. The law itself if there is one only.
    first: [u64; 2],
    /// From `until` on.
    then: [u64; 2],
    /// The instant at which the second law takes over, in Unix seconds. 0: there is one law.
    until: u64,
}

/// A rule for every year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Law {
    /// Seconds by which local time is ahead of UTC.
    pub(crate) standard: i32,
    /// The same in daylight time, and the transitions at which that begins and ends.
    pub(crate) daylight: Option<(i32, Transition, Transition)>,
}

/// A day and a time of every year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) on: On,
    /// Seconds since local midnight of that day, by the offset before the transition.
    pub(crate) time: i32,
}

/// A day of every year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// `Mm.w.d`: the month, the week of it (5: the last), and the day of the week from Sunday (0).
    Month(u8, u8, u8),
    /// `Jn`: the day of the year from 1. February 29 is never counted.
    Julian(u16),
    /// `n`: the day of the year from 0.
    Day(u16),
}

/// The offsets of three years: each with the instant from which it holds, in order.
struct Spans {
    spans: [(i64, i32); 7],
    count: usize,
}

impl Zone {
    /// No offset.
    pub const UTC: Zone = Zone { first: [0; 2], then: [0; 2], until: 0 };

    /// The zone of one law.
    pub(crate) fn of(law: Law) -> Zone {
        Zone { first: law.pack(), ..Zone::UTC }
    }

    /// The zone of `first` until that instant (Unix seconds, above 0), and of `then` afterwards.
    pub(crate) fn changing(first: Law, until: u64, then: Law) -> Zone {
        Zone { first: first.pack(), then: then.pack(), until }
    }

    /// The zone as words, all 0 for UTC.
    pub const fn to_words(self) -> [u64; 5] {
        let ([a, b], [c, d]) = (self.first, self.then);
        [a, b, c, d, self.until]
    }

    /// The zone of these words; `None` if no zone has them.
    pub fn from_words(words: [u64; 5]) -> Option<Zone> {
        let [a, b, c, d, until] = words;
        let zone = Zone { first: [a, b], then: [c, d], until };
        let single = until == 0 && zone.then == [0; 2];
        (zone.is_valid() && (single || (1..=i64::MAX as u64 / 4).contains(&until))).then_some(zone)
    }

    fn is_valid(&self) -> bool {
        [self.first, self.then]
            .iter()
            .all(|words| Law::unpack(*words).is_some_and(|law| law.pack() == *words))
    }

    /// Whether a second law takes over.
    pub(crate) fn changes(&self) -> bool {
        self.until != 0
    }

    /// Whether the zone is UTC.
    pub fn is_utc(&self) -> bool {
        *self == Zone::UTC
    }

    /// The laws, each with the instants from which and until which it holds.
    pub(crate) fn laws(&self) -> [(Law, i64, i64); 2] {
        let (first, then) = (
            Law::unpack(self.first).unwrap_or_default(),
            Law::unpack(self.then).unwrap_or_default(),
        );
        match self.until as i64 {
            0 => [(first, i64::MIN, i64::MAX), (first, i64::MAX, i64::MAX)],
            until => [(first, i64::MIN, until), (then, until, i64::MAX)],
        }
    }

    /// The seconds by which local time is ahead of UTC at an instant (Unix seconds).
    pub fn offset_at(&self, instant: i64) -> i32 {
        let [(first, _, until), (then, ..)] = self.laws();
        match instant < until {
            true => first.offset_at(instant),
            false => then.offset_at(instant),
        }
    }

    /// The first instant after that one (Unix seconds) at which the offset changes or the second
    /// law takes over.
    pub(crate) fn next_change(&self, instant: i64) -> Option<i64> {
        let [(first, _, until), (then, ..)] = self.laws();
        match instant < until {
            true => first
                .next_change(instant)
                .filter(|at| *at < until)
                .or((until != i64::MAX).then_some(until)),
            false => then.next_change(instant),
        }
    }

    /// The first instant (Unix seconds) at which local clocks show `local` or later: local seconds,
    /// counted as if the zone were UTC.
    ///
    /// If clocks show it twice, that is the first time. If clocks jump over it, it is the instant
    /// of the jump.
    pub fn reaches(&self, local: i64) -> i64 {
        let (year, ..) = date(local.div_euclid(DAY));
        for (law, from, until) in self.laws() {
            let spans = law.spans(year);
            let ends = spans.iter().skip(1).map(|(at, _)| *at).chain(core::iter::once(i64::MAX));
            for ((at, offset), end) in spans.iter().zip(ends) {
                let seen = (*at).max(from).max(local - i64::from(*offset));
                if seen < end.min(until) {
                    return seen;
                }
            }
        }
        // Only if both laws are empty.
        local
    }
}

impl Law {
    /// The law of one offset.
    pub(crate) const fn fixed(standard: i32) -> Law {
        Law { standard, daylight: None }
    }

    fn pack(self) -> [u64; 2] {
        let Some((offset, begins, ends)) = self.daylight else {
            return [u64::from(self.standard as u32), 0];
        };
        let offsets = u64::from(self.standard as u32) | u64::from(offset as u32) << 32;
        [offsets, u64::from(begins.pack()) | u64::from(ends.pack()) << 32]
    }

    fn unpack([offsets, transitions]: [u64; 2]) -> Option<Law> {
        let offset = |bits: u64| {
            Some(bits as u32 as i32).filter(|offset| i64::from(*offset).abs() <= OFFSET_MOST)
        };
        let daylight = match transitions {
            0 => None,
            _ => Some((
                offset(offsets >> 32)?,
                Transition::unpack(transitions as u32)?,
                Transition::unpack((transitions >> 32) as u32)?,
            )),
        };
        Some(Law { standard: offset(offsets)?, daylight })
    }

    pub(crate) fn offset_at(&self, instant: i64) -> i32 {
        let (year, ..) = date(instant.div_euclid(DAY));
        self.spans(year)
            .iter()
            .rev()
            .find(|(at, _)| *at <= instant)
            .map_or(self.standard, |(_, offset)| *offset)
    }

    /// The first instant after that one at which the offset changes.
    pub(crate) fn next_change(&self, instant: i64) -> Option<i64> {
        let (year, ..) = date(instant.div_euclid(DAY));
        let spans = self.spans(year);
        let mut at = spans.iter().filter(|(at, _)| *at > instant).map(|(at, _)| *at);
        at.find(|at| self.offset_at(*at) != self.offset_at(*at - 1))
    }

    /// The offsets from the transitions of the year before to those of the year after.
    fn spans(&self, year: i64) -> Spans {
        let mut spans = Spans { spans: [(i64::MIN, self.standard); 7], count: 1 };
        let Some((daylight, begins, ends)) = self.daylight else { return spans };
        for year in year - 1..=year + 1 {
            let begin = (begins.at(year, self.standard), daylight);
            let end = (ends.at(year, daylight), self.standard);
            let (first, second) = if begin.0 <= end.0 { (begin, end) } else { (end, begin) };
            if spans.count == 1 {
                if let Some(before) = spans.spans.first_mut() {
                    before.1 = second.1;
                }
            }
            for transition in [first, second] {
                if let Some(place) = spans.spans.get_mut(spans.count) {
                    *place = transition;
                    spans.count += 1;
                }
            }
        }
        spans
    }
}

impl Spans {
    fn iter(&self) -> core::slice::Iter<'_, (i64, i32)> {
        self.spans.get(..self.count).unwrap_or_default().iter()
    }
}

impl Transition {
    /// The instant of the transition in that year; `offset` is the offset before it.
    fn at(&self, year: i64, offset: i32) -> i64 {
        let days = match self.on {
            On::Month(month, week, weekday_of) => {
                let first = day(year, i64::from(month), 1);
                // From Monday, as `weekday` counts.
                let wanted = i64::from(weekday_of) + 6;
                let mut found =
                    first + (wanted - weekday(first)).rem_euclid(7) + 7 * (i64::from(week) - 1);
                if found >= first + length(year, i64::from(month)) {
                    found -= 7;
                }
                found
            }
            On::Julian(n) => {
                let leap = n >= 60 && length(year, 2) == 29;
                day(year, 1, 1) + i64::from(n) - 1 + i64::from(leap)
            }
            On::Day(n) => day(year, 1, 1) + i64::from(n),
        };
        days * DAY + i64::from(self.time) - i64::from(offset)
    }

    /// The time in 21 bits, so many seconds above -168 hours that it is never 0, and the day in 11
    /// bits.
    fn pack(self) -> u32 {
        let on = match self.on {
            On::Month(month, week, weekday) => {
                u32::from(month) << 6 | u32::from(week) << 3 | u32::from(weekday)
            }
            On::Julian(n) => 1 << 10 | 1 << 9 | u32::from(n),
            On::Day(n) => 1 << 10 | u32::from(n),
        };
        (i64::from(self.time) + TIME_MOST + 1) as u32 | on << 21
    }

    fn unpack(bits: u32) -> Option<Transition> {
        let (time, on) = (i64::from(bits & 0x1f_ffff) - TIME_MOST - 1, bits >> 21);
        let n = (on & 0x1ff) as u16;
        let on = match on >> 9 {
            3 => On::Julian(n),
            2 => On::Day(n),
            _ => On::Month((on >> 6) as u8, (on >> 3 & 7) as u8, (on & 7) as u8),
        };
        let transition = Transition { on, time: time as i32 };
        transition.is_valid().then_some(transition)
    }

    pub(crate) fn is_valid(&self) -> bool {
        let on = match self.on {
            On::Month(month, week, weekday) => {
                (1..=12).contains(&month) && (1..=5).contains(&week) && (0..=6).contains(&weekday)
            }
            On::Julian(n) => (1..=365).contains(&n),
            On::Day(n) => n <= 365,
        };
        on && i64::from(self.time).abs() <= TIME_MOST
    }
}
