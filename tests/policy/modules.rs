//! The modules of a crate as the tests of this folder read them: the items of each, its `use`s, and
//! the paths in its code. Tests, loom's models and links in comments are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::layers::sources;

/// Words before a name that they define in a module.
const DEFINES: [&str; 8] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static"];
/// Those of them that define a type or a trait.
pub const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type"];
/// Words that begin an item or a statement. Such an item ends with `;` or `}`. A field, a variant
/// or an argument with an attribute begins with no such word, and may end with `,`.
const BEGINS: [&str; 15] = [
    "pub", "use", "mod", "fn", "struct", "enum", "union", "trait", "type", "const", "static",
    "impl", "unsafe", "extern", "let",
];

/// What a name in a module stands for.
#[derive(Debug, Clone)]
pub enum Name {
    /// An item that the module defines, and the word that defines it.
    Item(String),
    /// A path, as the `use` in the module has it.
    Use(Vec<String>),
    /// A module below.
    Module,
}

#[derive(Debug, Default)]
pub struct Module {
    pub file: PathBuf,
    pub names: BTreeMap<String, Name>,
    /// Modules of which every name is here: `use PATH::*`.
    pub globs: Vec<Vec<String>>,
    /// The paths that the module's code names. Those that it only passes on (`pub use`) are not
    /// among them.
    pub paths: Vec<Vec<String>>,
}

/// The modules of a crate by their paths. The path of its root is empty.
pub type Modules = BTreeMap<Vec<String>, Module>;

/// Reads the crate whose sources are in the folder `source`.
pub fn modules(source: &Path) -> Modules {
    let mut files = Vec::new();
    sources(source, &mut files);
    let mut modules = Modules::new();
    for file in files.iter().filter(|file| !is_test(file)) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let below = file.strip_prefix(source).expect("a file of the crate").with_extension("");
        let mut path: Vec<String> =
            below.iter().map(|part| part.to_str().expect("a name").to_owned()).collect();
        if path.last().is_some_and(|last| last == "mod") || path == ["lib"] || path == ["main"] {
            path.pop();
        }
        read(&text, file, path, &mut modules);
    }
    modules
}

fn is_test(file: &Path) -> bool {
    let names: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let of_tests = |name: &str| {
        ["tests", "models", "model", "fake"].contains(&name) || name.ends_with("_tests")
    };
    let (last, folders) = names.split_last().expect("a name");
    let source = folders.iter().rposition(|name| *name == "src").map_or(0, |at| at + 1);
    folders[source..].iter().any(|name| of_tests(name)) || of_tests(last.trim_end_matches(".rs"))
}

/// Reads a file's text as the module at `path`, and the modules within it.
pub fn read(text: &str, file: &Path, path: Vec<String>, modules: &mut Modules) {
    let tokens = without_tests(&tokens(text));
    let at = |place: usize| tokens.get(place).map_or("", String::as_str);
    let empty = || Module { file: file.to_owned(), ..Module::default() };
    // The module that encloses a token, and the depth of braces at which its items are.
    let mut inside = vec![(path.clone(), 0)];
    modules.entry(path).or_insert_with(empty);
    let mut depth = 0;
    // The depth outside a macro's rules: a definition in them is one of the module.
    let mut rules = None;
    let mut place = 0;
    while place < tokens.len() {
        let (path, level) = inside.last().expect("a module").clone();
        let before = if place == 0 { "" } else { at(place - 1) };
        let module = modules.get_mut(&path).expect("a module");
        match at(place) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                rules = rules.filter(|outside| depth > *outside);
                if inside.len() > 1 && depth < level {
                    inside.pop();
                }
            }
            "use" => {
                let end = place
                    + tokens[place..]
                        .iter()
                        .position(|token| token == ";")
                        .expect("an end of `use`");
                let passes_on = before == "pub" || before == ")";
                read_use(&tokens[place + 1..end], passes_on, depth == level, module);
                place = end;
            }
            "macro_rules" => {
                module.names.insert(at(place + 2).to_owned(), Name::Item("macro_rules".to_owned()));
                rules = Some(depth);
                place += 2;
            }
            "mod" if depth == level => {
                module.names.insert(at(place + 1).to_owned(), Name::Module);
                if at(place + 2) == "{" {
                    let below: Vec<String> =
                        path.iter().cloned().chain([at(place + 1).to_owned()]).collect();
                    modules.entry(below.clone()).or_insert_with(empty);
                    inside.push((below, depth + 1));
                    depth += 1;
                    place += 1;
                }
                place += 1;
            }
            word if DEFINES.contains(&word) && (depth == level || rules.is_some()) => {
                let name = at(place + 1);
                // `<const N: usize>` and `*const T` define nothing.
                if is_word(name) && !DEFINES.contains(&name) && !["<", ",", "*"].contains(&before) {
                    module.names.insert(name.to_owned(), Name::Item(word.to_owned()));
                    place += 1;
                }
            }
            word if is_word(word) && before != "." && before != "fn" => {
                let mut path = vec![word.to_owned()];
                while at(place + 1) == "::" && is_word(at(place + 2)) {
                    path.push(at(place + 2).to_owned());
                    place += 2;
                }
                // `name: value` in a value of a struct is a field.
                if path.len() > 1 || at(place + 1) != ":" {
                    module.paths.push(path);
                }
            }
            _ => {}
        }
        place += 1;
    }
}

