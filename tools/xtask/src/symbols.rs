//! The symbols that a shared library exports, as `abi/tollbar.symbols` and
//! `abi/tollbar-redis.symbols` promise them.

use std::path::Path;
use std::process::Command;

pub fn run(root: &Path, library: &Path, check: bool) -> Result<String, String> {
    let out = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library)
        .output()
        .map_err(|e| format!("nm: {e}"))?;
    if !out.status.success() {
        return Err(format!("nm: {}", String::from_utf8_lossy(&out.stderr)));
    }
    let mut names: Vec<String> = String::from_utf8_lossy(&out.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    names.sort();
    if let Some(stranger) = names.iter().find(|name| !name.starts_with("tollbar_")) {
        return Err(format!("{} exports {stranger}", library.display()));
    }
    let text = names.join("\n") + "\n";
    let name = library
        .file_stem()
        .and_then(|stem| stem.to_str())
        .and_then(|stem| stem.strip_prefix("lib"));
    let name = name.ok_or_else(|| format!("{}: not a lib*.so", library.display()))?;
    crate::settle(&root.join(format!("abi/{name}.symbols")), &text, check)?;
    Ok(format!("{} symbols, all tollbar_", names.len()))
}
