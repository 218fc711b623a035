//! Sliding log: the time of each permit admitted in the last period, exact. The arithmetic is here;
//! the shared state is [`crate::limiter::Log`].
//!
//! The log has `limit` entries, one for each permit, used in turn. Permit number k replaces permit
//! number k − limit, as soon as the latter has left the window `(now − period, now]`.
//!
//! An entry is `time + 1 : lap` in one word: 61 bits of nanoseconds, and 3 bits that count how
//! often its place has been used, modulo 8. 0 is an empty entry.
//!
//! The word that decides is the number of permits entered. In a table the word must also say when
//! the log has expired, so there it is `time : head` ([`KeyedLog`]). `time` is the time of the
//! newest permit in grains, rounded down. `head` is the number of permits modulo a multiple of
//! `8 · limit`, which leaves every permit its place and its lap. A grain is a power of two of
//! nanoseconds: the largest that is at most a sixteenth of the period, or a larger one, up to the
//! period, if the limit needs the bits.
//!
//! Most admitted in any window of one period: `limit`.

use crate::policy::{Kind, Policy, PolicyError};
use crate::units::{bits, Divisor, LAST};
use core::num::NonZeroU64;

/// A compiled sliding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingLog {
    limit: Divisor,
    period: u64,
    count_rejected: bool,
}

/// One entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time of the permit, in nanoseconds; `None` for an empty entry.
    pub at: Option<u64>,
    /// How often its place has been used, modulo 8.
    pub lap: u64,
}

impl SlidingLog {
    /// The policy's last time, and the last time that an entry can hold.
    pub const LAST: u64 = LAST;
    const LAPS: u64 = 8;

    /// Compiles a policy of kind [`Kind::SlidingLog`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<SlidingLog, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::SlidingLog {
            return Err(PolicyError::OptionMismatch);
        }
        let limit = NonZeroU64::new(policy.limit).ok_or(PolicyError::OptionMismatch)?;
        Ok(SlidingLog {
            limit: Divisor::new(limit),
            period: policy.period,
            count_rejected: policy.count_rejected,
        })
    }

    /// Entries, and the largest cost.
    #[inline(always)]
    pub const fn limit(&self) -> u64 {
        self.limit.get()
    }

    /// The time after which a permit leaves the window, in nanoseconds.
    #[inline(always)]
    pub(crate) const fn period(&self) -> u64 {
        self.period
    }

    /// Whether refused requests are entered too.
    #[inline(always)]
    pub const fn count_rejected(&self) -> bool {
        self.count_rejected
    }

    /// The place of permit number `k`, and the lap that its predecessor there wrote.
    #[inline(always)]
    pub const fn place(&self, k: u64) -> (u64, u64) {
        let (lap, place) = self.limit.div_rem(k);
        (place, lap % Self::LAPS)
    }

    /// The lap after `lap`.
    #[inline(always)]
    pub const fn next_lap(lap: u64) -> u64 {
        (lap + 1) % Self::LAPS
    }

    /// The word of an entry.
    #[inline(always)]
    pub const fn pack(at: u64, lap: u64) -> u64 {
        ((at + 1) << 3) | lap
    }

    /// The entry in a word.
    #[inline(always)]
    pub const fn unpack(word: u64) -> Entry {
        let at = word >> 3;
        Entry { at: if at == 0 { None } else { Some(at - 1) }, lap: word % Self::LAPS }
    }

    /// The time at which the entry leaves the window, in nanoseconds; 0 for an empty entry.
    #[inline(always)]
    pub const fn leaves(&self, entry: Entry) -> u64 {
        match entry.at {
            Some(at) => at.saturating_add(self.period),
            None => 0,
        }
    }
}

/// How the deciding word of one compiled log holds the number of permits entered.
pub(crate) trait Packing {
    /// The compiled log.
    fn log(&self) -> &SlidingLog;

    /// The permits entered, or a smaller number of the same place and lap.
    fn head(&self, word: u64) -> u64;

    /// The word after `cost` more permits, entered at `at`.
    fn next(&self, word: u64, cost: u64, at: u64) -> u64;

    /// An upper bound of the times of all permits entered.
    fn ceiling(&self, word: u64) -> u64;

    /// A lower bound of the time of the newest permit.
    fn floor(&self, word: u64) -> u64;

    /// Whether permit number `k`, entered at `at` and before this word, is still the newest of its
    /// place. `true` is certain. `false` may also mean that the permit has left the window.
    fn newest(&self, word: u64, k: u64, at: u64) -> bool;
}

/// The word is the count of permits, in 64 bits; it never decreases.
impl Packing for SlidingLog {
    #[inline(always)]
    fn log(&self) -> &SlidingLog {
        self
    }

    #[inline(always)]
    fn head(&self, word: u64) -> u64 {
        word
    }

    #[inline(always)]
    fn next(&self, word: u64, cost: u64, _at: u64) -> u64 {
        word + cost
    }

    #[inline(always)]
    fn ceiling(&self, _word: u64) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn floor(&self, _word: u64) -> u64 {
        0
    }

    #[inline(always)]
    fn newest(&self, word: u64, k: u64, _at: u64) -> bool {
        word <= k.saturating_add(self.limit())
    }
}

