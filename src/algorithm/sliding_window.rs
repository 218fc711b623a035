//! Sliding window over a ring of segments: the arithmetic. The shared state is
//! [`crate::limiter::Ring`].
//!
//! The period is cut into `segments`. One running count holds all permits ever admitted, modulo a
//! power of two. The ring keeps the count at the start of each recent segment, so the permits in a
//! window are a difference:
//!
//! ```text
//!            start(s−3)   start(s−2)   start(s−1)   start(s)    count
//!  ─────────────┼────────────┼────────────┼────────────┼──────────▶
//!    segments 3,       mode n: count − start(s−2)
//!                 mode strict: count − start(s−3)
//!           mode interpolated: count − start(s−2) + (start(s−2) − start(s−3)) · (unexpired part of s−3)
//! ```
//!
//! Most admitted in any window of one period: `strict` `limit`; `n` `2 · limit` (all at a segment's
//! end, and again one segment short of a period later), and in a steady stream
//! `limit · segments / (segments − 1)`; `interpolated` below `2 · limit`.

use super::facts::edges;
use super::weighted_window::Fading;
use crate::policy::{Anchor, Kind, Mode, Policy, PolicyError};
use crate::units::{bits, div_up, Divisor, HORIZON, LAST, NEVER};
use core::num::{NonZeroU128, NonZeroU64};

/// A compiled sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlidingWindow {
    limit: u64,
    /// The length of a segment in nanoseconds.
    segment: Divisor,
    segments: u64,
    mode: Mode,
    count_bits: u32,
    /// The policy's last time. A word can also hold the later segments that a decision at that time
    /// reads.
    last: u64,
}

/// A segment's number and a running count, as one word holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of the segment.
    pub segment: u64,
    /// The running count, modulo a power of two.
    pub count: u64,
}

/// The counts at the starts of the two oldest segments that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// At the start of the oldest segment that counts whole.
    pub whole: u64,
    /// At the start of the one before, which `interpolated` counts in part.
    pub partial: u64,
}

impl SlidingWindow {
    /// Compiles a policy of kind [`Kind::SlidingWindow`] whose limit is not 0.
    ///
    /// # Errors
    /// [`PolicyError::OptionMismatch`] for any other policy, [`PolicyError::Segments`] if the
    /// segments do not divide the period, [`PolicyError::RateTooHigh`] if the word cannot hold the
    /// count beside the segment, and those of [`Policy::validate`].
    pub fn new(policy: &Policy) -> Result<SlidingWindow, PolicyError> {
        SlidingWindow::in_bits(policy, u64::BITS)
    }

    /// [`SlidingWindow::new`] with words of `width` bits.
    fn in_bits(policy: &Policy, width: u32) -> Result<SlidingWindow, PolicyError> {
        policy.validate()?;
        if policy.kind != Kind::SlidingWindow || policy.limit == 0 {
            return Err(PolicyError::OptionMismatch);
        }
        let segments = NonZeroU64::new(u64::from(policy.segments)).ok_or(PolicyError::Segments)?;
        if policy.period % segments != 0 {
            return Err(PolicyError::Segments);
        }
        let length = NonZeroU64::new(policy.period / segments).ok_or(PolicyError::Segments)?;
        // Two counts of one window differ by at most `limit`; twice that tells before from after.
        let count_bits = bits(policy.limit) + 1;
        let last = u64::MAX
            .checked_shr(count_bits + u64::BITS - width)
            .unwrap_or(0)
            .saturating_sub(2 * segments.get() + 2);
        if last < (HORIZON / length).max(1) {
            return Err(PolicyError::RateTooHigh);
        }
        let last = last.saturating_add(1).saturating_mul(length.get()).saturating_sub(1).min(LAST);
        Ok(SlidingWindow {
            limit: policy.limit,
            segment: Divisor::new(length),
            segments: segments.get(),
            mode: policy.mode,
            count_bits,
            last,
        })
    }

    /// [`worst_case`](super::worst_case()).
    pub(super) fn most_in(&self, window: u64) -> u64 {
        let (segment, limit) = (self.segment.by(), self.limit);
        let segments = NonZeroU64::new(self.segments).unwrap_or(NonZeroU64::MIN);
        // The segments of the window, and those of which the limit covers all permits.
        let touched = edges(segment.get(), window - 1).saturating_add(1);
        let covered = match self.mode {
            Mode::N => segments,
            Mode::Strict => segments.saturating_add(1),
            Mode::Interpolated => {
                return Fading { limit, part: segment, parts: segments }.most_in(window)
            }
        };
        limit.saturating_mul(touched / covered + u64::from(touched % covered != 0))
    }

    /// Compiles a policy for a table's keys. A key's state is one word and
    /// [`SlidingWindow::side_words`] words beside it.
    ///
    /// Windows that start at a key's first request are refused. Neither the word nor the side words
    /// hold the time of that request, and no code would clear it when another key takes the slot.
    ///
    /// # Errors
    /// Those of [`SlidingWindow::new`]. [`PolicyError::OptionMismatch`] for `anchor first`.
    pub fn keyed(policy: &Policy) -> Result<SlidingWindow, PolicyError> {
        match policy.anchor {
            Anchor::Epoch => SlidingWindow::new(policy),
            Anchor::First => SlidingWindow::new(policy).and(Err(PolicyError::OptionMismatch)),
        }
    }

