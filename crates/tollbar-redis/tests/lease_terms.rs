//! Machines with different terms of one limit, during a roll-out, in virtual time. Together they
//! never admit more than the stricter terms allow.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/store.rs"]
mod store;
#[path = "lease/world.rs"]
mod world;

use tollbar::Policy;
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{execute, Grant};
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::{Fallback, OnLoss, Options, Terms};
use world::{Powers, World};

type Kind = (Policy, Options);

fn kind(policy: &str, overdraft: u64, nodes: u32, life: u64) -> Kind {
    let options = Options {
        overdraft,
        capacity: 64,
        fallback: Fallback::Deny,
        on_loss: OnLoss::Refill,
        life: life * 1_000_000,
        ..Options::new(nodes)
    };
    (policy.parse().expect("a policy"), options)
}

/// A store with one key, asked at times that the test chooses.
struct Bucket {
    record: Option<Record>,
    tat: Option<u64>,
    granted: u64,
}

impl Bucket {
    fn ask(&mut self, (policy, options): &Kind, raw: u64) -> Grant {
        let terms = Terms::new(policy, options).expect("terms");
        let ask = Ask { want: terms.most, least: 1, ..Ask::default() };
        let (met, grant) = execute(
            self.record,
            self.tat,
            &terms,
            &ask,
            &Requester { seen: 0, run: 1, fresh: 1 },
            raw,
        );
        if met.write {
            self.record = Some(met.record);
        }
        self.tat = Some(grant.tat);
        self.granted += grant.permits;
        grant
    }
}

const SECOND: u64 = 1_000_000;

/// Two machines ask in turn, two thousand times in a second. One of them has a smaller burst.
#[test]
fn two_bursts_in_turn_admit_the_smaller() {
    for (one, other) in
        [("1000/s burst 900", "1000/s burst 500"), ("1000/s burst 500", "1000/s burst 900")]
    {
        let (one, other) = (kind(one, 0, 2, 1), kind(other, 0, 2, 1));
        let mut bucket = Bucket { record: None, tat: None, granted: 0 };
        let begin = 100 * SECOND;
        // New data begin empty; then the bucket fills.
        bucket.ask(&one, begin);
        bucket.ask(&other, begin + 1);
        let full = begin + 5 * SECOND;
        let mut mixed = 0;
        for turn in 0..2000 {
            // The machine with the smaller burst asks first, so the store knows of it.
            let asker =
                if (turn % 2 == 0) == (other.0.burst < one.0.burst) { &other } else { &one };
            mixed += u64::from(bucket.ask(asker, full + turn * 500).mixed);
        }
        let least = Terms::new(if one.0.burst < other.0.burst { &one.0 } else { &other.0 }, &one.1)
            .expect("terms")
            .most;
        assert!(bucket.granted <= least + 1000, "{} of {}", bucket.granted, least + 1000);
        assert!(bucket.granted >= least + 950, "{} of {}", bucket.granted, least + 1000);
        assert_eq!(mixed, 1000, "each answer to the machine with the greater burst says so");
    }
}

/// A smaller burst is in force at once. The greater one is in force when no machine has asked by
/// the smaller for two seconds.
#[test]
fn a_roll_out_ends() {
    let (small, great) = (kind("100/s burst 50", 0, 2, 1), kind("100/s burst 500", 0, 2, 1));
    let mut bucket = Bucket { record: None, tat: None, granted: 0 };
    bucket.ask(&small, SECOND);
    let cap = |bucket: &Bucket| bucket.record.expect("a record").cap;
    let (least, most) = (cap(&bucket), Terms::new(&great.0, &great.1).expect("terms").cap);
    for tenth in 1..=20 {
        assert!(bucket.ask(&great, SECOND + tenth * SECOND / 10).mixed && cap(&bucket) == least);
    }
    assert!(!bucket.ask(&great, SECOND + 21 * SECOND / 10).mixed && cap(&bucket) == most);
    assert!(!bucket.ask(&small, SECOND + 22 * SECOND / 10).mixed && cap(&bucket) == least);
    assert!(bucket.ask(&great, SECOND + 23 * SECOND / 10).mixed);
}

