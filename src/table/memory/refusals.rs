//! The keys that a table has refused most: a sketch of fixed size.
//!
//! ```text
//! line  64 bytes   { period 32 : random 32 }, and seven words { fingerprint 32 : count 32 }, of 0 if unused
//! text  56 bytes   for each of these words: { fingerprint 32 : check 18 : policy 7 : cut 1 : length 6 }, and 48 bytes of the key
//! ```
//!
//! The hash of a key chooses its line, and 32 other bits of it are its fingerprint. A refusal of a
//! key in its line adds one to the key's count. A key that is not in its line replaces the one with
//! the least count c there with probability 1/(c + 1), and begins with c + 1 (the randomized
//! admission policy of Ben Basat, Einziger, Friedman and Kassner, 2017). So a key that is refused
//! often enters soon, and a flood of keys that are refused once each seldom displaces it.
//!
//! Counts are halved at each new period of 2^36 ns (68.7 s), so a count is near the number of
//! refusals in the last two minutes.
//!
//! Counts are not exact: if two threads refuse one key at the same time, the sketch may count one
//! refusal. If a process is killed while it stores a key's text, readers leave the key out until
//! its next refusal, which stores the text again.

use crate::sync::{fence, AtomicU64, Ordering};
use crate::table::memory::mix::mix;

/// The number of lines in a sketch.
const LINES: usize = if cfg!(loom) { 1 } else { 32 };
/// The number of keys in a line.
const KEYS: usize = if cfg!(loom) { 1 } else { 7 };
/// The number of words that keep a key's text.
const WORDS: usize = if cfg!(loom) { 2 } else { 6 };
/// The bytes of a key that a sketch keeps.
pub const TEXT_MOST: usize = 8 * WORDS;
/// The most keys that a sketch keeps.
pub(crate) const REFUSED_MOST: usize = LINES * KEYS;
/// Counts are halved each 2 to this power nanoseconds.
const PERIOD_BITS: u32 = 36;
/// How often a call tries to swap one word.
const TRIES: u32 = 4;
const CHECK_BITS: u32 = 18;

/// The sketch. Zeroes are an empty one.
#[repr(C, align(64))]
pub(crate) struct Refusals {
    lines: [SketchLine; LINES],
    texts: [[SketchText; KEYS]; LINES],
}

#[repr(C)]
struct SketchLine {
    /// The period of the last refusal, and a random number that each replacement changes.
    rng: AtomicU64,
    words: [AtomicU64; KEYS],
}

#[repr(C)]
struct SketchText {
    /// 0 while a call writes the text.
    head: AtomicU64,
    bytes: [AtomicU64; WORDS],
}

/// A key that has been refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusedKey {
    pub(crate) count: u32,
    /// The number of the line, and the fingerprint: the bits that the sketch has of the key's hash.
    pub(crate) line: u64,
    pub(crate) fingerprint: u32,
    /// `None` if another call has overwritten the text.
    pub(crate) text: Option<KeyText>,
}

/// The beginning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyText {
    pub(crate) policy: u32,
    /// The first `length` bytes are the key's. The others are 0.
    pub(crate) bytes: [u8; TEXT_MOST],
    pub(crate) length: usize,
    /// Whether the key is longer.
    pub(crate) is_cut: bool,
}

/// The line of a key's hash.
pub(crate) fn line_of(hash: u64) -> u64 {
    hash % LINES as u64
}

/// The fingerprint of a key's hash. It is never 0.
pub(crate) fn fingerprint(hash: u64) -> u32 {
    ((hash >> 32) as u32).max(1)
}

impl Refusals {
    /// No refusal.
    #[cfg(loom)]
    pub(crate) fn new() -> Refusals {
        fn zeroes<const N: usize>() -> [AtomicU64; N] {
            core::array::from_fn(|_| AtomicU64::new(0))
        }
        let text = || SketchText { head: AtomicU64::new(0), bytes: zeroes() };
        Refusals {
            lines: core::array::from_fn(|_| SketchLine { rng: AtomicU64::new(0), words: zeroes() }),
            texts: core::array::from_fn(|_| core::array::from_fn(|_| text())),
        }
    }

    /// Records a refusal at `now` of the key with `hash` under policy number `policy`.
    pub(crate) fn record(&self, hash: u64, policy: u32, key: &[u8], now: u64) {
        let number = line_of(hash) as usize;
        let (Some(line), Some(texts)) = (self.lines.get(number), self.texts.get(number)) else {
            return;
        };
        let fingerprint = fingerprint(hash);
        line.begin_period(now);
        let (mut least, mut free) = (u32::MAX, None);
        for (word, text) in line.words.iter().zip(texts) {
            let found = word.load(Ordering::Relaxed);
            if of(found) == fingerprint {
                add_one(word, fingerprint);
                if text.is_of() != fingerprint {
                    text.write(fingerprint, policy, key);
                }
                return;
            }
            if free.is_none() || count(found) < least {
                (least, free) = (count(found), Some((word, text, found)));
            }
        }
        let Some((word, text, found)) = free else { return };
        if (u64::from(line.random()) * (u64::from(least) + 1)) >> 32 != 0 {
            return;
        }
        let new = pack(fingerprint, least.saturating_add(1));
        // Relaxed: a reader compares the text's fingerprint with the word's. If the swap fails,
        // another key took the place.
        if word.compare_exchange(found, new, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            text.write(fingerprint, policy, key);
        }
    }

