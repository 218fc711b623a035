//! The knots of a refill function: a curve that follows a caller's own function.
//!
//! The function is read once at [`TIMES`] times of a slice. One pass then makes a curve that stays
//! within a given error of all of these values: from the last knot it follows the straight line
//! that serves the most times, and sets the next knot there. A search finds the smallest error at
//! which the curve has few enough knots.

use super::Knots;
use crate::sync::filled;
use alloc::boxed::Box;

/// The times of a slice at which a function is read, both ends included.
pub const TIMES: usize = STEPS * Knots::WHOLE as usize + 1;
/// Times between two places where a knot may be.
const STEPS: usize = 4;
/// Values are counted in this part of the limit.
const ONE: i64 = 100_000_000;
/// A share of [`Knots::WHOLE`] in that count.
const SHARE: i64 = ONE / Knots::WHOLE as i64;
/// Twice the rounding of a value. A curve that is this near is the function itself.
const EXACT: i64 = 2;
/// Half a permille. Nearer curves are not worth a longer text.
const NEAR: i64 = ONE / 2000;
/// By how much a function may fall, or miss 0 and 1: rounding of its arithmetic.
const SLACK: f64 = 1e-7;

/// A curve that follows a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The curve.
    pub knots: Knots,
    /// The largest difference between the curve and the function that was found, as a share of the
    /// limit: 0.001 is a permille.
    pub error: f64,
    /// The time of that difference, as a share of the slice.
    pub time: f64,
    /// The function's value at that time.
    pub value: f64,
}

/// Why a function is no refill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitError {
    /// The rule that the function breaks.
    pub fault: FitFault,
    /// The first time at which it does, as a share of the slice.
    pub time: f64,
    /// The function's value at that time.
    pub value: f64,
}

/// The rules of a refill function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FitFault {
    /// A value that is not a share from 0 to 1, such as NaN.
    Range,
    /// A value that is less than the one before it.
    Falls,
    /// The value at time 1 is not 1, so the slice would not have all of its permits.
    End,
    /// There is no memory for the values.
    NoMemory,
}

impl Knots {
    /// The knots of a curve that follows `share`: of the time in a slice, from 0 to 1, the share of
    /// the limit that has come by then, from 0 to 1.
    ///
    /// `share` is called with [`TIMES`] times in rising order, and no more after the first refused
    /// value. A function that falls by less than 1e-7 of the limit, or misses 0 or 1 by less,
    /// counts as even or as 0 or 1.
    ///
    /// The curve is the function itself if that is straight between at most [`Knots::MOST`] knots
    /// at hundredths of a percent. Otherwise it is within half a permille of the limit if so many
    /// knots suffice, as for a smooth function of up to twelve convex or concave pieces, and as
    /// near as they allow if not: within a permille for up to twenty such pieces. More than a
    /// permille is left of functions with more pieces, and in two other cases.
    ///
    /// - The function jumps between two hundredths of a percent of the slice. The curve jumps at
    ///   the later one, so no permit comes early.
    /// - The function rises by more than a percent within a hundredth of a percent of the slice, as
    ///   the square root of time does at 0.
    ///
    /// ```
    /// use tollbar::policy::Knots;
    /// use tollbar::Policy;
    ///
    /// let fit = Knots::fit(&mut |time| time * time).expect("rises from 0 to 1");
    /// assert!(fit.error < 0.001);
    /// let policy = Policy::new(1000, 60_000_000_000).with_curve(fit.knots);
    /// # assert!(policy.validate().is_ok());
    /// ```
    ///
    /// # Errors
    /// The first value that is not finite, not a share, or less than one before it, and its time;
    /// or that the last value is not 1.
    pub fn fit(share: &mut dyn FnMut(f64) -> f64) -> Result<Fit, FitError> {
        let values = read(share)?;
        let curve = match follow(&values, EXACT).or_else(|| follow(&values, NEAR)) {
            Some(curve) => curve,
            None => nearest(&values),
        };
        let (error, time) = curve.error(&values);
        let value = values.get(time).copied().unwrap_or(0);
        Ok(Fit {
            knots: Knots::of_hundredths(curve.knots.get(..curve.length).unwrap_or_default()),
            error: error as f64 / ONE as f64,
            time: time_of(time),
            value: f64::from(value) / ONE as f64,
        })
    }
}

