//! `tollbar bench`: measures what a decision costs on this machine, beside one compare-and-swap.

use crate::problem::{Problem, Result};
use crate::text::grouped;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tollbar::clock::{Clock, Source, Utc};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy};

/// Measures what a decision costs on this machine, with one thread
#[derive(clap::Args)]
pub struct BenchArgs {
    /// Keys of the large table
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    keys: u64,
}

/// The calls of a round. The best of [`ROUNDS`] rounds counts, because other programs share the
/// machine.
const CALLS: u64 = 1 << 20;
const ROUNDS: u32 = 7;

fn nanoseconds(mut call: impl FnMut(u64)) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let begin = Instant::now();
        call();
        begin.elapsed().as_nanos() as f64 / CALLS as f64
    };
    let mut all = || (0..CALLS).for_each(&mut call);
    all();
    (0..ROUNDS).map(|_| round(&mut all)).fold(f64::INFINITY, f64::min)
}

/// Measures each case and prints a line for it.
pub fn run(args: &BenchArgs) -> Result<()> {
    let wrong = |error: &dyn std::fmt::Display| Problem::io(error.to_string());
    let policy: Policy = "1000000000/s burst 1000000".parse().map_err(|error| wrong(&error))?;
    crate::stdout::print(
        format!(
            "Nanoseconds a call, one thread, the best of {ROUNDS} rounds of {} calls\n\n",
            grouped(CALLS)
        )
        .as_bytes(),
    )?;

    let word = AtomicU64::new(0);
    let mut seen = 0;
    let swap = nanoseconds(|_| {
        let _ =
            black_box(word.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed));
        seen += 1;
    });
    print_figure("the floor: one compare-and-swap", swap)?;
    let clock = Utc::new(Source::Tsc);
    let read = nanoseconds(|_| {
        black_box(clock.now());
    });
    print_figure("the clock", read)?;

    let limiter = Limiter::new(&policy).map_err(|error| wrong(&error))?;
    let begin = clock.now();
    print_figure(
        "one limiter, the caller passes the time",
        nanoseconds(|n| {
            let _ = black_box(limiter.check_at(begin + n, 1));
        }),
    )?;
    print_figure(
        "one limiter",
        nanoseconds(|_| {
            let _ = black_box(limiter.check(1));
        }),
    )?;

    let table =
        Table::private(&Options::new(args.keys), &[policy]).map_err(|error| wrong(&error))?;
    let one = nanoseconds(|_| {
        let _ = black_box(table.check(PolicyId::FIRST, b"198.51.100.7", 1));
    });
    print_figure("one key of a table", one)?;
    (0..args.keys).for_each(|key| {
        let _ = black_box(table.check(PolicyId::FIRST, &key.to_le_bytes(), 1));
    });
    // Multiples of 2^64 / phi use all keys about equally often, in an order that a prefetcher
    // cannot guess.
    let key = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) % args.keys;
    print_figure(
        &format!("{} keys of a table", grouped(args.keys)),
        nanoseconds(|n| {
            let _ = black_box(table.check(PolicyId::FIRST, &key(n).to_le_bytes(), 1));
        }),
    )
}

fn print_figure(name: &str, ns: f64) -> Result<()> {
    crate::stdout::print(format!("{name:45}{ns:8.1}\n").as_bytes())
}
