//! Pairs of shares: the knots of a refill curve, and the bands of a bucket whose refill depends on
//! its level.

/// Hundredths of a percent in a percent.
const PERCENT: u16 = Knots::WHOLE / 100;

/// Up to 64 pairs of shares in hundredths of a percent, as 256 bytes. The pair `[0, 0]` ends a
/// shorter list. An empty list is the algorithm's default.
///
/// - `curve`: each pair is a knot, `[time in the slice, share of the limit]`. The curve begins at
///   `[0, 0]`, which is not in the list, and is straight between two knots. Neither number falls
///   from a knot to the next, each knot differs from the one before, and the last share is
///   [`Knots::WHOLE`]. [`Knots::fit`] makes the list of a function.
/// - `level-refill`: each pair is a band, `[level, rate]`: from that share of the burst on permits
///   come back at that share of the rate. The first level is 0, levels rise and are below 100 %,
///   rates are 1 % to 100 %, all are whole percents, and there are at most [`Knots::BANDS_MOST`]
///   bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Knots([[u16; 2]; Knots::MOST]);

impl Knots {
    /// The most pairs.
    pub const MOST: usize = 64;
    /// 100 %: the whole slice, limit, burst or rate.
    pub const WHOLE: u16 = 10_000;
    /// The most bands of a `level-refill`.
    pub const BANDS_MOST: usize = 4;
    /// The empty list.
    pub const NONE: Knots = Knots([[0; 2]; Knots::MOST]);

    /// A curve that follows ln(1 + (e - 1) * t) from below, by less than 0.4 % of the limit.
    pub const LN: Knots = Knots::of(&[
        [3, 5],
        [13, 20],
        [22, 32],
        [34, 46],
        [50, 62],
        [64, 74],
        [78, 85],
        [100, 100],
    ]);
    /// A curve that follows log2(1 + t) from below, by less than 0.7 % of the limit.
    pub const LOG2: Knots =
        Knots::of(&[[15, 20], [32, 40], [50, 58], [56, 64], [78, 83], [100, 100]]);
    /// Half of the limit at the slice's beginning, and the rest evenly.
    pub const FRONT: Knots = Knots::of(&[[0, 50], [100, 100]]);
    /// A quarter of the limit at the beginning of each quarter of the slice.
    pub const STEP: Knots =
        Knots::of(&[[0, 25], [25, 25], [25, 50], [50, 50], [50, 75], [75, 75], [75, 100]]);

    /// The list of these pairs in whole percents, of which the first [`Knots::MOST`] count.
    pub const fn of(pairs: &[[u8; 2]]) -> Knots {
        let mut knots = Knots::NONE;
        let mut i = 0;
        while i < pairs.len() && i < Knots::MOST {
            knots.0[i] = [pairs[i][0] as u16 * PERCENT, pairs[i][1] as u16 * PERCENT];
            i += 1;
        }
        knots
    }

    /// The list of these pairs in hundredths of a percent, of which the first [`Knots::MOST`]
    /// count.
    pub fn of_hundredths(pairs: &[[u16; 2]]) -> Knots {
        let mut knots = Knots::NONE;
        knots.0.iter_mut().zip(pairs).for_each(|(to, pair)| *to = *pair);
        knots
    }

    /// The list of these numbers: each pair's two, one pair after the other.
    pub fn from_array(numbers: &[u16; 2 * Knots::MOST]) -> Knots {
        let mut knots = Knots::NONE;
        // No `chunks_exact` and `copy_from_slice`: a compiler for size keeps their panics.
        let mut from = numbers.iter();
        knots.0.iter_mut().flatten().for_each(|to| *to = from.next().copied().unwrap_or(0));
        knots
    }

    /// The numbers of all pairs.
    pub fn to_array(self) -> [u16; 2 * Knots::MOST] {
        let mut numbers = [0; 2 * Knots::MOST];
        numbers.iter_mut().zip(self.0.iter().flatten()).for_each(|(to, from)| *to = *from);
        numbers
    }

    /// The pairs up to the end of the list, in hundredths of a percent.
    pub fn pairs(&self) -> impl Iterator<Item = [u16; 2]> + Clone + '_ {
        self.0.iter().copied().take_while(|pair| *pair != [0, 0])
    }

    /// Whether the list is empty.
    pub const fn is_none(&self) -> bool {
        let mut i = 0;
        while i < Knots::MOST {
            if self.0[i][0] != 0 || self.0[i][1] != 0 {
                return false;
            }
            i += 1;
        }
        true
    }

    /// Whether a policy of `curve` can have this list.
    pub(super) const fn is_curve(&self) -> bool {
        let (mut at, mut share, mut i) = (0, 0, 0);
        let len = self.len();
        while i < Knots::MOST {
            let [next_at, next_share] = self.0[i];
            if i >= len {
                if next_at != 0 || next_share != 0 {
                    return false;
                }
            } else {
                let stays = next_at == at && next_share == share;
                let within = next_at <= Knots::WHOLE && next_share <= Knots::WHOLE;
                if stays || !within || next_at < at || next_share < share {
                    return false;
                }
                (at, share) = (next_at, next_share);
            }
            i += 1;
        }
        len == 0 || share == Knots::WHOLE
    }

    /// Whether a policy of `level-refill` can have this list.
    pub(super) const fn is_bands(&self) -> bool {
        let len = self.len();
        let mut i = 0;
        while i < Knots::MOST {
            let [level, rate] = self.0[i];
            let rises = if i == 0 { level == 0 } else { level > self.0[i - 1][0] };
            if i >= len {
                if level != 0 || rate != 0 {
                    return false;
                }
            } else {
                let whole = level % PERCENT == 0 && rate % PERCENT == 0;
                if !rises || !whole || level >= Knots::WHOLE || rate == 0 || rate > Knots::WHOLE {
                    return false;
                }
            }
            i += 1;
        }
        len <= Knots::BANDS_MOST
    }

    /// The number of pairs before the first `[0, 0]`.
    const fn len(&self) -> usize {
        let mut len = 0;
        while len < Knots::MOST && (self.0[len][0] != 0 || self.0[len][1] != 0) {
            len += 1;
        }
        len
    }
}

impl Default for Knots {
    fn default() -> Knots {
        Knots::NONE
    }
}
