//! YAML by the events of `saphyr-parser`, which have places. Anchors, aliases, tags and several
//! documents are refused: rules do not need them, and a few aliases can stand for gigabytes.

use super::tree::{syntax, Entry, Node, Place, Problem, Text, Value, DEPTH_MOST};
use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, Span};
use std::collections::HashSet;

pub fn parse(text: &str) -> Result<Node, Vec<Problem>> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut reader = Reader { parser: Parser::new_from_str(text), lines, seen: (1, 1, 0) };
    reader.file().map_err(|problem| vec![problem])
}

struct Reader<'a, T: Input> {
    parser: Parser<'a, T>,
    lines: Vec<&'a str>,
    /// The line, the column and the offset in the line of the last scalar. The next one comes
    /// later, so its offset is found from there.
    seen: (usize, usize, usize),
}

fn place(marker: &Marker) -> Place {
    Place::new(marker.line().max(1), marker.col() + 1)
}

impl<'a, T: Input + 'a> Reader<'a, T> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(syntax(place(error.marker()), error.info(), "")),
            None => Err(syntax(Place::new(self.lines.len(), 1), "the end of the file", "a value")),
        }
    }

    fn file(&mut self) -> Result<Node, Problem> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Nothing => {}
                Event::StreamEnd => break,
                _ if root.is_some() => {
                    return Err(syntax(
                        place(&span.start),
                        "a second document",
                        "one document in a file",
                    ));
                }
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        Ok(root.unwrap_or(Node { place: Place::new(1, 1), value: Value::Table(Vec::new()) }))
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Problem> {
        let place = place(&span.start);
        if depth > DEPTH_MOST {
            return Err(syntax(place, "a value in more than 32 others", "at most 32 levels"));
        }
        let refuse = |anchor: usize, tagged: bool| match (anchor, tagged) {
            (0, false) => Ok(()),
            (0, true) => Err(syntax(place, "a tag", "a value without a tag")),
            _ => Err(syntax(place, "an anchor", "the value itself wherever it is needed")),
        };
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                self.scalar(&text, style, place)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                let mut list = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::SequenceEnd {
                        break Value::List(list);
                    }
                    list.push(self.node(event, span, depth + 1)?);
                }
            }
            Event::MappingStart(anchor, tag) => {
                refuse(anchor, tag.is_some())?;
                Value::Table(self.entries(depth)?)
            }
            Event::Alias(_) => {
                return Err(syntax(place, "an alias", "the value itself wherever it is needed"))
            }
            _ => return Err(syntax(place, "no value", "a value")),
        };
        Ok(Node { place, value })
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<Entry>, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut names = HashSet::new();
        loop {
            let (event, span) = self.next()?;
            let at = place(&span.start);
            let name = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(name, ..) => name.into_owned(),
                _ => return Err(syntax(at, "a name that is no string", "a string")),
            };
            if !names.insert(name.clone()) {
                return Err(syntax(at, format!("{name} a second time"), "each name once"));
            }
            let (event, span) = self.next()?;
            entries.push(Entry { name, place: at, node: self.node(event, span, depth + 1)? });
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, place: Place) -> Value {
        let column = match style {
            ScalarStyle::Plain => place.column,
            _ => place.column + 1,
        };
        if style == ScalarStyle::Plain {
            match text {
                "true" | "True" => return Value::Bool(true),
                "false" | "False" => return Value::Bool(false),
                "" | "~" | "null" => return Value::Other("nothing"),
                _ => {}
            }
            if let Ok(number) = text.parse() {
                return Value::Number(number);
            }
        }
        // If the string has no escapes and no line ends, its characters stand in the file one by
        // one.
        let line = self.lines.get(place.line - 1).map_or("", |line| line);
        let (from, offset) = match self.seen {
            (seen, from, offset) if seen == place.line && from <= column => (from, offset),
            _ => (1, 0),
        };
        let rest = line.get(offset..).unwrap_or("");
        let offset =
            offset + rest.char_indices().nth(column - from).map_or(rest.len(), |(at, _)| at);
        self.seen = (place.line, column, offset);
        let is_plain =
            line.get(offset..).is_some_and(|rest| rest.starts_with(text)) && !text.contains('\n');
        let begins = is_plain.then_some(Place::new(place.line, column));
        Value::Text(Text { text: text.to_owned(), begins })
    }
}
