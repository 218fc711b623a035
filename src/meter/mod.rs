//! Meters: a packet is green, yellow or red, as RFC 2697 (one rate, two bursts) and RFC 2698 (two
//! rates) say.
//!
//! # Exact
//!
//! The RFCs add a token to a bucket at fixed ticks, `CIR` or `PIR` times a second from time 0. A
//! meter counts time in these ticks, so its answers are those of the RFCs' texts, token by token,
//! and no tick has to be simulated.
//!
//! A state is two words, which one 16-byte compare-and-swap changes. A red packet changes nothing.
//!
//! * **One rate** (srTCM): `{tat, e}`. `tat` is the tick at which bucket C is full. `e` is what
//!   bucket E lacked at tick `max(tat, now)` of the last change. Until `tat` each tick's token goes
//!   to C, and from then on to E: so at tick `now > tat`, E has got `now − tat`.
//!
//!   ```text
//!   if now > tat:  e −= min(e, now − tat);  tat = now
//!   green   if tat + b <= now + CBS     tat += b
//!   yellow  if e + b   <= EBS           e += b
//!   ```
//! * **Two rates** (trTCM): `{tat of P, tat of C}`, each in the ticks of its own rate.
//!
//! An older clock reading never admits more: it only finds less refilled.

#[cfg(all(loom, test))]
mod models;

use crate::policy::PolicyError;
#[cfg(not(loom))]
use crate::table::memory::error::TableError;
use crate::table::memory::slot::{Slot, SlotPair};
use crate::units::LAST;

/// The colour of a packet. The order is that of the RFCs: a later colour is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Color {
    /// Within the committed rate and burst.
    Green = 0,
    /// Above the committed burst, and within the excess burst or the peak rate.
    Yellow = 1,
    /// Above both.
    Red = 2,
}

/// A rate and a burst, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Bytes per period.
    pub limit: u64,
    /// The period in nanoseconds.
    pub period: u64,
    /// The size of the bucket in bytes.
    pub burst: u64,
}

/// What a meter measures. It is plain data, and any number of states may be under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meter {
    /// RFC 2697: the committed rate with its burst (CIR, CBS), and the excess burst (EBS).
    SingleRate(Rate, u64),
    /// RFC 2698: the committed rate (CIR, CBS) and the peak rate (PIR, PBS).
    TwoRates {
        /// CIR and CBS.
        committed: Rate,
        /// PIR and PBS.
        peak: Rate,
    },
}

/// A state of a meter, in memory that threads and processes may share. All zeroes: all buckets are
/// full.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(C)]
pub struct MeterState(Slot);

/// The greatest burst, and the tick after which every packet is red. Sums of both fit a word.
const MOST: u64 = 1 << 62;

impl Meter {
    /// A meter of RFC 2697.
    ///
    /// # Errors
    /// Those of [`Meter::validate`].
    pub fn single_rate(committed: Rate, excess_burst: u64) -> Result<Meter, PolicyError> {
        let meter = Meter::SingleRate(committed, excess_burst);
        meter.validate().map(|()| meter)
    }

    /// A meter of RFC 2698.
    ///
    /// # Errors
    /// Those of [`Meter::validate`].
    pub fn two_rates(committed: Rate, peak: Rate) -> Result<Meter, PolicyError> {
        let meter = Meter::TwoRates { committed, peak };
        meter.validate().map(|()| meter)
    }

    /// Whether the rates and bursts are in range. A burst of 0 is allowed where the RFC allows it:
    /// one of CBS and EBS may be 0.
    ///
    /// # Errors
    /// [`PolicyError::PeriodZero`], [`PolicyError::BurstZero`] if no packet could be green or
    /// yellow, [`PolicyError::BurstTooLarge`] above 2^62, and [`PolicyError::RateTooHigh`] from 16
    /// bytes a nanosecond on, or if the peak rate is below the committed one.
    pub fn validate(&self) -> Result<(), PolicyError> {
        match *self {
            Meter::SingleRate(committed, excess_burst) => {
                committed.validate()?;
                match (committed.burst, excess_burst) {
                    (0, 0) => Err(PolicyError::BurstZero),
                    (_, burst) if burst > MOST => Err(PolicyError::BurstTooLarge),
                    _ => Ok(()),
                }
            }
            Meter::TwoRates { committed, peak } => {
                committed.validate()?;
                peak.validate()?;
                if committed.burst == 0 || peak.burst == 0 {
                    return Err(PolicyError::BurstZero);
                }
                let (low, high) =
                    (product(committed.limit, peak.period), product(peak.limit, committed.period));
                if low > high {
                    return Err(PolicyError::RateTooHigh);
                }
                Ok(())
            }
        }
    }

