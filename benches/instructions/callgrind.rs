//! Requests to callgrind from within the program that it runs.

use std::path::{Path, PathBuf};

/// The environment variable with the file that callgrind writes to.
pub const OUT: &str = "TOLLBAR_CALLGRIND_OUT";

// The numbers of valgrind.h and callgrind.h, which promise that they stay.
const RUNNING_ON_VALGRIND: u64 = 0x1001;
const DUMP_STATS: u64 = 0x4354_0000;
const ZERO_STATS: u64 = DUMP_STATS + 1;

/// Whether the program runs under callgrind.
pub fn runs() -> bool {
    request(RUNNING_ON_VALGRIND) != 0
}

/// The instructions of `work`, and a few that the counting itself takes.
pub fn counted(work: impl FnOnce()) -> u64 {
    let out = PathBuf::from(std::env::var_os(OUT).expect("started by this program"));
    request(ZERO_STATS);
    work();
    request(DUMP_STATS);
    let newest =
        dumps(&out).max_by_key(|(number, _)| *number).expect("callgrind has written its counts").1;
    let text = std::fs::read_to_string(&newest).expect("readable");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")));
    line.and_then(|count| count.trim().parse().ok()).expect("a total")
}

/// Removes callgrind's files.
pub fn clean(out: &Path) {
    for (_, file) in dumps(out) {
        let _ = std::fs::remove_file(file);
    }
    let _ = std::fs::remove_file(out);
}

/// The numbered files beside `out`.
fn dumps(out: &Path) -> impl Iterator<Item = (u64, PathBuf)> {
    let name = out.file_name().expect("a file").to_string_lossy().into_owned() + ".";
    let files = std::fs::read_dir(out.parent().expect("in a directory")).expect("readable");
    files.filter_map(move |entry| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_string_lossy().strip_prefix(&name)?.parse().ok()?;
        Some((number, entry.path()))
    })
}

/// Makes a request to valgrind, by instructions that do nothing on a processor. Returns the answer,
/// 0 on a processor.
#[cfg(target_arch = "x86_64")]
fn request(what: u64) -> u64 {
    let arguments = [what, 0, 0, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: four rotations by 128 bits in all, and an exchange of a register with itself: nothing
    // is changed but the flags, and under valgrind `answer`, to which it writes, as it reads
    // `arguments`.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") &arguments,
            inout("rdx") answer,
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_what: u64) -> u64 {
    0
}
