//! `when` of a rule, and the schedule of a limit: at which times they count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::SystemTime;
use tollbar::policy::schedule::Schedule;
use tollbar::policy::PolicyError;
use tollbar::{Policy, SyntaxError};

const SECOND: u64 = 1_000_000_000;

/// One of the policies of a schedule, and so the times at which it is in force.
#[derive(Clone, Debug)]
pub struct Times {
    shared: Arc<Shared>,
    /// The number of the policy.
    number: u64,
}

#[derive(Debug)]
struct Shared {
    text: String,
    schedule: Schedule,
    /// The different policies.
    policies: Vec<Policy>,
    /// The last second that was looked up, times 32, and the number of the policy of that second.
    /// To find a policy takes microseconds, and requests come many in a second.
    last: AtomicU64,
}

/// More than a schedule has policies.
const POLICIES: u64 = 32;
const _: () = assert!(tollbar::policy::schedule::ENTRIES_MOST + 1 < POLICIES as usize);

impl PartialEq for Times {
    fn eq(&self, other: &Times) -> bool {
        self.number == other.number && self.shared.text == other.shared.text
    }
}

impl Eq for Times {}

impl Times {
    /// Reads `when`: `mon-fri 09:00-18:00, sat 10:00-14:00, zone Europe/Berlin`.
    ///
    /// # Errors
    /// The offset of the fault, and what is expected there.
    pub(crate) fn parse(text: &str) -> Result<Times, (usize, &'static str)> {
        // A schedule with a policy behind each entry. `ends` has the end of each part there, and
        // the bytes that the parts up to it have more than those of `text`.
        const USUAL: &str = "0/s";
        const ENTRY: &str = " 1/s";
        let (mut schedule, mut ends) = (USUAL.to_owned(), Vec::new());
        let mut added = USUAL.len();
        for (n, part) in text.split(',').enumerate() {
            schedule.push(',');
            added += usize::from(n == 0);
            schedule.push_str(part);
            ends.push((schedule.len(), added));
            let is_zone =
                part.trim_start().get(..4).is_some_and(|w| w.eq_ignore_ascii_case("zone"));
            if !is_zone {
                if let Some(at) = part.find('/') {
                    let word = part[..at].rfind([' ', '\t']).map_or(0, |blank| blank + 1);
                    let before: usize = text.split(',').take(n).map(|part| part.len() + 1).sum();
                    return Err((before + word, "days and times only: `limit` has the policy"));
                }
                schedule.push_str(ENTRY);
                added += ENTRY.len();
            }
        }
        let wrong = |error: &SyntaxError| {
            let at = error.column.saturating_sub(1);
            let part = ends.iter().find(|(end, _)| at <= *end).or(ends.last());
            let at = part.map_or(0, |(end, added)| at.min(*end).saturating_sub(*added));
            (at.min(text.len()), error.expected())
        };
        let parsed = schedule.parse::<Schedule>().map_err(|error| wrong(&error))?;
        match Times::each(text, parsed).into_iter().nth(1) {
            Some((_, times)) => Ok(times),
            None => {
                Err((0, "days such as `mon-fri` or a time such as `09:00-18:00` before the zone"))
            }
        }
    }

    /// The policies of a schedule, each with its times. `None` for a text that is a policy, or
    /// neither.
    ///
    /// # Errors
    /// The fault of a schedule.
    pub(crate) fn of_limit(
        text: &str,
        check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
    ) -> Result<Vec<(Policy, Times)>, SyntaxError> {
        Ok(Times::each(text, Schedule::parse(text.as_bytes(), check)?))
    }

    fn each(text: &str, schedule: Schedule) -> Vec<(Policy, Times)> {
        let mut policies: Vec<Policy> = Vec::new();
        for policy in schedule.policies() {
            if !policies.contains(policy) {
                policies.push(*policy);
            }
        }
        let last = AtomicU64::new(u64::MAX);
        let shared = Arc::new(Shared { text: text.to_owned(), schedule, policies, last });
        let times = |number| Times { shared: Arc::clone(&shared), number };
        (0..).zip(&shared.policies).map(|(number, policy)| (*policy, times(number))).collect()
    }

    /// Whether they are those of the schedule's first policy: each schedule has one.
    pub(crate) fn are_usual(&self) -> bool {
        self.number == 0
    }

    /// The text that they were read from.
    pub fn as_str(&self) -> &str {
        &self.shared.text
    }

    /// Whether they hold at `unix` nanoseconds since 1970.
    pub fn hold(&self, unix: u64) -> bool {
        self.shared.number(unix) == self.number
    }

    /// The instant after `unix` at which other times begin, in Unix nanoseconds; `u64::MAX` if none
    /// do.
    pub(crate) fn until(&self, unix: u64) -> u64 {
        self.shared.schedule.at(unix).until
    }
}

/// The Unix time of the system's clock, in nanoseconds.
pub fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Shared {
    fn number(&self, unix: u64) -> u64 {
        let second = unix / SECOND;
        // Relaxed, because the word has all that a reader needs: a second and its policy.
        let last = self.last.load(Ordering::Relaxed);
        if last / POLICIES == second {
            return last % POLICIES;
        }
        let policy = self.schedule.at(unix).policy;
        let number =
            (0..).zip(&self.policies).find(|(_, own)| **own == policy).map_or(0, |(n, _)| n);
        // A second is below 2^35, so it has room.
        self.last.store(second * POLICIES + number, Ordering::Relaxed);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29, a Sunday, at 00:00 UTC.
    const SUNDAY: u64 = 1_795_910_400;

    #[test]
    fn times_hold_by_the_clocks_of_their_zone() {
        let times = Times::parse("sun 02:00-04:00, mon-fri 22:00-06:00, zone Europe/Berlin")
            .unwrap_or_else(|error| panic!("{error:?}"));
        let hours = |from: u64| {
            let at = |hour: &u64| times.hold((SUNDAY + hour * 3600) * SECOND);
            (from..from + 24).filter(at).map(|hour| hour - from).collect::<Vec<_>>()
        };
        // Local clocks are an hour ahead. The night of Friday ends on Saturday.
        assert_eq!(hours(0), [1, 2]);
        assert_eq!(hours(24), [21, 22, 23]);
        assert_eq!(hours(48), [0, 1, 2, 3, 4, 21, 22, 23]);
        assert_eq!(times.until(SUNDAY * SECOND), (SUNDAY + 3600) * SECOND);
        assert_eq!(times.until((SUNDAY + 3600) * SECOND), (SUNDAY + 3 * 3600) * SECOND);
    }

    #[test]
    fn a_fault_of_times_has_a_place() {
        for (text, at) in [
            ("sun 02:00-04:00, mun 10:00-12:00", 17),
            ("sun 02:00-25:00", 10),
            ("sun 02:00-04:00, zone Mars/Base", 22),
            ("", 0),
            ("sun 1/s", 4),
            ("zone Europe/Berlin", 0),
            ("sun 02:00-04:00, sun 03:00-05:00", 17),
        ] {
            assert_eq!(Times::parse(text).map(|_| ()).map_err(|(at, _)| at), Err(at), "{text}");
        }
    }
}
