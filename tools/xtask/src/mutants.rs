//! `cargo xtask mutants LIST TREE`: puts many changes of the sources into one program. At each place
//! the copy of the sources in TREE asks at run time whether the place's change is the chosen one
//! (tools/mutants.py). So all changes are compiled once, in place of once each.
//!
//! A line of LIST is one change as cargo-mutants lists it, with tabs between: number, file, kind,
//! line and column of its beginning and of its end (from 1 on), replacement. The code of change 7
//! stands between `/*<7*/` and `/*7>*/`, so that an error of the compiler names the change.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Kind, line and column: where a change begins.
type Place = (String, usize, usize);

struct Change {
    number: u32,
    /// Line and column of the first character after it.
    end: (usize, usize),
    replacement: String,
}

pub fn run(list: &Path, tree: &Path) -> Result<String, String> {
    let text = read(list)?;
    let mut files: BTreeMap<&str, BTreeMap<Place, Vec<Change>>> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [number, file, kind, places @ .., replacement] = fields.as_slice() else {
            return Err(format!("{}: {line:?}: expected fields with tabs between", list.display()));
        };
        let places: Vec<usize> = places.iter().filter_map(|n| n.parse().ok()).collect();
        let (Ok(number), [from_line, from_column, to_line, to_column]) =
            (number.parse(), places.as_slice())
        else {
            return Err(format!("{}: {line:?}: expected five numbers", list.display()));
        };
        let place = ((*kind).to_owned(), *from_line, *from_column);
        let replacement = (*replacement).to_owned();
        let change = Change { number, end: (*to_line, *to_column), replacement };
        files.entry(file).or_default().entry(place).or_default().push(change);
    }
    let mut said = String::new();
    for (file, changes) in files {
        let path = tree.join(file);
        let source = read(&path)?;
        let (new, without) =
            with_changes(&source, changes).map_err(|why| format!("{file}: {why}"))?;
        without.iter().for_each(|number| said += &format!("without {number}\n"));
        std::fs::write(&path, new).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(said + &format!("the changes are in {}", tree.display()))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The text with the changes, and the numbers of those that would not compile.
fn with_changes(
    source: &str,
    changes: BTreeMap<Place, Vec<Change>>,
) -> Result<(String, Vec<u32>), String> {
    let file = syn::parse_file(source).map_err(|e| e.to_string())?;
    let line_starts =
        std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut places =
        Places { source, line_starts, changes, insertions: Vec::new(), without: Vec::new() };
    places.visit_file(&file);
    if let Some(((kind, line, column), _)) = places.changes.first_key_value() {
        return Err(format!("{line}:{column}: no {kind} begins here"));
    }
    // What ends at a place comes before what begins there. Outer nodes are visited first, and inner
    // ones end first.
    let mut insertions = places.insertions;
    insertions.sort_by_key(|&(at, begins, _)| (at, begins));
    let (mut new, mut from) = (String::new(), 0);
    for (at, _, text) in insertions {
        new.push_str(&source[from..at]);
        new.push_str(&text);
        from = at;
    }
    new.push_str(&source[from..]);
    if let Err(why) = syn::parse_file(&new) {
        let at = why.span().start();
        let line = new.lines().nth(at.line - 1).unwrap_or_default();
        return Err(format!("the changed text does not parse: {why}, in line {}: {line}", at.line));
    }
    Ok((new, places.without))
}

struct Places<'a> {
    source: &'a str,
    line_starts: Vec<usize>,
    /// Those that have not been placed yet.
    changes: BTreeMap<Place, Vec<Change>>,
    /// Byte, whether a node begins there, text.
    insertions: Vec<(usize, bool, String)>,
    without: Vec<u32>,
}

impl Places<'_> {
    fn byte(&self, at: LineColumn) -> usize {
        self.byte_of(at.line, at.column)
    }

    /// `line` counts from 1, `column` in characters from 0.
    fn byte_of(&self, line: usize, column: usize) -> usize {
        let start = self.line_starts[line - 1];
        let rest = &self.source[start..];
        start + rest.char_indices().nth(column).map_or(rest.len(), |(byte, _)| byte)
    }

    fn range(&self, span: Span) -> (usize, usize) {
        (self.byte(span.start()), self.byte(span.end()))
    }

    fn take(&mut self, kind: &str, at: LineColumn) -> Vec<Change> {
        self.changes.remove(&(kind.to_owned(), at.line, at.column + 1)).unwrap_or_default()
    }

    /// Chooses among the expression and those in which one of the changes replaces the bytes from
    /// `cut` on to its end. What is before `cut` stands in `parentheses`: `a as u64 < b` is none.
    fn choose(&mut self, whole: Span, cut: usize, changes: &[Change], parentheses: [&str; 2]) {
        if changes.is_empty() {
            return;
        }
        let (start, end) = self.range(whole);
        let mut text = "(".to_owned();
        for change in changes {
            let after = self.byte_of(change.end.0, change.end.1 - 1);
            text += &format!(
                "if crate::mutants::is({0}) {{ /*<{0}*/({4}{1}{5}{2}{3})/*{0}>*/ }} else ",
                change.number,
                &self.source[start..cut],
                change.replacement,
                &self.source[after..end],
                parentheses[0],
                parentheses[1],
            );
        }
        self.insertions.push((start, true, text + "{ ("));
        self.insertions.push((end, false, ") })".to_owned()));
    }

    fn visit_body(&mut self, block: &syn::Block) {
        let Some(first) = block.stmts.first() else { return };
        let at = self.byte(block.brace_token.span.open().end());
        for change in self.take("FnValue", first.span().start()) {
            let text = format!(
                " if crate::mutants::is({0}) {{ return /*<{0}*/{1}/*{0}>*/; }}",
                change.number, change.replacement
            );
            self.insertions.push((at, true, text));
        }
    }
}

