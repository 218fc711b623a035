//! The table of algorithms. For a new algorithm the compiler names every place that needs a change:
//! no `match` over algorithms has a catch-all, and no set of algorithms stands outside the table.

use crate::common::{period, policy, DAY, SEC};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use tollbar::policy::{text, Opt};
use tollbar::{Kind, Policy};

#[test]
fn each_name_is_one_algorithms() {
    let mut names = HashSet::new();
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        let row = kind.row();
        assert_eq!((row.kind, row.kind as usize, row.name), (kind, number, kind.name()));
        assert!(
            row.summary.starts_with(char::is_uppercase) && !row.summary.ends_with('.'),
            "{}",
            row.summary
        );
        let [plain, ..] = row.forms else { panic!("{kind:?} is not compared with the others") };
        assert_eq!(plain.with, "", "{kind:?}");
        for name in [row.name].iter().chain(row.aliases) {
            assert!(names.insert(*name), "{name} has two meanings");
            let warm = if kind.takes(Opt::Warm) { " warm 1s" } else { "" };
            assert_eq!(
                policy(&format!("9/{} algo {name}{warm}", period(kind))).kind,
                kind,
                "{name}"
            );
            for form in row.forms {
                assert_eq!(
                    policy(&format!("9/{} algo {name}{warm} {}", period(kind), form.with)).kind,
                    kind,
                    "{name} {}",
                    form.with
                );
            }
        }
    }
    let why = text::parse(b"9/s algo nobody").expect_err("no algorithm");
    for name in names {
        assert!(
            why.expected().contains(&format!("`{name}`")),
            "{name} is not in {:?}",
            why.expected()
        );
    }
}

#[test]
fn each_option_is_read_by_its_name() {
    let why = text::parse(b"9/s nothing").expect_err("no option");
    for option in Opt::ALL {
        let name = option.usage().split(' ').next().unwrap_or_default();
        assert!(
            why.expected().contains(&format!("`{name}`")),
            "{name} is not in {:?}",
            why.expected()
        );
        // The option's values, or an example if the value is a number or a name.
        let values = match option.usage().split(' ').nth(1).unwrap_or_default() {
            "N" | "DAY" => "9".to_owned(),
            "ZONE" => "UTC".to_owned(),
            "TIME" => "1s".to_owned(),
            "CLASS" => "low 9".to_owned(),
            "NAME" => Kind::ALL.map(Kind::name).join("|"),
            "SHAPE" => "linear|ln|log2|front|step|0:0 50%:80% 100%:100%".to_owned(),
            "BANDS" => "0:50%|0:50% 50%:100%".to_owned(),
            values => values.to_owned(),
        };
        for kind in Kind::ALL {
            for value in values.split('|').filter(|_| *option != Opt::Algo) {
                let warm =
                    if kind.takes(Opt::Warm) && *option != Opt::Warm { "warm 1s" } else { "" };
                let ban =
                    if kind.takes(Opt::After) && *option == Opt::After { "ban 1h" } else { "" };
                let read = text::parse(
                    format!("10/{} algo {} {warm} {ban} {name} {value}", period(kind), kind.name())
                        .as_bytes(),
                );
                assert_eq!(
                    read.is_ok(),
                    kind.takes(*option),
                    "{} {name} {value}: {read:?}",
                    kind.name()
                );
            }
        }
    }
}

/// An algorithm that lends can have a debt: it admits more permits at one time than it has. One
/// that books ahead can owe permits of a later time.
#[test]
fn the_algorithms_that_lend_or_book_ahead_are_those_that_the_table_names() {
    use tollbar::algorithm::{Algorithm, Rule};
    for kind in Kind::ALL
        .into_iter()
        .filter(|kind| Rule::new(&Policy::new(0, DAY).with_kind(*kind)).is_ok())
    {
        let warm_up = if kind.takes(Opt::Warm) { SEC } else { 0 };
        let rule = Rule::new(&Policy { warm_up, ..Policy::new(10, DAY).with_kind(kind) })
            .expect("a policy");
        let left = rule.available(0, 100 * DAY);
        let lends = rule.step(0, 100 * DAY, left + 1).next.is_some();
        assert_eq!(lends, kind.row().lends, "{kind:?} has {left} permits");
        assert_eq!(rule.books_ahead(), kind.row().books_ahead(), "{kind:?}");
    }
}

/// The documents that no list writes: how to choose an algorithm, and whether other programs may
/// step its word.
#[test]
fn each_algorithm_is_in_the_documents() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
    };
    let choosing = read("docs/algorithms.md");
    let (_, choosing) = choosing.split_once("[lists: end]").expect("the list of algorithms");
    let words = read("docs/internals/state-word.md");
    for name in Kind::ALL.map(Kind::name) {
        assert!(choosing.contains(name), "docs/algorithms.md does not describe {name}");
        assert!(
            words.contains(name),
            "docs/internals/state-word.md does not say whether the word of {name} is promised"
        );
    }
}

