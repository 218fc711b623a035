//! Finds stores that answer in time but wrongly. A store whose clock stands still, or that grants
//! nothing for longer than the limit explains, is treated as one that does not answer.

use super::bucket::Grant;
use super::terms::Terms;

/// What is wrong with a store that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The store's time advanced by less than a quarter of the node's.
    Standing,
    /// The store has granted this node nothing for longer than [`explained`].
    Starved,
}

/// Watches the answers of one store.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    /// An answer to compare with: its epoch, its store time in microseconds, and when it came in
    /// nanoseconds. All 0: none yet.
    sample: (u64, u64, u64),
    standing: bool,
    /// When the first empty answer since the last grant came, in nanoseconds.
    since: u64,
    /// Empty answers since the last grant.
    nothings: u64,
    /// When the store became [`Trouble::Starved`], in nanoseconds; 0: it is not.
    starved_since: u64,
    /// Whether this is the trial turn of a starved store ([`TURNS`]).
    trying: bool,
}

/// The time over which the two clocks are compared, in nanoseconds.
const SAMPLE: u64 = 1_000_000_000;
/// One node of N gets every Nth permit on average. If other nodes get this many of its shares in a
/// row, something is wrong. It is also the smallest number of empty answers in a row that count as
/// starved.
const SHARES: u64 = 16;
/// In one of this many turns, the trial turn, a node with a starved store stops admitting from its
/// reserve. The nodes report to the store the permits that they admit by themselves, and these may
/// use up the whole rate. In the trial turn a working store has permits to grant again.
const TURNS: u64 = 8;
/// The shortest turn, in nanoseconds.
const TURN_LEAST: u64 = 100_000_000;

impl Watchdog {
    /// Judges an answer that came at `now` to a question sent at `sent`, both in nanoseconds.
    /// `least` is the question's [`Ask::least`](super::ask::Ask::least).
    pub(super) fn on_answer(
        &mut self,
        terms: &Terms,
        least: u64,
        grant: &Grant,
        sent: u64,
        now: u64,
    ) {
        self.clock(grant, sent, now);
        // An open key has permits, whether this node asked for some or not.
        if grant.permits != 0 || grant.served != 0 || grant.open {
            (self.nothings, self.starved_since) = (0, 0);
        } else if grant.retry != 0 && least <= (terms.most / 8).max(1) {
            // A cost above an eighth of the bucket does not count. It may find too few permits for
            // ever while other nodes take small grants.
            if self.nothings == 0 {
                self.since = now;
            }
            self.nothings += 1;
            let long =
                self.nothings >= SHARES && now.saturating_sub(self.since) > explained(terms, least);
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

    /// The trouble, if there is one. None during a trial turn of a starved store.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        match (self.standing, self.starved_since) {
            (true, _) => Some(Trouble::Standing),
            (_, 1..) if !self.trying => Some(Trouble::Starved),
            _ => None,
        }
    }

    fn clock(&mut self, grant: &Grant, sent: u64, now: u64) {
        let (data, store, heard) = self.sample;
        // The old answer came before the node sent the new question, so the store executed the two
        // questions at least this far apart.
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

/// Nanoseconds for which a working store may grant a node nothing: an empty bucket refills, then
/// [`SHARES`] of the node's shares go to others, and a lease's life and a second of margin.
fn explained(terms: &Terms, least: u64) -> u64 {
    let share = terms.charge(least.max(1)).saturating_mul(terms.nodes);
    let micros = terms.debt_cap.saturating_add(share.saturating_mul(SHARES));
    micros.saturating_mul(1000).saturating_add(terms.life).saturating_add(SAMPLE)
}

/// The length of a turn in nanoseconds: twice the time in which a node's share of the rate is
/// `least` permits, and [`TURN_LEAST`].
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

    /// Asks every 10 ms for 6 s. At millisecond `at` the store grants `permits(at)` and its clock
    /// says `time(at)` milliseconds. Returns each millisecond with a trouble.
    fn troubles(permits: impl Fn(u64) -> u64, time: impl Fn(u64) -> u64) -> Vec<(u64, Trouble)> {
        let (mut watchdog, mut found) = (Watchdog::default(), Vec::new());
        for at in (0..6000).step_by(10) {
            let (permits, now) = (permits(at), time(at) * 1000);
            let grant = Grant {
                permits,
                retry: u64::from(permits == 0),
                epoch: 1,
                now,
                ..Grant::default()
            };
            watchdog.on_answer(&terms(), 2, &grant, (5000 + at) * MILLI, (5001 + at) * MILLI);
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

    /// Fifteen empty answers prove nothing, however long they take. Nor do costs above an eighth of
    /// the bucket.
    #[test]
    fn few_or_great() {
        let (mut watchdog, nothing) = (Watchdog::default(), Grant { retry: 1, ..Grant::default() });
        for at in 0..15 {
            watchdog.on_answer(&terms(), 1, &nothing, 0, at << 40);
        }
        assert_eq!(watchdog.trouble(), None);
        for at in 0..100 {
            watchdog.on_answer(&terms(), terms().most / 2, &nothing, 0, at << 40);
        }
        assert_eq!(watchdog.trouble(), None);
    }

    #[test]
    fn a_time_that_stands_still() {
        let found = troubles(|_| 1, |at| at.min(2000) + at.saturating_sub(4000));
        assert!(
            found
                .iter()
                .all(|(at, trouble)| *trouble == Trouble::Standing && (3000..5100).contains(at)),
            "{found:?}"
        );
        assert!(!found.is_empty());
        assert_eq!(troubles(|_| 1, |at| at / 2), [], "half as fast is no fault");
    }
}
