//! A straight line from a counter's ticks to nanoseconds, and the rules for its replacement. The functions here only compute.

use core::num::NonZeroU128;

/// `ns = base_ns + (tsc − base_tsc) · mul / 2^32`, valid for `due` ticks from `base_tsc` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) base_tsc: u64,
    pub(super) base_ns: u64,
    pub(super) mul: u64,
    pub(super) due: u64,
    /// The counter at the first comparison, from which the slope is measured. The earlier it was, the more exact the slope.
    pub(super) first_tsc: u64,
    /// The system's clock at the first comparison, in nanoseconds.
    pub(super) first_ns: u64,
}

/// The least nanoseconds between the two comparisons of a first slope.
pub(super) const CALIBRATION: u64 = 1_000_000;
/// Nanoseconds for which a first line is valid, and a line after the machine was suspended or moved.
const SHORTEST: u64 = 10 * CALIBRATION;
/// The most nanoseconds for which a line is valid.
pub(super) const LONGEST: u64 = 1_000_000_000;

/// Nanoseconds in `past` ticks, for a `past` below [`Line::due`]. Such spans are at most [`LONGEST`], so the
/// product is below 2^62.
#[inline(always)]
pub(super) fn passed(past: u64, mul: u64) -> u64 {
    past.wrapping_mul(mul) >> 32
}

impl Line {
    /// A line through the first comparison of the two clocks. One point gives no slope, so the next reading compares them again.
    pub(super) fn begun((tsc, ns): (u64, u64)) -> Line {
        Line { base_tsc: tsc, base_ns: ns, first_tsc: tsc, first_ns: ns, mul: 0, due: 0 }
    }

    /// The line through two comparisons, `(counter, nanoseconds)` each; `None` if they give no slope.
    pub(super) fn first(first: (u64, u64), second: (u64, u64)) -> Option<Line> {
        Line { first_tsc: first.0, first_ns: first.1, ..Line::default() }.through(second, SHORTEST)
    }

