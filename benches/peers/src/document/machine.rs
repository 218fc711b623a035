//! The machine and the versions, as the system reports them.

use super::tables::Table;
use super::Document;
use std::fs::read_to_string;
use std::process::Command;

/// Crates as the lock file has them, from when the program was built.
const LOCK: &str = include_str!("../../../../Cargo.lock");

pub fn table(document: &Document) -> String {
    let mut table = Table::new(&["", ""]);
    let processor = line("/proc/cpuinfo", "model name");
    let count = std::thread::available_parallelism().map_or(0, |count| count.get());
    table.row(&["date", &said("date", &["-u", "+%Y-%m-%d"])]);
    table.row(&["processor", &format!("{processor}, {count} to this machine")]);
    table.row(&["caches", &caches()]);
    table.row(&["memory", &memory()]);
    table.row(&["huge pages", &read("/sys/kernel/mm/transparent_hugepage/enabled")]);
    table.row(&["kernel", &kernel()]);
    table.row(&["compiler", &said("rustc", &["--version"])]);
    for program in document.programs.iter().flat_map(|programs| programs.all()) {
        table.row(&["peers", &program.versions]);
    }
    let crates = ["governor", "ratelimit", "leaky-bucket", "pingora-limits"];
    let crates: Vec<_> = crates.iter().map(|name| format!("{name} {}", version(name))).collect();
    table.row(&["peers", &format!("crates: {}", crates.join(", "))]);
    table.row(&["peers", "folly's TokenBucket: its published formula, in Rust"]);
    table.row(&["other programs", &format!("load before the run: {}", document.load)]);
    table.row(&["the run took", &format!("{:.0} s", document.begun.elapsed().as_secs_f64())]);
    table.text()
}

/// The load average of the last minute, which shows how busy the machine was besides.
pub fn load() -> String {
    read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()
}

pub fn version(name: &str) -> String {
    let package = format!("name = \"{name}\"\nversion = \"");
    let found = LOCK.split_once(&package).and_then(|(_, rest)| rest.split_once('"'));
    found.map_or("of unknown version".into(), |(version, _)| version.to_owned())
}

pub fn memory() -> String {
    format!("{:.0} GiB", kib("/proc/meminfo", "MemTotal") / 1024.0 / 1024.0)
}

pub fn kernel() -> String {
    format!("{} {}", said("uname", &["-s"]), read("/proc/sys/kernel/osrelease"))
}

pub fn caches() -> String {
    let of = |index: usize| {
        let read =
            |name: &str| read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        let (level, kind, size) = (read("level"), read("type"), read("size"));
        (kind != "Instruction" && !size.is_empty()).then(|| format!("L{level} {size}"))
    };
    (0..4).filter_map(of).collect::<Vec<_>>().join(", ")
}

fn kib(path: &str, name: &str) -> f64 {
    line(path, name).split(' ').next().and_then(|kib| kib.parse().ok()).unwrap_or(f64::NAN)
}

pub fn line(path: &str, name: &str) -> String {
    let text = read_to_string(path).unwrap_or_default();
    let line =
        text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
    line.map_or("unknown".into(), |(_, value)| value.trim().to_owned())
}

pub fn read(path: &str) -> String {
    read_to_string(path).unwrap_or_default().trim().to_owned()
}

pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or("unknown".into(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}
