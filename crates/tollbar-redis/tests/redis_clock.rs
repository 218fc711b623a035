//! Leases from a real Redis whose wall clock steps. The machines keep the limit's rate, and admit a
//! stated amount more once.
//!
//! `tests/lease_simulation.rs` has the sharp bounds, in virtual time. Here the server, its expiry
//! of keys and its clock are real, and the tests share their machine with others, so rates have
//! generous bounds.

#[path = "lease/fleet.rs"]
mod fleet;
#[path = "common/redis.rs"]
mod redis;

use fleet::Fleet;
use redis::Server;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The program of a fleet's processes. It is no test by itself.
#[test]
fn a_machine() {
    fleet::be_a_machine();
}

const POLICY: &str = "1000/s burst 500";
const BURST: f64 = 500.0;
const LIMIT: f64 = 1000.0;
const NODES: u32 = 3;
const SECOND: i64 = 1_000_000;

/// A server's clock: microseconds that are added to the true time.
struct Shift {
    directory: PathBuf,
    file: std::fs::File,
}

impl Shift {
    fn new(name: &str) -> Shift {
        let directory =
            std::env::temp_dir().join(format!("tollbar-clock-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let library = directory.join("clock_shift.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lease/clock_shift.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", source, "-o"])
            .arg(&library)
            .status()
            .expect("cc");
        assert!(built.success(), "{source}");
        let file = std::fs::File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(directory.join("shift"));
        let shift = Shift { directory, file: file.expect("a file") };
        shift.set(0);
        shift
    }

    fn set(&self, micros: i64) {
        self.file.write_all_at(&micros.to_ne_bytes(), 0).expect("eight bytes");
    }

    fn server(&self) -> Server {
        let at = |name: &str| self.directory.join(name).display().to_string();
        Server::within(&[], &[("LD_PRELOAD", &at("clock_shift.so")), ("SHIFT_FILE", &at("shift"))])
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// How long a fleet runs: longer in a soak.
fn length() -> Duration {
    Duration::from_millis(if std::env::var_os("TOLLBAR_SOAK").is_some() { 20_000 } else { 3_000 })
}

/// Runs a fleet while `steps` change the server's clock, which begins `first` microseconds off.
fn run(name: &str, first: i64, steps: impl FnOnce(&Fleet, &Shift)) -> Fleet {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let shift = Shift::new(name);
    shift.set(first);
    let server = shift.server();
    let time = |server: &Server| {
        server.command(&["TIME"]).items()[0].text().parse::<i64>().expect("seconds")
    };
    let truth = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs() as i64;
    assert!((time(&server) - truth - first / SECOND).abs() <= 5, "the server's clock is shifted");
    let mut fleet = Fleet::start(&server.unix(), name, POLICY, NODES, 2_000, length());
    steps(&fleet, &shift);
    fleet.finish();
    let totals = fleet.totals();
    println!(
        "{name}: {:.0}/s, worst {:.0} of {BURST}, {totals:?}",
        fleet.rate(Duration::ZERO, length()),
        fleet.worst()
    );
    // S is 50 ms and w 0.4 s; the rest is what machines at their shares may add while others are
    // cut off by the scheduler.
    assert!(fleet.worst() <= BURST + LIMIT * 0.5, "{name}: {} above the rate", fleet.worst());
    fleet
}

/// Measures the rate from one lease life and the grace after the step on. A fleet that has
/// recovered admits more than half of the limit; one that has not admits nothing.
fn back_again(fleet: &Fleet, from: Duration) {
    let rate = fleet.rate(from + Duration::from_millis(1050), length());
    assert!(rate >= 0.6 * LIMIT, "{rate:.0}/s after the step");
}

fn stepped(name: &str, first: i64, to: i64) {
    let at = length() / 4;
    let fleet = run(name, first, |fleet, shift| {
        fleet.until(at);
        shift.set(to);
    });
    back_again(&fleet, at);
}

#[test]
fn back_by_a_minute() {
    stepped("minute", 0, -60 * SECOND);
}

/// A host that starts an hour ahead and is corrected, and one that is an hour late.
#[test]
fn by_an_hour() {
    stepped("back", 3600 * SECOND, 0);
    stepped("ahead", 0, 3600 * SECOND);
}

#[test]
fn to_1970_and_from_there() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_micros() as i64;
    stepped("to1970", 0, 100 * SECOND - now);
    stepped("from1970", 100 * SECOND - now, 0);
}

/// 0.2 s to and fro, ten times a second; and an hour.
#[test]
fn to_and_fro() {
    for (name, by) in [("fro", SECOND / 5), ("hours", 3600 * SECOND)] {
        let fleet = run(name, 0, |fleet, shift| {
            for n in 0..length().as_millis() as u64 / 100 {
                fleet.until(Duration::from_millis(100 * n));
                shift.set(if n % 2 == 0 { by } else { 0 });
            }
        });
        let rate = fleet.rate(length() / 3, length());
        assert!((0.5 * LIMIT..=1.25 * LIMIT).contains(&rate), "{name}: {rate:.0}/s");
    }
}
