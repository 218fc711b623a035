//! The tree of values with their places, and the problems of a file.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a file. Lines and columns count from 1, and columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of the file: 0 for the one that includes the others.
    pub file: u32,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// A place in the first file.
    pub const fn new(line: usize, column: usize) -> Place {
        Place { file: 0, line, column }
    }

    /// The file of the place.
    pub fn file_in(self, files: &[PathBuf]) -> &Path {
        files.get(self.file as usize).or(files.first()).map_or(Path::new(""), PathBuf::as_path)
    }
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

impl Node {
    /// Gives all places of the tree the number of their file.
    pub(crate) fn set_file(&mut self, file: u32) {
        self.place.file = file;
        match &mut self.value {
            Value::Text(text) => {
                if let Some(begins) = &mut text.begins {
                    begins.file = file;
                }
            }
            Value::List(list) => list.iter_mut().for_each(|node| node.set_file(file)),
            Value::Table(entries) => entries.iter_mut().for_each(|entry| {
                entry.place.file = file;
                entry.node.set_file(file);
            }),
            Value::Number(_) | Value::Bool(_) | Value::Other(_) => {}
        }
    }
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
pub(super) const DEPTH_MOST: usize = 32;
/// A fault of the syntax.
pub(super) fn syntax(
    place: Place,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> Problem {
    Problem { place, field: String::new(), found: found.into(), expected: expected.into() }
}
