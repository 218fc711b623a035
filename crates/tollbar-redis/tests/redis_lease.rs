//! Leases from a real Redis: machines that share a limit through each kind of failure of Redis.

#[path = "lease/fleet.rs"]
mod fleet;
#[path = "common/redis.rs"]
mod redis;

use fleet::Fleet;
use redis::Server;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
/// The program of a fleet's processes. It is no test by itself.
#[test]
fn a_machine() {
    fleet::be_a_machine();
}

const POLICY: &str = "20000/s burst 2000";
const BURST: f64 = 2000.0;
const LIMIT: f64 = 20_000.0;
const NODES: u32 = 4;

/// How long a fleet runs: longer in a soak (`TOLLBAR_SOAK`).
fn length() -> Duration {
    Duration::from_millis(if is_soak() { 10_000 } else { 2_000 })
}

/// Runs one fleet while `fault` happens to the server, and returns its record.
fn run(name: &str, fault: impl FnOnce(&mut Fleet, &mut Server)) -> Fleet {
    // One fleet at a time, because several would need more processors than there are.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut server = Server::start();
    let before = stolen();
    let mut fleet = Fleet::start(&server.unix(), name, POLICY, NODES, 20_000, length());
    fault(&mut fleet, &mut server);
    fleet.finish();
    let stolen = stolen() - before;
    let totals = fleet.totals();
    let rate = fleet.rate(Duration::ZERO, length());
    let worst = fleet.worst();
    println!("{name}: {rate:.0}/s, worst {worst:.0} of {BURST} above the rate, {stolen} ms stolen, {totals:?}");
    assert!(fleet.worst() <= BURST, "{name}: the bound");
    assert_eq!(totals.slept, 0, "{name}: no call waits");
    // A call that waits is put to sleep, which the kernel counts above. A call that is slow without
    // sleeping lost its processor: on a virtual machine the host takes processors away without any
    // switch of the guest's threads.
    if is_soak() {
        assert!(
            totals.slow <= 4 + stolen / 100,
            "{name}: {} calls of more than a millisecond",
            totals.slow
        );
    }
    fleet
}

/// Milliseconds of all processors that the host has given to others ("steal"); 0 if the kernel does
/// not say.
fn stolen() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // "cpu", then user, nice, system, idle, iowait, irq, softirq, steal: in hundredths of a second
    // (`man 5 proc_stat`).
    let ticks = stat
        .lines()
        .next()
        .and_then(|line| line.split_whitespace().nth(8))
        .and_then(|field| field.parse().ok());
    ticks.unwrap_or(0) * 10
}

/// The tests share their machine with others; a soak has it alone.
fn is_soak() -> bool {
    std::env::var_os("TOLLBAR_SOAK").is_some()
}

/// The least rate that must come through. `after_every_fault_all_of_the_rate` in
/// tests/lease_simulation.rs tests for the full rate, in virtual time. This bound only tells a
/// recovered fleet from one that has not recovered, which has at most a fifth of the rate.
fn least() -> f64 {
    LIMIT * if is_soak() { 0.95 } else { 0.60 }
}

fn whole(fleet: &Fleet) -> f64 {
    // A new limit begins empty, and the first tenth of the time fills the leases.
    fleet.rate(length() / 10, length())
}

#[test]
fn normal() {
    let fleet = run("normal", |_, _| {});
    assert!(whole(&fleet) >= least());
    let totals = fleet.totals();
    assert!(
        totals.asked * 50 < totals.attempts,
        "{} questions for {} attempts",
        totals.asked,
        totals.attempts
    );
}

#[test]
fn killed_and_restarted_empty() {
    let fleet = run("killed", |fleet, server| {
        fleet.until(length() / 3);
        server.kill();
        fleet.until(length() / 2);
        server.restart();
    });
    assert!(fleet.totals().fallback_permits > 0, "the nodes went on at their shares");
    assert!(fleet.rate(length() * 2 / 3, length()) >= least(), "and came back");
}

#[test]
fn stopped_for_a_while() {
    let fleet = run("stopped", |fleet, server| {
        fleet.until(length() / 3);
        server.pause();
        fleet.until(length() / 3 + length() / 4);
        server.resume();
    });
    assert!(fleet.totals().opened >= u64::from(NODES), "everybody noticed");
    assert!(fleet.rate(length() * 2 / 3, length()) >= least());
}

#[test]
fn flushed_five_times() {
    let fleet = run("flushed", |fleet, server| {
        for n in 1..=5 {
            fleet.until(length() * n / 6);
            server.command(&["FLUSHALL"]);
        }
    });
    assert!(whole(&fleet) >= least());
}

#[test]
fn scripts_flushed() {
    let fleet = run("scripts", |fleet, server| {
        for n in 1..=5 {
            fleet.until(length() * n / 6);
            server.command(&["SCRIPT", "FLUSH"]);
        }
    });
    assert!(whole(&fleet) >= least());
}

#[test]
fn paused_clients() {
    let fleet = run("paused", |fleet, server| {
        fleet.until(length() / 3);
        server.command(&["CLIENT", "PAUSE", "300"]);
    });
    assert!(fleet.rate(length() * 2 / 3, length()) >= least());
}

#[test]
fn another_type_at_the_key() {
    let fleet = run("planted", |fleet, server| {
        fleet.until(length() / 3);
        // In one command, because the machines restore their keys as soon as they can.
        let set = "redis.call('DEL', KEYS[1]) return redis.call('SADD', KEYS[1], 'x')";
        server.command(&["EVAL", set, "1", "tollbar:{planted}:k:"]);
        fleet.until(length() / 2);
        server.command(&["SET", "tollbar:{planted}:k:", "many"]);
        fleet.until(length() * 7 / 12);
        server.command(&["SET", "tollbar:{planted}:record", "long ago"]);
    });
    assert!(fleet.rate(length() * 2 / 3, length()) >= least());
}

#[test]
fn machines_killed() {
    run("machines", |fleet, _| {
        let mut n = 0;
        let mut at = Duration::from_millis(300);
        while at < length() - Duration::from_millis(200) {
            fleet.until(at);
            fleet.replace(n % NODES as usize, "machines");
            n += 1;
            at += Duration::from_millis(200);
        }
    });
}
