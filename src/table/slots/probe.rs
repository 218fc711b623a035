//! The probes of an insertion: they find the candidate that a new key may take. The probe for a
//! known key is [`find_in_two`](crate::table::memory::slot::find_in_two).
//!
//! On x86-64 each probe compares all slots at once by vector instructions, without a branch. On
//! other machines, under loom, and in the tests that compare both, the functions of `scalar`
//! compare slot by slot.

use super::candidates::Candidates;
use crate::table::memory::slot::Slot;
#[cfg(all(target_arch = "x86_64", not(loom)))]
use crate::table::memory::slot::SLOTS;

#[cfg(not(all(target_arch = "x86_64", not(loom))))]
pub(crate) use scalar::{first_unused, lowest_state};
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(crate) use vectors::{first_unused, lowest_state};

/// A slot and its state.
type Lowest<'a> = Option<(&'a Slot, u64)>;

/// The probes that compare slot by slot.
#[cfg(any(test, loom, not(target_arch = "x86_64")))]
pub(crate) mod scalar {
    use super::*;
    use crate::table::memory::slot::TAG_BITS;

    /// The first slot, in the key's order, that no key has ever had. `None` if there is none, or if
    /// some slot may already hold the key under any version of its policy: the probe compares only
    /// the lower half of the tag.
    pub(crate) fn first_unused<'a>(candidates: &Candidates<'a>, key: u64) -> Option<&'a Slot> {
        let mut first = None;
        for slot in candidates.slots() {
            let pair = slot.pair();
            if pair.key as u32 == key as u32 {
                return None;
            }
            if first.is_none() && pair.state == 0 {
                first = Some(slot);
            }
        }
        first
    }

    /// The slot whose state is lower than every other candidate's by at least `gap`, and that
    /// state. `None` if there is none, if some slot is empty or under another version than `key`,
    /// if some state has its highest bit set, or if some slot may already hold the key. The probe
    /// compares only the lower half of the tag, so it sends one new key in 2^32 / 12 to the slow
    /// path without need.
    pub(crate) fn lowest_state<'a>(candidates: &Candidates<'a>, key: u64, gap: u64) -> Lowest<'a> {
        let mut lowest: Option<(&Slot, i64)> = None;
        let mut second = i64::MAX;
        for slot in candidates.slots() {
            let pair = slot.pair();
            let state = pair.state as i64;
            if (pair.key ^ key) >> TAG_BITS != 0 || pair.key as u32 == key as u32 || state < 0 {
                return None;
            }
            match lowest {
                Some((_, least)) if state >= least => second = second.min(state),
                _ => {
                    second = lowest.map_or(second, |(_, least)| least);
                    lowest = Some((slot, state));
                }
            }
        }
        let (slot, state) = lowest?;
        let bound = state.wrapping_add(gap as i64);
        (state < bound && second >= bound).then_some((slot, state as u64))
    }
}

