//! A policy: what is allowed, as plain data. [`text`] reads and writes the one-line form.

mod classes;
mod error;
pub mod fit;
mod kinds;
mod knots;
mod options;
pub mod schedule;
pub mod text;
pub mod zone;

pub use classes::{Classes, CLASSES_MOST, CLASS_NAME_MOST};
pub use error::{Fault, PolicyError, SyntaxError};
pub use kinds::{Form, Kind, Row, Words};
pub use knots::Knots;
pub use options::Opt;
pub use zone::Zone;

use crate::units::nanos;
use core::time::Duration;

/// What a limiter, or a key of a table, keeps when its policy is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Keep {
    /// The number of permits that it has left, up to the new burst. No wait becomes longer than the
    /// new policy's refill.
    #[default]
    Count = 0,
    /// The time until its debt is paid. To and from a quota, which has no such time, the number of
    /// permits used.
    Time = 1,
    /// Nothing: it gets a fresh state.
    Reset = 2,
}

/// What windows and intervals are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Anchor {
    /// Time 0 of the clock.
    Epoch = 0,
    /// The first request of a fresh state.
    First = 1,
}

/// How a sliding window treats its oldest, partly expired segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Mode {
    /// The window is `segments` segments, the running one included, so it is up to one segment
    /// short.
    N = 0,
    /// The window is one segment more: never more than `limit` permits in any window of one period,
    /// and sometimes fewer.
    Strict = 1,
    /// The window is one segment more, of which only the share that is still inside counts.
    Interpolated = 2,
}

/// What a permit stands for. It changes what the text form accepts, not the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Unit {
    /// Requests, calls, messages.
    Permits = 0,
    /// Bytes: sizes may carry `kb mb gb` (powers of 1000) or `kib mib gib` (of 1024).
    Bytes = 1,
}

/// The windows of a calendar. A policy's period is their mean length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// Days.
    Day,
    /// Weeks.
    Week,
    /// Months.
    Month,
    /// Years.
    Year,
}

impl Span {
    /// All of them.
    pub const ALL: [Span; 4] = [Span::Day, Span::Week, Span::Month, Span::Year];

    /// The mean length in nanoseconds, which is the policy's period: 400 years have 146,097 days.
    pub const fn nanos(self) -> u64 {
        let seconds = match self {
            Span::Day => 86_400,
            Span::Week => 7 * 86_400,
            Span::Month => 2_629_746,
            Span::Year => 31_556_952,
        };
        seconds * 1_000_000_000
    }

    /// Whether [`Policy::from`] may have that value.
    fn has_first_day(self, from: u32) -> bool {
        match self {
            Span::Day => from == 0,
            Span::Week => from < 7,
            Span::Month => from < 31,
            // 2000 had a 29 February.
            Span::Year => {
                from / 32 < 12
                    && i64::from(from % 32) < zone::civil::length(2000, i64::from(from / 32) + 1)
            }
        }
    }
}

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
/// The period of a [`Kind::Quota`]: no permit comes back.
pub const FOREVER: u64 = u64::MAX;
/// The most entries a sliding log may keep (8 bytes each: 128 MiB).
pub const LOG_MOST: u64 = 1 << 24;
/// The most segments a sliding window may have.
pub const SEGMENTS_MOST: u32 = 1024;
/// The default number of segments of a sliding window.
pub const SEGMENTS_DEFAULT: u32 = 10;
/// The greatest `after` of a ban.
pub const BAN_AFTER_MOST: u32 = 1000;
/// The default cold factor of a warm-up.
pub const COLD_DEFAULT: u32 = 3;
/// Largest cold factor.
pub const COLD_MOST: u32 = 1000;

/// A token bucket of the usual kind: it starts full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Permits per period.
    pub limit: u64,
    /// The period in nanoseconds.
    pub period: u64,
    /// The most permits at once.
    pub burst: u64,
}

