//! `--hashers`: which hasher and how many shards make governor fastest, so that it is beaten at its
//! best.

use crate::book::of_threads;
use crate::keys::{Key, Order, Spread};
use crate::limit::OPEN;
use crate::measure::{fill, measure, median, Amount, Contender};
use crate::peers::governor::{set_now, Tuned};
use crate::rows::of_keys;
use crate::who::GOVERNOR_FASTEST;
use std::hash::BuildHasher;

/// Asks one set-up for the keys of a batch.
type Asks = Box<dyn Fn(&[Key<8>; 32], u64) -> usize + Sync>;

/// All hashers and some numbers of shards, with `keys` keys.
pub fn compare(keys: usize, length: usize, amount: Amount) {
    let mut tried: Vec<(String, Asks)> = Vec::new();
    for shards in [8, 64, 1024] {
        tried.push((
            format!("std's SipHash, {shards} shards"),
            asks::<std::hash::RandomState>(keys, shards),
        ));
        tried.push((format!("ahash, {shards} shards"), asks::<ahash::RandomState>(keys, shards)));
        tried.push((
            format!("foldhash fast, {shards} shards"),
            asks::<foldhash::fast::RandomState>(keys, shards),
        ));
        tried.push((
            format!("rapidhash fast, {shards} shards"),
            asks::<rapidhash::fast::RandomState>(keys, shards),
        ));
        tried.push((format!("FxHash seeded, {shards} shards"), asks::<Fx>(keys, shards)));
    }
    let order = Order::<8>::new(keys, Spread::Uniform, length);
    for threads in [1, 2] {
        let mut all: Vec<_> = tried
            .iter()
            .map(|(_, asks)| Contender::batches(GOVERNOR_FASTEST, &order, asks))
            .collect();
        measure(&mut all, threads, amount);
        println!("\n{} keys, {}", of_keys(keys), of_threads(threads));
        for ((name, _), contender) in tried.iter().zip(&all) {
            println!("{name:<40} {:>8.1} ns", median(contender.rounds.clone()));
        }
    }
}

fn asks<S: BuildHasher + Clone + Default + Send + Sync + 'static>(
    keys: usize,
    shards: usize,
) -> Asks {
    set_now(1);
    let tuned = Tuned::<S>::new(OPEN, keys, shards);
    fill(keys, |key| tuned.admit(key));
    Box::new(move |keys, now| {
        set_now(now);
        keys.iter().filter(|key| tuned.admit(key)).count()
    })
}

/// FxHash with a seed, which its own type takes only by hand.
#[derive(Clone)]
struct Fx(rustc_hash::FxSeededState);

impl Default for Fx {
    fn default() -> Fx {
        // Any unpredictable word will do: the cost is measured, and not how hard the word is to
        // guess.
        let seed = std::hash::RandomState::new().hash_one(0);
        Fx(rustc_hash::FxSeededState::with_seed(seed as usize))
    }
}

impl BuildHasher for Fx {
    type Hasher = <rustc_hash::FxSeededState as BuildHasher>::Hasher;

    #[inline(always)]
    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}
