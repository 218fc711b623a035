//! A straight line from a counter's ticks to nanoseconds, and the rules for its replacement. The
//! functions here only compute.

use core::num::NonZeroU128;

/// `ns = base_ns + (tsc − base_tsc) · mul / 2^32`, valid for `due` ticks from `base_tsc` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockLine {
    pub(super) base_tsc: u64,
    pub(super) base_ns: u64,
    pub(super) mul: u64,
    pub(super) due: u64,
    /// The counter at the first comparison, from which the slope is measured. The earlier it was,
    /// the more exact the slope.
    pub(super) first_tsc: u64,
    /// The system's clock at the first comparison, in nanoseconds.
    pub(super) first_ns: u64,
}

/// The least nanoseconds between the two comparisons of a first slope.
pub(super) const CALIBRATION: u64 = 1_000_000;
/// Nanoseconds for which a first line is valid, and a line after the machine was suspended or
/// moved.
const SHORTEST: u64 = 10 * CALIBRATION;
/// The most nanoseconds for which a line is valid.
pub(super) const LONGEST: u64 = 1_000_000_000;

/// Nanoseconds in `past` ticks, for a `past` below [`ClockLine::due`]. Such spans are at most
/// [`LONGEST`], so the product is below 2^62.
#[inline(always)]
pub(super) fn passed(past: u64, mul: u64) -> u64 {
    past.wrapping_mul(mul) >> 32
}

impl ClockLine {
    /// A line through the first comparison of the two clocks. One point gives no slope, so the next
    /// reading compares them again.
    pub(super) fn begun((tsc, ns): (u64, u64)) -> ClockLine {
        ClockLine { base_tsc: tsc, base_ns: ns, first_tsc: tsc, first_ns: ns, mul: 0, due: 0 }
    }

    /// The line through two comparisons, `(counter, nanoseconds)` each; `None` if they give no
    /// slope.
    pub(super) fn first(first: (u64, u64), second: (u64, u64)) -> Option<ClockLine> {
        ClockLine { first_tsc: first.0, first_ns: first.1, ..ClockLine::default() }
            .through(second, SHORTEST)
    }

    /// The line after another comparison; `None` if there is no slope any more.
    pub(super) fn again(&self, (tsc, ns): (u64, u64)) -> Option<ClockLine> {
        let since = ns.saturating_sub(self.base_ns);
        let span = since.saturating_mul(4).clamp(SHORTEST, LONGEST);
        // If the line is off by more than 100 us and 100 ppm, the machine was suspended or moved,
        // or the system's clock is being slewed.
        let off = self.at(tsc).abs_diff(ns) > 100_000 + since / 10_000;
        // If the last comparison began a new line with the old slope, `off` says nothing about the
        // new line.
        let anew = self.first_tsc == self.base_tsc;
        // On a core whose counter is a little behind, a new line is due at once, which is too soon
        // to measure a slope.
        let line = if (off && !anew) || (anew && since < CALIBRATION) {
            None
        } else {
            self.through((tsc, ns), if anew { SHORTEST } else { span })
        };
        // Otherwise a new line begins here. It has the old slope until the next comparison, which
        // is due after `SHORTEST`.
        line.or(Some(ClockLine {
            base_tsc: tsc,
            base_ns: ns,
            due: ticks(SHORTEST, self.mul)?,
            first_tsc: tsc,
            first_ns: ns,
            ..*self
        }))
    }

    /// The line's nanoseconds at a value of the counter.
    #[inline(always)]
    pub(super) fn at(&self, tsc: u64) -> u64 {
        let past = tsc.wrapping_sub(self.base_tsc);
        self.base_ns.wrapping_add(((u128::from(past) * u128::from(self.mul)) >> 32) as u64)
    }

    /// The line through a comparison, with the slope since the first one, valid for `span`
    /// nanoseconds.
    fn through(&self, (tsc, ns): (u64, u64), span: u64) -> Option<ClockLine> {
        let ticks_since = NonZeroU128::new(u128::from(tsc.checked_sub(self.first_tsc)?))?;
        let time = u128::from(ns.checked_sub(self.first_ns)?);
        let mul = u64::try_from((time << 32) / ticks_since).ok()?;
        Some(ClockLine { base_tsc: tsc, base_ns: ns, mul, due: ticks(span, mul)?, ..*self })
    }
}

/// The ticks in `span` nanoseconds; `None` for a slope of 0.
fn ticks(span: u64, mul: u64) -> Option<u64> {
    let due = (u128::from(span) << 32) / NonZeroU128::new(u128::from(mul))?;
    Some(u64::try_from(due).unwrap_or(u64::MAX))
}

#[cfg(all(test, not(loom)))]
mod tests;
