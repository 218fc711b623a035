//! No files in a circle: if a file uses an item of another, that one uses none of the first, also
//! not through others. A file uses another if its code names an item that the other defines. A file
//! that only declares modules and passes on their names (`pub use`) uses nothing, and neither does
//! a call of a method, which names no file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::layers::root;
use super::modules::{modules, read, Modules, Name};

/// The file with the item that `path` names in the module `from`, if the crate has it.
fn file_of<'m>(
    modules: &'m Modules,
    from: &[String],
    path: &[String],
    steps: usize,
) -> Option<&'m Path> {
    match resolve(modules, from, path, steps)? {
        Found::Item(file) => Some(file),
        Found::Module(_) => None,
    }
}

enum Found<'m> {
    Item(&'m Path),
    Module(Vec<String>),
}

/// What `path` names in the module `from`. `steps` bounds the search: names may be passed on in a
/// ring.
fn resolve<'m>(
    modules: &'m Modules,
    from: &[String],
    path: &[String],
    steps: usize,
) -> Option<Found<'m>> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (from.to_vec(), &path[1..]),
        "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
        _ => (from.to_vec(), path),
    };
    while let Some((name, later)) = rest.split_first() {
        rest = later;
        if name == "super" {
            at.pop()?;
            continue;
        }
        match name_in(modules, &at, name, steps)? {
            Found::Item(file) => return Some(Found::Item(file)),
            Found::Module(below) => at = below,
        }
    }
    Some(Found::Module(at))
}

/// What `name` stands for in the module `at`.
fn name_in<'m>(modules: &'m Modules, at: &[String], name: &str, steps: usize) -> Option<Found<'m>> {
    let steps = steps.checked_sub(1)?;
    let module = modules.get(at)?;
    match module.names.get(name) {
        Some(Name::Item(_)) => Some(Found::Item(&module.file)),
        Some(Name::Module) => {
            Some(Found::Module(at.iter().cloned().chain([name.to_owned()]).collect()))
        }
        // `use super::name` in a file whose own name is the same would look itself up.
        Some(Name::Use(path)) => resolve(modules, at, path, steps),
        None => module.globs.iter().find_map(|glob| match resolve(modules, at, glob, steps)? {
            Found::Module(of) => name_in(modules, &of, name, steps),
            Found::Item(_) => None,
        }),
    }
}

/// The files that each file uses, and for each the names by which it does.
type Uses = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

fn uses(modules: &Modules) -> Uses {
    let mut uses = Uses::new();
    for (of, module) in modules {
        for path in &module.paths {
            let Some(used) = file_of(modules, of, path, 20) else { continue };
            if used != module.file {
                let names = uses
                    .entry(module.file.clone())
                    .or_default()
                    .entry(used.to_owned())
                    .or_default();
                names.insert(path.last().expect("a name").clone());
            }
        }
    }
    uses
}

/// The files that `file` uses, directly and through others.
fn reached(uses: &Uses, file: &Path) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::new();
    let mut next = vec![file.to_owned()];
    while let Some(file) = next.pop() {
        for used in uses.get(&file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    reached
}

/// The circles of a crate's files, of which each uses the others, directly or through them: a line
/// for each use between them. `source` is the folder of the crate's sources.
fn circles(modules: &Modules, source: &Path) -> Vec<Vec<String>> {
    let uses = uses(modules);
    let reached: BTreeMap<&PathBuf, BTreeSet<PathBuf>> =
        uses.keys().map(|file| (file, reached(&uses, file))).collect();
    let short = |file: &Path| file.strip_prefix(source).unwrap_or(file).display().to_string();
    let mut circles: BTreeMap<Vec<PathBuf>, Vec<String>> = BTreeMap::new();
    for (file, after) in &reached {
        let is_back =
            |other: &&PathBuf| reached.get(other).is_some_and(|back| back.contains(*file));
        let files: Vec<PathBuf> = after.iter().filter(is_back).cloned().collect();
        if files.is_empty() || circles.contains_key(&files) {
            continue;
        }
        let mut lines = Vec::new();
        for from in &files {
            for (to, names) in uses[from].iter().filter(|(to, _)| files.contains(to)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("  {} uses {} of {}", short(from), names.join(", "), short(to)));
            }
        }
        circles.insert(files, lines);
    }
    circles.into_values().collect()
}

#[test]
fn files_use_each_other_in_one_direction() {
    let mut found = Vec::new();
    let mut seen = 0;
    let crates =
        fs::read_dir(root("")).expect("the crates").map(|entry| entry.expect("an entry").path());
    for folder in crates.chain([root("tollbar")]) {
        let source = folder.join("src");
        let modules = modules(&source);
        seen += uses(&modules).values().map(BTreeMap::len).sum::<usize>();
        found.extend(
            circles(&modules, &source)
                .into_iter()
                .map(|lines| format!("{}:\n{}", source.display(), lines.join("\n"))),
        );
    }
    assert!(seen > 600, "the search finds only {seen} uses");
    assert!(found.is_empty(), "{} circles of files:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_search_sees_a_circle() {
    let file = |name: &str| PathBuf::from(name);
    let path = |name: &str| vec![name.to_owned()];
    let circles_of = |b: &str| {
        let mut modules = Modules::new();
        read("pub mod a; pub mod b; pub use b::Key;", &file("lib.rs"), Vec::new(), &mut modules);
        let a = "use super::Key; pub struct Slot<'a>(&'a Key); // b::none";
        read(a, &file("a.rs"), path("a"), &mut modules);
        read(b, &file("b.rs"), path("b"), &mut modules);
        circles(&modules, Path::new("")).concat()
    };
    let uses = ["  a.rs uses Key of b.rs", "  b.rs uses Slot of a.rs"];
    assert_eq!(circles_of("pub struct Key; fn of(slot: &crate::a::Slot<'_>) {}"), uses);
    assert_eq!(circles_of("pub struct Key; fn of() { use super::a::{self, Slot}; }"), uses);
    assert_eq!(
        circles_of("use super::a::*; pub struct Key; impl Key { fn of(self) -> Slot { 's' } }"),
        uses
    );
    assert!(circles_of("pub struct Key; #[cfg(test)] mod tests { use crate::a::Slot; }").is_empty());
    assert!(circles_of("/// [`crate::a::Slot`]\npub struct Key; fn of() { \"crate::a::Slot\"; }")
        .is_empty());
}