impl<'ast> Visit<'ast> for Places<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.visit_body(&function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.visit_body(&function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.visit_body(block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let operator = binary.op.span().start();
        let changes = self.take("BinaryOperator", operator);
        self.choose(binary.span(), self.byte(operator), &changes, ["(", ")"]);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let operator = unary.op.span().start();
        let changes = self.take("UnaryOperator", operator);
        self.choose(unary.span(), self.byte(operator), &changes, ["", ""]);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        let is_last = |arm: &syn::Arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none();
        if !expression.arms.iter().any(is_last) {
            // An arm less, and a value would have none.
            for arm in &expression.arms {
                let changes = self.take("MatchArm", arm.span().start());
                self.without.extend(changes.iter().map(|change| change.number));
            }
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        for change in self.take("MatchArm", arm.span().start()) {
            let at = self.byte(arm.pat.span().end());
            let text = format!(" if !crate::mutants::is({})", change.number);
            self.insertions.push((at, false, text));
        }
        if let Some((_, guard)) = &arm.guard {
            let changes = self.take("MatchArmGuard", guard.span().start());
            let (start, end) = self.range(guard.span());
            let mut text = String::new();
            for change in &changes {
                text += &match change.replacement.as_str() {
                    "true" => format!("crate::mutants::is({}) || ", change.number),
                    _ => format!("!crate::mutants::is({}) && ", change.number),
                };
            }
            if !changes.is_empty() {
                self.insertions.push((start, true, text + "("));
                visit::visit_arm(self, arm);
                self.insertions.push((end, false, ")".to_owned()));
                return;
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, value: &'ast syn::ExprStruct) {
        for field in &value.fields {
            let begin = field.span().start();
            let changes = self.take("StructField", begin);
            self.choose(value.span(), self.byte(begin), &changes, ["", ""]);
        }
        visit::visit_expr_struct(self, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn f(a: i8, b: i8) -> i8 {
    match a {
        1 => a + b * 2,
        n if n > b => -n,
        _ => 0,
    }
}
";

    fn changed(kind: &str, from: (usize, usize), to: (usize, usize), new: &str) -> String {
        let change = Change { number: 7, end: to, replacement: new.to_owned() };
        let place = (kind.to_owned(), from.0, from.1);
        with_changes(SOURCE, BTreeMap::from([(place, vec![change])])).unwrap().0
    }

    /// The line, with `text` in place of `part`.
    fn with(part: &str, text: &str) -> String {
        assert_eq!(SOURCE.matches(part).count(), 1, "{part}");
        SOURCE.replace(part, text)
    }

    #[test]
    fn each_kind_of_change_is_chosen_at_run_time() {
        let sum = "(if crate::mutants::is(7) { /*<7*/((a )- b * 2)/*7>*/ } else { (a + b * 2) })";
        assert_eq!(changed("BinaryOperator", (3, 16), (3, 17), "-"), with("a + b * 2", sum));
        let product = "a + (if crate::mutants::is(7) { /*<7*/((b )/ 2)/*7>*/ } else { (b * 2) })";
        assert_eq!(changed("BinaryOperator", (3, 20), (3, 21), "/"), with("a + b * 2", product));
        let sign = "(if crate::mutants::is(7) { /*<7*/(n)/*7>*/ } else { (-n) })";
        assert_eq!(changed("UnaryOperator", (4, 23), (4, 24), ""), with("-n", sign));
        let arm = "1 if !crate::mutants::is(7) =>";
        assert_eq!(changed("MatchArm", (3, 9), (3, 24), ""), with("1 =>", arm));
        let guard = "if crate::mutants::is(7) || (n > b) =>";
        assert_eq!(changed("MatchArmGuard", (4, 14), (4, 19), "true"), with("if n > b =>", guard));
        let guard = "if !crate::mutants::is(7) && (n > b) =>";
        assert_eq!(changed("MatchArmGuard", (4, 14), (4, 19), "false"), with("if n > b =>", guard));
        let body = "-> i8 { if crate::mutants::is(7) { return /*<7*/1/*7>*/; }";
        assert_eq!(changed("FnValue", (2, 5), (6, 6), "1"), with("-> i8 {", body));
    }

    #[test]
    fn inner_changes_end_before_outer_ones() {
        let change =
            |number, end, new: &str| vec![Change { number, end, replacement: new.to_owned() }];
        let guard = (("MatchArmGuard".to_owned(), 4, 14), change(1, (4, 19), "true"));
        let inside = (("BinaryOperator".to_owned(), 4, 16), change(2, (4, 17), "<"));
        let text = "if crate::mutants::is(1) || \
            ((if crate::mutants::is(2) { /*<2*/((n )< b)/*2>*/ } else { (n > b) })) =>";
        let found = with_changes(SOURCE, BTreeMap::from([guard, inside]));
        assert_eq!(found, Ok((with("if n > b =>", text), vec![])));
    }

    #[test]
    fn a_change_without_a_place_is_an_error() {
        let change = Change { number: 1, end: (1, 2), replacement: String::new() };
        let place = ("BinaryOperator".to_owned(), 1, 1);
        let found = with_changes(SOURCE, BTreeMap::from([(place, vec![change])]));
        assert_eq!(found, Err("1:1: no BinaryOperator begins here".to_owned()));
    }
}
