//! Seats: where threads keep credit that is charged already.
//!
//! Time is cut into *slices* of [`Seats::LEAST_SLICE`] at least. The number of the newest slice in which credit has been taken is
//! `slice`; it only grows. A seat has four words:
//!
//! ```text
//! owner    thread:44 | slice:20     who may spend from it, and since which slice
//! purse    slice:48  | credit:16    permits there are, and the slice in which they are good
//! counter  thread + 1               who may add to `paid`: the first thread that had the seat; 0: none yet
//! paid     number                   requests of that thread that were paid from the purse
//! ```
//!
//! - *Take a seat*: swap `owner` from one of an older slice to (me, `slice`). In one slice a seat has one owner.
//! - *Fill*, by the owner after permits have been charged: store (`slice`, n), n at most [`Seats::most`].
//! - *Spend*, by the owner: if `owner` is (me, `slice`) and the purse is of `slice`, store the purse with less.
//!   No locked instruction: nobody else fills a purse of that slice.
//! - *Expire*: `slice` grows. All credit of older slices is void at that instant, wherever it is, and every seat
//!   is free. Void credit is lost: it has been charged and nobody gets it.
//!
//! # Why no permit is spent twice
//!
//! A purse counts only together with the slice in which it was filled, and in that slice one thread has the
//! seat: `owner` leaves (me, s) only for a later slice. A thread that was stopped in the middle of a spend
//! stores a purse of its own, old slice, however late. If that overwrites the purse of a later owner, the later
//! owner's credit is void. No store raises a purse of a slice that is not the storing thread's.
//!
//! # Why no request is counted twice, or lost
//!
//! `counter` never changes once it is set, so `paid` has one writer. A seat's later owners do not write there: one of them could
//! add at the instant at which a thread that was stopped in the middle of an older spend adds, too. They are counted elsewhere
//! ([`Spent::PaidUncounted`]).
//!
//! # Why there is never more credit than `places · most`
//!
//! At each instant only purses of the present slice count, one for each seat. A spend that reads `slice` = s
//! just before `slice` grows is a spend of that instant: the credit was there.
//!
//! # Orderings
//!
//! Spending is Relaxed throughout. Owner and purse are the thread's own while they name it and the slice that
//! it has read. An old `slice` stands for an earlier instant within the call. Taking a seat is ordered; see
//! [`Seats::take`].

use crate::sync::{bump, AtomicU64, CachePadded, Ordering};
use alloc::boxed::Box;

const SLICE_BITS: u32 = 20;
const CREDIT_BITS: u32 = 16;
const CREDIT: u64 = (1 << CREDIT_BITS) - 1;
/// Not 0: a seat that nobody has had is not that of a thread without a number.
const FIRST_SLICE: u64 = 1;

#[derive(Debug, Default)]
struct Seat {
    owner: AtomicU64,
    purse: AtomicU64,
    counter: AtomicU64,
    paid: AtomicU64,
}

/// Seats of one limiter.
#[derive(Debug)]
pub(super) struct Seats {
    slice: AtomicU64,
    /// A power of two of them.
    seats: Box<[CachePadded<Seat>]>,
    mask: usize,
    most: u64,
    shift: u32,
}

impl Seat {
    #[cfg(not(loom))]
    #[inline(always)]
    fn put(&self, purse: u64) {
        self.purse.store(purse, Ordering::Relaxed);
    }

    /// Loom (0.7) keeps no order among plain stores of two threads to one atomic: one that has joined both may still read
    /// a store that another of the same thread came after. It keeps that of swaps, which otherwise are the same here.
    #[cfg(loom)]
    fn put(&self, purse: u64) {
        self.purse.swap(purse, Ordering::Relaxed);
    }
}

/// The outcome of a spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// It is counted.
    Paid,
    /// The caller has to count it.
    PaidUncounted,
    /// The seat is the thread's, and its credit is less than the cost.
    Short,
    /// The thread's credit, if it has any, is in its other seat.
    NotMine,
}

/// A seat in the slice in which it is the thread's own.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    seat: &'a Seat,
    slice: u64,
}

