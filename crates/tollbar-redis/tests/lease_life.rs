//! What the life of a lease costs: questions to the store for each decision, in virtual time.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/site.rs"]
mod site;

use common::{policy, Rng, MS, SEC};
use site::Site;
use tollbar_redis::lease::{Options, Terms};

/// Questions for a hundred decisions about 1,000 keys of equal chance, at 50,000 decisions a second
/// for ten seconds; and how many were denied.
fn questions(text: &str, life: u64) -> (f64, u64) {
    const DECISIONS: u64 = 500_000;
    let mut site =
        Site::new(&policy(text), &Options { life, capacity: 1 << 16, ..Options::new(1) });
    let (mut rng, mut refused) = (Rng(11), 0);
    for _ in 0..DECISIONS {
        let key = rng.below(1000);
        refused += u64::from(!site.check(key).is_allowed());
        site.pass(SEC / 50_000);
    }
    (site.asked as f64 * 100.0 / DECISIONS as f64, refused * 100 / DECISIONS)
}

/// The default life is long enough for leases to save questions, if the burst has room for it.
#[test]
fn the_chosen_life_spares_the_store() {
    println!("100/s burst 1000, 1,000 keys, 50 requests a second and key");
    let tried =
        [("50 ms", 50 * MS), ("250 ms", 250 * MS), ("1 s", SEC), ("4 s", 4 * SEC), ("chosen", 0)]
            .map(|(name, life)| {
                let (asked, refused) = questions("100/s burst 1000", life);
                println!(
                    "life {name}: {asked:.0} questions for 100 decisions, {refused} % refused"
                );
                (asked, refused)
            });
    assert!(tried[4].0 * 4.0 < tried[0].0 && tried[4].1 <= tried[0].1, "{tried:?}");
}

/// The default life is a sixteenth of the time in which the burst refills, at most 4 s. For bursts
/// that refill within 0.8 s it is 50 ms or a quarter of that time, whichever is shorter.
#[test]
fn the_life_that_is_chosen() {
    for (text, millis) in [
        ("100/min burst 100", 3750.0),
        ("100/s burst 1000", 625.0),
        ("1000/s", 62.5),
        ("1000/s burst 500", 50.0),
        ("20000/s burst 2000", 25.0),
        ("5/h burst 50", 4000.0),
    ] {
        let terms = Terms::new(&policy(text), &Options::new(1)).expect(text);
        assert_eq!(terms.life as f64 / 1e6, millis, "{text}");
        assert!(
            terms.most * 3 >= policy(text).burst,
            "{text}: {} of the burst are left",
            terms.most
        );
    }
}

/// Exactness takes the rights of all machines off the burst.
#[test]
fn what_exactness_costs() {
    for (text, nodes, right, left) in [
        ("1000/s burst 1000", 4, 10, 960),
        ("100/s burst 1000", 1, 0, 1000),
        // The default right.
        ("5/min", 1, Options::OVERDRAFT_DEFAULT, 4),
        ("5/min", 2, Options::OVERDRAFT_DEFAULT, 3),
        ("5/min", 3, Options::OVERDRAFT_DEFAULT, 5),
        ("100/min burst 100", 2, Options::OVERDRAFT_DEFAULT, 84),
        ("100/min burst 100", 13, Options::OVERDRAFT_DEFAULT, 87),
        ("100/min burst 100", 51, Options::OVERDRAFT_DEFAULT, 100),
        ("1000/day burst 1000", 100, Options::OVERDRAFT_DEFAULT, 900),
        ("10000/s burst 10000", 10, Options::OVERDRAFT_DEFAULT, 9360),
        ("10/s burst 2", 1, Options::OVERDRAFT_DEFAULT, 2),
    ] {
        let options = Options { overdraft: right, ..Options::new(nodes) };
        let terms = Terms::new(&policy(text), &options).expect(text);
        assert_eq!(terms.most, left, "{text}, {nodes} machines");
    }
    assert!(Terms::new(
        &policy("10000/s burst 100"),
        &Options { overdraft: 50, ..Options::new(2) }
    )
    .is_err());
    let whole = Options { exact: false, ..Options::new(100) };
    assert_eq!(Terms::new(&policy("5/min"), &whole).expect("terms").most, 5);
}
