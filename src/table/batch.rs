//! Many requests at once: one reading of the clock, and the lines of all keys are asked for before the first is needed.

use super::quick::Quick;
use super::request::{prefetch, Answer, CLOSED};
use super::slot::Bucket;
use super::{PolicyId, Table, TableError};
use crate::decision::{Decision, Verdict};

/// One request of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The policy.
    pub policy: PolicyId,
    /// The key.
    pub key: &'a [u8],
    /// The permits asked for.
    pub cost: u64,
}

/// Requests whose lines are on their way at one time. The processor waits for some dozens at most.
const AT_ONCE: usize = 32;

impl Request<'_> {
    /// A request that asks for nothing of nobody.
    pub(crate) const NOTHING: Request<'static> = Request { policy: PolicyId::FIRST, key: &[], cost: 0 };
}

impl Table {
    /// The most that [`Table::batch`] decides on.
    #[cfg(feature = "capi")]
    pub(crate) const AT_ONCE: usize = AT_ONCE;

    /// Decides on each request in turn, as [`Table::admit`] would, all at one time. As many as the shorter of the two has.
    pub fn admit_many(&self, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        self.verdicts(None, requests, verdicts);
    }

    /// [`Table::admit_many`] at the caller's time.
    pub fn admit_many_at(&self, now: u64, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        self.verdicts(Some(now), requests, verdicts);
    }

    /// Decides on each request in turn, as [`Table::check`] would, all at one time. As many as the shorter of the two has.
    pub fn check_many(&self, requests: &[Request<'_>], decisions: &mut [Decision]) {
        self.decisions(None, requests, decisions);
    }

    /// [`Table::check_many`] at the caller's time.
    pub fn check_many_at(&self, now: u64, requests: &[Request<'_>], decisions: &mut [Decision]) {
        self.decisions(Some(now), requests, decisions);
    }

    /// Decides on what `get` gives for each number of `places`, in order, and tells `put`. At most [`AT_ONCE`] of
    /// them; `now` is set by the first batch of several.
    #[inline(always)]
    pub(crate) fn batch<'k, T, A: Answer>(
        &self,
        now: &mut Option<u64>,
        places: &mut [T],
        get: impl Fn(usize) -> Request<'k>,
        put: impl Fn(&mut T, Result<A, TableError>),
    ) {
        if self.is_cached() {
            let now = *now.get_or_insert_with(|| self.now());
            for (n, to) in places.iter_mut().enumerate() {
                let Request { policy, key, cost } = get(n);
                put(to, self.ask(policy, key, Some(now), cost));
            }
            return;
        }
        let mut looked_up = [None::<Quick<'_>>; AT_ONCE];
        for (n, (place, _)) in looked_up.iter_mut().zip(&*places).enumerate() {
            let Request { policy, key, .. } = get(n);
            *place = self.quick(policy, key);
            if let Some(quick) = place {
                prefetch(quick.first);
            }
        }
        let now = *now.get_or_insert_with(|| self.now());
        self.look(now);
        // Two thirds of the keys are in their first bucket: the second is asked for where it is needed, once the first is
        // there. Asking for both from the beginning takes longer where lines come from memory.
        let mut likely = [None::<&Bucket>; AT_ONCE];
        for (place, quick) in likely.iter_mut().zip(&looked_up) {
            if let Some(quick) = quick {
                let bucket = quick.likely();
                prefetch(bucket);
                *place = Some(bucket);
            }
        }
        for (n, (to, (quick, likely))) in places.iter_mut().zip(looked_up.into_iter().zip(likely)).enumerate() {
            let Request { policy, key, cost } = get(n);
            let answer = match (quick, likely) {
                (Some(quick), Some(likely)) => {
                    let course = self.decide_in(likely, &quick, now, cost);
                    self.answer(&quick, course, policy, key, now, cost)
                }
                _ => self.long(policy, key, now, cost, false),
            };
            put(to, answer);
        }
    }

    /// Whether the table is so small that a core's own caches hold it, and nothing is won by asking for it beforehand.
    #[inline(always)]
    fn is_cached(&self) -> bool {
        /// About what a core has of its second cache.
        const CACHED: u64 = 1 << 20;
        self.fixed.bytes <= CACHED
    }

    fn verdicts(&self, mut now: Option<u64>, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        for (requests, verdicts) in in_step(requests, verdicts) {
            let get = |n: usize| requests.get(n).copied().unwrap_or(Request::NOTHING);
            self.batch(&mut now, verdicts, get, |verdict, answer| {
                *verdict = answer.unwrap_or(Verdict::Denied);
            });
        }
    }

    fn decisions(&self, mut now: Option<u64>, requests: &[Request<'_>], decisions: &mut [Decision]) {
        for (requests, decisions) in in_step(requests, decisions) {
            let get = |n: usize| requests.get(n).copied().unwrap_or(Request::NOTHING);
            self.batch(&mut now, decisions, get, |decision, answer| {
                *decision = answer.unwrap_or(CLOSED);
            });
        }
    }
}

/// Both in pieces of [`AT_ONCE`], as far as both go, equally long.
fn in_step<'a, A, B>(a: &'a [A], b: &'a mut [B]) -> impl Iterator<Item = (&'a [A], &'a mut [B])> {
    let length = a.len().min(b.len());
    let b = b.get_mut(..length).unwrap_or_default();
    a.chunks(AT_ONCE).zip(b.chunks_mut(AT_ONCE))
}
