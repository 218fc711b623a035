//! Calendar quotas by their definition, with jiff's dates and zones.

use super::*;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use tollbar::units::LAST;

const SECOND: u64 = 1_000_000_000;

/// A count for each window.
pub struct Windows {
    limit: u64,
    days: i64,
    months: i64,
    /// A day on which a window begins, before all times.
    anchor: Date,
    zone: TimeZone,
    /// Start and count of the latest window.
    window: Option<(u64, u64)>,
}

impl Windows {
    /// The zone is that of the policy's text: UTC, or a rule.
    pub fn new(policy: &Policy) -> Windows {
        let text = policy.to_string();
        let rule = text.split(" zone ").nth(1).unwrap_or("UTC0");
        // Days, weeks from a Monday, months, and years from a leap year.
        let (days, months, anchor) = match policy.period / (86_400 * SECOND) {
            1 => (1, 0, Date::constant(1900, 1, 1)),
            7 => (7, 0, Date::constant(1899, 12, 25 + policy.from as i8)),
            30 => (0, 1, Date::constant(1900, 1, 1 + policy.from as i8)),
            _ => (
                0,
                12,
                Date::constant(1904, 1 + policy.from as i8 / 32, 1 + policy.from as i8 % 32),
            ),
        };
        Windows {
            limit: policy.limit,
            days,
            months,
            anchor,
            zone: TimeZone::posix(rule).expect(rule),
            window: None,
        }
    }

    fn start(&self, n: i64) -> u64 {
        let day = self
            .anchor
            .checked_add(Span::new().days(n * self.days).months(n * self.months))
            .expect("a date");
        let start =
            day.to_zoned(self.zone.clone()).expect("a time").start_of_day().expect("a start");
        start.timestamp().as_second().max(0) as u64 * SECOND
    }

    /// The window of a time: the last one that has begun.
    fn number(&self, now: u64) -> i64 {
        let today = Timestamp::from_second((now / SECOND) as i64)
            .expect("a time")
            .to_zoned(self.zone.clone())
            .date();
        let days = i64::from(today.since(self.anchor).expect("a span").get_days());
        // At most one too many.
        let mut n = if self.days > 0 { days / self.days } else { days / (29 * self.months) } + 1;
        while self.start(n) > now {
            let over = (self.start(n) - now) / SECOND / 86_400;
            n -= (over as i64 / (self.days + self.months * 31)).max(1);
        }
        n
    }

    /// Start, end and count of the window in which a request is decided.
    fn at(&self, now: u64) -> (u64, u64, u64) {
        let n = self.number(now);
        let (start, end) = (self.start(n), self.start(n + 1));
        match self.window {
            Some((latest, used)) if latest >= start => {
                (latest, self.start(self.number(latest) + 1), used)
            }
            _ => (start, end, 0),
        }
    }
}

impl Model for Windows {
    fn reset(&mut self) {
        self.window = None;
    }
    fn most(&self) -> u64 {
        self.limit
    }
    fn fits(&self, now: u64, cost: u64, side: Side) -> bool {
        cost <= self.remaining(now, side)
    }
    fn settle(&mut self, now: u64, cost: u64, passed: bool) {
        if passed {
            let (start, _, used) = self.at(now);
            self.window = Some((start, used + cost));
        }
    }
    fn remaining(&self, now: u64, _: Side) -> u64 {
        match now <= LAST {
            true => self.limit - self.at(now).2,
            false => 0,
        }
    }
    fn admits_at(&self, now: u64, cost: u64, side: Side) -> u64 {
        match self.at(now).1 {
            _ if self.fits(now, cost, side) => now,
            end if now <= LAST && end <= LAST => end,
            _ => NEVER,
        }
    }
}
