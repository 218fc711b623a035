//! Large files: what reads is what opens (C5), and the time grows with the length (C6).

use crate::common::*;
use std::fmt::Write;
use std::time::Duration;
use tollbar_rules::{read, Format, LoadError, Options, Problem, Rules};

const HEAD: &str = "version = 1\n[group.a]\nkey = 'header X'\nlimit = '10/h'\n[group.a.keys]\n";

/// A group with policies of so many keys, of so many different ones.
fn keys(count: usize, different: usize) -> String {
    let mut text = HEAD.to_owned();
    for n in 0..count {
        let _ = writeln!(text, "k{n} = '{}/h'", n % different + 11);
    }
    text
}

fn open(text: &str) -> Result<Rules, LoadError> {
    Rules::from_text(text, Format::Toml, &Options { keys: 1000, ..Options::default() })
}

fn problems(text: &str) -> Vec<Problem> {
    match open(text) {
        Err(LoadError::Problems(_, problems)) => problems,
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[test]
fn c5_a_hundred_thousand_keys_have_a_policy_each() {
    for (count, different) in [(1025, 1), (1025, 200), (512, 239), (100_000, 50)] {
        let rules = open(&keys(count, different))
            .unwrap_or_else(|error| panic!("{count} {different}: {error}"));
        for n in [0, 1, count / 2, count - 1] {
            let key = format!("k{n}");
            assert_eq!(
                admitted(&rules, 300, 0, &[(":path", "/"), ("X", &key)]),
                n % different + 11,
                "{count} {key}"
            );
        }
        assert_eq!(admitted(&rules, 300, 0, &[(":path", "/"), ("X", "other")]), 10);
    }
}

#[test]
fn c5_what_has_no_room_is_a_fault_with_a_line() {
    for (text, found, expected) in [
        (keys(253, 253), "254 different policies up to here", "at most 240 in a file"),
        (keys(262_145, 5), "262145 policies of keys up to here", "at most 262144 in a file"),
    ] {
        let all = problems(&text);
        assert_eq!((all.len(), all[0].place.line, all[0].field.as_str()), (1, 2, "a.keys"));
        assert!(all[0].found == found && all[0].expected.contains(expected), "{}", all[0]);
        // The reader says so by itself, without a table.
        assert_eq!(read(&text, Format::Toml).map(|_| ()), Err(all));
    }
    // A reload has room for twice the keys that the rules began with, and for 1,024 at least.
    let rules = open(&keys(600, 5)).expect("rules");
    rules.replace(&keys(1200, 5), Format::Toml).expect("room");
    match rules.replace(&keys(1201, 5), Format::Toml) {
        Err(LoadError::Problems(_, all)) => {
            assert_eq!(
                all[0].to_string(),
                "2:8: a.keys: 1201 policies of keys; expected at most 1200, for which the rules have had room since they were opened; a restart makes more"
            );
        }
        other => panic!("{other:?}"),
    }
    // The rules in force have stayed.
    assert_eq!(admitted(&rules, 300, 0, &[(":path", "/"), ("X", "k1199")]), 15);
}

type Form = (&'static str, Format, fn(usize) -> String);

/// Files of n entries, each kind of list and both formats, on one line and on many.
const FORMS: [Form; 8] = [
    ("keys", Format::Toml, |n| keys(n, 5)),
    ("exempt on a line", Format::Toml, |n| {
        let all: Vec<String> = (0..n).map(|n| format!("'k{n}'")).collect();
        format!(
            "version = 1\n[group.a]\nlimit = '1/s'\nkey = 'header X'\nexempt = [{}]\n",
            all.join(",")
        )
    }),
    ("exempt, not in ASCII", Format::Toml, |n| {
        let all: Vec<String> = (0..n).map(|n| format!("'\u{e9}{n}'")).collect();
        format!(
            "version = 1\n[group.a]\nlimit = '1/s'\nkey = 'header X'\nexempt = [{}]\n",
            all.join(",")
        )
    }),
    ("exempt on lines", Format::Yaml, |n| {
        let all: String = (0..n).map(|n| format!("      - k{n}\n")).collect();
        format!("version: 1\ngroup:\n  a:\n    limit: 1/s\n    key: header X\n    exempt:\n{all}")
    }),
    ("exempt on a line of YAML", Format::Yaml, |n| {
        let all: Vec<String> = (0..n).map(|n| format!("\"k{n}\"")).collect();
        format!(
            "version: 1\ngroup:\n  a:\n    limit: 1/s\n    key: header X\n    exempt: [{}]\n",
            all.join(",")
        )
    }),
    ("networks", Format::Toml, |n| {
        let all: Vec<String> = (0..n)
            .map(|n| format!("'10.{}.{}.{}/32'", n >> 16 & 255, n >> 8 & 255, n & 255))
            .collect();
        format!("version = 1\n[group.a]\nlimit = '1/s'\nexempt-networks = [{}]\n", all.join(",\n"))
    }),
    ("groups", Format::Toml, |n| {
        (0..n).fold("version = 1\n".to_owned(), |text, n| {
            text + &format!("[group.a{n}]\nlimit = '1/s'\n")
        })
    }),
    ("limits", Format::Toml, |n| {
        let all: Vec<String> = (0..n).map(|n| format!("'{}/s'", n + 1)).collect();
        format!("version = 1\n[group.a]\nlimit = [{}]\n", all.join(","))
    }),
];

/// The time that this thread has had a processor: other programs lengthen it little.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// C6: eight times the entries take about eight times as long. In a quadratic reading they took 64
/// times as long.
#[test]
fn c6_reading_takes_time_in_proportion_to_the_length() {
    for (name, format, text) in FORMS {
        let (few, many) = (text(10_000), text(80_000));
        let once = |text: &str| {
            let begun = processor_time();
            let _ = read(text, format);
            processor_time() - begun
        };
        // The best of up to twenty turns each, because other programs take the caches now and then.
        let (mut least, mut most) = (Duration::MAX, Duration::MAX);
        let mut times = f64::MAX;
        for _ in 0..20 {
            least = least.min(once(&few));
            most = most.min(once(&many));
            times = most.as_secs_f64() / least.as_secs_f64();
            if times < 16.0 {
                break;
            }
        }
        let (few, many) = (least, most);
        assert!(
            times < 24.0,
            "{name}: {few:?}, and for eight times as many {many:?}, {times} times as long"
        );
    }
}
