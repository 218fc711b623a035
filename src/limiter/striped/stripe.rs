//! Stripes: cache lines in which threads keep credit that has been charged already.
//!
//! Time is cut into *slices* of [`Stripes::LEAST_SLICE`] at least. The number of the newest slice
//! in which credit has been taken is `slice`; it only grows. A stripe has five words:
//!
//! ```text
//! owner    thread:44 | slice:20     the thread that owns the stripe, and the slice in which it owns it, modulo 2^20; 0: none yet
//! credit   slice:48  | permits:16   the permits, and the slice in which they are good
//! counter  thread + 1               the first thread that owned the stripe; 0: none yet
//! paid     number                   requests that this thread paid with credit
//! others   number                   requests that later owners paid with credit
//! ```
//!
//! - *Own a stripe*: swap `owner` from one of an older slice to (me, `slice`). In one slice a
//!   stripe has one owner.
//! - *Fill*, by the owner after permits have been charged: store (`slice`, n), n at most
//!   [`Stripes::most`].
//! - *Spend*, by the owner: if `owner` is (me, `slice`) and the credit is of `slice`, store the
//!   credit with fewer permits. No locked instruction: no other thread stores credit of that slice.
//! - *Expire*: `slice` grows. All credit of older slices is void at that instant, wherever it is,
//!   and every stripe is free. Void credit is lost: it has been charged and no request gets it.
//!
//! # Why no permit is spent twice
//!
//! Credit counts only together with the slice in which it was stored, and in that slice one thread
//! owns the stripe: `owner` leaves (me, s) only for a later slice. A thread that was stopped in the
//! middle of a spend stores credit of its own, old slice, however late. If that overwrites the
//! credit of a later owner, the later owner's credit is void. No store raises credit of a slice
//! that is not the storing thread's.
//!
//! # Why no request is counted twice, or lost
//!
//! `counter` never changes once it is set, so `paid` has one writer, which adds with a plain
//! instruction. A later owner adds to `others` with a locked one: it could add at the instant at
//! which a thread that was stopped in the middle of an older spend adds, too.
//!
//! # Why there is never more credit than `places · most`
//!
//! At each instant only credit of the present slice counts, one word for each stripe. A spend that
//! reads `slice` = s just before `slice` grows is a spend of that instant: the credit was there.
//!
//! # Orderings
//!
//! Spending is Relaxed throughout. Owner and credit are the thread's own while they name it and the
//! slice that it has read. An old `slice` stands for an earlier instant within the call. To own a
//! stripe is ordered; see [`Stripes::take`].

use crate::sync::{bump, AtomicU64, CachePadded, Ordering};
use alloc::boxed::Box;

const SLICE_BITS: u32 = 20;
const CREDIT_BITS: u32 = 16;
const CREDIT: u64 = (1 << CREDIT_BITS) - 1;
/// Not 0, so a stripe that no thread has owned is not that of a thread without a number.
const FIRST_SLICE: u64 = 1;

#[derive(Debug, Default)]
#[repr(C)]
struct Stripe {
    owner: PaddedWord,
    credit: AtomicU64,
    counter: AtomicU64,
    paid: AtomicU64,
    others: AtomicU64,
}

/// A word on a cache line of its own. The threads that may own a stripe read `owner` with each
/// request, and its owner writes the other words with each request. On one line the others would
/// wait for the owner.
#[derive(Debug, Default)]
#[repr(align(64))]
struct PaddedWord(AtomicU64);

#[cfg(not(loom))]
const _: () = assert!(
    core::mem::size_of::<CachePadded<Stripe>>() >= 128
        && core::mem::offset_of!(Stripe, credit) == 64
);

/// Stripes of one limiter.
#[derive(Debug)]
pub(super) struct Stripes {
    slice: AtomicU64,
    /// The number of stripes is a power of two.
    stripes: Box<[CachePadded<Stripe>]>,
    mask: usize,
    most: u64,
    shift: u32,
}

impl Stripe {
    #[cfg(not(loom))]
    #[inline(always)]
    fn put(&self, credit: u64) {
        self.credit.store(credit, Ordering::Relaxed);
    }

    /// Loom (0.7) keeps no order among plain stores of two threads to one atomic: a thread that has
    /// joined both may still read a store that its thread has overwritten. It keeps the order of
    /// swaps, which otherwise do the same here.
    #[cfg(loom)]
    fn put(&self, credit: u64) {
        self.credit.swap(credit, Ordering::Relaxed);
    }

    /// Counts a request of the owner.
    #[inline(always)]
    fn count(&self, who: u64) {
        match self.counter.load(Ordering::Relaxed) == counter(who) {
            true => bump(&self.paid),
            false => self.count_among_others(),
        }
    }

