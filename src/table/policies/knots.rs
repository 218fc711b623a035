//! The words of knots in a record of a policy: 64 pairs of numbers up to 10,000 in 20 words.
//!
//! The bands of a `level-refill` are four pairs at most, four numbers to a word. The times of a
//! curve's knots never fall, nor do the shares, so 64 of them need ten words in the code of Elias
//! and Fano, which is exact:
//!
//! ```text
//! words 0 to 6    64 numbers of 7 bits
//! words 7 to 9    192 bits, of which 64 are set
//!
//! number i = 128 * (place of the i-th set bit - i) + the 7 bits of number i
//! ```
//!
//! The largest place is 10,000 / 128 + 63 = 141. A list of fewer knots repeats its last one, which
//! no list does by itself.

use crate::policy::{Kind, Knots};

/// Words of knots.
pub(super) const KNOT_WORDS: usize = 20;
/// Words of the times, and of the shares.
const HALF: usize = KNOT_WORDS / 2;
/// The lower bits of a number, which stand by themselves.
const LOW: usize = 7;
/// The place of the first bit for the upper bits.
const HIGH: usize = LOW * Knots::MOST;
const _: () =
    assert!(HIGH + (Knots::WHOLE as usize >> LOW) + Knots::MOST <= HALF * u64::BITS as usize);
const _: () = assert!(HIGH % u64::BITS as usize == 0 && Knots::BANDS_MOST / 2 <= KNOT_WORDS);

/// The words of the knots of a policy of `kind`.
pub(super) fn words_of_knots(kind: Kind, knots: &Knots) -> [u64; KNOT_WORDS] {
    let mut words = [0; KNOT_WORDS];
    if kind != Kind::Curve {
        for (n, number) in knots.pairs().take(Knots::BANDS_MOST).flatten().enumerate() {
            set(&mut words, 16 * n, number.into());
        }
        return words;
    }
    let last = knots.pairs().last().unwrap_or_default();
    let all = knots.pairs().chain(core::iter::repeat(last)).take(Knots::MOST);
    let (times, shares) = words.split_at_mut(HALF);
    for (n, [time, share]) in all.enumerate() {
        put(times, n, time);
        put(shares, n, share);
    }
    words
}

/// The knots of these words; `None` if no list has such words.
pub(super) fn knots_of_words(kind: Kind, words: &[u64; KNOT_WORDS]) -> Option<Knots> {
    let mut knots = [[0u16; 2]; Knots::MOST];
    if kind != Kind::Curve {
        let pairs = knots.iter_mut().take(Knots::BANDS_MOST);
        for (n, number) in pairs.flatten().enumerate() {
            *number = bits(words, 16 * n, 16) as u16;
        }
        return Some(Knots::of_hundredths(&knots));
    }
    let (times, shares) = words.split_at(HALF);
    let (mut times, mut shares, mut last) = (numbers(times), numbers(shares), [0; 2]);
    for knot in &mut knots {
        let next = [times.next()?, shares.next()?];
        if next == last {
            break;
        }
        (*knot, last) = (next, next);
    }
    Some(Knots::of_hundredths(&knots))
}

/// Writes number `n` of a half.
fn put(half: &mut [u64], n: usize, number: u16) {
    set(half, LOW * n, u64::from(number) & ((1 << LOW) - 1));
    set(half, HIGH + n + usize::from(number >> LOW), 1);
}

/// The numbers of a half: 64, or fewer if it has fewer set bits.
fn numbers(half: &[u64]) -> impl Iterator<Item = u16> + '_ {
    let places = (HIGH..HALF * u64::BITS as usize).filter(|at| bits(half, *at, 1) != 0);
    places.take(Knots::MOST).enumerate().map(|(n, at)| {
        // The place of bit `n` among the set ones is at least `n`.
        let high = at.saturating_sub(HIGH).saturating_sub(n);
        (high << LOW) as u16 | bits(half, LOW * n, LOW) as u16
    })
}

/// Sets the bits of `value` from bit `at` on, which are 0.
fn set(words: &mut [u64], at: usize, value: u64) {
    let (word, bit) = (at / 64, at % 64);
    let wide = u128::from(value) << bit;
    for (to, part) in words.iter_mut().skip(word).zip([wide as u64, (wide >> 64) as u64]) {
        *to |= part;
    }
}

/// `count` bits from bit `at` on.
fn bits(words: &[u64], at: usize, count: usize) -> u64 {
    let (word, bit) = (at / 64, at % 64);
    let mut two = words.iter().skip(word).copied();
    let wide = u128::from(two.next().unwrap_or(0)) | u128::from(two.next().unwrap_or(0)) << 64;
    (wide >> bit) as u64 & ((1 << count) - 1)
}

#[cfg(test)]
mod tests;