/// A catch-all arm would treat a new algorithm like another one, and the compiler would not report
/// it.
#[test]
fn no_match_over_algorithms_has_a_catch_all() {
    let mut files = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    sources(&root.join("src"), &mut files);
    for part in fs::read_dir(root.join("crates")).expect("the crates") {
        sources(&part.expect("a crate").path().join("src"), &mut files);
    }
    let mut seen = 0;
    let mut wrong = Vec::new();
    for file in files {
        let (matches, faults) =
            catch_alls(&code_of(&fs::read_to_string(&file).expect("a source file")));
        seen += matches;
        wrong.extend(
            faults.into_iter().map(|(line, what)| format!("{}:{line}: {what}", file.display())),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen >= 3, "only {seen} matches over algorithms were found");
}

/// The search of the test above finds every catch-all in examples.
#[test]
fn the_search_finds_catch_alls() {
    let found = |code: &str| catch_alls(&code_of(code)).1.len();
    assert_eq!(
        found("match kind { // }\n Kind::Gcra => '}', Kind::Pacer => \"}\\\"\", x => r#\"\"}\"# }"),
        1
    );
    assert_eq!(found("match kind { Kind::Gcra => 1, _ => 2 }"), 1);
    assert_eq!(found("match kind { Kind::Gcra => { f({}) } other => 2, }"), 1);
    assert_eq!(found("match (kind, x) { (Kind::Gcra, Some(_)) => 1, (_, _) => 2 }"), 1);
    assert_eq!(
        found("match a { 1 => match self { Rule::Gcra(g) => g.step(), _ => 0 }, _ => 3 }"),
        1
    );
    assert_eq!(found("matches!(kind, Kind::Gcra | Kind::Interval)"), 1);
    assert_eq!(
        found(
            "match kind { _ if limit == 0 => 1, Kind::Gcra => 1, Kind::Pacer | Kind::WarmUp => 2 }"
        ),
        0
    );
    assert_eq!(found("match a { Some(Kind2::Gcra) => 1, _ => 2 }"), 0);
    assert_eq!(found("match x { Some(word) if matches!(self, Rule::Closed) => 1, _ => 2 } matches!(k, Kind::Gcra)"), 0);
}

fn sources(of: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(of).unwrap_or_else(|why| panic!("{}: {why}", of.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The code without comments, and with empty texts and characters. Lines stay where they are.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let raw = rest
            .strip_prefix('r')
            .map(|rest| rest.trim_start_matches('#'))
            .filter(|rest| rest.starts_with('"'));
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let (Some(raw), false) =
            (raw, code.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        {
            let hashes = "#".repeat(rest.len() - raw.len() - 1);
            let end = raw[1..].find(&format!("\"{hashes}")).expect("the end of a raw text");
            rest.len() - raw.len() + 1 + end + 1 + hashes.len()
        } else if first == '"' {
            1 + after(&rest[1..], '"')
        } else if first == '\''
            && (rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\''))
        {
            1 + after(&rest[1..], '\'')
        } else {
            0
        };
        match skipped {
            0 => code.push(first),
            _ => code.extend(rest[..skipped].chars().filter(|c| *c == '\n')),
        }
        rest = &rest[skipped.max(first.len_utf8())..];
    }
    code
}

/// The length of a text up to its end mark, which is included.
fn after(text: &str, end: char) -> usize {
    let mut escaped = false;
    let at = text.char_indices().find(|(_, c)| {
        let ends = *c == end && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    at.expect("the end of a text").0 + 1
}

/// How many matches over algorithms there are, and the line and text of each catch-all in them and
/// of each set of algorithms.
fn catch_alls(code: &str) -> (usize, Vec<(usize, String)>) {
    let mut seen = 0;
    let mut wrong = Vec::new();
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    for (at, _) in code.match_indices("match ") {
        let Some(body) = code[at..].find('{').map(|open| inside(&code[at + open..])) else {
            continue;
        };
        let patterns = patterns(body);
        if !patterns.iter().any(|pattern| !named(pattern).is_empty()) {
            continue;
        }
        seen += 1;
        for pattern in patterns.into_iter().filter(|pattern| takes_all(pattern)) {
            wrong.push((line(at), format!("a match over algorithms has the arm `{pattern} =>`")));
        }
    }
    for (at, _) in code.match_indices("matches!(") {
        let set = named(inside(&code[at + "matches!".len()..]));
        if set.len() > 1 {
            wrong.push((line(at), format!("{set:?} belongs in the table of algorithms")));
        }
    }
    (seen, wrong)
}

/// The text between the bracket at the beginning and its closing bracket.
fn inside(code: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &code[1..at];
        }
    }
    panic!("brackets in a text that this search does not know: {code:.80}");
}

/// The patterns of a match, without their guards.
fn patterns(mut body: &str) -> Vec<String> {
    let mut patterns = Vec::new();
    while let Some(arrow) = body.find("=>") {
        let pattern = body[..arrow].trim().trim_start_matches(',').trim();
        patterns.push(
            pattern.split(" if ").next().unwrap_or_default().trim().to_owned() + guard(pattern),
        );
        let mut rest = body[arrow + 2..].trim_start();
        if rest.starts_with('{') {
            rest = &rest[inside(rest).len() + 2..];
        } else {
            let mut depth = 0_i32;
            let end = rest.char_indices().find(|(_, c)| {
                depth += i32::from(matches!(c, '(' | '[' | '{'))
                    - i32::from(matches!(c, ')' | ']' | '}'));
                depth == 0 && *c == ','
            });
            rest = end.map_or("", |(at, _)| &rest[at..]);
        }
        body = rest;
    }
    patterns
}

/// A guard's mark: such an arm does not take all.
fn guard(pattern: &str) -> &'static str {
    if pattern.contains(" if ") {
        " if"
    } else {
        ""
    }
}

/// `_`, `other`, `(_, _)`.
fn takes_all(pattern: &str) -> bool {
    pattern.chars().all(|c| c.is_lowercase() || "_(), ".contains(c)) && !pattern.ends_with(" if")
}

/// The algorithms that a pattern names, as variants of `Kind` or `Rule`.
fn named(pattern: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for of in ["Kind::", "Rule::"] {
        for (at, _) in pattern.match_indices(of) {
            let name: String =
                pattern[at + of.len()..].chars().take_while(|c| c.is_alphanumeric()).collect();
            if Kind::ALL.iter().any(|kind| format!("{kind:?}") == name) {
                found.insert(name);
            }
        }
    }
    found
}
