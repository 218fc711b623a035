//! Lists of algorithms in sentences: each names the algorithms that do as the sentence says, and no
//! other. What an algorithm does is asked of a limiter, and not of a table in the sources.

use crate::common::{period, policy};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tollbar::algorithm::Charge;
use tollbar::clock::Manual;
use tollbar::{Kind, Limiter, Policy, PolicyError, Shared, State, Verdict};

/// Half a period after the begin of a window, of a slice and of a day.
const NOW: u64 = 86_400_500_000_000;

type Names = BTreeSet<&'static str>;

/// The policies of an algorithm: one of each form, and with each option that changes what the
/// sentences are about.
fn policies(kind: Kind) -> Vec<Policy> {
    let warm = if kind == Kind::WarmUp { " warm 1s" } else { "" };
    let plain = format!("9/{} algo {}{warm}", period(kind), kind.name());
    let mut all: Vec<Policy> =
        kind.row().forms.iter().map(|form| policy(&format!("{plain} {}", form.with))).collect();
    if kind == Kind::Interval {
        all.push(policy(&format!("{plain} anchor first")));
    }
    all
}

fn limiter(policy: &Policy) -> Limiter<State, Manual> {
    Limiter::with(State::new(policy).expect("compiles"), Manual::new(NOW))
}

fn books(policy: &Policy) -> bool {
    State::new(policy).expect("compiles").books_ahead()
}

/// Whether a charge that nothing has followed comes back.
fn returns(policy: &Policy) -> bool {
    let limiter = limiter(policy);
    assert!(limiter.check(1).is_allowed());
    limiter.give_back(Charge { at: NOW, cost: 1 }, 1) == 1
}

fn leaves(policy: &Policy) -> bool {
    limiter(policy).check_leaving(1, 1) != Err(PolicyError::OptionMismatch)
}

/// Whether a policy may name classes.
fn names_classes(policy: &Policy) -> bool {
    let text = format!("{policy} reserve low 2");
    text.parse::<Policy>().is_ok_and(|policy| State::new(&policy).is_ok())
}

/// Whether a request passes that costs more than is left.
fn lends(policy: &Policy) -> bool {
    let limiter = limiter(policy);
    let left = limiter.peek(1).remaining;
    left > 0 && limiter.peek(left + 1).verdict == Verdict::Allowed
}

/// The algorithms of which some policy does so.
fn some(does: impl Fn(&Policy) -> bool) -> Names {
    Kind::ALL.into_iter().filter(|&kind| policies(kind).iter().any(&does)).map(Kind::name).collect()
}

/// The words by which sentences name an algorithm.
const WORDS: [(&str, &[&str]); 12] = [
    ("gcra", &["gcra", "token bucket", "borrow"]),
    ("interval", &["interval"]),
    ("fixed-window", &["fixed window", "fixed-window"]),
    ("weighted-window", &["weighted window", "weighted-window"]),
    ("sliding-window", &["sliding window", "sliding-window"]),
    ("sliding-log", &["logs", "sliding log", "sliding-log"]),
    ("pacer", &["pacer"]),
    ("warm-up", &["warm-up"]),
    ("quota", &["quota"]),
    ("curve", &["curve"]),
    ("level-refill", &["level-refill"]),
    ("calendar", &["calendar"]),
];

/// A sentence about an algorithm without words could not be right.
#[test]
fn each_algorithm_has_words() {
    let words: Names = WORDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(words, Kind::ALL.map(Kind::name).into(), "add the algorithm's words to WORDS");
}

/// The algorithms that a text names.
fn named(text: &str) -> Names {
    let text = text.to_lowercase();
    let names = |words: &&[&str]| words.iter().any(|word| text.contains(word));
    WORDS.iter().filter(|(_, words)| names(words)).map(|(name, _)| *name).collect()
}

/// The text of a file between two phrases, in one line.
fn between(file: &str, from: &str, to: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
    let words = text.lines().flat_map(|line| {
        let line = line.trim_start();
        let marks = ["//!", "///", "//", "* ", "#"];
        marks.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).split_whitespace()
    });
    let text = words.collect::<Vec<_>>().join(" ");
    let (_, after) = text.split_once(from).unwrap_or_else(|| panic!("{file}: no {from:?}"));
    after.split_once(to).unwrap_or_else(|| panic!("{file}: no {to:?} after {from:?}")).0.to_owned()
}

/// A list: a file, and the phrases before and after it.
type List = (&'static str, &'static str, &'static str);

fn check(lists: &[List], expected: &Names) {
    let faults: Vec<String> = lists
        .iter()
        .map(|(file, from, to)| (file, from, named(&between(file, from, to))))
        .filter(|(_, _, found)| found != expected)
        .map(|(file, from, found)| {
            format!("{file}: after {from:?} found {found:?}; expected {expected:?}")
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn lists_of_what_books_ahead() {
    check(
        &[
            (
                "tools/xtask/src/header/reserve.h",
                "for each caller before this one in its own.",
                "All other algorithms cannot",
            ),
            ("src/limiter/mod.rs", "algorithm can book ahead (", ")"),
            ("src/table/decide/booking.rs", "full table admits without storing it.", "book ahead"),
        ],
        &some(books),
    );
}

#[test]
fn lists_of_what_takes_nothing_back() {
    check(
        &[
            ("docs/table.md", "**Permits do not come back**", ";"),
            ("docs/table.md", "are charged after all others:", ";"),
            ("tools/xtask/src/header/take_many.h", "the call charges these after all others:", ";"),
        ],
        &some(|policy| !returns(policy)),
    );
}

#[test]
fn lists_of_what_takes_permits_back() {
    check(
        &[
            ("tools/xtask/src/header/receipts.h", "Which policies return permits:", "all others"),
            ("crates/tollbar-c/src/reserve.rs", "the others write 0:", "Of a list"),
            ("src/limiter/mod.rs", "the others take none:", "Of a list"),
            ("src/table/decide/give_back.rs", "the others give none:", "Of a list"),
        ],
        &some(returns),
    );
}

#[test]
fn lists_of_what_has_no_reserve() {
    check(
        &[
            ("docs/algorithms.md", "**These have no classes:**", "Limiters with credit"),
            ("tools/xtask/src/header/classes.h", "Policies that lend", "have no reserve"),
            ("src/limiter/leaving.rs", "policies without a reserve:", "and limiters"),
        ],
        &some(|policy| !leaves(policy)),
    );
}

#[test]
fn lists_of_what_names_classes() {
    check(
        &[("crates/tollbar-c/src/policy/spec.rs", "pub second_burst: u64,", ": the classes")],
        &some(names_classes),
    );
}

/// Lists that say of each algorithm what it does.
#[test]
fn lists_of_all_algorithms() {
    check(
        &[
            ("docs/algorithms.md", "| the largest debt |", "When windows begin"),
            ("docs/go.md", "**In Go alone.**", "**Through purego**"),
            ("tools/xtask/src/header/charge.h", "How much a charge can take:", "The call returns"),
        ],
        &some(|_| true),
    );
}

#[test]
fn lists_of_what_lends() {
    check(
        &[
            ("docs/nginx.md", "under a policy that lends (", ")"),
            ("crates/tollbar-c/src/http.rs", "the policy lends (", ")"),
            ("bindings/go/http.go", "policy lends (", ")"),
            ("bindings/go/tollhttp/tollhttp.go", "a policy that lends (", ")"),
        ],
        &some(lends),
    );
}
