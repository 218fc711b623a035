//! Explores small worlds of leases to their ends, and finds each planted fault.
//!
//! `TOLLBAR_MODEL=large` takes larger worlds: `make soak ONLY=leases`.

use stateright::{Checker, HasDiscoveries, Model};
use tollbar_redis_model::{Fault, Limits, PERMIT};

/// Visits every state within the limits. Each property holds, and each state that must be reached
/// is. The large world has steps of time of half a permit.
fn explore(what: &str, small: Limits, large: Limits) {
    let is_large = std::env::var("TOLLBAR_MODEL").is_ok_and(|size| size == "large");
    let limits = if is_large { Limits { tick: PERMIT / 2, ..large } } else { small };
    let begun = std::time::Instant::now();
    let model = limits.model();
    let checker = model.clone().checker().threads(2).spawn_bfs().join();
    println!(
        "{what}: {} events tried, {} states, at most {} events deep, {:.1} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    );
    for property in model.properties() {
        let path = checker.discovery(property.name).map(|path| path.into_actions());
        let is_violation = property.expectation.discovery_is_failure();
        assert_eq!(path.is_none(), is_violation, "{what}: {}: {path:?}", property.name);
    }
}

#[test]
fn rights_and_requests_that_wait() {
    explore("rights", Limits::new(3, 1, 7, 4), Limits::new(3, 1, 12, 4));
}

#[test]
fn leases_and_requests_that_wait() {
    explore("leases", Limits::new(3, 0, 5, 4), Limits::new(3, 0, 9, 4));
}

#[test]
fn rights_and_leases() {
    explore("rights and leases", Limits::new(4, 1, 5, 3), Limits::new(4, 1, 10, 3));
}

#[test]
fn connections_that_break() {
    let cut = |cuts, limits| Limits { cuts, ..limits };
    explore("cuts", cut(1, Limits::new(3, 1, 5, 4)), cut(2, Limits::new(3, 1, 10, 4)));
}

#[test]
fn machines_that_are_killed() {
    let kill = |kills, limits| Limits { kills, ..limits };
    explore("kills", kill(1, Limits::new(3, 1, 6, 3)), kill(2, Limits::new(3, 1, 10, 3)));
}

#[test]
fn a_store_that_forgets() {
    let lose = |losses, limits| Limits { losses, ..limits };
    explore("losses", lose(1, Limits::new(3, 1, 5, 3)), lose(1, Limits::new(3, 1, 9, 3)));
}

/// Steps of three seconds, which is more than a machine allows the store.
#[test]
fn a_server_whose_clock_steps() {
    let steps = |steps, step, limits| Limits { steps, step, ..limits };
    explore("clock", steps(1, 3, Limits::new(3, 1, 5, 2)), steps(1, 6, Limits::new(3, 1, 9, 2)));
}

/// Each fault breaks what it should. The last one is no fault of the protocol: the right of a
/// machine that takes the place of a killed one is whole, even if the store knows all debts of the
/// first.
#[test]
fn planted_faults_are_found() {
    let (rights, leases) = (Limits::new(3, 1, 6, 3), Limits::new(3, 0, 4, 3));
    let first = "an idle key's first request passes";
    let steps = Limits { steps: 1, step: 3, ..rights.clone() };
    let kills = Limits { kills: 1, ..rights.clone() };
    for (fault, limits, broken) in [
        (Fault::NoCorrection, &rights, "the bound"),
        (Fault::ChargedEarly, &leases, "the bound"),
        (Fault::AlwaysOpen, &rights, "the bound"),
        (Fault::Unconfirmed, &rights, first),
        (Fault::TimeUnreported, &steps, "the data's time"),
        (Fault::SuccessorForgotten, &kills, "the bound"),
    ] {
        let model = Limits { fault, ..limits.clone() }.model();
        let until = HasDiscoveries::AnyOf([broken].into());
        let checker = model.checker().finish_when(until).spawn_bfs().join();
        let path = checker.discovery(broken).map(|path| path.into_actions());
        println!("{fault:?}: {} events tried: {path:?}", checker.state_count());
        assert!(path.is_some(), "{fault:?} does not break {broken:?}");
    }
}
