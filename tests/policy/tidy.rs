//! The sources read alike: comments end at 100 columns, as rustfmt's code does, a function fits one
//! screen, a crate has one type of a name, and something uses each public item.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::layers::{root, sources};
use super::modules::{modules, Name, TYPES};

/// Columns of a comment.
const WIDTH: usize = 100;
/// Lines of a function.
const LENGTH: usize = 80;
/// Functions that are one `match` or one list, with an arm or a row for each name.
const LISTS: [&str; 5] = ["lookup", "sentences", "directives", "policy", "print"];

fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["src", "tests", "crates"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    assert!(files.len() > 300, "the search finds only {} files", files.len());
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a source");
    files.iter().map(|path| (path.display().to_string(), text(path))).collect()
}

/// The words of a text that could be names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The name that a line makes public, in the crate or in a part of it.
fn made_public(line: &str) -> Option<&str> {
    let mut words = words(line.trim_start().strip_prefix("pub")?);
    let kinds = ["fn", "static", "struct", "enum", "trait", "type"];
    let mut last = "";
    let name = words.find(|word| {
        let is_kind = kinds.contains(&last) || last == "const" && !["fn", "unsafe"].contains(word);
        last = word;
        is_kind
    });
    // The headers name the functions that C calls, so they have a use.
    name.filter(|name| !name.to_lowercase().starts_with("tollbar_"))
}

/// The text of a comment, without the slashes.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["//!", "///", "//"].iter().find_map(|mark| line.strip_prefix(mark))
}

/// A row of a table or a drawing keeps its columns, and a text without a blank cannot be cut.
fn is_drawn(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['|', '`']) || text.contains("  ") || text.contains('─') || text.contains('│')
}

#[test]
fn comments_fit_the_line() {
    let mut faults = Vec::new();
    let mut comments = 0;
    for (file, text) in files() {
        // Programs and drawings within comments keep their lines.
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            let Some(text) = comment(line) else {
                fenced = false;
                continue;
            };
            fenced ^= text.trim_start().starts_with("```");
            comments += 1;
            if line.chars().count() > WIDTH && !fenced && !is_drawn(text) {
                faults.push(format!(
                    "{file}:{}: {} columns, at most {WIDTH}",
                    number + 1,
                    line.chars().count()
                ));
            }
        }
    }
    assert!(comments > 10_000, "{comments} lines of comments");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn functions_fit_one_screen() {
    let mut faults = Vec::new();
    let mut functions = 0;
    for (file, text) in files() {
        if !file.contains("/src/") || file.ends_with("tests.rs") {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let Some((before, name)) = line.split_once("fn ") else { continue };
            let indent = &line[..line.len() - line.trim_start().len()];
            let words = ["pub", "const", "unsafe", "extern", "async", "default"];
            let is_item = before
                .split_whitespace()
                .all(|word| words.iter().any(|start| word.starts_with(start)) || word == "\"C\"");
            let name: String =
                name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !is_item || comment(line).is_some() || name.is_empty() || line.ends_with([';', '}'])
            {
                continue;
            }
            functions += 1;
            let end = format!("{indent}}}");
            let length =
                lines[at..].iter().position(|line| *line == end).map_or(0, |lines| lines + 1);
            if length > LENGTH && !LISTS.contains(&name.as_str()) {
                faults.push(format!(
                    "{file}:{}: {name} has {length} lines, at most {LENGTH}",
                    at + 1
                ));
            }
        }
    }
    assert!(functions > 2_000, "{functions} functions");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A public item that nothing uses: no code, no test, no bench and no comment names it.
#[test]
fn no_public_item_is_dead() {
    let mut all = files();
    for folder in ["benches", "examples", "tools/xtask/src"] {
        let mut more = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut more);
        let text = |path: &PathBuf| fs::read_to_string(path).expect("a source");
        all.extend(more.iter().map(|path| (path.display().to_string(), text(path))));
    }
    let mut named: HashMap<&str, usize> = HashMap::new();
    all.iter().flat_map(|(_, text)| words(text)).for_each(|w| *named.entry(w).or_default() += 1);
    let mut made: HashMap<&str, (usize, &str)> = HashMap::new();
    for (file, text) in all.iter().filter(|(file, _)| file.contains("/src/")) {
        for name in text.lines().filter_map(made_public) {
            made.entry(name).or_insert((0, file)).0 += 1;
        }
    }
    let dead = made.iter().filter(|(name, (made, _))| named[*name] == *made);
    let dead: Vec<String> = dead.map(|(name, (_, file))| format!("{file}: {name}")).collect();
    assert!(made.len() > 1_500, "the search finds only {} public names", made.len());
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert_eq!(made_public("    pub(crate) const fn is_even(self) -> bool {"), Some("is_even"));
    assert_eq!(made_public("pub const MOST: u64 = 3;"), Some("MOST"));
    assert_eq!(made_public("pub use fast::Fast;"), None);
}

/// Names that callers of the core know by their modules, as `queue::Ticket`, and how many types
/// have each.
const BY_MODULE: [(&str, usize); 11] = [
    ("Algorithm", 3),
    ("Answer", 2),
    ("Entry", 2),
    ("Limit", 2),
    ("Options", 3),
    ("Rate", 2),
    ("Refusal", 2),
    ("Refused", 2),
    ("Source", 2),
    ("Ticket", 3),
    ("Words", 2),
];

#[test]
fn a_crate_has_one_type_of_a_name() {
    let mut faults = Vec::new();
    let mut types = 0;
    let crates =
        fs::read_dir(root("")).expect("the crates").map(|entry| entry.expect("an entry").path());
    for folder in crates.chain([root("tollbar")]) {
        let source = folder.join("src");
        let is_core = folder == root("tollbar");
        let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for module in modules(&source).values() {
            for (name, of) in &module.names {
                if matches!(of, Name::Item(word) if TYPES.contains(&word.as_str())) {
                    let file = module
                        .file
                        .strip_prefix(&source)
                        .expect("a file of the crate")
                        .display()
                        .to_string();
                    files.entry(name.clone()).or_default().insert(file);
                }
            }
        }
        types += files.len();
        for (name, files) in files {
            let mut shared = BY_MODULE.iter().filter(|_| is_core);
            let expected =
                shared.find(|(shared, _)| *shared == name).map_or(1, |(_, types)| *types);
            if files.len() != expected {
                let files: Vec<String> = files.into_iter().collect();
                faults.push(format!(
                    "{}: {name} in {}, expected {expected}",
                    source.display(),
                    files.join(", ")
                ));
            }
        }
    }
    assert!(types > 600, "the search finds only {types} types");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
