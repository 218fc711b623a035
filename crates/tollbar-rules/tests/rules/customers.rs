//! A hundred thousand customers with a policy each.

use crate::common::*;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tollbar_rules::{Format, Options, Rules};

const CUSTOMERS: usize = 100_000;

/// Customer n has n % 50 + `more` permits an hour, or a plan.
fn file(more: usize) -> String {
    let mut text = "version = 1\n[group.api]\nkey = 'header X-Api-Key'\nlimit = '10/h'\n\
        [group.api.plans]\npro = '500/h'\n[group.api.keys]\n"
        .to_owned();
    for n in 0..CUSTOMERS {
        let _ = match n % 10 {
            0 => writeln!(text, "customer-{n} = 'pro'"),
            _ => writeln!(text, "customer-{n} = '{}/h'", n % 50 + more),
        };
    }
    text
}

/// The time that this thread has had a processor.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Prints what a load and a reload cost (`make soak ONLY=rules`: of a release). Requests go on
/// meanwhile, and none is refused: each
/// customer has permits left under both files.
#[test]
fn a_hundred_thousand_customers_reload_while_requests_are_decided() {
    let options = Options { keys: 2 * CUSTOMERS as u64, ..Options::default() };
    let (before, after) = (file(100), file(200));
    let begun = processor_time();
    let rules = Rules::from_text(&before, Format::Toml, &options).expect("rules");
    let loaded = processor_time() - begun;
    let (stop, asked, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let mut reloaded = Duration::MAX;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (rules, stop, asked, refused) = (&rules, &stop, &asked, &refused);
            scope.spawn(move || {
                // Each customer asks at most 20 times.
                for n in 0..10 * CUSTOMERS {
                    let name = format!("customer-{}", (n * 7919 + thread) % CUSTOMERS);
                    let answer = check(rules, 0, &[(":path", "/"), ("X-Api-Key", &name)]);
                    refused.fetch_add(u64::from(!answer.is_allowed()), Ordering::Relaxed);
                    asked.fetch_add(1, Ordering::Relaxed);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for text in [&after, &before] {
            let begun = processor_time();
            rules.replace(text, Format::Toml).expect("rules");
            reloaded = reloaded.min(processor_time() - begun);
        }
        // The reload may have been faster than the threads began.
        while asked.load(Ordering::Relaxed) < 1000 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (asked, refused) = (asked.into_inner(), refused.into_inner());
    println!("loaded in {loaded:?} of processor time, reloaded in {reloaded:?}; {refused} of {asked} refused");
    assert_eq!(refused, 0);
    // Ten times what it takes on an idle machine.
    assert!(loaded < Duration::from_secs(10) && reloaded < Duration::from_secs(10));
    let left = |name: &str| admitted(&rules, 600, 3600, &[(":path", "/"), ("X-Api-Key", name)]);
    assert_eq!((left("customer-10"), left("customer-13"), left("other")), (500, 113, 10));
}
