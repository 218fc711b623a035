//! TOML by the crate `toml`, which gives the place of every value.

use super::tree::{syntax, Entry, Node, Place, Problem, Text, Value};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

pub fn parse(text: &str) -> Result<Node, Vec<Problem>> {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: &toml::de::Error| {
            let place = lines.place(error.span().map_or(0, |span| span.start));
            // The parser's message is "found; expected …" or "found, expected …" already.
            syntax(place, error.message().replace('\n', ", "), "")
        };
        return Err(errors.iter().map(problem).collect());
    }
    let value = Value::Table(lines.table(table.get_ref()));
    Ok(Node { place: Place::new(1, 1), value })
}

/// The text, with the offset at which each line begins.
struct Lines<'a> {
    text: &'a str,
    begin: Vec<usize>,
    /// How many characters are before each block of bytes, so that a column in a long line is found
    /// without counting from the line's begin.
    characters: Vec<usize>,
}

/// The bytes of a block.
const BLOCK: usize = 256;

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let begin =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut characters = Vec::with_capacity(text.len() / BLOCK + 1);
        let mut count = 0;
        for block in text.as_bytes().chunks(BLOCK) {
            characters.push(count);
            count += begun(block);
        }
        Lines { text, begin, characters }
    }

    /// How many characters begin before an offset.
    fn before(&self, at: usize) -> usize {
        let block = (at / BLOCK).min(self.characters.len().saturating_sub(1));
        let rest = self.text.as_bytes().get(block * BLOCK..at).map_or(0, begun);
        self.characters.get(block).map_or(0, |count| count + rest)
    }

    fn place(&self, at: usize) -> Place {
        let line = self.begin.partition_point(|&begin| begin <= at).max(1);
        let begin = self.begin.get(line - 1).copied().unwrap_or(0);
        Place::new(line, self.before(at).saturating_sub(self.before(begin)) + 1)
    }

    fn table(&self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut entries: Vec<(usize, Entry)> = table
            .iter()
            .map(|(name, value)| {
                let at = name.span().start;
                let entry = Entry {
                    name: name.get_ref().to_string(),
                    place: self.place(at),
                    node: self.node(value),
                };
                (at, entry)
            })
            .collect();
        entries.sort_by_key(|(at, _)| *at);
        entries.into_iter().map(|(_, entry)| entry).collect()
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let span = value.span();
        let place = self.place(span.start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(self.string(text, span)),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Value::Other("a number of more than 64 bits"), Value::Number),
            DeValue::Float(_) => Value::Other("a number with a fraction"),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(list) => {
                Value::List(list.iter().map(|value| self.node(value)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { place, value }
    }

    fn string(&self, text: &str, span: std::ops::Range<usize>) -> Text {
        // If the string has quotes of one character and no escapes, its characters stand in the
        // file one by one.
        let inside = self.text.get(span.start + 1..span.end.saturating_sub(1));
        let begins = (inside == Some(text)).then(|| self.place(span.start + 1));
        Text { text: text.to_owned(), begins }
    }
}

/// The characters that begin in these bytes.
fn begun(bytes: &[u8]) -> usize {
    // The other bytes of a character are 10xxxxxx.
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}
