//! Where rules come from, and why they cannot be loaded.

use crate::problem::{Problem, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use tollbar_rules::{read, read_file, Format, LoadError, Options, RuleFile, Rules};

/// A rules file, or standard input.
pub enum RulesSource {
    File(PathBuf),
    Text(String, Format),
}

impl RulesSource {
    /// Reads standard input for `-`.
    pub fn read(file: &str, yaml: bool) -> Result<RulesSource> {
        if file != "-" {
            return Ok(RulesSource::File(PathBuf::from(file)));
        }
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Problem::system("standard input", &error))?;
        Ok(RulesSource::Text(text, if yaml { Format::Yaml } else { Format::Toml }))
    }

    /// The rules in force, as a program opens them.
    pub fn open(&self, options: &Options) -> Result<Rules> {
        let opened = match self {
            RulesSource::File(path) => Rules::open(path, options),
            RulesSource::Text(text, format) => Rules::from_text(text, *format, options),
        };
        opened.map_err(|error| self.problem(error))
    }

    /// The rules as plain data.
    pub fn rules(&self) -> Result<RuleFile> {
        match self {
            RulesSource::File(path) => read_file(path).map_err(|error| self.problem(error)),
            RulesSource::Text(text, format) => read(text, *format).map_err(|problems| {
                problem(&LoadError::Problems(vec![PathBuf::from("-")], problems))
            }),
        }
    }

    /// The name for messages.
    pub fn name(&self) -> &Path {
        match self {
            RulesSource::File(path) => path,
            RulesSource::Text(..) => Path::new("-"),
        }
    }

    fn problem(&self, error: LoadError) -> Problem {
        problem(&match (self, error) {
            (RulesSource::Text(..), LoadError::Problems(_, problems)) => {
                LoadError::Problems(vec![PathBuf::from("-")], problems)
            }
            (_, error) => error,
        })
    }
}

/// Why rules cannot be loaded, for the command's user.
pub fn problem(error: &LoadError) -> Problem {
    match error {
        LoadError::Problems(..) => Problem::faults(error.to_string()),
        LoadError::Read(path, error) => Problem::system(&path.display().to_string(), error),
        _ => Problem::io(error.to_string()),
    }
}
