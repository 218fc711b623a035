//! A rule while its file is read.

use crate::file::Place;
use crate::rule::{Refusal, Rule};

/// The file's settings for rules that have none of their own.
pub struct Defaults {
    pub refusal: (Option<u16>, Option<String>),
}

impl Defaults {
    pub fn refusal(&self, status: u16) -> Refusal {
        Refusal::or(self.refusal.clone(), &Refusal { status, body: String::new() })
    }
}

/// A rule whose references to other rules are still names.
pub struct Draft {
    pub rule: Rule,
    pub field: String,
    pub of: Option<(Place, String)>,
    pub replaces: Vec<(Place, String)>,
    /// Of a limit or a plan: the name of its rule.
    pub part_of: Option<String>,
    /// Whether a shadow has a field `key`. Otherwise it has the key of its rule.
    pub own_key: bool,
}

impl Draft {
    /// A rule of the file that names no other one, but is perhaps a part of one.
    pub fn of_rule(rule: Rule, field: String, part_of: Option<String>) -> Draft {
        Draft { rule, field, of: None, replaces: Vec::new(), part_of, own_key: true }
    }
}
