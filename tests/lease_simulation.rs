//! Leases under an adversary, in virtual time: the bound is searched for violations.
//!
//! The nodes and the arithmetic of the store are the ones that are shipped; simulated are the clock, the network and the
//! faults: lost and late messages, cut connections, killed nodes, a store that is flushed, restarted empty or with an old file, stopped,
//! set back, or finds a strange value.

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

/// Runs schedules until one breaks the bound; the seed and what happened, if one did.
fn search(policy: &Policy, options: &Options, schedules: u64, bound: u64, seed: u64) -> Option<String> {
    // A world lives for many schedules; what breaks is told with all that happened in its own.
    let mut world = World::new(policy, options, seed);
    world.verbose = true;
    for schedule in 0..schedules {
        world.begin();
        for _ in 0..60 {
            world.step();
            if !world.is_within(bound) {
                let log = world.log.join("\n");
                let worst = world.worst();
                return Some(format!(
                    "{policy} {options:?}\nseed {seed} schedule {schedule}: {worst} above {bound}\n{log}"
                ));
            }
        }
    }
    println!("{policy} {options:?}: worst {:.1} of {bound}", world.worst_ever);
    assert!(world.admitted > schedules, "a search in which hardly anything is admitted finds nothing");
    None
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
        let found = search(&policy, &options, 2_000, policy.burst, 2);
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
