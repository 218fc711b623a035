//! What a change of the terms in force makes of keys. `lease.lua` computes the same, line for line.
//!
//! The store charges a key as a TAT, which is a time: another number of permits at another rate. So
//! the record remembers its last changes, each key the version by which it was charged, and a key
//! is converted when a question next touches it ([`Changes::convert`]). It keeps the permits that
//! it has used.
//!
//! During and after a change all machines together admit at most the larger burst and the faster
//! rate:
//!
//! - A smaller burst cuts what a key has used to that burst, at most once in the time in which the
//!   former burst refills. Otherwise a smaller burst and the former one in turn would give away the
//!   difference each time.
//! - Every machine knows the change within `HOLD`. Until then machines may have the former
//!   rights, and the cap leaves room for these. The store takes no other change before that.
//! - Larger rights begin when the rate has brought the permits by which they are larger
//!   (`Terms::since`).

/// A change of the terms. Times are microseconds of the data's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Change {
    /// The version that it brought.
    pub version: u64,
    /// When it was made.
    pub at: u64,
    /// The rate before it: `num` permits in `den` microseconds.
    pub num: u64,
    /// See `num`.
    pub den: u64,
    /// What a key has used counts as at most so many microseconds of the rate after the change. 0:
    /// as what it is.
    pub most: u64,
}

/// The changes that a record remembers, the oldest first. A key that is not touched during
/// `CHANGES` changes is converted by these only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Changes {
    list: [Change; CHANGES],
    count: usize,
}

/// A key's value in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stored {
    /// When the key's bucket is full again, in microseconds of the data's time.
    pub tat: u64,
    /// The version of the terms by which the TAT counts.
    pub version: u64,
    /// The last end of the key's leases, which are charged as spent then.
    pub until: u64,
}

const CHANGES: usize = 8;
/// Microseconds after a change in which a machine may still have the former terms. An idle machine
/// asks every 0.4 s, and one that gets no answer within its patience has no rights.
pub(super) const HOLD: u64 = 2_000_000;
/// Microseconds after a change in which machines may spend leases of the former terms: [`HOLD`],
/// and the second for which a machine keeps leases when it learns a change.
const KEPT: u64 = HOLD + 1_000_000;
/// The farthest TAT ahead of the data's time, in microseconds.
pub(super) const FARTHEST: u64 = 1 << 50;

impl Changes {
    /// The changes.
    pub fn list(&self) -> &[Change] {
        self.list.get(..self.count).unwrap_or_default()
    }

    pub(super) fn push(&mut self, change: Change) {
        if self.count == CHANGES {
            self.list.rotate_left(1);
            self.count -= 1;
        }
        if let Some(place) = self.list.get_mut(self.count) {
            *place = change;
            self.count += 1;
        }
    }

    /// The TAT of a key by the terms in force, whose rate is `num` in `den`. The time from a change
    /// to the end of the key's leases may be no permits, so a faster rate does not shorten it.
    pub fn convert(&self, key: &Stored, num: u64, den: u64) -> u64 {
        let changes = self.list();
        let mut tat = key.tat;
        for (n, change) in changes.iter().enumerate().filter(|(_, c)| c.version > key.version) {
            let (num, den) = changes.get(n + 1).map_or((num, den), |next| (next.num, next.den));
            let slower = ratio(change.num, change.den, num, den);
            let until = key.until.min(change.at.saturating_add(KEPT));
            let gap = if slower < 1.0 { until.min(tat) } else { 0 };
            let from = change.at.max(gap);
            if tat > from {
                let used = ceiling((tat - from) as f64 * slower);
                tat =
                    from.saturating_add(if change.most > 0 { used.min(change.most) } else { used });
            }
        }
        tat
    }
}

/// How much longer a permit takes at the second rate than at the first.
pub(super) fn ratio(num: u64, den: u64, next_num: u64, next_den: u64) -> f64 {
    (next_den as f64 * num as f64) / (next_num as f64 * den as f64)
}

/// Rounds up. A number that no `u64` holds becomes the largest.
pub(super) fn ceiling(number: f64) -> u64 {
    let whole = number as u64;
    whole.saturating_add(u64::from((whole as f64) < number))
}
