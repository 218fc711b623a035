//! Calendars in a `limit`: windows of a time zone, in virtual time and by the wall clock.

use crate::common::*;
use tollbar::algorithm::calendar::Calendar;
use tollbar::clock::TIME_ZERO;
use tollbar_rules::{Field, Format, Options, Rules};

const DAY: u64 = 86_400;
/// 2025-03-31 22:00 UTC, in seconds after `BEGIN`, 2025-03-14: April begins in Berlin.
const APRIL: u64 = 17 * DAY + 22 * 3600;

#[test]
fn a_month_of_a_zone_begins_anew_with_the_zone() {
    let rules = rules(
        "version = 1\n[group.a]\nkey = 'header k'\nlimit = ['2/s', '5/month zone Europe/Berlin']\n\
         keys = { gold = ['9/s', '7/month zone Europe/Berlin'] }\n[shadow.b]\nof = 'a'\nlimit = '4/month zone Europe/Berlin'",
    );
    let of = |key: &'static str| [(":path", "/"), ("k", key)];
    // The refusals of 2/s have charged the month nothing.
    let seconds = [0, 1, 2, APRIL - 1, APRIL, APRIL + 1];
    assert_eq!(seconds.map(|second| admitted(&rules, 6, second, &of("a"))), [2, 2, 1, 0, 2, 2]);
    assert_eq!(
        (admitted(&rules, 20, 0, &of("gold")), admitted(&rules, 20, APRIL - 1, &of("gold"))),
        (7, 0)
    );
    let refused = check(&rules, APRIL - 3, &of("gold"));
    assert_eq!((refused.status(), refused.decision().retry_after), (429, 3 * SECOND));
    assert_eq!(refused.policy().copied(), "7/month zone Europe/Berlin".parse().ok());
    let shadow = rules.counts().into_iter().find(|counts| counts.rule == "b").expect("a shadow");
    assert!(shadow.would_refuse > 0, "{shadow:?}");
}

/// Requests of two years at Unix times, and the same ones on the scale of `Rules::now`.
#[test]
fn a_replay_at_unix_times_decides_as_the_tables_do_at_theirs() {
    let text = "version = 1\n[group.a]\nlimit = ['40/day zone America/New_York', '300/month', '2/min', '100/week algo calendar']";
    let (by_unix, by_tables) = (rules(text), rules(text));
    let request = [Field::from((":path", "/")), Field::from((":address", "1.1.1.1"))];
    let (mut now, mut random, mut refused) = (BEGIN, 7u64, 0);
    while now < BEGIN + 730 * DAY * SECOND {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now += (random >> 33) % 3600 * SECOND;
        let one = by_unix.check_at_unix(&request, TIME_ZERO + now).expect("a sound table");
        let other = by_tables.check_at(&request, now).expect("a sound table");
        assert_eq!(one.decision(), other.decision(), "{now}");
        refused += usize::from(!one.is_allowed());
    }
    assert!(refused > 10_000, "{refused}");
    // A log may be older than the zero of the tables' times: 2015-05-31 23:59:59 and a second
    // later.
    let may = 1_433_116_799;
    let old = rules("version = 1\n[group.a]\nlimit = '1/month'");
    let at = |second: u64| {
        old.check_at_unix(&request, second * SECOND).expect("a sound table").is_allowed()
    };
    assert_eq!([may, may, may + 1, may + 1].map(at), [true, false, true, false]);
}

#[test]
fn without_a_given_time_the_wall_clock_decides() {
    for shared in [false, true] {
        let options = Options { keys: 1000, shared, ..Options::default() };
        let text = "version = 1\n[group.a]\nlimit = ['1/year zone Asia/Tokyo', '9/s']";
        let rules = Rules::from_text(text, Format::Toml, &options).expect("rules");
        let request = [Field::from((":path", "/")), Field::from((":address", "1.1.1.1"))];
        let calendar = Calendar::new(&"1/year zone Asia/Tokyo".parse().expect("a policy"))
            .expect("a calendar");
        let unix = || {
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .expect("a time")
                .as_secs() as i64
        };
        // A year that begins between two of the steps gets a second try.
        let passed = (0..2).any(|_| {
            let window = calendar.window(unix());
            let admitted = [0, 0].map(|_| rules.check(&request).expect("a sound table"));
            let wait = calendar.start(window + 1) - unix();
            let said = (admitted[1].decision().retry_after / SECOND) as i64;
            let verdicts = admitted.map(|answer| answer.is_allowed());
            window == calendar.window(unix())
                && verdicts == [true, false]
                && (said - wait).abs() <= 60
        });
        assert!(passed, "shared: {shared}");
    }
}

/// A reload keeps the permits that a key has used if the windows stay. Other windows begin anew,
/// and a failed reload changes nothing.
#[test]
fn a_reload_keeps_the_count_of_a_calendar() {
    let of = |limit: &str, key: &str| {
        format!("version = 1\n[group.a]\nkey = 'header k'\nlimit = '{limit}'\nkeys = {{ gold = '{key}' }}")
    };
    let rules = rules(&of("5/month zone Europe/Berlin", "9/month zone Europe/Berlin"));
    let reload =
        |text: &str| rules.replace(text, Format::Toml).unwrap_or_else(|error| panic!("{error}"));
    let counts = || ["a", "gold"].map(|key| admitted(&rules, 20, 0, &[(":path", "/"), ("k", key)]));
    assert_eq!(counts(), [5, 9]);
    let changed = reload(&of("8/month zone Europe/Berlin", "10/month zone Europe/Berlin"));
    assert_eq!((changed.changed, changed.anew), (vec!["a".to_owned()], vec![]));
    assert_eq!(rules.counts()[0].allowed, 14);
    let more = counts();
    assert!(more[0] <= 3 && more[1] <= 1, "{more:?}");
    let keys: String = (0..1100).map(|n| format!("k{n} = '6/month'\n")).collect();
    let many = format!(
        "version = 1\n[group.a]\nkey = 'header k'\nlimit = '50/month'\n[group.a.keys]\ngold = '60/month'\n{keys}"
    );
    assert!(rules.replace(&many, Format::Toml).is_err());
    assert_eq!(counts(), [0, 0]);
    // Between a rate and a calendar keys begin anew.
    assert_eq!(reload(&of("6/h", "7/h")).anew, ["a"]);
    assert_eq!(counts(), [6, 7]);
    assert_eq!(reload(&of("3/month", "4/month")).anew, ["a"]);
    assert_eq!(counts(), [3, 4]);
}
