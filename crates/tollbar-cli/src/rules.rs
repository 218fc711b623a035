//! `tollbar rules`: checks, tests and explains rules files.

mod cases;
mod source;
mod test;

use crate::problem::{Problem, Result};
pub use source::problem;
use source::RulesSource;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tollbar_rules::{explain, lint, Field, Format, Level, LoadError, Options};

/// Checks and explains rules files
#[derive(clap::Subcommand)]
pub enum RulesCommand {
    /// Reads a rules file, and says what its writer may not mean; faults end it with status 2, and
    /// warnings with status 3
    Check {
        /// The rules file: TOML, or YAML by its name; - is standard input
        file: String,
        /// Standard input is YAML
        #[arg(long)]
        yaml: bool,
    },
    /// Makes the requests of a file of cases, and says which the rules decide otherwise; failed
    /// cases end it with status 3
    Test {
        /// The rules file; - is standard input
        file: String,
        /// The cases: TOML, or YAML by its name
        cases: String,
        /// Standard input is YAML
        #[arg(long)]
        yaml: bool,
    },
    /// Translates another program's limits into a rules file, and prints a remark for each line
    /// that rules cannot express
    Import {
        /// The program
        #[arg(value_enum)]
        from: From,
        /// Its configuration
        file: String,
    },
    /// Says which rules a request matches and why
    Explain {
        /// The rules file; - is standard input
        file: String,
        /// The request's method
        method: String,
        /// The request's path
        path: String,
        /// Headers as NAME:VALUE. Names that begin with a colon are the server's own words, such as
        /// :address:192.0.2.1
        #[arg(value_name = "HEADER")]
        headers: Vec<String>,
    },
}

/// A program whose limits can be read.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum From {
    /// nginx: limit_req, and remarks for limit_conn
    Nginx,
    /// Envoy in YAML: descriptors of its rate limit service, and local rate limits
    Envoy,
    /// Limitador's limits in YAML
    Limitador,
    /// Kong in declarative YAML or JSON: the plugin rate-limiting
    Kong,
    /// Traefik in YAML, or in TOML by the file's name: the middleware rateLimit
    Traefik,
}

/// Runs the command.
pub fn run(command: RulesCommand) -> Result<()> {
    match command {
        RulesCommand::Check { file, yaml } => check(&RulesSource::read(&file, yaml)?),
        RulesCommand::Test { file, cases, yaml } => {
            test::test(&RulesSource::read(&file, yaml)?, &cases)
        }
        RulesCommand::Import { from, file } => import(from, &file),
        RulesCommand::Explain { file, method, path, headers } => {
            let rules = RulesSource::read(&file, false)?.rules()?;
            let mut fields = vec![
                Field::new(b":method", method.as_bytes()),
                Field::new(b":path", path.as_bytes()),
            ];
            for header in &headers {
                fields.push(field(header)?);
            }
            crate::stdout::print(explain(&rules, &fields).as_bytes())
        }
    }
}

fn field(text: &str) -> Result<Field<'_>> {
    // The colon that ends the name; the first one may begin it.
    let end = text.char_indices().skip(1).find(|(_, c)| *c == ':').map(|(at, _)| at);
    let wrong = || Problem::usage(format!("a header is NAME:VALUE, not {text:?}"));
    let (name, value) = end.map(|end| (&text[..end], text[end + 1..].trim())).ok_or_else(wrong)?;
    Ok(Field::new(name.as_bytes(), value.as_bytes()))
}

fn check(source: &RulesSource) -> Result<()> {
    // As a program opens them: what has no room in a table is a fault, too.
    drop(source.open(&Options::default())?);
    let rules = source.rules()?;
    let (findings, file) = (lint(&rules), source.name().display());
    let mut out = String::new();
    for finding in &findings {
        let of = if rules.files.is_empty() {
            source.name()
        } else {
            finding.place.file_in(&rules.files)
        };
        let _ = writeln!(out, "{}:{finding}", of.display());
    }
    let limits: usize = rules.rules.iter().map(|rule| rule.limits.len()).sum();
    let warnings = findings.iter().filter(|finding| finding.level != Level::Note).count();
    let (rules, limits) = (
        crate::text::count(rules.rules.len() as u64, "rule"),
        crate::text::count(limits as u64, "limit"),
    );
    let _ = writeln!(
        out,
        "{file}: {rules} with {limits}, {}",
        crate::text::count(warnings as u64, "warning")
    );
    crate::stdout::print(out.as_bytes())?;
    // A worst case above the limit may be intended.
    match findings.iter().filter(|finding| finding.level == Level::Warning).count() {
        0 => Ok(()),
        faults => {
            Err(Problem::found(format!("{file}: {}", crate::text::count(faults as u64, "warning"))))
        }
    }
}

fn import(from: From, file: &str) -> Result<()> {
    use crate::import;
    let text = std::fs::read_to_string(file).map_err(|error| Problem::system(file, &error))?;
    let imported = match from {
        From::Nginx => import::nginx(&text),
        From::Envoy => import::envoy(&text),
        From::Limitador => import::limitador(&text),
        From::Kong => import::kong(&text),
        From::Traefik => import::traefik(&text, Format::of(Path::new(file))),
    };
    let imported = imported
        .map_err(|problems| problem(&LoadError::Problems(vec![PathBuf::from(file)], problems)))?;
    let shown = crate::text::plain_line(file.as_bytes());
    for remark in &imported.remarks {
        eprintln!("{shown}:{}: {}", remark.place, crate::text::plain_line(remark.text.as_bytes()));
    }
    if imported.limits == 0 {
        return Err(Problem::io(format!(
            "{file}: no limit was found that a rules file can have, so there is no rules file"
        )));
    }
    crate::stdout::print(imported.toml.as_bytes())
}
