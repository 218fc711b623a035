//! Honest callers of leases: how often a request is refused that an exact store would admit, how
//! much of the rate a flooded key uses, and how evenly machines share it.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/crowd.rs"]
mod crowd;

use common::{policy, MS, SEC};
use crowd::{Crowd, Direct};
use tollbar_redis::lease::Options;

/// Per cent of the requests that were refused: by an exact store, by a check, by a second check
/// after 6 ms, and by a request that waits; and the 99th percentile of the waits in nanoseconds.
#[derive(Debug, Default)]
struct Refused {
    direct: f64,
    check: f64,
    again: f64,
    wait: f64,
    /// An exact store, asked the requests that wait.
    wait_direct: f64,
    p99: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Check,
    Again,
    Wait,
}

fn options(nodes: u32, overdraft: u64) -> Options {
    Options { capacity: 4096, overdraft, ..Options::new(nodes) }
}

/// Keys at 30 % of their rate, in pages of so many requests to one machine.
fn innocents(text: &str, nodes: u32, page: u64) -> Refused {
    let policy = policy(text);
    let (total, keys) = (if cfg!(debug_assertions) { 3_000 } else { 12_000 }, 100);
    let gap = |crowd: &mut Crowd| {
        let mean = policy.period as f64 / policy.limit as f64 * page as f64 / 0.3 / keys as f64;
        (-(1.0 - crowd.random.below(1 << 30) as f64 / (1u64 << 30) as f64).ln() * mean) as u64
    };
    let percent = |refused: u64| refused as f64 * 100.0 / total as f64;
    let mut found = Refused::default();
    for mode in [Mode::Check, Mode::Again, Mode::Wait] {
        let right = if mode == Mode::Wait { 0 } else { Options::OVERDRAFT_DEFAULT };
        let kinds = vec![(policy, options(nodes, right)); nodes as usize];
        let (mut crowd, mut direct) = (Crowd::new(&kinds, 3), Direct::new(&policy));
        let (mut refused, mut exact) = (0, 0);
        for _ in 0..total / page {
            let by = gap(&mut crowd);
            crowd.pass(by);
            let (n, key) = (crowd.random.below(nodes.into()) as usize, crowd.random.below(keys));
            let mut denied = 0;
            for _ in 0..page {
                exact += u64::from(!direct.check(key, crowd.now));
                match mode {
                    Mode::Wait => crowd.wait(n, key, 1),
                    _ => denied += u64::from(!crowd.check(n, key).is_allowed()),
                }
            }
            if mode == Mode::Again && denied != 0 {
                crowd.pass(6 * MS);
                denied = (0..denied).filter(|_| !crowd.check(n, key).is_allowed()).count() as u64;
            }
            refused += denied;
        }
        crowd.pass(SEC);
        match mode {
            Mode::Check => (found.direct, found.check) = (percent(exact), percent(refused)),
            Mode::Again => found.again = percent(refused),
            Mode::Wait => {
                let admits =
                    |request: &&crowd::Request| request.decision.expect("one").is_allowed();
                let mut took: Vec<u64> =
                    crowd.requests.iter().filter(admits).map(|request| request.took).collect();
                took.sort_unstable();
                (found.wait, found.wait_direct) =
                    (percent(total - took.len() as u64), percent(exact));
                found.p99 = took[took.len() * 99 / 100];
            }
        }
    }
    found
}

#[test]
fn f1_an_idle_keys_first_requests_pass() {
    println!("per cent refused at 30 % of the rate; an exact store, check, again after 6 ms, wait");
    let mut above = Vec::new();
    for page in [1, 6] {
        for text in [
            "5/min",
            "10/s burst 20",
            "100/min burst 100",
            "1000/day burst 1000",
            "100/s burst 100",
        ] {
            for nodes in [1, 2, 13, 100] {
                let found = innocents(text, nodes, page);
                let Refused { direct, check, again, wait, wait_direct, p99 } = found;
                println!(
                    "{text}, {nodes} machines, pages of {page}: {direct:.2} {check:.2} {again:.2}; \
                     {wait_direct:.2} {wait:.2}, p99 {:.2} ms",
                    p99 as f64 / 1e6
                );
                assert!(
                    wait <= wait_direct + 0.1,
                    "a request that waits is decided as by the store"
                );
                assert!(p99 <= MS);
                let has_right = u64::from(2 * nodes) <= policy(text).burst;
                if page == 1 && has_right && check > direct + 0.5 {
                    above.push(format!("{text}, {nodes} machines: {check:.2}"));
                }
            }
        }
    }
    assert!(above.is_empty(), "more than 0.5 % of an idle key's requests: {above:?}");
}

