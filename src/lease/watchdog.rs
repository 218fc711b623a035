//! Whether a store that answers still does its work: one whose time stands still, or that grants nothing for longer than the limit
//! explains, counts as one that does not answer.

use super::bucket::Grant;
use super::terms::Terms;

/// What is wrong with a store that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Its time has gone on by less than a quarter of the node's.
    Standing,
    /// It has granted nothing for longer than the limit explains.
    Starved,
}

/// Watches the answers of one store.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// An answer's data, its time there, and when it came; 0: none yet.
    sample: (u64, u64, u64),
    standing: bool,
    /// When the first of the answers came that granted nothing, and how many there have been since the last that did.
    since: u64,
    nothings: u64,
    /// Since when that is too long; 0: it is not. And whether the store is being tried again.
    starved_since: u64,
    trying: bool,
}

/// So long a time is looked at, in nanoseconds.
const SAMPLE: u64 = 1_000_000_000;
/// One node of N has every Nth permit on average; that so many shares in a row go to others does not happen by chance.
const SHARES: u64 = 16;
/// What nodes admit by themselves is charged, and may be all that there is: so one that gets nothing refuses for one turn in so many, in
/// which a store that works again has something for it.
const TURNS: u64 = 8;
/// The shortest turn, in nanoseconds.
const TURN_LEAST: u64 = 100_000_000;

impl Watchdog {
    /// An answer has come at `now` to a question that was put at `sent`, to which fewer than `least` permits would have been of no use.
    pub(super) fn heard(&mut self, terms: &Terms, least: u64, grant: &Grant, sent: u64, now: u64) {
        self.clock(grant, sent, now);
        if grant.permits != 0 {
            (self.nothings, self.starved_since) = (0, 0);
        } else if grant.retry != 0 && least <= (terms.most / 8).max(1) {
            // A cost that needs most of the bucket may wait for ever while others take a permit at a time.
            if self.nothings == 0 {
                self.since = now;
            }
            self.nothings += 1;
            let long = self.nothings >= SHARES && now.saturating_sub(self.since) > explained(terms, least);
            if long && self.starved_since == 0 {
                self.starved_since = now.max(1);
            }
            let turn = turn(terms, least);
            self.trying = now
                .saturating_sub(self.starved_since)
                .checked_rem(TURNS * turn)
                .is_some_and(|at| at >= (TURNS - 1) * turn);
        }
    }

    /// What is wrong, if something is.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        match (self.standing, self.starved_since) {
            (true, _) => Some(Trouble::Standing),
            (_, 1..) if !self.trying => Some(Trouble::Starved),
            _ => None,
        }
    }

    fn clock(&mut self, grant: &Grant, sent: u64, now: u64) {
        let (data, store, heard) = self.sample;
        // At least so long was between the two answers' questions.
        let passed = sent.saturating_sub(heard);
        if data != grant.epoch {
            self.standing = false;
        } else if passed < SAMPLE {
            return;
        } else {
            self.standing = grant.now.saturating_sub(store) < passed / 4000;
        }
        self.sample = (grant.epoch, grant.now, now);
    }
}

/// For how long, in nanoseconds, a node may get nothing: an empty bucket fills, and then the permits of some shares go to others.
fn explained(terms: &Terms, least: u64) -> u64 {
    let share = terms.charge(least.max(1)).saturating_mul(terms.nodes);
    let micros = terms.debt_cap.saturating_add(share.saturating_mul(SHARES));
    micros.saturating_mul(1000).saturating_add(terms.life).saturating_add(SAMPLE)
}

/// A turn, in nanoseconds: twice the time in which a node's share is `least` permits.
fn turn(terms: &Terms, least: u64) -> u64 {
    let share = terms.charge(least.max(1)).saturating_mul(terms.nodes);
    share.saturating_mul(2000).saturating_add(TURN_LEAST).min(1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Options;
    use alloc::vec::Vec;

    const MILLI: u64 = 1_000_000;

    fn terms() -> Terms {
        Terms::new(&"1000/s burst 500".parse().expect("a policy"), &Options::new(4)).expect("terms")
    }

    /// Asks every 10 ms of a store whose time is `time` of the milliseconds, which grants `permits`; when it was troubled.
    fn troubles(permits: impl Fn(u64) -> u64, time: impl Fn(u64) -> u64) -> Vec<(u64, Trouble)> {
        let (mut watchdog, mut found) = (Watchdog::default(), Vec::new());
        for at in (0..6000).step_by(10) {
            let (permits, now) = (permits(at), time(at) * 1000);
            let grant = Grant { permits, retry: u64::from(permits == 0), epoch: 1, now, ..Grant::default() };
            watchdog.heard(&terms(), 2, &grant, (5000 + at) * MILLI, (5001 + at) * MILLI);
            found.extend(watchdog.trouble().map(|trouble| (at, trouble)));
        }
        found
    }

    #[test]
    fn nothing_for_longer_than_explained() {
        assert_eq!(troubles(|at| u64::from(at % 500 == 0), |at| at), []);
        let found = troubles(|at| u64::from(at > 5000), |at| at);
        let after = explained(&terms(), 2) / MILLI;
        assert_eq!(found.first(), Some(&(after + 10 - after % 10, Trouble::Starved)));
        assert_eq!(found.last(), Some(&(5000, Trouble::Starved)), "until there is something");
    }

    /// A few questions over a long time prove nothing, nor do costs that need most of the bucket.
    #[test]
    fn few_or_great() {
        let (mut watchdog, nothing) = (Watchdog::default(), Grant { retry: 1, ..Grant::default() });
        for at in 0..15 {
            watchdog.heard(&terms(), 1, &nothing, 0, at << 40);
        }
        assert_eq!(watchdog.trouble(), None);
        for at in 0..100 {
            watchdog.heard(&terms(), terms().most / 2, &nothing, 0, at << 40);
        }
        assert_eq!(watchdog.trouble(), None);
    }

    #[test]
    fn a_time_that_stands_still() {
        let found = troubles(|_| 1, |at| at.min(2000) + at.saturating_sub(4000));
        assert!(
            found.iter().all(|(at, trouble)| *trouble == Trouble::Standing && (3000..5100).contains(at)),
            "{found:?}"
        );
        assert!(!found.is_empty());
        assert_eq!(troubles(|_| 1, |at| at / 2), [], "half as fast is no fault");
    }
}
