//! The direction of the crates and of their top modules: an earlier one in a list must not use a
//! later one. A use is a path that names another module (`crate::table`, `tollbar::table`), not a
//! word in a comment.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates, each of which may use those before it.
const CRATES: [&str; 4] = ["tollbar", "tollbar-redis", "tollbar-c", "tollbar-redis-c"];
/// tollbar-redis has no C, though it comes before tollbar-c.
const SEPARATE: [(&str, &str); 1] = [("tollbar-c", "tollbar-redis")];

/// The modules of a crate in their order. Modules in one place may use each other.
const TOLLBAR: &[&[&str]] = &[
    &["namespace", "search", "sync"],
    &["units", "writer"],
    &["decision", "address"],
    &["policy", "clock", "prefix", "route"],
    &["algorithm", "http"],
    &["pacing"],
    &["limiter"],
    &["table"],
    &["in_flight"],
    &["take_many", "queue", "meter", "metrics", "hierarchy"],
    &["internal"],
];
const TOLLBAR_REDIS: &[&[&str]] = &[&["redis"], &["lease", "store"]];
const TOLLBAR_C: &[&[&str]] = &[
    &["freestanding", "status", "version"],
    &["boundary"],
    &["clock", "decision", "policy", "prefix", "route"],
    &["table", "table_options"],
    &["check"],
    &["cell", "limiter", "queue"],
    &[
        "charge",
        "classes",
        "decide",
        "http",
        "adaptive",
        "hierarchy",
        "in_flight",
        "keyed",
        "meter",
        "metrics",
        "overrides",
        "pacing",
        "take_many",
        "receipts",
        "refusals",
        "reserve",
        "schedule",
        "survey",
        "transfer",
        "counts",
    ],
];
const TOLLBAR_REDIS_C: &[&[&str]] =
    &[&["version", "lease", "tls"], &["waiting", "client", "calls", "store"]];

/// The places at which a module uses a later one, or one that is not in the list.
fn against(modules: &[&[&str]], of: &str, uses: &[(PathBuf, String)]) -> Vec<String> {
    let place = |name: &str| modules.iter().position(|names| names.contains(&name));
    let own = place(of).unwrap_or_else(|| {
        panic!("the module {of} has no place in the order of tests/policy/layers.rs")
    });
    uses.iter()
        // A name that lib.rs re-exports is not a module.
        .filter(|(_, used)| used.starts_with(|c: char| c.is_lowercase()))
        .filter(|(_, used)| !place(used).is_some_and(|at| at <= own))
        .map(|(file, used)| format!("{}: {of} uses {used}", file.display()))
        .collect()
}

/// The modules named after `prefix` in the code of a line: `crate::table::Slot` gives `table`,
/// `crate::{clock, table::Slot}` gives both.
fn named(line: &str, prefix: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let word = |text: &str| {
            text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
        };
        match rest.strip_prefix('{') {
            None => names.push(word(rest)),
            Some(list) => {
                let mut depth = 0_i32;
                for part in list.split_inclusive([',', '{', '}']) {
                    if depth == 0 {
                        names.push(word(part));
                    }
                    depth += part.matches('{').count() as i32 - part.matches('}').count() as i32;
                    if depth < 0 {
                        break;
                    }
                }
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The folder of a crate: the core's is the project's own.
pub fn root(name: &str) -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    match name {
        "tollbar" => project.to_owned(),
        _ => project.join("crates").join(name),
    }
}

pub fn sources(of: &Path, into: &mut Vec<PathBuf>) {
    if of.is_file() {
        into.push(of.to_owned());
        return;
    }
    for entry in fs::read_dir(of).unwrap_or_else(|why| panic!("{}: {why}", of.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            sources(&path, into);
        }
    }
}

/// The paths after `prefix` in the files of `of`, each with its file.
fn uses(of: &[PathBuf], prefix: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    of.iter().for_each(|path| sources(path, &mut files));
    let mut found = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        for line in text.lines() {
            found.extend(named(line, prefix).into_iter().map(|name| (file.clone(), name)));
        }
    }
    found
}

/// A module's files: `NAME.rs`, and the files in the folder `NAME`.
fn files_of(source: &Path, module: &str) -> Vec<PathBuf> {
    [source.join(format!("{module}.rs")), source.join(module)]
        .into_iter()
        .filter(|path| path.exists())
        .collect()
}

#[test]
fn modules_know_only_what_is_before_them() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, modules) in CRATES.iter().zip([TOLLBAR, TOLLBAR_REDIS, TOLLBAR_C, TOLLBAR_REDIS_C]) {
        let source = root(name).join("src");
        for entry in fs::read_dir(&source).expect("the sources") {
            let path = entry.expect("an entry").path();
            let module =
                path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
            // The core's README lies beside its sources.
            if module == "lib" || path.extension().is_some_and(|extension| extension == "md") {
                continue;
            }
            let files = files_of(&source, &module);
            // `super` is the crate in a file at its top, and in its folder it is not.
            let top: Vec<PathBuf> = files.iter().filter(|path| path.is_file()).cloned().collect();
            let mut used = uses(&files, "crate::");
            if name.ends_with("-c") {
                used.extend(uses(&top, "super::"));
            }
            seen += used.len();
            wrong.extend(against(modules, &module, &used));
        }
    }
    assert!(seen > 100, "the search finds only {seen} paths");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_know_only_those_before_them() {
    for (at, name) in CRATES.iter().enumerate() {
        let manifest = fs::read_to_string(root(name).join("Cargo.toml")).expect("a manifest");
        let (_, dependencies) = manifest.split_once("[dependencies]").expect("dependencies");
        // The workspace's list in the core's file is of all packages.
        let own = dependencies.split("[workspace").next().unwrap_or_default();
        for line in own.lines() {
            let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let later =
                CRATES.iter().position(|other| *other == used).is_some_and(|place| place >= at);
            assert!(!later && !SEPARATE.contains(&(*name, used)), "{name} depends on {used}");
        }
    }
}

