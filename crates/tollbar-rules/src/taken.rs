//! What an admitted request has taken.

use crate::rule::Role;
use crate::set::Set;

/// What [`Rules::settle`](crate::Rules::settle) needs of an admission: plain data, which callers
/// may store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The set of rules that decided.
    pub generation: u64,
    /// When the estimates were taken, on the scale of [`Rules::now`](crate::Rules::now). 0 if no
    /// cost of these rules is that of an answer.
    pub at: u64,
    /// The shadows that have taken nothing, because they would have refused the request: a bit for
    /// each shadow of the set in its order. Shadows beyond the 64th are never settled.
    pub refused_shadows: u64,
}

impl Taken {
    pub(crate) fn note_refused_shadow(&mut self, set: &Set, shadow: usize) {
        self.refused_shadows |= bit(set, shadow).unwrap_or(0);
    }

    pub(crate) fn has_charged(&self, set: &Set, rule: usize) -> bool {
        match set.rules()[rule].role {
            Role::Shadow(_) => bit(set, rule).is_some_and(|bit| self.refused_shadows & bit == 0),
            _ => true,
        }
    }
}

/// The bit of a shadow. Shadows are the last rules of a set.
fn bit(set: &Set, shadow: usize) -> Option<u64> {
    let first = set.rules().iter().position(|rule| matches!(rule.role, Role::Shadow(_)))?;
    u32::try_from(shadow.checked_sub(first)?).ok().and_then(|n| 1_u64.checked_shl(n))
}