/// `limit` permits per `period`, with the options of its algorithm.
///
/// Options of other algorithms keep the value that [`Policy::new`] gives them. [`Policy::validate`]
/// refuses any other value, so no option is silently ignored.
///
/// ```
/// use tollbar::{Kind, Policy};
/// let policy: Policy = "100/s burst 20".parse()?;
/// assert_eq!((policy.limit, policy.period, policy.burst), (100, 1_000_000_000, 20));
/// assert_eq!(policy.kind, Kind::Gcra);
/// assert_eq!(policy.to_string(), "100/s burst 20");
/// # Ok::<(), tollbar::SyntaxError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Permits per period. 0 denies all.
    pub limit: u64,
    /// The period in nanoseconds; [`FOREVER`] for a quota.
    pub period: u64,
    /// The most permits at once, and so the largest cost that can pass (with `borrow` a larger one
    /// can, too).
    pub burst: u64,
    /// The algorithm.
    pub kind: Kind,
    /// gcra: permits that a fresh state holds. The text form's default is `burst`, or 0 with
    /// `borrow`.
    pub init: u64,
    /// gcra: a bucket without debt lets any cost pass, and later requests wait until that cost is
    /// refilled.
    pub borrow: bool,
    /// interval, fixed-window, sliding-window: the alignment.
    pub anchor: Anchor,
    /// sliding-window: the number of segments.
    pub segments: u32,
    /// sliding-window: how the oldest segment counts.
    pub mode: Mode,
    /// pacer: departures that may leave at once after an idle time, in addition to the one that is
    /// due.
    pub slack: u64,
    /// warm-up: nanoseconds from cold to warm.
    pub warm_up: u64,
    /// warm-up: how many times slower a cold limiter is than a warm one.
    pub cold: u32,
    /// gcra: the length of a ban in nanoseconds; 0 for no ban.
    pub ban: u64,
    /// gcra with `ban`: the refusal that bans, from 1 to [`BAN_AFTER_MOST`]. 0 without `ban`.
    pub ban_after: u32,
    /// fixed-window, sliding-log: refused requests count too.
    pub count_rejected: bool,
    /// What a permit is.
    pub unit: Unit,
    /// gcra without `borrow`, interval, fixed-window, weighted-window, quota: classes of requests,
    /// and the permits that each leaves to the others. A take names its class
    /// ([`Limiter::check_class`](crate::Limiter::check_class)).
    pub classes: Classes,
    /// calendar: the first day of each window, from 0. Of a month: the day of the month less 1. Of
    /// a week: from Monday. Of a year: 32 times the month less 1, plus the day of the month less 1.
    pub from: u32,
    /// calendar: the time zone whose days, weeks, months and years the windows are.
    pub zone: Zone,
    /// gcra, without `init`, `borrow` and `ban`: a second rate, as in "10/s; 1000/day". A request
    /// passes if both buckets have its cost, and then both are charged. Both share one state word.
    pub second: Option<Rate>,
    /// curve: the knots. level-refill: the bands.
    pub knots: Knots,
}

impl Policy {
    /// `limit` permits per `period` nanoseconds by gcra, with the defaults of the text form.
    pub const fn new(limit: u64, period: u64) -> Policy {
        Policy {
            limit,
            period,
            burst: limit,
            kind: Kind::Gcra,
            init: limit,
            borrow: false,
            anchor: Anchor::Epoch,
            segments: 0,
            mode: Mode::N,
            slack: 0,
            warm_up: 0,
            cold: 0,
            ban: 0,
            ban_after: 0,
            count_rejected: false,
            unit: Unit::Permits,
            classes: Classes::NONE,
            from: 0,
            zone: Zone::UTC,
            second: None,
            knots: Knots::NONE,
        }
    }

    /// `limit` permits per second by gcra, and as many at once:
    /// `Policy::per_second(10).with_burst(5)` is `"10/s burst 5"`.
    pub const fn per_second(limit: u64) -> Policy {
        Policy::new(limit, SECOND)
    }

