//! Batches of requests. A batch reads the clock once, and prefetches the cache lines of its keys
//! before it needs the first.

use super::answer::Answer;
use super::fast::Lookup;
use super::prefetch::prefetch_one_of_many;
use super::Table;
use crate::decision::{Decision, Verdict};
use crate::table::policies::compiled::Version;
use crate::table::policies::PolicyId;

/// One request of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The number of the policy.
    pub policy: PolicyId,
    /// The key's bytes.
    pub key: &'a [u8],
    /// The number of permits to take; 0 asks without charging.
    pub cost: u64,
}

/// An element of a batch, in the caller's layout. It is a trait, because a compiler that optimizes
/// for size inlines its method, and does not inline a closure.
#[doc(hidden)]
pub trait AsRequest {
    /// The request.
    fn view(&self) -> Request<'_>;
}

impl AsRequest for Request<'_> {
    #[inline(always)]
    fn view(&self) -> Request<'_> {
        *self
    }
}

/// The number of requests whose cache lines are prefetched together. The processor can wait for
/// some dozens of lines.
const AT_ONCE: usize = 32;

/// The policy of the last request.
struct Last<'a> {
    policy: PolicyId,
    version: Option<&'a Version>,
    /// The number of changes of the policy from one request to the next.
    changes: u32,
}

impl<'a> Last<'a> {
    #[inline(never)]
    fn change(&mut self, table: &'a Table, policy: PolicyId) {
        let version = table.policies.current_compiled(policy).map(|(version, _)| version);
        *self = Last { policy, version, changes: self.changes + 1 };
    }
}

impl Table {
    /// Decides on each request in turn, like [`Table::admit`], at one time for all. If the slices
    /// differ in length, the shorter one counts.
    pub fn admit_many(&self, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        self.verdicts(None, requests, verdicts);
    }

    /// [`Table::admit_many`] at the caller's time.
    pub fn admit_many_at(&self, now: u64, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        self.verdicts(Some(now), requests, verdicts);
    }

    /// Decides on each request in turn, like [`Table::check`], at one time for all. If the slices
    /// differ in length, the shorter one counts.
    pub fn check_many(&self, requests: &[Request<'_>], decisions: &mut [Decision]) {
        self.decisions(None, requests, decisions);
    }

    /// [`Table::check_many`] at the caller's time.
    pub fn check_many_at(&self, now: u64, requests: &[Request<'_>], decisions: &mut [Decision]) {
        self.decisions(Some(now), requests, decisions);
    }

    /// Decides on each of `requests` in turn, at one time for all. `put` stores the answer in its
    /// place. If the slices differ in length, the shorter one counts.
    #[doc(hidden)]
    #[inline(always)]
    pub fn batch<R: AsRequest, T, A: Answer>(
        &self,
        now: Option<u64>,
        requests: &[R],
        places: &mut [T],
        put: impl Fn(&mut T, A) + Copy,
    ) {
        let (mut now, mut from) = (now, 0);
        // Not `chunks`: it divides by the length of a piece, and the compiler keeps the panic of
        // that division.
        while let (Some(requests @ [_, ..]), Some(places @ [_, ..])) =
            (requests.get(from..), places.get_mut(from..))
        {
            self.piece(&mut now, requests, places, put);
            from += AT_ONCE;
        }
    }

    /// [`Table::batch`] for the first [`AT_ONCE`] requests. The first piece reads the clock into
    /// `now`.
    #[inline(always)]
    fn piece<R: AsRequest, T, A: Answer>(
        &self,
        now: &mut Option<u64>,
        requests: &[R],
        places: &mut [T],
        put: impl Fn(&mut T, A) + Copy,
    ) {
        let mut lookups = [None::<Lookup<'_>>; AT_ONCE];
        // Most batches are under one policy.
        let mut last = Last { policy: PolicyId::new(u32::MAX), version: None, changes: 0 };
        for ((to, request), _) in lookups.iter_mut().zip(requests).zip(&*places) {
            let Request { policy, key, .. } = request.view();
            if policy != last.policy {
                last.change(self, policy);
            }
            if let (Some(version), false) = (last.version, key.is_empty()) {
                let lookup = self.lookup(version, self.hash_bytes(key) ^ version.salt);
                // It prefetches both lines at once, because a probe of the first before the
                // prefetch of the second would wait for memory twice.
                prefetch_one_of_many(lookup.first);
                prefetch_one_of_many(lookup.second);
                *to = Some(lookup);
            }
        }
        let now = *now.get_or_insert_with(|| self.now());
        self.policies.memory.note_time(now);
        if last.changes > 1 {
            return self.decide_under_several(now, requests, places, &lookups, put);
        }
        // Under one policy both counts are in one register: decisions in the lower half, denials in
        // the upper. In the common case no verdict is `Never`, so a verdict is 0 or 1.
        let mut counts = 0;
        self.decide_each(now, requests, places, &lookups, put, |_, verdict| {
            counts += 1 | (verdict as u64) << 32
        });
        if let Some(version) = last.version {
            let denied = counts >> 32;
            self.policies.memory.count_many(
                version.number,
                (counts & u64::from(u32::MAX)) - denied,
                denied,
            );
        }
    }

    /// Decides on each request of a piece with several policies.
    #[inline(never)]
    fn decide_under_several<R: AsRequest, T, A: Answer>(
        &self,
        now: u64,
        requests: &[R],
        places: &mut [T],
        lookups: &[Option<Lookup<'_>>; AT_ONCE],
        put: impl Fn(&mut T, A) + Copy,
    ) {
        let count = |version: &Version, verdict| {
            self.policies.memory.count_decision(version.number, verdict)
        };
        self.decide_each(now, requests, places, lookups, put, count);
    }

    /// Decides on each request of a piece, and calls `count` with each verdict of the common case.
    /// The slow paths count their decisions themselves.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // it is one loop, written once
    fn decide_each<R: AsRequest, T, A: Answer>(
        &self,
        now: u64,
        requests: &[R],
        places: &mut [T],
        lookups: &[Option<Lookup<'_>>; AT_ONCE],
        put: impl Fn(&mut T, A) + Copy,
        mut count: impl FnMut(&Version, Verdict),
    ) {
        for ((place, request), lookup) in places.iter_mut().zip(requests).zip(lookups) {
            let answer = match lookup {
                Some(lookup) => self.step(lookup, now, request.view().cost, None, |verdict| {
                    count(lookup.version, verdict)
                }),
                None => {
                    let Request { policy, key, cost } = request.view();
                    self.decide_rare(policy, key, now, cost)
                }
            };
            put(place, answer);
        }
    }

    fn verdicts(&self, now: Option<u64>, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        self.batch(now, requests, verdicts, |verdict, answer| *verdict = answer);
    }

    fn decisions(&self, now: Option<u64>, requests: &[Request<'_>], decisions: &mut [Decision]) {
        self.batch(now, requests, decisions, |decision, answer| *decision = answer);
    }
}
