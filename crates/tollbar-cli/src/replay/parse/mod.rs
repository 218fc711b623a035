//! A line of a log as a request.

mod alb;
mod clf;
mod client;
mod csv;
mod envoy;
mod fields;
mod json;
mod prefixes;
mod request;
mod trace;
mod w3c;

pub use fields::Named;
pub use request::{Key, Request, WrongLine};

use crate::civil;
use std::borrow::Cow;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// By the first line that is of one
    Auto,
    /// Common and Combined Log Format (Apache, nginx, Traefik), also behind the name of a virtual
    /// host
    #[value(alias = "combined")]
    Clf,
    /// A JSON object a line: nginx (escape=json), Caddy, Envoy, Traefik, Cloudflare, Google Cloud
    /// and others, by the names of their fields
    #[value(
        alias = "nginx",
        alias = "caddy",
        alias = "traefik",
        alias = "cloudflare",
        alias = "gcp"
    )]
    Json,
    /// Envoy's default line of text
    Envoy,
    /// HAProxy's lines of HTTP requests
    Haproxy,
    /// AWS Application Load Balancer
    Alb,
    /// W3C extended log format: IIS, Amazon CloudFront
    #[value(alias = "iis", alias = "cloudfront")]
    W3c,
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
            Format::Haproxy => "haproxy",
            Format::Alb => "alb",
            Format::W3c => "w3c",
            Format::Csv => "csv",
            Format::Trace => "trace",
        }
    }

    /// The format of a line; `None` for a line that is of none, or begins as CLF does with
    /// something else than an address.
    pub fn of_line(line: &[u8], named: &Named) -> Option<Format> {
        let line = line.trim_ascii_start();
        if prefixes::behind(line).starts_with(b"{") {
            return Some(Format::Json);
        }
        if line.starts_with(b"[")
            && line.len() > 5
            && civil::rfc3339(line[1..].split(|&b| b == b']').next().unwrap_or(b"")).is_ok()
        {
            return Some(Format::Envoy);
        }
        if trace::parse(line, false).is_ok() {
            return Some(Format::Trace);
        }
        if csv::is_header(line) {
            return Some(Format::Csv);
        }
        if w3c::is_directive(line) {
            return Some(Format::W3c);
        }
        if alb::parse(line, false).is_ok() {
            return Some(Format::Alb);
        }
        let word = named.word("clf").ok().flatten();
        if clf::Clf::haproxy(word).parse(line, false).is_ok() {
            return Some(Format::Haproxy);
        }
        clf::Clf::new(false, word).parse(line, false).is_ok().then_some(Format::Clf)
    }
}

/// Reads lines of one format.
pub enum Parser {
    /// Before the first line that is of a format.
    Auto(Named, bool),
    /// Common and Combined Log Format.
    Clf(clf::Clf),
    /// JSON.
    Json(json::Json),
    /// Envoy's text; whether paths are wanted.
    Envoy,
    /// HAProxy.
    Haproxy(clf::Clf),
    /// Application Load Balancer.
    Alb,
    /// W3C extended.
    W3c(w3c::W3c),
    /// CSV.
    Csv(csv::Csv),
    /// Traces.
    Trace,
}

impl Parser {
    /// A parser. `details`: paths and agents are wanted. The error says which `named` fields the
    /// format cannot have.
    pub fn new(format: Format, named: Named, details: bool) -> Result<Parser, String> {
        let fixed = |parser| named.none(format.name()).map(|()| parser);
        match format {
            Format::Auto => Ok(Parser::Auto(named, details)),
            Format::Clf => Ok(Parser::Clf(clf::Clf::new(details, named.word("clf")?))),
            Format::Json => Ok(Parser::Json(json::Json::new(named))),
            Format::Envoy => fixed(Parser::Envoy),
            Format::Haproxy => Ok(Parser::Haproxy(clf::Clf::haproxy(named.word("haproxy")?))),
            Format::Alb => fixed(Parser::Alb),
            Format::W3c => Ok(Parser::W3c(w3c::W3c::new(named))),
            Format::Csv => Ok(Parser::Csv(csv::Csv::new(named))),
            Format::Trace => fixed(Parser::Trace),
        }
    }

    /// Chooses the format by a log's first line that is of one, unless the caller has named one.
    pub fn settle(&mut self, line: &[u8]) -> Result<(), String> {
        if let Parser::Auto(named, details) = self {
            if let Some(format) = Format::of_line(line, named) {
                *self = Parser::new(format, std::mem::take(named), *details)?;
            }
        }
        Ok(())
    }

    /// The format.
    pub const fn format(&self) -> Format {
        match self {
            Parser::Auto(..) => Format::Auto,
            Parser::Clf(_) => Format::Clf,
            Parser::Json(_) => Format::Json,
            Parser::Envoy => Format::Envoy,
            Parser::Haproxy(_) => Format::Haproxy,
            Parser::Alb => Format::Alb,
            Parser::W3c(_) => Format::W3c,
            Parser::Csv(_) => Format::Csv,
            Parser::Trace => Format::Trace,
        }
    }

    /// The request of a line that is not blank; `None` for a line of column names.
    #[inline]
    pub fn request<'a>(
        &mut self,
        line: &'a [u8],
        cut: bool,
    ) -> Result<Option<Request<'a>>, WrongLine> {
        match self {
            Parser::Clf(clf) | Parser::Haproxy(clf) => clf.parse(line, cut).map(Some),
            Parser::Trace => trace::parse(line, cut).map(Some).map_err(Cow::Borrowed),
            Parser::Json(json) => json.parse(line, cut).map(Some),
            Parser::Envoy => envoy::parse(line, cut).map(Some),
            Parser::Alb => alb::parse(line, cut).map(Some),
            Parser::W3c(w3c) => w3c.parse(line, cut),
            Parser::Csv(csv) => csv.parse(line, cut),
            // What is wrong with the line if it were of the usual format.
            Parser::Auto(named, _) => {
                let word = named.word("clf").ok().flatten();
                clf::Clf::new(false, word).parse(line, cut).map(Some)
            }
        }
    }
}

/// Whether a line has nothing but blanks.
#[inline]
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|&byte| byte == b' ' || byte == b'\t')
}
