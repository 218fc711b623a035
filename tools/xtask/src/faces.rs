//! The table of docs/algorithms.md that says what each language can do, from `faces.txt` and the
//! tests of each language.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const ROWS: &str = include_str!("faces.txt");

struct Language {
    name: &'static str,
    /// The folders with its tests.
    folders: &'static [&'static str],
    /// How the name of a file with tests ends.
    ending: &'static str,
}

const LANGUAGES: [Language; 7] = [
    Language { name: "Rust", folders: &["tests", "src", "crates"], ending: ".rs" },
    Language { name: "C", folders: &["ffi-tests/c", "ffi-tests/rules"], ending: ".c" },
    Language { name: "C++", folders: &["ffi-tests/cpp"], ending: ".cpp" },
    Language {
        name: "Python",
        folders: &["bindings/python/tests", "ffi-tests/rules"],
        ending: ".py",
    },
    Language { name: "Go", folders: &["bindings/go"], ending: "_test.go" },
    Language {
        name: "LuaJIT",
        folders: &["bindings/lua/tests", "ffi-tests/rules"],
        ending: ".lua",
    },
    Language { name: "nginx", folders: &["nginx/tests"], ending: ".py" },
];

/// A file with tests: its path from the root of the tree, and its text.
type Test = (PathBuf, String);

/// Checks that each field of `faces.txt` has a test or a reason.
pub fn check() -> Result<(), String> {
    table().map(drop)
}

/// The table, and below it why a language lacks a row.
pub fn matrix() -> String {
    table().unwrap_or_default()
}

fn table() -> Result<String, String> {
    let tests = LANGUAGES
        .iter()
        .map(tests_of)
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| format!("tests: {e}"))?;
    let mut out = format!("| you can | {} |\n", LANGUAGES.map(|of| of.name).join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(LANGUAGES.len()));
    let mut reasons = Vec::new();
    let mut lines = ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let (Some(head), Some(fields)) = (lines.next(), lines.next()) {
        let fields: Vec<&str> = fields.split(" | ").map(str::trim).collect();
        let what = head.split_once("] ").map(|(_, what)| what);
        let (Some(what), true) = (what, fields.len() == LANGUAGES.len()) else {
            return Err(format!(
                "faces.txt: expected \"[S01] what\" and {} fields, found {head:?} and {}",
                LANGUAGES.len(),
                fields.len()
            ));
        };
        let _ = write!(out, "| {what} |");
        for ((field, language), tests) in fields.iter().zip(&LANGUAGES).zip(&tests) {
            if let Some(reason) = field.strip_prefix("- ") {
                let known = reasons.iter().position(|other| *other == reason);
                let number = known.unwrap_or(reasons.len());
                if known.is_none() {
                    reasons.push(reason);
                }
                let _ = write!(out, " no ({}) |", number + 1);
                continue;
            }
            let place = most(tests, field).ok_or_else(|| {
                format!("faces.txt: {what:?}: no test of {} has {field:?}", language.name)
            })?;
            let _ = write!(out, " [yes](../{}) |", place.display());
        }
        out.push('\n');
    }
    out.push('\n');
    for (number, reason) in reasons.iter().enumerate() {
        let _ = writeln!(out, "{}. {reason}.", number + 1);
    }
    Ok(out)
}

/// The file that has the text most often; of equal ones the first.
fn most<'a>(tests: &'a [Test], field: &str) -> Option<&'a Path> {
    let count = |test: &&Test| (test.1.matches(field).count(), std::cmp::Reverse(test.0.clone()));
    let test = tests.iter().max_by_key(count)?;
    test.1.contains(field).then_some(&test.0)
}

/// The tests of a language, without what a build or an installation has written beside them.
fn tests_of(language: &Language) -> std::io::Result<Vec<Test>> {
    let root = crate::root();
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = language.folders.iter().map(PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.file_type()?.is_dir() {
                let written = ["target", "build", "node_modules", "__pycache__"];
                if !name.starts_with('.') && !written.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if name.ends_with(language.ending) {
                found.push((path, std::fs::read_to_string(entry.path())?));
            }
        }
    }
    found.sort();
    Ok(found)
}