    /// The colour of a packet of `bytes` at `now`, in nanoseconds of one clock, and the bytes are
    /// charged to the buckets of that colour. `before` is the colour that an earlier meter gave, or
    /// [`Color::Green`] for a packet that has none: the answer is never better.
    ///
    /// ```
    /// use tollbar::meter::{Color, Meter, MeterState, Rate};
    ///
    /// let committed = Rate { limit: 1_000_000, period: 1_000_000_000, burst: 3_000 };
    /// let (meter, state) = (Meter::single_rate(committed, 1_500)?, MeterState::new()?);
    /// let mut colors = [1_500; 4].map(|bytes| meter.color_at(&state, 0, bytes, Color::Green));
    /// assert_eq!(colors, [Color::Green, Color::Green, Color::Yellow, Color::Red]);
    /// // 1.5 ms later the rate has refilled one packet of the committed bucket.
    /// assert_eq!(meter.color_at(&state, 1_500_000, 1_500, Color::Green), Color::Green);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(not(loom))]
    pub fn color_at(&self, state: &MeterState, now: u64, bytes: u64, before: Color) -> Color {
        self.color(&state.0, now, bytes, before)
    }

    /// Decides, and stores the state unless the packet is red.
    fn color(&self, slot: &Slot, now: u64, bytes: u64, before: Color) -> Color {
        let mut pair = SlotPair { key: slot.key(), state: slot.state() };
        loop {
            let (color, next) = self.step(pair, now, bytes, before);
            // A red packet writes nothing, so its two words must have been there at one instant.
            let swapped = match next {
                Some(next) => slot.swap(pair, next),
                None => match slot.pair() {
                    seen if seen == pair => return color,
                    seen => Err(seen),
                },
            };
            match swapped {
                Ok(()) => return color,
                Err(seen) => pair = seen,
            }
        }
    }

    /// The colour, and the state to store.
    fn step(
        &self,
        state: SlotPair,
        now: u64,
        bytes: u64,
        before: Color,
    ) -> (Color, Option<SlotPair>) {
        let Some((green, yellow)) = self.steps(state, now, bytes) else {
            return (Color::Red, None);
        };
        match (before, green, yellow) {
            (Color::Green, Some(green), _) => (Color::Green, Some(green)),
            (Color::Green | Color::Yellow, _, Some(yellow)) => (Color::Yellow, Some(yellow)),
            _ => (Color::Red, None),
        }
    }

    /// The states after a green and after a yellow packet, where there are such. `None` after the
    /// last time.
    #[inline]
    fn steps(
        &self,
        SlotPair { key, state }: SlotPair,
        now: u64,
        bytes: u64,
    ) -> Option<(Option<SlotPair>, Option<SlotPair>)> {
        Some(match *self {
            Meter::SingleRate(committed, excess_burst) => {
                let now = committed.tick(now)?;
                let (tat, e) = match now.checked_sub(key) {
                    Some(more) => (now, state.saturating_sub(more)),
                    None => (key, state),
                };
                let green = full_at(tat, bytes, now, committed.burst)
                    .map(|tat| SlotPair { key: tat, state: e });
                let lacks = e.checked_add(bytes).filter(|lacks| *lacks <= excess_burst);
                (green, lacks.map(|e| SlotPair { key: tat, state: e }))
            }
            Meter::TwoRates { committed, peak } => {
                let (of_peak, of_committed) = (peak.tick(now)?, committed.tick(now)?);
                let peak_tat = full_at(key, bytes, of_peak, peak.burst);
                let committed_tat = full_at(state, bytes, of_committed, committed.burst);
                let yellow = peak_tat.map(|tat| SlotPair { key: tat, state });
                (
                    yellow
                        .zip(committed_tat)
                        .map(|(yellow, tat)| SlotPair { state: tat, ..yellow }),
                    yellow,
                )
            }
        })
    }
}

/// The tick at which a bucket is full again after `bytes` of it, if it has them at tick `now`.
/// `tat` is the tick at which it is full without them.
fn full_at(tat: u64, bytes: u64, now: u64, burst: u64) -> Option<u64> {
    let next = tat.max(now).checked_add(bytes)?;
    (next <= now.saturating_add(burst)).then_some(next)
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

impl Rate {
    fn validate(&self) -> Result<(), PolicyError> {
        if self.period == 0 {
            return Err(PolicyError::PeriodZero);
        }
        if self.burst > MOST {
            return Err(PolicyError::BurstTooLarge);
        }
        if u128::from(self.limit) >= product(self.period, 16) {
            return Err(PolicyError::RateTooHigh);
        }
        Ok(())
    }

    /// The number of tokens that the rate has added since time 0. `None` after the last time.
    fn tick(&self, now: u64) -> Option<u64> {
        if now > LAST {
            return None;
        }
        let ticks = product(now, self.limit).checked_div(u128::from(self.period))?;
        u64::try_from(ticks).ok().filter(|ticks| *ticks <= MOST)
    }
}

#[cfg(not(loom))]
impl MeterState {
    /// A fresh state: all buckets are full.
    ///
    /// # Errors
    /// [`TableError::Unsupported`] if the processor has no 16-byte compare-and-swap.
    pub fn new() -> Result<MeterState, TableError> {
        MeterState::supported().map(|()| MeterState::default())
    }

    /// Whether the processor can change a state.
    ///
    /// # Errors
    /// [`TableError::Unsupported`].
    pub fn supported() -> Result<(), TableError> {
        match Slot::supported() {
            true => Ok(()),
            false => Err(TableError::Unsupported),
        }
    }
}
