//! A rate, what is open and a learned limit in one decision, while a backend takes twice as long
//! for 24 seconds: the program of `examples/core`.

#[path = "../../examples/core/latency_step.rs"]
pub mod example;

use example::{run, Open, SECONDS};

/// The sum over some seconds of what `get` says of each.
fn sum(seconds: &[example::Counts], get: impl Fn(&example::Counts) -> u64) -> u64 {
    seconds.iter().map(get).sum()
}

fn in_time(seconds: &[example::Counts]) -> u64 {
    sum(seconds, |second| second.in_time.iter().sum())
}

/// Before the step the three gateways do the same: no answer is late, and none is refused while a
/// worker is idle. Without a limit on what is open, or with one of 150, every answer of the step is
/// late, and without one every answer after it, too. With the learned limit none is late. In the
/// first twelve seconds of the step it refuses requests although a worker is idle, which costs a
/// tenth of the step's answers. Then it has learned the latency, and the backend is busy.
#[test]
fn the_learned_limit_recovers_and_no_answer_is_late() {
    let (learned, totals) = run(Open::Learned);
    let (fixed, _) = run(Open::Fixed(150));
    let (any, _) = run(Open::Any);
    for (seconds, name) in [(&learned, "learned"), (&fixed, "150"), (&any, "any")] {
        assert_eq!(sum(&seconds[..24], |second| second.late + second.needless), 0, "{name}");
        // Ann's 1,600/s and Eve's 1,900/s.
        assert!(in_time(&seconds[1..24]) >= 23 * 3_499, "{name}");
    }
    assert_eq!((in_time(&any[25..]), in_time(&fixed[25..48])), (0, 0));
    assert_eq!(sum(&learned, |second| second.late), 0);
    println!(
        "learned: {} of 48,000 answers in time in the step, {} needless refusals",
        in_time(&learned[24..48]),
        sum(&learned[24..48], |second| second.needless)
    );
    assert!(in_time(&learned[24..48]) >= 43_000);
    // Both sides after the step has been learned, and after it is over.
    assert_eq!(sum(&learned[36..], |second| second.late + second.needless), 0);
    assert!(in_time(&learned[36..48]) >= 12 * 1_990);
    assert!(in_time(&learned[49..]) >= (SECONDS as u64 - 49) * 3_499);
    // All or nothing: a request that the limit refused was not charged to its client's rate.
    assert!(totals.iter().all(|(charged, admitted)| charged == admitted), "{totals:?}");
}

/// The limit falls in the step only, and never to measure an idle server.
#[test]
fn no_probe_drops_the_limit_before_or_after_the_step() {
    let (seconds, _) = run(Open::Learned);
    let limits: Vec<u32> = seconds.iter().map(|second| second.limit).collect();
    println!("{limits:?}");
    let falls = |limits: &[u32]| limits.windows(2).any(|pair| pair[1] < pair[0]);
    assert!(!falls(&limits[..24]) && !falls(&limits[49..]), "{limits:?}");
    assert!(limits[24..34].iter().any(|limit| *limit < limits[23]), "{limits:?}");
}
