//! A rules file as a tree of values with their places, from TOML or YAML.

mod from_toml;
mod from_yaml;

use std::fmt;

/// A place in a file. Both numbers count from 1, and columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A fault of a rules file: where it is, what was found there, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// The field, such as `group.api.limit`; empty if the file's syntax is at fault.
    pub field: String,
    /// What was found.
    pub found: String,
    /// What is expected.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.found)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        Ok(())
    }
}

/// The formats of rules files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// YAML, and so JSON.
    Yaml,
}

impl Format {
    /// The format that a file's name ends with: YAML for `.yaml`, `.yml` and `.json`, otherwise TOML.
    pub fn of(path: &std::path::Path) -> Format {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml" | "json") => Format::Yaml,
            _ => Format::Toml,
        }
    }
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(Text),
    /// A whole number.
    Number(i64),
    /// True or false.
    Bool(bool),
    /// A value that no field takes, by its type's name.
    Other(&'static str),
    /// A list.
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<Entry>),
}

/// A string.
#[derive(Clone, Debug)]
pub struct Text {
    /// The string.
    pub text: String,
    /// The place of its first character, if its characters stand in the file one by one.
    pub begins: Option<Place>,
}

/// An entry of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where the name begins.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Value {
    /// The type's name in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Number(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Other(kind) => kind,
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// The deepest nesting that a file may have. A rules file needs four levels.
const DEPTH_MOST: usize = 32;
/// The longest file.
const BYTES_MOST: usize = 16 << 20;

/// The file's tree. If the text breaks the syntax, all faults that the parser can tell apart.
pub fn parse(text: &str, format: Format) -> Result<Node, Vec<Problem>> {
    if text.len() > BYTES_MOST {
        return Err(vec![syntax(
            Place { line: 1, column: 1 },
            format!("a file of {} bytes", text.len()),
            "at most 16 MiB",
        )]);
    }
    match format {
        Format::Toml => from_toml::parse(text),
        Format::Yaml => from_yaml::parse(text),
    }
}

fn syntax(place: Place, found: impl Into<String>, expected: impl Into<String>) -> Problem {
    Problem { place, field: String::new(), found: found.into(), expected: expected.into() }
}

/// The text in quotes, as a line of printable characters that is not too long.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for (n, c) in text.chars().enumerate() {
        if n == 60 {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out.push('"');
    out
}
