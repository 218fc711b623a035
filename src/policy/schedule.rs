//! Schedules: another policy by time of day and day of the week.
//!
//! ```text
//! POLICY { ", " [ DAYS ] [ HH:MM-HH:MM ] POLICY } [ ", zone" ZONE ]
//!
//! 1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin
//! 100/s, 22:00-06:00 500/s, sat sun 06:00-22:00 200/s
//! ```
//!
//! The first policy is in force whenever no entry is. An entry is in force while local clocks show
//! one of its days and a time from its begin to just before its end. Without days it holds every
//! day, without a time the whole day. An entry whose end is before its begin goes on over midnight,
//! and belongs to the day on which it begins. At most one entry is in force at a time.
//!
//! A [`Schedule`] has no state. The policy in force depends on the instant alone, so all processes
//! that have one text and agree about the instant agree about the policy, whatever their clocks
//! showed before. If local clocks jump over the begin of an entry, it begins at the jump. If they
//! show an hour twice, each entry of that hour is in force twice.
//!
//! To follow a schedule, give the policy in force to
//! [`Limiter::set_policy`](crate::Limiter::set_policy) or to a table's `set_policy`, once a second
//! or at [`InForce::until`]. A policy that is in force already changes nothing. With
//! [`Keep::Count`](super::Keep::Count) the permits left stay left at a switch, up to the new burst,
//! and a full bucket stays full. In any interval a limiter or a key is admitted at most the sum of
//! the bounds of the policies that were in force in it, each as often as it came into force.
//!
//! Policies that count in windows of one length, such as `1000/month` and `10/month`, keep the
//! permits used instead, and a count above the smaller limit becomes that limit. So with
//! `1000/month, sun 10/month` a key may take 990 permits after each Sunday. If a limit shall hold
//! over the switches, make it a policy of its own, and charge both with
//! [`take_many`](crate::take_many).

use super::text::TEXT_MOST;
use super::zone::civil::weekday;
use super::zone::{Zone, DAY};
use super::Policy;
use crate::sync::filled;
use crate::units::NEVER;
use alloc::boxed::Box;

/// The most entries of a schedule.
pub const ENTRIES_MOST: usize = 16;
/// The longest text, in bytes, that [`Schedule::print`] writes.
pub const SCHEDULE_TEXT_MOST: usize = (ENTRIES_MOST + 2) * (TEXT_MOST + 48);

const SECOND: u64 = 1_000_000_000;
/// Minutes of a day of 24 hours.
const MINUTES: u32 = 1440;
/// Entries have at most 32 edges a day. Fifteen days have every local time, even if a zone leaves
/// out one of them.
const EDGES_MOST: u32 = 512;

/// A policy for each time of the week.
///
/// ```
/// use tollbar::policy::schedule::Schedule;
///
/// let schedule: Schedule = "1000/min, mon-fri 09:00-18:00 100/min, zone CET-1CEST,M3.5.0,M10.5.0/3".parse()?;
/// let monday = 1_774_857_600; // 2026-03-30 10:00 in Berlin
/// let now = schedule.at(monday * 1_000_000_000);
/// assert_eq!(now.policy.to_string(), "100/min");
/// assert_eq!(now.until, (monday + 8 * 3600) * 1_000_000_000);
/// # Ok::<(), tollbar::SyntaxError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub(super) usual: Policy,
    /// [`ENTRIES_MOST`] places, on the heap because they are 10 KiB.
    entries: Box<[Option<ScheduleEntry>]>,
    zone: Zone,
}

/// The policy in force at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The policy.
    pub policy: Policy,
    /// The instant at which another policy comes into force, in Unix nanoseconds. [`NEVER`]: none
    /// does.
    pub until: u64,
}

/// A policy at some times of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduleEntry {
    /// The days on which it begins, from Monday (bit 0).
    pub(super) days: u8,
    /// The minute of the day at which it begins, below [`MINUTES`].
    pub(super) from: u32,
    /// The minute at which it ends, from 1 to [`MINUTES`]. On the next day if it is not above
    /// `from`.
    pub(super) to: u32,
    pub(super) policy: Policy,
}

