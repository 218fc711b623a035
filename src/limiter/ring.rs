//! The sliding window's shared state: one word that decides, and a ring of counts.
//!
//! `word` holds the running segment and the running count of all permits admitted. An admission is
//! one compare-and-swap on it, so no step has to be confirmed or undone: a request either moved the
//! count or did nothing. `starts[s mod places]` holds the count at the start of segment s.
//!
//! The thread that admits the first request of a segment writes that segment's start before it
//! moves the word:
//!
//! 1. Read `word` = (i, c). For each segment k in i+1 … j make `starts[k]` (k, c): read the place,
//!    check that `word` has not moved, and swap the place from the value that was read.
//! 2. Swap `word` from (i, c) to (j, c + cost).
//!
//! A start written in step 1 is too low if another thread is admitted in segment i meanwhile. Then
//! step 2 fails, and the next thread that tries writes the start again. If step 2 succeeds, the
//! word was (i, c) all the time, and the start is final. A straggler that read an older word cannot
//! change it. Either it reads the new start, then by its Acquire also the newer word, and gives up;
//! or its swap of the place fails.
//!
//! No thread compares two counts to find the newer one. Counts are known modulo a power of two
//! only, and a start that a stopped thread left behind may be any number of permits old. A thread
//! killed between steps 1 and 2 leaves starts of segments that have not begun; the thread that
//! begins them writes them again.
//!
//! A concurrent observer may see a start of a segment beyond the word's. If that start has taken
//! the place of a start that is still needed, or still to be written, some thread's clock has
//! reached that later segment, and the observer decides its request there. A refusal writes
//! nothing.
//!
//! [`RingView`] is the protocol, [`Ring`] a limiter's state that uses it. In a table the word
//! belongs to a key for as long as its state matters, and the places beside it belong to the slot
//! ([`super::head`]). To the protocol that is one ring with one history: a new key's admission is
//! the admission that follows an idle time. Starts may then be from another key's time. As always,
//! their segment and the word tell them from new ones.

use super::side_words::SideWords;
use super::state_word::{StateWord, TRIES};
use super::words::{Protocol, SeveralWords};
use super::Watch;
use crate::algorithm::sliding_window::{Mark, SlidingWindow, Starts};
use crate::algorithm::{after, until};
use crate::decision::{Decision, Reason, Verdict};
use crate::policy::{Anchor, Policy, PolicyError};
use crate::sync::{zeroed, AtomicU64, CachePadded, Ordering, Word};
use crate::units::NEVER;
use alloc::boxed::Box;

/// A sliding window that any number of threads share.
#[derive(Debug)]
pub struct Ring {
    line: CachePadded<RingLine>,
    starts: Box<[AtomicU64]>,
    window: SlidingWindow,
    anchor: Anchor,
}

#[derive(Debug, Default)]
struct RingLine {
    word: AtomicU64,
    /// `anchor first`: the first admission's time, plus 1. 0: none yet.
    origin: AtomicU64,
    watch: Watch,
}

/// A ring as one caller sees it: the word, the places, and the compiled window. All answers are
/// `None` if the word is no longer the caller's, or after [`TRIES`] rounds; then nothing has been
/// taken.
pub(crate) struct RingView<'a, H, P> {
    head: &'a H,
    /// [`SlidingWindow::places`] of them.
    starts: P,
    /// [`RingLine::origin`]; `None` for windows aligned to time 0.
    origin: Option<&'a AtomicU64>,
    window: &'a SlidingWindow,
}

/// The inputs of a decision, as of one value of the word.
struct View {
    /// The word that was read.
    word: u64,
    mark: Mark,
    /// The window's origin in nanoseconds, plus 1. 0: there is none yet, and this request's time
    /// would become the origin.
    origin: u64,
    /// The segment in which the request is decided.
    segment: u64,
    /// Nanoseconds from the start of that segment to the request.
    elapsed: u64,
    starts: Starts,
}

