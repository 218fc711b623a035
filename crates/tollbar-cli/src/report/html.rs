//! The page: one file with the data, the charts' library and the script in it.

use super::data::Data;
use crate::problem::{Problem, Result};
use std::fs::File;
use std::io::{BufWriter, Write};

const PAGE: &str = include_str!("../../page/page.html");
const STYLE: &str = include_str!("../../page/page.css");
const SCRIPT: &str = include_str!("../../page/page.js");
const PLOT: &str = include_str!("../../page/vendor/plot.js");

/// Writes the page.
pub fn write(path: &str, data: &Data) -> Result<()> {
    let wrong = |error: std::io::Error| Problem::system(path, &error);
    let json = serde_json::to_string(data).map_err(|error| Problem::io(error.to_string()))?;
    let mut out = BufWriter::new(File::create(path).map_err(wrong)?);
    let mut rest = PAGE;
    while let Some(begin) = rest.find("{{") {
        let end = rest[begin..].find("}}").map_or(rest.len(), |end| begin + end + 2);
        let part = match &rest[begin..end] {
            "{{STYLE}}" => STYLE,
            "{{SCRIPT}}" => SCRIPT,
            "{{PLOT}}" => PLOT,
            // No text of the log can end the element that it is in.
            _ => &json.replace('<', "\\u003c"),
        };
        out.write_all(&rest.as_bytes()[..begin])
            .and_then(|()| out.write_all(part.as_bytes()))
            .map_err(wrong)?;
        rest = &rest[end..];
    }
    out.write_all(rest.as_bytes()).and_then(|()| out.flush()).map_err(wrong)
}
