//! Purses: what a thread has for the keys that it asks for most often.
//!
//! ```text
//!  set, one cache line                                        grades, apart
//! ┌────────────────────────┬──────────────────────────────┐  ┌─────────┐
//! │ ids: 4 of 64 bits      │ purses: 4 × until 50, credit 14 │  │ 4 bytes │
//! └────────────────────────┴──────────────────────────────┘  └─────────┘
//! ```
//!
//! A key has one set, and any of its places. Its *grade* says how often it is asked for: a key of grade g is given up to 2^g permits
//! at a time. A new key takes the place of the lowest grade. While new keys come, grades fall slowly, so that a key that is no longer asked
//! for leaves. A set with an empty place takes every new key. A full set takes one miss in sixteen, so that most keys that are asked for
//! once do not displace others.

use crate::table::memory::counters::lines::Line;
use crate::table::memory::error::TableError;
use crate::table::memory::layout::POLICIES_MOST;
use crate::table::memory::region::Region;
use core::mem::size_of;

const WAYS: usize = 4;
const CREDIT_BITS: u32 = 14;
const CREDIT: u64 = (1 << CREDIT_BITS) - 1;
/// Times are in units of 2^this nanoseconds, so that 50 bits last for 146 years.
const TICK_BITS: u32 = 12;
/// A key's first credit is 2^this.
const FIRST: u8 = 2;
/// And each next one so many times, 2^this, as much, while it is spent in time.
const GROWTH: u8 = 2;
const HIGHEST: u8 = 10;
/// One miss in 2^this.
const MISSES: u32 = 4;

/// `until:50 | credit:14`.
#[derive(Debug)]
pub(crate) struct Purse(u64);

#[repr(C, align(64))]
#[derive(Debug)]
struct Set {
    ids: [u64; WAYS],
    purses: [Purse; WAYS],
}

/// Each policy's line, or another one of this owner's where it has none; all null as long as it has no line at all. A child that is
/// forked finds nulls here, and no credit.
type Places = [*const Line; POLICIES_MOST];

const SETS_AT: usize = size_of::<Places>();

/// One thread's.
#[derive(Debug)]
pub(crate) struct Purses {
    /// Where the line of each policy is, `sets` sets, and as many times [`WAYS`] grades.
    memory: Region,
    sets: usize,
    /// The upper bits are random and change with every miss. A counter would always hit the same key of several that are asked for in turn.
    dice: u64,
    /// Whether a child that is forked finds zeros in `memory`. If not, nothing is put there.
    is_wiped: bool,
}

impl Purse {
    /// Takes `cost` of the credit, if it is good and enough.
    #[inline(always)]
    pub(crate) fn spend(&mut self, now: u64, cost: u64) -> bool {
        let spent = self.0 & CREDIT >= cost && self.is_good(now);
        if spent {
            self.0 -= cost;
        }
        spent
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

impl Purses {
    pub(crate) fn new(keys: u32) -> Result<Purses, TableError> {
        // Twice as many places as keys: with as many as keys, more than half of the keys would share a set with four others or more,
        // of which one at a time has no place.
        let sets = (keys.clamp(64, 65_536) as usize * 2 / WAYS).next_power_of_two();
        let memory = Region::private(sets * (size_of::<Set>() + WAYS) + size_of::<Places>())?;
        let is_wiped = memory.wipe_in_children();
        Ok(Purses { memory, sets, dice: 0, is_wiped })
    }

    /// The purse of `id`.
    #[inline(always)]
    pub(crate) fn find(&mut self, id: u64) -> Option<&mut Purse> {
        let set = self.set(id);
        // All places are compared without a branch: which one has the key cannot be predicted.
        let agree = set.agreeing(id);
        match agree {
            0 => None,
            _ => set.purses.get_mut(agree.trailing_zeros() as usize % WAYS),
        }
    }

    /// `id` was asked for and is not here.
    #[inline(always)]
    pub(crate) fn miss(&mut self, id: u64) {
        self.dice = (self.dice ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Places are taken from the first on, and not given back.
        let has_room = self.set(id).ids.last() == Some(&0);
        if has_room || self.dice.leading_zeros() >= MISSES {
            self.enter(id);
        }
    }

    #[inline(never)]
    fn enter(&mut self, id: u64) {
        if !self.is_wiped {
            return;
        }
        if let Some(place) = self.set(id).ids.iter().position(|other| *other == 0) {
            return self.put(id, place);
        }
        let thrown = self.dice >> 32;
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
        if let (Some(to), Some(purse)) = (set.ids.get_mut(place), set.purses.get_mut(place)) {
            (*to, *purse) = (id, Purse(0));
        }
    }

    /// How much credit the key should get, now that what it had is not enough, or not good any more.
    pub(crate) fn grade(&mut self, id: u64, now: u64) -> u64 {
        let Some(place) = self.place(id) else { return 0 };
        let Some(Purse(purse)) = self.set(id).purses.get(place) else { return 0 };
        let (never, left, good) = (*purse == 0, purse & CREDIT, Purse(*purse).is_good(now));
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

    /// Puts credit there that has been charged, good until `until`, in place of what is left.
    pub(crate) fn fill(&mut self, id: u64, credit: u64, until: u64) {
        if let Some(purse) = self.find(id) {
            *purse = Purse(until >> TICK_BITS << CREDIT_BITS | credit.min(CREDIT));
        }
    }

    fn place(&mut self, id: u64) -> Option<usize> {
        self.set(id).ids.iter().position(|other| *other == id)
    }

    #[inline(always)]
    fn set(&mut self, id: u64) -> &mut Set {
        let set = self.number(id);
        // SAFETY: one of the `sets` behind the places, which only this thread uses, through `self`. It is aligned, and
        // every bit pattern is a set.
        unsafe { &mut *self.memory.base().as_ptr().byte_add(SETS_AT).cast::<Set>().add(set) }
    }

    fn grades(&mut self, id: u64) -> &mut [u8; WAYS] {
        let set = self.number(id);
        // SAFETY: as `set`; the grades come after the sets.
        unsafe {
            &mut *self
                .memory
                .base()
                .as_ptr()
                .byte_add(SETS_AT)
                .cast::<Set>()
                .add(self.sets)
                .cast::<[u8; WAYS]>()
                .add(set)
        }
    }

    /// Where the line of `policy` is.
    ///
    /// # Safety
    /// `policy` is less than [`POLICIES_MOST`].
    #[inline(always)]
    pub(crate) unsafe fn line(&self, policy: u32) -> *const Line {
        // SAFETY: as `set`; the places come first, and there are more than `policy`.
        unsafe { *self.memory.base().as_ptr().cast::<*const Line>().add(policy as usize) }
    }

    /// Lets that be the line of `policy`, and of those that have none.
    pub(crate) fn own(&mut self, policy: u32, line: &Line) {
        // SAFETY: as `line`; nobody else uses the memory.
        let places = unsafe { &mut *self.memory.base().as_ptr().cast::<Places>() };
        for (place, number) in places.iter_mut().zip(0..) {
            if place.is_null() || number == policy {
                *place = line;
            }
        }
    }

    /// An address that no other owner has.
    pub(crate) fn address(&self) -> u64 {
        self.memory.base().as_ptr() as u64
    }

    /// By the lowest bits of the hash, which is as good as any.
    #[inline(always)]
    fn number(&self, id: u64) -> usize {
        id as usize & (self.sets - 1)
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
                let set = Set { ids, purses: core::array::from_fn(|_| Purse(ID)) };
                assert_eq!(set.agreeing(ID), pattern, "beside {other:x}");
            }
        }
    }
}
