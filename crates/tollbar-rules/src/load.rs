//! From files to rules, and why that fails.

use crate::file::{self, quoted, Entry, Format, Node, Place, Problem, Value};
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
    /// The files have problems, in their order. The first file includes the others, and a problem's
    /// place has the number of its file.
    Problems(Vec<PathBuf>, Vec<Problem>),
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
            LoadError::Problems(files, problems) => {
                for (n, problem) in problems.iter().enumerate() {
                    let file = problem.place.file_in(files);
                    write!(f, "{}{}:{problem}", if n > 0 { "\n" } else { "" }, file.display())?;
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
    fn of(path: &Path) -> Option<Stamp> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            file: (metadata.dev(), metadata.ino()),
        })
    }
}

/// The files that were read, and what they were like then.
pub type Stamps = Vec<(PathBuf, Option<Stamp>)>;

/// Whether one of the files is another one than when it was read.
pub fn have_changed(stamps: &Stamps) -> bool {
    let is_new = |(n, (path, stamp)): (usize, &(PathBuf, Option<Stamp>))| {
        let now = Stamp::of(path);
        // A file that is gone is reported as often as somebody asks.
        n == 0 && now.is_none() || now != *stamp
    };
    stamps.is_empty() || stamps.iter().enumerate().any(is_new)
}

/// The most files of one set of rules.
const FILES_MOST: usize = 64;

/// The files that are read for one set of rules.
struct Files {
    paths: Vec<PathBuf>,
    /// The real path of each file, and the number of the file that includes it.
    real: Vec<(PathBuf, Option<usize>)>,
    stamps: Stamps,
}

/// The rules of a file and of the files that it includes. `stamps` becomes those of all files that
/// were read, also after an error.
pub fn file(path: &Path, stamps: &mut Stamps) -> Result<RuleFile, LoadError> {
    let mut files = Files { paths: Vec::new(), real: Vec::new(), stamps: Vec::new() };
    let read = files.read(path, None);
    let read = match read {
        Ok(Ok(root)) => files.include(root, path, 0),
        Ok(Err(problems)) => Err(problems),
        Err(error) => {
            *stamps = files.stamps;
            return Err(LoadError::Read(path.to_owned(), error));
        }
    };
    *stamps = files.stamps;
    let paths = files.paths;
    match read.and_then(|root| crate::read::read_tree(&root)) {
        Ok(mut file) => {
            file.files = paths;
            Ok(file)
        }
        Err(problems) => Err(LoadError::Problems(paths, problems)),
    }
}

/// Reads a rules file and the files that it includes, without putting its rules in force.
///
/// # Errors
/// [`LoadError`].
pub fn read_file(path: impl AsRef<Path>) -> Result<RuleFile, LoadError> {
    file(path.as_ref(), &mut Stamps::new())
}

impl Files {
    /// The tree of a file. The stamp is read first, so a change between the two reads makes the
    /// next stamp differ.
    fn read(&mut self, path: &Path, from: Option<usize>) -> io::Result<Result<Node, Vec<Problem>>> {
        self.stamps.push((path.to_owned(), Stamp::of(path)));
        let text = fs::read_to_string(path)?;
        let number = self.paths.len() as u32;
        self.paths.push(path.to_owned());
        self.real.push((fs::canonicalize(path).unwrap_or(path.to_owned()), from));
        Ok(file::parse(&text, Format::of(path))
            .map(|mut root| {
                root.set_file(number);
                root
            })
            .map_err(|mut problems| {
                problems.iter_mut().for_each(|problem| problem.place.file = number);
                problems
            }))
    }

    /// Puts the rules of the files that `root` includes behind its own.
    fn include(
        &mut self,
        mut root: Node,
        path: &Path,
        number: usize,
    ) -> Result<Node, Vec<Problem>> {
        let Some(included) = includes(&mut root)? else { return Ok(root) };
        let mut problems = Vec::new();
        for (place, text) in included {
            let wrong = |found: String, expected: &str| Problem {
                place,
                field: "include".to_owned(),
                found: format!("{}{found}", quoted(&text)),
                expected: expected.to_owned(),
            };
            let other = path.parent().unwrap_or(Path::new("")).join(&text);
            let real = fs::canonicalize(&other).unwrap_or(other.clone());
            if let Some(same) = self.real.iter().position(|(known, _)| *known == real) {
                let circle = std::iter::successors(Some(number), |&n| self.real[n].1)
                    .any(|above| above == same);
                problems.push(match circle {
                    true => wrong(" includes this file".to_owned(), "files without a circle"),
                    false => wrong(" a second time".to_owned(), "each file once"),
                });
                continue;
            }
            if self.paths.len() == FILES_MOST {
                problems.push(wrong(format!(" and {FILES_MOST} files before"), "at most 64 files"));
                break;
            }
            let tree = match self.read(&other, Some(number)) {
                Ok(tree) => tree,
                Err(error) => {
                    problems.push(wrong(format!(": {error}"), "a file that can be read"));
                    continue;
                }
            };
            let of = self.paths.len() - 1;
            match tree.and_then(|tree| self.include(tree, &other, of)) {
                Ok(tree) => merge(&mut root, tree, &mut problems),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() {
            Ok(root)
        } else {
            Err(problems)
        }
    }
}

/// Takes `include` out of a file's tree.
fn includes(root: &mut Node) -> Result<Option<Vec<(Place, String)>>, Vec<Problem>> {
    let Value::Table(entries) = &mut root.value else { return Ok(None) };
    let Some(at) = entries.iter().position(|entry| entry.name == "include") else {
        return Ok(None);
    };
    let node = entries.remove(at).node;
    let mut problems = crate::read::fields::Problems::default();
    let texts = crate::read::fields::texts(&node, "include", &mut problems);
    let texts = texts.into_iter().map(|(place, text)| (place, text.text.clone())).collect();
    if problems.all.is_empty() {
        Ok(Some(texts))
    } else {
        Err(problems.all)
    }
}

/// Adds the rules and the trusted proxies of an included file.
fn merge(root: &mut Node, included: Node, problems: &mut Vec<Problem>) {
    const NAMES: [&str; 6] = ["version", "include", "trusted-proxies", "group", "route", "shadow"];
    let mut found = crate::read::fields::Problems::default();
    crate::read::fields::Fields::new(&included, "", &NAMES, &mut found);
    crate::read::check_version(&included, &mut found);
    problems.extend(found.all);
    let (Value::Table(entries), Value::Table(more)) = (&mut root.value, included.value) else {
        return;
    };
    for entry in more.into_iter().filter(|entry| entry.name != "version") {
        match entries.iter_mut().find(|own| own.name == entry.name) {
            Some(own) => join(own, entry),
            None => entries.push(entry),
        }
    }
}

fn join(own: &mut Entry, other: Entry) {
    match (&mut own.node.value, other.node.value) {
        (Value::Table(own), Value::Table(other)) => own.extend(other),
        (Value::List(own), Value::List(other)) => own.extend(other),
        (Value::List(own), value) => own.push(Node { place: other.node.place, value }),
        (one, other_value) => {
            let first = Node { place: own.node.place, value: one.clone() };
            let second = Node { place: other.node.place, value: other_value };
            *one = match second.value {
                Value::List(list) => Value::List(std::iter::once(first).chain(list).collect()),
                _ => Value::List(vec![first, second]),
            };
        }
    }
}

/// The rules of a text. `name` is for messages.
pub fn text(text: &str, format: Format, name: &Path) -> Result<RuleFile, LoadError> {
    crate::read::read(text, format)
        .map_err(|problems| LoadError::Problems(vec![name.to_owned()], problems))
}
