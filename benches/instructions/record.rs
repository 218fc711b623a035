//! `benches/instructions.txt`: the recorded counts.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The share by which a count may differ from the recorded one.
const TOLERANCE: f64 = 0.03;

const HEAD: &str = "\
# Instructions of a call, counted by callgrind, at the caller's time unless a clock is named. Keys have 8 bytes, and half
# of the table's slots are taken. Written by `tools/instructions.sh --record`, compared in `make test`.
# Counts depend on the compiler, too: the comparison fails under another rustc until counts are recorded with that one.
";

/// Writes the file anew.
pub fn write(counts: &[(&str, f64)]) {
    let mut text = format!("{HEAD}{}\n", compiler());
    for (name, count) in counts {
        text += &format!("{count:>7.1}  {name}\n");
    }
    std::fs::write(path(), &text).expect("writable");
    print!("{text}");
}

/// Prints the counts.
pub fn print(counts: &[(&str, f64)]) {
    println!("{:<48} {:>9}", "instructions of a call", "now");
    for (name, count) in counts {
        println!("{name:<48} {count:>9.1}");
    }
}

/// Prints both counts of each call. Fails if a call is dearer by more than the tolerance, or if
/// another rustc recorded the counts. The last line has the numbers of calls that passed and
/// failed.
pub fn compare(counts: &[(&str, f64)]) -> ExitCode {
    let text = std::fs::read_to_string(path())
        .expect("benches/instructions.txt; tools/instructions.sh --record");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let (then, now) = (lines.next().unwrap_or_default(), compiler());
    let mut recorded: Vec<(&str, f64)> = lines.filter_map(line).collect();
    println!("{:<48} {:>9} {:>9}", "instructions of a call", "recorded", "now");
    let mut failed = 0;
    for (name, count) in counts {
        let before =
            recorded.iter().position(|(known, _)| known == name).map(|at| recorded.remove(at).1);
        let verdict = verdict(before, *count);
        println!(
            "{name:<48} {:>9} {count:>9.1}  {verdict}",
            before.map_or("-".into(), |before| format!("{before:.1}"))
        );
        failed += usize::from(!verdict.is_empty() && verdict != CHEAPER);
    }
    for (name, _) in &recorded {
        println!("{name:<48} is not counted any more: tools/instructions.sh --record");
        failed += 1;
    }
    failed += ratios_above_limits(counts);
    let passed = counts.len() - failed.min(counts.len());
    if then != now {
        println!(
            "\nFAIL: recorded with {then}, counted with {now}. Counts of two compilers say nothing about the sources: \
             check the commit before under {now}, then run tools/instructions.sh --record there"
        );
        failed += 1;
    }
    println!("\n{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The calls that may cost only so many times another one: the call, the other one, and the limit.
const RATIOS: [(&str, &str, f64); 2] = [
    ("C tollbar_take_many_at, two known keys", "C tollbar_table_check_at, known key", 2.2),
    ("C tollbar_table_check_at, known key, two rates", "C tollbar_table_check_at, known key", 1.3),
];

/// Prints the ratios of [`RATIOS`], and returns how many are above their limits.
fn ratios_above_limits(counts: &[(&str, f64)]) -> usize {
    let count_of = |name: &str| {
        counts.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, count)| *count)
    };
    let mut above = 0;
    for (call, other, most) in RATIOS {
        let ratio = count_of(call) / count_of(other);
        // A call that is no longer counted has no ratio, and fails, too.
        let fits = ratio <= most;
        above += usize::from(!fits);
        println!(
            "{call}: {ratio:.2} x {other}, at most {most}{}",
            if fits { "" } else { "  DEARER" }
        );
    }
    above
}

/// Not a failure. But until the lower count is recorded, the gain could be lost again and no test
/// would notice.
const CHEAPER: &str = "cheaper: record it with tools/instructions.sh --record";

fn verdict(before: Option<f64>, now: f64) -> &'static str {
    match before {
        None => "NOT RECORDED: tools/instructions.sh --record",
        Some(before) if now > before * (1.0 + TOLERANCE) => "DEARER",
        Some(before) if now < before * (1.0 - TOLERANCE) => CHEAPER,
        Some(_) => "",
    }
}

fn line(line: &str) -> Option<(&str, f64)> {
    let (count, name) = line.trim().split_once("  ")?;
    Some((name, count.parse().ok()?))
}

/// The compiler's version: the counts depend on it as well as on the sources.
fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().expect("rustc").stdout;
    String::from_utf8_lossy(&said).trim().to_owned()
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt")
}
