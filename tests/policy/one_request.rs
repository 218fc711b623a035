//! docs/internals/one-request.md: each function and type that the page names is in the file that it
//! names, and the usual case stays in a few files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The most files of the usual case.
const FILES_MOST: usize = 6;

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    let path = project().join("docs/internals/one-request.md");
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The text of a file of the page: below the table's folder, or below the project.
fn source(file: &str) -> Option<String> {
    let room = project().join("src/table").join(file);
    let path = if room.exists() { room } else { project().join(file) };
    fs::read_to_string(path).ok()
}

/// The code spans of a text, in their order.
fn spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn is_file(span: &str) -> bool {
    span.contains('/') && span.ends_with(".rs")
}

/// Whether a span is the name of a function or a type. Other spans are C calls with arguments, and
/// fields and arguments of the C call.
fn is_name(span: &str) -> bool {
    let fields = ["out", "now", "remaining", "retry_after", "reset_after"];
    span.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        && !fields.contains(&span)
}

/// Whether `text` defines the function or type `name`, whose last part counts: `Slot::swap` is
/// `fn swap`.
fn defines(text: &str, name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    ["fn", "struct", "enum", "trait"].iter().any(|kind| {
        let definition = format!("{kind} {last}");
        text.match_indices(&definition).any(|(at, _)| {
            !text[at + definition.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

/// The names of a part of the page with their files. Names stand before their file.
fn named(part: &str) -> Vec<(String, String)> {
    let mut waiting: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for span in spans(part) {
        if is_file(span) {
            found.extend(waiting.drain(..).map(|name| (name.to_owned(), span.to_owned())));
        } else if is_name(span) {
            waiting.push(span);
        }
    }
    // A name without a file after it belongs to a name above, which has its file there.
    found.extend(waiting.into_iter().map(|name| (name.to_owned(), String::new())));
    found
}

/// The parts of a page in which a name stands before its file: list items, a table's rows, and
/// paragraphs.
fn parts(page: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for block in page.replace("\n   ", " ").split("\n\n") {
        match block.starts_with(['|', '1']) {
            true => parts.extend(block.lines().map(str::to_owned)),
            false => parts.push(block.to_owned()),
        }
    }
    parts
}

/// The faults of a page: names that are not in their file, and files that do not exist.
fn faults(page: &str) -> Vec<String> {
    let files = spans(page).into_iter().filter(|span| is_file(span));
    let mut faults: Vec<String> = files
        .filter(|file| source(file).is_none())
        .map(|file| format!("{file}: no such file"))
        .collect();
    let mut pairs = Vec::new();
    for part in parts(page) {
        match part.strip_prefix("| `").and_then(|row| row.split_once('`')) {
            // A row of the rare cases begins with a function of `decide/fast.rs`. A row of the
            // helpers has the file next.
            Some((name, rest)) if !spans(rest).first().is_some_and(|next| is_file(next)) => {
                pairs.push((name.to_owned(), "decide/fast.rs".to_owned()));
                pairs.extend(named(rest));
            }
            _ => pairs.extend(named(&part)),
        }
    }
    assert!(pairs.len() > 20, "the search finds only {} names", pairs.len());
    for (name, file) in &pairs {
        if file.is_empty() {
            if !pairs.iter().any(|(other, file)| other == name && !file.is_empty()) {
                faults.push(format!("{name}: the page names no file after it"));
            }
        } else if source(file).is_some_and(|text| !defines(&text, name)) {
            faults.push(format!("{name} is not in {file}"));
        }
    }
    faults
}

#[test]
fn names_are_in_the_files_that_the_page_names() {
    let faults = faults(&page());
    assert!(faults.is_empty(), "docs/internals/one-request.md:\n{}", faults.join("\n"));
}

#[test]
fn the_usual_case_is_in_six_files() {
    let page = page();
    let (_, usual) = page.split_once("## The usual case").expect("a section");
    let (steps, _) = usual.split_once("### Helpers").expect("the helpers after the steps");
    let files: BTreeSet<&str> = spans(steps).into_iter().filter(|span| is_file(span)).collect();
    assert!(files.len() <= FILES_MOST && files.len() > 1, "{files:?}");
}

#[test]
fn the_search_sees_a_name_that_is_gone() {
    let page = page();
    let gone = page
        .replace("`Slot::commit`", "`Slot::step_once`")
        .replace("slots/placement.rs", "slots/map.rs");
    let faults = faults(&gone);
    assert!(
        faults.iter().any(|fault| fault == "Slot::step_once is not in memory/slot.rs"),
        "{faults:?}"
    );
    assert!(faults.iter().any(|fault| fault == "slots/map.rs: no such file"), "{faults:?}");
}
