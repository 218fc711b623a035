//! `tools/instructions.sh`: the instructions of the hot calls, counted by callgrind and compared
//! with those in `benches/instructions.txt`. Counts do not depend on what else the machine does, so
//! they show a call that has become dearer even where times are too noisy.
//!
//! The program starts itself again under valgrind. `--compare` compares the counts with the file,
//! and `--record` writes the file anew. With neither, as in a plain `cargo bench`, it prints them:
//! of the C calls only if TOLLBAR_LIBRARY names the C library, and none where there is no valgrind.

mod c_calls;
mod callgrind;
#[path = "../common/credit.rs"]
mod credit;
#[path = "../common/library.rs"]
mod library;
mod record;
mod rust_calls;

use std::process::{Command, ExitCode};

/// One hot call.
pub struct Call {
    /// The call's name in the file.
    pub name: &'static str,
    /// Makes the call once, at a caller's time that grows from call to call.
    pub once: Box<dyn FnMut(u64)>,
    /// The requests that one call decides.
    pub requests: u64,
}

/// Calls that are counted together: enough to show a tenth of an instruction.
const CALLS: u64 = 256;
/// The number of counts, of which the least is taken. Now and then the time-stamp clock compares
/// itself with the system's clock, whenever the time for it has come, and that costs instructions
/// which are not the call's.
const TRIES: usize = 5;
/// The caller's first time, in nanoseconds.
pub const START: u64 = 1_000_000_000_000;
const STEP: u64 = 100;

fn main() -> ExitCode {
    if !cfg!(target_arch = "x86_64") {
        println!("not counted: the counts are of x86-64");
        return ExitCode::SUCCESS;
    }
    if !callgrind::runs() {
        return under_valgrind();
    }
    let mut calls = vec![Call { name: "nothing", once: Box::new(|_| ()), requests: 1 }];
    match std::env::var_os("TOLLBAR_LIBRARY") {
        Some(library) => calls.extend(c_calls::all(&library)),
        None if wants_all() => {
            panic!(
                "TOLLBAR_LIBRARY names no C library; tools/instructions.sh builds it and names it"
            )
        }
        None => {
            println!("not counted: C calls, since TOLLBAR_LIBRARY names no C library (tools/instructions.sh builds it)")
        }
    }
    calls.extend(rust_calls::all());
    let mut counts: Vec<_> = calls.iter_mut().map(|call| (call.name, count(call))).collect();
    // The instructions of the loop and of the call of the closure belong to no call.
    let (_, nothing) = counts.remove(0);
    for ((_, count), call) in counts.iter_mut().zip(&calls[1..]) {
        *count = (*count - nothing) / call.requests as f64;
    }
    if is_given("--record") {
        record::write(&counts);
        return ExitCode::SUCCESS;
    }
    if is_given("--compare") {
        return record::compare(&counts);
    }
    record::print(&counts);
    ExitCode::SUCCESS
}

fn is_given(name: &str) -> bool {
    std::env::args().any(|argument| argument == name)
}

/// Whether a call that is not counted is a failure.
fn wants_all() -> bool {
    is_given("--record") || is_given("--compare")
}

/// The instructions of one `once`.
fn count(call: &mut Call) -> f64 {
    let mut now = START;
    let mut some = |call: &mut Call| {
        for _ in 0..CALLS {
            now += STEP;
            (call.once)(now);
        }
    };
    some(call);
    let counts = (0..TRIES).map(|_| callgrind::counted(|| some(call)));
    counts.min().expect("tried") as f64 / CALLS as f64
}

fn under_valgrind() -> ExitCode {
    let here = std::env::current_exe().expect("the program's path");
    let out = std::env::temp_dir().join(format!("tollbar-instructions-{}", std::process::id()));
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(here)
        .args(std::env::args().skip(1))
        .env(callgrind::OUT, &out)
        // libc chooses its copies of memory, which some calls make, by the processor's extensions.
        // Without these extensions it chooses the same on every processor.
        .env(
            "GLIBC_TUNABLES",
            "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2",
        )
        .status();
    callgrind::clean(&out);
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) if !wants_all() => {
            println!("not counted: valgrind cannot be started: {error}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("valgrind cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
