//! The invariants of every run, and what a run's requests got.

use super::*;

impl Played {
    /// Checks the invariants of every run. No slot's time becomes earlier. No key is in two slots.
    /// Each charge is in the key's state, each swap belongs to one request, and no debt is lost.
    /// The answer of a request that changed nothing was right at one instant while it ran.
    pub(super) fn judge(&self) {
        for (n, Change { old, new, .. }) in self.changes.iter().enumerate() {
            assert!(expires(*new) >= expires(*old), "a slot's time fell: {:?}", self.changes);
            let table = &self.tables[n + 1];
            let places =
                table.iter().filter(|pair| !pair.is_vacant() && pair.key == new.key).count();
            assert!(places <= 1, "a key has two slots: {:?}", self.changes);
            // Only a key that moves to another slot (version 6) may also be in its former slot.
            let related = table.iter().filter(|pair| related(pair.key, new.key)).count();
            assert!(related <= 1 || moves(new.key), "a key has two slots: {:?}", self.changes);
        }
        for (thread, acts) in &self.threads {
            for done in acts {
                if let Free(Key(tag, by, _), _) = done.act {
                    self.judge_freed(done, tag, by);
                    continue;
                }
                let changes = self.changes[done.from..done.till].iter();
                let is_own = |change: &&Change| {
                    change.thread == *thread
                        && !change.removes_mark(done.key)
                        && !change.reserves(done.key)
                };
                let mut own: Vec<_> = changes.filter(is_own).collect();
                if let Some(settled) = done.settled {
                    self.repay(settled, done, &mut own);
                }
                let writes = match done.act {
                    Ask(_, _, cost) | Short(_, _, cost) => {
                        cost != 0
                            && done.admitted() == cost
                            && done.event() != Some(Event::Unremembered)
                    }
                    Reset(..) => done.reset,
                    SetVersion(_) | Free(..) | Take(..) | Settle(..) | SettleOwn(..) | Own(..)
                    | End(_) => false,
                };
                match (writes, done.act) {
                    (false, _) => self.justify(done),
                    (true, Reset(..)) => {
                        let Change { old, new, .. } = own.pop().expect("a reset without its swap");
                        assert_eq!(
                            (old.key, *new),
                            (done.key, SlotPair { key: 0, state: expires(*old) })
                        );
                    }
                    (true, _) => self.account(done, own.pop().expect("an answer without its swap")),
                }
                assert!(
                    own.iter().all(|change| change.converts(done.key, self.returns)),
                    "a swap of no act: {:?}",
                    self.changes
                );
            }
        }
    }

    /// Checks that no key comes under a version that is free, and that none is left there.
    fn judge_freed(&self, done: &Done, tag: u64, by: By) {
        let is_former = |pair: &SlotPair| {
            !pair.is_vacant()
                && pair.key & TAG == tag
                && named(pair.key).0 == by
                && pair.key >> TAG_BITS < self.newest
        };
        let later = self.changes[done.till..].iter().map(|change| &change.new);
        let left = later.chain(&self.tables[done.till]).find(|pair| is_former(pair));
        assert!(left.is_none(), "a key is under a free version: {left:?} of {:?}", self.changes);
    }