    #[cold]
    fn count_among_others(&self) {
        self.others.fetch_add(1, Ordering::Relaxed);
    }
}

/// The outcome of a spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// The request is paid with credit.
    Paid,
    /// The stripe is the thread's, and its credit is less than the cost.
    Short,
    /// The thread's credit, if it has any, is in its other stripe.
    NotMine,
}

/// A stripe in the slice in which it is the thread's own.
#[derive(Clone, Copy)]
pub(super) struct OwnStripe<'a> {
    stripe: &'a Stripe,
    slice: u64,
}

impl Stripes {
    /// A slice is 2^this nanoseconds or more. An owner's word comes back after 2^20 slices, so a
    /// thread that is stopped between two steps for exactly that time, thirteen days, could take a
    /// stripe twice.
    pub(super) const LEAST_SLICE: u32 = 30;
    /// A slice is 2^this nanoseconds at most.
    pub(super) const MOST_SLICE: u32 = 60;
    /// The most permits in a stripe.
    pub(super) const MOST_CREDIT: u64 = 1024;

    /// `places` stripes of up to `most` permits, with slices of 2^`shift` ns. If `places` is no
    /// power of two, the only stripe holds no credit. `None`: no memory.
    pub(super) fn new(places: usize, most: u64, shift: u32) -> Option<Stripes> {
        let (places, most) =
            if places.is_power_of_two() { (places, most.min(Self::MOST_CREDIT)) } else { (1, 0) };
        let stripes = places_of(places)?;
        let shift = shift.clamp(Self::LEAST_SLICE, Self::MOST_SLICE);
        Some(Stripes { slice: AtomicU64::new(FIRST_SLICE), stripes, mask: places - 1, most, shift })
    }

    /// The most permits in one stripe; 0: no thread keeps credit.
    #[inline(always)]
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// The number of stripes, at least 1.
    pub(super) fn places(&self) -> u64 {
        self.stripes.len() as u64
    }

    /// The first of the two stripes that a thread may have.
    #[inline(always)]
    fn first(&self, who: u64) -> &Stripe {
        self.stripe((scattered(who) >> 58) as usize)
    }

    /// The second one, for a thread whose first stripe is another's.
    #[inline(always)]
    fn second(&self, who: u64) -> &Stripe {
        let scattered = scattered(who);
        let (first, second) =
            ((scattered >> 58) as usize & self.mask, (scattered >> 52) as usize & self.mask);
        let second = if first == second { second ^ 1 } else { second };
        self.stripe(second)
    }

    /// The stripe of this number, modulo their number.
    #[inline(always)]
    fn stripe(&self, number: usize) -> &Stripe {
        // SAFETY: `mask` is their number, a power of two and not 0, less one.
        unsafe { self.stripes.get_unchecked(number & self.mask) }
    }

    /// Spends `cost` permits of the thread's credit and counts the request, if the thread's stripe
    /// is the first of its two and holds so many. For a cost of 0 both answers are right.
    #[inline(always)]
    pub(super) fn spend_first(&self, who: u64, cost: u64) -> bool {
        self.spend_from(self.first(who), who, cost, true) == Spent::Paid
    }

    /// [`Stripes::spend_first`] if the thread's stripe is its second.
    #[inline]
    pub(super) fn spend_second(&self, who: u64, cost: u64) -> bool {
        let is_mine = |stripe: &Stripe| stripe.owner.0.load(Ordering::Relaxed) >> SLICE_BITS == who;
        !is_mine(self.first(who))
            && self.spend_from(self.second(who), who, cost, true) == Spent::Paid
    }

    /// Spends `cost` permits of the thread's credit for a caller that counts the request.
    pub(super) fn spend_uncounted(&self, who: u64, cost: u64) -> bool {
        match self.spend_from(self.first(who), who, cost, false) {
            Spent::NotMine => self.spend_from(self.second(who), who, cost, false) == Spent::Paid,
            spent => spent == Spent::Paid,
        }
    }

    #[inline(always)]
    fn spend_from(&self, stripe: &Stripe, who: u64, cost: u64, is_counted: bool) -> Spent {
        let slice = self.slice.load(Ordering::Relaxed);
        let found = stripe.owner.0.load(Ordering::Relaxed);
        // The comparison includes the slice: another thread may own the stripe by now that this
        // thread owned in an older slice, and the credit that is read next is that thread's.
        if found != owner(who, slice) {
            return if found >> SLICE_BITS == who { Spent::Short } else { Spent::NotMine };
        }
        let word = stripe.credit.load(Ordering::Relaxed);
        let credit = credit(word, slice);
        if credit < cost {
            return Spent::Short;
        }
        stripe.put(word.wrapping_sub(cost));
        if is_counted {
            stripe.count(who);
        }
        Spent::Paid
    }

