//! That every row works; figures are for a quiet machine.

use std::process::Command;

#[test]
fn every_row_works() {
    for arguments in [&["--smoke"][..], &["--smoke", "--hashers"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_tollbar-peers")).args(arguments).output().expect("started");
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{arguments:?}: {said}");
        assert!(!String::from_utf8_lossy(&run.stdout).contains("MISSED"), "a smoke run judges nothing");
    }
}
