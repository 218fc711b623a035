//! How long decisions take, as a histogram of one call in 1,024.

use super::{Exposition, Format, MetricKind};
use crate::clock::{Clock, Monotonic};
use crate::sync::{AtomicU64, Ordering};

/// The bounds of the buckets are 2^8 ns, 2^9 ns and so on, up to 2^24 ns, which are 17 ms.
const FIRST: u32 = 8;
const BOUNDS: usize = 17;

/// A histogram of how long calls take, of one in [`Times::EVERY`]. A program puts its decisions
/// into [`Times::of`] and shows the histogram with [`write_times`].
///
/// ```
/// use tollbar::metrics::{write_times, Times};
///
/// static TIMES: Times = Times::new();
/// let limiter = tollbar::Limiter::new(&"2/min".parse()?)?;
/// assert!(TIMES.of(|| limiter.check(1)).is_allowed());
/// let mut out = [0; 2048];
/// let length = write_times(&[("logins", &TIMES)], &mut out);
/// let text = std::str::from_utf8(&out[..length])?;
/// assert!(text.contains("tollbar_decision_nanoseconds_count{limit=\"logins\"} 1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Calls that are not measured add 1 to a counter. Threads may share a histogram, and then share
/// the counter's cache line. Of threads that count at the same instant one may be lost.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Times {
    calls: AtomicU64,
    sum: AtomicU64,
    /// The measured calls of each bucket, and last those above all bounds.
    counts: [AtomicU64; BOUNDS + 1],
}

impl Times {
    /// The number of calls of which one is measured, the first among them.
    pub const EVERY: u64 = 1024;

    /// An empty histogram: all its bytes are 0.
    pub const fn new() -> Times {
        Times {
            calls: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            counts: [const { AtomicU64::new(0) }; BOUNDS + 1],
        }
    }

    /// Calls `decide` and returns its result.
    #[inline]
    pub fn of<T>(&self, decide: impl FnOnce() -> T) -> T {
        let begin = self.begin();
        let decided = decide();
        self.end(begin);
        decided
    }

    /// Begins a call. Returns the time in nanoseconds if the call is measured, otherwise 0.
    #[inline]
    pub fn begin(&self) -> u64 {
        // A load and a store instead of one swap: a lost call changes no result. Relaxed: no other
        // data depends on the counter.
        let call = self.calls.load(Ordering::Relaxed);
        self.calls.store(call.wrapping_add(1), Ordering::Relaxed);
        match call % Times::EVERY {
            0 => Monotonic.now().max(1),
            _ => 0,
        }
    }

    /// Ends a call, by the result of [`Times::begin`].
    #[inline]
    pub fn end(&self, begin: u64) {
        if begin != 0 {
            self.add(Monotonic.now().saturating_sub(begin));
        }
    }

    #[cold]
    fn add(&self, took: u64) {
        // The least n with took <= 2^n.
        let n = u64::BITS - took.saturating_sub(1).leading_zeros();
        let bucket = (n.saturating_sub(FIRST) as usize).min(BOUNDS);
        // Relaxed: a page that is written meanwhile may have a part of a measured call.
        self.sum.fetch_add(took, Ordering::Relaxed);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes histograms as text for Prometheus, `tollbar_decision_nanoseconds` with the label `limit`,
/// and returns the length of the text in bytes. If that is more than `out.len()`, the end is
/// missing.
///
/// The names must differ. The text goes before that of [`write`](super::write), which may end with
/// `# EOF`. Calls that are measured meanwhile may be in a part of the lines.
pub fn write_times(sources: &[(&str, &Times)], out: &mut [u8]) -> usize {
    write_each_times(&|with| sources.iter().for_each(|(name, times)| with(name, times)), out)
}

/// Calls the given function with the name and the histogram of each source.
type EachTimes<'a> = dyn Fn(&mut dyn FnMut(&str, &Times)) + 'a;

/// [`write_times`] of histograms that no array holds.
#[doc(hidden)]
pub fn write_each_times(sources: &EachTimes<'_>, out: &mut [u8]) -> usize {
    let mut w = Exposition::new(out, Format::Prometheus);
    w.head(NAME, MetricKind::Histogram, "Time of a decision, of a sample of all requests.");
    sources(&mut |name, times| w.histogram(name, times));
    w.end()
}

const NAME: &str = "tollbar_decision_nanoseconds";

impl Exposition<'_> {
    fn histogram(&mut self, limit: &str, times: &Times) {
        let mut total = 0;
        for (n, count) in times.counts.iter().enumerate() {
            total += count.load(Ordering::Relaxed);
            self.series("_bucket", limit);
            self.w.text(",le=\"");
            match n {
                BOUNDS => self.w.text("+Inf"),
                _ => self.w.number(1 << (n as u32 + FIRST)),
            }
            self.w.text("\"");
            self.value(total);
        }
        self.series("_sum", limit);
        self.value(times.sum.load(Ordering::Relaxed));
        self.series("_count", limit);
        self.value(total);
    }

    fn series(&mut self, suffix: &str, limit: &str) {
        self.w.text(NAME);
        self.w.text(suffix);
        self.labels(limit, None);
    }
}
