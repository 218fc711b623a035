//! `make bench`: what tollbar costs, as ratios of one run.
//!
//! All cases are run in turn, round after round, so that what the machine does besides falls on all of
//! them; a case's figure is the median of its rounds, a ratio is the median of the rounds' ratios.
//! `--smoke` runs a few rounds, to see that every case works.

mod c_cases;
mod cases;
#[path = "../common/library.rs"]
mod library;
mod striped_cases;
mod table;

use std::time::Instant;

/// Nanoseconds per operation of each case, one entry a round.
pub struct Case {
    /// What it is called in the table and by goals.
    pub name: &'static str,
    /// Runs so many operations.
    pub run: Box<dyn Fn(u64)>,
    /// The figures.
    pub rounds: Vec<f64>,
}

/// A required relation between two cases.
pub struct Goal {
    /// In words.
    pub what: &'static str,
    /// The case that is judged.
    pub of: &'static str,
    /// The case it is compared with.
    pub to: &'static str,
    /// What is required.
    pub most: Most,
}

/// The most that a case may cost.
pub enum Most {
    /// Times the other's time.
    Ratio(f64),
    /// Nanoseconds above the other's time.
    Above(f64),
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let (rounds, operations) = if smoke { (3, 2_000) } else { (301, 20_000) };
    let mut cases = cases::all();
    cases.extend(striped_cases::all());
    if let Some(library) = std::env::var_os("TOLLBAR_LIBRARY") {
        cases.extend(c_cases::all(&library));
        cases.push(striped_cases::c(&library));
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
    let goals: Vec<Goal> = cases::goals().into_iter().chain(striped_cases::goals()).collect();
    table::print(&cases, &goals);
}
