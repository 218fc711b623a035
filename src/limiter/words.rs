//! The common part of rings and logs, the states of more than one word.

use super::fast::Fast;
use super::state_word::{given_up, retry_until};
use super::{Shared, Watch};
use crate::decision::{Decision, Verdict};

/// A ring or a log as one caller sees it. All answers are `None` if the word that decides is no
/// longer the caller's, or after [`TRIES`](super::state_word::TRIES) rounds. Then nothing has been
/// taken.
pub(crate) trait Protocol {
    /// The policy's limit.
    fn limit(&self) -> u64;

    /// [`Shared::admit_at`].
    fn admit(&self, now: u64, cost: u64) -> Option<Verdict>;

    /// The verdict of a peek.
    fn would_admit(&self, now: u64, cost: u64) -> Option<Verdict>;

    /// [`Shared::take_up_to_at`].
    fn take_up_to(&self, now: u64, most: u64) -> Option<u64>;

    /// The full decision on a request whose verdict is known.
    fn describe(&self, verdict: Verdict, now: u64, cost: u64) -> Option<Decision>;

    /// [`Shared::check_at`].
    fn check(&self, now: u64, cost: u64) -> Option<Decision> {
        let verdict = self.admit(now, cost)?;
        let described = self.describe(verdict, now, cost);
        // The permits have been taken. If the slot has changed hands since, the caller must not try
        // again.
        described
            .or((verdict == Verdict::Allowed && cost != 0)
                .then_some(given_up(verdict, self.limit())))
    }

    /// [`Shared::peek_at`].
    fn peek(&self, now: u64, cost: u64) -> Option<Decision> {
        self.describe(self.would_admit(now, cost)?, now, cost)
    }
}

/// A limiter's state of more than one word.
pub(crate) trait SeveralWords: Sync {
    /// The state as a caller sees it.
    type View<'a>: Protocol
    where
        Self: 'a;

    fn view(&self) -> Self::View<'_>;

    /// [`Protocol::describe`]. Out of line in the freestanding artefacts, to keep them small.
    #[cfg_attr(feature = "small", inline(never))]
    fn describe(&self, verdict: Verdict, now: u64, cost: u64) -> Decision {
        retry_until(|| self.view().describe(verdict, now, cost))
    }

    /// [`Shared::reset`].
    fn reset(&self);

    /// [`Shared::watch`].
    fn watch(&self) -> &Watch;
}

impl<S: SeveralWords> Fast for S {
    fn admit_without_credit_at(&self, now: u64, cost: u64) -> Verdict {
        self.admit_at(now, cost)
    }
}

impl<S: SeveralWords> Shared for S {
    #[inline]
    fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        let view = self.view();
        let takes = cost != 0 && cost <= view.limit();
        if takes {
            SeveralWords::watch(self).note(now);
        }
        let verdict = retry_until(|| view.admit(now, cost));
        if takes && verdict == Verdict::Allowed {
            SeveralWords::watch(self).admitted(now);
        }
        verdict
    }

    fn check_at(&self, now: u64, cost: u64) -> Decision {
        self.describe(self.admit_at(now, cost), now, cost)
    }

    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        self.describe(retry_until(|| self.view().would_admit(now, cost)), now, cost)
    }

    fn take_up_to_at(&self, now: u64, most: u64) -> u64 {
        SeveralWords::watch(self).note(now);
        let taken = retry_until(|| self.view().take_up_to(now, most));
        if taken != 0 {
            SeveralWords::watch(self).admitted(now);
        }
        taken
    }

    fn reserve_at(&self, _now: u64, _cost: u64, _until: u64) -> Option<u64> {
        None
    }

    fn books_ahead(&self) -> bool {
        false
    }

    fn reset(&self) {
        SeveralWords::reset(self);
    }

    fn watch(&self) -> &Watch {
        SeveralWords::watch(self)
    }
}