/// The nearest curve by halving the error, within half a share.
fn nearest(values: &[u32]) -> Line {
    // A curve of the greatest error is one line, so `best` is set before the loop ends.
    let (mut low, mut high, mut best) = (NEAR, ONE, Line::new());
    while high - low > SHARE / 2 {
        let middle = low + (high - low) / 2;
        match follow(values, middle) {
            Some(curve) => (high, best) = (middle, curve),
            None => low = middle,
        }
    }
    if best.length == 0 {
        best.add([Knots::WHOLE, Knots::WHOLE]);
    }
    best
}

fn time_of(n: usize) -> f64 {
    n as f64 / (TIMES - 1) as f64
}

/// The function's values in [`ONE`]ths, which rise to [`ONE`].
fn read(share: &mut dyn FnMut(f64) -> f64) -> Result<Box<[u32]>, FitError> {
    let no_memory = FitError { fault: FitFault::NoMemory, time: 0.0, value: 0.0 };
    let mut values = filled(TIMES, 0u32).ok_or(no_memory)?;
    let mut last = 0.0f64;
    for (n, place) in values.iter_mut().enumerate() {
        let time = time_of(n);
        let value = share(time);
        let refuse = |fault| FitError { fault, time, value };
        // No range contains NaN.
        if !(-SLACK..=1.0 + SLACK).contains(&value) {
            return Err(refuse(FitFault::Range));
        }
        if value < last - SLACK {
            return Err(refuse(FitFault::Falls));
        }
        if n == TIMES - 1 && value < 1.0 - SLACK {
            return Err(refuse(FitFault::End));
        }
        last = last.max(value);
        let whole = if n == TIMES - 1 { 1.0 } else { last.min(1.0) };
        *place = (whole * ONE as f64 + 0.5) as u32;
    }
    Ok(values)
}

/// A curve that grows by knots.
struct Line {
    knots: [[u16; 2]; Knots::MOST],
    length: usize,
}

impl Line {
    const fn new() -> Line {
        Line { knots: [[0; 2]; Knots::MOST], length: 0 }
    }

    /// Adds a knot, unless the curve has all of its permits. A knot on the line between two others
    /// is left out. `None`: there is no room.
    fn add(&mut self, knot: [u16; 2]) -> Option<()> {
        let last = self.last();
        if last[1] == Knots::WHOLE || last == knot {
            return Some(());
        }
        if let Some(end) = self.length.checked_sub(1) {
            let before = end.checked_sub(1).and_then(|n| self.knots.get(n)).copied();
            if on_line(before.unwrap_or_default(), last, knot) {
                self.length = end;
            }
        }
        *self.knots.get_mut(self.length)? = knot;
        self.length += 1;
        Some(())
    }

    /// The last knot, from which the curve goes on.
    fn last(&self) -> [u16; 2] {
        match self.length.checked_sub(1) {
            Some(n) => self.knots.get(n).copied().unwrap_or_default(),
            None => [0; 2],
        }
    }

    /// The largest difference from the values, and which value that is.
    fn error(&self, values: &[u32]) -> (i64, usize) {
        let (mut worst, mut at, mut from) = (0, 0, [0; 2]);
        let mut knots = self.knots.get(..self.length).unwrap_or_default().iter().copied();
        let mut to = knots.next();
        for (n, value) in values.iter().enumerate() {
            while let Some(knot) = to.filter(|knot| place(knot[0]) <= n) {
                from = knot;
                to = knots.next();
            }
            let has = to.map_or(i64::from(from[1]) * SHARE, |to| between(from, to, n));
            let difference = (has - i64::from(*value)).abs();
            if difference > worst {
                (worst, at) = (difference, n);
            }
        }
        (worst, at)
    }
}

