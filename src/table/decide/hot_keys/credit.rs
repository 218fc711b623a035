//! One thread's credit for the keys that it checks most often.
//!
//! ```text
//!  block of a thread
//! ┌──────┬───────────────────┬──────────────────────────────────────────────┬──────────────────┐
//! │ head │ lines: 1 a policy │ sets, a cache line each                      │ frequencies           │
//! │      │                   │ ids: 4 of 64 bits │ 4 × until 50, permits 14 │ 4 bytes for each │
//! └──────┴───────────────────┴──────────────────────────────────────────────┴──────────────────┘
//! ```
//!
//! A key has one set, and may be in any of its places. Its *frequency* says how often the thread
//! checks it: a key of frequency g gets up to 2^g permits at a time. A new key takes the place with
//! the lowest frequency. New keys slowly lower the frequencies of the others, so a key loses its
//! place when the thread no longer checks it. A set with an empty place takes every new key. A full
//! set takes one miss in sixteen, so most keys that the thread checks once displace no other.

use crate::sync::AtomicU64;
use crate::table::memory::counters::lines::OwnerLine;
use crate::table::memory::layout::POLICIES_MOST;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::NonNull;

const WAYS: usize = 4;
const CREDIT_BITS: u32 = 14;
const PERMITS: u64 = (1 << CREDIT_BITS) - 1;
/// Times are in units of 2^this nanoseconds, so that 50 bits last for 146 years.
const TICK_BITS: u32 = 12;
/// The frequency of a key's first credit.
const FIRST: u8 = 2;
/// The frequency rises by this if the thread spends the credit in time.
const GROWTH: u8 = 2;
/// The highest frequency.
const HIGHEST: u8 = 10;
/// A full set takes one miss in 2^this.
const MISSES: u32 = 4;

/// `until:50 | permits:14`.
#[derive(Debug)]
pub(crate) struct Credit(u64);

#[repr(C, align(64))]
#[derive(Debug)]
struct Set {
    ids: [u64; WAYS],
    credit: [Credit; WAYS],
}

/// The head of a block.
#[repr(C, align(64))]
pub(crate) struct Head {
    /// The pointer of the thread that owns the block ([`super::threads`]).
    pub(crate) owner: AtomicU64,
    /// A random number that changes with every miss. With a counter, the same one of several keys
    /// that a thread checks in turn would always be taken.
    rng: u64,
    /// The latest time at which the thread has taken credit. Credit is not valid before it was
    /// charged.
    newest: u64,
}

/// The thread's line under each policy, or null if the thread has taken no credit under it.
type PolicyLines = [*const OwnerLine; POLICIES_MOST];

const LINES_AT: usize = size_of::<Head>();
const SETS_AT: usize = LINES_AT + size_of::<PolicyLines>();

/// The length in bytes of a block of `sets` sets, which must be a power of two and at least 16.
pub(crate) const fn bytes_of(sets: usize) -> usize {
    SETS_AT + sets * (size_of::<Set>() + WAYS)
}

/// The number of sets of a block for `keys` keys.
pub(crate) fn sets_for(keys: u32) -> usize {
    // There are twice as many places as keys. With as many places as keys, more than half of the
    // keys would share a set with four or more others, and a set has four places.
    (keys as usize * 2 / WAYS).next_power_of_two().max(16)
}

/// A block that only the calling thread uses as long as this value lives.
pub(crate) struct ThreadCredit<'a> {
    base: NonNull<u8>,
    /// The number of sets, less one.
    mask: usize,
    memory: PhantomData<&'a mut Head>,
}

/// The time of a request at `now` for its thread's credit: after all credit if the thread has taken
/// credit at a later time, `newest`. The permits that paid for that credit may not have been
/// refilled at `now`.
#[inline(always)]
pub(crate) fn time_for(newest: u64, now: u64) -> u64 {
    if now < newest {
        u64::MAX
    } else {
        now
    }
}

impl Credit {
    /// Spends `cost` permits, if there are so many and they are valid.
    #[inline(always)]
    pub(crate) fn spend(&mut self, now: u64, cost: u64) -> bool {
        let spent = self.0 & PERMITS >= cost && self.is_valid(now);
        if spent {
            self.0 -= cost;
        }
        spent
    }

