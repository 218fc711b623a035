//! The sliding log's shared state: a counter that decides, and an entry for each permit.
//!
//! `head` is the number of permits entered so far. Permit k goes to place k mod `limit`, where
//! permit k − limit was. `time` is at least the time of every permit in `head`. (A reset empties
//! the entries and makes `time` 0.) A request of cost n takes three steps:
//!
//! 1. Read `head` = h, then `time`. The request is decided at its own time or at `time`, whichever
//!    is later. Read the n entries that permits h … h+n−1 will replace. If one of them is still in
//!    the window, refuse.
//! 2. Raise `time` to the time of the decision, and swap `head` from h to h+n. The swap is the
//!    admission.
//! 3. Swap each of the n entries from its old word to (time, next lap).
//!
//! A thread that sees a permit in `head` sees its time in `time`. So later permits never have
//! earlier times, however much the threads' clocks differ.
//!
//! Between steps 2 and 3 an entry is *pending*: its lap is behind. A thread that needs a pending
//! entry does not wait for the owner. It writes the entry, with the time at which its own request
//! is decided, which is no earlier than the owner's. The owner's swap then fails. So a thread that
//! is killed between steps 2 and 3 costs at most that its permits stay in the window somewhat
//! longer.
//!
//! A thread may sleep anywhere here for many laps, and an entry holds its lap modulo 8 only. So a
//! thread does not write an entry because of its lap alone: after it has read the entry, it reads
//! `head` and gives up if the entry may have been used again. Entries are written with Release and
//! read with Acquire, so a thread that has read one sees a `head` at least as new as its writer
//! saw. If the entry is used again after that, the swap fails.
//!
//! There is one exception: an entry that comes back to the same time and the same lap while a
//! thread sleeps between its read of `head` and its swap. That takes 8 laps in one instant of the
//! clock, which only refused requests that count, or resets, can make. The entry's lap is then
//! wrong, behind or ahead. Either way other threads take the entry for pending and write it again.
//! There is no other effect.
//!
//! A concurrent observer may see `head` ahead of the entries. It never takes a pending entry for an
//! old one. A refusal writes nothing, unless rejected requests count or it meets a pending entry.
//! Every loop here repeats only because another thread has changed `head` or an entry, [`TRIES`]
//! times at most.
//!
//! # In a table
//!
//! [`LogView`] is the protocol, [`Log`] a limiter's state that uses it. In a table the log belongs
//! to the slot, and the word belongs to a key for as long as its state matters ([`super::head`]).
//! To the protocol that is one log with one history. The word is `head` modulo a number, and the
//! time of the newest permit in grains ([`KeyedLog`]). Three things follow from that:
//!
//! - *The state has expired when the word says so*, whichever thread was killed where. The time in
//!   the word covers all permits in `head`, entered or pending, and no entry ever gets a later
//!   time: a thread settles a pending entry with the end of the word's grain, if that is earlier
//!   than the time at which its request is decided. A new key settles all pending entries before
//!   its first swap, while the word still holds the old time. It reads every entry once, and after
//!   that no entry of the old key is pending. (`time` proves less: a thread that was killed between
//!   raising it and the swap may have left a later time. The next request is then decided at that
//!   time, as after any step back of the clock.)
//! - *A straggler's entry is written only while it is the newest of its place.* A head that is
//!   known modulo a number cannot show that alone. So the straggler also reads the time in the
//!   word: within a period fewer permits are admitted than `head` tells apart. After a period the
//!   straggler gives up, and a thread that needs its entry settles it, as if the straggler had been
//!   killed. It also gives up if the slot is another key's, because the first request of that key
//!   has settled the entry.
//! - *A word that has not moved is still the one that was read*, because within a grain fewer
//!   permits are admitted than `head` tells apart.
//!
//! The last two need a bound on the permits that are entered in one grain or in a period, and
//! refused requests that count have none. For those a straggler gives up in the second grain after
//! its own. A mistake then needs a thread that sleeps while a whole turn of `head` is entered in
//! one or two grains, which is at least two permits for each nanosecond, and that wakes at exactly
//! that permit. Each of those permits takes a swap of an entry.

