//! The keys and the order in which they are asked for: made before anything is measured, the same
//! in every run.

/// The keys of a batch; orders are read in runs of this length.
pub const BATCH: usize = 32;

/// A key of `N` bytes in memory, where a caller's key would be.
pub type Key<const N: usize> = [u8; N];

/// Steele, Lea and Flood's splitmix64: enough for keys and orders, and needs no crate.
pub struct Random(pub u64);

impl Random {
    #[inline(always)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[inline(always)]
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The `index`-th key of a set: a pseudo-random word, so that no hash profits from keys in a row.
/// Longer keys have readable text before it, as in an address or an API key.
pub fn key<const N: usize>(index: usize) -> Key<N> {
    let word = mix(index as u64 ^ 0x746f_6c6c_6261_7200).to_ne_bytes();
    let mut key = [b'k'; N];
    key[N - word.len()..].copy_from_slice(&word);
    key
}

/// The word in a key of eight bytes.
#[inline(always)]
pub fn word(key: &Key<8>) -> u64 {
    u64::from_ne_bytes(*key)
}

/// How often each key of a set is asked for.
#[derive(Clone, Copy)]
pub enum Spread {
    /// All keys alike.
    Uniform,
    /// The n-th most popular key is asked for 1/n as often as the first.
    Zipf,
}

/// An endless order of a set's keys: a round of a power of two, read in sequence.
pub struct Order<const N: usize> {
    round: Vec<Key<N>>,
}

impl<const N: usize> Order<N> {
    pub fn new(keys: usize, spread: Spread, length: usize) -> Order<N> {
        let length = length.next_power_of_two().max(2 * BATCH);
        let mut random = Random(keys as u64);
        let round = match spread {
            Spread::Uniform => (0..length).map(|_| key(random.below(keys))).collect(),
            Spread::Zipf => {
                let mut sum = 0.0;
                let sums: Vec<f64> =
                    (1..=keys).map(|rank| (sum += 1.0 / rank as f64, sum).1).collect();
                let draw = |random: &mut Random| {
                    let at = random.fraction() * sum;
                    sums.partition_point(|&upto| upto <= at).min(keys - 1)
                };
                (0..length).map(|_| key(draw(&mut random))).collect()
            }
        };
        Order { round }
    }

    /// The number of requests after which the order repeats itself.
    pub fn len(&self) -> usize {
        self.round.len()
    }

    /// The round.
    pub fn keys(&self) -> &[Key<N>] {
        &self.round
    }

    /// The batch with this number; after the last one the round begins again.
    #[inline(always)]
    pub fn batch(&self, number: usize) -> &[Key<N>; BATCH] {
        // The length is a multiple of the batch, so that a batch never wraps.
        let at = (number * BATCH) & (self.round.len() - 1);
        self.round[at..at + BATCH].try_into().expect("a slice of this length")
    }
}
