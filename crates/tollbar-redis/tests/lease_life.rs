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

/// Exactness takes off the burst: the life; with overdrafts also twice the patience, and two
/// overdrafts of each machine.
#[test]
fn what_exactness_costs() {
    for (text, life, overdraft, patience, micros) in [
        ("1000/s burst 1000", 50 * MS, 10, 25 * MS, 50_000 + 2 * 25_000 + 2 * 4 * 10_000),
        ("1000/s burst 1000", 50 * MS, 0, 25 * MS, 50_000),
        ("1000/s burst 1000", 4 * MS, 10, 5 * MS, 4_000 + 2 * 5_000 + 2 * 4 * 10_000),
        ("100/s burst 1000", 2 * SEC, 1, 250 * MS, 2_000_000 + 2 * 250_000 + 2 * 4 * 10_000),
    ] {
        let terms =
            Terms::new(&policy(text), &Options { life, overdraft, ..Options::new(4) }).expect(text);
        let burst = policy(text).burst * policy(text).period / policy(text).limit / 1000;
        assert_eq!(
            (terms.patience(), burst - terms.cap),
            (patience, micros + 1),
            "{text}, overdraft {overdraft}"
        );
    }
    // A burst that refills in 10 ms has no room for debts. The default overdraft is 0, and a given
    // overdraft is refused.
    let brief = policy("10000/s burst 100");
    assert_eq!(Terms::new(&brief, &Options::new(2)).expect("terms").overdraft, 0);
    assert!(Terms::new(&brief, &Options { overdraft: 6, ..Options::new(2) }).is_err());
}
