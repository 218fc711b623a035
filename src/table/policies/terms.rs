//! How keys come under a version of a policy.

use super::Keep;

/// How the debts of keys come to a version of a policy, and from an override's version back to the
/// policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) keep: Keep,
    /// Whether the version is of single keys, and not of all keys of its policy.
    pub(crate) is_override: bool,
}

impl Terms {
    pub(crate) const fn of_policy(keep: Keep) -> Terms {
        Terms { keep, is_override: false }
    }

    pub(crate) const fn of_override(keep: Keep) -> Terms {
        Terms { keep, is_override: true }
    }

    /// What keys under `old` keep when they come under these. The end of an override keeps what its
    /// beginning kept.
    pub(crate) const fn keep_from(self, old: Terms) -> Keep {
        if old.is_override && !self.is_override {
            old.keep
        } else {
            self.keep
        }
    }
}
