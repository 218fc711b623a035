//! Many requests at once: one reading of the clock, and the lines of all keys are asked for before the first is needed.

use super::answer::Answer;
use super::compiled::Version;
use super::quick::Quick;
use super::request::prefetch_one_of_many;
use super::{PolicyId, Table};
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

/// The policy of the last request.
struct Last<'a> {
    policy: PolicyId,
    version: Option<&'a Version>,
    /// How many policies there were, one after the other.
    changes: u32,
}

impl<'a> Last<'a> {
    #[inline(never)]
    fn change(&mut self, table: &'a Table, policy: PolicyId) {
        *self = Last { policy, version: table.hot(policy), changes: self.changes + 1 };
    }
}

impl Table {
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

    /// Decides on each of `requests`, as `view` shows it, in order, and tells `put` with its place: as many as the
    /// shorter of the two has, all at one time.
    #[doc(hidden)]
    #[inline(always)]
    pub fn batch<R, T, A: Answer>(
        &self,
        now: Option<u64>,
        requests: &[R],
        places: &mut [T],
        view: impl Fn(&R) -> Request<'_>,
        put: impl Fn(&mut T, A),
    ) {
        let (mut now, mut from) = (now, 0);
        // By hand: what cuts into pieces divides by their length, which brings a panic with it.
        while let (Some(requests @ [_, ..]), Some(places @ [_, ..])) = (requests.get(from..), places.get_mut(from..)) {
            self.piece(&mut now, requests, places, &view, &put);
            from += AT_ONCE;
        }
    }

    /// [`Table::batch`] of the first [`AT_ONCE`]; the time is set by the first piece.
    #[inline(always)]
    fn piece<R, T, A: Answer>(
        &self,
        now: &mut Option<u64>,
        requests: &[R],
        places: &mut [T],
        view: impl Fn(&R) -> Request<'_>,
        put: impl Fn(&mut T, A),
    ) {
        let mut looked_up = [None::<Quick<'_>>; AT_ONCE];
        // Most batches are under one policy.
        let mut last = Last { policy: PolicyId(u32::MAX), version: None, changes: 0 };
        for ((to, request), _) in looked_up.iter_mut().zip(requests).zip(&*places) {
            let Request { policy, key, .. } = view(request);
            if policy != last.policy {
                last.change(self, policy);
            }
            if let (Some(version), false) = (last.version, key.is_empty()) {
                let quick = self.quick(version, key);
                // Both: to ask for the second where it is seen that the first does not have the key would be to wait twice.
                prefetch_one_of_many(quick.first);
                prefetch_one_of_many(quick.second);
                *to = Some(quick);
            }
        }
        let now = *now.get_or_insert_with(|| self.now());
        self.look(now);
        let asked = requests.len().min(places.len()).min(AT_ONCE) as u64;
        if last.changes > 1 {
            return self.decide_under_several(now, requests, places, &looked_up, view, put);
        }
        // Under one policy: added up in registers. The short way never says `Never`, so the verdicts' sum is the number of the denied.
        let (mut denied, mut otherwise) = (0, 0);
        self.decide_each(
            now,
            requests,
            places,
            &looked_up,
            view,
            put,
            |_, verdict| denied += verdict as u64,
            || otherwise += 1,
        );
        if let Some(version) = last.version {
            self.count_many(version.policy, asked - otherwise - denied, denied);
        }
    }

    /// Decides on each request of a piece in which there are several policies.
    #[inline(never)]
    fn decide_under_several<R, T, A: Answer>(
        &self,
        now: u64,
        requests: &[R],
        places: &mut [T],
        looked_up: &[Option<Quick<'_>>; AT_ONCE],
        view: impl Fn(&R) -> Request<'_>,
        put: impl Fn(&mut T, A),
    ) {
        let count = |version: &Version, verdict| self.count_decision(version.policy, verdict);
        self.decide_each(now, requests, places, looked_up, view, put, count, || ());
    }

    /// Decides on each request of a piece. What the short way has told is given to `count`; of each request that another way has answered,
    /// and counted, `otherwise` is told.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // it is one loop, written once
    fn decide_each<R, T, A: Answer>(
        &self,
        now: u64,
        requests: &[R],
        places: &mut [T],
        looked_up: &[Option<Quick<'_>>; AT_ONCE],
        view: impl Fn(&R) -> Request<'_>,
        put: impl Fn(&mut T, A),
        mut count: impl FnMut(&Version, Verdict),
        mut otherwise: impl FnMut(),
    ) {
        for ((place, request), quick) in places.iter_mut().zip(requests).zip(looked_up) {
            let answer = match quick {
                Some(quick) => {
                    let cost = view(request).cost;
                    match self.decide(quick, now, cost) {
                        Ok((verdict, state)) => {
                            count(quick.version, verdict);
                            A::known(&quick.version.rule, verdict, state, now, cost)
                        }
                        Err(left) => {
                            otherwise();
                            self.left(left, quick.version, quick.key, now, cost)
                        }
                    }
                }
                None => {
                    otherwise();
                    let Request { policy, key, cost } = view(request);
                    self.ask_unprepared(policy, key, now, cost)
                }
            };
            put(place, answer);
        }
    }

    fn verdicts(&self, now: Option<u64>, requests: &[Request<'_>], verdicts: &mut [Verdict]) {
        self.batch(now, requests, verdicts, |request| *request, |verdict, answer| *verdict = answer);
    }

    fn decisions(&self, now: Option<u64>, requests: &[Request<'_>], decisions: &mut [Decision]) {
        self.batch(now, requests, decisions, |request| *request, |decision, answer| *decision = answer);
    }
}
