//! The golden vectors of policies' texts, for faces that read a policy without the library, as Go
//! does without cgo.
//!
//! `ffi-tests/vectors/policies.json` is an array with an object a line. `text` is the text. If it
//! is a policy, `policy` is its canonical text and `last` its last time. Otherwise `code` is the C
//! face's number of the error, `column` its column, and `expected` what was expected there, or
//! empty if the text can be read and the policy is refused.
//! `VECTORS=write cargo test --test policy policy_vectors` writes the file again.

use std::fmt::Write;
use tollbar::policy::{text, Fault, PolicyError};
use tollbar::State;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ffi-tests/vectors/policies.json");

/// Texts of every option, in the ways in which people write them, and at least one for each error
/// that a text can have.
const TEXTS: &[&str] = &[
    "10/s",
    "100/s burst 20",
    "3/min",
    "1/5s burst 4",
    "5/7ns burst 9",
    "10 per hour",
    "10/2 minutes",
    "10 per 2 minutes",
    "5/minute",
    "5 / min",
    "  5/min\t",
    "5/60s",
    "5/3600s",
    "1/week",
    "5 per 1 hour",
    "9 per 1 month",
    "9 per 3 months",
    "100/0 years",
    "1/w",
    "1/2weeks",
    "1/d",
    "1/days",
    "1/hr",
    "1/hrs",
    "1/hours",
    "1/sec",
    "1/secs",
    "1/second",
    "1/seconds",
    "1/mins",
    "1/1000ms",
    "1/1500ms",
    "1/1us",
    "0/s",
    "0/s burst 0",
    "10/s burst 10",
    "10/s burst 6 init 0",
    "10/s burst 6 init 6",
    "10/s algo gcra",
    "10/s algo token-bucket burst 5",
    "10/s algo leaky-bucket",
    "5/s borrow",
    "7/s burst 3 borrow init 3",
    "7/s init 0 borrow",
    "5/s burst 4 ban 2s",
    "3/min ban 1min after 3",
    "3/min ban 60 s after 1",
    "3/min after 3 ban 1h",
    "100/s burst 4 algo pacer",
    "1/5s algo pacer slack 10",
    "1/5s algo pacer slack 0",
    "3/min algo interval",
    "2/s burst 5 algo interval",
    "3/min algo interval anchor first",
    "3/min algo interval anchor epoch",
    "5/min burst 2 algo interval anchor first",
    "10/s algo fixed-window",
    "10/s algo fixed-window burst 10",
    "3/min algo fixed-window count rejected",
    "3/min algo fixed-window anchor first count rejected",
    "10/s algo weighted-window",
    "7/333333333ns algo weighted-window",
    "10/forever",
    "10/forever algo quota",
    "10 per forever",
    "10/forever burst 10",
    "250000000/s burst 1mb unit bytes",
    "1gib/day unit bytes",
    "7kb/s burst 3kib unit bytes",
    "100/s unit permits",
    "15000000000/s burst 1000",
    "10/s; 1000/day",
    "3/s burst 5; 100/min burst 20",
    "6/s algo sliding-window segments 5 mode n",
    "10/min algo sliding-window segments 3 mode strict",
    "10/s algo sliding-log",
    "100/s burst 20 algo warm-up warm 2s",
    "100/min curve ln",
    "10/s burst 8 refill 0:50% 50%:100%",
    "3/day algo calendar",
    "10/month from 31",
    "100/s reserve low 20",
    // Errors of the grammar.
    "",
    "  ",
    "x",
    "/s",
    "10",
    "10 s",
    "10 pers",
    "10/",
    "10/ ",
    "10/y",
    "10/5",
    "10/5 ",
    "10/5 x",
    "10/3 months",
    "10/2year",
    "10/2 forever",
    "10/s burst",
    "10/s burst x",
    "10/s burst 5x",
    "10/s bursts 5",
    "10/s Burst 5",
    "10/s algo",
    "10/s algo token",
    "10/s algo GCRA",
    "10/s burst 5 burst 5",
    "10/s borrow borrow",
    "10/s init",
    "10/s anchor",
    "10/s anchor last algo interval",
    "10/s algo sliding-window mode exact",
    "10/s ban",
    "10/s ban h",
    "10/s ban 5",
    "10/s ban 5 y",
    "10/s ban 1h after",
    "10/s ban 1h after x",
    "10/s count",
    "10/s count all",
    "10/s unit",
    "10/s unit kb",
    "10/s slack",
    "10/s warm",
    "10/s cold x",
    "10/s segments x",
    "10/s 5",
    "10/s, burst 5",
    "10/s burst 1kb",
    "5kb/s",
    "5kbs/s unit bytes",
    "18446744073709551616/s",
    "10/18446744073709551616s",
    "10/18446744073709551615s",
    "10/s burst 18446744073709551615gb unit bytes",
    "10/s ban 1h after 4294967296",
    "10/s segments 4294967296",
    "10/s cold 4294967296",
    "10/min-5",
    // Errors of policies.
    "10/0s",
    "10/s burst 0",
    "10/s burst 5 init 6",
    "10/s algo gcra slack 3",
    "10/s anchor first",
    "10/s anchor epoch",
    "10/s count rejected",
    "10/s borrow ban 1h",
    "10/s init 3 ban 1h",
    "10/s slack 0",
    "10/s algo fixed-window burst 5",
    "10/s algo weighted-window init 3",
    "10/s algo interval borrow",
    "10/s algo pacer ban 1h",
    "10/s after 3",
    "10/s ban 0s",
    "10/s ban 1h after 0",
    "10/s ban 1h after 1001",
    "10/s ban 9000000000s after 1000",
    "10/forever algo gcra",
    "10/s algo quota",
    "10/forever burst 5",
    "10/forever ban 1h",
    "20000000000000/s",
    "  20000000000000/s",
    "18446744073709551615/s",
    "1/day burst 18446744073709551615",
    "1/week burst 10000000 algo pacer slack 10000000000",
    "5/min burst 6 algo interval anchor first",
    "18446744073709551615/s algo fixed-window",
    "100000000000/ns algo fixed-window anchor first",
    "10000000000/us algo weighted-window",
    "18446744073709551615/forever",
    "10000000000/ns algo interval",
    "1/s algo interval burst 18446744073709551615",
    "10/s algo warm-up",
    "10/s algo warm-up warm 2s cold 0",
    "10/s algo warm-up warm 0s cold 5",
    "10/s algo sliding-window segments 0",
    "100000000/s algo sliding-log",
];