impl Seats {
    /// A slice is 2^this nanoseconds or more. An owner's word comes back after 2^20 slices, so a thread that is
    /// stopped between two steps for exactly that time, thirteen days, could take a seat twice.
    pub(super) const LEAST_SLICE: u32 = 30;
    /// A slice is 2^this nanoseconds at most.
    pub(super) const MOST_SLICE: u32 = 60;
    /// The most permits in a purse.
    pub(super) const MOST_CREDIT: u64 = 1024;

    /// `places` seats of up to `most` permits; slices of 2^`shift` ns. Where `places` is no power of two there is one seat, in which
    /// nothing is kept. `None`: no memory.
    pub(super) fn new(places: usize, most: u64, shift: u32) -> Option<Seats> {
        let (places, most) = if places.is_power_of_two() { (places, most.min(Self::MOST_CREDIT)) } else { (1, 0) };
        let seats = places_of(places)?;
        let shift = shift.clamp(Self::LEAST_SLICE, Self::MOST_SLICE);
        Some(Seats { slice: AtomicU64::new(FIRST_SLICE), seats, mask: places - 1, most, shift })
    }

    /// The most permits in one purse; 0: there are no seats.
    #[inline(always)]
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// How many there are, 1 at least.
    pub(super) fn places(&self) -> u64 {
        self.seats.len() as u64
    }

    /// The first of the two seats that a thread may have.
    #[inline(always)]
    fn first(&self, who: u64) -> &Seat {
        self.seat((scattered(who) >> 58) as usize)
    }

    /// The second one, for a thread whose first seat is another's.
    #[inline(always)]
    fn second(&self, who: u64) -> &Seat {
        let scattered = scattered(who);
        let (first, second) = ((scattered >> 58) as usize & self.mask, (scattered >> 52) as usize & self.mask);
        let second = if first == second { second ^ 1 } else { second };
        self.seat(second)
    }

    /// The seat of this number, modulo their number.
    #[inline(always)]
    fn seat(&self, number: usize) -> &Seat {
        // SAFETY: `mask` is their number, a power of two and not 0, less one.
        unsafe { self.seats.get_unchecked(number & self.mask) }
    }

    /// Spends `cost` permits of the thread's credit, if its seat is the first of its two. A cost of 0 may be
    /// answered either way.
    #[inline(always)]
    pub(super) fn spend(&self, who: u64, cost: u64) -> Spent {
        self.spend_from(self.first(who), who, cost)
    }

    /// [`Seats::spend`] if the thread's seat is its second.
    #[inline(always)]
    pub(super) fn spend_second(&self, who: u64, cost: u64) -> Spent {
        self.spend_from(self.second(who), who, cost)
    }

    #[inline(always)]
    fn spend_from(&self, seat: &Seat, who: u64, cost: u64) -> Spent {
        let slice = self.slice.load(Ordering::Relaxed);
        let found = seat.owner.load(Ordering::Relaxed);
        // The comparison includes the slice: another thread may have a seat by now that was this one's in an
        // older slice, and with it the purse that is read next.
        if found != owner(who, slice) {
            return if found >> SLICE_BITS == who { Spent::Short } else { Spent::NotMine };
        }
        let purse = seat.purse.load(Ordering::Relaxed);
        let credit = credit(purse, slice);
        if credit < cost {
            return Spent::Short;
        }
        seat.put(purse.wrapping_sub(cost));
        if seat.counter.load(Ordering::Relaxed) != counter(who) {
            return Spent::PaidUncounted;
        }
        bump(&seat.paid);
        Spent::Paid
    }