impl Schedule {
    /// A schedule of UTC without entries. `None` if there is no memory.
    pub(super) fn new(usual: Policy) -> Option<Schedule> {
        Some(Schedule { usual, entries: filled(ENTRIES_MOST, None)?, zone: Zone::UTC })
    }

    /// The policy in force at `unix` nanoseconds since 1970, and the instant of the next change.
    pub fn at(&self, unix: u64) -> InForce {
        let instant = (unix / SECOND) as i64;
        let policy = *self.policy(instant);
        let mut at = instant;
        for _ in 0..EDGES_MOST {
            let Some(edge) = self.next_edge(at) else { break };
            if *self.policy(edge) != policy {
                return InForce { policy, until: (edge as u64).saturating_mul(SECOND) };
            }
            at = edge;
        }
        InForce { policy, until: NEVER }
    }

    /// The policies: the usual one, then that of each entry.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        core::iter::once(&self.usual).chain(self.entries().map(|entry| &entry.policy))
    }

    /// The zone whose local clocks the entries mean.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    pub(super) fn set_zone(&mut self, zone: Zone) {
        self.zone = zone;
    }

    /// Adds an entry. `false`: there are [`ENTRIES_MOST`] already.
    pub(super) fn add(&mut self, entry: ScheduleEntry) -> bool {
        let place = self.entries.iter_mut().find(|place| place.is_none());
        place.map(|place| *place = Some(entry)).is_some()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &ScheduleEntry> {
        self.entries.iter().flatten()
    }

    /// The policy in force, by what local clocks show at that instant (Unix seconds).
    fn policy(&self, instant: i64) -> &Policy {
        let local = self.local(instant);
        let (day, minute) = (weekday(local.div_euclid(DAY)), (local.rem_euclid(DAY) / 60) as u32);
        self.entries()
            .find(|entry| entry.holds(day, minute))
            .map_or(&self.usual, |entry| &entry.policy)
    }

    /// The first instant after that one at which local clocks reach the begin or end of an entry on
    /// any day, or at which they jump.
    fn next_edge(&self, instant: i64) -> Option<i64> {
        let second = self.local(instant).rem_euclid(DAY);
        let edges = self.entries().flat_map(|entry| [entry.from, entry.to]);
        // From 1 to a whole day.
        let wait =
            edges.map(|minute| (i64::from(minute) * 60 - second - 1).rem_euclid(DAY) + 1).min()?;
        let jump = self.zone.next_change(instant).unwrap_or(i64::MAX);
        Some(jump.min(instant + wait))
    }

    /// What local clocks show, in seconds since 1970-01-01 00:00.
    fn local(&self, instant: i64) -> i64 {
        instant + i64::from(self.zone.offset_at(instant))
    }
}

impl ScheduleEntry {
    /// Whether it is in force on that day of the week, from Monday (0), at that minute.
    fn holds(&self, day: i64, minute: u32) -> bool {
        let on = |day: i64| self.days >> day.rem_euclid(7) & 1 != 0;
        match self.from < self.to {
            true => on(day) && (self.from..self.to).contains(&minute),
            false => on(day) && minute >= self.from || on(day - 1) && minute < self.to,
        }
    }

    /// Whether both are in force at one time of the week.
    pub(super) fn overlaps(&self, other: &ScheduleEntry) -> bool {
        // Then one of them begins while the other is in force.
        let begins_in = |a: &ScheduleEntry, b: &ScheduleEntry| {
            (0..7).any(|day| a.days >> day & 1 != 0 && b.holds(day, a.from))
        };
        begins_in(self, other) || begins_in(other, self)
    }

    /// Whether it has whole days.
    pub(super) fn is_whole(&self) -> bool {
        self.from == 0 && self.to == MINUTES
    }
}
