//! A mixing function and a checksum of 64-bit words.

/// A checksum against accidents. Each step is a bijection of the sum so far, so the change of any
/// one word changes the result.
pub(crate) const fn fold(words: &[u64]) -> u64 {
    let mut sum = 0x5851_f42d_4c95_7f2d;
    let mut rest = words;
    while let [word, others @ ..] = rest {
        sum = mix(sum ^ *word);
        rest = others;
    }
    sum
}

/// A bijection of 64-bit words whose every output bit depends on every input bit (the finalizer of
/// SplitMix64).
pub(crate) const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
