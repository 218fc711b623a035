//! The answer of rules to a request.

use crate::charge::Decided;
use crate::rule::{Missing, Refusal};
use crate::set::Set;
use crate::taken::Taken;
use arc_swap::Guard;
use std::sync::Arc;
use tollbar::{Decision, Policy, Reason};

/// The decision on a request.
#[derive(Debug)]
pub struct Answer {
    pub(super) set: Guard<Arc<Set>>,
    pub(super) decided: Decided,
    pub(super) taken: Taken,
}

impl Answer {
    /// Whether the request may pass.
    pub fn is_allowed(&self) -> bool {
        self.decided.decision.is_allowed()
    }

    /// The decision of all limits together.
    pub fn decision(&self) -> &Decision {
        &self.decided.decision
    }

    /// The name of the binding rule: the one that refuses or, in an admission, the one with the
    /// fewest permits left. `None` if no rule matches.
    pub fn rule(&self) -> Option<&str> {
        Some(&self.set.rules().get(self.decided.rule?)?.name)
    }

    /// The policy of the binding limit: that of the key, if the rule has one for it. `None` if no
    /// limit took part in the decision.
    pub fn policy(&self) -> Option<&Policy> {
        self.decided.policy.as_ref()
    }

    /// The status to answer: 200 for a request that may pass.
    pub fn status(&self) -> u16 {
        self.refusal().map_or(200, |refusal| refusal.status)
    }

    /// The body to answer; empty for a request that may pass.
    pub fn body(&self) -> &str {
        self.refusal().map_or("", |refusal| &refusal.body)
    }

    /// What [`Rules::settle`](super::Rules::settle) needs of this decision, if the request was
    /// admitted.
    pub fn taken(&self) -> Taken {
        self.taken
    }

    /// The number of the set that decided ([`Set::generation`]).
    pub fn generation(&self) -> u64 {
        self.set.generation()
    }

    fn refusal(&self) -> Option<&Refusal> {
        if self.is_allowed() {
            return None;
        }
        let rule = self.set.rules().get(self.decided.rule?)?;
        match &rule.missing {
            _ if self.decided.decision.reason != Reason::MissingKey => Some(&rule.refusal),
            Missing::Deny(refusal) => Some(refusal),
            Missing::Allow => Some(&AMBIGUOUS),
        }
    }
}

/// The answer to a request with several values of its key, under a rule that admits requests
/// without one.
static AMBIGUOUS: Refusal = Refusal { status: 403, body: String::new() };
