//! A rules file as a tree of values with their places, from TOML or YAML.

mod from_toml;
mod from_yaml;
mod tree;

use tree::syntax;
pub use tree::{Entry, Node, Place, Problem, Text, Value};

/// The formats of rules files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// YAML, and so JSON.
    Yaml,
}

impl Format {
    /// The format that a file's name ends with: YAML for `.yaml`, `.yml` and `.json`, otherwise
    /// TOML.
    pub fn of(path: &std::path::Path) -> Format {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml" | "json") => Format::Yaml,
            _ => Format::Toml,
        }
    }
}

/// The longest file.
const BYTES_MOST: usize = 16 << 20;

/// The file's tree. If the text breaks the syntax, all faults that the parser can tell apart.
pub fn parse(text: &str, format: Format) -> Result<Node, Vec<Problem>> {
    if text.len() > BYTES_MOST {
        return Err(vec![syntax(
            Place::new(1, 1),
            format!("a file of {} bytes", text.len()),
            "at most 16 MiB",
        )]);
    }
    match format {
        Format::Toml => from_toml::parse(text),
        Format::Yaml => from_yaml::parse(text),
    }
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