/// One key of which every machine tries three times its share. Returns the use of the rate, the
/// least share of a machine in relation to the mean, and questions for each admitted request.
fn flooded(kinds: &[(tollbar::Policy, Options)], seed: u64) -> (f64, f64, f64) {
    let (policy, seconds) = (kinds[0].0, if kinds.len() > 20 { 8 } else { 12 });
    let mut crowd = Crowd::new(kinds, seed);
    let gap = policy.period / policy.limit / 3;
    let run = |crowd: &mut Crowd, seconds: u64| {
        let end = crowd.now + seconds * SEC;
        while crowd.now < end {
            let by = crowd.random.below(2 * gap);
            crowd.pass(by);
            let n = crowd.random.below(kinds.len() as u64) as usize;
            let _ = crowd.check(n, 1);
        }
    };
    run(&mut crowd, seconds / 4);
    let (before, asked) = (crowd.admitted(), crowd.questions);
    run(&mut crowd, seconds);
    let each: Vec<u64> =
        crowd.admitted().iter().zip(&before).map(|(after, before)| after - before).collect();
    let sum: u64 = each.iter().sum();
    let least = each.iter().min().copied().unwrap_or(0) as f64;
    (
        sum as f64 * policy.period as f64 / policy.limit as f64 / (seconds * SEC) as f64,
        least * each.len() as f64 / sum as f64,
        (crowd.questions - asked) as f64 / sum as f64,
    )
}

#[test]
fn f3_machines_share_a_flooded_key() {
    println!("use of the rate, least share, questions for each admitted request");
    for (text, nodes) in [
        ("100/s burst 100", 2),
        ("100/s burst 100", 13),
        ("1000/s burst 1000", 2),
        ("1000/s burst 1000", 13),
    ] {
        let kinds =
            vec![(policy(text), options(nodes, Options::OVERDRAFT_DEFAULT)); nodes as usize];
        let (uses, least, questions) = flooded(&kinds, 5);
        println!("{text}, {nodes} machines: {uses:.2} {least:.2} {questions:.2}");
        assert!(uses >= 0.95 && least >= 0.5, "{text}, {nodes} machines: {uses} {least}");
    }
}

/// Half of the machines have another burst: both halves get their share.
#[test]
fn f3_a_roll_out_starves_nobody() {
    for nodes in [2_u32, 10] {
        let kinds: Vec<_> = (0..nodes)
            .map(|n| {
                let text = if n % 2 == 0 { "100/s burst 100" } else { "100/s burst 200" };
                (policy(text), options(nodes, 1))
            })
            .collect();
        let (uses, least, questions) = flooded(&kinds, 6);
        println!("{nodes} machines of two bursts: {uses:.2} {least:.2} {questions:.2}");
        assert!(uses >= 0.95 && least >= 0.5, "{nodes}: {uses} {least}");
    }
}

/// Far more users than a node has places: each is active for a moment only.
#[test]
fn f4_finished_keys_leave() {
    let policy = policy("10/min burst 60");
    let kinds = [(policy, Options { capacity: 4096, ..Options::new(1) })];
    let (mut crowd, mut direct) = (Crowd::new(&kinds, 9), Direct::new(&policy));
    let (mut refused, mut exact, total) = (0, 0, 60_000);
    for _ in 0..total {
        let by = crowd.random.below(2 * SEC / 1500);
        crowd.pass(by);
        let key = crowd.random.below(20_000);
        refused += u64::from(!crowd.check(0, key).is_allowed());
        exact += u64::from(!direct.check(key, crowd.now));
    }
    let full = crowd.full();
    println!("20,000 keys, 4,096 places, 1,500/s: {refused} of {total} refused, {exact} by an exact store, {full} for want of a place");
    assert!(refused <= exact + total / 100 && full <= total / 100);
}

/// A user of a slow limit gets the last permits, too, on one machine or by turns on all: all that
/// exactness does not keep back.
#[test]
fn a_slow_limit_is_used_up() {
    // The permits that the rights of all machines keep back.
    for (text, burst, nodes, kept) in [
        ("1000/day burst 400", 400, 1, 8),
        ("1000/day burst 400", 400, 3, 24),
        ("1000/day burst 400", 400, 10, 50),
        ("100/h burst 100", 100, 2, 16),
    ] {
        let admitted = |machines: u64| {
            let kind = (policy(text), options(nodes, Options::OVERDRAFT_DEFAULT));
            let mut crowd = Crowd::new(&vec![kind; nodes as usize], 5);
            crowd.pass(SEC);
            for request in 0..2 * burst * machines {
                let _ = crowd.check((request / (burst / 4) % machines) as usize, 1);
                crowd.pass(2 * MS);
            }
            crowd.admitted().iter().sum::<u64>()
        };
        let (one, each) = (admitted(1), admitted(u64::from(nodes)));
        println!(
            "{text}, {nodes} machines, {burst} by an exact store: {one} on one machine, \
             {each} on all by turns"
        );
        for admitted in [one, each] {
            assert!((burst - kept..=burst).contains(&admitted), "{admitted}");
        }
    }
}
