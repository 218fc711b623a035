//! Requests over time.

/// The most bins.
pub const BINS: usize = 240;

/// The widths of bins in seconds. Each divides the next one, so bins of one width join to bins of
/// the next, and readers know their edges from clocks.
const WIDTHS: [u64; 13] = [1, 2, 10, 30, 60, 120, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

/// The time axis: bins of one width, which grows when the log outgrows them. After the last of
/// `WIDTHS` it doubles.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Nanoseconds a bin.
    pub width: u64,
    /// The first bin, as a multiple of the width.
    pub first: u64,
    /// The last one.
    pub last: u64,
    is_empty: bool,
}

const SECOND: u64 = 1_000_000_000;

impl Axis {
    /// An axis without a time on it.
    pub fn new() -> Axis {
        Axis { width: WIDTHS[0] * SECOND, first: 0, last: 0, is_empty: true }
    }

    /// Makes room for a time. Returns how many of the former bins make one of now, 1 as long as the
    /// time is on the axis.
    #[inline]
    pub fn reach(&mut self, time: u64) -> u64 {
        let bin = time / self.width;
        if bin >= self.first && bin <= self.last && !self.is_empty {
            return 1;
        }
        self.grow(bin)
    }

    #[cold]
    fn grow(&mut self, bin: u64) -> u64 {
        if self.is_empty {
            (self.first, self.last, self.is_empty) = (bin, bin, false);
            return 1;
        }
        self.first = self.first.min(bin);
        self.last = self.last.max(bin);
        let before = self.width;
        while self.last - self.first >= BINS as u64 {
            let wider = WIDTHS.iter().map(|seconds| seconds * SECOND).find(|&w| w > self.width);
            let times = wider.map_or(2, |wider| wider / self.width);
            self.first /= times;
            self.last /= times;
            self.width *= times;
        }
        self.width / before
    }

    /// The bin of a time.
    #[inline]
    pub fn bin(&self, time: u64) -> u64 {
        time / self.width
    }

    /// How many bins there are.
    pub fn len(&self) -> usize {
        match self.is_empty {
            true => 0,
            false => (self.last - self.first + 1) as usize,
        }
    }
}

/// Counts of one bin of one client, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The bin.
    pub bin: u64,
    /// Requests.
    pub requests: u32,
    /// Refusals.
    pub refused: u32,
}

/// The bins that are not empty, in order.
#[derive(Clone, Debug, Default)]
pub struct Strip(Vec<Cell>);

impl Strip {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, bin: u64, refused: bool) {
        let cell = match self.0.last() {
            Some(last) if last.bin == bin => self.0.len() - 1,
            Some(last) if last.bin > bin => {
                match self.0.binary_search_by_key(&bin, |cell| cell.bin) {
                    Ok(at) => at,
                    Err(at) => {
                        self.0.insert(at, Cell { bin, ..Cell::default() });
                        at
                    }
                }
            }
            _ => {
                self.0.push(Cell { bin, ..Cell::default() });
                self.0.len() - 1
            }
        };
        let cell = &mut self.0[cell];
        cell.requests = cell.requests.saturating_add(1);
        cell.refused = cell.refused.saturating_add(u32::from(refused));
    }

    /// Follows the axis, of whose former bins `times` make one now.
    pub fn widen(&mut self, times: u64) {
        let mut out: Vec<Cell> = Vec::with_capacity(self.0.len());
        for cell in &self.0 {
            let bin = cell.bin / times;
            match out.last_mut() {
                Some(last) if last.bin == bin => {
                    last.requests = last.requests.saturating_add(cell.requests);
                    last.refused = last.refused.saturating_add(cell.refused);
                }
                _ => out.push(Cell { bin, ..*cell }),
            }
        }
        self.0 = out;
    }

    /// The bins.
    pub fn cells(&self) -> &[Cell] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the axis grows, each bin has the requests of its times.
    #[test]
    fn bins_that_grow_count_as_bins_of_the_last_width() {
        let mut axis = Axis::new();
        let mut strip = Strip::default();
        let mut seed = 1u64;
        let times: Vec<u64> = (0..5_000u64)
            .map(|n| {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                1_431_857_103_000_000_000 + n * n * 3_000_000 - (seed >> 34)
            })
            .collect();
        for &time in &times {
            let times = axis.reach(time);
            if times > 1 {
                strip.widen(times);
            }
            strip.add(axis.bin(time), time % 3 == 0);
        }
        assert!(axis.len() <= BINS && axis.len() > BINS / 6);
        let mut expected = std::collections::BTreeMap::new();
        for &time in &times {
            let cell: &mut (u32, u32) = expected.entry(time / axis.width).or_default();
            cell.0 += 1;
            cell.1 += u32::from(time % 3 == 0);
        }
        let found: Vec<_> =
            strip.cells().iter().map(|cell| (cell.bin, (cell.requests, cell.refused))).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }

    /// Bins of every width begin where a clock in UTC has a round time, up to the end of time.
    #[test]
    fn widths_are_round_and_each_divides_the_next() {
        assert!(WIDTHS.windows(2).all(|pair| pair[1] % pair[0] == 0 && pair[1] / pair[0] <= 5));
        let mut axis = Axis::new();
        axis.reach(0);
        axis.reach(u64::MAX);
        assert!(axis.len() <= BINS && axis.width % (WIDTHS[12] * SECOND) == 0, "{axis:?}");
    }
}
