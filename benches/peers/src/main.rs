//! tollbar's keyed table beside governor's, in one run: `cargo run --release -p tollbar-peers`.
//!
//! All contenders of a row are run in turn, round after round; a figure is the median of its rounds, a ratio the
//! median of the rounds' ratios. With two threads each does all the requests on the shared table, in a part
//! of the order of its own, and a figure is the time of a request of one thread. Goals are shown for both.
//!
//! `--smoke` runs small sizes for a second or two and judges nothing; `--hashers` shows how governor's fastest
//! set-up was found. With `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` governor's memory has huge pages as well.

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the floor and the fences are written for x86-64");

mod flood;
mod floor;
mod hashers;
mod keys;
mod limit;
mod measure;
mod memory;
mod ours;
mod peer;
mod report;
mod rows;

use keys::Spread;
use measure::Amount;
use report::{Goal, Report};
use rows::{Asked, Set};

/// How large everything is.
struct Sizes {
    small: usize,
    medium: usize,
    large: usize,
    order: usize,
    /// For sets that fit into the caches.
    cached: Amount,
    /// For those that may fit into the last one: the turns before must be driven out again.
    middling: Amount,
    /// For those that do not.
    cold: Amount,
    isolated: Amount,
    /// So that governor's maps are about as full as they can be, which is when they are smallest.
    full: usize,
    flood: flood::Size,
}

const FULL: Sizes = Sizes {
    small: 1_000,
    medium: 1_000_000,
    large: 10_000_000,
    order: 1 << 23,
    cached: Amount { rounds: 21, requests: 1 << 19, warm: 1 << 16 },
    middling: Amount { rounds: 9, requests: 1 << 20, warm: 1 << 20 },
    cold: Amount { rounds: 9, requests: 1 << 20, warm: 1 << 17 },
    isolated: Amount { rounds: 9, requests: 1 << 17, warm: 1 << 13 },
    full: (1 << 20) / 5 * 4,
    flood: flood::Size { capacity: 1 << 20, rounds: 32, keys_a_round: 1 << 18 },
};

const SMOKE: Sizes = Sizes {
    small: 200,
    medium: 4_000,
    large: 8_000,
    order: 1 << 12,
    cached: Amount { rounds: 2, requests: 1 << 11, warm: 1 << 8 },
    middling: Amount { rounds: 2, requests: 1 << 11, warm: 1 << 8 },
    cold: Amount { rounds: 2, requests: 1 << 11, warm: 1 << 8 },
    isolated: Amount { rounds: 2, requests: 1 << 9, warm: 1 << 5 },
    full: (1 << 13) / 5 * 4,
    flood: flood::Size { capacity: 1 << 13, rounds: 2, keys_a_round: 1 << 12 },
};

/// The order of a set that fits into the caches is short, or reading it would drive the set out.
const CACHED_ORDER: usize = 1 << 15;

fn main() {
    let argument = |name: &str| std::env::args().any(|argument| argument == name);
    let smoke = argument("--smoke") || argument("--quick") || argument("--test");
    let sizes = if smoke { SMOKE } else { FULL };
    if argument("--hashers") {
        hashers::compare(sizes.small, CACHED_ORDER.min(sizes.order), sizes.cached);
        hashers::compare(sizes.medium, sizes.order, Amount { rounds: sizes.middling.rounds.min(5), ..sizes.middling });
        return;
    }
    println!("ours: a private table, {}", ours::ON_FULL);
    println!("governor as it comes: RateLimiter::keyed, DashMap, std's hasher, {}", peer::clock_of_default());
    println!("governor's fastest: DashMap of {} shards, {}, the caller's time", peer::SHARDS, peer::FASTEST);
    println!("floor: per key one prefetched line of as many bytes as our table has, and a 64-bit lock xadd on it");
    let report = &mut Report::new(!smoke);
    decisions(report, &sizes);
    println!();
    rows::strings(report, sizes.small, CACHED_ORDER.min(sizes.order), sizes.cached);
    rows::strings(report, 4 * sizes.medium, sizes.order / 4, sizes.cold);
    flood::flood(report, sizes.flood);
    memory::full(report, sizes.full);
    report.end();
}

fn decisions(report: &mut Report, sizes: &Sizes) {
    use Goal::{AtLeast, AtMost, None};
    use Spread::{Uniform, Zipf};
    let asked = |spread, length, default, fastest, batch, floor| Asked {
        spread,
        length,
        default: AtLeast(default),
        fastest: AtLeast(fastest),
        batch: AtLeast(batch),
        floor,
    };

    let short = CACHED_ORDER.min(sizes.order);
    let set = Set::new(report, sizes.small, limit::OPEN, false);
    // All of it is in the first cache, where a fetch ahead is worth nothing and no ratio to it means much.
    set.row(report, &asked(Uniform, short, 1.9, 1.4, 1.4, None), sizes.cached);
    rows::denied(report, sizes.small, short, sizes.cached);

    let set = Set::new(report, sizes.medium, limit::OPEN, true);
    set.row(report, &asked(Uniform, sizes.order, 3.0, 1.9, 4.0, AtMost(1.6)), sizes.middling);
    set.row(report, &asked(Zipf, sizes.order, 2.5, 1.7, 4.0, None), sizes.middling);
    drop(set);

    let set = Set::new(report, sizes.large, limit::OPEN, true);
    set.row(report, &asked(Uniform, sizes.order, 3.5, 1.8, 5.0, AtMost(1.6)), sizes.cold);
    set.isolated(report, &asked(Uniform, sizes.order, 1.9, 1.9, 0.0, None), sizes.isolated);
}
