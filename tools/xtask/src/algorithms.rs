//! The table of algorithms (src/policy/kinds.rs) as each face has it.

use std::fmt::Write as _;
use tollbar::policy::{Kind, Opt, Row, Words};

/// The test that compares the number of each algorithm and error with a number written there by
/// hand, because programs rely on these numbers.
pub const PINNED: &str = include_str!("../../../ffi-tests/c/status_test.c");

/// Checks that the test that promises numbers has the number of each algorithm.
pub fn check() -> Result<(), String> {
    let promise = |row: &Row| format!("assert_int_equal({}, {});", c_name(row), row.kind as u32);
    match rows().map(promise).find(|promise| !PINNED.contains(promise)) {
        Some(promise) => Err(format!("ffi-tests/c/status_test.c: expected {promise}")),
        None => Ok(()),
    }
}

/// The parts of the C header that are the table's, by their names in the frames.
pub fn fill(frame: &str) -> String {
    let parts: [crate::lists::List; 4] = [
        ("@ALGORITHM_NAMES@", c_names),
        ("@ALGORITHM_OPTIONS@", c_options),
        ("@ALGORITHM_BOUNDS@", c_bounds),
        ("@ALGORITHM_NUMBERS@", c_numbers),
    ];
    parts.iter().fold(frame.to_owned(), |text, (name, part)| {
        text.replace(name, part().trim_end_matches('\n'))
    })
}

fn c_names() -> String {
    let names = rows().map(with_aliases).collect::<Vec<_>>().join(", ");
    wrapped(" * ", &format!("NAME is one of {names}."), 100)
}

fn c_options() -> String {
    let mut out = String::new();
    for option in Opt::ALL {
        let _ =
            writeln!(out, " *     {:<28} {}; {}", option.usage(), takers(*option), option.note());
    }
    out
}

fn c_bounds() -> String {
    let mut out = String::new();
    for row in rows() {
        for form in row.forms {
            let _ = writeln!(
                out,
                " *     {:<28} {}",
                format!("{} {}", row.name, form.with).trim_end(),
                form.most
            );
        }
    }
    out
}

fn c_numbers() -> String {
    let mut out = String::new();
    for row in rows() {
        let state = match row.words {
            Words::One => "One word.",
            Words::Ring => "8 bytes a segment.",
            Words::Log => "8 bytes a permit.",
        };
        let _ = writeln!(
            out,
            "/* {}. {state} */\n#define {} {}u",
            row.summary,
            c_name(row),
            row.kind as u32
        );
    }
    let lending: u32 = rows().filter(|row| row.lends).map(|row| 1 << row.kind as u32).sum();
    let names: Vec<&str> = rows().filter(|row| row.lends).map(|row| row.name).collect();
    let _ = writeln!(
        out,
        "/* The algorithms that lend without TOLLBAR_POLICY_BORROW ({}), each as the bit\n \
         * 1u << TOLLBAR_ALGORITHM_NAME: a request may cost more permits than are left, and later\n \
         * requests wait until that debt is paid. */\n#define TOLLBAR_ALGORITHMS_LENDING {lending}u",
        names.join(", "),
    );
    out
}

/// The enumerators of `tollbar::algorithm`.
pub fn cpp() -> String {
    rows().map(|row| format!("{} = {},\n", row.name.replace('-', "_"), c_name(row))).collect()
}

pub fn python() -> String {
    let mut out = "ALGORITHMS = (\n".to_owned();
    for row in rows() {
        let _ = writeln!(out, "    \"{}\",", row.name);
    }
    out.push_str(")\n_LENDING = frozenset((\n");
    for row in rows().filter(|row| row.lends) {
        let _ = writeln!(out, "    \"{}\",", row.name);
    }
    out.push_str("))\n");
    out
}

pub fn go() -> String {
    let mut out = "\n// The algorithms; docs/algorithms.md compares them.\nconst (\n".to_owned();
    for row in rows() {
        let name = go_name(row);
        let _ = writeln!(
            out,
            "\t// {name}: {}.\n\t{name} Algorithm = {}",
            uncapitalised(row.summary),
            row.kind as u32
        );
    }
    out.push_str(")\n\nvar algorithmNames = [...]string{\n");
    for row in rows() {
        let _ = writeln!(out, "\t\"{}\",", row.name);
    }
    let bits = |does: fn(&Row) -> bool| {
        let bits = rows().filter(|row| does(row)).map(|row| format!("1<<{}", go_name(row)));
        bits.collect::<Vec<_>>().join(" | ")
    };
    let _ = writeln!(
        out,
        "}}\n\n// Of each algorithm that lends the bit of its number.\nconst lending = {}\n\n\
         // Of each algorithm that books ahead the bit of its number.\nconst bookAhead = {}\n",
        bits(|row| row.lends),
        bits(Row::books_ahead),
    );
    out
}

