//! Names and comments use the field's words. These tests refuse private words that have a common
//! one: lookup, probe, insert, evict, outcome.

use std::fs;
use std::path::{Path, PathBuf};

/// Private words, each with what a name says instead. A name is refused if one of its parts is such
/// a word: `count_newcomer`, `AskApart`.
const WORDS: [(&str, &str); 12] = [
    ("told", "decision, reported, given"),
    ("untold", "unreported"),
    ("newcomer", "new_key"),
    ("newcomers", "new_keys"),
    ("look", "lookup, read, note, prepare"),
    ("looked", "prepared"),
    ("apart", "slow, out_of_line, separate"),
    ("elsewhere", "the place"),
    ("kin", "relation"),
    ("akin", "related"),
    ("sought", "key"),
    ("twelve", "candidates"),
];

/// Words and phrases of comments, each with what to write instead.
const PHRASES: [(&str, &str); 7] = [
    ("newcomer", "new key"),
    ("what is looked for", "the key"),
    ("who comes", "the caller"),
    ("whoever comes", "the caller"),
    ("of no bytes", "an empty key"),
    ("what is in line", "the inlined code"),
    ("what came of", "the outcome"),
];

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(of: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(of).unwrap_or_else(|why| panic!("{}: {why}", of.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// A line's code without its strings, and its comment.
fn split(line: &str) -> (String, &str) {
    let mut code = String::new();
    let mut in_string = false;
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '"' if previous != '\\' && previous != '\'' => in_string = !in_string,
            '/' if !in_string && line[at..].starts_with("//") => return (code, &line[at..]),
            _ if !in_string => code.push(c),
            _ => {}
        }
        previous = c;
    }
    (code, "")
}

/// The parts of all names in `code`, in small letters: `count_newcomer` and `CountNewcomer` give
/// `count` and `newcomer`.
fn parts(code: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for name in code.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut part = String::new();
        for c in name.chars() {
            if c.is_ascii_uppercase() && part.ends_with(|last: char| last.is_ascii_lowercase()) {
                parts.push(std::mem::take(&mut part).to_lowercase());
            }
            part.push(c);
        }
        parts.push(part.to_lowercase());
    }
    parts
}

/// The private words of a line.
fn found(line: &str) -> Vec<String> {
    let (code, comment) = split(line);
    let comment = comment.to_lowercase();
    let mut found: Vec<String> = Vec::new();
    for part in parts(&code) {
        found.extend(
            WORDS
                .iter()
                .filter(|(word, _)| *word == part)
                .map(|(word, by)| format!("{word}: say {by}")),
        );
    }
    found.extend(
        PHRASES
            .iter()
            .filter(|(word, _)| comment.contains(word))
            .map(|(word, by)| format!("{word}: say {by}")),
    );
    found
}

#[test]
fn names_and_comments_have_no_private_words() {
    let mut files = Vec::new();
    for folder in ["src", "tests", "crates", "tools", "benches"] {
        sources(&project().join(folder), &mut files);
    }
    assert!(files.len() > 300, "the search finds only {} files", files.len());
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("tests/policy/words.rs")) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        for (n, line) in (1..).zip(text.lines()) {
            wrong.extend(
                found(line).into_iter().map(|why| format!("{}:{n}: {why}", file.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_search_sees_private_words() {
    assert_eq!(found("let told = self.count_newcomer();").len(), 2);
    assert_eq!(found("struct AskApart; // a newcomer").len(), 2);
    assert!(found("let lookup = \"told\"; // two keys are told apart").is_empty());
}
