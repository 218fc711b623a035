//! The most that one key was admitted in any window of one period.

use std::collections::VecDeque;

/// An admission that is within the last period.
struct Admitted {
    time: u64,
    key: u32,
    cost: u64,
}

/// The most admissions that are remembered: 24 bytes each.
const MOST: usize = 1 << 22;

/// A sum for each key over the window `(t - period, t]`, where `t` is the latest time of the log so
/// far. A late request counts at `t`: that is when the server got it.
pub struct Fullest {
    period: u64,
    newest: u64,
    window: VecDeque<Admitted>,
    sums: Vec<u64>,
    best: Option<(u64, u32)>,
    /// Other keys with the same best sum. The summary names the one of all that comes first in the
    /// order of bytes.
    ties: Vec<u32>,
    ties_room: usize,
    given_up: bool,
}

impl Fullest {
    /// Nothing admitted yet.
    pub fn new(period: u64) -> Fullest {
        Fullest {
            period,
            newest: 0,
            window: VecDeque::new(),
            sums: Vec::new(),
            best: None,
            ties: Vec::new(),
            ties_room: 1 << 10,
            given_up: false,
        }
    }

    /// `cost` permits were admitted to `key`.
    #[inline]
    pub fn add(&mut self, time: u64, key: u32, cost: u64) {
        self.newest = self.newest.max(time);
        if self.given_up {
            return;
        }
        while let Some(oldest) = self.window.front() {
            if self.newest - oldest.time < self.period {
                break;
            }
            let sum = &mut self.sums[oldest.key as usize];
            *sum = sum.saturating_sub(oldest.cost);
            self.window.pop_front();
        }
        if self.window.len() == MOST {
            self.given_up = true;
            self.window = VecDeque::new();
            return;
        }
        if key as usize >= self.sums.len() {
            self.sums.resize(key as usize + 1, 0);
        }
        let sum = &mut self.sums[key as usize];
        *sum = sum.saturating_add(cost);
        let sum = *sum;
        self.window.push_back(Admitted { time: self.newest, key, cost });
        match self.best {
            Some((best, _)) if sum < best || sum == 0 => {}
            Some((best, of)) if sum == best && (key == of || self.ties.last() == Some(&key)) => {}
            Some((best, _)) if sum == best => self.tie(key),
            _ if sum > 0 => {
                self.best = Some((sum, key));
                self.ties.clear();
            }
            _ => {}
        }
    }

    fn tie(&mut self, key: u32) {
        // Two keys may take turns for all of the log: memory is for keys, and not for turns.
        if self.ties.len() >= self.ties_room {
            self.ties.sort_unstable();
            self.ties.dedup();
            self.ties_room = (2 * self.ties.len()).max(1 << 10);
        }
        self.ties.push(key);
    }

    /// The most, and whose it was; nobody's if it is 0. `None` if one period had more admissions
    /// than are remembered.
    pub fn most<'k>(&self, bytes: impl Fn(u32) -> &'k [u8]) -> Option<(u64, Option<u32>)> {
        if self.given_up {
            return None;
        }
        let Some((best, key)) = self.best else {
            return Some((0, None));
        };
        let first = self.ties.iter().copied().fold(key, |first, key| {
            if bytes(key) < bytes(first) {
                key
            } else {
                first
            }
        });
        Some((best, Some(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_one_end() {
        let mut fullest = Fullest::new(10);
        let most = |fullest: &Fullest| fullest.most(|_| b"k");
        assert_eq!(most(&fullest), Some((0, None)));
        for (time, expected) in [(0, 4), (1, 5), (10, 5), (11, 5), (11, 6)] {
            fullest.add(time, 0, if time == 0 { 4 } else { 1 });
            assert!(most(&fullest).is_some_and(|(most, _)| most <= expected), "{time}");
        }
        // Late by 5: counts now, beside those of the last period.
        fullest.add(6, 0, 10);
        assert_eq!(most(&fullest), Some((13, Some(0))));
    }

    #[test]
    fn ties_go_to_the_first_key_in_order() {
        let keys: [&[u8]; 3] = [b"b", b"c", b"a"];
        let mut fullest = Fullest::new(10);
        for key in [0, 1, 2] {
            fullest.add(5, key, 2);
        }
        assert_eq!(fullest.most(|key| keys[key as usize]), Some((2, Some(2))));
    }

    #[test]
    fn too_many_admissions_are_given_up_and_not_reported_wrongly() {
        let mut fullest = Fullest::new(u64::MAX);
        for n in 0..=MOST as u64 {
            fullest.add(n, (n % 7) as u32, 1);
        }
        assert_eq!(fullest.most(|_| b"k"), None);
    }
}