/// The numbers, options and names in Go's own core, which reads and checks policies without the
/// library.
pub fn go_core() -> String {
    let count = "algorithmsCount";
    let kind = |row| format!("kind{}", go_name(row));
    // gofmt aligns the columns.
    let longest = rows().map(|row| kind(row).len()).max().unwrap_or(0);
    let width = longest.max(count.len());
    let mut out = "\n// The algorithms, with their numbers in tollbar.h.\nconst (\n".to_owned();
    for row in rows() {
        let _ = writeln!(out, "\t{:<width$} = {}", kind(row), row.kind as u32);
    }
    let _ = writeln!(out, "\t{count:<width$} = {}\n)\n", Kind::ALL.len());
    out.push_str("// The algorithms' names, each with its other names after it.\nvar algorithms = []named{\n");
    for row in rows() {
        for name in [row.name].iter().chain(row.aliases) {
            let _ = writeln!(out, "\t{{\"{name}\", {}}},", kind(row));
        }
    }
    out.push_str("}\n\n// taken has the options of each algorithm, without algo and unit, which all of them have.\n");
    out.push_str("var taken = [algorithmsCount]uint32{\n");
    for row in rows() {
        let options: Vec<String> =
            row.options.iter().map(|option| format!("opt{option:?}")).collect();
        let name = kind(row) + ":";
        let _ = writeln!(out, "\t{name:<0$} {1},", longest + 1, options.join(" | "));
    }
    out.push_str("}\n\n");
    out
}

/// For Python's C code: the algorithms that book ahead.
pub fn python_booking() -> String {
    let booking = rows().filter(|row| row.books_ahead());
    let bits: Vec<String> = booking.map(|row| format!("1u << {}", c_name(row))).collect();
    format!("#define BOOKING ({})\n", bits.join(" \\\n                 | "))
}

/// The table that compares the algorithms, for docs/algorithms.md.
pub fn comparison() -> String {
    let mut out =
        "| | the most in any window of one period | state | a refusal writes | books ahead | choose it when |\n\
                   |---|---|---|---|---|---|\n"
            .to_owned();
    for row in rows() {
        let state = match row.words {
            Words::One => "1 word",
            Words::Ring => "8 bytes a segment",
            Words::Log => "8 bytes a permit",
        };
        for form in row.forms {
            let name = if form.with.is_empty() {
                row.name.to_owned()
            } else {
                format!("{} … {}", row.name, form.with)
            };
            let most = form.most.replace('*', "·");
            let _ = writeln!(
                out,
                "| `{name}` | {most} | {state} | {} | {} | {} |",
                form.refusal_writes, form.books_ahead, form.choose
            );
        }
    }
    out
}

/// The table of options, for the text form's documentation.
pub fn options() -> String {
    let mut out = "| option | algorithms | |\n|---|---|---|\n".to_owned();
    for option in Opt::ALL {
        let usage = option.usage().replace('|', "\\|");
        let _ = writeln!(out, "| `{usage}` | {} | {} |", takers(*option), option.note());
    }
    out
}

/// The line of the README.
pub fn readme() -> String {
    let names = rows().map(with_aliases).collect::<Vec<_>>().join(", ");
    let count = Kind::ALL.len();
    let text = format!("**{count} algorithms**, one line of text each: {names}. [Choosing one](docs/algorithms.md).");
    wrapped("  ", &text, 140).replacen("  ", "- ", 1)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    Kind::ALL.into_iter().map(Kind::row)
}

fn with_aliases(row: &Row) -> String {
    match row.aliases {
        [] => row.name.to_owned(),
        aliases => format!("{} (also {})", row.name, aliases.join(", ")),
    }
}

fn takers(option: Opt) -> String {
    let takers: Vec<&str> =
        rows().filter(|row| row.kind.takes(option)).map(|row| row.name).collect();
    if takers.len() == Kind::ALL.len() {
        return "all".to_owned();
    }
    takers.join(", ")
}

fn c_name(row: &Row) -> String {
    format!("TOLLBAR_ALGORITHM_{}", row.name.replace('-', "_").to_uppercase())
}

/// `FixedWindow`; abbreviations are in capitals, as Go has them.
fn go_name(row: &Row) -> String {
    if row.kind == Kind::Gcra {
        return "GCRA".to_owned();
    }
    row.name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// A sentence's beginning after a colon. Abbreviations stay as they are.
pub fn uncapitalised(text: &str) -> String {
    match text[1..].starts_with(|c: char| c.is_lowercase() || c == ' ') {
        true => text[..1].to_lowercase() + &text[1..],
        false => text.to_owned(),
    }
}

/// Lines of at most `width` columns, each after `prefix`.
pub fn wrapped(prefix: &str, text: &str, width: usize) -> String {
    let mut lines = vec![prefix.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        if *line == prefix {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{prefix}{word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