    /// The line after another comparison; `None` if there is no slope any more.
    pub(super) fn again(&self, (tsc, ns): (u64, u64)) -> Option<Line> {
        let since = ns.saturating_sub(self.base_ns);
        let span = since.saturating_mul(4).clamp(SHORTEST, LONGEST);
        // If the line is off by more than 100 us and 100 ppm, the machine was suspended or moved, or the system's clock is being
        // slewed.
        let off = self.at(tsc).abs_diff(ns) > 100_000 + since / 10_000;
        // If the last comparison began a new line with the old slope, `off` says nothing about the new line.
        let anew = self.first_tsc == self.base_tsc;
        // On a core whose counter is a little behind, a new line is due at once, which is too soon to measure a slope.
        let line = if (off && !anew) || (anew && since < CALIBRATION) {
            None
        } else {
            self.through((tsc, ns), if anew { SHORTEST } else { span })
        };
        // Otherwise a new line begins here. It has the old slope until the next comparison, which is due after `SHORTEST`.
        line.or(Some(Line {
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

    /// The line through a comparison, with the slope since the first one, valid for `span` nanoseconds.
    fn through(&self, (tsc, ns): (u64, u64), span: u64) -> Option<Line> {
        let ticks_since = NonZeroU128::new(u128::from(tsc.checked_sub(self.first_tsc)?))?;
        let time = u128::from(ns.checked_sub(self.first_ns)?);
        let mul = u64::try_from((time << 32) / ticks_since).ok()?;
        Some(Line { base_tsc: tsc, base_ns: ns, mul, due: ticks(span, mul)?, ..*self })
    }
}

/// The ticks in `span` nanoseconds; `None` for a slope of 0.
fn ticks(span: u64, mul: u64) -> Option<u64> {
    let due = (u128::from(span) << 32) / NonZeroU128::new(u128::from(mul))?;
    Some(u64::try_from(due).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter and a system's clock in simulated time, which run at different speeds.
    struct Machine {
        /// Ticks of the counter in a nanosecond of the system's clock, times 2^20.
        speed: u64,
        tsc: u64,
        ns: u64,
        line: Line,
        random: u64,
        /// The most nanoseconds by which the line was off.
        off: u64,
        /// The most nanoseconds by which a reading was behind the one before.
        back: u64,
        last: u64,
        drawn: u64,
    }

    const TICKS: u64 = 3 << 20;

    impl Machine {
        fn new() -> Machine {
            let (tsc, ns) = (1 << 40, 1 << 50);
            let second = (tsc + 3 * CALIBRATION, ns + CALIBRATION);
            let line = Line::first((tsc, ns), second).expect("a slope");
            Machine { speed: TICKS, tsc: second.0, ns: second.1, line, random: 1, off: 0, back: 0, last: 0, drawn: 0 }
        }

        /// Lets time pass, and reads the clock like `now`.
        fn pass(&mut self, ns: u64) {
            self.ns += ns;
            self.tsc = self.tsc.wrapping_add(((u128::from(ns) * u128::from(self.speed)) >> 20) as u64);
            self.read();
        }

        fn read(&mut self) {
            let past = self.tsc.wrapping_sub(self.line.base_tsc);
            let time = if past < self.line.due {
                let time = self.line.base_ns.wrapping_add(passed(past, self.line.mul));
                assert_eq!(time, self.line.at(self.tsc), "`passed` and `at` differ");
                time
            } else {
                // Up to 60 ns pass between the readings of the two clocks.
                let off = self.random() % 60;
                self.line = self.line.again((self.tsc, self.ns + off)).expect("a slope");
                self.drawn += 1;
                self.ns
            };
            self.off = self.off.max(time.abs_diff(self.ns));
            self.back = self.back.max(self.last.saturating_sub(time));
            self.last = time;
        }

        fn random(&mut self) -> u64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.random
        }

        /// Sets the counter's speed to `ppm` parts per million above or below the first one.
        fn set(&mut self, ppm: i64) {
            self.speed = (TICKS as i64 + TICKS as i64 * ppm / 1_000_000) as u64;
        }
    }

    const MILLISECOND: u64 = 1_000_000;
    const HOUR: u64 = 3_600_000;

    #[test]
    fn an_hour_at_one_speed() {
        let mut machine = Machine::new();
        machine.set(37);
        for _ in 0..HOUR {
            machine.pass(MILLISECOND);
        }
        assert!(machine.off < 2_000, "{} ns off", machine.off);
        assert!(machine.back < 2_000, "{} ns back", machine.back);
        assert!(machine.drawn < 3_700, "{} times", machine.drawn);
    }

    /// The counter's quartz warms up and cools down: its speed changes by at most 5 ppm a minute and 50 ppm in all.
    #[test]
    fn an_hour_of_drift() {
        let mut machine = Machine::new();
        let mut ppm = 0_i64;
        for n in 0..HOUR {
            if n % 60_000 == 0 {
                ppm = (ppm + (machine.random() % 11) as i64 - 5).clamp(-50, 50);
                machine.set(ppm);
            }
            machine.pass(MILLISECOND);
        }
        // The slope is the mean of the whole time. In a second the line gets off by the difference of the speed from that mean.
        assert!(machine.off < 100_000 + 1_000, "{} ns off", machine.off);
    }

    /// The system's clock is slewed by up to 500 ppm, the most that Linux does, in both directions.
    #[test]
    fn an_hour_of_slewing() {
        let mut machine = Machine::new();
        for n in 0..HOUR {
            if n % 97_000 == 0 {
                let ppm = (machine.random() % 1001) as i64 - 500;
                machine.set(ppm);
            }
            machine.pass(MILLISECOND);
        }
        // The worst case is a change by 1000 ppm, from one end of the range to the other, for a second.
        assert!(machine.off < 1_000_000 + 1_000, "{} ns off", machine.off);
    }

    /// A suspended machine's counter stands still or restarts, and its system's clock may leap. A moved machine has another counter with another
    /// speed. From 1.14 s after either the line is within 20 us again.
    #[test]
    fn suspended_and_moved() {
        let mut machine = Machine::new();
        for n in 0..2_000_u64 {
            for _ in 0..500 {
                machine.pass(MILLISECOND);
            }
            machine.off = 0;
            match n % 5 {
                // Only the system's clock runs, for up to an hour.
                0 => machine.ns += machine.random() % (HOUR * MILLISECOND),
                // Only the counter runs, for up to 2^44 ticks.
                1 => machine.tsc = machine.tsc.wrapping_add(machine.random() % (1 << 44)),
                2 => machine.tsc = machine.random() % (1 << 44),
                3 => machine.tsc = machine.tsc.wrapping_add(machine.random()),
                _ => {
                    machine.tsc = machine.random() >> 1;
                    machine.speed = (TICKS / 2) + machine.random() % TICKS;
                }
            }
            // The line notices a leap of the system's clock alone when it is due, after a second at most.
            for _ in 0..1_100 {
                machine.pass(MILLISECOND);
            }
            for _ in 0..40 {
                machine.pass(MILLISECOND);
            }
            machine.off = 0;
            for _ in 0..100 {
                machine.pass(MILLISECOND);
            }
            assert!(machine.off < 20_000, "{} ns off after {n}", machine.off);
        }
    }

    /// A comparison just after the beginning of a new line gives no new slope.
    #[test]
    fn two_close_comparisons_give_no_new_slope() {
        let line = Line::first((0, 0), (3 * CALIBRATION, CALIBRATION)).expect("a slope");
        let anew = line.again((1 << 50, 1 << 40)).expect("begun anew");
        let again = anew.again(((1 << 50) + 10, (1 << 40) + 300)).expect("and again");
        assert_eq!((anew.mul, again.mul), (line.mul, line.mul));
    }

    #[test]
    fn a_line_needs_a_slope() {
        assert_eq!(Line::first((5, 5), (5, 9)), None, "the counter stands");
        assert_eq!(Line::first((5, 5), (4, 9)), None, "it goes back");
        assert_eq!(Line::first((5, 9), (9, 5)), None, "time goes back");
        assert_eq!(Line::first((5, 5), (9, 5)), None, "time stands");
    }
}