    /// Requests that were paid and counted.
    pub(super) fn paid(&self) -> u64 {
        self.seats.iter().map(|seat| seat.paid.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// The thread's credit; 0 if it has no seat in the present slice.
    pub(super) fn credit(&self, who: u64) -> u64 {
        let slice = self.slice.load(Ordering::Relaxed);
        let of = |seat: &Seat| match seat.owner.load(Ordering::Relaxed) == owner(who, slice) {
            true => credit(seat.purse.load(Ordering::Relaxed), slice),
            false => 0,
        };
        if who == 0 {
            return 0;
        }
        of(self.first(who)).max(of(self.second(who)))
    }

    /// Takes a seat for the thread in the slice of `now`. All credit of older slices expires with this, so a
    /// caller must have seen permits at `now`. `None`: other threads have both seats.
    pub(super) fn take(&self, who: u64, now: u64) -> Option<Held<'_>> {
        if who == 0 {
            return None;
        }
        let present = (now >> self.shift).saturating_add(FIRST_SLICE);
        // Relaxed, both: `sit` orders this by `owner`. The thread that takes a seat has read or written `slice` here before it swaps `owner`
        // with Release; a thread that reads this `owner` with Acquire reads the same `slice` or a later one after that.
        let mut slice = self.slice.load(Ordering::Relaxed);
        while slice < present {
            match self.slice.compare_exchange(slice, present, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => slice = present,
                Err(seen) => slice = seen,
            }
        }
        [self.first(who), self.second(who)].into_iter().find_map(|seat| self.sit(seat, who, slice))
    }

    fn sit<'a>(&self, seat: &'a Seat, who: u64, slice: u64) -> Option<Held<'a>> {
        let mine = owner(who, slice);
        // Acquire: if this names a slice that is newer than ours, the next load sees that there is one.
        let found = seat.owner.load(Ordering::Acquire);
        if found == mine {
            return Some(Held { seat, slice });
        }
        // 0: no thread has had the seat.
        if found != 0 && found & owner(0, u64::MAX) == owner(0, slice) {
            return None;
        }
        // An owner's slice that is not ours is older, unless ours is not the newest any more.
        if self.slice.load(Ordering::Acquire) != slice {
            return None;
        }
        // Release: see `take`. If the swap fails, another thread has the seat.
        seat.owner.compare_exchange(found, mine, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        // Relaxed: a count publishes nothing. Failing, an earlier owner counts here.
        let _ = seat.counter.compare_exchange(0, counter(who), Ordering::Relaxed, Ordering::Relaxed);
        Some(Held { seat, slice })
    }
}

impl Held<'_> {
    /// The permits in the purse.
    pub(super) fn credit(&self) -> u64 {
        credit(self.seat.purse.load(Ordering::Relaxed), self.slice)
    }

    /// Stores `credit` permits, which have all been charged, in the purse.
    pub(super) fn fill(&self, credit: u64) {
        let purse = (self.slice << CREDIT_BITS) | (credit & CREDIT);
        self.seat.put(purse);
    }
}

/// The permits in a purse, if it is of `slice`.
#[inline(always)]
fn credit(purse: u64, slice: u64) -> u64 {
    let credit = purse ^ (slice << CREDIT_BITS);
    if credit <= CREDIT {
        credit
    } else {
        0
    }
}

/// Not 0 for a thread without a number, which is never a counter.
#[inline(always)]
fn counter(who: u64) -> u64 {
    who.wrapping_add(1)
}

#[inline(always)]
fn owner(who: u64, slice: u64) -> u64 {
    (who << SLICE_BITS) | (slice & ((1 << SLICE_BITS) - 1))
}

/// Thread pointers are multiples of a stack apart. Fibonacci hashing spreads them, best in its upper bits.
#[inline(always)]
fn scattered(who: u64) -> u64 {
    who.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Free seats; `None` if there is no memory. Not through `Vec`, as [`crate::sync::zeroed`].
#[cfg(not(loom))]
fn places_of(count: usize) -> Option<Box<[CachePadded<Seat>]>> {
    let layout = core::alloc::Layout::array::<CachePadded<Seat>>(count).ok()?;
    if layout.size() == 0 {
        return None;
    }
    // SAFETY: the layout's size is not 0.
    let seats = unsafe { alloc::alloc::alloc_zeroed(layout) }.cast::<CachePadded<Seat>>();
    if seats.is_null() {
        return None;
    }
    // SAFETY: a fresh block of that layout from the allocator that Box frees with; zero bytes are atomics
    // of 0 and padding.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(seats, count)) })
}

/// Free seats with loom's atomics.
#[cfg(loom)]
fn places_of(count: usize) -> Option<Box<[CachePadded<Seat>]>> {
    let free = || CachePadded::new(Seat::default());
    Some((0..count).map(|_| free()).collect())
}
