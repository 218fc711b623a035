//! From a file to rules, and why that fails.

use crate::file::{Format, Problem};
use crate::rule::RuleFile;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tollbar::table::TableError;

/// Why rules cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// The file has problems, in their order.
    Problems(PathBuf, Vec<Problem>),
    /// The table cannot hold the rules' states.
    Table(PathBuf, TableError),
    /// The rules came from a text, and there is no file to read again.
    NoFile,
    /// The states are shared, and only the process of this number, which opened the rules, can
    /// reload them.
    OtherProcess(u32),
}

impl LoadError {
    pub(crate) fn table(path: &Path, error: TableError) -> LoadError {
        LoadError::Table(path.to_owned(), error)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Read(path, error) => write!(f, "{}: {error}", path.display()),
            LoadError::Problems(path, problems) => {
                for (n, problem) in problems.iter().enumerate() {
                    write!(f, "{}{}:{problem}", if n > 0 { "\n" } else { "" }, path.display())?;
                }
                Ok(())
            }
            LoadError::Table(path, error) => write!(f, "{}: {error}", path.display()),
            LoadError::NoFile => {
                f.write_str("the rules came from a text; expected rules from a file")
            }
            LoadError::OtherProcess(owner) => {
                write!(f, "the rules belong to process {owner}; expected a reload in that process, before it forks")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The properties of a file by which a reload sees that it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    file: (u64, u64),
}

impl Stamp {
    pub fn of(path: &Path) -> Option<Stamp> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            file: (metadata.dev(), metadata.ino()),
        })
    }
}

/// The file's text and its stamp. The stamp is read first, so a change between the two reads makes
/// the next stamp differ.
pub fn text(path: &Path) -> Result<(String, Option<Stamp>), LoadError> {
    let stamp = Stamp::of(path);
    let text = fs::read_to_string(path).map_err(|error| LoadError::Read(path.to_owned(), error))?;
    Ok((text, stamp))
}

/// The rules of a text. `name` is for messages.
pub fn parse(text: &str, format: Format, name: &Path) -> Result<RuleFile, LoadError> {
    crate::read::read(text, format)
        .map_err(|problems| LoadError::Problems(name.to_owned(), problems))
}
