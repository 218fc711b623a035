//! Fleets of 1 to 10,000 machines in virtual time: how much of the rate they use, how evenly they
//! share it, what they ask the store, and when they notice that it has lost its data.
//!
//! The table of docs/distributed.md is this program's output. A test compares both, and
//! `TOLLBAR_WRITE=1 cargo test --package tollbar-redis --test lease_fleets` writes it.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/crowd.rs"]
mod crowd;

use common::{policy, MS, SEC, US};
use crowd::{Crowd, Direct};
use tollbar::Policy;
use tollbar_redis::lease::Options;

/// The limit of all fleets, and that of the keys which stay below it.
const LIMIT: &str = "10000/s burst 10000";
const INNOCENTS: &str = "100/min burst 100";
/// The line before the table in docs/distributed.md.
const HEAD: &str = "| machines | use of the rate | least share | questions \
                    | refused: exact, `check`, `wait` | of the bound | noticed |";

/// What a fleet does.
#[derive(Debug)]
struct Fleet {
    /// The part of the rate that machines use which try three times their share.
    uses: f64,
    /// The least of their shares, of the mean.
    least: f64,
    /// Questions for each decision of these machines that admits.
    questions: f64,
    /// Per cent of the requests of keys at 30 % of their rate that an exact store refuses, that a
    /// check refuses, and that a request refuses which waits.
    refused: [f64; 3],
    /// The most admitted in a window beyond the rate, of the burst.
    reached: f64,
    /// Nanoseconds until every idle machine knows that the store has lost its data.
    noticed: u64,
}

fn fleet(machines: u64) -> Fleet {
    let policy = policy(LIMIT);
    let (uses, least, questions) = flooded(&policy, machines);
    Fleet {
        uses,
        least,
        questions,
        refused: innocents(machines),
        reached: besieged(&policy, machines),
        noticed: noticed(&policy, machines),
    }
}

fn crowd(policy: &Policy, machines: u64, overdraft: u64) -> Crowd {
    // So many that no key misses a place.
    let capacity = if machines > 100 { 256 } else { 4096 };
    let options = Options { capacity, overdraft, ..Options::new(machines as u32) };
    Crowd::new(&vec![(*policy, options); machines as usize], 3)
}

/// One key of which every machine tries three times its share.
fn flooded(policy: &Policy, machines: u64) -> (f64, f64, f64) {
    let mut crowd = crowd(policy, machines, Options::OVERDRAFT_DEFAULT);
    let gap = policy.period / policy.limit / 3;
    // So long that a machine's share is some tens of permits.
    let length = SEC * (30 * machines / policy.limit).max(10);
    let run = |crowd: &mut Crowd, length: u64| {
        let end = crowd.now + length;
        while crowd.now < end {
            let by = crowd.random.below(2 * gap);
            crowd.pass(by);
            let n = crowd.random.below(machines) as usize;
            let _ = crowd.check(n, 1);
        }
    };
    run(&mut crowd, SEC);
    let (before, asked) = (crowd.admitted(), crowd.questions);
    run(&mut crowd, length);
    let each: Vec<u64> =
        crowd.admitted().iter().zip(&before).map(|(after, before)| after - before).collect();
    let sum: u64 = each.iter().sum();
    let least = each.iter().min().copied().unwrap_or(0) as f64;
    (
        sum as f64 * policy.period as f64 / policy.limit as f64 / length as f64,
        least * each.len() as f64 / sum as f64,
        (crowd.questions - asked) as f64 / sum as f64,
    )
}

/// Twenty keys at 30 % of their rate, each request on any machine.
fn innocents(machines: u64) -> [f64; 3] {
    let policy = &policy(INNOCENTS);
    const TOTAL: u64 = 6_000;
    const KEYS: u64 = 20;
    let gap = policy.period * 10 / policy.limit / KEYS / 3;
    let mut denied = [0; 3];
    for waits in [false, true] {
        let right = if waits { 0 } else { Options::OVERDRAFT_DEFAULT };
        let (mut crowd, mut direct) = (crowd(policy, machines, right), Direct::new(policy));
        for _ in 0..TOTAL {
            let by = crowd.random.below(2 * gap);
            crowd.pass(by);
            let (n, key) = (crowd.random.below(machines) as usize, crowd.random.below(KEYS));
            if waits {
                crowd.wait(n, key, 1);
            } else {
                denied[0] += u64::from(!direct.check(key, crowd.now));
                denied[1] += u64::from(!crowd.check(n, key).is_allowed());
            }
        }
        crowd.pass(SEC);
        denied[2] += crowd
            .requests
            .iter()
            .filter(|request| !request.decision.is_some_and(|d| d.is_allowed()))
            .count() as u64;
    }
    denied.map(|denied| denied as f64 * 100.0 / TOTAL as f64)
}

