//! The twelve candidates of a key compared at once, for [`super::arrival`].

use super::home::Home;
use super::slot::Slot;

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
