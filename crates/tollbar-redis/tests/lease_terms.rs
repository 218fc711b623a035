//! Changes of a limit's terms, in virtual time: all machines together never admit more than the
//! larger burst and the faster rate, and no user is refused for a change.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/crowd.rs"]
mod crowd;
#[path = "lease/store.rs"]
mod store;
#[path = "lease/world.rs"]
mod world;

use crowd::Crowd;
use tollbar::Policy;
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{execute, Grant};
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::{Fallback, OnLoss, Options, Terms};
use world::{Powers, World};

type Kind = (Policy, Options);

fn kind(policy: &str, overdraft: u64, nodes: u32, life: u64) -> Kind {
    let options = Options {
        overdraft,
        capacity: 64,
        fallback: Fallback::Deny,
        life: life * 1_000_000,
        ..Options::new(nodes)
    };
    (policy.parse().expect("a policy"), options)
}

/// A store with one key, asked at times that the test chooses.
#[derive(Default)]
struct Bucket {
    record: Option<Record>,
    key: Option<Stored>,
}

const SECOND: u64 = 1_000_000;
const DAY: u64 = 86_400 * SECOND;

impl Bucket {
    /// Puts the kind's terms in force. The version before the call.
    fn set(&mut self, kind: &Kind, raw: u64) -> u64 {
        let version = self.record.map_or(0, |record| record.terms.version);
        self.ask(&terms(kind, version + 1), &Ask::default(), raw);
        version
    }

    fn ask(&mut self, terms: &Terms, ask: &Ask, raw: u64) -> Grant {
        let from = Requester { fresh: 1, ..Requester::default() };
        let (record, grant, key) = execute(self.record, self.key, terms, ask, &from, raw);
        self.record = Some(record);
        if grant.tat > grant.now && (ask.want | ask.debt | ask.waiting) != 0 {
            self.key = Some(key);
        }
        grant
    }

    /// As many permits as the store serves at once.
    fn drain(&mut self, raw: u64) -> u64 {
        let terms = self.record.expect("a record").terms;
        let ask = Ask { waiting: 1 << 20, cost: 1, ..Ask::default() };
        self.ask(&terms, &ask, raw).served
    }

    /// Permits that requests have taken.
    fn charge(&mut self, permits: u64, raw: u64) {
        let terms = self.record.expect("a record").terms;
        self.ask(&terms, &Ask { debt: permits, ..Ask::default() }, raw);
    }
}

fn terms((policy, options): &Kind, version: u64) -> Terms {
    Terms { version, ..Terms::new(policy, options).expect("terms") }
}

/// A key keeps the permits that it has used, whatever becomes of the limit.
#[test]
fn a_key_keeps_what_it_used() {
    for (before, after, used, left) in [
        ("1000/day burst 1000", "2000/day burst 2000", 299, 1701),
        ("1000/day burst 1000", "500/day burst 500", 299, 201),
        ("1000/day burst 1000", "1000/hour burst 1000", 299, 701),
        ("1000/hour burst 1000", "1000/day burst 1000", 299, 701),
        // Who used more than the new burst has used that burst.
        ("1000/day burst 1000", "100/day burst 100", 299, 0),
        ("1000/day burst 1000", "100/day burst 2000", 0, 2000),
    ] {
        let mut bucket = Bucket::default();
        bucket.set(&kind(before, 0, 2, 0), 10 * DAY);
        bucket.charge(used, 20 * DAY);
        bucket.set(&kind(after, 0, 2, 0), 20 * DAY + 1);
        assert_eq!(bucket.drain(20 * DAY + 3), left, "{before} to {after}");
    }
    // A key that is not touched for three changes.
    let mut bucket = Bucket::default();
    bucket.set(&kind("1000/day burst 1000", 0, 2, 0), 10 * DAY);
    bucket.charge(299, 20 * DAY);
    for (n, text) in ["7/s burst 1000", "1000/day burst 2000", "1/s burst 5000"].iter().enumerate()
    {
        bucket.set(&kind(text, 0, 2, 0), 20 * DAY + 3 * n as u64 * SECOND);
    }
    // 3 s at 7/s and as many at 1000/day.
    assert_eq!(bucket.drain(20 * DAY + 6 * SECOND), 4722);
}

