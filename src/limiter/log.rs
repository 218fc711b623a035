//! The sliding log's shared state: a counter that decides, and an entry a permit.
//!
//! `head` is the number of permits entered so far. Permit k goes to place k mod `limit`, where permit
//! k − limit was. `time` is the newest time at which anything was judged that may have been entered. A
//! request of cost n:
//!
//! 1. read `head` = h, then `time`: the request is judged at `time` if its own clock is older. Look at
//!    the n entries that permits h … h+n−1 will replace. All must have left the window, or it is refused.
//! 2. raise `time` to the time it was judged at; swap `head` from h to h+n. That is the admission.
//! 3. swap each of the n entries from what it was to (time, next lap).
//!
//! Whoever sees a permit in `head` sees its time in `time`, so later permits never have earlier times,
//! however much the threads' clocks differ.
//!
//! Between 2 and 3 an entry is *pending*: its lap is behind. Whoever needs it before its owner has
//! written it does not wait: it writes it, with the time at which it judges its own request, which is no
//! earlier than the owner's; the owner's swap then fails, and that is well. So a thread that is killed
//! between 2 and 3 costs at most that its permits stay in the window somewhat longer.
//!
//! A thread may sleep anywhere here for many laps, and laps are known modulo 8 only. So nobody writes an
//! entry on the strength of its lap alone: after the entry has been read, `head` must still be such that
//! the entry cannot have been used again. Entries are written with Release and read with Acquire, so
//! whoever has read one sees a `head` at least as new as its writer saw; and if the entry is used again
//! after that, the swap fails. The one exception is an entry that comes back to the same time and the
//! same lap while a thread sleeps between its look at `head` and its swap: 8 laps in one instant of the
//! clock, which only refused requests that count, or resets, can make. The entry's lap is then wrong,
//! behind or ahead. Either is taken for pending and written again, so it costs no more than that.
//!
//! What a concurrent observer may see: `head` ahead of the entries. It never takes a pending entry for
//! an old one. A refusal writes nothing, unless rejected requests count or it meets a pending entry.
//! Every loop here repeats only because `head` or an entry has been changed by another.

use super::{Shared, Watch};
use crate::algorithm::after;
use crate::algorithm::sliding_log::SlidingLog;
use crate::decision::{Decision, Verdict};
use crate::policy::{Policy, PolicyError};
use crate::sync::{zeroed, AtomicU64, CachePadded, Ordering};
use crate::units::NEVER;
use alloc::boxed::Box;

/// A sliding log that threads share.
#[derive(Debug)]
pub struct Log {
    line: CachePadded<Line>,
    entries: Box<[AtomicU64]>,
    log: SlidingLog,
}

#[derive(Debug, Default)]
struct Line {
    head: AtomicU64,
    time: AtomicU64,
    watch: Watch,
}

impl Log {
    /// A fresh state. The only allocation is here: 8 bytes a permit.
    pub fn new(policy: &Policy) -> Result<Log, PolicyError> {
        let log = SlidingLog::new(policy)?;
        let places = usize::try_from(log.limit()).map_err(|_| PolicyError::NoMemory)?;
        Ok(Log { line: CachePadded::new(Line::default()), entries: zeroed(places).ok_or(PolicyError::NoMemory)?, log })
    }

    /// When permit number `k`'s predecessor leaves the window, once its entry is there: a pending one is
    /// written with `now`. `None` if `head` is old. `k` is one of the `limit` permits from `head` on.
    #[inline]
    fn leaves(&self, head: u64, k: u64, now: u64) -> Option<u64> {
        let (place, lap) = self.log.place(k);
        let Some(entry) = self.entries.get(place as usize) else { return Some(NEVER) };
        let mut word = entry.load(Ordering::Acquire);
        loop {
            let kept = SlidingLog::unpack(word);
            if kept.lap == lap {
                return Some(self.log.leaves(kept));
            }
            // Relaxed: ordered after the entry by its Acquire.
            if self.line.head.load(Ordering::Relaxed) != head {
                return None;
            }
            let settled = SlidingLog::pack(now, lap);
            match entry.compare_exchange(word, settled, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => word = settled,
                Err(seen) => word = seen,
            }
        }
    }

