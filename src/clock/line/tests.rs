//! Simulated machines measure by how many nanoseconds the line from the processor's counter to the
//! system's clock is off, at one speed, under drift and slewing, and after a suspension.

use super::*;

/// A processor's counter and a system's clock in simulated time, which run at different speeds.
struct Machine {
    /// Ticks of the counter in a nanosecond of the system's clock, times 2^20.
    speed: u64,
    tsc: u64,
    ns: u64,
    line: ClockLine,
    random: u64,
    /// The most nanoseconds by which the line was off.
    off: u64,
    /// The most nanoseconds by which a reading was earlier than the one before it.
    back: u64,
    last: u64,
    drawn: u64,
}

const TICKS: u64 = 3 << 20;

impl Machine {
    fn new() -> Machine {
        let (tsc, ns) = (1 << 40, 1 << 50);
        let second = (tsc + 3 * CALIBRATION, ns + CALIBRATION);
        let line = ClockLine::first((tsc, ns), second).expect("a slope");
        Machine {
            speed: TICKS,
            tsc: second.0,
            ns: second.1,
            line,
            random: 1,
            off: 0,
            back: 0,
            last: 0,
            drawn: 0,
        }
    }

    /// Lets `ns` nanoseconds pass, and then reads the clock in the same steps as `Tsc::now`.
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
            // The line reads the counter first and the system's clock up to 60 ns later.
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

/// The counter's quartz warms up and cools down: its speed changes by at most 5 ppm a minute and 50
/// ppm in all.
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
    // The slope is the mean since the first comparison. The speed differs from it by at most 100
    // ppm, which are 100,000 ns in the second between two comparisons.
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
    // In the worst case the speed changes from one end of the range to the other, by 1,000 ppm,
    // just after a comparison. The next one is a second later.
    assert!(machine.off < 1_000_000 + 1_000, "{} ns off", machine.off);
}

/// While a machine is suspended, its counter stops or restarts, and its system's clock may leap. A
/// virtual machine that is moved gets another counter with another speed. 1.14 s after either, the
/// line is off by less than 20 us again.
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
        // Only a comparison with the system's clock shows that this clock leapt alone. Comparisons
        // are at most a second apart.
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

/// A line that has just begun anew keeps its slope at the next comparison, because the two are too
/// close for a measurement.
#[test]
fn two_close_comparisons_give_no_new_slope() {
    let line = ClockLine::first((0, 0), (3 * CALIBRATION, CALIBRATION)).expect("a slope");
    let anew = line.again((1 << 50, 1 << 40)).expect("begun anew");
    let again = anew.again(((1 << 50) + 10, (1 << 40) + 300)).expect("and again");
    assert_eq!((anew.mul, again.mul), (line.mul, line.mul));
}

#[test]
fn a_line_needs_a_slope() {
    assert_eq!(ClockLine::first((5, 5), (5, 9)), None, "the counter stands");
    assert_eq!(ClockLine::first((5, 5), (4, 9)), None, "it goes back");
    assert_eq!(ClockLine::first((5, 9), (9, 5)), None, "time goes back");
    assert_eq!(ClockLine::first((5, 5), (9, 5)), None, "time stands");
}
