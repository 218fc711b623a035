//! `cargo xtask lists`: writes the lists in bindings and documents that come from a table in the
//! sources.
//!
//! A list stands between two lines, the first of which has `[lists: NAME]` and the second
//! `[lists: end]`, each within whatever that file has for a comment. The command writes the lines
//! between them.

use crate::{algorithms, errors, features};
use std::fmt::Write as _;
use std::path::Path;

/// A list's name, and its text.
pub type List = (&'static str, fn() -> String);
/// A file, and the lists in it.
type File = (&'static str, &'static [List]);

const FILES: [File; 14] = [
    ("README.md", &[("algorithms", algorithms::readme)]),
    ("include/tollbar/policy.hpp", &[("algorithms", algorithms::cpp)]),
    (
        "include/tollbar/error.hpp",
        &[("errors", errors::cpp), ("system errors", errors::cpp_system)],
    ),
    ("bindings/lua/tollbar/core.lua", &[("system errors", errors::lua_system)]),
    (
        "bindings/python/csrc/errors.c",
        &[("system errors", errors::c_system), ("booking", algorithms::python_booking)],
    ),
    ("bindings/python/src/tollbar/_errors.py", &[("errors", errors::python)]),
    ("bindings/go/errors.go", &[("errors", errors::go)]),
    ("bindings/go/internal/core/codes.go", &[("error texts", errors::go_texts)]),
    ("bindings/go/internal/core/kinds.go", &[("algorithms", algorithms::go_core)]),
    ("bindings/python/src/tollbar/policy.py", &[("algorithms", algorithms::python)]),
    ("bindings/go/policy.go", &[("algorithms", algorithms::go)]),
    ("docs/algorithms.md", &[("algorithms", algorithms::comparison)]),
    ("docs/features.md", &[("features", features::matrix)]),
    ("src/policy/text.rs", &[("options", algorithms::options)]),
];

pub fn run(root: &Path, check: bool) -> Result<String, String> {
    errors::check()?;
    algorithms::check()?;
    features::check()?;
    let mut said = Vec::new();
    for (path, lists) in FILES {
        let text = std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
        crate::settle(&root.join(path), &written(path, &text, lists)?, check)?;
        said.push(format!(
            "{path}: {}",
            lists.iter().map(|list| list.0).collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(said.join("\n"))
}

/// The text with its lists written anew.
fn written(path: &str, text: &str, lists: &[List]) -> Result<String, String> {
    let mut out = String::new();
    let mut left = lists.to_vec();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(out, "{line}");
        let Some(name) = line.split("[lists: ").nth(1).and_then(|rest| rest.split(']').next())
        else {
            continue;
        };
        let place = left.iter().position(|list| list.0 == name);
        let (_, list) =
            left.remove(place.ok_or_else(|| format!("{path}: no list is named {name:?}"))?);
        let before = prefix(line);
        for item in list().lines() {
            let _ = writeln!(out, "{}", format!("{before}{item}").trim_end());
        }
        let end = lines.find(|line| line.contains("[lists: end]"));
        let _ = writeln!(
            out,
            "{}",
            end.ok_or_else(|| format!("{path}: the list {name:?} has no end"))?
        );
    }
    match left.first() {
        Some((name, _)) => Err(format!("{path}: no line has [lists: {name}]")),
        None => Ok(out),
    }
}

/// What stands before the comment, which the lines of the list have too: blanks, or Rust's `//! `
/// before a comment of Markdown.
fn prefix(line: &str) -> &str {
    match line.find("<!--") {
        Some(at) => &line[..at],
        None => &line[..line.len() - line.trim_start().len()],
    }
}
