//! The errors (crates/tollbar-c/src/status.rs) as each binding has them.
//!
//! In that file an error is a constant with its comment, and a line `// Errors of …` begins a group.

use crate::algorithms::{uncapitalised, wrapped, PINNED};
use std::fmt::Write as _;

const STATUS: &str = include_str!("../../../crates/tollbar-c/src/status.rs");

/// What Go has in place of what the comments say of C. Each is in a comment.
const GO_WORDS: [(&str, &str); 5] = [
    ("TOLLBAR_TABLE_TRUST_ANYONE takes it", "TableOptions.TrustAnyone takes it"),
    ("; errno says why, here and below", "; the error wraps the system's, here and below"),
    ("Slots of the table make no sense", "slots of the table make no sense: [Table.Repair]"),
    ("use a limiter, not a cell", "use a limiter, not a cell; a [cell.Cell] has token buckets only"),
    ("`struct_size` is", "the size of a struct is"),
];

struct Group {
    /// "Errors of policies", and what else the line says.
    title: &'static str,
    errors: Vec<Error>,
}

struct Error {
    /// What follows `TOLLBAR_E_`.
    name: &'static str,
    number: i32,
    says: String,
}

/// Whether each error is in the one other place of its file and in the test that promises its number.
pub fn check() -> Result<(), String> {
    let count = STATUS.matches("pub const TOLLBAR_E_").count();
    let groups = groups();
    let found: usize = groups.iter().map(|group| group.errors.len()).sum();
    if found != count {
        return Err(format!(
            "status.rs: {count} errors, of which {found} stand in a group with a comment and a number"
        ));
    }
    for Error { name, number, .. } in groups.iter().flat_map(|group| &group.errors) {
        if !STATUS.contains(&format!("        TOLLBAR_E_{name} => ")) {
            return Err(format!("status.rs: lookup has no text for TOLLBAR_E_{name}"));
        }
        if !PINNED.contains(&format!("CODE(TOLLBAR_E_{name}, {number}),")) {
            return Err(format!("tests/c/status_test.c: expected CODE(TOLLBAR_E_{name}, {number})"));
        }
    }
    match GO_WORDS.iter().find(|(c, _)| !groups.iter().flat_map(|group| &group.errors).any(|e| e.says.contains(c))) {
        Some((c, _)) => Err(format!("status.rs: no comment says {c:?}, for which Go has other words")),
        None => Ok(()),
    }
}

/// The enumerators of `tollbar::errc`.
pub fn cpp() -> String {
    let enumerator = |error: &Error| format!("{} = TOLLBAR_E_{},\n", error.name.to_lowercase(), error.name);
    groups().iter().flat_map(|group| &group.errors).map(enumerator).collect()
}

/// The ranges of the groups for which Python has exceptions, and the error that is Python's own.
pub fn python() -> String {
    let mut out = String::new();
    for Group { title, errors } in groups() {
        let numbers = errors.iter().map(|error| error.number);
        let (Some(least), Some(most)) = (numbers.clone().min(), numbers.max()) else { continue };
        if let Some(of) = ["policies", "tables", "leases"].into_iter().find(|of| title.contains(of)) {
            let _ = writeln!(out, "_{} = range({least}, {})", of.to_uppercase(), most + 1);
        }
        for error in errors.iter().filter(|error| error.name == "NO_MEMORY") {
            let _ = writeln!(out, "_NO_MEMORY = {}", error.number);
        }
    }
    out
}

pub fn go() -> String {
    let mut out = String::new();
    for Group { title, errors } in groups() {
        let _ = write!(out, "\n{}const (\n", wrapped("// ", title, 120));
        for Error { name, number, says } in &errors {
            let name = go_name(name);
            let says = GO_WORDS.iter().fold(says.clone(), |says, (c, go)| says.replace(c, go));
            out.push_str(&wrapped("\t// ", &format!("{name}: {}", uncapitalised(&says)), 116));
            let _ = writeln!(out, "\t{name} Code = {number}");
        }
        out.push_str(")\n");
    }
    out + "\n"
}

fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut says = String::new();
    for line in STATUS.lines() {
        if let Some(words) = line.strip_prefix("/// ") {
            says = format!("{says} {words}").trim().to_owned();
            continue;
        }
        if line.starts_with("// Errors ") {
            groups.push(Group { title: &line["// ".len()..], errors: Vec::new() });
        } else if let (Some(error), Some(group)) = (constant(line), groups.last_mut()) {
            if let (name, Ok(number), false) = (error.0, error.1.parse(), says.is_empty()) {
                group.errors.push(Error { name, number, says: says.clone() });
            }
        }
        says.clear();
    }
    groups
}

/// The name and number of a line `pub const TOLLBAR_E_NAME: i32 = NUMBER;`.
fn constant(line: &'static str) -> Option<(&'static str, &'static str)> {
    line.strip_prefix("pub const TOLLBAR_E_")?.strip_suffix(';')?.split_once(": i32 = ")
}

/// `ErrNotATable`; abbreviations are in capitals, as Go has them.
fn go_name(name: &str) -> String {
    let word = |word: &str| match word {
        "URL" | "ID" => word.to_owned(),
        _ => word[..1].to_owned() + &word[1..].to_lowercase(),
    };
    "Err".to_owned() + &name.split('_').map(word).collect::<String>()
}
