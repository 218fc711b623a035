//! From one thread to all processors: one key, tables, and what programs build from them, as one
//! run of some minutes. The program that `tools/bench-cores.sh` links is static, so it runs on any
//! Linux host of its architecture.

mod calls;
mod page;
mod placements;
mod record;

use crate::book::Book;
use crate::keyed::CACHED_ORDER;
use crate::keys::{Order, Spread};
use crate::measure::measure_for;
use crate::model;
use crate::one::{self, Work, WORKS};
use crate::ours::HOT_KEYS;
use crate::rows::Set;
use crate::who;
use crate::Sizes;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

pub use page::write;

/// The rounds of each row. A round is shorter than in `benchmarks.md`, because there are five times
/// as many rows.
const ROUNDS: usize = 5;

/// Measures every row with 1, 2, 4 threads and so on to all processors, prints the rows, and with
/// `json` writes them there.
pub fn run(book: &mut Book, sizes: &Sizes, json: Option<&Path>) {
    let (begun, load) = (Instant::now(), crate::document::load());
    // Opened before the minutes that it takes.
    let json =
        json.map(|path| (path, std::fs::File::create(path).expect("a file that can be written")));
    let threads = threads();
    let rounds = ROUNDS.min(sizes.one.0);
    for work in WORKS {
        for &threads in &threads {
            let mut all = one::contenders(work, None);
            all.push(calls::locked(work));
            measure_for(&mut all, threads, rounds, sizes.one.1);
            book.add(&one::title(work), threads, all);
        }
    }
    placements::rows(book, sizes.one.1);
    calls::rows(book, sizes, &threads, rounds);
    for keys in [1, sizes.small, sizes.medium, sizes.large] {
        let set = Set::new(book, keys, false);
        let map = calls::LockedMap::filled(keys);
        let spreads: &[Spread] =
            if keys == 1 { &[Spread::Uniform] } else { &[Spread::Uniform, Spread::Zipf] };
        for &spread in spreads {
            let length =
                if keys > sizes.small { sizes.order } else { CACHED_ORDER.min(sizes.order) };
            let order = Order::<8>::new(keys, spread, length);
            let title = set.title(spread, Work::Allowed);
            for &threads in &threads {
                let mut all = set.contenders(&order, Work::Allowed);
                all.push(map.contender(&order));
                measure_for(&mut all, threads, rounds, 2 * sizes.one.1);
                book.add(&title, threads, all);
            }
        }
    }
    model::print(book, &threads);
    let run = record::Run::of(book, sizes, begun.elapsed(), load);
    page::print(&run);
    if let Some((path, mut file)) = json {
        let text = serde_json::to_string(&run).expect("numbers and texts");
        file.write_all((text + "\n").as_bytes()).expect("room");
        println!("\nwritten: {}", path.display());
    }
}

/// 1, 2, 4 and so on, and all processors.
fn threads() -> Vec<usize> {
    let most = std::thread::available_parallelism().map_or(2, |threads| threads.get().max(2));
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2))
        .take_while(|&threads| threads < most);
    powers.chain([most]).collect()
}

/// What rows of tables with hot keys measure.
fn hot_keys() -> String {
    format!("In rows of {} a thread has credit for up to {HOT_KEYS} keys", who::TABLE_HOT.name)
}