use super::side_words::SideWords;
use super::state_word::{StateWord, TRIES};
use super::words::{Protocol, SeveralWords};
use super::Watch;
use crate::algorithm::sliding_log::{KeyedLog, Packing, SlidingLog};
use crate::algorithm::{after, until};
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::{Policy, PolicyError};
use crate::sync::{zeroed, AtomicU64, CachePadded, Ordering, Word};
use crate::units::NEVER;
use alloc::boxed::Box;

/// A sliding log that any number of threads share.
#[derive(Debug)]
pub struct Log {
    line: CachePadded<LogLine>,
    entries: Box<[AtomicU64]>,
    log: SlidingLog,
}

#[derive(Debug, Default)]
struct LogLine {
    head: AtomicU64,
    time: AtomicU64,
    watch: Watch,
}

/// A log as one caller sees it: the word that holds `head`, `time`, the entries, and how they are
/// packed. All answers are `None` if the word is no longer the caller's, or after [`TRIES`] rounds;
/// then nothing has been taken.
pub(crate) struct LogView<'a, H, E: SideWords, P> {
    head: &'a H,
    time: E::Place,
    /// One for each permit of the limit.
    entries: E,
    packing: &'a P,
}

impl Log {
    /// A fresh state. It allocates 8 bytes for each permit of the limit; no later call allocates.
    ///
    /// # Errors
    /// [`PolicyError::NoMemory`], and those of [`SlidingLog::new`].
    pub fn new(policy: &Policy) -> Result<Log, PolicyError> {
        let log = SlidingLog::new(policy)?;
        let places = usize::try_from(log.limit()).map_err(|_| PolicyError::NoMemory)?;
        Ok(Log {
            line: CachePadded::new(LogLine::default()),
            entries: zeroed(places).ok_or(PolicyError::NoMemory)?,
            log,
        })
    }

    /// The permits of a fresh state.
    pub(super) fn limit(&self) -> u64 {
        self.log.limit()
    }
}

impl<'a, H: StateWord, E: SideWords> LogView<'a, H, E, KeyedLog> {
    /// A log in a table: its word, and the slot's [`KeyedLog::side_words`]. `None` if there are no
    /// side words.
    #[inline(always)]
    pub(crate) fn new(head: &'a H, side: E, log: &'a KeyedLog) -> Option<Self> {
        let (time, entries) = side.split_first()?;
        Some(LogView { head, time, entries, packing: log })
    }

    /// Enters the permits of `word`, the first word of a log whose other words are all 0, at `now`
    /// or at the nearest time that the word allows. Until then they are pending.
    pub(crate) fn enter_first(&self, word: u64, now: u64) {
        let at = now.max(self.packing.floor(word)).min(self.packing.ceiling(word));
        if self.time.raise(at) {
            (0..self.packing.head(word)).for_each(|k| self.enter(k, at));
        }
    }
}

