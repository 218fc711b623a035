//! A meter under every interleaving that loom finds.

use super::*;
use crate::sync::explore;
use crate::table::memory::slot::Journal;
use loom::thread;
use std::println;
use std::sync::Arc;

/// Two threads with two packets each and one with one, at one instant: green packets never exceed
/// the committed burst, yellow ones never the excess burst, and the state has charged both exactly.
#[test]
fn packets_of_three_threads_never_exceed_the_bursts() {
    for meter in [
        Meter::SingleRate(Rate { limit: 1, period: 1, burst: 2 }, 1),
        Meter::TwoRates {
            committed: Rate { limit: 1, period: 1, burst: 2 },
            peak: Rate { limit: 1, period: 1, burst: 3 },
        },
    ] {
        let executions = explore(3, move || {
            let journal = Arc::new(Journal::default());
            let slot = loom::sync::Arc::new(Slot::new(0, SlotPair::EMPTY, &journal));
            let packets = move |slot: &Slot, n: usize| -> std::vec::Vec<Color> {
                (0..n).map(|_| meter.color(slot, 0, 1, Color::Green)).collect()
            };
            let threads: std::vec::Vec<_> = [2, 1]
                .into_iter()
                .map(|n| {
                    let slot = slot.clone();
                    thread::spawn(move || packets(&slot, n))
                })
                .collect();
            let mut colors = packets(&slot, 2);
            for thread in threads {
                colors.extend(thread.join().unwrap());
            }
            let count = |color| colors.iter().filter(|seen| **seen == color).count();
            assert_eq!((count(Color::Green), count(Color::Yellow), count(Color::Red)), (2, 1, 2));
        });
        println!("{meter:?}: {executions} executions");
    }
}
