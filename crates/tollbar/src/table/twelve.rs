//! The twelve candidates of a key compared at once, for [`super::arrival`].

use super::home::Home;
use super::slot::{Bucket, Slot, SLOTS};

/// Instructions: which of four slots' halves of words are what `{k}` has. Four bits for each slot, into a register.
#[cfg(target_arch = "x86_64")]
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

/// Instructions: a bucket's states into two registers; in what its keys' upper halves differ from `{ku}` into a third, and ones where the
/// lower are `{k}`'s into a fourth.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
macro_rules! apart {
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

/// What is known of twelve slots that are all empty or under one version of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Least {
    /// The least word.
    pub(super) state: u64,
    /// The first candidate, in the key's order, that had it.
    pub(super) place: usize,
    /// Whether all other words are greater by `apart` at least.
    pub(super) alone: bool,
}

/// The least word among them. `None` if one is of another version than `key` and not empty, or is `key` itself.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn least(home: &Home<'_>, key: u64, apart: u64) -> Option<Least> {
    // SAFETY: AVX is there: `Slot::supported` has seen it.
    unsafe { vectors::least(home, key, apart) }
}

/// Whether what is in a slot is of another version than `key` and not empty, or is `key` itself.
#[inline(always)]
pub(super) fn is_strange(found: super::slot::Pair, key: u64) -> bool {
    let differs = found.key ^ key;
    (differs >> super::home::TAG_BITS != 0) & (found.key | found.state != 0) | (differs == 0)
}

/// The same, one after the other.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn least_in_turn(home: &Home<'_>, key: u64, apart: u64) -> Option<Least> {
    let pairs = slots(home).map(Slot::pair);
    if pairs.iter().any(|pair| is_strange(*pair, key)) {
        return None;
    }
    let state = pairs.iter().fold(u64::MAX, |least, pair| least.min(pair.state));
    let place = pairs.iter().position(|pair| pair.state == state)?;
    let close = pairs.iter().filter(|pair| pair.state - state < apart).count();
    Some(Least { state, place, alone: close == 1 })
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn least(home: &Home<'_>, key: u64, apart: u64) -> Option<Least> {
    least_in_turn(home, key, apart)
}

/// The first slot that nobody has ever had, in the key's order. `None` if there is none, or if one may be the key itself, under whatever
/// version (its lower half is compared).
///
/// It is what every fresh key of a table with room needs: written out for the same reason as [`foremost`].
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(super) fn first_empty<'a>(home: &Home<'a>, key: u64) -> Option<&'a Slot> {
    let Home { first, second, spare, .. } = *home;
    let same: u64;
    // SAFETY: as in `foremost`.
    unsafe {
        core::arch::asm!(
            // Of a slot's four halves of words the lowest is to be the key's lower, and the last two, which are the state, nothing.
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
    // Four bits for each of the twelve: how many come before it in its three buckets.
    let place = (0xba98_7362_5140_u64 >> (empty.trailing_zeros() & !3) & 15) as usize;
    [first, second, spare].get(place / SLOTS)?.0.get(place % SLOTS)
}

/// The same, one after the other.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn first_empty_in_turn<'a>(home: &Home<'a>, key: u64) -> Option<&'a Slot> {
    let pairs = slots(home).map(|slot| (slot, slot.pair()));
    if pairs.iter().any(|(_, pair)| pair.key as u32 == key as u32) {
        return None;
    }
    pairs.iter().find(|(_, pair)| pair.state == 0).map(|(slot, _)| *slot)
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn first_empty<'a>(home: &Home<'a>, key: u64) -> Option<&'a Slot> {
    first_empty_in_turn(home, key)
}