/// Whether `middle` is on the straight line between the other two knots.
fn on_line(from: [u16; 2], middle: [u16; 2], to: [u16; 2]) -> bool {
    let along = |to: u16, from: u16| i64::from(to) - i64::from(from);
    along(middle[0], from[0]) * along(to[1], from[1])
        == along(middle[1], from[1]) * along(to[0], from[0])
}

/// The number of the value at a knot's time.
fn place(time: u16) -> usize {
    STEPS * usize::from(time)
}

/// The line from one knot to a later one, at a value between both.
fn between(from: [u16; 2], to: [u16; 2], n: usize) -> i64 {
    let rise = i64::from(to[1].saturating_sub(from[1])) * SHARE;
    let (passed, width) = (n.saturating_sub(place(from[0])), place(to[0].saturating_sub(from[0])));
    i64::from(from[1]) * SHARE + (rise * passed as i64).checked_div(width as i64).unwrap_or(rise)
}

/// A curve within `error` of all values, except those in a hundredth of a percent of the slice that
/// no line serves. `None` if the curve needs too many knots.
fn follow(values: &[u32], error: i64) -> Option<Line> {
    let mut curve = Line::new();
    let first = i64::from(*values.first()?);
    curve.add([0, rounded(first)])?;
    while curve.last()[0] < Knots::WHOLE && curve.last()[1] < Knots::WHOLE {
        let from = curve.last();
        match reach(values, from, error) {
            Some(knot) => curve.add(knot)?,
            None => step(&mut curve, values, from)?,
        }
    }
    Some(curve)
}

fn rounded(value: i64) -> u16 {
    ((value + SHARE / 2) / SHARE).clamp(0, Knots::WHOLE.into()) as u16
}

/// The farthest knot to which a straight line stays within `error` of all values on its way.
fn reach(values: &[u32], from: [u16; 2], error: i64) -> Option<[u16; 2]> {
    let (begin, height) = (place(from[0]), i64::from(from[1]) * SHARE);
    // The least and the greatest rise from one value to the next.
    let (mut low, mut high) = (0.0f64, f64::INFINITY);
    let mut farthest = None;
    for (n, value) in values.iter().enumerate().skip(begin + 1) {
        let (passed, above) = ((n - begin) as f64, i64::from(*value) - height);
        low = low.max((above - error) as f64 / passed);
        high = high.min((above + error) as f64 / passed);
        if low > high {
            break;
        }
        if n % STEPS == 0 {
            let least = height as f64 + low * passed;
            let most = (height as f64 + high * passed).min(ONE as f64);
            let is_end = n == TIMES - 1;
            // The middle of the range, on a whole share.
            let share = if is_end { ONE } else { rounded(((least + most) / 2.0) as i64).into() };
            let share = if is_end { share } else { share * SHARE };
            if share as f64 >= least - 0.5 && share as f64 <= most + 0.5 {
                farthest = Some([(n / STEPS) as u16, (share / SHARE) as u16]);
            }
        }
    }
    farthest
}

/// Adds one hundredth of a percent of the slice that no line serves: a jump at its end if one of
/// its [`STEPS`] brings most of the rise, and otherwise the line.
fn step(curve: &mut Line, values: &[u32], from: [u16; 2]) -> Option<()> {
    let begin = place(from[0]);
    let (first, last) = (*values.get(begin)?, *values.get(begin + STEPS)?);
    let steps = values.iter().zip(values.iter().skip(1)).skip(begin).take(STEPS);
    let (rise, before) = steps.map(|(from, to)| (to.saturating_sub(*from), *from)).max()?;
    let to = [from[0] + 1, rounded(last.into()).max(from[1])];
    if u64::from(rise) * 4 >= u64::from(last.saturating_sub(first)) * 3 {
        curve.add([to[0], rounded(before.into()).max(from[1]).min(to[1])])?;
    }
    curve.add(to)
}