/// An idle key of which one machine takes all that the store has, by requests that wait, and then
/// the others use their rights.
fn besieged(policy: &Policy, machines: u64) -> f64 {
    let mut crowd = crowd(policy, machines, Options::OVERDRAFT_DEFAULT);
    let cost = policy.burst / 100;
    let (mut level, mut worst, mut before) = (0.0_f64, 0.0_f64, 0);
    let step = 100 * US;
    for turn in 0..60 {
        (0..26).filter(|_| turn < 4).for_each(|_| crowd.wait(0, 1, cost));
        for n in (1..machines as usize).filter(|_| turn == 30) {
            while crowd.check(n, 1).is_allowed() {}
        }
        crowd.pass(step);
        let sum: u64 = crowd.admitted().iter().sum();
        level += (sum - before) as f64;
        (before, worst) = (sum, worst.max(level));
        level = (level - (step * policy.limit) as f64 / policy.period as f64).max(0.0);
    }
    worst / policy.burst as f64
}

/// The store loses its data while nobody asks for anything.
fn noticed(policy: &Policy, machines: u64) -> u64 {
    let mut crowd = crowd(policy, machines, Options::OVERDRAFT_DEFAULT);
    let mut longest = 0;
    for _ in 0..3 {
        let by = 500 * MS + crowd.random.below(400 * MS);
        crowd.idle(by);
        let begun = crowd.now;
        crowd.flush();
        while !crowd.all_know_the_data() {
            crowd.idle(4 * MS);
        }
        longest = longest.max(crowd.now - begun);
    }
    longest
}

fn row(machines: u64, fleet: &Fleet) -> String {
    let Fleet { uses, least, questions, refused: [exact, check, wait], reached, noticed } = fleet;
    format!(
        "| {machines} | {uses:.2} | {least:.2} | {questions:.2} \
         | {exact:.2}, {check:.2}, {wait:.2} % | {:.0} % | {} ms |",
        reached * 100.0,
        noticed / MS
    )
}

/// Checks a fleet's figures, and that it uses so much of the rate, and each machine so much of its
/// share.
fn assert_good(machines: u64, fleet: &Fleet, [use_least, share]: [f64; 2]) {
    let Fleet { uses, least, reached, noticed, refused: [exact, _, wait], .. } = fleet;
    assert!(*uses >= use_least && *least >= share, "{machines} machines: {fleet:?}");
    assert!(*wait <= exact + 0.1, "{machines} machines: {fleet:?}");
    assert!(*reached <= 1.001 && *reached >= 0.95, "{machines} machines: {fleet:?}");
    // A heartbeat, a pause of the client, and both ways.
    assert!(*noticed <= 409 * MS, "{machines} machines: {fleet:?}");
}

#[test]
fn the_table_of_the_documentation() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/distributed.md");
    let text = std::fs::read_to_string(path).expect("docs/distributed.md");
    let mut table = format!("{HEAD}\n|---|---|---|---|---|---|---|\n");
    for machines in [1, 10, 13, 100, 1_000] {
        let begun = std::time::Instant::now();
        let fleet = fleet(machines);
        let row = row(machines, &fleet);
        println!("{row} {:.1} s", begun.elapsed().as_secs_f64());
        assert_good(machines, &fleet, [0.95, 0.5]);
        table += &format!("{row}\n");
    }
    let begin = text.find(HEAD).expect("the table's head in docs/distributed.md");
    let length = text[begin..].find("\n\n").expect("an empty line after the table") + 1;
    let found = &text[begin..begin + length];
    if std::env::var_os("TOLLBAR_WRITE").is_some() {
        let text = format!("{}{table}{}", &text[..begin], &text[begin + length..]);
        std::fs::write(path, text).expect("docs/distributed.md is written");
    } else {
        assert_eq!(
            found, table,
            "docs/distributed.md has another table: TOLLBAR_WRITE=1 writes it"
        );
    }
}

/// 10,000 users of a limit, 10,000 requests a second, each on any machine.
#[test]
fn decisions_about_many_users_need_few_calls() {
    const DECISIONS: u64 = 20_000;
    for (machines, most) in [(1, 0.1), (4, 0.1), (20, 0.3)] {
        let policy = policy(INNOCENTS);
        let options = Options { capacity: 16_384, ..Options::new(machines) };
        let mut crowd = Crowd::new(&vec![(policy, options); machines as usize], 3);
        for _ in 0..DECISIONS {
            let by = crowd.random.below(200 * US);
            crowd.pass(by);
            let (n, key) = (crowd.random.below(machines.into()), crowd.random.below(10_000));
            let _ = crowd.check(n as usize, key);
        }
        crowd.pass(SEC);
        let calls = crowd.calls as f64 / DECISIONS as f64;
        println!("{machines} machines: {calls:.3} calls a decision");
        assert!(calls <= most, "{machines} machines: {calls}");
    }
}

/// `make soak ONLY=leases`.
#[test]
fn ten_thousand_machines() {
    if std::env::var_os("TOLLBAR_SCHEDULES").is_none() {
        return;
    }
    let begun = std::time::Instant::now();
    let fleet = fleet(10_000);
    println!("{} {:.1} s", row(10_000, &fleet), begun.elapsed().as_secs_f64());
    // Each machine tries three times a second, and its leases live for 62 ms.
    assert_good(10_000, &fleet, [0.75, 0.3]);
    assert!(begun.elapsed().as_secs() < 300, "{:?}", begun.elapsed());
}