    /// The permits that are valid at `now`.
    #[inline(always)]
    pub(crate) fn permits(&self, now: u64) -> u64 {
        match self.is_valid(now) {
            true => self.0 & PERMITS,
            false => 0,
        }
    }

    /// Removes all permits.
    pub(crate) fn void(&mut self) {
        self.0 = 0;
    }

    /// Whether the credit is valid at `now`: before the tick in which it ends.
    #[inline(always)]
    fn is_valid(&self, now: u64) -> bool {
        self.0 >> CREDIT_BITS > now >> TICK_BITS
    }
}

impl Set {
    /// The ids that equal `id`: a bit for each.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn agreeing(&self, id: u64) -> u32 {
        let agree: u32;
        // SAFETY: 32 readable bytes, aligned to 64. The instructions belong to AVX, and a table is
        // opened only on processors with AVX.
        unsafe {
            core::arch::asm!(
                "vmovq {id}, {word}",
                "vpunpcklqdq {id}, {id}, {id}",
                "vpcmpeqq {a}, {id}, xmmword ptr [{ids}]",
                "vpcmpeqq {b}, {id}, xmmword ptr [{ids} + 16]",
                // A compared word is all ones or all zeroes. Narrowed once, four words are one
                // vector, and its highest bits are the result.
                "vpackssdw {a}, {a}, {b}",
                "vmovmskps {agree:e}, {a}",
                ids = in(reg) core::ptr::from_ref(&self.ids),
                word = in(reg) id,
                agree = lateout(reg) agree,
                id = out(xmm_reg) _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                options(nostack, preserves_flags, pure, readonly),
            );
        }
        agree
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn agreeing(&self, id: u64) -> u32 {
        let same = |n: usize| u32::from(self.ids.get(n) == Some(&id)) << n;
        same(0) | same(1) | same(2) | same(3)
    }
}