    /// Requests that were paid with credit and counted.
    pub(super) fn paid(&self) -> u64 {
        let words = self.stripes.iter().flat_map(|stripe| [&stripe.paid, &stripe.others]);
        words.map(|word| word.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// The thread's credit; 0 if it has no stripe in the present slice.
    pub(super) fn credit(&self, who: u64) -> u64 {
        let slice = self.slice.load(Ordering::Relaxed);
        let of = |stripe: &Stripe| match stripe.owner.0.load(Ordering::Relaxed) == owner(who, slice)
        {
            true => credit(stripe.credit.load(Ordering::Relaxed), slice),
            false => 0,
        };
        if who == 0 {
            return 0;
        }
        of(self.first(who)).max(of(self.second(who)))
    }

    /// Takes a stripe for the thread in the slice of `now`. All credit of older slices expires with
    /// this, so a caller must have seen permits at `now`. `None`: other threads have both stripes.
    pub(super) fn take(&self, who: u64, now: u64) -> Option<OwnStripe<'_>> {
        if who == 0 {
            return None;
        }
        let present = (now >> self.shift).saturating_add(FIRST_SLICE);
        // Relaxed, both: `own` orders this by `owner`. The thread that takes a stripe has read or
        // written `slice` here before it swaps `owner` with Release; a thread that reads this
        // `owner` with Acquire reads the same `slice` or a later one after that.
        let mut slice = self.slice.load(Ordering::Relaxed);
        while slice < present {
            match self.slice.compare_exchange(slice, present, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => slice = present,
                Err(seen) => slice = seen,
            }
        }
        [self.first(who), self.second(who)]
            .into_iter()
            .find_map(|stripe| self.own(stripe, who, slice))
    }

    fn own<'a>(&self, stripe: &'a Stripe, who: u64, slice: u64) -> Option<OwnStripe<'a>> {
        let mine = owner(who, slice);
        // Acquire: if this names a newer slice than ours, the next load sees that slice or a later
        // one.
        let found = stripe.owner.0.load(Ordering::Acquire);
        if found == mine {
            return Some(OwnStripe { stripe, slice });
        }
        // 0: no thread has had the stripe.
        if found != 0 && found & owner(0, u64::MAX) == owner(0, slice) {
            return None;
        }
        // An owner's slice that is not ours is older, unless ours is not the newest any more.
        // Relaxed: ordered after the owner by its Acquire.
        if self.slice.load(Ordering::Relaxed) != slice {
            return None;
        }
        // Release: see `take`. If the swap fails, another thread has the stripe.
        stripe.owner.0.compare_exchange(found, mine, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        // Relaxed: a count publishes no other data. If it fails, an earlier owner counts here.
        let _ =
            stripe.counter.compare_exchange(0, counter(who), Ordering::Relaxed, Ordering::Relaxed);
        Some(OwnStripe { stripe, slice })
    }
}

impl OwnStripe<'_> {
    /// The permits in the stripe.
    pub(super) fn credit(&self) -> u64 {
        credit(self.stripe.credit.load(Ordering::Relaxed), self.slice)
    }

    /// Stores `credit` permits, which have all been charged, in the stripe.
    pub(super) fn fill(&self, credit: u64) {
        self.stripe.put((self.slice << CREDIT_BITS) | (credit & CREDIT));
    }
}

/// The permits in a credit word, if it is of `slice`.
#[inline(always)]
fn credit(word: u64, slice: u64) -> u64 {
    let credit = word ^ (slice << CREDIT_BITS);
    if credit <= CREDIT {
        credit
    } else {
        0
    }
}

/// The value of `counter` for a thread's number. A thread without a number never counts.
#[inline(always)]
fn counter(who: u64) -> u64 {
    who.wrapping_add(1)
}

#[inline(always)]
fn owner(who: u64, slice: u64) -> u64 {
    (who << SLICE_BITS) | (slice & ((1 << SLICE_BITS) - 1))
}

/// Thread pointers are multiples of a stack apart. Fibonacci hashing spreads them, best in its
/// upper bits.
#[inline(always)]
fn scattered(who: u64) -> u64 {
    who.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Free stripes; `None` if there is no memory.
#[cfg(not(loom))]
fn places_of(count: usize) -> Option<Box<[CachePadded<Stripe>]>> {
    // SAFETY: zero bytes are atomics of 0 and padding.
    unsafe { crate::sync::zeroed_values(count) }
}

/// Free stripes with loom's atomics.
#[cfg(loom)]
fn places_of(count: usize) -> Option<Box<[CachePadded<Stripe>]>> {
    let free = || CachePadded::new(Stripe::default());
    Some((0..count).map(|_| free()).collect())
}
