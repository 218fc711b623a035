//! Leases under an adversary, in virtual time: the bound is searched for violations.
//!
//! The nodes and the arithmetic of the store are the ones that are shipped; simulated are the clock, the network and the
//! faults: lost and late messages, cut connections, killed nodes, a store that is flushed, restarted empty or with an old file, stopped,
//! set back, or finds a strange value.

mod common;
#[path = "lease/world.rs"]
mod world;

use tollbar::lease::{Options, Rescue};
use tollbar::Policy;
use world::World;

fn schedules(usual: u64) -> u64 {
    std::env::var("TOLLBAR_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// The policies and overdrafts that are tried in turn.
fn cases() -> Vec<(Policy, Options)> {
    let case = |policy: &str, overdraft, nodes| {
        let options = Options { overdraft, capacity: 64, rescue: Rescue::Deny, ..Options::new(nodes) };
        (policy.parse().expect("a policy"), options)
    };
    vec![
        case("1000/s burst 100", 0, 3),
        case("1000/s burst 100", 5, 3),
        case("70/s burst 40", 2, 4),
        case("20000/s burst 2000", 20, 4),
        case("3/s burst 30", 1, 2),
    ]
}

/// Runs schedules until one breaks the bound; what happened, if one did.
fn search(policy: &Policy, options: &Options, schedules: u64, bound: u64, seed: u64) -> Option<String> {
    const EACH: u64 = 500;
    let (mut worst, mut admitted) = (0.0_f64, 0);
    for world in 0..schedules.div_ceil(EACH) {
        let seed = seed << 32 | world;
        let tried = live(policy, options, EACH, bound, seed, false);
        if tried.broken {
            // Once more, to tell what happened.
            let log = live(policy, options, EACH, bound, seed, true).log.join("\n");
            return Some(format!("{policy} {options:?}\nseed {seed:#x}: {} above {bound}\n{log}", tried.worst));
        }
        worst = worst.max(tried.worst);
        admitted += tried.admitted;
    }
    println!("{policy}, {} nodes, overdraft {}: at most {worst:.1} of {bound}", options.nodes, options.overdraft);
    assert!(admitted > schedules, "a search in which hardly anything is admitted finds nothing");
    None
}

struct Tried {
    broken: bool,
    worst: f64,
    admitted: u64,
    log: Vec<String>,
}

/// The schedules of one world, up to the first that breaks the bound.
fn live(policy: &Policy, options: &Options, schedules: u64, bound: u64, seed: u64, verbose: bool) -> Tried {
    let mut world = World::new(policy, options, seed);
    world.verbose = verbose;
    let mut broken = false;
    'all: for _ in 0..schedules {
        world.begin();
        for _ in 0..60 {
            world.step();
            if !world.is_within(bound) {
                broken = true;
                break 'all;
            }
        }
    }
    Tried { broken, worst: world.worst_ever, admitted: world.admitted, log: world.log }
}

#[test]
fn exact_mode_is_never_above_the_policy() {
    let cases = cases();
    let each = schedules(20_000) / cases.len() as u64;
    for (policy, options) in &cases {
        if let Some(violation) = search(policy, options, each, policy.burst, 1) {
            panic!("{violation}");
        }
    }
    println!("{} schedules, no violation", each * cases.len() as u64);
}

/// The correction is needed, and the search would see it missing.
#[test]
fn without_the_correction_a_violation_is_found_at_once() {
    for (policy, options) in cases() {
        let options = Options { exact: false, ..options };
        let found = search(&policy, &options, 5_000, policy.burst, 2);
        assert!(found.is_some(), "{policy} {options:?}");
    }
}

/// Without it the bound is greater, by what leases and overdrafts carry.
#[test]
fn without_the_correction_the_greater_bound_holds() {
    for (policy, options) in cases() {
        let options = Options { exact: false, ..options };
        let terms = tollbar::lease::Terms::new(&policy, &options).expect("terms");
        let carried = terms.fitting(terms.life * if terms.overdraft == 0 { 2 } else { 3 } / 2 / 1000 + 1)
            + 1
            + 2 * terms.nodes * terms.overdraft;
        if let Some(violation) = search(&policy, &options, schedules(5_000) / 5, policy.burst + carried, 3) {
            panic!("{violation}");
        }
    }
}
