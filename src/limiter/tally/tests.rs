use super::*;
use std::vec::Vec;

#[test]
fn counts_of_many_threads_add_up() {
    // More than there are lines, so that some share; twice, so that lines go on to later threads.
    const THREADS: u64 = 3 * LINES as u64;
    const EACH: u64 = 20_000;
    let tally = Tally::default();
    let all_are_there = std::sync::Barrier::new(THREADS as usize);
    for round in 1..=2 {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|n| {
                    let (tally, all_are_there) = (&tally, &all_are_there);
                    scope.spawn(move || {
                        all_are_there.wait();
                        for i in 0..EACH {
                            let _ = tally.count(match (i + n) % 4 {
                                0 => Verdict::Allowed,
                                1 => Verdict::Never,
                                _ => Verdict::Denied,
                            });
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        });
        let all = round * THREADS * EACH;
        assert_eq!(tally.counts(), Counts { allowed: all / 4, denied: all / 2, never: all / 4 });
    }
    let shared = |line: &TallyLine| line.words.iter().any(|word| word.load(Ordering::Relaxed) != 0);
    assert!(tally.others.iter().any(shared), "{THREADS} threads on {LINES} lines");
}

/// A thread's first place is seldom another's, whatever the size of the stacks: sixteen threads
/// have twelve places or more, and of 64 threads at most five want one place.
#[test]
fn places_are_spread() {
    for stack in [64 << 10, 256 << 10, 2 << 20, (2 << 20) + 4096, 8 << 20, (8 << 20) + 4096] {
        let mut seen = [0; LINES];
        let mut of_sixteen = 0;
        for n in 0..64 {
            seen[place(0x7f12_3456_7640 + n * stack, LINES)] += 1;
            if n == 15 {
                of_sixteen = seen.iter().filter(|&&n| n != 0).count();
            }
        }
        assert!(
            of_sixteen >= 12 && seen.iter().all(|&n| n <= 5),
            "{stack}: {of_sixteen}, {seen:?}"
        );
    }
}