    /// Checks that a request's swap stored the state, and the request returned the event, that the
    /// rule prescribes.
    fn account(&self, done: &Done, change: &Change) {
        let (Ask(_, now, cost), Some(outcome)) = (done.act, done.outcome) else {
            panic!("no request")
        };
        let Change { old, new, .. } = *change;
        let rule = named(done.key).1;
        let step = |state| rule.step(state, now, cost).next;
        // Another call was moving the key, and this request has seen its mark. A sweep may have
        // disturbed it meanwhile. With weak loads the request may have read the slot before that.
        let marks = |from: usize| {
            self.tables[from..=done.till].iter().filter_map(|table| mark(table, done.key, now))
        };
        let last = marks(done.from).max();
        let first = last.and_then(|_| marks(if self.weak { 0 } else { done.from }).min());
        let begins = [first, last].map(|until| until.map_or(0, |until| rule.owing(until)));
        let expected = |begin| {
            if old.key == done.key {
                (step(old.state), Event::Known)
            } else if expires(old) <= now {
                (step(begin), if old.is_vacant() { Event::Inserted } else { Event::Reclaimed })
            } else {
                match self.on_full {
                    OnFull::Inherit => (step(adopted(done.key, old)), Event::Inherited),
                    OnFull::EvictNearest => {
                        let owing = |state| match rule.expires_at(state) < expires(old) {
                            true => {
                                rules::held(SlotPair { key: done.key, state }, expires(old), now)
                                    .unwrap_or_else(|| rule.owing(expires(old)))
                            }
                            false => state,
                        };
                        (step(0).map(owing), Event::Evicted)
                    }
                    _ => panic!("a new key took the slot of a key with a debt: {change:?}"),
                }
            }
        };
        assert_eq!(new.key, done.key);
        assert!(begins.map(expected).contains(&(Some(new.state), outcome.event)), "{change:?}");
        assert_eq!(new.state, outcome.state);
    }

    /// Checks that a settlement's swap gave back what the rule prescribes for one of the times at
    /// which it ran.
    fn repay(&self, Settled { paper, first, back }: Settled, done: &Done, own: &mut Vec<&Change>) {
        let is_lower = |change: &&&Change| {
            change.old.key == done.key
                && change.new.key == done.key
                && full_at(change.new.state) < full_at(change.old.state)
        };
        let Some(at) = own.iter().position(|change| is_lower(&change)) else {
            assert_eq!(back, 0, "permits went back without a swap");
            return;
        };
        let Change { old, new, .. } = *own.remove(at);
        assert!(first, "a settlement gave permits back that was not the first: {:?}", self.changes);
        let lowered =
            |now| named(done.key).1.lowered(old.state, now, (paper.at, paper.cost), paper.cost);
        let times = paper.at..=full_at(old.state);
        let expected =
            |now: u64| lowered(now).is_some_and(|to| full_at(to.next) <= full_at(new.state));
        assert!(times.rev().any(expected) && expires(new) == expires(old), "{old:?} {new:?}");
    }

    /// Checks that the answer was right at one instant while the act ran.
    fn justify(&self, done: &Done) {
        // With weak loads the act may have read values from before its beginning.
        let from = if self.weak { 0 } else { done.from };
        let tables = &self.tables[from..=done.till];
        let justified = match done.act {
            Ask(key, now, cost) | Short(key, now, cost) => {
                tables.iter().any(|table| self.answers(table, done, key, now, cost))
            }
            Reset(_, now) => tables.iter().any(|table| {
                let own = table.iter().find(|pair| related(pair.key, done.key));
                // A reset may leave the table as it was in two cases: the key is absent or has
                // expired, or no slot has expired to which the reset could move the key.
                own.map_or(true, |own| expires(*own) <= now)
                    || table.iter().all(|pair| expires(*pair) > now)
            }),
            SetVersion(_) | Free(..) | Take(..) | Settle(..) | SettleOwn(..) | Own(..) | End(_) => {
                true
            }
        };
        assert!(justified, "the answer was right at no instant: {done:?} in {tables:?}");
    }

    fn answers(
        &self,
        table: &[SlotPair],
        done: &Done,
        Key(_, _, homes): Key,
        now: u64,
        cost: u64,
    ) -> bool {
        let Some(outcome) = done.outcome else { return false };
        let rule = named(done.key).1;
        let step = |state| rule.step(state, now, cost);
        let own = table.iter().find(|pair| pair.key == done.key);
        if let Some(own) = own.or_else(|| table.iter().find(|pair| related(pair.key, done.key))) {
            let step = step(own.state);
            return own.key == done.key
                && (step.verdict, step.next, Event::Known)
                    == (outcome.verdict, None, outcome.event);
        }
        let begin = mark(table, done.key, now).map_or(0, |until| rule.owing(until));
        let fresh = step(begin);
        let nearest = homes.iter().map(|&n| table[n]).min_by_key(|pair| expires(*pair)).unwrap();
        let expected = if fresh.next.is_none() {
            (fresh.verdict, Event::Known)
        } else if expires(nearest) <= now {
            return false;
        } else {
            match self.on_full {
                OnFull::Deny => (Verdict::Denied, Event::Refused),
                OnFull::Allow => (fresh.verdict, Event::Unremembered),
                OnFull::Inherit => (step(adopted(done.key, nearest)).verdict, Event::RefusedByDebt),
                OnFull::EvictNearest => return false,
            }
        };
        (outcome.verdict, outcome.event) == expected
    }

