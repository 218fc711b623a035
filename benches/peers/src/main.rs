//! tollbar beside its peers, in one run: `cargo run --release -p tollbar-peers`, or
//! `make bench-peers` for all of them.
//!
//! All contenders of a row are run in turn, round after round. A figure is the median of its
//! rounds, a ratio the median of the rounds' ratios. With two threads each does all the requests on
//! the shared limiter or table, in a part of the order of its own. A figure is then the time of a
//! request of one thread.
//!
//! Without arguments: the peers that are crates, as text. `--all BUILT`: with the peers in other
//! languages, which `tools/bench-peers.sh` has built in that directory. `--document DOCS`: writes
//! `benchmarks.md` and its charts there; `--nginx TEXTS`, at the end: with what the programs in
//! `nginx/bench` have printed. `--cores`: one to all processors beside the model; `--json FILE`
//! writes the figures. `--page FILE DIRECTORY`: writes the page of such figures. `--one`: only the
//! rows of one key, as text. `--smoke`: small sizes, and no target is checked. `--hashers`: how
//! governor's fastest set-up was found. With `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` governor's
//! memory has huge pages as well.

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the floor and the fences are written for x86-64");

mod book;
mod cores;
#[path = "../../common/credit.rs"]
mod credit;
mod document;
mod flood;
mod floor;
mod floor_one;
mod hashers;
mod keyed;
mod keys;
#[path = "../../common/library.rs"]
mod library;
mod limit;
mod measure;
mod memory;
mod model;
mod one;
mod ours;
mod ours_one;
mod peers;
mod process;
mod rows;
mod targets;
mod who;

use book::Book;
use keyed::CACHED_ORDER;
use library::Library;
use measure::Amount;
use process::Programs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The sizes of a run.
pub struct Sizes {
    small: usize,
    medium: usize,
    large: usize,
    order: usize,
    /// For one limit: the rounds, and the approximate time of each contender's turn.
    one: (usize, Duration),
    /// For sets that fit into the caches.
    cached: Amount,
    /// For sets that may fit into the last cache: the contenders before must be driven out of it
    /// again.
    middling: Amount,
    /// For sets that fit into no cache.
    cold: Amount,
    isolated: Amount,
    /// As many keys as make governor's maps about as full as they can be, which is when they are
    /// smallest.
    full: usize,
    flood: flood::Size,
}

const FULL: Sizes = Sizes {
    small: 1_000,
    medium: 1_000_000,
    large: 10_000_000,
    order: 1 << 23,
    one: (9, Duration::from_millis(20)),
    cached: Amount { rounds: 9, requests: 1 << 18, warm: 1 << 16 },
    middling: Amount { rounds: 7, requests: 1 << 19, warm: 1 << 19 },
    cold: Amount { rounds: 7, requests: 1 << 19, warm: 1 << 17 },
    isolated: Amount { rounds: 7, requests: 1 << 17, warm: 1 << 13 },
    full: (1 << 20) / 5 * 4,
    flood: flood::Size { capacity: 1 << 20, rounds: 32, keys_a_round: 1 << 18 },
};

const SMOKE: Sizes = Sizes {
    small: 200,
    medium: 4_000,
    large: 8_000,
    order: 1 << 12,
    one: (2, Duration::from_micros(50)),
    cached: Amount { rounds: 2, requests: 1 << 11, warm: 1 << 8 },
    middling: Amount { rounds: 2, requests: 1 << 11, warm: 1 << 8 },
    cold: Amount { rounds: 2, requests: 1 << 11, warm: 1 << 8 },
    isolated: Amount { rounds: 2, requests: 1 << 9, warm: 1 << 5 },
    // So many that some find no slot: about one key of ten thousand finds none.
    full: (1 << 17) / 5 * 4,
    flood: flood::Size { capacity: 1 << 13, rounds: 2, keys_a_round: 1 << 12 },
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_given = |name: &str| arguments.iter().any(|argument| argument == name);
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(PathBuf::from(
            arguments
                .get(at + 1)
                .unwrap_or_else(|| panic!("{name}: expected a file or a directory")),
        ))
    };
    let smoke = is_given("--smoke");
    let sizes = if smoke { SMOKE } else { FULL };
    let short = CACHED_ORDER.min(sizes.order);
    if let Some(json) = after("--page") {
        let at = arguments.iter().position(|argument| argument == "--page").expect("found above");
        cores::write(
            &json,
            arguments.get(at + 2).expect("--page: expected a file and a directory").as_ref(),
        );
        return;
    }
    if is_given("--hashers") {
        hashers::compare(sizes.small, short, sizes.cached);
        hashers::compare(
            sizes.medium,
            sizes.order,
            Amount { rounds: sizes.middling.rounds.min(5), ..sizes.middling },
        );
        return;
    }
    let book = &mut Book::default();
    let (rounds, turn) = sizes.one;
    if is_given("--cores") {
        cores::run(book, &sizes, after("--json").as_deref());
        return;
    }
    let library = std::env::var_os("TOLLBAR_LIBRARY").map(|path| Library::open(&path));
    if is_given("--one") {
        one::rows(book, None, library.as_ref(), rounds, turn);
        return;
    }
    let (begun, load) = (Instant::now(), document::load());
    println!("tollbar's tables: private, {}", ours::ON_FULL);
    println!("governor: DashMap, std's hasher, {}", peers::governor::clock_of_default());
    println!("its fastest: {} shards, {}", peers::governor::SHARDS, peers::governor::FASTEST);
    let programs = after("--all").map(|built| Programs::start(&built));
    one::rows(book, programs.as_ref(), library.as_ref(), rounds, turn);
    keyed::rows(book, programs.as_ref(), &sizes);
    rows::strings(book, sizes.small, short, sizes.cached);
    rows::strings(book, 4 * sizes.medium, sizes.order / 4, sizes.cold);
    flood::flood(book, sizes.flood);
    memory::full(book, sizes.full);
    let (design, kept) = (targets::design(book, &sizes), targets::kept(book, &sizes));
    targets::print("targets", &design, !smoke);
    targets::print("goals of the keyed table", &kept, !smoke);
    if let Some(docs) = after("--document") {
        let texts = arguments.iter().skip_while(|argument| *argument != "--nginx").skip(1);
        let nginx = texts
            .map(|path| std::fs::read_to_string(path).expect("what nginx/bench printed"))
            .collect();
        let programs = programs.as_ref();
        document::Document { book, sizes: &sizes, programs, design, kept, begun, load, nginx }
            .write(&docs);
    }
}