impl Ring {
    /// A fresh state. It allocates 8 bytes for each of [`SlidingWindow::places`]; no later call
    /// allocates.
    ///
    /// # Errors
    /// [`PolicyError::NoMemory`], and those of [`SlidingWindow::new`].
    pub fn new(policy: &Policy) -> Result<Ring, PolicyError> {
        let window = SlidingWindow::new(policy)?;
        let places = usize::try_from(window.places()).map_err(|_| PolicyError::NoMemory)?;
        Ok(Ring {
            line: CachePadded::new(RingLine::default()),
            starts: zeroed(places).ok_or(PolicyError::NoMemory)?,
            window,
            anchor: policy.anchor,
        })
    }

    /// The permits of a fresh state.
    pub(super) fn limit(&self) -> u64 {
        self.window.limit()
    }
}

impl<'a, H: StateWord, P: SideWords> RingView<'a, H, P> {
    /// A ring in a table: its word, and the slot's [`SlidingWindow::side_words`].
    #[inline(always)]
    pub(crate) fn new(head: &'a H, side: P, window: &'a SlidingWindow) -> Self {
        RingView { head, starts: side, origin: None, window }
    }

    /// [`View::origin`]; that of time 0 unless the window is anchored to its first request.
    #[inline]
    fn origin(&self) -> u64 {
        match self.origin {
            None => 1,
            // Relaxed: the origin is written once, before the word first moves. It is read after
            // the word's Acquire, so a thread that has seen the word moved sees the origin.
            Some(origin) => origin.load(Ordering::Relaxed),
        }
    }

    #[inline]
    fn place(&self, segment: u64) -> Option<P::Place> {
        // The length is a power of two.
        self.starts.place((segment as usize) & self.starts.count().wrapping_sub(1))
    }

    /// The view at `now`, but no earlier than in segment `seen`. `Some(None)` after the last time.
    // Inlined, so that the view is not passed through memory. Out of line in the freestanding
    // artefacts, to keep them small.
    #[cfg_attr(feature = "small", inline(never))]
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn view(&self, now: u64, mut seen: u64) -> Option<Option<View>> {
        if now > self.window.last_time() {
            return Some(None);
        }
        for _ in 0..TRIES {
            // Acquire: the starts are visible that were final when the word was written.
            let word = self.head.load()?;
            let mark = self.window.unpack(word);
            let origin = self.origin();
            let (segment, elapsed) = self.window.segment_in_time(since(origin, now));
            // A request whose clock went back is decided at the start of the latest segment known.
            let judged = segment.max(mark.segment).max(seen);
            let elapsed = if judged == segment { elapsed } else { 0 };
            match self.starts_of(judged, mark) {
                Ok(starts) => {
                    return Some(Some(View {
                        word,
                        mark,
                        origin,
                        segment: judged,
                        elapsed,
                        starts,
                    }))
                }
                // The ring has more places than a view reads, so the start that replaced one of
                // them is of a segment after `judged`.
                Err(later) => seen = later.max(seen),
            }
        }
        None
    }

    /// The starts that count in `segment`, given the word's mark. `Err` has the later segment that
    /// has taken the place of one of them.
    #[inline]
    fn starts_of(&self, segment: u64, mark: Mark) -> Result<Starts, u64> {
        let whole = self.start(segment.saturating_sub(self.window.whole()), mark)?;
        let partial = match segment.checked_sub(self.window.whole() + 1) {
            Some(before) if self.window.partial() => self.start(before, mark)?,
            _ => whole,
        };
        Ok(Starts { whole, partial })
    }

    #[inline]
    fn start(&self, segment: u64, mark: Mark) -> Result<u64, u64> {
        if segment > mark.segment {
            return Ok(mark.count);
        }
        let Some(place) = self.place(segment) else { return Ok(mark.count) };
        // Relaxed: ordered after the word by its Acquire.
        let kept = self.window.unpack(place.load(Ordering::Relaxed));
        if kept.segment > segment {
            return Err(kept.segment);
        }
        Ok(kept.count)
    }