/// The one slot whose word is less than those of the other eleven, by `apart` at least: how many slots come before it in its three
/// buckets, and the word. `None` if there is none; if one is of another version than `key` or empty; if one may be the key itself
/// (its lower half is compared: one newcomer in 2^32 / 12 is taken for what it is not, and asked for the long way).
///
/// It is what every fresh key of a flood needs, and all that lies between one request's lines and the next one's in the processor's window
/// (docs/decisions/0017-a-flood-in-the-window.md): so it is written out.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn foremost([first, second, spare]: [&Bucket; 3], key: u64, apart: u64) -> Option<(usize, u64)> {
    let (mask, state): (u32, u64);
    // SAFETY: three times 64 readable bytes, aligned to 64, shared only through atomics; each slot is read by one access, as in
    // `Slot::pair`. The instructions are AVX's, which `supported` has seen.
    unsafe {
        core::arch::asm!(
            "vmovq {k}, {key}",
            // The upper halves of four keys at a time have the version.
            "vpshufd {ku}, {k}, 0x55",
            "vpshufd {k}, {k}, 0x00",
            apart!("first" => "s0" "s1" "u" "l"),
            apart!("second" => "s2" "s3" "b" "d"),
            "vpor {u}, {u}, {b}",
            "vpor {l}, {l}, {d}",
            apart!("spare" => "s4" "s5" "b" "d"),
            "vpor {u}, {u}, {b}",
            "vpor {l}, {l}, {d}",
            "vpsrld {u}, {u}, 24",
            "vpor {u}, {u}, {l}",
            // The least word, as a signed number: where one is negative, so is the least.
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
            // Which are less than that and `apart`.
            "vmovq {b}, {apart}",
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
            "vpmovmskb {apart:e}, {s4}",
            "shl {apart:e}, 16",
            "or {mask:e}, {apart:e}",
            "and {mask:e}, 0x555555",
            "xor {apart:e}, {apart:e}",
            "vptest {u}, {u}",
            "cmovnz {mask:e}, {apart:e}",
            "test {key}, {key}",
            "cmovs {mask:e}, {apart:e}",
            first = in(reg) core::ptr::from_ref(first),
            second = in(reg) core::ptr::from_ref(second),
            spare = in(reg) core::ptr::from_ref(spare),
            key = inout(reg) key => state,
            apart = inout(reg) apart => _,
            mask = out(reg) mask,
            k = out(xmm_reg) _, ku = out(xmm_reg) _, u = out(xmm_reg) _, l = out(xmm_reg) _,
            a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
            s0 = out(xmm_reg) _, s1 = out(xmm_reg) _, s2 = out(xmm_reg) _, s3 = out(xmm_reg) _, s4 = out(xmm_reg) _, s5 = out(xmm_reg) _,
            options(nostack, readonly),
        );
    }
    match mask & mask.wrapping_sub(1) == 0 && mask != 0 {
        true => Some((mask.trailing_zeros() as usize / 2, state)),
        false => None,
    }
}

/// The same, one after the other.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn foremost_in_turn(buckets: [&Bucket; 3], key: u64, apart: u64) -> Option<(usize, u64)> {
    let pairs = buckets.map(|bucket| bucket.0.each_ref().map(Slot::pair));
    let pairs = || pairs.iter().flatten();
    let strange = |found: u64| (found ^ key) >> super::home::TAG_BITS != 0 || found as u32 == key as u32;
    if pairs().any(|pair| strange(pair.key)) {
        return None;
    }
    let least = pairs().map(|pair| pair.state as i64).min().filter(|least| *least >= 0)?;
    let bound = least.wrapping_add(apart as i64);
    let place = pairs().position(|pair| (pair.state as i64) < bound)?;
    let close = pairs().filter(|pair| (pair.state as i64) < bound).count();
    (close == 1).then_some((place, least as u64))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn foremost(buckets: [&Bucket; 3], key: u64, apart: u64) -> Option<(usize, u64)> {
    foremost_in_turn(buckets, key, apart)
}

