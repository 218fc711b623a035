//! The sentences, pictures and warnings of `tollbar policy explain`.

use super::*;

fn explained(text: &str) -> String {
    explain(&parse(text).expect(text)).expect(text)
}

/// M6: a reader of `120/min` does not expect 239 in a minute, and one of `burst 20` does.
#[test]
fn m6_a_worst_case_that_the_text_does_not_show_is_a_warning() {
    for (text, more) in [
        ("120/min", Some("119 permits more")),
        ("10/min algo fixed-window", Some("10 permits more")),
        ("100/min curve ln", Some("99 permits more")),
        ("10/s; 100/min", Some("9 permits more")),
        ("10/s algo level-refill refill 0:50% 50%:100%", Some("9 permits more")),
        ("120/min burst 20", None),
        ("30/min burst 40 algo interval", None),
        ("10/s algo pacer slack 2", None),
        ("1/s", None),
        ("10/min algo sliding-window mode strict", None),
        ("10/min algo sliding-log", None),
        ("100/s algo warm-up warm 2s", None),
        ("500/forever", None),
        ("0/s", None),
    ] {
        let words = explained(text);
        let expected = more.map_or("a window".to_owned(), |more| {
            format!("Warning: that is {more} than the limit")
        });
        assert_eq!(words.contains("Warning"), more.is_some(), "{words}");
        assert!(more.is_none() || words.contains(&expected), "{words}");
    }
}

#[test]
fn each_algorithm_has_words_and_a_worst_case() {
    let each = [
        (
            "100/s burst 20",
            [
                "bucket of 20 permits that gains 100 permits per 1 s: one every 10 ms",
                "at most 119 permits in some window of 1 s",
            ],
        ),
        ("30/min burst 40 algo interval", ["gains 30 permits at once", "at most 70 permits"]),
        ("10/min algo fixed-window", ["10 permits in each window", "at most 20 permits"]),
        ("10/min algo weighted-window", ["weighted", "at most 19 permits"]),
        (
            "10/min algo sliding-window mode strict",
            ["slides on by 6 s at a time", "at most 10 permits"],
        ),
        ("10/min algo sliding-log", ["in any window", "at most 10 permits"]),
        ("10/s algo pacer slack 2", ["3 permits may go at once", "at most 12 permits"]),
        // The clock counts units of 100 ns here.
        ("100/s algo warm-up warm 2s", ["3 times slower", "at most 101 permits"]),
        (
            "10/min algo sliding-window mode interpolated",
            ["slides on by 6 s", "at most 19 permits"],
        ),
        (
            "1/min algo sliding-window mode interpolated",
            ["slides on by 6 s", "at most 1 permit in"],
        ),
        // A permit comes each 3334 ns, because requests come at whole nanoseconds.
        ("300000/s burst 1", ["A bucket of 1 permit", "at most 299,941 permits"]),
        ("5/min ban 1h after 3", ["The 3rd refusal shuts a key out for 1 h", "at most 9 permits"]),
        (
            "10/s; 100/min",
            ["second bucket of 100 permits", "at most 19 permits in some window of 1 s"],
        ),
        (
            "10/s burst 50; 100/min burst 20",
            ["may make 20 requests of cost 1 at once", "second bucket of 20 permits"],
        ),
        (
            "10/s burst 5 init 5 borrow",
            ["may make 6 requests of cost 1 at once", "at most 14 permits"],
        ),
        ("1/s", ["may make 1 request of cost 1 at once", "at most 1 permit in"]),
        ("100/min curve ln", ["100 permits in each slice of 1 min", "at most 199 permits"]),
        (
            "100/s burst 200 refill 0:50% 50%:100%",
            [
                "From 0 permits on permits come back at 50 % of that rate",
                "at most 299 permits in some window of 1 s",
            ],
        ),
        ("3/day algo calendar", ["3 permits in each day of UTC", "at most 6 permits"]),
        ("500/forever", ["500 permits, once.", "at most 500 permits until the key is reset"]),
        (
            "100/s reserve low 20 high 0",
            [
                "class low passes only if 20 permits or more are left",
                "class high leaves no reserve",
            ],
        ),
        (
            "9/forever reserve low 2",
            ["class low passes only if 2 permits or more are left", "at most 9 permits"],
        ),
        ("0/s", ["Refuses every request", ""]),
    ];
    for (text, words) in each {
        let out = explained(text);
        assert!(words.iter().all(|words| out.contains(words)), "{out}");
    }
    for kind in Kind::ALL {
        let has = each.iter().any(|(text, _)| parse(text).expect(text).kind == kind);
        assert!(has, "{}: add its words to this list", kind.name());
    }
}

/// The picture of a curve shows S12's numbers, and that of bands how an empty bucket fills.
#[test]
fn the_curve_is_drawn() {
    let numbers = |text: &str| {
        let out = explained(text);
        let rows = out.lines().rev().take(PARTS as usize + 1);
        let rows =
            rows.map(|line| line.trim_end_matches(['#', ' ']).rsplit(' ').next()?.parse().ok());
        let mut numbers: Vec<u64> =
            rows.map(|n: Option<u64>| n.unwrap_or_else(|| panic!("{out}"))).collect();
        numbers.reverse();
        numbers
    };
    assert_eq!(numbers("100/min curve ln")[5], 62);
    assert_eq!(numbers("100/min curve linear"), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    assert_eq!(
        numbers("100/s burst 200 refill 0:50% 50%:100%"),
        [0, 15, 30, 45, 60, 75, 90, 110, 140, 170, 200]
    );
    assert!(!explained("100/s").contains("fills"));
}

/// A calendar has the windows of its zone in place of a chart.
#[test]
fn a_calendar_shows_its_windows() {
    let policy = parse("1000/month from 31 zone CET-1CEST,M3.5.0,M10.5.0/3").expect("a policy");
    let sentences = sentences(&policy).join(" ");
    assert!(
        sentences
            .contains("1,000 permits in each month of its zone, from the 31st or the last day"),
        "{sentences}"
    );
    // 2026-02-28 00:00 UTC is 01:00 in the window that began at midnight.
    let windows = coming(&policy, 1_772_236_800).expect("windows");
    let lines: Vec<&str> = windows.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines[0].split_whitespace().take(3).collect::<Vec<_>>(),
        ["2026-02-28", "00:00", "+01:00"]
    );
    assert_eq!(
        lines[1].split_whitespace().take(3).collect::<Vec<_>>(),
        ["2026-03-31", "00:00", "+02:00"]
    );
}

/// The chart shows the library's decisions: a bucket gives its burst in the first part, and a
/// tenth of its rate in each later part.
#[test]
fn the_chart_adds_up() {
    let out = explained("100/s burst 20");
    let taken: Vec<u64> = out
        .lines()
        .filter(|line| line.ends_with('#'))
        .filter_map(|line| line.split_whitespace().nth(2)?.parse().ok())
        .collect();
    assert_eq!(taken[0], 20);
    assert_eq!(taken[1..], [10; 19]);
}
