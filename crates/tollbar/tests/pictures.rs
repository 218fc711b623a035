//! The pictures of docs/algorithms.md: what the library admits over time under each policy. The test draws them anew and compares.
//! `TOLLBAR_WRITE_PICTURES=1 cargo test --package tollbar --test pictures` writes them into the document.

use tollbar::clock::Manual;
use tollbar::policy::schedule::Schedule;
use tollbar::policy::Keep;
use tollbar::{Kind, Limiter, Policy, State};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 86_400 * SECOND;
/// 2026-11-23 00:00 UTC, a Monday.
const MONDAY: u64 = 1_795_392_000 * SECOND;
/// The columns of a picture.
const COLUMNS: u64 = 24;
const BEGIN: &str =
    "<!-- [pictures] written by TOLLBAR_WRITE_PICTURES=1 cargo test --package tollbar --test pictures -->\n";
const END: &str = "<!-- [pictures: end] -->\n";

/// A row: what one wants, the policy, and the time that a column has. The client asks for a permit each hundredth of a column, from column 2 to
/// column 22, and stops for the columns 12 and 13.
const ROWS: [(&str, &str, u64); 20] = [
    ("a rate, and a burst after a rest", "100/min burst 20", MINUTE / 10),
    ("a large request now, and later ones that pay for it", "100/min burst 20 borrow", MINUTE / 10),
    ("a key that is refused too often shut out", "100/min burst 20 ban 30s after 200", MINUTE / 10),
    ("two rates at once", "100/min burst 20; 200/h", MINUTE / 10),
    ("permits that come back all together", "100/min algo interval", MINUTE / 10),
    ("what another system's counter does", "100/min algo fixed-window", MINUTE / 10),
    ("a sliding window in one word", "100/min algo weighted-window", MINUTE / 10),
    ("a sliding window", "100/min algo sliding-window", MINUTE / 10),
    ("no window above the limit", "100/min algo sliding-window mode strict", MINUTE / 10),
    ("no window above the limit, and no permit lost", "100/min algo sliding-log", MINUTE / 10),
    ("even departures", "100/min algo pacer", MINUTE / 10),
    ("a slow start for a cold service", "100/min algo warm-up warm 60s", MINUTE / 10),
    ("permits once and for all", "300/forever", MINUTE / 10),
    ("a budget of each minute, most of it early", "100/min curve ln", MINUTE / 10),
    ("a budget of each minute, a quarter at a time", "100/min curve step", MINUTE / 10),
    ("a slower refill when the bucket is empty", "100/min burst 60 refill 0:25% 50%:100%", MINUTE / 10),
    ("a quota of each day", "300/day algo calendar", DAY / 8),
    ("room for urgent requests: standard ones", "100/min reserve standard 60", MINUTE / 10),
    ("nothing at all", "0/min", MINUTE / 10),
    ("less in business hours", "10/h, 09:00-18:00 3/h", DAY / 24),
];

/// The permits admitted in each column.
fn admitted(text: &str, column: u64) -> Vec<u64> {
    let schedule: Schedule = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
    let mut in_force = schedule.at(MONDAY);
    let limiter = Limiter::with(State::new(&in_force.policy).expect(text), Manual::new(MONDAY));
    let class = (!in_force.policy.classes.is_empty()).then_some("standard");
    let mut columns = vec![0; COLUMNS as usize];
    for (place, count) in (0..).zip(&mut columns) {
        for request in 0..100 {
            let now = MONDAY + place * column + request * column / 100;
            if now >= in_force.until {
                in_force = schedule.at(now);
                limiter.set_policy_at(now, &in_force.policy, Keep::Count).expect(text);
            }
            if !(2..22).contains(&place) || (12..14).contains(&place) {
                continue;
            }
            limiter.clock().set(now);
            let decision = match class {
                Some(class) => limiter.check_class(1, class).expect("a class"),
                None => limiter.check(1),
            };
            *count += u64::from(decision.is_allowed());
        }
    }
    columns
}

/// A bar for each column, as high as the most that a column has.
fn bars(columns: &[u64]) -> String {
    let most = columns.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: &u64| match count {
        0 => '.',
        _ => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(count * 8).div_ceil(most) as usize - 1],
    };
    columns.iter().map(bar).collect()
}

fn pictures() -> String {
    let mut out = "| I want … | policy | admitted over time | at most in a column |\n|---|---|---|---|\n".to_owned();
    for (want, policy, column) in ROWS {
        let columns = admitted(policy, column);
        let most = columns.iter().max().expect("columns");
        out += &format!("| {want} | `{policy}` | `{}` | {most} |\n", bars(&columns));
    }
    out
}

#[test]
fn the_pictures_are_what_the_library_admits() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/algorithms.md");
    let document = std::fs::read_to_string(path).expect(path);
    let (before, rest) = document.split_once(BEGIN).expect("the begin of the pictures");
    let (drawn, after) = rest.split_once(END).expect("the end of the pictures");
    let pictures = pictures();
    if std::env::var_os("TOLLBAR_WRITE_PICTURES").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{pictures}{END}{after}")).expect(path);
    } else {
        assert_eq!(drawn, pictures, "draw them anew: TOLLBAR_WRITE_PICTURES=1");
    }
}

/// Every algorithm has a picture.
#[test]
fn each_algorithm_has_a_picture() {
    for kind in Kind::ALL {
        let has = |text: &str| text.parse::<Policy>().is_ok_and(|policy| policy.kind == kind);
        assert!(ROWS.iter().any(|(_, text, _)| has(text)), "{}", kind.name());
    }
}
