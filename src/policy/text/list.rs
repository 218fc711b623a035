//! Lists: two policies joined with `;`.

use super::Reader;
use crate::policy::{Fault, Policy, PolicyError, Rate, SyntaxError};

impl Reader<'_> {
    /// One policy, or a list of two.
    pub(super) fn list(
        &mut self,
        check: &dyn Fn(&Policy) -> Result<(), PolicyError>,
    ) -> Result<Policy, SyntaxError> {
        let first = self.policy(check)?;
        self.blanks();
        if self.peek() != Some(b';') {
            return Ok(first);
        }
        self.at += 1;
        self.blanks();
        let column = self.at + 1;
        let second = self.policy(check)?;
        let list = join(&first, &second).and_then(|list| check(&list).map(|()| list));
        list.map_err(|why| SyntaxError { column, expected: c"", fault: Fault::Policy(why) })
    }
}

/// The policy of a list of two.
fn join(first: &Policy, second: &Policy) -> Result<Policy, PolicyError> {
    let rate = Rate { limit: second.limit, period: second.period, burst: second.burst };
    let plain =
        Policy { unit: second.unit, ..Policy::new(rate.limit, rate.period).with_burst(rate.burst) };
    if *second != plain || first.unit != second.unit {
        return Err(PolicyError::List);
    }
    let list = Policy { second: Some(rate), ..*first };
    list.validate().map(|()| list)
}
