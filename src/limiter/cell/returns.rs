//! What lowers a cell's word: permits that go back, and another state in its place.

use super::Cell;
use crate::algorithm::{place, Algorithm, BookingPlace, Charge, GiveBack};
use crate::sync::{fence, Ordering, TwoWords, Word};
use core::cell::Cell as Local;

/// The result of [`Cell::lower_for`].
enum Lowered {
    /// The booking was the last one, and the state is that before it.
    Undone,
    /// The state got so many permits of the charge back.
    By(u64),
    /// Other bookings follow the charge, and the state is as it was.
    Followed,
}

impl Lowered {
    fn permits(self, charge: Charge) -> u64 {
        match self {
            Lowered::Undone => charge.cost,
            Lowered::By(permits) => permits,
            Lowered::Followed => 0,
        }
    }
}

impl<A: Algorithm> Cell<A> {
    /// [`Shared::give_back`](crate::limiter::Shared::give_back).
    pub(super) fn return_permits(
        &self,
        charge: Charge,
        permits: u64,
        now: &impl Fn() -> u64,
    ) -> u64 {
        let returned = match self.lower_for(charge, permits, now, true) {
            Lowered::Undone => charge.cost,
            Lowered::By(permits) => return permits,
            Lowered::Followed if self.gaps.keep(charge, now()) => 0,
            Lowered::Followed => {
                return self.lower_for(charge, permits, now, false).permits(charge)
            }
        };
        self.close_gaps(now);
        returned
    }

    /// The highest word that a give-back has lowered; 0 if there was none.
    pub(in crate::limiter) fn highest(&self) -> u64 {
        // Relaxed: a caller that has called `Cell::word` before sees what was lowered before that
        // word.
        self.line.highest.load(Ordering::Relaxed)
    }

    /// Puts the state of another cell in place of this one, which no other call uses: its word,
    /// whether it was booked ahead, and its highest word.
    pub(in crate::limiter) fn go_on(&self, word: u64, booked: bool, highest: u64) {
        // Relaxed: the swap of the word publishes both.
        self.line.booked.store(u32::from(booked), Ordering::Relaxed);
        self.line.highest.store(highest, Ordering::Relaxed);
        self.set_word(word);
    }

    /// Stores the word that `lower` makes of the current one, and returns what `lower` returns
    /// beside it. `None`, and nothing changes: `lower` refuses, or the processor has no swap of two
    /// words.
    ///
    /// The new word may hold fewer charges, so the word may come back to a value that it had. A
    /// swap that compared the word alone would not notice that another call had lowered the word,
    /// and requests at a later time had raised it to the same value: what `lower` computed would be
    /// out of date. The swap also compares the number of lowered words. All calls but this one only
    /// add charges. So if the number and the word are the same, no request has been admitted since
    /// `lower` began.
    pub(super) fn lower<T>(&self, lower: impl Fn(u64) -> Option<(u64, T)>) -> Option<T> {
        if !TwoWords::swaps() {
            return None;
        }
        let words = &self.line.words;
        loop {
            // Acquire: the word is read after the number, so a call in between changes the number.
            // No model notices a weaker ordering, because loom's two words are one atomic.
            let count = words.load_second(Ordering::Acquire);
            // Acquire: for `has_booked` and `highest`. No model notices a weaker ordering, because
            // the load above has the same atomic in loom.
            let word = Word::load(words.first(), Ordering::Acquire);
            let (next, result) = lower(word)?;
            if words.swap((word, count), (next, count.wrapping_add(1))).is_ok() {
                return Some(result);
            }
        }
    }

    /// Gives permits of `charge` back to the state. With `spares` it gives back nothing of a
    /// booking that others follow.
    fn lower_for(
        &self,
        charge: Charge,
        permits: u64,
        now: &impl Fn() -> u64,
        spares: bool,
    ) -> Lowered {
        let highest = &self.line.highest;
        let followed = Local::new(false);
        // The time and the flags are read after each word: see `GiveBack`.
        let lowered = self.lower(|state| {
            // Relaxed: the thread that lowered this word had raised `highest` before, and its swap
            // publishes both.
            let seen = highest.load(Ordering::Relaxed);
            let back = GiveBack {
                charge,
                permits,
                booked: self.has_booked(),
                highest: seen,
                keeps_slot: false,
            };
            let now = now();
            let place = place(&self.algorithm, state, now, &back);
            followed.set(spares && place == BookingPlace::Before);
            match place {
                BookingPlace::Last(next) => return Some((next, Lowered::Undone)),
                BookingPlace::Before if spares => return None,
                BookingPlace::Before | BookingPlace::Unknown => {}
            }
            let returned = self.algorithm.give_back(state, now, &back)?;
            highest.fetch_max(state, Ordering::Relaxed);
            Some((returned.next, Lowered::By(returned.permits)))
        });
        match lowered {
            Some(lowered) => lowered,
            None if followed.get() => Lowered::Followed,
            None => Lowered::By(0),
        }
    }

    /// Gives back the gaps that no booking follows any more.
    fn close_gaps(&self, now: &impl Fn() -> u64) {
        while let Some(gap) = self.gaps.take_latest(now()) {
            if !matches!(self.lower_for(gap, gap.cost, now, true), Lowered::Followed) {
                continue;
            }
            if !self.gaps.keep(gap, now()) {
                self.lower_for(gap, gap.cost, now, false);
                return;
            }
            // While this call held the gap, those after it may have left, and their calls have not
            // seen it.
            fence(Ordering::SeqCst);
            let back = GiveBack {
                charge: gap,
                permits: gap.cost,
                booked: true,
                highest: 0,
                keeps_slot: false,
            };
            if place(&self.algorithm, self.word(), now(), &back) == BookingPlace::Before {
                return;
            }
        }
    }
}