    /// [`SlidingWindow::keyed`] with words of 63 bits.
    ///
    /// # Errors
    /// Those of [`SlidingWindow::keyed`]. [`PolicyError::RateTooHigh`] also if the window would end
    /// earlier with 63 bits than with 64.
    pub(crate) fn keyed_beside_a_bit(policy: &Policy) -> Result<SlidingWindow, PolicyError> {
        let window = SlidingWindow::in_bits(policy, u64::BITS - 1)?;
        match SlidingWindow::keyed(policy)?.last == window.last {
            true => Ok(window),
            false => Err(PolicyError::RateTooHigh),
        }
    }

    /// The largest cost.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The segments of a window.
    pub(crate) const fn segments(&self) -> u64 {
        self.segments
    }

    /// The segments from that of a permit on in which the permit counts, in full or in part.
    pub(crate) const fn counted(&self) -> u64 {
        self.whole() + 1 + if self.partial() { 1 } else { 0 }
    }

    /// Places that the ring of starts needs.
    pub const fn places(&self) -> u64 {
        // One for each segment that a decision reads, and one for the next start.
        (self.segments + 2).next_power_of_two()
    }

    /// Words beside the state word: the counts at the starts of segments.
    pub const fn side_words(&self) -> u64 {
        self.places()
    }

    /// The time at which a state with this word has expired, in nanoseconds, for windows aligned to
    /// time 0; 0 for the fresh word. From then on all permits have left the window, those that
    /// `interpolated` counts in part too, and the state is as good as fresh. [`NEVER`] if that is
    /// after the last segment in which anything is admitted.
    ///
    /// It never decreases from one word of a state to the next, because segments never do.
    pub fn expires_at(&self, word: u64) -> u64 {
        if word == 0 {
            return 0;
        }
        self.start(self.unpack(word).segment + self.counted())
    }

    /// The policy's last time.
    #[inline(always)]
    pub const fn last_time(&self) -> u64 {
        self.last
    }

    /// The segment at a time, and the nanoseconds since that segment began. `since` is the time
    /// since the window's origin, which is time 0 or the first admission. `None` after the last
    /// time.
    #[inline]
    pub fn segment(&self, since: u64) -> Option<(u64, u64)> {
        (since <= self.last).then(|| self.segment_in_time(since))
    }

    /// [`SlidingWindow::segment`] of a time that is not after the last.
    #[inline(always)]
    pub(crate) fn segment_in_time(&self, since: u64) -> (u64, u64) {
        self.segment.div_rem(since)
    }

    /// The number of segments before the running one that count whole.
    #[inline]
    pub const fn whole(&self) -> u64 {
        match self.mode {
            Mode::N | Mode::Interpolated => self.segments - 1,
            Mode::Strict => self.segments,
        }
    }

    /// Whether the segment before those counts in part.
    #[inline]
    pub const fn partial(&self) -> bool {
        matches!(self.mode, Mode::Interpolated)
    }

    /// The word of a mark.
    #[inline]
    pub const fn pack(&self, mark: Mark) -> u64 {
        (mark.segment << self.count_bits) | (mark.count & self.mask())
    }

    /// The mark in a word.
    #[inline]
    pub const fn unpack(&self, word: u64) -> Mark {
        Mark { segment: word >> self.count_bits, count: word & self.mask() }
    }

    /// The permits between the counts `from` and `to`; 0 if `to` is the earlier one.
    #[inline]
    pub const fn ahead(&self, from: u64, to: u64) -> u64 {
        let distance = to.wrapping_sub(from) & self.mask();
        if distance > self.mask() >> 1 {
            0
        } else {
            distance
        }
    }

    /// Permits left, `elapsed` nanoseconds into a segment, at a running count of `count`.
    #[inline]
    pub fn left(&self, count: u64, starts: Starts, elapsed: u64) -> u64 {
        let mut used = self.ahead(starts.whole, count);
        if self.partial() {
            let old = u128::from(self.ahead(starts.partial, starts.whole));
            let rest = old * u128::from(self.segment.get() - elapsed);
            // Rounded up, so that the permits left are rounded down.
            used = used.saturating_add(div_up(rest, NonZeroU128::from(self.segment.by())) as u64);
        }
        self.limit.saturating_sub(used)
    }

    /// The first instant of `segment`, in nanoseconds, at which `cost` permits are left; `None` if
    /// there is none.
    pub fn fits_in(&self, segment: u64, count: u64, starts: Starts, cost: u64) -> Option<u64> {
        let used = self.ahead(starts.whole, count).checked_add(cost)?;
        let room = self.limit.checked_sub(used)?;
        let length = self.segment.get();
        let old = self.ahead(starts.partial, starts.whole);
        let elapsed = match NonZeroU64::new(old) {
            // old · (length − elapsed) <= room · length
            Some(old) if self.partial() => {
                let rest = u128::from(room) * u128::from(length) / NonZeroU128::from(old);
                u128::from(length).saturating_sub(rest) as u64
            }
            _ => 0,
        };
        (elapsed < length).then(|| self.start(segment).saturating_add(elapsed))
    }

    /// The start of a segment in nanoseconds. [`NEVER`] for a segment after the last time.
    pub fn start(&self, segment: u64) -> u64 {
        match segment.saturating_mul(self.segment.get()) {
            at if at > self.last => NEVER,
            at => at,
        }
    }

    #[inline]
    const fn mask(&self) -> u64 {
        (1 << self.count_bits) - 1
    }
}
