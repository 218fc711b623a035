//! Standard output.

use crate::problem::{Problem, Result};
use std::io::Write;

/// Writes text to standard output and says so if it cannot be written.
pub fn print(text: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)
        .and_then(|()| out.flush())
        .map_err(|error| Problem::system("standard output", &error))
}