    /// `limit` permits per minute by gcra, and as many at once.
    pub const fn per_minute(limit: u64) -> Policy {
        Policy::new(limit, 60 * SECOND)
    }

    /// `limit` permits per hour by gcra, and as many at once.
    pub const fn per_hour(limit: u64) -> Policy {
        Policy::new(limit, 3_600 * SECOND)
    }

    /// `limit` permits per 24 hours by gcra, and as many at once. [`Policy::calendar`] has the days
    /// of a time zone.
    pub const fn per_day(limit: u64) -> Policy {
        Policy::new(limit, 86_400 * SECOND)
    }

    /// `limit` permits per `period` by gcra, and as many at once. [`PolicyError::PeriodZero`] for a
    /// period of 0 when the policy is used; periods of 584 years and more are [`FOREVER`].
    pub const fn per(limit: u64, period: Duration) -> Policy {
        Policy::new(limit, nanos(period))
    }

    /// A lifetime quota of `limit` permits, of which none comes back.
    pub const fn forever(limit: u64) -> Policy {
        Policy::new(limit, FOREVER).with_kind(Kind::Quota)
    }

    /// This policy with another burst, and a fresh state that holds all of it.
    pub const fn with_burst(mut self, burst: u64) -> Policy {
        self.burst = burst;
        self.init = burst;
        self
    }

    /// This policy with a second rate of `limit` permits per `period` nanoseconds.
    pub const fn with_second(mut self, limit: u64, period: u64) -> Policy {
        self.second = Some(Rate { limit, period, burst: limit });
        self
    }

    /// This policy by [`Kind::Curve`] with these knots.
    pub const fn with_curve(mut self, knots: Knots) -> Policy {
        self.knots = knots;
        self.with_kind(Kind::Curve)
    }

    /// This policy by [`Kind::LevelRefill`] with these bands.
    pub const fn with_bands(mut self, bands: Knots) -> Policy {
        self.knots = bands;
        self.with_kind(Kind::LevelRefill)
    }

    /// This policy with a ban of `time` nanoseconds for a key that has been refused `after` times.
    pub const fn with_ban(mut self, time: u64, after: u32) -> Policy {
        self.ban = time;
        self.ban_after = after;
        self
    }

    /// This policy with these classes.
    pub const fn with_classes(mut self, classes: Classes) -> Policy {
        self.classes = classes;
        self
    }

    /// A quota of `limit` permits for each day, week, month or year of a zone.
    pub const fn calendar(limit: u64, span: Span, zone: Zone) -> Policy {
        let policy = Policy::new(limit, span.nanos()).with_kind(Kind::Calendar);
        Policy { zone, ..policy }
    }

    /// The windows of a calendar; `None` if the period is no span of one.
    pub(crate) fn span(&self) -> Option<Span> {
        Span::ALL.into_iter().find(|span| span.nanos() == self.period)
    }

    /// This policy with another algorithm, and the defaults of that algorithm's options. A quota's
    /// period is [`FOREVER`].
    pub const fn with_kind(mut self, kind: Kind) -> Policy {
        self.kind = kind;
        if kind.takes(Opt::Segments) {
            self.segments = SEGMENTS_DEFAULT;
        }
        if kind.takes(Opt::Cold) {
            self.cold = COLD_DEFAULT;
        }
        if kind.is_forever() {
            self.period = FOREVER;
        }
        self
    }

    /// The bucket of this policy's own rate, which comes first in a list of two.
    pub(crate) const fn rate(&self) -> Rate {
        Rate { limit: self.limit, period: self.period, burst: self.burst }
    }