    /// Step 1: writes the starts of the segments after the word's, up to `view.segment`. `Err` has
    /// the later segment that has taken a place, or 0 if the word has moved.
    #[cfg_attr(feature = "small", inline(never))]
    fn begin(&self, view: &View) -> Result<(), u64> {
        let places = self.starts.count() as u64;
        let first = (view.mark.segment + 1).max((view.segment + 1).saturating_sub(places));
        (first..=view.segment).try_for_each(|segment| self.write(view, segment))
    }

    fn write(&self, view: &View, segment: u64) -> Result<(), u64> {
        let Some(place) = self.place(segment) else { return Err(0) };
        let new = self.window.pack(Mark { segment, count: view.mark.count });
        // Acquire, and Release below: a thread that reads a start sees the word that its writer
        // saw, or a newer one. So if the word is still the view's after this load, the start was
        // written under the view's word or an older one.
        let mut word = place.load(Ordering::Acquire);
        for _ in 0..TRIES {
            if word == new {
                return Ok(());
            }
            // A later segment of the same place is a round of the ring later, and so later than the
            // view's. A segment between the two is damage, and is overwritten.
            let kept = self.window.unpack(word);
            if kept.segment > view.segment {
                return Err(kept.segment);
            }
            if self.head.load_relaxed() != Some(view.word) {
                return Err(0);
            }
            match place.exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
        Err(0)
    }

    /// Step 2. Its Release makes the starts visible to a thread that reads the new word.
    fn swap(&self, view: &View, cost: u64) -> bool {
        let next = Mark { segment: view.segment, count: view.mark.count.wrapping_add(cost) };
        self.head.swap(view.word, self.window.pack(next)).is_ok()
    }

    fn left(&self, view: &View) -> u64 {
        self.window.left(view.mark.count, view.starts, view.elapsed)
    }

    /// Takes as many permits as are left, up to `most`, or none if fewer than `least` are left.
    /// Returns their number.
    #[cfg_attr(feature = "small", inline(never))]
    #[cfg_attr(not(feature = "small"), inline)]
    fn take(&self, now: u64, least: u64, most: u64) -> Option<u64> {
        let mut seen = 0;
        for _ in 0..TRIES {
            let view = match self.view(now, seen) {
                Some(Some(view)) => view,
                Some(None) => return Some(0),
                None => return None,
            };
            let cost = self.left(&view).min(most);
            if cost == 0 || cost < least {
                return Some(0);
            }
            if let (0, Some(origin)) = (view.origin, self.origin) {
                let first = now.saturating_add(1);
                // Another thread has set the origin, so the request may be in another segment: make
                // a new view.
                if origin.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed).is_err()
                {
                    continue;
                }
            }
            if view.segment > view.mark.segment {
                if let Err(later) = self.begin(&view) {
                    // The next view is at that segment, so the same place is not in the way again.
                    seen = later.max(seen);
                    continue;
                }
            }
            if self.swap(&view, cost) {
                return Some(cost);
            }
        }
        None
    }

    /// The earliest time, in nanoseconds, at which `cost` permits are left: `now` if they are left
    /// in the view.
    fn admits_at(&self, view: &View, now: u64, cost: u64) -> u64 {
        let (mut segment, mut starts) = (view.segment, view.starts);
        // By the last of these segments all permits that the view knows have left the window.
        for _ in 0..self.window.whole() + 3 {
            if let Some(at) = self.window.fits_in(segment, view.mark.count, starts, cost) {
                let since = since(view.origin, now);
                return until(self.window.last_time(), absolute(view.origin, at.max(since), now));
            }
            segment += 1;
            match self.starts_of(segment, view.mark) {
                Ok(next) => starts = next,
                // Another thread has begun a later segment. The search goes on there, with what
                // this view knows.
                Err(later) => segment = later,
            }
        }
        NEVER
    }
}

