//! Each list of knots comes back from its words.

use super::*;
use alloc::vec::Vec;

/// Small steps of a generator, so that lists have even and steep pieces.
fn list(length: usize, seed: u64) -> Knots {
    let mut seed = seed;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let (mut at, mut share, mut pairs) = (0u64, 0, Vec::new());
    while pairs.len() < length {
        let left = (length - pairs.len()) as u64;
        let steps = [random(2 * (10_000 - at) / left + 1), random(2 * (10_000 - share) / left + 1)];
        let next = [(at + steps[0]).min(10_000), (share + steps[1]).min(10_000)];
        if pairs.len() + 1 == length {
            let end = [next[0].max(at + u64::from(share == 10_000)).min(10_000), 10_000];
            pairs.push(end.map(|n| n as u16));
        } else if next != [at, share] && next[1] < 10_000 {
            [at, share] = next;
            pairs.push(next.map(|n| n as u16));
        } else if at == 10_000 && share >= 9_999 {
            // No room is left for so many.
            return list(length, seed);
        }
    }
    Knots::of_hundredths(&pairs)
}

#[test]
fn each_length_comes_back_as_it_was() {
    for length in 1..=Knots::MOST {
        for seed in 0..200 {
            let knots = list(length, seed * 64 + length as u64);
            assert_eq!(knots.pairs().count(), length);
            let words = words_of_knots(Kind::Curve, &knots);
            assert_eq!(knots_of_words(Kind::Curve, &words), Some(knots), "{knots:?}");
        }
    }
    let steep = Knots::of_hundredths(&core::array::from_fn::<_, 64, _>(|n| {
        [10_000, if n == 63 { 10_000 } else { n as u16 }]
    }));
    let words = words_of_knots(Kind::Curve, &steep);
    assert_eq!(knots_of_words(Kind::Curve, &words), Some(steep));
}

#[test]
fn bands_come_back_as_they_were() {
    for bands in
        [Knots::of(&[[0, 50], [50, 100]]), Knots::of(&[[0, 1], [1, 100], [30, 7], [99, 5]])]
    {
        let words = words_of_knots(Kind::LevelRefill, &bands);
        assert_eq!(knots_of_words(Kind::LevelRefill, &words), Some(bands));
    }
}

#[test]
fn words_of_no_list_are_refused() {
    assert_eq!(knots_of_words(Kind::Curve, &[0; KNOT_WORDS]), None);
    assert!(knots_of_words(Kind::Curve, &[u64::MAX; KNOT_WORDS]).is_some());
}