    /// Step 3 for permit number `k`.
    fn enter(&self, k: u64, now: u64) {
        let (place, lap) = self.log.place(k);
        let Some(entry) = self.entries.get(place as usize) else { return };
        let new = SlidingLog::pack(now, SlidingLog::next_lap(lap));
        let mut word = entry.load(Ordering::Acquire);
        // Until somebody has settled it. What is replaced may itself be pending (only where rejected
        // requests count: an admission has looked at all of its predecessors).
        while SlidingLog::unpack(word).lap != SlidingLog::next_lap(lap) {
            // Relaxed: ordered after the entry by its Acquire. Permit k + limit has the place now.
            if self.line.head.load(Ordering::Relaxed) > k.saturating_add(self.log.limit()) {
                return;
            }
            match entry.compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// `head`, and the time at which a request that sees it is judged: a clock that went back is at the
    /// newest time entered.
    #[inline(always)]
    fn look(&self, now: u64) -> (u64, u64) {
        // Acquire: the times of the permits in it are seen, and entries written before.
        let head = self.line.head.load(Ordering::Acquire);
        (head, now.max(self.line.time.load(Ordering::Relaxed)))
    }

    /// Whether the predecessors of `cost` permits from `head` have all left; `None` if `head` is old.
    #[inline]
    fn fits(&self, head: u64, now: u64, cost: u64) -> Option<bool> {
        // The newest of them first: it is what refuses.
        for k in (head..head.saturating_add(cost)).rev() {
            if self.leaves(head, k, now)? > now {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Permits that could be taken: how many predecessors, from the oldest on, have left.
    fn left(&self, head: u64, now: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.log.limit());
        // Times are in order, but an entry that another settled may be later than its permit was.
        while low < high {
            let middle = low + (high - low) / 2;
            if self.leaves(head, head.saturating_add(middle), now)? > now {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    /// Steps 1 to 3 for what `choose` makes of the head; 0 takes nothing.
    fn take(&self, now: u64, choose: impl Fn(u64, u64) -> Option<u64>) -> u64 {
        self.line.watch.look(now);
        if now > SlidingLog::LAST {
            return 0;
        }
        loop {
            let (head, judged) = self.look(now);
            let Some(cost) = choose(head, judged) else { continue };
            if cost == 0 {
                return 0;
            }
            if self.book(head, cost, judged) {
                self.line.watch.admitted(now);
                return cost;
            }
        }
    }

    /// Steps 2 and 3.
    fn book(&self, head: u64, cost: u64, now: u64) -> bool {
        if self.line.time.load(Ordering::Relaxed) < now {
            // Relaxed: seen by whoever sees `head` moved, by its Release.
            self.line.time.fetch_max(now, Ordering::Relaxed);
        }
        let booked = self.line.head.compare_exchange(head, head + cost, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if booked {
            (head..head + cost).for_each(|k| self.enter(k, now));
        }
        booked
    }

    fn verdict(&self, now: u64, cost: u64) -> Verdict {
        if cost == 0 {
            return Verdict::Allowed;
        }
        if cost > self.log.limit() {
            return Verdict::Never;
        }
        let taken = self.take(now, |head, judged| {
            let fits = self.fits(head, judged, cost)?;
            if !fits && self.log.count_rejected() && !self.book(head, cost, judged) {
                return None;
            }
            Some(if fits { cost } else { 0 })
        });
        if taken == 0 {
            Verdict::Denied
        } else {
            Verdict::Allowed
        }
    }

    fn describe(&self, verdict: Verdict, now: u64, cost: u64) -> Decision {
        if now > SlidingLog::LAST {
            // Only a question, a cost of 0, is allowed here.
            let retry_after = if verdict == Verdict::Allowed { 0 } else { NEVER };
            return Decision { verdict, remaining: 0, retry_after, reset_after: NEVER };
        }
        loop {
            let (head, judged) = self.look(now);
            let Some(remaining) = self.left(head, judged) else { continue };
            let at = |permits: u64| match head.checked_add(permits).and_then(|k| k.checked_sub(1)) {
                // Judged at the newest entry's time, an entry that has left by then has left now.
                Some(k) => self.leaves(head, k, judged).map(|at| if at <= judged { now } else { at }),
                None => Some(now),
            };
            let retry_after = match verdict {
                Verdict::Allowed => 0,
                Verdict::Never => NEVER,
                Verdict::Denied => match at(cost) {
                    Some(at) => after(at, now),
                    None => continue,
                },
            };
            let Some(fresh) = at(self.log.limit()) else { continue };
            return Decision { verdict, remaining, retry_after, reset_after: after(fresh, now) };
        }
    }
}

impl Shared for Log {
    #[inline]
    fn admit_at(&self, now: u64, cost: u64) -> Verdict {
        self.verdict(now, cost)
    }

    fn check_at(&self, now: u64, cost: u64) -> Decision {
        self.describe(self.verdict(now, cost), now, cost)
    }

    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        let fits = || loop {
            let (head, judged) = self.look(now);
            if let Some(fits) = self.fits(head, judged, cost) {
                return fits && now <= SlidingLog::LAST;
            }
        };
        let verdict = match cost {
            0 => Verdict::Allowed,
            _ if cost > self.log.limit() => Verdict::Never,
            _ if fits() => Verdict::Allowed,
            _ => Verdict::Denied,
        };
        self.describe(verdict, now, cost)
    }

    fn take_up_to_at(&self, now: u64, most: u64) -> u64 {
        self.take(now, |head, judged| Some(self.left(head, judged)?.min(most)))
    }

    fn reserve_at(&self, _now: u64, _cost: u64, _until: u64) -> Option<u64> {
        None
    }

    fn books_ahead(&self) -> bool {
        false
    }

    /// Empties every entry, leaving its lap, and forgets the newest time.
    fn reset(&self) {
        self.line.time.store(0, Ordering::Relaxed);
        for entry in &self.entries {
            let mut word = entry.load(Ordering::Acquire);
            while let Err(seen) = entry.compare_exchange_weak(word, word & 7, Ordering::AcqRel, Ordering::Acquire) {
                word = seen;
            }
        }
    }

    fn watch(&self) -> &Watch {
        &self.line.watch
    }
}
