use super::*;
use loom::{sync::Arc, thread};
use std::{println, vec::Vec};

/// Two threads that want the same line, and a third that finds none.
#[test]
fn no_count_is_lost() {
    const WHO: [u64; 3] = [0x1000, 0x1000_0000_1000, 0x2000_0000_1000];
    assert!(WHO.iter().all(|&who| place(who, LINES) == place(WHO[0], LINES)));
    let executions = crate::sync::explore(2, || {
        let tally = Arc::new(Tally::default());
        let count = |tally: &Tally, who| {
            let _ = tally.count_as(who, Verdict::Denied);
            let _ = tally.count_as(who, Verdict::Allowed);
            let _ = tally.count_as(who, Verdict::Denied);
        };
        let threads: Vec<_> = WHO[1..]
            .iter()
            .map(|&who| {
                let tally = tally.clone();
                thread::spawn(move || count(&tally, who))
            })
            .collect();
        count(&tally, WHO[0]);
        threads.into_iter().for_each(|thread| thread.join().expect("ends"));
        assert_eq!(tally.counts(), Counts { allowed: 3, denied: 6, never: 0 });
    });
    println!("limiter's counts: {executions} executions");
}
