//! The sequence lock under every interleaving that loom finds within a bound of preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile models --target-dir target/loom --lib clock::record::models`

use super::*;
use crate::sync::explore;
use loom::sync::Arc;
use loom::thread;
use std::println;

/// The value of the counter at which all threads read.
const NOW: u64 = 1_000;

/// The line number `n`. A line of words of two numbers has another time at [`NOW`] than either.
fn line(n: u64) -> ClockLine {
    let (base_tsc, base_ns, mul) = (n, 1_000_000 * n, n << 32);
    ClockLine { base_tsc, base_ns, mul, due: NOW, first_tsc: n, first_ns: n }
}

fn time_of(n: u64) -> u64 {
    1_000_000 * n + (NOW - n) * n
}

impl ClockRecord {
    /// The record after line 1 has been written.
    fn begun() -> ClockRecord {
        let zero = || AtomicU64::new(0);
        let record = ClockRecord {
            sequence: zero(),
            base_tsc: zero(),
            base_ns: zero(),
            mul: zero(),
            due: zero(),
            first_tsc: zero(),
            first_ns: zero(),
        };
        record.write(&line(1));
        record.publish(2);
        record
    }

    /// Writes the line after the present one, as the thread that finds it due does.
    fn adjust(&self) -> bool {
        let sequence = self.sequence();
        if sequence & 1 == 1 || !self.take(sequence) {
            return false;
        }
        let present = self.read();
        assert_eq!(present, line(present.base_tsc), "the words of two lines");
        self.write(&line(present.base_tsc + 1));
        self.publish(sequence + 2);
        true
    }
}

/// A reader gets the time of one whole line, or none, and no older line than before. Loom does not
/// try every order with a thread that only reads, so each thread is the first once.
#[test]
fn a_reading_beside_a_new_line() {
    fn reads(record: &ClockRecord) {
        let times = [0, 1].map(|_| record.time(|| NOW));
        for time in times.into_iter().flatten() {
            assert!(time == time_of(1) || time == time_of(2), "{time} is of no line");
        }
        assert!(times != [Some(time_of(2)), Some(time_of(1))], "the line went back");
    }
    fn writes(record: &ClockRecord) {
        assert!(record.adjust());
    }
    let acts: [fn(&ClockRecord); 2] = [reads, writes];
    for [here, there] in [acts, [acts[1], acts[0]]] {
        let executions = explore(3, move || {
            let record = Arc::new(ClockRecord::begun());
            let other = {
                let record = record.clone();
                thread::spawn(move || there(&record))
            };
            here(&record);
            other.join().unwrap();
            assert_eq!(record.time(|| NOW), Some(time_of(2)));
        });
        println!("a reading beside a new line: {executions} executions");
    }
}

/// Of two threads that find the line due one writes at a time, and each sees the former's line.
#[test]
fn two_threads_find_the_line_due() {
    let executions = explore(3, || {
        let record = Arc::new(ClockRecord::begun());
        let other = {
            let record = record.clone();
            thread::spawn(move || record.adjust())
        };
        let mine = record.adjust();
        let written = 1 + u64::from(mine) + u64::from(other.join().unwrap());
        assert!(written >= 2);
        assert_eq!(record.time(|| NOW), Some(time_of(written)));
    });
    println!("two threads find the line due: {executions} executions");
}