/// The bits of a time in nanoseconds.
const TIME_BITS: u32 = 61;

/// A sliding log compiled for a table's keys. A key's state is one word and
/// [`KeyedLog::side_words`] words beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyedLog {
    log: SlidingLog,
    /// The binary logarithm of a grain.
    grain: u32,
    /// The bits of a word that 61 bits of nanoseconds, counted in grains, leave for the head.
    head_bits: u32,
    /// The largest multiple of `8 · limit` that the bits of the head hold. Only a fresh log has the
    /// head 0; later heads run from 1 to `turn`.
    turn: u64,
    /// Nanoseconds after its admission in which a thread may still enter a permit. Fewer permits
    /// than `turn` are admitted in that time, so heads tell them apart. Where refused requests
    /// count, that is likely but not certain: see `crate::limiter::log`.
    patience: u64,
}

impl KeyedLog {
    /// Compiles a policy of kind [`Kind::SlidingLog`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::LogTooLarge`] for a limit above [`KeyedLog::most`], and those of
    /// [`SlidingLog::new`].
    pub fn new(policy: &Policy) -> Result<KeyedLog, PolicyError> {
        KeyedLog::in_bits(policy, 64)
    }

    /// [`KeyedLog::new`] with words of `width` bits, 64 or 63. With 63 bits a log has at most half
    /// of [`KeyedLog::most`] entries.
    pub(crate) fn in_bits(policy: &Policy, width: u32) -> Result<KeyedLog, PolicyError> {
        let log = SlidingLog::new(policy)?;
        let lacking = 64 - width;
        if log.limit() > KeyedLog::most(log.period) >> lacking {
            return Err(PolicyError::LogTooLarge);
        }
        let grain = bits(log.period).saturating_sub(5).max(bits(log.limit()) + lacking);
        let head_bits = grain + width - TIME_BITS;
        let most = u64::MAX >> (64 - head_bits);
        let lap =
            NonZeroU64::new(log.limit() * SlidingLog::LAPS).ok_or(PolicyError::LogTooLarge)?;
        // Any number of refused requests may be counted in a period.
        let patience = if log.count_rejected { 1 << grain } else { log.period };
        Ok(KeyedLog { log, grain, head_bits, turn: most - most % lap, patience })
    }

    /// The most entries that a key's log can have with this period in nanoseconds: the largest
    /// power of two in it, less 1. So 4096 entries fit periods from 8.2 us on, and the largest log
    /// fits periods from 34 ms on.
    pub const fn most(period: u64) -> u64 {
        match period.checked_ilog2() {
            // The largest grain is 2^grain ns. It gives the head grain + 3 bits: 8 laps of up to
            // 2^grain − 1 entries.
            Some(grain) => (1 << grain) - 1,
            None => 0,
        }
    }

    /// The compiled log.
    pub const fn log(&self) -> &SlidingLog {
        &self.log
    }

    /// The nanoseconds of a grain.
    pub(crate) const fn grain(&self) -> u64 {
        1 << self.grain
    }

    /// Words beside the state word: the newest time, and the entries.
    pub const fn side_words(&self) -> u64 {
        self.log.limit() + 1
    }

    /// The time at which a state with this word has expired, in nanoseconds; 0 for the fresh word.
    /// From then on every permit in it has left the window, however late its entry is written, and
    /// the state is as good as fresh. The time is at most a grain later than it could be.
    ///
    /// It never decreases from one word of a state to the next.
    pub const fn expires_at(&self, word: u64) -> u64 {
        if word == 0 {
            return 0;
        }
        self.last(word).saturating_add(self.log.period)
    }

    /// The last instant of the word's grain.
    #[inline(always)]
    const fn last(&self, word: u64) -> u64 {
        (((word >> self.head_bits) + 1) << self.grain) - 1
    }
}

impl Packing for KeyedLog {
    #[inline(always)]
    fn log(&self) -> &SlidingLog {
        &self.log
    }

    #[inline(always)]
    fn head(&self, word: u64) -> u64 {
        word & ((1 << self.head_bits) - 1)
    }

    #[inline(always)]
    fn next(&self, word: u64, cost: u64, at: u64) -> u64 {
        let head = self.head(word) + cost;
        let head = if head > self.turn { head - self.turn } else { head };
        // Requests are decided at the newest time, so `at` is no older than the word's time. `max`
        // enforces that here too, because a word must never expire earlier than the one before.
        let time = (at >> self.grain).max(word >> self.head_bits);
        (time << self.head_bits) | head
    }

    #[inline(always)]
    fn ceiling(&self, word: u64) -> u64 {
        self.last(word)
    }

    #[inline(always)]
    fn floor(&self, word: u64) -> u64 {
        (word >> self.head_bits) << self.grain
    }

    #[inline(always)]
    fn newest(&self, word: u64, k: u64, at: u64) -> bool {
        let late = word >> self.head_bits > at.saturating_add(self.patience) >> self.grain;
        // `since` is the number of permits entered from `k` on.
        let k = if k >= self.turn { k - self.turn } else { k };
        let head = self.head(word);
        let since = if head >= k { head - k } else { head + (self.turn - k) };
        !late && since.wrapping_sub(1) < self.log.limit()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