#[test]
fn the_search_sees_what_is_against_the_order() {
    assert_eq!(named("use crate::table::Slot;", "crate::"), ["table"]);
    assert_eq!(
        named("    crate::{clock, table::{Slot, Pair}, units}", "crate::"),
        ["clock", "table", "units"]
    );
    assert!(named("// crate::table", "crate::").is_empty());
    let wrong = against(TOLLBAR, "clock", &[(PathBuf::from("clock.rs"), "table".to_owned())]);
    assert_eq!(wrong, ["clock.rs: clock uses table"]);
    assert!(
        against(TOLLBAR, "table", &[(PathBuf::from("table.rs"), "clock".to_owned())]).is_empty()
    );
}

/// The folders of `src/table`, each of which may use those before it. Its `mod.rs` is the public
/// face and uses all.
const FOLDERS: [&str; 5] = ["memory", "slots", "policies", "decide", "admin"];

#[test]
fn folders_of_the_table_know_only_those_before_them() {
    let table = root("tollbar").join("src/table");
    let mut entries: Vec<String> = fs::read_dir(&table)
        .expect("folders")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    entries.sort();
    let mut expected: Vec<&str> = FOLDERS.into_iter().chain(["mod.rs"]).collect();
    expected.sort_unstable();
    assert_eq!(entries, expected);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (at, folder) in FOLDERS.iter().enumerate() {
        // `super` is the table in the folder's mod.rs, and nowhere else.
        let mut used = uses(&[table.join(folder)], "crate::table::");
        used.extend(uses(&[table.join(folder).join("mod.rs")], "super::"));
        seen += used.len();
        for (file, used) in used {
            let later =
                FOLDERS.iter().position(|other| *other == used).is_some_and(|place| place > at);
            // The public face re-exports names of any folder.
            let face = !FOLDERS.contains(&used.as_str()) && !is_test(&file, &used);
            if later || face {
                wrong.push(format!("{}: {folder} uses {used}", file.display()));
            }
        }
    }
    assert!(seen > 100, "the search finds only {seen} paths");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether only tests in `file`, and links in its comments, name `used`: they may name the public
/// face.
fn is_test(file: &Path, used: &str) -> bool {
    if file.ends_with("tests.rs") {
        return true;
    }
    let text = fs::read_to_string(file).expect("a source");
    let (code, _tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
    !code.lines().any(|line| named(line, "crate::table::").iter().any(|name| name == used))
}

/// The most lines of a source file: as many as a reader follows in one sitting.
const LINES_MOST: usize = 540;

#[test]
fn files_fit_in_one_sitting() {
    let mut files = Vec::new();
    sources(&root("tollbar").join("src"), &mut files);
    for entry in fs::read_dir(root("")).expect("the crates") {
        sources(&entry.expect("an entry").path().join("src"), &mut files);
    }
    let lines = |file: &PathBuf| fs::read_to_string(file).expect("a source").lines().count();
    let long: Vec<String> = files
        .iter()
        .map(|file| (file, lines(file)))
        .filter(|(_, lines)| *lines > LINES_MOST)
        .map(|(file, lines)| format!("{}: {lines} lines, at most {LINES_MOST}", file.display()))
        .collect();
    assert!(files.len() > 100, "the search finds only {} files", files.len());
    assert!(long.is_empty(), "{}", long.join("\n"));
}