    /// The keys with a count, in no order, at `now`.
    pub(crate) fn seen(&self, now: u64) -> impl Iterator<Item = RefusedKey> + '_ {
        self.lines.iter().zip(&self.texts).enumerate().flat_map(move |(number, (line, texts))| {
            let age = period(now).saturating_sub(line.period());
            line.words.iter().zip(texts).filter_map(move |(word, text)| {
                let found = word.load(Ordering::Relaxed);
                let count = count(found).checked_shr(age).unwrap_or(0);
                let text = text
                    .read()
                    .filter(|(fingerprint, _)| *fingerprint == of(found))
                    .map(|(_, text)| text);
                (count != 0).then(|| RefusedKey {
                    count,
                    line: number as u64,
                    fingerprint: of(found),
                    text,
                })
            })
        })
    }
}

impl SketchLine {
    fn period(&self) -> u32 {
        (self.rng.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Halves the counts once for each period since the last refusal. The call that swaps the
    /// period in does it.
    fn begin_period(&self, now: u64) {
        let (rng, new) = (self.rng.load(Ordering::Relaxed), period(now));
        let old = (rng >> 32) as u32;
        let next = u64::from(new) << 32 | rng & u64::from(u32::MAX);
        if new <= old
            || self.rng.compare_exchange(rng, next, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        for word in &self.words {
            change(word, |found| match count(found).checked_shr(new - old).unwrap_or(0) {
                0 => 0,
                count => pack(of(found), count),
            });
        }
    }

    /// A random number. Two calls at once may get the same one, which does no harm.
    fn random(&self) -> u32 {
        let rng = self.rng.load(Ordering::Relaxed);
        let random = mix(rng) as u32;
        let next = rng >> 32 << 32 | u64::from(random);
        // If the swap fails, another call has changed the number.
        let _ = self.rng.compare_exchange(rng, next, Ordering::Relaxed, Ordering::Relaxed);
        random
    }
}

impl SketchText {
    /// The fingerprint of the key whose text this is.
    fn is_of(&self) -> u32 {
        of(self.head.load(Ordering::Relaxed))
    }

    /// Writes the beginning of `key`. If two calls write at once, the check fails, and the next
    /// refusal writes again.
    fn write(&self, fingerprint: u32, policy: u32, key: &[u8]) {
        let kept = key.get(..TEXT_MOST).unwrap_or(key);
        let words: [u64; WORDS] = core::array::from_fn(|n| {
            let rest = kept.get(8 * n..).unwrap_or_default();
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(bytes)
        });
        let is_cut = kept.len() < key.len();
        let tail = u64::from(policy & 0x7f) << 7 | u64::from(is_cut) << 6 | kept.len() as u64;
        self.head.store(0, Ordering::Relaxed);
        // A reader that sees one of the new bytes sees that the head has changed. No model notices
        // a weaker ordering, here, below and in `read`: the check in the head tells texts apart.
        fence(Ordering::Release);
        for (to, word) in self.bytes.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.head.store(head(fingerprint, tail, &words), Ordering::Release);
    }

    /// The text, and the fingerprint of its key. `None` if there is none, or if a call is writing
    /// or was killed while it wrote. (No model notices a weaker ordering: as in `write`.)
    fn read(&self) -> Option<(u32, KeyText)> {
        let seen = self.head.load(Ordering::Acquire);
        let words = self.bytes.each_ref().map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let tail = seen & ((1 << (32 - CHECK_BITS)) - 1);
        let is_whole =
            self.head.load(Ordering::Relaxed) == seen && seen == head(of(seen), tail, &words);
        let length = (tail & 0x3f) as usize;
        if seen == 0 || !is_whole || length > TEXT_MOST {
            return None;
        }
        let mut bytes = [0; TEXT_MOST];
        // No `copy_from_slice`: a compiler for size keeps its panic.
        bytes
            .iter_mut()
            .zip(words.into_iter().flat_map(u64::to_le_bytes))
            .for_each(|(to, byte)| *to = byte);
        let (policy, is_cut) = ((tail >> 7) as u32, tail >> 6 & 1 != 0);
        Some((of(seen), KeyText { policy, bytes, length, is_cut }))
    }
}

/// The head of a text: its check is a sum of all other bits.
fn head(fingerprint: u32, tail: u64, words: &[u64; WORDS]) -> u64 {
    let sum =
        words.iter().fold(mix(u64::from(fingerprint) << 32 | tail), |sum, word| mix(sum ^ word));
    u64::from(fingerprint) << 32 | sum >> (64 - CHECK_BITS) << (32 - CHECK_BITS) | tail
}

/// The fingerprint of a word.
fn of(word: u64) -> u32 {
    (word >> 32) as u32
}

fn count(word: u64) -> u32 {
    word as u32
}

fn pack(fingerprint: u32, count: u32) -> u64 {
    u64::from(fingerprint) << 32 | u64::from(count)
}

fn period(now: u64) -> u32 {
    (now >> PERIOD_BITS) as u32
}

/// Adds one to the count of a word, as long as it has this fingerprint.
fn add_one(word: &AtomicU64, fingerprint: u32) {
    change(word, |found| match of(found) == fingerprint && count(found) != u32::MAX {
        true => found + 1,
        false => found,
    });
}

/// Swaps a word for `new` of it. After [`TRIES`] it stays: the sketch is not exact.
fn change(word: &AtomicU64, new: impl Fn(u64) -> u64) {
    let mut found = word.load(Ordering::Relaxed);
    for _ in 0..TRIES {
        match word.compare_exchange(found, new(found), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => found = other,
        }
    }
}

#[cfg(all(loom, test))]
mod models;
