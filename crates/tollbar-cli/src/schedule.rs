//! `tollbar policy explain` and `check` for schedules: other policies by time of day and day of the
//! week.

use crate::chart::{chart_row, local_time, WIDTH};
use crate::problem::{Problem, Result};
use crate::text::{grouped, span};
use std::fmt::Write;
use tollbar::clock::Manual;
use tollbar::policy::schedule::Schedule;
use tollbar::policy::Keep;
use tollbar::{Limiter, Policy, State, NEVER};

const SECOND: u64 = 1_000_000_000;
/// The changes that are listed.
const CHANGES: usize = 8;

/// Whether a text has entries after its first policy. A rule's commas have no blank after them.
pub fn has_entries(text: &str) -> bool {
    text.contains(", ") || text.ends_with(',')
}

/// A schedule whose policies a limiter can have, or a message that shows where the text is wrong.
pub fn parse(text: &str) -> Result<Schedule> {
    Schedule::parse(text.as_bytes(), &State::validate)
        .map_err(|error| Problem::syntax("schedule", text, &error))
}

/// Explains a schedule in four parts: its canonical text, the policy in force at `now` (Unix
/// seconds), the next changes, and a chart of the permits that one key gets in each hour of a day.
pub fn explain(schedule: &Schedule, now: u64) -> Result<String> {
    let mut out = format!("{schedule}\n\n  The policy in force from now on, by local time:\n");
    let mut at = now * SECOND;
    for _ in 0..CHANGES {
        let in_force = schedule.at(at);
        let begin = local_time(schedule.zone(), (at / SECOND) as i64);
        let _ = match in_force.until {
            NEVER => writeln!(out, "  {begin} {:>16} {}", "for ever", in_force.policy),
            until => writeln!(out, "  {begin} {:>16} {}", span(until - at), in_force.policy),
        };
        if in_force.until == NEVER {
            break;
        }
        at = in_force.until;
    }
    out.push_str("\n  A key that takes all it can, each second of a day from now on:\n");
    let hours = hours(schedule, now)?;
    let most = hours.iter().copied().max().unwrap_or(0).max(1);
    for (hour, taken) in (0..).zip(hours) {
        let begin = local_time(schedule.zone(), (now + hour * 3_600) as i64);
        let bar = (taken * WIDTH).div_ceil(most) as usize;
        chart_row(&mut out, &begin, &grouped(taken), bar);
    }
    Ok(out)
}

/// What the library gives a new key in each of 24 hours, if it takes all it can each second and the
/// limiter follows the schedule.
fn hours(schedule: &Schedule, now: u64) -> Result<Vec<u64>> {
    let refused = |policy: &Policy, error| Problem::io(format!("{policy}: {error}"));
    let mut in_force = schedule.at(now * SECOND);
    let state = State::new(&in_force.policy).map_err(|error| refused(&in_force.policy, error))?;
    let limiter = Limiter::with(state, Manual::new(0));
    let mut hours = vec![0u64; 24];
    for second in 0..24 * 3_600 {
        let at = (now + second) * SECOND;
        if at >= in_force.until {
            in_force = schedule.at(at);
            let policy = &in_force.policy;
            limiter
                .set_policy_at(at, policy, Keep::Count)
                .map_err(|error| refused(policy, error))?;
        }
        let hour = &mut hours[(second / 3_600) as usize];
        *hour = hour.saturating_add(limiter.take_up_to_at(at, u64::from(u32::MAX)));
    }
    Ok(hours)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-23 05:00 UTC, a Monday. The list has the changes of Berlin's clocks, and the chart
    /// what the rates give in an hour.
    #[test]
    fn a_schedule_shows_its_changes_and_its_hours() {
        let text = "10/s burst 20, mon-fri 09:00-18:00 1/s, zone CET-1CEST,M3.5.0,M10.5.0/3";
        assert!(has_entries(text) && !has_entries("1000/month zone CET-1CEST,M3.5.0,M10.5.0/3"));
        let schedule = parse(text).expect("a schedule");
        let out = explain(&schedule, 1_795_410_000).expect("a text");
        let rows: Vec<Vec<&str>> =
            out.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[3], ["2026-11-23", "06:00", "+01:00", "3", "h", "10/s", "burst", "20"]);
        assert_eq!(rows[4], ["2026-11-23", "09:00", "+01:00", "9", "h", "1/s"]);
        assert_eq!(rows[5], ["2026-11-23", "18:00", "+01:00", "15", "h", "10/s", "burst", "20"]);
        let taken: Vec<u64> = rows
            .iter()
            .filter(|row| row.last().is_some_and(|last| last.starts_with('#')))
            .map(|row| row[3].replace(',', "").parse().expect("a number"))
            .collect();
        assert_eq!(taken.len(), 24);
        assert_eq!(taken[..4], [36_010, 36_000, 36_000, 3_600]);
        assert_eq!(taken[12], 35_991);
        let constant = explain(&parse("5/s, mon-sun 5/s").expect("a schedule"), 0).expect("a text");
        assert!(constant.contains("for ever 5/s"), "{constant}");
    }

    #[test]
    fn a_wrong_text_is_marked() {
        let error = parse("1/s, moon 2/s").expect_err("no day").to_string();
        assert!(
            error.contains("schedule, column 6: expected days") && error.ends_with("\n       ^"),
            "{error}"
        );
    }
}
