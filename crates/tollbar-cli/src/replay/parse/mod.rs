//! A line of a log as a request.

mod clf;
mod csv;
mod envoy;
mod fields;
mod json;
mod trace;

pub use fields::Named;

use crate::civil;
use std::borrow::Cow;

/// One request.
#[derive(Debug, Default)]
pub struct Request<'a> {
    /// Nanoseconds of Unix time (of a trace: of its own clock).
    pub time: u64,
    /// The client's address, or a trace's key.
    pub key: Cow<'a, [u8]>,
    /// Permits.
    pub cost: u64,
    /// The name or number of its class in the policy; empty for a request without a class.
    pub class: Cow<'a, [u8]>,
    /// The requested path; empty if the line has none, or the caller needs none.
    pub path: Cow<'a, [u8]>,
    /// The user agent; empty in the same cases as the path.
    pub agent: Cow<'a, [u8]>,
    /// The method; empty in the same cases as the path.
    pub method: Cow<'a, [u8]>,
}

/// Why a line is no request.
pub type Wrong = Cow<'static, str>;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// By the first line that is not blank
    Auto,
    /// Common and Combined Log Format (Apache, nginx)
    #[value(alias = "combined")]
    Clf,
    /// A JSON object a line: nginx (escape=json), Caddy, Envoy and others, by the names of their fields
    #[value(alias = "nginx", alias = "caddy")]
    Json,
    /// Envoy's default line of text
    Envoy,
    /// Comma-separated values; the first line has the columns' names
    Csv,
    /// Lines of "time_ns key cost"
    Trace,
}

impl Format {
    /// The name that the command line has.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Auto => "auto",
            Format::Clf => "clf",
            Format::Json => "json",
            Format::Envoy => "envoy",
            Format::Csv => "csv",
            Format::Trace => "trace",
        }
    }

    /// The format that a log's first line has.
    pub fn of_line(line: &[u8]) -> Format {
        let line = line.trim_ascii_start();
        if line.starts_with(b"{") {
            return Format::Json;
        }
        if line.starts_with(b"[")
            && line.len() > 5
            && civil::rfc3339(line[1..].split(|&b| b == b']').next().unwrap_or(b"")).is_ok()
        {
            return Format::Envoy;
        }
        if trace::parse(line, false).is_ok() {
            return Format::Trace;
        }
        if csv::is_header(line) {
            return Format::Csv;
        }
        Format::Clf
    }
}

/// Reads lines of one format.
pub enum Parser {
    /// Before the first line.
    Auto(Named, bool),
    /// Common and Combined Log Format.
    Clf(clf::Clf),
    /// JSON.
    Json(json::Json),
    /// Envoy's text; whether paths are wanted.
    Envoy,
    /// CSV.
    Csv(csv::Csv),
    /// Traces.
    Trace,
}

impl Parser {
    /// A parser. `details`: paths and agents are wanted.
    pub fn new(format: Format, named: Named, details: bool) -> Parser {
        match format {
            Format::Auto => Parser::Auto(named, details),
            Format::Clf => Parser::Clf(clf::Clf::new(details)),
            Format::Json => Parser::Json(json::Json::new(named)),
            Format::Envoy => Parser::Envoy,
            Format::Csv => Parser::Csv(csv::Csv::new(named)),
            Format::Trace => Parser::Trace,
        }
    }

    /// Chooses the format by the log's first line that is not blank, unless the caller has named one.
    pub fn settle(&mut self, line: &[u8]) {
        if let Parser::Auto(named, details) = self {
            *self = Parser::new(Format::of_line(line), std::mem::take(named), *details);
        }
    }

    /// The format.
    pub const fn format(&self) -> Format {
        match self {
            Parser::Auto(..) => Format::Auto,
            Parser::Clf(_) => Format::Clf,
            Parser::Json(_) => Format::Json,
            Parser::Envoy => Format::Envoy,
            Parser::Csv(_) => Format::Csv,
            Parser::Trace => Format::Trace,
        }
    }

    /// The request of a line that is not blank; `None` for a line of column names.
    #[inline]
    pub fn request<'a>(&mut self, line: &'a [u8], cut: bool) -> Result<Option<Request<'a>>, Wrong> {
        match self {
            Parser::Clf(clf) => clf.parse(line, cut).map(Some).map_err(Cow::Borrowed),
            Parser::Trace => trace::parse(line, cut).map(Some).map_err(Cow::Borrowed),
            Parser::Json(json) => json.parse(line, cut).map(Some),
            Parser::Envoy => envoy::parse(line, cut).map(Some).map_err(Cow::Borrowed),
            Parser::Csv(csv) => csv.parse(line, cut),
            Parser::Auto(..) => Err(Cow::Borrowed("no format")),
        }
    }
}

/// Whether a line has nothing but blanks.
#[inline]
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| byte == b' ' || byte == b'\t')
}

/// Refuses control bytes: an address has none, and what is shown of it could steer a terminal.
#[inline]
fn address(key: &[u8]) -> Result<&[u8], &'static str> {
    match key.iter().any(|&byte| byte < 0x20 || byte == 0x7f) {
        true => Err("a control byte in the client's address"),
        false => Ok(key),
    }
}

/// `GET /path HTTP/1.1` as its method; empty if the line has one word.
fn method_of(request: &[u8]) -> &[u8] {
    request.iter().position(|&byte| byte == b' ').map_or(b"", |end| &request[..end])
}

/// `GET /path HTTP/1.1` as its path.
fn path_of(request: &[u8]) -> &[u8] {
    let mut words = request.split(|&byte| byte == b' ');
    match (words.next(), words.next()) {
        (Some(_), Some(path)) => path,
        (Some(only), None) => only,
        _ => b"",
    }
}
