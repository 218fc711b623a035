//! `make bench`: what tollbar costs, as ratios of one run.
//!
//! All cases are run in turn, round after round, so that the machine's other work slows all of them
//! alike. A case's figure is the median of its rounds, a ratio is the median of the rounds' ratios.
//! `--smoke` runs a few rounds, to see that every case works.

mod c_cases;
mod cases;
#[path = "../common/credit.rs"]
mod credit;
mod credit_cases;
#[path = "../common/library.rs"]
mod library;
mod table;

use std::time::Instant;

/// A case, with its nanoseconds per operation, one figure for each round.
pub struct Case {
    /// The case's name in the table and in goals.
    pub name: &'static str,
    /// Runs that many operations.
    pub run: Box<dyn Fn(u64)>,
    /// The figures.
    pub rounds: Vec<f64>,
}

/// A required relation between two cases.
pub struct Goal {
    /// The goal in words.
    pub what: &'static str,
    /// The case that is judged.
    pub of: &'static str,
    /// The case it is compared with.
    pub to: &'static str,
    /// The requirement.
    pub most: Most,
}

/// The most that a case may cost.
pub enum Most {
    /// At most this many times the other's time.
    Ratio(f64),
    /// At most the other's time plus this many nanoseconds.
    Above(f64),
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (rounds, operations) = if smoke { (3, 2_000) } else { (301, 20_000) };
    let mut cases = cases::all();
    cases.extend(credit_cases::all());
    if let Some(library) = std::env::var_os("TOLLBAR_LIBRARY") {
        cases.extend(c_cases::all(&library));
        cases.push(credit_cases::c(&library));
    }
    for case in &cases {
        (case.run)(operations);
    }
    for _ in 0..rounds {
        for case in &mut cases {
            let start = Instant::now();
            (case.run)(operations);
            case.rounds.push(start.elapsed().as_nanos() as f64 / operations as f64);
        }
    }
    let goals: Vec<Goal> = cases::goals().into_iter().chain(credit_cases::goals()).collect();
    table::print(&cases, &goals);
}
