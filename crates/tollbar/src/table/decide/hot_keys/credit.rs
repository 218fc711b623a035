//! One thread's credit for the keys that it checks most often.
//!
//! ```text
//!  block of a thread
//! ┌──────┬───────────────────┬──────────────────────────────────────────────┬──────────────────┐
//! │ head │ lines: 1 a policy │ sets, a cache line each                      │ grades           │
//! │      │                   │ ids: 4 of 64 bits │ 4 × until 50, permits 14 │ 4 bytes for each │
//! └──────┴───────────────────┴──────────────────────────────────────────────┴──────────────────┘
//! ```
//!
//! A key has one set, and may be in any of its places. Its *grade* says how often the thread checks it: a key of grade g gets up to 2^g
//! permits at a time. A new key takes the place of the lowest grade. New keys slowly lower the grades of the others, so that a key
//! leaves when the thread no longer checks it. A set with an empty place takes every new key. A full set takes one miss in sixteen, so
//! that most keys that are checked once do not displace others.

use crate::sync::AtomicU64;
use crate::table::memory::counters::lines::Line;
use crate::table::memory::layout::POLICIES_MOST;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ptr::NonNull;

const WAYS: usize = 4;
const CREDIT_BITS: u32 = 14;
const PERMITS: u64 = (1 << CREDIT_BITS) - 1;
/// Times are in units of 2^this nanoseconds, so that 50 bits last for 146 years.
const TICK_BITS: u32 = 12;
/// A key's first credit is 2^this.
const FIRST: u8 = 2;
/// And each next one so many times, 2^this, as much, while it is spent in time.
const GROWTH: u8 = 2;
const HIGHEST: u8 = 10;
/// One miss in 2^this.
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
    /// The thread ([`super::threads`]).
    pub(crate) owner: AtomicU64,
    /// The upper bits are random and change with every miss. A counter would always hit the same key of several that are checked in turn.
    dice: u64,
}

/// The thread's line under each policy. Null where the thread has taken no credit.
type Lines = [*const Line; POLICIES_MOST];

const LINES_AT: usize = size_of::<Head>();
const SETS_AT: usize = LINES_AT + size_of::<Lines>();

/// The bytes of a block of so many sets, a power of two and 16 at least.
pub(crate) const fn bytes_of(sets: usize) -> usize {
    SETS_AT + sets * (size_of::<Set>() + WAYS)
}

/// The sets of a block for so many keys.
pub(crate) fn sets_for(keys: u32) -> usize {
    // Twice as many places as keys: with as many as keys, more than half of the keys would share a set with four others or more,
    // of which one at a time has no place.
    (keys as usize * 2 / WAYS).next_power_of_two().max(16)
}

/// A block that only the calling thread uses, as long as this lives.
pub(crate) struct ThreadCredit<'a> {
    base: NonNull<u8>,
    /// The number of sets, less one.
    mask: usize,
    memory: PhantomData<&'a mut Head>,
}

impl Credit {
    /// Spends `cost` permits, if there are as many and they are valid.
    #[inline(always)]
    pub(crate) fn spend(&mut self, now: u64, cost: u64) -> bool {
        let spent = self.0 & PERMITS >= cost && self.is_good(now);
        if spent {
            self.0 -= cost;
        }
        spent
    }

    /// The permits that are valid at `now`.
    #[inline(always)]
    pub(crate) fn permits(&self, now: u64) -> u64 {
        match self.is_good(now) {
            true => self.0 & PERMITS,
            false => 0,
        }
    }

    /// Takes all permits away.
    pub(crate) fn void(&mut self) {
        self.0 = 0;
    }

    /// Until the tick before the one in which it ends.
    #[inline(always)]
    fn is_good(&self, now: u64) -> bool {
        self.0 >> CREDIT_BITS > now >> TICK_BITS
    }
}

