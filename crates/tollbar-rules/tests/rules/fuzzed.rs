//! Files of the sites with random changes: none panics, each fault has a place in the file, and
//! what reads decides.

use crate::common::*;
use std::fs;
use std::path::{Path, PathBuf};
use tollbar_rules::{explain, lint, read, Field, Format, Options, Rules};

const WORDS: [&str; 32] = [
    "cost = 'answer tokens'\n",
    "estimate = 'field most | 5'\n",
    "cost = 'field n | '\n",
    "cost = 18446744073709551615\n",
    "host = '*.example.com'\n",
    "host = ['[::1]', '']\n",
    "when = 'mon-fri 22:00-06:00, zone Europe/Berlin'\n",
    "when = ', zone '\n",
    "plan = 'path id | header x'\n",
    "plans = { a = '1/s', b = ['1/s', '2/min'] }\n",
    "plans = { a = { limit = '1/s', keys = { k = 'a' } } }\n",
    "limits = { a = { limit = '5/s', cost = 'field n' } }\n",
    "[group.a.limits.b.plans]\n",
    "[group.a.plans.b.keys]\n",
    "include = 'x.toml'\n",
    "keys = { x = 'pro' }\n",
    "1/s, sun 02:00-04:00 0/s",
    "1/month, sat 2/month",
    "answer",
    "field",
    "'",
    "\"",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    "\n",
    " ",
    "\u{e9}",
    "9999999999999999999999",
];

fn sites() -> Vec<(String, Format)> {
    let sites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rules/sites");
    let mut paths: Vec<_> = fs::read_dir(sites)
        .expect("the sites")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| !path.to_string_lossy().ends_with(".cases.toml"))
        .collect();
    paths.sort();
    let text = |path: &PathBuf| (fs::read_to_string(path).expect("a text"), Format::of(path));
    paths.iter().map(text).collect()
}

/// Inserts, removes or repeats something.
fn change(text: &str, random: &mut Rng) -> String {
    let mut all: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(all.len() as u64 + 1) as usize;
        let until = all.len().min(at + random.below(12) as usize);
        match random.below(4) {
            0 => drop(all.drain(at..until)),
            1 => {
                let again: Vec<char> = all[at..until].to_vec();
                all.splice(at..at, again);
            }
            2 => {
                // At the begin of a line.
                let line = all[..at].iter().rposition(|&c| c == '\n').map_or(0, |end| end + 1);
                all.splice(line..line, random.of(&WORDS).chars());
            }
            _ => drop(all.splice(at..at, random.of(&WORDS).chars())),
        }
    }
    all.into_iter().collect()
}

#[test]
fn changed_files_never_panic_and_their_faults_have_places() {
    let sites = sites();
    assert_eq!(sites.len(), 16);
    let mut random = Rng(16);
    let (mut faulty, mut sound) = (0, 0);
    for n in 0..4000 {
        let (text, format) = &sites[n % sites.len()];
        let text = change(text, &mut random);
        match read(&text, *format) {
            Err(problems) => {
                faulty += 1;
                let lines = text.split('\n').count();
                assert!(!problems.is_empty());
                for problem in problems {
                    let place = problem.place;
                    let sane = place.line >= 1 && place.line <= lines && place.column >= 1;
                    assert!(sane && !problem.to_string().contains('\n'), "{problem}\n{text}");
                }
            }
            Ok(file) => {
                sound += 1;
                let _ = lint(&file);
                decide(&text, *format, &mut random);
            }
        }
    }
    assert!(faulty > 1000 && sound > 300, "{faulty} {sound}");
}

/// Requests of a sound file: no panic, no error, and a settlement of what was taken.
fn decide(text: &str, format: Format, random: &mut Rng) {
    let options = Options { keys: 100, ..Options::default() };
    let Ok(rules) = Rules::from_text(text, format, &options) else { return };
    for n in 0..8 {
        let number = random.below(2000).to_string();
        let request = [
            (":method", random.of(&["GET", "POST", "PUT"])),
            (":path", random.of(&["/", "/login", "/t/acme/x", "/v1/chat/x", "/upload/a"])),
            (":address", random.of(&["192.0.2.1", "2001:db8::1", "unix:"])),
            ("Host", random.of(&["admin.example.com", "a.example.com:80", ""])),
            ("Content-Length", &number),
            (":n", random.of(&["1", "x", ""])),
            (":tokens", &number),
            ("Authorization", random.of(&["a", "Bearer pro-abc"])),
        ];
        let fields: Vec<Field<'_>> = request.iter().map(|(n, v)| Field::from((*n, *v))).collect();
        let now = BEGIN + n * 3600 * SECOND;
        let answer = rules.check_at(&fields, now).expect("a sound table");
        assert!(answer.is_allowed() || answer.status() >= 400);
        if answer.is_allowed() {
            rules.settle_at(&answer.taken(), &fields, now).expect("a sound table");
        }
        assert!(!explain(rules.set().file(), &fields).is_empty());
    }
}