impl<H: StateWord, P: SideWords> Protocol for RingView<'_, H, P> {
    #[inline(always)]
    fn limit(&self) -> u64 {
        self.window.limit()
    }

    #[inline]
    fn admit(&self, now: u64, cost: u64) -> Option<Verdict> {
        if cost == 0 {
            return Some(Verdict::Allowed);
        }
        if cost > self.window.limit() {
            return Some(Verdict::Never);
        }
        Some(match self.take(now, cost, cost)? {
            0 => Verdict::Denied,
            _ => Verdict::Allowed,
        })
    }

    fn would_admit(&self, now: u64, cost: u64) -> Option<Verdict> {
        let left = self.view(now, 0)?.map_or(0, |view| self.left(&view));
        Some(match cost {
            0 => Verdict::Allowed,
            _ if cost > self.window.limit() => Verdict::Never,
            _ if cost <= left => Verdict::Allowed,
            _ => Verdict::Denied,
        })
    }

    #[inline]
    fn take_up_to(&self, now: u64, most: u64) -> Option<u64> {
        self.take(now, 0, most)
    }

    fn describe(&self, verdict: Verdict, now: u64, cost: u64) -> Option<Decision> {
        let view = match self.view(now, 0) {
            None => return None,
            Some(Some(view)) if verdict != Verdict::Never => view,
            Some(view) => {
                let remaining = view.map_or(0, |view| self.left(&view));
                // After the last time, without a view, only a cost of 0 is allowed.
                let retry_after = if verdict == Verdict::Allowed { 0 } else { NEVER };
                return Some(Decision {
                    verdict,
                    reason: Reason::of(verdict),
                    remaining,
                    retry_after,
                    reset_after: NEVER,
                    bound: 0,
                });
            }
        };
        let retry_after = match verdict {
            Verdict::Allowed => 0,
            _ => after(self.admits_at(&view, now, cost), now),
        };
        Some(Decision {
            verdict,
            reason: Reason::of(verdict),
            remaining: self.left(&view),
            retry_after,
            reset_after: after(self.admits_at(&view, now, self.window.limit()), now),
            bound: 0,
        })
    }
}

impl SeveralWords for Ring {
    type View<'a> = RingView<'a, AtomicU64, &'a [AtomicU64]>;

    #[inline(always)]
    fn view(&self) -> Self::View<'_> {
        let origin = match self.anchor {
            Anchor::Epoch => None,
            Anchor::First => Some(&self.line.origin),
        };
        RingView { head: &self.line.word, starts: &*self.starts, origin, window: &self.window }
    }

    /// Makes every start the running count, so that no permit counts any more.
    fn reset(&self) {
        for place in &self.starts {
            // Acquire: the word is read after the place, so its count is no older than the start.
            // No model notices a weaker ordering, here and below: the window then counts permits
            // of the moment of the reset as later ones, and no model says how many those are.
            let mut word = place.load(Ordering::Acquire);
            loop {
                let kept = self.window.unpack(word);
                let mark = self.window.unpack(self.line.word.load(Ordering::Acquire));
                let new = self.window.pack(Mark { count: mark.count, ..kept });
                // A place that has changed since is read again with a newer word. (No model notices
                // a weaker ordering: as above.)
                match place.compare_exchange(word, new, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break,
                    Err(seen) => word = seen,
                }
            }
        }
    }

    fn watch(&self) -> &Watch {
        &self.line.watch
    }
}

/// The nanoseconds since an origin ([`View::origin`]). A fresh state has its origin at the request.
#[inline]
fn since(origin: u64, now: u64) -> u64 {
    match origin {
        0 => 0,
        origin => now.saturating_sub(origin - 1),
    }
}

/// The clock's time at `at` nanoseconds since an origin: the inverse of [`since`].
fn absolute(origin: u64, at: u64, now: u64) -> u64 {
    match origin {
        0 => at.saturating_add(now),
        origin => at.saturating_add(origin - 1),
    }
}