impl Set {
    /// Which of the ids are `id`: a bit for each.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn agreeing(&self, id: u64) -> u32 {
        let agree: u32;
        // SAFETY: 32 readable bytes, aligned to 64. The instructions are AVX's, which every processor has that a table is made on.
        unsafe {
            core::arch::asm!(
                "vmovq {id}, {word}",
                "vpunpcklqdq {id}, {id}, {id}",
                "vpcmpeqq {a}, {id}, xmmword ptr [{ids}]",
                "vpcmpeqq {b}, {id}, xmmword ptr [{ids} + 16]",
                // A whole word is all ones or none: narrowed once, four of them are one vector, of which the highest bits are taken.
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
    /// At `base`, aligned to 64 bytes, is a block of `mask` + 1 sets ([`bytes_of`]) that was zeroed and that only the caller uses as long as
    /// this lives, its head's owner aside.
    #[inline(always)]
    pub(crate) unsafe fn of(base: NonNull<u8>, mask: usize) -> Self {
        ThreadCredit { base, mask, memory: PhantomData }
    }

    /// The head's owner.
    #[inline(always)]
    pub(crate) fn owner(&self) -> &AtomicU64 {
        // SAFETY: the block begins with its head; the owner is atomic.
        unsafe { &(*self.base.as_ptr().cast::<Head>()).owner }
    }

    /// The credit of `id`.
    #[inline(always)]
    pub(crate) fn find(&mut self, id: u64) -> Option<&mut Credit> {
        let set = self.set(id);
        // All places are compared without a branch: which one has the key cannot be predicted.
        let agree = set.agreeing(id);
        match agree {
            0 => None,
            _ => set.credit.get_mut(agree.trailing_zeros() as usize % WAYS),
        }
    }

    /// Records a miss: a check of `id`, which has no place.
    #[inline(always)]
    pub(crate) fn miss(&mut self, id: u64) {
        let dice = self.dice();
        *dice = (*dice ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let is_lucky = dice.leading_zeros() >= MISSES;
        // Places are taken from the first on, and not given back.
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
        let thrown = *self.dice() >> 32;
        let grades = self.grades(id);
        // One of the four ages, once in four times.
        if let (Some(aged), 0) = (grades.get_mut(thrown as usize % WAYS), thrown >> 8 & 3) {
            *aged = aged.saturating_sub(1);
        }
        let Some((place, grade)) = grades.iter_mut().enumerate().min_by_key(|(_, grade)| **grade) else { return };
        *grade = 0;
        self.put(id, place);
    }

    fn put(&mut self, id: u64, place: usize) {
        let set = self.set(id);
        if let (Some(to), Some(credit)) = (set.ids.get_mut(place), set.credit.get_mut(place)) {
            (*to, *credit) = (id, Credit(0));
        }
    }

    /// The credit that the key should get next, when its credit is too small or no longer valid.
    pub(crate) fn grade(&mut self, id: u64, now: u64) -> u64 {
        let Some(place) = self.place(id) else { return 0 };
        let Some(credit) = self.set(id).credit.get(place) else { return 0 };
        let (never, left, good) = (credit.0 == 0, credit.0 & PERMITS, credit.is_good(now));
        let Some(grade) = self.grades(id).get_mut(place) else { return 0 };
        *grade = match (never, good) {
            (true, _) => FIRST,
            (_, true) => (*grade + GROWTH).min(HIGHEST),
            // Spent, but not in time for more.
            _ if left == 0 => *grade,
            _ => grade.saturating_sub(1).max(1),
        };
        1 << *grade
    }

    /// Replaces the key's credit by one that has been charged and is valid until `until`.
    pub(crate) fn fill(&mut self, id: u64, credit: u64, until: u64) {
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
        // SAFETY: one of the block's sets, which only this thread uses, through `self`. It is aligned, and every bit pattern is a set.
        unsafe { &mut *self.base.as_ptr().add(SETS_AT).cast::<Set>().add(set) }
    }

    fn grades(&mut self, id: u64) -> &mut [u8; WAYS] {
        let set = self.number(id);
        // SAFETY: as `set`; the grades come after the sets.
        unsafe { &mut *self.base.as_ptr().add(SETS_AT).cast::<Set>().add(self.mask + 1).cast::<[u8; WAYS]>().add(set) }
    }

    #[inline(always)]
    fn dice(&mut self) -> &mut u64 {
        // SAFETY: the block begins with its head, of which only this thread uses the dice, through `self`.
        unsafe { &mut (*self.base.as_ptr().cast::<Head>()).dice }
    }

    /// The thread's line under `policy`.
    ///
    /// # Safety
    /// `policy` is less than [`POLICIES_MOST`].
    #[inline(always)]
    pub(crate) unsafe fn line(&self, policy: u32) -> *const Line {
        // SAFETY: there are more lines than `policy`, behind the head.
        unsafe { *self.base.as_ptr().add(LINES_AT).cast::<*const Line>().add(policy as usize) }
    }

    /// Remembers the thread's line under `policy`.
    pub(crate) fn set_line(&mut self, policy: u32, line: &Line) {
        // SAFETY: as `line`; only this thread uses the memory.
        let lines = unsafe { &mut *self.base.as_ptr().add(LINES_AT).cast::<Lines>() };
        if let Some(place) = lines.get_mut(policy as usize) {
            *place = line;
        }
    }

    /// By the lowest bits of the hash, which is as good as any.
    #[inline(always)]
    fn number(&self, id: u64) -> usize {
        id as usize & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pattern of equal ids, and ids of which one half or one bit agrees.
    #[test]
    fn a_bit_for_each_id_that_agrees() {
        const ID: u64 = 0x8000_0001_7fff_ffff;
        for other in [0, !0, ID ^ 1, ID ^ 1 << 63, ID & 0xffff_ffff, ID >> 32 << 32] {
            for pattern in 0..1 << WAYS {
                let ids = core::array::from_fn(|n| if pattern >> n & 1 == 1 { ID } else { other });
                let set = Set { ids, credit: core::array::from_fn(|_| Credit(ID)) };
                assert_eq!(set.agreeing(ID), pattern, "beside {other:x}");
            }
        }
    }
}