/// In the key's order, as [`Home::candidate`] has it.
#[inline(always)]
fn slots<'a>(home: &Home<'a>) -> [&'a Slot; 12] {
    let ([a, b, c, d], [e, f, g, h]) = (&home.first.0, &home.second.0);
    let [i, j, k, l] = &home.spare.0;
    [a, e, b, f, c, g, d, h, i, j, k, l]
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use super::{slots, Home, Least, Slot};
    use core::arch::x86_64::*;

    // Written out by macros: compiled for size, loops of six and calls of small functions would stay what they are.

    /// Each of the six vectors in turn.
    macro_rules! six {
        ($each:ident, $([$v:literal])*) => { ($($each!($v),)*) };
    }

    /// Both of two words' lesser, as signed numbers.
    macro_rules! lesser {
        ($a:expr, $b:expr) => {{
            let (a, b) = ($a, $b);
            _mm_blendv_epi8(a, b, _mm_cmpgt_epi64(a, b))
        }};
    }

    /// A bit for each of twelve words that are all ones: the lowest, the third, …
    macro_rules! mask {
        ($words:expr) => {{
            let (a, b, c, d, e, f) = $words;
            let (low, high, last) = (_mm_packs_epi32(a, b), _mm_packs_epi32(c, d), _mm_packs_epi32(e, f));
            // What is all ones stays so when it is narrowed: two bytes are left of a word, and two bits.
            let eight = _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u32;
            let four = _mm_movemask_epi8(_mm_packs_epi16(last, last)) as u32;
            (eight | four << 16) & 0x0055_5555
        }};
    }

    /// # Safety
    /// The processor has AVX.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn least(home: &Home<'_>, key: u64, apart: u64) -> Option<Least> {
        let [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11] = slots(home);
        // SAFETY: AVX is there by the caller's promise; what is read and how is said at `both`.
        unsafe {
            let (mut keys, mut states) = ([_mm_setzero_si128(); 6], [_mm_setzero_si128(); 6]);
            macro_rules! two {
                ($n:literal, $a:ident, $b:ident) => {
                    let (a, b) = (both($a), both($b));
                    (keys[$n], states[$n]) = (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b));
                };
            }
            two!(0, s0, s1);
            two!(1, s2, s3);
            two!(2, s4, s5);
            two!(3, s6, s7);
            two!(4, s8, s9);
            two!(5, s10, s11);

            let zero = _mm_setzero_si128();
            let key = _mm_set1_epi64x(key as i64);
            // Ones where a slot is of this version or empty, and is not the key itself.
            macro_rules! good {
                ($n:literal) => {{
                    let differs = _mm_xor_si128(keys[$n], key);
                    let kin = _mm_cmpeq_epi64(_mm_srli_epi64::<56>(differs), zero);
                    let empty = _mm_cmpeq_epi64(_mm_or_si128(keys[$n], states[$n]), zero);
                    _mm_andnot_si128(_mm_cmpeq_epi64(differs, zero), _mm_or_si128(kin, empty))
                }};
            }
            let (a, b, c, d, e, f) = six!(good, [0][1][2][3][4][5]);
            let good = _mm_and_si128(_mm_and_si128(_mm_and_si128(a, b), _mm_and_si128(c, d)), _mm_and_si128(e, f));
            if _mm_movemask_epi8(good) != 0xffff {
                return None;
            }
            // Comparisons have a sign: with the highest bit turned over their order is that of numbers without one.
            let sign = _mm_set1_epi64x(i64::MIN);
            macro_rules! signed {
                ($n:literal) => {
                    _mm_xor_si128(states[$n], sign)
                };
            }
            let (a, b, c, d, e, f) = six!(signed, [0][1][2][3][4][5]);
            let two = lesser!(lesser!(lesser!(a, b), lesser!(c, d)), lesser!(e, f));
            // Of the two halves; then both are it.
            let least = _mm_xor_si128(lesser!(two, _mm_shuffle_epi32::<0b01_00_11_10>(two)), sign);
            macro_rules! equal {
                ($n:literal) => {
                    _mm_cmpeq_epi64(states[$n], least)
                };
            }
            let bound = _mm_set1_epi64x((apart ^ 1 << 63) as i64);
            macro_rules! close {
                ($n:literal) => {
                    _mm_cmpgt_epi64(bound, _mm_xor_si128(_mm_sub_epi64(states[$n], least), sign))
                };
            }
            Some(Least {
                state: _mm_cvtsi128_si64(least) as u64,
                place: mask!(six!(equal, [0][1][2][3][4][5])).trailing_zeros() as usize / 2,
                alone: mask!(six!(close, [0][1][2][3][4][5])).count_ones() == 1,
            })
        }
    }

    /// Both words of a slot at one instant.
    #[inline(always)]
    unsafe fn both(slot: &Slot) -> __m128i {
        let both: __m128i;
        // SAFETY: as `Slot::pair`.
        unsafe {
            core::arch::asm!(
                "vmovdqa {both}, xmmword ptr [{at}]",
                at = in(reg) core::ptr::from_ref(slot),
                both = lateout(xmm_reg) both,
                options(nostack, preserves_flags, readonly),
            );
        }
        both
    }
}
