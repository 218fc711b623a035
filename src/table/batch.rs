//! Many requests at once: one reading of the clock, and the lines of all keys are asked for before the first is needed.

use super::quick::Quick;
use super::request::{prefetch, Answer, CLOSED};
use super::{PolicyId, Table};
use crate::decision::{Decision, Verdict};
use core::mem::MaybeUninit;

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
    pub(crate) fn batch<'k, T>(
        &self,
        now: &mut Option<u64>,
        places: &mut [T],
        get: impl Fn(usize) -> Request<'k>,
        put: impl Fn(&mut T, Answer<'_>),
    ) {
        let mut looked_up = [const { MaybeUninit::<Quick<'_>>::uninit() }; AT_ONCE];
        // One bit for each that could be looked up.
        let mut found = 0u32;
        let both = self.asks_for_both();
        let count = places.len().min(AT_ONCE);
        for (n, place) in looked_up.iter_mut().enumerate().take(count) {
            let Request { policy, key, .. } = get(n);
            if let Ok(quick) = self.quick(policy, key) {
                let quick = place.write(quick);
                prefetch(quick.first);
                if both {
                    prefetch(quick.second);
                }
                found |= 1 << n;
            }
        }
        let now = *now.get_or_insert_with(|| self.now());
        self.look(now);
        for (n, place) in looked_up.iter().enumerate().take(if both { 0 } else { count }) {
            if found >> n & 1 != 0 {
                // SAFETY: the bit says that it was written.
                let quick = unsafe { place.assume_init_ref() };
                if !quick.is_in_first() {
                    prefetch(quick.second);
                    prefetch(self.spare(quick));
                }
            }
        }
        for (n, (to, place)) in places.iter_mut().zip(&looked_up).enumerate() {
            // SAFETY: as above.
            let quick = (found >> n & 1 != 0).then(|| unsafe { place.assume_init_ref() });
            put(to, self.answer(get(n), quick, now));
        }
    }

    /// Whether the second bucket of each key is asked for with the first. Two thirds are in their first: where lines come
    /// from memory, those that are not needed cost more than asking late for the others does.
    #[inline(always)]
    fn asks_for_both(&self) -> bool {
        /// About what a processor has of its last cache for one program.
        const CACHED: u64 = 32 << 20;
        self.fixed.bytes <= CACHED
    }

    fn verdicts(&self, mut now: Option<u64>, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        for (requests, verdicts) in in_step(requests, verdicts) {
            let get = |n: usize| requests.get(n).copied().unwrap_or(Request::NOTHING);
            self.batch(&mut now, verdicts, get, |verdict, answer| {
                *verdict = answer.verdict().unwrap_or(Verdict::Denied);
            });
        }
    }

    fn decisions(&self, mut now: Option<u64>, requests: &[Request<'_>], decisions: &mut [Decision]) {
        for (requests, decisions) in in_step(requests, decisions) {
            let get = |n: usize| requests.get(n).copied().unwrap_or(Request::NOTHING);
            self.batch(&mut now, decisions, get, |decision, answer| {
                *decision = answer.decision().unwrap_or(CLOSED);
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