impl<H: StateWord, E: SideWords, P: Packing> LogView<'_, H, E, P> {
    /// The time at which permit number `k`'s predecessor leaves the window. A pending entry is
    /// written first, with `now` or with the upper bound of the times in `word`, whichever is
    /// earlier. `k` is one of the `limit` permits from the word's head on. `None` if `word` is old,
    /// or others keep changing the entry.
    #[inline]
    fn leaves(&self, word: u64, k: u64, now: u64) -> Option<u64> {
        let (place, lap) = self.compiled().place(k);
        let Some(entry) = self.entries.place(place as usize) else { return Some(NEVER) };
        let mut seen = entry.load(Ordering::Acquire);
        for _ in 0..TRIES {
            let kept = SlidingLog::unpack(seen);
            if kept.lap == lap {
                return Some(self.compiled().leaves(kept));
            }
            // Relaxed, in `load_relaxed`: ordered after the entry by its Acquire.
            if self.head.load_relaxed() != Some(word) {
                return None;
            }
            let settled = SlidingLog::pack(now.min(self.packing.ceiling(word)), lap);
            match entry.exchange(
                seen,
                settled,
                // Release: as the module says. No model notices a weaker ordering: a caller with an
                // old word could only make the entry pending again, and the next one writes it.
                Ordering::AcqRel,
                // Acquire: `head` is read after the entry, as above.
                Ordering::Acquire,
            ) {
                Ok(_) => seen = settled,
                Err(other) => seen = other,
            }
        }
        None
    }

    /// Step 3 for permit number `k`.
    fn enter(&self, k: u64, now: u64) {
        let (place, lap) = self.compiled().place(k);
        let Some(entry) = self.entries.place(place as usize) else { return };
        let new = SlidingLog::pack(now, SlidingLog::next_lap(lap));
        // Acquire: as in `leaves`. No model notices a weaker ordering: a straggler with an old head
        // could only make the entry pending again, and the next caller writes it.
        let mut seen = entry.load(Ordering::Acquire);
        // Repeats until another thread has settled the entry. The entry to be replaced may itself
        // be pending, but only where rejected requests count: an admission has settled all of its
        // predecessors.
        for _ in 0..TRIES {
            if SlidingLog::unpack(seen).lap == SlidingLog::next_lap(lap) {
                return;
            }
            // Relaxed, in `load_relaxed`: ordered after the entry by its Acquire. If the answer is
            // no, permit k + limit may have the place by now, or the slot is another key's, which
            // has settled this entry.
            if !self.head.load_relaxed().is_some_and(|word| self.packing.newest(word, k, now)) {
                return;
            }
            match entry.exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
        // The entry stays pending, as if this thread had been killed here.
    }

    #[inline(always)]
    fn compiled(&self) -> &SlidingLog {
        self.packing.log()
    }

    /// The word, and the time at which a request that reads it is decided: `now`, or the newest
    /// time if the clock went back.
    #[inline(always)]
    fn read(&self, now: u64) -> Option<(u64, u64)> {
        // Acquire: the times of the word's permits are visible, and so are the entries written
        // before it.
        let word = self.head.load()?;
        // `time` is later than the last time only in damaged memory. It is earlier than the word's
        // grain in a log that begins with permits, before they are entered.
        let newest = self.time.load(Ordering::Relaxed).max(self.packing.floor(word));
        Some((word, now.max(newest.min(SlidingLog::LAST))))
    }

    /// Whether the predecessors of `cost` permits from the word's head on have all left the window;
    /// `None` if `word` is old.
    #[inline]
    fn fits(&self, word: u64, now: u64, cost: u64) -> Option<bool> {
        let head = self.packing.head(word);
        // The loop begins with the newest entry, because the newest leaves the window last: if any
        // of them refuses, it does.
        for k in (head..head.saturating_add(cost)).rev() {
            if self.leaves(word, k, now)? > now {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Permits that could be taken: the number of predecessors, from the oldest on, that have left
    /// the window. `None` if `word` is old.
    fn left(&self, word: u64, now: u64) -> Option<u64> {
        let head = self.packing.head(word);
        let (mut low, mut high) = (0, self.compiled().limit());
        // Permits' times are in order. Only an entry that another thread settled may be later than
        // its permit was. If its successor has left, that permit has, too.
        while low < high {
            let middle = low + (high - low) / 2;
            if self.leaves(word, head.saturating_add(middle), now)? > now {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low)
    }

    /// Steps 1 to 3. `choose` gets the word and the time of the decision, and returns how many
    /// permits to take.
    fn take(&self, now: u64, choose: impl Fn(u64, u64) -> Option<u64>) -> Option<u64> {
        if now > SlidingLog::LAST {
            return Some(0);
        }
        for _ in 0..TRIES {
            let (word, judged) = self.read(now)?;
            if self.head.takes_over(word) && self.settle(word, judged).is_none() {
                continue;
            }
            let Some(cost) = choose(word, judged) else { continue };
            if cost == 0 || self.book(word, cost, judged) {
                return Some(cost);
            }
        }
        None
    }

    /// Writes all pending entries before a new key's first permit, because a later word would allow
    /// later times. `None` if `word` is old.
    fn settle(&self, word: u64, now: u64) -> Option<()> {
        // A fresh log has no pending entries.
        let most = if word == 0 { 0 } else { self.compiled().limit() };
        let head = self.packing.head(word);
        (head..head.saturating_add(most)).try_for_each(|k| self.leaves(word, k, now).map(drop))
    }

    /// Steps 2 and 3. `false` if `word` is old.
    fn book(&self, word: u64, cost: u64, now: u64) -> bool {
        // Relaxed: the Release of the swap below makes it visible with the new word.
        if self.time.load(Ordering::Relaxed) < now && !self.time.raise(now) {
            return false;
        }
        let booked = self.head.swap(word, self.packing.next(word, cost, now)).is_ok();
        if booked {
            let head = self.packing.head(word);
            (head..head + cost).for_each(|k| self.enter(k, now));
        }
        booked
    }
}

impl<H: StateWord, E: SideWords, P: Packing> Protocol for LogView<'_, H, E, P> {
    #[inline(always)]
    fn limit(&self) -> u64 {
        self.compiled().limit()
    }

    fn admit(&self, now: u64, cost: u64) -> Option<Verdict> {
        if cost == 0 {
            return Some(Verdict::Allowed);
        }
        if cost > self.compiled().limit() {
            return Some(Verdict::Never);
        }
        let taken = self.take(now, |word, judged| {
            let fits = self.fits(word, judged, cost)?;
            if !fits && self.compiled().count_rejected() && !self.book(word, cost, judged) {
                return None;
            }
            Some(if fits { cost } else { 0 })
        })?;
        Some(if taken == 0 { Verdict::Denied } else { Verdict::Allowed })
    }

    fn would_admit(&self, now: u64, cost: u64) -> Option<Verdict> {
        let fits = || {
            for _ in 0..TRIES {
                let (word, judged) = self.read(now)?;
                if let Some(fits) = self.fits(word, judged, cost) {
                    return Some(fits && now <= SlidingLog::LAST);
                }
            }
            None
        };
        Some(match cost {
            0 => Verdict::Allowed,
            _ if cost > self.compiled().limit() => Verdict::Never,
            _ if fits()? => Verdict::Allowed,
            _ => Verdict::Denied,
        })
    }

    fn take_up_to(&self, now: u64, most: u64) -> Option<u64> {
        self.take(now, |word, judged| Some(self.left(word, judged)?.min(most)))
    }

    fn describe(&self, verdict: Verdict, now: u64, cost: u64) -> Option<Decision> {
        if now > SlidingLog::LAST {
            // After the last time only a cost of 0 is allowed.
            let retry_after = if verdict == Verdict::Allowed { 0 } else { NEVER };
            return Some(Decision {
                verdict,
                reason: Reason::of(verdict),
                remaining: 0,
                retry_after,
                reset_after: NEVER,
                bound: 0,
            });
        }
        for _ in 0..TRIES {
            let (word, judged) = self.read(now)?;
            let Some(remaining) = self.left(word, judged) else { continue };
            let at = |permits: u64| match self
                .packing
                .head(word)
                .checked_add(permits)
                .and_then(|k| k.checked_sub(1))
            {
                // A request is decided at the newest time: an entry that has left by then has left
                // now.
                Some(k) => self.leaves(word, k, judged).map(|at| match at <= judged {
                    true => now,
                    false => until(SlidingLog::LAST, at),
                }),
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
            let Some(fresh) = at(self.compiled().limit()) else { continue };
            return Some(Decision {
                verdict,
                reason: Reason::of(verdict),
                remaining,
                retry_after,
                reset_after: after(fresh, now),
                bound: 0,
            });
        }
        None
    }
}

impl SeveralWords for Log {
    type View<'a> = LogView<'a, AtomicU64, &'a [AtomicU64], SlidingLog>;

    #[inline(always)]
    fn view(&self) -> Self::View<'_> {
        LogView {
            head: &self.line.head,
            time: &self.line.time,
            entries: &*self.entries,
            packing: &self.log,
        }
    }

    /// Empties every entry, keeps its lap, and forgets the newest time.
    fn reset(&self) {
        self.line.time.store(0, Ordering::Relaxed);
        for entry in &self.entries {
            // Relaxed, all three: the lap stays, and a thread that reads the new word with Acquire
            // sees what the entry's writer saw, because the swap continues its release sequence.
            let mut word = entry.load(Ordering::Relaxed);
            while let Err(seen) =
                entry.compare_exchange_weak(word, word & 7, Ordering::Relaxed, Ordering::Relaxed)
            {
                word = seen;
            }
        }
    }

    fn watch(&self) -> &Watch {
        &self.line.watch
    }
}