    pub(super) fn last(&self) -> &[SlotPair] {
        &self.tables[self.tables.len() - 1]
    }

    /// A key's state at the end of the run.
    pub(super) fn state(&self, Key(tag, by, _): Key) -> Option<u64> {
        let own = self
            .last()
            .iter()
            .find(|pair| !pair.is_vacant() && pair.key & TAG == tag && named(pair.key).0 == by);
        own.map(|pair| pair.state)
    }

    /// The permits that a key's requests took.
    pub(super) fn admitted(&self, Key(tag, by, _): Key) -> u64 {
        self.done()
            .filter(|done| done.key & TAG == tag && named(done.key).0 == by)
            .map(Done::admitted)
            .sum()
    }

    pub(super) fn done(&self) -> impl Iterator<Item = &Done> {
        self.threads.iter().flat_map(|(_, done)| done).filter(|done| done.key != 0)
    }

    pub(super) fn count(&self, event: Event) -> usize {
        self.done().filter(|done| done.event() == Some(event)).count()
    }
}

impl Done {
    pub(super) fn event(&self) -> Option<Event> {
        self.outcome.map(|outcome| outcome.event)
    }

    pub(super) fn admitted(&self) -> u64 {
        match (self.act, self.outcome) {
            (Ask(_, _, cost), Some(outcome)) if outcome.verdict == Verdict::Allowed => cost,
            _ => 0,
        }
    }
}

impl Change {
    /// Whether the change only removed the mark of a key that has moved.
    fn removes_mark(&self, key: u64) -> bool {
        moves(key) && self.old.key == key & TAG && self.new == SlotPair { key: 0, ..self.old }
    }

    /// Whether the change only reserved a slot that has expired for a key that moves there.
    fn reserves(&self, key: u64) -> bool {
        self.new == SlotPair { key: key & TAG, state: expires(self.old) }
            && !related(self.old.key, key)
    }

    /// Whether the change only converted `key` from a former version of its policy to a later one.
    /// A key that has expired loses its slot instead. `returns`: the key may also come back to a
    /// former version, because it has had a policy of its own.
    pub(super) fn converts(&self, key: u64, returns: bool) -> bool {
        let Change { old, new, .. } = *self;
        if related(new.key, key) && moves(new.key) && !related(old.key, key) {
            // The key has moved to another slot, and has not inherited that slot's debt.
            return expires(new) >= expires(old)
                && (new.key >> TAG_BITS != 6 || (expires(new) - 100) % FAST == 0);
        }
        if !new.is_vacant() && named(new.key).0 == By::Staying && related(old.key, key) {
            // In place, at one of the times of the scenes.
            let at = |now| {
                Some(new.state)
                    == rules::held(
                        SlotPair { key: new.key, state: converted(new.key, old, now) },
                        expires(old),
                        now,
                    )
            };
            let same = |now| expires(old) <= new.state && new.state == converted(new.key, old, now);
            return old.key < new.key
                && [100, 102, 110].into_iter().any(|now| at(now) || same(now));
        }
        let expected = if new.is_vacant() { expires(old) } else { adopted(new.key, old) };
        related(old.key, key)
            && (old.key < key || returns)
            && old.key != new.key
            && (new.key == 0 || new.key == key & TAG && moves(key) || related(new.key, key))
            && (new.state == expected || moves(new.key))
    }
}

/// The time until which the key owes by the mark of a call that moves it.
fn mark(table: &[SlotPair], key: u64, now: u64) -> Option<u64> {
    let is_mark = |pair: &&SlotPair| pair.key != 0 && pair.key == key & TAG && pair.state > now;
    table.iter().filter(is_mark).map(|pair| pair.state).max()
}