/// A machine with a smaller burst does not forgive what was used of a greater one.
#[test]
fn a_smaller_burst_forgives_nothing() {
    let (small, great) = (kind("10/s burst 50", 0, 2, 1), kind("10/s burst 500", 0, 2, 1));
    let mut bucket = Bucket { record: None, tat: None, granted: 0 };
    bucket.ask(&great, SECOND);
    let most = Terms::new(&great.0, &great.1).expect("terms").most;
    let mut drain = |kind: &Kind, at: u64| {
        for turn in 0..20 {
            bucket.ask(kind, at + turn);
        }
    };
    drain(&great, 100 * SECOND);
    drain(&small, 101 * SECOND);
    drain(&great, 104 * SECOND);
    assert!((most..=most + 40).contains(&bucket.granted), "{} of {most} and 40", bucket.granted);
}

/// A slower rate is in force at once, the faster one when no machine has asked by the slower for
/// two seconds. No change forgives what keys have used.
#[test]
fn a_rate_is_rolled_out() {
    let (slow, fast) = (kind("10/s burst 50", 0, 2, 1), kind("1000/s burst 50", 0, 2, 1));
    let mut bucket = Bucket { record: None, tat: None, granted: 0 };
    bucket.ask(&fast, SECOND);
    let begin = 10 * SECOND;
    for turn in 0..2000 {
        bucket.ask(if turn % 2 == 0 { &slow } else { &fast }, begin + turn * 1000);
    }
    assert!(
        (18..=20).contains(&bucket.granted),
        "{} in two seconds at 10/s, from an empty bucket",
        bucket.granted
    );
    bucket.granted = 0;
    for turn in 0..=1000 {
        bucket.ask(&fast, begin + 4 * SECOND + turn * 1000);
    }
    assert!(
        (950..=1000).contains(&bucket.granted),
        "{} in a second at 1000/s, from an empty bucket",
        bucket.granted
    );
}

/// Machines of two kinds come and go under the adversary, never more of them than the smaller N.
#[test]
fn rolling_changes_keep_the_bound() {
    let schedules = std::env::var("TOLLBAR_SCHEDULES")
        .ok()
        .and_then(|n| n.parse::<u64>().ok())
        .unwrap_or(3_000)
        / 6;
    let changes = [
        ("N from 3 to 12", kind("1000/s burst 400", 2, 3, 4), kind("1000/s burst 400", 1, 12, 4)),
        ("N from 2 to 6", kind("100/min burst 100", 1, 2, 50), kind("100/min burst 100", 1, 6, 50)),
        (
            "the burst, 400 and 100",
            kind("1000/s burst 400", 0, 3, 2),
            kind("1000/s burst 100", 0, 3, 2),
        ),
        (
            "the burst, 100 and 60",
            kind("100/min burst 100", 0, 3, 0),
            kind("100/min burst 60", 1, 3, 0),
        ),
        (
            "the life, 2 and 20 ms",
            kind("1000/s burst 400", 0, 3, 2),
            kind("1000/s burst 400", 0, 3, 20),
        ),
        (
            "the rate, 1000/s and 100/s",
            kind("1000/s burst 200", 0, 3, 2),
            kind("100/s burst 200", 0, 3, 2),
        ),
    ];
    for (what, one, other) in changes {
        let burst = one.0.burst.max(other.0.burst) as f64;
        let (mut worst, mut mixed) = (0.0_f64, false);
        for number in 0..schedules.div_ceil(250) {
            let seed = 9 << 32 | number;
            let mut world = World::new(
                &[one, other],
                Powers { kills: true, losses: true, ..Powers::default() },
                seed,
            );
            for _ in 0..250.min(schedules) {
                world.begin();
                for _ in 0..60 {
                    world.step();
                    mixed |= !world.notices().is_empty();
                    assert!(
                        world.worst() <= burst + world.unreported(),
                        "{what}: {} of {burst}, seed {seed:#x}",
                        world.worst()
                    );
                }
            }
            worst = worst.max(world.worst_ever);
        }
        println!("{what}: {:.0} %", 100.0 * worst / burst);
        assert!(
            worst >= 0.9 * burst && mixed == (one.1.life == other.1.life),
            "{what}: the search came to {worst} of {burst} only"
        );
    }
}