/// The number of an error, as include/tollbar.h has it.
fn code(fault: Fault) -> i32 {
    match fault {
        Fault::Syntax => -10,
        Fault::Overflow => -11,
        Fault::UnknownAlgorithm => -12,
        Fault::Duplicate => -13,
        Fault::Policy(PolicyError::PeriodZero) => -20,
        Fault::Policy(PolicyError::BurstZero) => -21,
        Fault::Policy(PolicyError::RateTooHigh) => -22,
        Fault::Policy(PolicyError::BurstTooLarge) => -23,
        Fault::Policy(PolicyError::InitAboveBurst) => -24,
        Fault::Policy(PolicyError::OptionMismatch) => -25,
        Fault::Policy(PolicyError::Segments) => -26,
        Fault::Policy(PolicyError::WarmUp) => -27,
        Fault::Policy(PolicyError::LogTooLarge) => -28,
        Fault::Policy(PolicyError::Ban) => -30,
        Fault::Policy(PolicyError::Quota) => -32,
        other => panic!("{other:?} has no number here"),
    }
}

fn all() -> String {
    let mut file = String::from("[\n");
    for (n, line) in TEXTS.iter().enumerate() {
        let end = if n + 1 == TEXTS.len() { "" } else { "," };
        match text::parse_checked(line.as_bytes(), &State::validate) {
            Ok(policy) => {
                let last = policy.last_time().expect("a policy that was read");
                writeln!(file, "{{\"text\": {line:?}, \"policy\": \"{policy}\", \"last\": {last}}}{end}")
            }
            Err(wrong) => {
                let (code, column, expected) = (code(wrong.fault), wrong.column, wrong.expected());
                writeln!(
                    file,
                    "{{\"text\": {line:?}, \"code\": {code}, \"column\": {column}, \"expected\": {expected:?}}}{end}"
                )
            }
        }
        .expect("a string grows");
    }
    file.push_str("]\n");
    file
}

#[test]
fn the_file_is_what_the_core_reads() {
    if std::env::var("VECTORS").as_deref() == Ok("write") {
        std::fs::write(FILE, all()).expect("ffi-tests/vectors can be written");
    }
    let committed =
        std::fs::read_to_string(FILE).expect("ffi-tests/vectors/policies.json is there");
    assert!(
        committed == all(),
        "the core reads something else: VECTORS=write cargo test --test policy policy_vectors"
    );
}

#[test]
fn the_vectors_have_every_error_of_a_text() {
    let codes: Vec<i32> = TEXTS
        .iter()
        .filter_map(|line| text::parse_checked(line.as_bytes(), &State::validate).err())
        .map(|wrong| code(wrong.fault))
        .collect();
    for number in [-10, -11, -12, -13, -20, -21, -22, -23, -24, -25, -26, -27, -28, -30, -32] {
        assert!(codes.contains(&number), "no text has the error {number}");
    }
}
