//! What an answer of the store says of a key, for the key's line.

use super::bucket::Grant;
use super::terms::Terms;

/// What an answer says of the key. The default is a question that got no answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    /// Permits of the right that the store has charged.
    pub(super) confirmed: u64,
    /// The key has no right before this time. 0: it has. `None`: as it was.
    pub(super) shut: Option<u64>,
    /// The store has no permits before this time, and whether it has not even one. `None`: it has.
    pub(super) dry: Option<(u64, bool)>,
    /// The permits of the lease that came with it; 0: none.
    pub(super) granted: u64,
}

/// The shortest wait before the next question about a key for which the store had nothing, in
/// nanoseconds.
const RETRY_LEAST: u64 = 200_000;

impl Said {
    /// What `grant`, which came at `now`, says of a key. The question reported `confirmed` permits
    /// of the right, and requests waited for `waited` permits. The upper six bits of `jitter`
    /// spread the machines that ask again.
    pub fn of(
        terms: &Terms,
        grant: &Grant,
        (confirmed, waited): (u64, u64),
        jitter: u64,
        now: u64,
    ) -> Said {
        let nanos = |micros: u64| micros.saturating_mul(1000);
        // A right that is not whole comes back when the key's bucket may be full, and not before
        // the rate has brought all that the store may grant.
        let refill = grant.tat.saturating_sub(grant.now).max(terms.cap);
        let is_whole = grant.open || terms.overdraft == 0;
        let shut = if is_whole { 0 } else { now.saturating_add(nanos(refill)) };
        let mut said = Said { confirmed, shut: Some(shut), dry: None, granted: grant.permits };
        if grant.permits == 0 && grant.retry != 0 {
            let (wait, is_firm) = (nanos(grant.retry).max(RETRY_LEAST), grant.served < waited);
            // A random part of up to a quarter spreads the machines that ask for leases of one
            // exhausted key. Requests that wait are refused for no longer than the store says.
            let part = if is_firm { 0 } else { (wait / 256).saturating_mul(jitter >> 58) };
            said.dry = Some((now.saturating_add(wait).saturating_add(part), is_firm));
        }
        said
    }
}