/// Adds the names of a `use`, whose tokens are `tree`. One in a function's body names nothing in
/// the module.
fn read_use(tree: &[String], passes_on: bool, is_item: bool, module: &mut Module) {
    let mut prefixes: Vec<Vec<String>> = vec![Vec::new()];
    let mut path: Vec<String> = Vec::new();
    let mut alias = None;
    let mut tokens = tree.iter().map(String::as_str).chain([","]).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" => prefixes.push(std::mem::take(&mut path)),
            "as" => alias = tokens.next().map(str::to_owned),
            "," | "}" => {
                let part = std::mem::take(&mut path);
                let alias = alias.take();
                if !part.is_empty() {
                    let mut whole: Vec<String> = prefixes.concat();
                    whole.extend(part);
                    if whole.last().is_some_and(|last| last == "self") && whole.len() > 1 {
                        whole.pop();
                    }
                    let last = whole.last().cloned().unwrap_or_default();
                    if last == "*" {
                        whole.pop();
                        // All names of an enum, or of another crate, are not looked up.
                        if ["crate", "self", "super"]
                            .contains(&whole.first().map_or("", String::as_str))
                        {
                            module.globs.push(whole);
                        }
                    } else {
                        if !passes_on {
                            module.paths.push(whole.clone());
                        }
                        if is_item {
                            module.names.entry(alias.unwrap_or(last)).or_insert(Name::Use(whole));
                        }
                    }
                }
                if token == "}" {
                    prefixes.pop();
                }
            }
            "::" => {}
            word => path.push(word.to_owned()),
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The words and marks of a source. Comments, texts, numbers' digits and lifetimes are none.
pub fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let word_from =
        |start: usize| chars[start..].iter().take_while(|c| is_of_word(**c)).collect::<String>();
    let mut tokens = Vec::new();
    let mut place = 0;
    while place < chars.len() {
        match at(place) {
            '/' if at(place + 1) == '/' => {
                place += chars[place..].iter().take_while(|c| **c != '\n').count();
            }
            '"' => place = end_of_text(&chars, place),
            '\'' if at(place + 1) == '\\' => {
                place += 3;
                place += chars[place..].iter().take_while(|c| **c != '\'').count() + 1;
            }
            '\'' if at(place + 2) == '\'' => place += 3,
            // A lifetime.
            '\'' => place += 1 + word_from(place + 1).chars().count(),
            ':' if at(place + 1) == ':' => {
                tokens.push("::".to_owned());
                place += 2;
            }
            c if is_of_word(c) => {
                let word = word_from(place);
                place += word.chars().count();
                let hashes = chars[place..].iter().take_while(|c| **c == '#').count();
                if ["r", "br", "cr"].contains(&word.as_str()) && at(place + hashes) == '"' {
                    let mark: String =
                        std::iter::once('"').chain(std::iter::repeat('#').take(hashes)).collect();
                    let rest: String = chars[place + hashes + 1..].iter().collect();
                    let length = rest.find(&mark).map_or(rest.len(), |end| end + mark.len());
                    place += hashes + 1 + rest[..length].chars().count();
                } else if is_word(&word)
                    && !(["b", "c"].contains(&word.as_str()) && ['"', '\''].contains(&at(place)))
                {
                    tokens.push(word);
                }
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                place += 1;
            }
        }
    }
    tokens
}

/// The place behind the text whose first quote is at `start`.
fn end_of_text(chars: &[char], start: usize) -> usize {
    let mut place = start + 1;
    while place < chars.len() && chars[place] != '"' {
        place += if chars[place] == '\\' { 2 } else { 1 };
    }
    place + 1
}

/// The tokens without those that only tests, models or documentation have.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let end = if tokens[place] == "#" { end_of_group(tokens, place + 1) } else { place + 1 };
        if tokens[place] != "#" {
            kept.push(tokens[place].clone());
        } else if is_of_tests(&tokens[place..end]) {
            place = end_of_item(tokens, end);
            continue;
        }
        place = end;
    }
    kept
}

/// Whether the attribute is `cfg(test)` and the like, or `cfg(all(…, test, …))`.
fn is_of_tests(attribute: &[String]) -> bool {
    let words: Vec<&str> = attribute.iter().map(String::as_str).collect();
    words.starts_with(&["#", "[", "cfg", "("])
        && words[4] != "any"
        && words.iter().enumerate().any(|(at, word)| {
            ["test", "loom", "doc", "doctest"].contains(word) && words[at - 2..at] != ["not", "("]
        })
}

/// The place behind the brackets that open at `start` (or behind `!` there).
fn end_of_group(tokens: &[String], start: usize) -> usize {
    let mut depth = 0;
    for (place, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "[" | "(" | "{" => depth += 1,
            "]" | ")" | "}" => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return place + 1;
        }
    }
    tokens.len()
}

/// The place behind the item, field or arm that begins at `start`, after its other attributes.
fn end_of_item(tokens: &[String], mut start: usize) -> usize {
    while tokens.get(start).is_some_and(|token| token == "#") {
        start = end_of_group(tokens, start + 1);
    }
    let is_item = tokens.get(start).is_some_and(|token| BEGINS.contains(&token.as_str()));
    let mut place = start;
    while place < tokens.len() {
        match tokens[place].as_str() {
            "{" => return end_of_group(tokens, place),
            "(" | "[" => place = end_of_group(tokens, place),
            "}" | ")" | "]" => return place,
            ";" => return place + 1,
            "," if !is_item => return place + 1,
            _ => place += 1,
        }
    }
    place
}
