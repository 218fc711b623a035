//! The errors (crates/tollbar-c/src/status.rs) as each binding has them.
//!
//! In that file an error is a constant with its comment, and a line `// Errors of …` begins a
//! group.

use crate::algorithms::{uncapitalised, wrapped, PINNED};
use std::fmt::Write as _;

const STATUS: &str = include_str!("../../../crates/tollbar-c/src/status.rs");

/// The title of the group after whose errors errno has the system's reason.
const SYSTEM: &str = "Errors of the system";

/// Words of C in the comments, each with Go's words. Each must occur in a comment.
const GO_WORDS: [(&str, &str); 6] = [
    ("TOLLBAR_TABLE_TRUST_ANYONE takes it", "TableOptions.TrustAnyone takes it"),
    ("After one of these, errno has the system's reason", "They wrap the system's reason"),
    (" After this error and those down to TOLLBAR_E_SYNC, errno has the system's reason.", ""),
    ("or two slots hold one key", "or two slots hold one key: [Table.Repair]"),
    (
        "use a limiter, not a cell",
        "use a limiter, not a cell; a [cell.Cell] has token buckets only",
    ),
    ("`struct_size` is", "the size of a struct is"),
];

struct Group {
    /// The group's line, such as "Errors of policies".
    title: &'static str,
    errors: Vec<Error>,
}

struct Error {
    /// What follows `TOLLBAR_E_`.
    name: &'static str,
    number: i32,
    says: String,
}

/// Checks that the errors stand in every other place that lists them by hand: their file, and the
/// test that promises their numbers.
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
            return Err(format!(
                "ffi-tests/c/status_test.c: expected CODE(TOLLBAR_E_{name}, {number})"
            ));
        }
    }
    let (first, last) = system();
    let within = |error: &&Error| (last.number..=first.number).contains(&error.number);
    let others = groups.iter().filter(|group| !group.title.starts_with(SYSTEM));
    if let Some(error) = others.flat_map(|group| &group.errors).find(within) {
        return Err(format!(
            "status.rs: TOLLBAR_E_{} is among the numbers of \"{SYSTEM}\"",
            error.name
        ));
    }
    let says = |group: &Group, c: &str| {
        group.title.contains(c) || group.errors.iter().any(|e| e.says.contains(c))
    };
    match GO_WORDS.iter().find(|(c, _)| !groups.iter().any(|group| says(group, c))) {
        Some((c, _)) => {
            Err(format!("status.rs: no comment says {c:?}, for which Go has other words"))
        }
        None => Ok(()),
    }
}

/// The enumerators of `tollbar::errc`.
pub fn cpp() -> String {
    let enumerator =
        |error: &Error| format!("{} = TOLLBAR_E_{},\n", error.name.to_lowercase(), error.name);
    groups().iter().flat_map(|group| &group.errors).map(enumerator).collect()
}

/// The ranges of the groups for which Python has exceptions, and the error that is Python's own.
pub fn python() -> String {
    let mut out = String::new();
    for Group { title, errors } in groups() {
        let numbers = errors.iter().map(|error| error.number);
        let (Some(least), Some(most)) = (numbers.clone().min(), numbers.max()) else { continue };
        if let Some(of) = ["policies", "tables", "leases"].into_iter().find(|of| title.contains(of))
        {
            let _ = writeln!(out, "_{} = range({least}, {})", of.to_uppercase(), most + 1);
        }
        for error in errors.iter().filter(|error| error.name == "NO_MEMORY") {
            let _ = writeln!(out, "_NO_MEMORY = {}", error.number);
        }
    }
    out
}

/// The errors after which errno has the system's reason, as a range: its first and last.
pub fn cpp_system() -> String {
    let (first, last) = system();
    format!(
        "constexpr std::int32_t system_first = TOLLBAR_E_{}, system_last = TOLLBAR_E_{};\n",
        first.name, last.name
    )
}

/// [`cpp_system`] for Python's C extension.
pub fn c_system() -> String {
    let (first, last) = system();
    format!(
        "enum {{ SYSTEM_FIRST = TOLLBAR_E_{}, SYSTEM_LAST = TOLLBAR_E_{} }};\n",
        first.name, last.name
    )
}

/// [`cpp_system`] for Lua.
pub fn lua_system() -> String {
    let (first, last) = system();
    format!(
        "local SYSTEM_FIRST, SYSTEM_LAST = lib.TOLLBAR_E_{}, lib.TOLLBAR_E_{}\n",
        first.name, last.name
    )
}

fn go_system() -> String {
    let (first, last) = system();
    let (first, last) = (go_name(first.name), go_name(last.name));
    format!("\n// The errors that wrap the system's reason.\nconst systemFirst, systemLast = {first}, {last}\n")
}

fn system() -> (Error, Error) {
    let group = groups()
        .into_iter()
        .find(|group| group.title.starts_with(SYSTEM))
        .expect("status.rs has the group");
    let mut errors = group.errors;
    errors.sort_by_key(|error| -error.number);
    let last = errors.pop().expect("the group has errors");
    (errors.swap_remove(0), last)
}

pub fn go() -> String {
    let mut out = String::new();
    for Group { title, errors } in groups() {
        let title = GO_WORDS.iter().fold(title.to_owned(), |title, (c, go)| title.replace(c, go));
        let _ = write!(out, "\n{}const (\n", wrapped("// ", &title, 100));
        for Error { name, number, says } in &errors {
            let name = go_name(name);
            let says = GO_WORDS.iter().fold(says.clone(), |says, (c, go)| says.replace(c, go));
            out.push_str(&wrapped("\t// ", &format!("{name}: {}", uncapitalised(&says)), 96));
            let _ = writeln!(out, "\t{name} Code = {number}");
        }
        out.push_str(")\n");
    }
    out + &go_system() + "\n"
}

/// The texts of tollbar_strerror, for Go without cgo.
pub fn go_texts() -> String {
    let verdicts = [
        ("TOLLBAR_NEVER".to_owned(), 2),
        ("TOLLBAR_DENIED".to_owned(), 1),
        ("TOLLBAR_ALLOWED".to_owned(), 0),
    ];
    let errors = groups().into_iter().flat_map(|group| group.errors);
    let mut all: Vec<_> = errors
        .map(|error| (format!("TOLLBAR_E_{}", error.name), error.number))
        .chain(verdicts)
        .collect();
    all.sort_by_key(|(_, number)| -number);
    let mut out = String::new();
    for (name, number) in all {
        let text = text_of(&name).expect("status.rs has a text for each result");
        let _ = writeln!(out, "{:<6}\"{text}\",", format!("{number}:"));
    }
    out
}

/// The second string of the pair `c"NAME", c"TEXT"` in lookup.
fn text_of(name: &str) -> Option<&'static str> {
    let (_, rest) = STATUS.split_once(&format!("c\"{name}\","))?;
    let (_, rest) = rest.split_once("c\"")?;
    Some(rest.split_once('"')?.0)
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
    // Go's ErrClosed is of limiters, tables and leases after their Close.
    if name == "CLOSED" {
        return "ErrQueueClosed".to_owned();
    }
    let word = |word: &str| match word {
        "URL" | "ID" | "PID" => word.to_owned(),
        _ => word[..1].to_owned() + &word[1..].to_lowercase(),
    };
    "Err".to_owned() + &name.split('_').map(word).collect::<String>()
}