/// After a smaller burst has cut what a key used, the former burst gives the difference back once,
/// and not before it has refilled a second time.
#[test]
fn to_and_fro_gives_the_difference_once() {
    let (large, small) = (kind("100/s burst 1000", 0, 2, 0), kind("100/s burst 100", 0, 2, 0));
    let mut bucket = Bucket::default();
    bucket.set(&large, 10 * SECOND);
    let (begin, mut taken) = (100 * SECOND, 0);
    for change in 0..8 {
        let at = begin + change * 2 * SECOND;
        bucket.set(if change % 2 == 0 { &large } else { &small }, at - 1);
        taken += bucket.drain(at);
    }
    // 14 s at 100/s, the burst, and once the difference.
    assert!((2400..=1000 + 1400 + 900).contains(&taken), "{taken}");
    let mut without = Bucket::default();
    without.set(&large, 10 * SECOND);
    let mut uncut = 0;
    for change in 0..8 {
        let at = begin + change * 2 * SECOND;
        without.set(if change % 2 == 0 { &large } else { &small }, at - 1);
        // A planted fault: each smaller burst cuts.
        without.record.as_mut().expect("a record").cut_from = 0;
        uncut += without.drain(at);
    }
    assert!(uncut > 1000 + 1400 + 900, "{uncut}");
}

/// The store takes no change before every machine knows the last one.
#[test]
fn a_change_waits_for_the_last_one() {
    let (one, other) = (kind("100/s burst 100", 0, 2, 0), kind("50/s burst 100", 0, 2, 0));
    let mut bucket = Bucket::default();
    let version = |bucket: &Bucket| bucket.record.expect("a record").terms.version;
    bucket.set(&one, SECOND);
    assert_eq!((bucket.set(&other, 2 * SECOND), version(&bucket)), (1, 2));
    assert_eq!((bucket.set(&one, 4 * SECOND - 1), version(&bucket)), (2, 2));
    assert_eq!((bucket.set(&one, 4 * SECOND), version(&bucket)), (2, 3));
    // A machine with an old version changes nothing, and learns the terms in force.
    let answer = bucket.ask(&terms(&other, 1), &Ask::default(), 9 * SECOND);
    assert_eq!(answer.terms, bucket.record.map(|record| record.terms));
    assert_eq!((version(&bucket), answer.terms.expect("terms").num), (3, 1));
}

/// An idle machine learns a change from its next question, which it asks every 0.4 s.
#[test]
fn a_hundred_machines_know_a_change() {
    let options = Options { capacity: 64, ..Options::new(100) };
    let policy = |text: &str| text.parse::<Policy>().expect("a policy");
    let kinds = [(policy("1000/day"), options), (policy("2000/day"), options)];
    let mut world = World::new(&kinds, Powers::default(), 3);
    world.begin();
    world.set(1);
    let begin = world.now;
    assert_eq!(world.informed(), 0);
    while world.informed() < 100 {
        world.pass(1_000_000);
        assert!(world.now - begin < 2_000_000_000, "{} machines know it", world.informed());
    }
    println!("100 machines know a change after {} ms", (world.now - begin) / 1_000_000);
}

/// Users at 30 % of their rate are refused no request because the limit changes.
#[test]
fn no_innocent_is_refused() {
    for (before, after) in [
        ("1000/day burst 1000", "2000/day burst 2000"),
        ("2000/day burst 2000", "1000/day burst 1000"),
        ("100/min burst 100", "200/min burst 50"),
    ] {
        let policy = |text: &str| text.parse::<Policy>().expect("a policy");
        let options = Options { capacity: 4096, ..Options::new(4) };
        let mut crowd = Crowd::new(&[(policy(before), options); 4], 5);
        let (mut requests, mut refused) = (0, 0);
        for turn in 0..40_000_u64 {
            if turn == 20_000 {
                crowd.set(&Terms::new(&policy(after), &options).expect("terms"));
            }
            // 1,000 users, each with a request in ten seconds.
            crowd.pass(10_000_000);
            let (machine, key) = (crowd.random.below(4) as usize, crowd.random.below(1000));
            // 30 % of 1000/day is one request in 288 s.
            if !before.contains("day") || key % 29 == turn % 29 {
                requests += 1;
                refused += u64::from(!crowd.check(machine, key).is_allowed());
            }
        }
        println!("{before} to {after}: {refused} of {requests} refused");
        assert_eq!(refused, 0, "{before} to {after}, of {requests}");
    }
}

