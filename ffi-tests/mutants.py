#!/usr/bin/env python3
"""tools/mutants.py itself, on a program of five changes: it notices a wrong result, an endless loop
and a sleep, and names the change that no test notices. Ends with `N passed, N failed`."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

top = Path(__file__).resolve().parent.parent
specification = importlib.util.spec_from_file_location("mutants", top / "tools" / "mutants.py")
mutants = importlib.util.module_from_spec(specification)
specification.loader.exec_module(mutants)

# As `cargo xtask mutants` writes it.
PROGRAM = """#![feature(const_eval_select, core_intrinsics)] #![allow(internal_features)]
pub mod mutants { %s const COUNT: usize = 6; }
use mutants::is;
pub const fn sum(a: u32, b: u32) -> u32 {
    if is(1) { a - b } else if is(2) { a * b } else { a + b }
}
pub const LIMIT: u32 = sum(2, 3);
pub fn is_more(a: u32) -> bool { if is(3) { a >= 1 } else { a > 1 } }
pub fn count(mut n: u64) -> u64 {
    let mut k = 0;
    while n > 0 { k += 1; n = if is(4) { n } else { n - 1 } }
    k
}
pub fn sleep() { if is(5) { std::thread::sleep(std::time::Duration::from_secs(100)) } }
#[cfg(test)] mod algorithm {
    use super::*;
    #[test] fn adds() { assert_eq!((sum(5, 3), LIMIT), (8, 5)) }
    #[test] fn compares() { assert!(is_more(5)) }
    #[test] fn ends() { assert_eq!(count(3), 3) }
    #[test] fn wakes() { sleep() }
    #[test] fn fails_always() { assert_eq!(sum(1, 1), 3) }
}
"""
EXPECTED = {1: "lib algorithm::adds", 2: "lib algorithm::adds", 3: "", 4: "lib algorithm::ends", 5: "lib algorithm::wakes"}

with tempfile.TemporaryDirectory() as folder:
    source, program = Path(folder, "program.rs"), str(Path(folder, "program"))
    source.write_text(PROGRAM % mutants.CHOICE)
    subprocess.run(["rustc", "--edition", "2021", "--test", "-O", "--cap-lints", "allow", "-o", program, str(source)],
        env=dict(os.environ, RUSTC_BOOTSTRAP="1"), check=True)
    mutants.work, mutants.tree, mutants.ASLEEP, mutants.PRIORITY = Path(folder), Path(folder), 2, 0
    tests = mutants.measure({"lib": program}, 5)
    failed = 0
    for change, expected in EXPECTED.items():
        mine = [("lib", name.split(" ")[1], test["seconds"]) for name, test in tests.items() if test["passed"] and change in test["changes"]]
        found = mutants.attempt(change, mine, {"lib": program})
        if found != expected:
            failed += 1
            print(f"FAIL change {change}: {found!r} notices it; expected: {expected!r}")
    if tests["lib algorithm::fails_always"]["passed"]:
        failed += 1
        print("FAIL a test that fails without a change counts as passed")

print(f"{len(EXPECTED) + 1 - failed} passed, {failed} failed")
sys.exit(failed != 0)