    /// Whether every option is in range and belongs to the algorithm. Limits that depend on the
    /// size of a state word are checked when the policy is compiled.
    ///
    /// # Errors
    /// The first rule that the policy breaks.
    pub fn validate(&self) -> Result<(), PolicyError> {
        if self.period == 0 {
            return Err(PolicyError::PeriodZero);
        }
        if self.burst == 0 && self.limit != 0 {
            return Err(PolicyError::BurstZero);
        }
        if self.init > self.burst {
            return Err(PolicyError::InitAboveBurst);
        }
        if let Some(second) = self.second {
            let usual = matches!(self.kind, Kind::Gcra)
                && !self.borrow
                && self.ban == 0
                && self.init == self.burst;
            if !usual
                || self.limit == 0
                || second.limit == 0
                || second.period == 0
                || second.burst == 0
            {
                return Err(PolicyError::List);
            }
        }
        let kind = self.kind;
        let mut i = 0;
        while i < Opt::ALL.len() {
            if self.sets(Opt::ALL[i]) && !kind.takes(Opt::ALL[i]) {
                return Err(PolicyError::OptionMismatch);
            }
            i += 1;
        }
        if kind.takes(Opt::Segments) && (self.segments == 0 || self.segments > SEGMENTS_MOST) {
            return Err(PolicyError::Segments);
        }
        if kind.takes(Opt::Warm) && (self.warm_up == 0 || self.cold == 0 || self.cold > COLD_MOST) {
            return Err(PolicyError::WarmUp);
        }
        if self.ban != 0 && (self.borrow || self.init != self.burst) {
            return Err(PolicyError::OptionMismatch);
        }
        if (self.ban == 0) != (self.ban_after == 0) || self.ban_after > BAN_AFTER_MOST {
            return Err(PolicyError::Ban);
        }
        if !self.classes.is_empty() && (self.borrow || self.class_without_room().is_some()) {
            return Err(PolicyError::Classes);
        }
        if kind.is_forever() && self.period != FOREVER {
            return Err(PolicyError::Quota);
        }
        if kind.takes(Opt::Curve) && !self.knots.is_curve()
            || kind.takes(Opt::Refill) && !self.knots.is_bands()
        {
            return Err(PolicyError::Knots);
        }
        if matches!(kind, Kind::Calendar)
            && !self.span().is_some_and(|span| span.has_first_day(self.from))
        {
            return Err(PolicyError::Calendar);
        }
        if matches!(kind, Kind::SlidingLog) && self.limit > LOG_MOST {
            return Err(PolicyError::LogTooLarge);
        }
        Ok(())
    }

    /// Whether the option has another value than [`Policy::new`] gives it.
    fn sets(&self, option: Opt) -> bool {
        match option {
            Opt::Burst => self.burst != self.limit,
            Opt::Init => self.init != self.burst,
            Opt::Borrow => self.borrow,
            Opt::Anchor => matches!(self.anchor, Anchor::First),
            Opt::Segments => self.segments != 0,
            Opt::Mode => !matches!(self.mode, Mode::N),
            Opt::Slack => self.slack != 0,
            Opt::Warm => self.warm_up != 0,
            Opt::Cold => self.cold != 0,
            Opt::Ban => self.ban != 0,
            Opt::After => self.ban_after != 0,
            Opt::Curve => !self.knots.is_none() && !matches!(self.kind, Kind::LevelRefill),
            Opt::Refill => !self.knots.is_none() && matches!(self.kind, Kind::LevelRefill),
            Opt::Count => self.count_rejected,
            Opt::Reserve => !self.classes.is_empty(),
            Opt::From => self.from != 0,
            Opt::Zone => !self.zone.is_utc(),
            // Every algorithm has these two.
            Opt::Algo | Opt::Unit => false,
        }
    }

    /// The index of the first class of which no request could pass: its reserve is the burst or
    /// more. A limit of 0 denies all classes alike.
    const fn class_without_room(&self) -> Option<usize> {
        let burst = match self.second {
            Some(second) if second.burst < self.burst => second.burst,
            _ => self.burst,
        };
        match self.limit {
            0 => None,
            _ => self.classes.first_without_room(burst),
        }
    }
}