impl ThreadCredit<'_> {
    /// # Safety
    /// `base` is aligned to 64 bytes and points to a block of `mask` + 1 sets ([`bytes_of`]) that
    /// was zeroed. Only the caller uses the block as long as this value lives, except the owner in
    /// its head.
    #[inline(always)]
    pub(crate) unsafe fn of(base: NonNull<u8>, mask: usize) -> Self {
        ThreadCredit { base, mask, memory: PhantomData }
    }

    /// The head's owner.
    #[inline(always)]
    pub(crate) fn owner(&self) -> &AtomicU64 {
        // SAFETY: the block begins with its head, and the owner is atomic.
        unsafe { &(*self.base.as_ptr().cast::<Head>()).owner }
    }

    /// The latest time at which the thread has taken credit.
    #[inline(always)]
    pub(crate) fn newest(&self) -> u64 {
        // SAFETY: the block begins with its head. Only this thread uses `newest`, through `self`.
        unsafe { (*self.base.as_ptr().cast::<Head>()).newest }
    }

    /// The credit of `id`.
    #[inline(always)]
    pub(crate) fn find(&mut self, id: u64) -> Option<&mut Credit> {
        let set = self.set(id);
        // It compares all places without a branch, because the processor cannot predict which one
        // has the key.
        let agree = set.agreeing(id);
        match agree {
            0 => None,
            _ => set.credit.get_mut(agree.trailing_zeros() as usize % WAYS),
        }
    }

    /// Records a miss: a check of `id`, which has no place.
    #[inline(always)]
    pub(crate) fn miss(&mut self, id: u64) {
        let rng = self.rng();
        *rng = (*rng ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let is_lucky = rng.leading_zeros() >= MISSES;
        // Keys take the places from the first to the last, and no place becomes empty again.
        let has_room = self.set(id).ids.last() == Some(&0);
        if has_room || is_lucky {
            self.enter(id);
        }
    }

    #[inline(never)]
    fn enter(&mut self, id: u64) {
        if let Some(place) = self.set(id).ids.iter().position(|other| *other == 0) {
            return self.put(id, place);
        }
        let thrown = *self.rng() >> 32;
        let frequencies = self.frequencies(id);
        // One insertion in four lowers the frequency of one of the four keys.
        if let (Some(aged), 0) = (frequencies.get_mut(thrown as usize % WAYS), thrown >> 8 & 3) {
            *aged = aged.saturating_sub(1);
        }
        let Some((place, frequency)) =
            frequencies.iter_mut().enumerate().min_by_key(|(_, frequency)| **frequency)
        else {
            return;
        };
        *frequency = 0;
        self.put(id, place);
    }

    fn put(&mut self, id: u64, place: usize) {
        let set = self.set(id);
        if let (Some(to), Some(credit)) = (set.ids.get_mut(place), set.credit.get_mut(place)) {
            (*to, *credit) = (id, Credit(0));
        }
    }

    /// The credit that the key should get next, after its last one was too small or has expired. It
    /// updates the key's frequency.
    pub(crate) fn frequency(&mut self, id: u64, now: u64) -> u64 {
        let Some(place) = self.place(id) else { return 0 };
        let Some(credit) = self.set(id).credit.get(place) else { return 0 };
        let (never, left, good) = (credit.0 == 0, credit.0 & PERMITS, credit.is_valid(now));
        let Some(frequency) = self.frequencies(id).get_mut(place) else { return 0 };
        *frequency = match (never, good) {
            (true, _) => FIRST,
            (_, true) => (*frequency + GROWTH).min(HIGHEST),
            // The thread has spent the credit, but asks for more only after the credit's time.
            _ if left == 0 => *frequency,
            _ => frequency.saturating_sub(1).max(1),
        };
        1 << *frequency
    }

    /// Replaces the key's credit by `credit` permits, which the caller has charged at `now`, and
    /// which are valid until `until`.
    pub(crate) fn fill(&mut self, id: u64, credit: u64, now: u64, until: u64) {
        // SAFETY: as `newest`.
        unsafe { (*self.base.as_ptr().cast::<Head>()).newest = now };
        if let Some(place) = self.find(id) {
            *place = Credit(until >> TICK_BITS << CREDIT_BITS | credit.min(PERMITS));
        }
    }

    fn place(&mut self, id: u64) -> Option<usize> {
        self.set(id).ids.iter().position(|other| *other == id)
    }

    #[inline(always)]
    fn set(&mut self, id: u64) -> &mut Set {
        let set = self.number(id);
        // SAFETY: `set` is the number of a set of the block. Only this thread uses the sets,
        // through `self`. They are aligned, and every bit pattern is a set.
        unsafe { &mut *self.base.as_ptr().add(SETS_AT).cast::<Set>().add(set) }
    }

    fn frequencies(&mut self, id: u64) -> &mut [u8; WAYS] {
        let set = self.number(id);
        // SAFETY: as `set`; the frequencies come after the sets.
        unsafe {
            &mut *self
                .base
                .as_ptr()
                .add(SETS_AT)
                .cast::<Set>()
                .add(self.mask + 1)
                .cast::<[u8; WAYS]>()
                .add(set)
        }
    }

    #[inline(always)]
    fn rng(&mut self) -> &mut u64 {
        // SAFETY: the block begins with its head. Only this thread uses the rng, through `self`.
        unsafe { &mut (*self.base.as_ptr().cast::<Head>()).rng }
    }

    /// The thread's line under `policy`.
    ///
    /// # Safety
    /// `policy` is less than [`POLICIES_MOST`].
    #[inline(always)]
    pub(crate) unsafe fn line(&self, policy: u32) -> *const OwnerLine {
        // SAFETY: behind the head are POLICIES_MOST lines, and the caller promises that `policy` is
        // less.
        unsafe { *self.base.as_ptr().add(LINES_AT).cast::<*const OwnerLine>().add(policy as usize) }
    }

    /// Stores the thread's line under `policy`.
    pub(crate) fn set_line(&mut self, policy: u32, line: &OwnerLine) {
        // SAFETY: as `line`; only this thread uses the lines, through `self`.
        let lines = unsafe { &mut *self.base.as_ptr().add(LINES_AT).cast::<PolicyLines>() };
        if let Some(place) = lines.get_mut(policy as usize) {
            *place = line;
        }
    }

    /// The number of the key's set: the lowest bits of its id.
    #[inline(always)]
    fn number(&self, id: u64) -> usize {
        id as usize & self.mask
    }
}

#[cfg(test)]
mod tests;
