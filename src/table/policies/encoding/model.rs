//! The encoding of loom's models, whose policies have a limit and a period. Each word of a record
//! doubles the ways in which loom reads it.

use super::terms::Terms;
use super::Keep;
use crate::policy::Policy;
use crate::table::memory::layout::RECORD_WORDS;

const IS_OVERRIDE: u64 = 1 << 63;

/// The words of a policy of a model.
pub(crate) fn encode(policy: &Policy, terms: Terms) -> [u64; RECORD_WORDS] {
    [policy.limit, policy.period | if terms.is_override { IS_OVERRIDE } else { 0 }]
}

/// The policy of these words.
pub(crate) fn decode([limit, last]: &[u64; RECORD_WORDS]) -> Option<(Policy, Terms)> {
    let of = if last & IS_OVERRIDE == 0 { Terms::of_policy } else { Terms::of_override };
    Some((Policy::new(*limit, last & !IS_OVERRIDE), of(Keep::Count)))
}
