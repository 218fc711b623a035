//! The text for Prometheus: each series appears once, escapes, short buffers, and the series that a
//! decision raises.

use std::time::Duration;
use tollbar::metrics::{write, write_times, Format, Source, Times};
use tollbar::table::{OnFull, Options, PolicyId, Table};
use tollbar::{Limiter, Policy};

fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

fn text(sources: &[Source<'_>], format: Format) -> String {
    let mut out = vec![0; 1 << 16];
    let length = write(sources, format, &mut out);
    String::from_utf8(out[..length].to_vec()).expect("UTF-8")
}

/// The series of a text with their values.
fn series(text: &str) -> Vec<(&str, u64)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            (name, value.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn ten_refusals_raise_one_series_by_ten() {
    let options = Options::new(1000).with_on_full(OnFull::Deny);
    let table =
        Table::private(&options, &[policy("5/min"), policy("100/h burst 20")]).expect("a table");
    let once = policy("1/h");
    let limiter = Limiter::new(&once).expect("a limiter");
    let at = |table: &Table| {
        text(
            &[Source::table("logins", table), Source::limiter("all", &once, &limiter.snapshot())],
            Format::Prometheus,
        )
    };
    for n in 0..5 {
        assert!(table.check_at(PolicyId::FIRST, b"k", n, 1).is_allowed());
    }
    let before = at(&table);
    for n in 5..15 {
        assert!(!table.check_at(PolicyId::FIRST, b"k", n, 1).is_allowed());
    }
    let after = at(&table);
    let changed: Vec<_> = series(&before)
        .into_iter()
        .zip(series(&after))
        .filter(|(before, after)| before != after)
        .collect();
    let name = "tollbar_decisions_total{limit=\"logins\",policy=\"0\",verdict=\"denied\"}";
    assert_eq!(changed, [((name, 0), (name, 10))]);
    let mut names: Vec<_> = series(&after).into_iter().map(|(name, _)| name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "each series once");
    assert!(
        after.contains(
            "tollbar_policy_info{limit=\"logins\",policy=\"1\",text=\"100/h burst 20\"} 1\n"
        ),
        "{after}"
    );
    assert!(
        after.contains(
            "tollbar_decisions_total{limit=\"all\",policy=\"0\",verdict=\"allowed\"} 0\n"
        ),
        "{after}"
    );
    assert!(after.contains("tollbar_table_used_slots{limit=\"logins\"} 1\n"), "{after}");
    assert!(after.contains("tollbar_waiting{limit=\"all\"} 0\n"), "{after}");
    assert!(!after.contains("tollbar_waiting{limit=\"logins\"}"), "{after}");
}

#[test]
fn both_formats() {
    let one = policy("1/h");
    let limiter = Limiter::new(&one).expect("a limiter");
    let _ = limiter.check(1);
    let sources = [Source::limiter("a\"b\\c\nd", &one, &limiter.snapshot())];
    let label = "limit=\"a\\\"b\\\\c\\nd\"";
    let plain = text(&sources, Format::Prometheus);
    assert!(
        plain.starts_with(&format!(
            "# HELP tollbar_decisions_total Decisions by policy and verdict.\n# TYPE tollbar_decisions_total counter\n\
         tollbar_decisions_total{{{label},policy=\"0\",verdict=\"allowed\"}} 1\n"
        )),
        "{plain}"
    );
    let open = text(&sources, Format::OpenMetrics);
    assert!(
        open.starts_with(&format!(
            "# HELP tollbar_decisions Decisions by policy and verdict.\n# TYPE tollbar_decisions counter\n\
         tollbar_decisions_total{{{label},policy=\"0\",verdict=\"allowed\"}} 1\n"
        )),
        "{open}"
    );
    assert!(open.ends_with("\n# EOF\n"));
    assert_eq!(series(&plain), series(&open));
    // A limiter has no metrics of tables, and a metric without series has no head.
    assert!(!plain.contains("tollbar_table_"), "{plain}");
    assert_eq!(text(&[], Format::OpenMetrics).lines().last(), Some("# EOF"));
}

#[test]
fn a_short_buffer_gets_the_beginning_and_the_whole_length() {
    let one = policy("1/h");
    let limiter = Limiter::new(&one).expect("a limiter");
    let sources = [Source::limiter("a", &one, &limiter.snapshot())];
    let whole = text(&sources, Format::Prometheus);
    for room in [0, 1, 100, whole.len() - 1, whole.len(), whole.len() + 1] {
        let mut out = vec![b'#'; room];
        assert_eq!(write(&sources, Format::Prometheus, &mut out), whole.len());
        let fits = room.min(whole.len());
        assert_eq!(&out[..fits], &whole.as_bytes()[..fits]);
    }
}

/// S52: one of 1,024 calls is measured, a call of two milliseconds is in a bucket above one, and
/// each bucket has the calls of those below it.
#[test]
fn one_in_1024_calls_is_measured() {
    let (times, idle) = (Times::new(), Times::new());
    let limiter = Limiter::new(&policy("1/h")).expect("a limiter");
    assert!(times.of(|| limiter.check(1)).is_allowed());
    let measured = (1..2 * Times::EVERY).filter(|_| {
        let begin = times.begin();
        times.end(begin);
        begin != 0
    });
    assert_eq!(measured.count(), 1);
    times.of(|| std::thread::sleep(Duration::from_millis(2)));
    let mut out = vec![0; 1 << 13];
    let length = write_times(&[("api", &times), ("idle", &idle)], &mut out);
    let text = std::str::from_utf8(&out[..length]).expect("UTF-8");
    let name = "tollbar_decision_nanoseconds";
    assert!(text.starts_with(&format!("# HELP {name} ")), "{text}");
    assert_eq!(text.matches(&format!("# TYPE {name} histogram\n")).count(), 1, "{text}");
    let all = series(text);
    assert_eq!(all.len(), 2 * 20, "{text}");
    let of = |series: &str| {
        let found = all.iter().find(|(name, _)| *name == series);
        found.unwrap_or_else(|| panic!("{series}: {text}")).1
    };
    let bucket = |bound: &str| of(&format!("{name}_bucket{{limit=\"api\",le=\"{bound}\"}}"));
    let bounds: Vec<u64> = (8..25).map(|n| bucket(&(1_u64 << n).to_string())).collect();
    assert!(bounds.windows(2).all(|two| two[0] <= two[1]), "{text}");
    // Two milliseconds are above 2^20 ns. On a busy machine so may be the others.
    assert!(bounds[20 - 8] <= 2, "{text}");
    assert_eq!(bucket("+Inf"), 3, "{text}");
    assert_eq!(of(&format!("{name}_count{{limit=\"api\"}}")), 3);
    assert!(of(&format!("{name}_sum{{limit=\"api\"}}")) >= 2_000_000);
    assert_eq!(of(&format!("{name}_count{{limit=\"idle\"}}")), 0);
    assert_eq!(write_times(&[], &mut []), text.find(&format!("{name}_bucket")).expect("a head"));
}
