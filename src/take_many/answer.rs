//! The common answer of several limits.

use super::part::Part;
use super::Taken;
use crate::decision::{Decision, Reason, Verdict};
use crate::units::NEVER;

/// Counts an admission, and combines the limits' decisions.
#[inline]
pub(super) fn admitted(parts: &[Part<'_>], decisions: Option<&mut [Decision]>) -> Taken {
    parts.iter().for_each(Part::admit);
    match decisions {
        None => Taken { decision: UNLIMITED, bound: 0 },
        Some(decisions) => combined(parts, decisions),
    }
}

/// Combines the limits' decisions on an admitted request.
#[inline(never)]
fn combined(parts: &[Part<'_>], decisions: &mut [Decision]) -> Taken {
    decisions.fill(UNLIMITED);
    let mut all: Option<Taken> = None;
    for part in parts {
        let Some(decision) = part.decided() else { continue };
        part.write_to(decision, decisions);
        let part = Taken { decision, bound: part.index };
        all = Some(
            all.map_or(part, |all| sum(all, part, decision.remaining < all.decision.remaining)),
        );
    }
    all.unwrap_or(Taken { decision: UNLIMITED, bound: 0 })
}

/// Combines the limits' decisions on a refused request, and counts the refusal for the binding
/// limit.
#[inline(never)]
pub(super) fn refused(parts: &[Part<'_>], mut decisions: Option<&mut [Decision]>) -> Taken {
    let mut all: Option<Taken> = None;
    let mut binding = None;
    if let Some(decisions) = &mut decisions {
        decisions.fill(UNLIMITED);
    }
    for part in parts {
        // A limit that refused its charge may have permits again now. The decision is still its
        // refusal.
        let refused = part.decision.filter(|decision| !decision.is_allowed());
        let Some(decision) = refused.or_else(|| part.peek()) else { continue };
        if let Some(decisions) = &mut decisions {
            part.write_to(decision, decisions);
        }
        let taken = Taken { decision, bound: part.index };
        let binds = all.map_or(true, |all| {
            let wait = |decision: &Decision| (decision.verdict as u32, decision.retry_after);
            wait(&decision) > wait(&all.decision)
        });
        all = Some(all.map_or(taken, |all| sum(all, taken, binds)));
        if binds {
            binding = Some(part);
        }
    }
    // One limit refused the request, and now all limits would admit it.
    let mut taken = all
        .filter(|all| !all.decision.is_allowed())
        .unwrap_or(Taken { decision: PASSED_REFUSAL, bound: 0 });
    if taken.decision.retry_ns().is_some() && parts.len() > 1 {
        taken.decision.retry_after = common_wait(parts, taken.decision.retry_after);
    }
    if let Some(part) = binding {
        part.count_refusal(&taken.decision);
    }
    taken
}

/// The earliest time from `wait` on at which every limit admits the request if no other request
/// comes: at the end of one limit's wait another one may refuse, because permits of a curve are
/// lost at the end of its slice. [`NEVER`] if the limits do not agree within [`ROUNDS`] waits.
#[inline(never)]
fn common_wait(parts: &[Part<'_>], mut wait: u64) -> u64 {
    for _ in 0..ROUNDS {
        let after =
            |part: &Part<'_>| part.peek_after(wait).filter(|decision| !decision.is_allowed());
        match parts.iter().filter_map(after).map(|decision| decision.retry_after).max() {
            None => return wait,
            Some(NEVER) => return NEVER,
            Some(more) => wait = wait.saturating_add(more.max(1)),
        }
    }
    NEVER
}

/// Two curves whose slices have other lengths agree after some slices, if at all.
const ROUNDS: usize = 256;

/// The common answer of `all` and `one`. `binds`: `one` is the binding limit.
fn sum(all: Taken, one: Taken, binds: bool) -> Taken {
    let (binding, a, b) = (if binds { one } else { all }, all.decision, one.decision);
    let decision = Decision {
        remaining: a.remaining.min(b.remaining),
        retry_after: a.retry_after.max(b.retry_after),
        reset_after: a.reset_after.max(b.reset_after),
        ..binding.decision
    };
    Taken { decision, bound: binding.bound }
}

/// The decision without a limit, and the answer to an admission if the caller wants the verdict
/// only.
const UNLIMITED: Decision = Decision::admitted(u64::MAX);
/// A refusal whose cause is over: the permits are back.
const PASSED_REFUSAL: Decision = Decision {
    verdict: Verdict::Denied,
    reason: Reason::Rate,
    remaining: 0,
    retry_after: 0,
    reset_after: 0,
    bound: 0,
};
