//! The table of docs/features.md that says which test shows each row in each language, from
//! `features.txt` and the tests.

use std::fmt::Write as _;
use std::path::PathBuf;

const ROWS: &str = include_str!("features.txt");

/// How many rows there are of each letter.
const LETTERS: [(char, usize); 3] = [('S', 54), ('M', 18), ('R', 6)];

struct Language {
    name: &'static str,
    /// The folders with its tests.
    folders: &'static [&'static str],
    /// How the name of a file with tests ends.
    ending: &'static str,
    /// What stands before and after the name of a test where it is defined.
    definition: (&'static str, &'static str),
}

const LANGUAGES: [Language; 7] = [
    Language {
        name: "Rust",
        folders: &["tests", "src", "crates"],
        ending: ".rs",
        definition: ("fn ", "("),
    },
    Language {
        name: "C",
        folders: &["ffi-tests/c"],
        ending: ".c",
        definition: ("static void ", "(void **"),
    },
    Language {
        name: "C++",
        folders: &["ffi-tests/cpp"],
        ending: ".cpp",
        definition: ("TEST(", ")"),
    },
    Language {
        name: "Python",
        folders: &["bindings/python/tests"],
        ending: ".py",
        definition: ("def test_", "("),
    },
    Language {
        name: "Go",
        folders: &["bindings/go"],
        ending: "_test.go",
        definition: ("func Test", "("),
    },
    Language {
        name: "LuaJIT",
        folders: &["bindings/lua/tests"],
        ending: ".lua",
        definition: ("test(\"", "\""),
    },
    Language {
        name: "nginx",
        folders: &["nginx/tests"],
        ending: ".py",
        definition: ("def test_", "("),
    },
];

/// A file with tests: its path from the root of the tree, and its text.
type Test = (PathBuf, String);

/// Checks that each field of `features.txt` has a test or a reason.
pub fn check() -> Result<(), String> {
    table().map(drop)
}

/// The rows in sections, and below them why a language lacks a row.
pub fn matrix() -> String {
    table().unwrap_or_default()
}

fn table() -> Result<String, String> {
    let tests = LANGUAGES
        .iter()
        .map(tests_of)
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| format!("tests: {e}"))?;
    let mut lines = ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    let (mut out, mut rows, mut reasons) = (String::new(), Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        if let Some(reason) = line.strip_prefix('-') {
            reasons.push(reason.split_once(' ').ok_or("features.txt: a reason without a text")?);
        } else if let Some(section) = line.strip_prefix("## ") {
            let names = LANGUAGES.map(|of| of.name).join(" | ");
            let rule = "---|".repeat(LANGUAGES.len());
            let _ = write!(out, "\n## {section}\n\n| | | {names} | also |\n|---|---|{rule}---|\n");
        } else {
            let (id, what) = line.split_once(' ').ok_or("features.txt: a row without a text")?;
            let fields = lines.next().unwrap_or_default().split(" | ");
            let _ = write!(out, "| {id} | {what} |");
            row(&mut out, &fields.collect::<Vec<_>>(), &reasons, &tests)
                .map_err(|why| format!("features.txt: {id}: {why}"))?;
            rows.push(id);
        }
    }
    let all: Vec<String> = LETTERS
        .iter()
        .flat_map(|&(letter, most)| (1..=most).map(move |n| rows_name(letter, n)))
        .collect();
    if rows != all {
        let other = rows.iter().zip(&all).find(|(found, expected)| found != expected);
        return Err(format!(
            "features.txt: {} rows, of which {other:?} is out of order",
            rows.len()
        ));
    }
    out.push_str("\n## Why not\n\n");
    for (number, (_, reason)) in reasons.iter().enumerate() {
        let _ = writeln!(out, "{}. {reason}.", number + 1);
    }
    Ok(out)
}

/// The name of a row: S01, M1.
fn rows_name(letter: char, number: usize) -> String {
    match letter {
        'S' => format!("S{number:02}"),
        _ => format!("{letter}{number}"),
    }
}

/// Writes the fields of a row.
fn row(
    out: &mut String,
    fields: &[&str],
    reasons: &[(&str, &str)],
    tests: &[Vec<Test>],
) -> Result<(), String> {
    if !(LANGUAGES.len()..=LANGUAGES.len() + 1).contains(&fields.len()) {
        return Err(format!("{} fields, expected {}", fields.len(), LANGUAGES.len()));
    }
    for ((field, language), tests) in fields.iter().zip(&LANGUAGES).zip(tests) {
        if let Some(key) = field.strip_prefix('-') {
            let number = reasons.iter().position(|(other, _)| *other == key);
            let number = number.ok_or_else(|| format!("no reason is named {key:?}"))?;
            let _ = write!(out, " [no](#why-not) ({}) |", number + 1);
            continue;
        }
        let _ = write!(out, " [yes](../{}) |", place(field, language, tests)?.display());
    }
    for other in fields.get(LANGUAGES.len()).unwrap_or(&"").split_whitespace() {
        let (name, path) = other.split_once('=').ok_or_else(|| format!("{other}: no NAME=FILE"))?;
        let _ = write!(out, " [{name}](../{})", existing(path)?.display());
    }
    out.push_str(" |\n");
    Ok(())
}

/// The file of a field, which is a path or the name of one test.
fn place(field: &str, language: &Language, tests: &[Test]) -> Result<PathBuf, String> {
    let (file, name) = field.split_once("::").unwrap_or(("", field));
    if file.is_empty() && crate::root().join(name).is_file() {
        return existing(name);
    }
    let (before, after) = language.definition;
    let definition = format!("{before}{name}{after}");
    let found: Vec<&PathBuf> = tests
        .iter()
        .filter(|(path, text)| path.ends_with(file) && text.contains(&definition))
        .map(|(path, _)| path)
        .collect();
    match found[..] {
        [one] => Ok(one.clone()),
        _ => Err(format!("{} tests of {} are {field:?}, expected one", found.len(), language.name)),
    }
}

/// A path from the root of the tree at which there is a file.
fn existing(path: &str) -> Result<PathBuf, String> {
    let there = crate::root().join(path).is_file();
    there.then(|| PathBuf::from(path)).ok_or_else(|| format!("{path}: no such file"))
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
