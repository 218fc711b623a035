//! Reads the requests of one log.

use super::lines::Lines;
use super::options::Options;
use super::parse::{self, Format, Parser, Request};
use super::progress::Progress;
use super::source::Source;
use crate::problem::{Problem, Result};

/// Bad lines that are printed one by one.
const BAD_PRINTED: u64 = 5;

/// What was read of the log.
#[derive(Debug, Default)]
pub struct Input {
    /// The files' names, for messages.
    pub names: Vec<String>,
    /// The format, once a line has been read.
    pub format: Option<Format>,
    /// Lines of all files.
    pub lines: u64,
    /// Lines that are no requests.
    pub bad: u64,
    /// Blank lines.
    pub blank: u64,
    /// Lines that are requests.
    pub requests: u64,
    /// The earliest time.
    pub first: u64,
    /// The latest time.
    pub last: u64,
}

/// Calls `each` for every request, with its number among all requests. `details`: methods, paths
/// and agents are wanted.
pub fn read(
    input: &mut Input,
    options: &Options,
    source: Source,
    details: bool,
    mut each: impl FnMut(u64, &Request<'_>) -> Result<()>,
) -> Result<()> {
    let name = source.name;
    let progress = Progress::new(&name, source.size, source.read);
    let mut parser =
        Parser::new(options.format, options.fields.clone(), details).map_err(Problem::usage)?;
    let mut lines = Lines::new(source.bytes);
    let (bad_before, requests_before) = (input.bad, input.requests);
    input.names.push(name.clone());
    loop {
        let number = lines.number + 1;
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                return Err(Problem::io(format!(
                    "{name}: after line {}: {}",
                    number - 1,
                    crate::text::system(&error)
                )));
            }
        };
        progress.lines(number);
        input.lines += 1;
        // A file may begin with a byte order mark, which some editors write before UTF-8.
        let text = if number == 1 {
            line.text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line.text)
        } else {
            line.text
        };
        if parse::is_blank(text) {
            input.blank += 1;
            continue;
        }
        parser.settle(text).map_err(Problem::usage)?;
        match parser.request(text, line.cut) {
            Ok(Some(request)) => {
                let sequence = input.requests;
                input.requests += 1;
                if sequence == 0 {
                    (input.first, input.last) = (request.time, request.time);
                }
                input.first = input.first.min(request.time);
                input.last = input.last.max(request.time);
                each(sequence, &request)?;
            }
            Ok(None) => {}
            Err(why) => {
                input.bad += 1;
                if input.bad - bad_before <= BAD_PRINTED {
                    progress.complain(&format!("{name}:{number}: {why}"));
                }
            }
        }
    }
    let bad = input.bad - bad_before;
    if bad > BAD_PRINTED {
        progress.complain(&format!("{name}: {bad} bad lines in all"));
    }
    if bad > 0 && input.requests == requests_before {
        progress.complain(&match parser.format() {
            Format::Auto => {
                format!("{name}: no line is of a format that is known (--format names one)")
            }
            format => format!("{name}: no line is of --format {}", format.name()),
        });
    }
    input.format = Some(parser.format());
    Ok(())
}
