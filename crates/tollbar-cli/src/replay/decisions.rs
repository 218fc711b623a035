//! A line for each decision, in the order of the log.

use super::options::Options;
use super::source::{identity, Source};
use crate::problem::{Problem, Result};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use tollbar::{Decision, Verdict};

/// The file of `--decisions`.
pub struct Decisions {
    path: String,
    file: BufWriter<File>,
    /// Requests whose turn has not come in the file, because an older line of the log is still
    /// waiting for its decision.
    waiting: VecDeque<Option<Vec<u8>>>,
    /// The number of the first request in `waiting`.
    next: u64,
}

impl Decisions {
    /// The file for the decisions of these options. `first` is the first log, which is open.
    pub fn of_options(path: &str, options: &Options, first: &Source) -> Result<Decisions> {
        let log = |name: &str| format!("{name}: decisions would overwrite the log");
        let mut others = vec![(first.identity, log(&first.name))];
        for name in &options.logs[1..] {
            let identity = std::fs::metadata(name).ok().and_then(|metadata| identity(&metadata));
            others.push((identity, log(name)));
        }
        let stdout = std::fs::metadata("/dev/stdout").ok().and_then(|metadata| identity(&metadata));
        others.push((stdout, format!("{path}: the report would overwrite the decisions")));
        Decisions::open(path, &others)
    }

    /// Opens the file and does not truncate it before it is known to be none of `others` (files
    /// with a message each).
    pub fn open(path: &str, others: &[(Option<(u64, u64)>, String)]) -> Result<Decisions> {
        let wrong = |error: std::io::Error| Problem::system(path, &error);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(wrong)?;
        let metadata = file.metadata().map_err(wrong)?;
        let own = identity(&metadata);
        if let Some((_, text)) = others.iter().find(|(other, _)| other.is_some() && *other == own) {
            return Err(Problem::usage(text.clone()));
        }
        if metadata.is_file() {
            file.set_len(0).map_err(wrong)?;
        }
        Ok(Decisions {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 16, file),
            waiting: VecDeque::new(),
            next: 0,
        })
    }

    /// The decisions of all policies on request `sequence` of the log.
    pub fn write(&mut self, sequence: u64, decisions: &[Decision]) -> Result<()> {
        let mut text = Vec::with_capacity(24 * decisions.len());
        for decision in decisions {
            let letter = match decision.verdict {
                Verdict::Allowed => 'A',
                Verdict::Denied => 'D',
                Verdict::Never => 'N',
            };
            // Writing to memory does not fail.
            let _ = match decision.retry_ns() {
                Some(retry) => writeln!(text, "{letter} {} {retry}", decision.remaining),
                None => writeln!(text, "{letter} {} -", decision.remaining),
            };
        }
        self.write_text(sequence, text)
    }

    /// The line for request `sequence` of the log.
    pub fn write_text(&mut self, sequence: u64, text: Vec<u8>) -> Result<()> {
        if sequence == self.next && self.waiting.is_empty() {
            self.next += 1;
            return self.file.write_all(&text).map_err(|error| Problem::system(&self.path, &error));
        }
        let at = (sequence - self.next) as usize;
        if at >= self.waiting.len() {
            self.waiting.resize_with(at + 1, || None);
        }
        self.waiting[at] = Some(text);
        while let Some(Some(text)) = self.waiting.front() {
            self.file.write_all(text).map_err(|error| Problem::system(&self.path, &error))?;
            self.waiting.pop_front();
            self.next += 1;
        }
        Ok(())
    }

    /// Writes the buffered rest, so that a full disk is reported and not lost.
    pub fn close(mut self) -> Result<()> {
        self.file.flush().map_err(|error| Problem::system(&self.path, &error))
    }
}
