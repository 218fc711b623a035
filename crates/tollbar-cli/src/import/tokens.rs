//! nginx's configuration as directives.

use std::iter::Peekable;
use std::str::Chars;
use tollbar_rules::internal::quoted;
use tollbar_rules::{Place, Problem};

/// A directive with its words and its block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    pub place: Place,
    /// The name is the first word.
    pub words: Vec<String>,
    pub block: Vec<Directive>,
}

impl Directive {
    pub fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The rest of the first word that begins with `name`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(name))
    }

    /// The name in `zone=NAME:SIZE`.
    pub fn zone_name(&self) -> Option<String> {
        self.value("zone=").and_then(|zone| zone.split(':').next()).map(str::to_owned)
    }

    /// Whether a directive of that name stands in the block, at any depth.
    pub fn has(&self, name: &str) -> bool {
        self.block.iter().any(|inner| inner.name() == name || inner.has(name))
    }
}

/// The deepest nesting; nginx's own configurations have five levels.
const DEPTH_MOST: usize = 64;

/// All directives of a configuration, or its first fault.
pub fn directives(text: &str) -> Result<Vec<Directive>, Vec<Problem>> {
    // The directives of each open block; the last is the innermost.
    let mut open: Vec<Vec<Directive>> = vec![Vec::new()];
    let mut heads: Vec<Directive> = Vec::new();
    let mut current = Directive::default();
    let mut characters = Characters { rest: text.chars().peekable(), place: Place::new(1, 1) };
    loop {
        let place = characters.place;
        let Some(c) = characters.next() else { break };
        match c {
            c if c.is_whitespace() => {}
            '#' => while characters.next_if(|c| *c != '\n').is_some() {},
            ';' => {
                if current.words.is_empty() {
                    return Err(fault(place, "\";\" without a directive", "a directive before it"));
                }
                let done = std::mem::take(&mut current);
                if let Some(block) = open.last_mut() {
                    block.push(done);
                }
            }
            '{' => {
                if current.words.is_empty() || open.len() > DEPTH_MOST {
                    let found = "\"{\" without a directive, or in more than 64 others";
                    return Err(fault(place, found, "a directive before it"));
                }
                heads.push(std::mem::take(&mut current));
                open.push(Vec::new());
            }
            '}' => {
                if !current.words.is_empty() {
                    let found = format!("\"}}\" after {}", quoted(current.name()));
                    return Err(fault(place, found, "\";\" or \"{\""));
                }
                let (Some(mut head), Some(block)) = (heads.pop(), open.pop()) else {
                    return Err(fault(place, "\"}\" without \"{\"", "a directive"));
                };
                head.block = block;
                if let Some(outer) = open.last_mut() {
                    outer.push(head);
                }
            }
            first => {
                if current.words.is_empty() {
                    current.place = place;
                }
                let quote = matches!(first, '"' | '\'').then_some(first);
                let mut word = String::new();
                if quote.is_none() {
                    word.push(first);
                }
                loop {
                    let variable = word.ends_with('$');
                    let next = match quote {
                        Some(_) => characters.next(),
                        // "${name}" has braces that open no block.
                        None => characters.next_if(|c| {
                            !(c.is_whitespace() || matches!(c, ';' | '{' | '}'))
                                || (variable && *c == '{')
                        }),
                    };
                    match next {
                        None if quote.is_some() => {
                            return Err(fault(place, "a quote without an end", "its end"));
                        }
                        None => break,
                        Some(c) if Some(c) == quote => break,
                        Some('\\') => word.extend(characters.next()),
                        Some('{') if quote.is_none() => {
                            word.push('{');
                            while let Some(c) = characters.next_if(|c| *c != '\n') {
                                word.push(c);
                                if c == '}' {
                                    break;
                                }
                            }
                        }
                        Some(c) => word.push(c),
                    }
                }
                current.words.push(word);
            }
        }
    }
    if !current.words.is_empty() {
        let found = format!("the end of the file after {}", quoted(current.name()));
        return Err(fault(characters.place, found, "\";\""));
    }
    match heads.pop() {
        Some(head) => {
            Err(fault(head.place, format!("{} without an end", quoted(head.name())), "\"}\""))
        }
        None => Ok(open.pop().unwrap_or_default()),
    }
}

/// The characters of a text, with the place of the next one.
struct Characters<'a> {
    rest: Peekable<Chars<'a>>,
    place: Place,
}

impl Characters<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        match c {
            '\n' => self.place = Place::new(self.place.line + 1, 1),
            _ => self.place.column += 1,
        }
        Some(c)
    }

    fn next_if(&mut self, is_wanted: impl FnOnce(&char) -> bool) -> Option<char> {
        match self.rest.peek() {
            Some(c) if is_wanted(c) => self.next(),
            _ => None,
        }
    }
}

fn fault(place: Place, found: impl Into<String>, expected: &str) -> Vec<Problem> {
    vec![Problem {
        place,
        field: String::new(),
        found: found.into(),
        expected: expected.to_owned(),
    }]
}