fn changes() -> Vec<(&'static str, Kind, Kind)> {
    vec![
        ("the rate", kind("1000/s burst 200", 4, 3, 0), kind("100/s burst 200", 4, 3, 0)),
        ("a slow rate", kind("100/min burst 100", 2, 2, 0), kind("200/min burst 100", 2, 2, 0)),
        ("the burst", kind("1000/s burst 400", 8, 3, 2), kind("1000/s burst 100", 2, 3, 2)),
        ("both", kind("60/h burst 60", 1, 2, 0), kind("120/h burst 120", 2, 2, 0)),
        ("the overdraft", kind("100/s burst 100", 2, 3, 0), kind("100/s burst 100", 12, 3, 0)),
        ("N", kind("1000/s burst 400", 2, 3, 4), kind("1000/s burst 400", 1, 12, 4)),
    ]
}

/// A world whose bound is the larger burst and the faster rate.
fn world(one: &Kind, other: &Kind, seed: u64) -> (World, f64) {
    let powers = Powers { kills: true, losses: true, changes: true, ..Powers::default() };
    let mut refilled = [*one, *other];
    refilled.iter_mut().for_each(|kind| kind.1.on_loss = OnLoss::Refill);
    let mut world = World::new(&refilled, powers, seed);
    let rate = |kind: &Kind| kind.0.limit as f64 / kind.0.period as f64;
    let faster = if rate(one) < rate(other) { other } else { one };
    world.policy = Policy { burst: one.0.burst.max(other.0.burst), ..faster.0 };
    let burst = world.policy.burst as f64;
    (world, burst)
}

/// Runs schedules; the first that is above the bound, and the worst.
fn search(one: &Kind, other: &Kind, schedules: u64, fault: fn(&mut World)) -> (bool, f64) {
    let mut worst = 0.0_f64;
    for number in 0..schedules.div_ceil(250) {
        let (mut world, burst) = world(one, other, 77 << 32 | number);
        for _ in 0..250.min(schedules) {
            // Some schedules begin by the other terms.
            let kind = (world.random.below(2)) as usize;
            world.set(kind);
            world.begin();
            for _ in 0..60 {
                world.step();
                fault(&mut world);
                // A cut gives the difference of the bursts, once in a refill.
                if world.worst() > burst + world.unreported() + world.forgiven() + world.rolled_back
                {
                    return (true, world.worst());
                }
            }
        }
        worst = worst.max(world.worst_ever);
    }
    (false, worst)
}

#[test]
fn changes_keep_the_bound() {
    let schedules = std::env::var("TOLLBAR_SCHEDULES").ok().and_then(|n| n.parse::<u64>().ok());
    for (what, one, other) in changes() {
        let burst = one.0.burst.max(other.0.burst) as f64;
        let (broken, worst) = search(&one, &other, schedules.unwrap_or(3_000) / 6, |_| {});
        println!("{what}: {:.0} %", 100.0 * worst / burst);
        assert!(!broken, "{what}: {worst} of {burst}");
        assert!(worst >= 0.9 * burst, "{what}: the search came to {worst} of {burst} only");
    }
}

/// Each rule of a change is needed, and the search sees when it is missing.
#[test]
fn without_a_rule_of_a_change_a_violation_is_found() {
    type Fault = (&'static str, fn(&mut World));
    let faults: [Fault; 3] = [
        ("leases are converted as if spent", |world| {
            if let Some(key) = &mut world.store.data.key {
                key.until = 0;
            }
        }),
        ("larger rights begin at once", |world| {
            if let Some(record) = &mut world.store.data.record {
                record.terms.overdraft_before = record.terms.overdraft;
                record.terms.since = 0;
            }
        }),
        ("former rights are forgotten", |world| {
            if let Some(record) = &mut world.store.data.record {
                record.tight = record.terms.cap;
            }
        }),
    ];
    // The wider the change of the overdraft, the sooner the search meets what a missing rule gives.
    let one = kind("100/s burst 100", 2, 3, 0);
    let other = kind("100/s burst 100", 30, 3, 0);
    for (what, fault) in faults {
        let (broken, worst) = search(&one, &other, 20_000, fault);
        assert!(broken, "{what}: the search came to {worst} only");
    }
}
