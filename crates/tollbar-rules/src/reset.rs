//! Keys that begin anew, at the word of an operator.

use crate::engine::Rules;
use crate::rule::Rule;
use std::fmt;
use tollbar::table::{RequestError, TableError};

/// Why nothing was reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetError {
    /// The rules in force have no rule of that name.
    NoSuchRule(String),
    /// The rule's key is the client's address, and the text is none.
    NotAnAddress(String),
    /// The keys of the rule have no text: they come from several sources, or are one for all
    /// requests.
    NoText,
    /// The states are shared, and only the process of this number, which opened the rules, can
    /// reset all keys of a rule.
    OtherProcess(u32),
    /// The table's error.
    Table(TableError),
}

impl fmt::Display for ResetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetError::NoSuchRule(name) => {
                write!(f, "no rule \"{name}\"; expected the name of a rule in force")
            }
            ResetError::NotAnAddress(text) => {
                write!(f, "\"{text}\"; expected an address, which the rule's key is")
            }
            ResetError::NoText => f.write_str(
                "a key of a rule whose keys have no text; expected no key, for all of them",
            ),
            ResetError::OtherProcess(owner) => {
                write!(f, "the rules belong to process {owner}; expected a reset in that process")
            }
            ResetError::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ResetError {}

impl From<RequestError> for ResetError {
    fn from(error: RequestError) -> ResetError {
        ResetError::Table(error.into())
    }
}

impl From<TableError> for ResetError {
    fn from(error: TableError) -> ResetError {
        ResetError::Table(error)
    }
}

impl Rules {
    /// Lets the keys of a rule begin anew: the one with this text, as `keys` and `exempt` of the
    /// file write it, or all. Returns whether they do: one key keeps its debt if the table has no
    /// other slot for it ([`Table::reset`](tollbar::table::Table::reset)). Requests go on
    /// meanwhile.
    ///
    /// A reset of all keys reads every slot of the table. Sliding windows and logs get a new table,
    /// which processes that were forked before do not see.
    ///
    /// # Errors
    /// [`ResetError`].
    pub fn reset(&self, rule: &str, key: Option<&str>) -> Result<bool, ResetError> {
        let Some(text) = key else { return self.reset_all(rule) };
        let set = self.set();
        let (n, of) = numbered(set.rules(), rule)?;
        let text = if set.file.spelling.any_case && of.key.is_of_path() {
            text.to_ascii_lowercase()
        } else {
            text.to_owned()
        };
        let bytes = of.key.named(&text).ok_or_else(|| match of.key.is_address() {
            true => ResetError::NotAnAddress(text.clone()),
            false => ResetError::NoText,
        })?;
        let mut all = true;
        for home in set.homes.get(n).into_iter().flatten() {
            let (table, id) = home.table(self.table());
            all &= table.reset(id, &bytes)?;
        }
        Ok(all)
    }

    fn reset_all(&self, rule: &str) -> Result<bool, ResetError> {
        // No reload may change the policies meanwhile.
        let mut store = self.lock_store().map_err(ResetError::OtherProcess)?;
        let set = self.set();
        let (n, _) = numbered(set.rules(), rule)?;
        let anew = store.begin_anew(&set, n)?;
        self.put_in_force(anew);
        Ok(true)
    }
}

fn numbered<'a>(rules: &'a [Rule], name: &str) -> Result<(usize, &'a Rule), ResetError> {
    let found = rules.iter().enumerate().find(|(_, rule)| rule.name == name);
    found.ok_or_else(|| ResetError::NoSuchRule(name.to_owned()))
}
