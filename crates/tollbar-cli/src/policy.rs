//! Policies on the command line.

use crate::problem::{Problem, Result};
use tollbar::policy::text::parse_checked;
use tollbar::{Policy, State};

/// A policy that a limiter can have, or a message that shows where the text is wrong.
pub fn parse(text: &str) -> Result<Policy> {
    parse_checked(text.as_bytes(), &State::validate).map_err(|error| {
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        // One blank a letter, also where UTF-8 has several bytes for it.
        let before = text.char_indices().take_while(|(at, _)| at + 1 < error.column).count();
        Problem::usage(format!("policy, {error}\n  {shown}\n  {:before$}^", ""))
    })
}