/// The probes by AVX instructions. A table is opened only on a processor that has them
/// ([`Slot::supported`]).
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod vectors {
    use super::*;

    /// Instructions that compare the four 32-bit halves of each of four slots with those in `{k}`.
    /// They put four bits for each slot into a register.
    #[rustfmt::skip]
    macro_rules! alike {
        ($first:literal $second:literal $third:literal $fourth:literal => $bits:literal) => {
            concat!(
                "vmovdqa {a}, xmmword ptr [", $first, "]\n",
                "vmovdqa {b}, xmmword ptr [", $second, "]\n",
                "vmovdqa {c}, xmmword ptr [", $third, "]\n",
                "vmovdqa {d}, xmmword ptr [", $fourth, "]\n",
                "vpcmpeqd {a}, {a}, {k}\n",
                "vpcmpeqd {b}, {b}, {k}\n",
                "vpcmpeqd {c}, {c}, {k}\n",
                "vpcmpeqd {d}, {d}, {k}\n",
                "vpackssdw {a}, {a}, {b}\n",
                "vpackssdw {c}, {c}, {d}\n",
                "vpacksswb {a}, {a}, {c}\n",
                "vpmovmskb {", $bits, ":e}, {a}",
            )
        };
    }

    /// Instructions that load a bucket. They put its states into two registers, the bits in which
    /// its keys' upper halves differ from `{ku}` into a third, and ones for the keys whose lower
    /// half equals `{k}` into a fourth.
    #[rustfmt::skip]
    macro_rules! differ {
        ($bucket:literal => $states:literal $more:literal $upper:literal $lower:literal) => {
            concat!(
                "vmovdqa {a}, xmmword ptr [{", $bucket, "}]\n",
                "vmovdqa {b}, xmmword ptr [{", $bucket, "} + 16]\n",
                "vmovdqa {c}, xmmword ptr [{", $bucket, "} + 32]\n",
                "vmovdqa {d}, xmmword ptr [{", $bucket, "} + 48]\n",
                "vpunpckhqdq {", $states, "}, {a}, {b}\n",
                "vpunpckhqdq {", $more, "}, {c}, {d}\n",
                "vpunpcklqdq {a}, {a}, {b}\n",
                "vpunpcklqdq {c}, {c}, {d}\n",
                "vshufps {", $upper, "}, {a}, {c}, 0xdd\n",
                "vshufps {", $lower, "}, {a}, {c}, 0x88\n",
                "vpxor {", $upper, "}, {", $upper, "}, {ku}\n",
                "vpcmpeqd {", $lower, "}, {", $lower, "}, {k}",
            )
        };
    }

    /// As in `scalar`. Each new key calls it in a table that is not full.
    #[inline(never)]
    pub(crate) fn first_unused<'a>(candidates: &Candidates<'a>, key: u64) -> Option<&'a Slot> {
        let Candidates { first, second, spare, .. } = *candidates;
        let same: u64;
        // SAFETY: as in `lowest_state`.
        unsafe {
            core::arch::asm!(
                // `{k}` has the lower half of the key word in its lowest half and zeroes in the
                // others. So bit 0 of a slot's four bits means that the lower halves of the key
                // words agree, and bits 2 and 3 that the state is 0.
                "vmovd {k}, {same:e}",
                alike!("{first}" "{second}" "{first} + 16" "{second} + 16" => "same"),
                alike!("{first} + 32" "{second} + 32" "{first} + 48" "{second} + 48" => "four"),
                "shl {four}, 16",
                "or {same}, {four}",
                alike!("{spare}" "{spare} + 16" "{spare} + 32" "{spare} + 48" => "four"),
                "shl {four}, 32",
                "or {same}, {four}",
                first = in(reg) core::ptr::from_ref(first),
                second = in(reg) core::ptr::from_ref(second),
                spare = in(reg) core::ptr::from_ref(spare),
                same = inout(reg) key => same,
                four = out(reg) _,
                k = out(xmm_reg) _, a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                options(nostack, readonly),
            );
        }
        let empty = same & same >> 1 & 0x4444_4444_4444;
        if same & 0x1111_1111_1111 != 0 || empty == 0 {
            return None;
        }
        // Four bits for each of the twelve candidates in the key's order: its index in the three
        // buckets.
        let place = (0xba98_7362_5140_u64 >> (empty.trailing_zeros() & !3) & 15) as usize;
        [first, second, spare].get(place / SLOTS)?.0.get(place % SLOTS)
    }

    /// As in `scalar`. Each new key calls it in a full table. It is short, so that the processor's
    /// window reaches the next request's cache lines:
    /// docs/internals/decisions/0017-a-flood-in-the-window.md.
    #[inline(always)]
    pub(crate) fn lowest_state<'a>(candidates: &Candidates<'a>, key: u64, gap: u64) -> Lowest<'a> {
        let Candidates { first, second, spare, .. } = *candidates;
        let (mask, state): (u32, u64);
        // SAFETY: three buckets of 64 readable bytes, aligned to 64, shared only through atomics.
        // Each load reads one slot by one access, as in `Slot::pair`.
        unsafe {
            core::arch::asm!(
                "vmovq {k}, {key}",
                // The version is in the upper half of a key word.
                "vpshufd {ku}, {k}, 0x55",
                "vpshufd {k}, {k}, 0x00",
                differ!("first" => "s0" "s1" "u" "l"),
                differ!("second" => "s2" "s3" "b" "d"),
                "vpor {u}, {u}, {b}",
                "vpor {l}, {l}, {d}",
                differ!("spare" => "s4" "s5" "b" "d"),
                "vpor {u}, {u}, {b}",
                "vpor {l}, {l}, {d}",
                "vpsrld {u}, {u}, 24",
                "vpor {u}, {u}, {l}",
                // The least state as a signed number. It is negative if any state is.
                "vpcmpgtq {a}, {s0}, {s1}",
                "vblendvpd {a}, {s0}, {s1}, {a}",
                "vpcmpgtq {b}, {s2}, {s3}",
                "vblendvpd {b}, {s2}, {s3}, {b}",
                "vpcmpgtq {c}, {s4}, {s5}",
                "vblendvpd {c}, {s4}, {s5}, {c}",
                "vpcmpgtq {d}, {a}, {b}",
                "vblendvpd {a}, {a}, {b}, {d}",
                "vpcmpgtq {d}, {a}, {c}",
                "vblendvpd {a}, {a}, {c}, {d}",
                "vpshufd {b}, {a}, 0x4e",
                "vpcmpgtq {d}, {a}, {b}",
                "vblendvpd {a}, {a}, {b}, {d}",
                "vmovq {key}, {a}",
                // The states that are below the least one plus `gap`.
                "vmovq {b}, {gap}",
                "vpunpcklqdq {b}, {b}, {b}",
                "vpaddq {a}, {a}, {b}",
                "vpcmpgtq {s0}, {a}, {s0}",
                "vpcmpgtq {s1}, {a}, {s1}",
                "vpcmpgtq {s2}, {a}, {s2}",
                "vpcmpgtq {s3}, {a}, {s3}",
                "vpcmpgtq {s4}, {a}, {s4}",
                "vpcmpgtq {s5}, {a}, {s5}",
                "vpackssdw {s0}, {s0}, {s1}",
                "vpackssdw {s2}, {s2}, {s3}",
                "vpackssdw {s4}, {s4}, {s5}",
                "vpacksswb {s0}, {s0}, {s2}",
                "vpacksswb {s4}, {s4}, {s4}",
                "vpmovmskb {mask:e}, {s0}",
                "vpmovmskb {gap:e}, {s4}",
                "shl {gap:e}, 16",
                "or {mask:e}, {gap:e}",
                "and {mask:e}, 0x555555",
                "xor {gap:e}, {gap:e}",
                "vptest {u}, {u}",
                "cmovnz {mask:e}, {gap:e}",
                "test {key}, {key}",
                "cmovs {mask:e}, {gap:e}",
                first = in(reg) core::ptr::from_ref(first),
                second = in(reg) core::ptr::from_ref(second),
                spare = in(reg) core::ptr::from_ref(spare),
                key = inout(reg) key => state,
                gap = inout(reg) gap => _,
                mask = out(reg) mask,
                k = out(xmm_reg) _, ku = out(xmm_reg) _, u = out(xmm_reg) _, l = out(xmm_reg) _,
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                s0 = out(xmm_reg) _, s1 = out(xmm_reg) _, s2 = out(xmm_reg) _, s3 = out(xmm_reg) _,
                s4 = out(xmm_reg) _, s5 = out(xmm_reg) _,
                options(nostack, readonly),
            );
        }
        if mask & mask.wrapping_sub(1) != 0 || mask == 0 {
            return None;
        }
        let place = mask.trailing_zeros() as usize / 2;
        let slot = [first, second, spare].get(place / SLOTS)?.0.get(place % SLOTS)?;
        Some((slot, state))
    }
}
