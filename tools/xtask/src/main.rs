//! Tools of the tree: `cargo xtask header [--check]`, `cargo xtask lists [--check]`,
//! `cargo xtask cdef [--check]`, `cargo xtask symbols LIBRARY [--check]`,
//! `cargo xtask mutants LIST TREE`.

mod algorithms;
mod cdef;
mod errors;
mod features;
mod header;
mod lists;
mod mutants;
mod symbols;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["header"] => header::run(&root(), false),
        ["header", "--check"] => header::run(&root(), true),
        ["lists"] => lists::run(&root(), false),
        ["lists", "--check"] => lists::run(&root(), true),
        ["cdef"] => cdef::run(&root(), false),
        ["cdef", "--check"] => cdef::run(&root(), true),
        ["symbols", library] => symbols::run(&root(), Path::new(library), false),
        ["symbols", library, "--check"] => symbols::run(&root(), Path::new(library), true),
        ["mutants", list, tree] => mutants::run(Path::new(list), Path::new(tree)),
        _ => Err("usage: cargo xtask header [--check] | lists [--check] | cdef [--check] | \
                  symbols LIBRARY [--check] | mutants LIST TREE"
            .to_owned()),
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Writes `text` to `path`, or with `check` compares.
fn settle(path: &Path, text: &str, check: bool) -> Result<(), String> {
    if !check {
        return std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()));
    }
    let kept = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if kept == text {
        return Ok(());
    }
    let line = kept.lines().zip(text.lines()).take_while(|(a, b)| a == b).count() + 1;
    Err(format!("{} is not what would be written, from line {line} on", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("xtask lies in the tree")
        .to_owned()
}
