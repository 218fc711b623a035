//! Compiles a policy to the arguments of the server's scripts, and turns the scripts' replies into
//! decisions. The arguments are whole numbers up to 2^53, with times in microseconds.
//!
//! A script decides and returns the state after its decision. This module computes the rest of the
//! answer, in integers.
//!
//! A bucket counts in *units*, chosen so that nothing is rounded: each step adds `rate` units, and
//! a permit is `permit` units. For gcra a step is a microsecond, and `rate / permit` is the limit
//! over the period (in microseconds), in lowest terms.

use super::error::LimitError;
use super::kinds::{means, Means};
use core::num::NonZeroU64;
use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::limiter::State;
use tollbar::policy::{Anchor, Mode, Policy};
use tollbar::units::{gcd, NEVER};

/// Lua's numbers are doubles, which hold every whole number up to this one exactly.
const EXACT: u64 = 1 << 53;
/// The most microseconds that a script adds to the server's clock: 71 years. The sum stays below
/// [`EXACT`].
const AHEAD_MOST: u64 = 1 << 51;
/// The most arguments of a script after what it is asked, and the cost.
const NUMBERS: usize = 5;
/// The most arguments of a script.
pub(super) const ARGS: usize = 2 + NUMBERS;

/// A policy as the scripts take it. Times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// A limit of 0, which needs no script.
    Closed,
    /// scripts/bucket.lua. `tolerance` is the burst in units.
    Bucket {
        step: NonZeroU64,
        rate: NonZeroU64,
        permit: NonZeroU64,
        tolerance: u64,
    },
    Window {
        period: u64,
        limit: u64,
        anchored: bool,
        count_rejected: bool,
    },
    Weighted {
        period: NonZeroU64,
        limit: u64,
    },
    Log {
        period: u64,
        limit: u64,
        count_rejected: bool,
    },
    /// scripts/segments.lua.
    Segments {
        length: u64,
        limit: u64,
        whole: u64,
        partial: bool,
    },
}

/// The reply of a script.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScriptReply {
    /// 0 allowed, 1 denied, 2 never.
    pub(super) verdict: u64,
    /// The server's time, in microseconds since 1970.
    pub(super) now: u64,
    /// The state after the decision, as each script's last line says.
    pub(super) state: [u64; 3],
}

/// What a store is asked: the first argument of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAsk {
    /// [`Store::check`](super::Store::check).
    Check = 0,
    /// [`Store::peek`](super::Store::peek).
    Peek = 1,
    /// [`Store::take_up_to`](super::Store::take_up_to).
    UpTo = 2,
    /// [`Store::reset`](super::Store::reset).
    Reset = 3,
}

impl Plan {
    pub(super) fn new(policy: &Policy) -> Result<Plan, LimitError> {
        State::validate(policy).map_err(LimitError::Policy)?;
        let means = means(policy.kind).ok_or(LimitError::Unsupported(policy.kind))?;
        if policy.borrow {
            return Err(LimitError::Borrow);
        }
        if policy.init != policy.burst {
            return Err(LimitError::Init);
        }
        if policy.ban != 0 {
            return Err(LimitError::Ban);
        }
        if policy.second.is_some() {
            return Err(LimitError::List);
        }
        if !policy.classes.is_empty() {
            return Err(LimitError::Classes);
        }
        if policy.limit == 0 {
            return Ok(Plan::Closed);
        }
        if means == Means::Debt {
            // The one algorithm whose period may be a fraction of a microsecond.
            return Plan::gcra(policy).ok_or(LimitError::TooLarge);
        }
        if means == Means::Segments {
            return Plan::segments(policy);
        }
        if policy.period % 1000 != 0 {
            return Err(LimitError::Fraction);
        }
        let period = NonZeroU64::new(policy.period / 1000).ok_or(LimitError::Fraction)?;
        Plan::periods(policy, means, period).ok_or(LimitError::TooLarge)
    }

    /// The script's number.
    pub(super) fn script(&self) -> usize {
        match self {
            Plan::Closed | Plan::Bucket { .. } => 0,
            Plan::Window { .. } => 1,
            Plan::Weighted { .. } => 2,
            Plan::Log { .. } => 3,
            Plan::Segments { .. } => 4,
        }
    }

    /// How many numbers of the state the script returns, after verdict, permits and time.
    pub(super) fn state_words(&self) -> usize {
        match self {
            Plan::Closed => 0,
            Plan::Bucket { .. } => 1,
            Plan::Window { .. } => 2,
            Plan::Weighted { .. } | Plan::Log { .. } | Plan::Segments { .. } => 3,
        }
    }

    /// The script's arguments.
    pub(super) fn args(&self, ask: StoreAsk, cost: u64) -> [u64; ARGS] {
        let numbers = match *self {
            Plan::Closed => [0; NUMBERS],
            Plan::Bucket { step, rate, permit, tolerance } => {
                [step.get(), rate.get(), permit.get(), tolerance, 0]
            }
            Plan::Window { period, limit, anchored, count_rejected } => {
                // The last one is the offset: windows begin at multiples of the period.
                [period, limit, u64::from(anchored), u64::from(count_rejected), 0]
            }
            Plan::Weighted { period, limit } => [period.get(), limit, 0, 0, 0],
            Plan::Log { period, limit, count_rejected } => {
                [period, limit, u64::from(count_rejected), 0, 0]
            }
            Plan::Segments { length, limit, whole, partial } => {
                [length, limit, whole, u64::from(partial), 0]
            }
        };
        let [a, b, c, d, e] = numbers;
        // No burst or limit is above 2^53, so every higher cost gets the same answer.
        [ask as u64, cost.min(EXACT), a, b, c, d, e]
    }

    /// The decision. `retry_after` and `reset_after` are whole microseconds, rounded up.
    pub(super) fn decision(&self, reply: &ScriptReply, cost: u64) -> Decision {
        let verdict = match reply.verdict {
            0 => Verdict::Allowed,
            1 => Verdict::Denied,
            _ => Verdict::Never,
        };
        let now = reply.now;
        let [first, second, third] = reply.state;
        let (remaining, retry, reset) = match *self {
            Plan::Closed => (0, NEVER, 0),
            Plan::Bucket { step, rate, permit, tolerance } => {
                let room = tolerance.saturating_sub(first);
                let until = |excess: u64| match div_up(excess, rate) {
                    0 => 0,
                    steps => (now / step)
                        .saturating_add(steps)
                        .saturating_mul(step.get())
                        .saturating_sub(now),
                };
                let excess = first
                    .saturating_add(cost.saturating_mul(permit.get()))
                    .saturating_sub(tolerance);
                (room / permit, until(excess), until(first))
            }
            Plan::Window { period, limit, .. } => {
                let end = first.saturating_add(period).saturating_sub(now);
                (limit.saturating_sub(second), end, if second == 0 { 0 } else { end })
            }
            Plan::Weighted { period, limit } => {
                let here =
                    Weighted { period, limit, start: first, previous: second, current: third };
                (here.room(now) / period, here.retry(now, cost), here.reset(now))
            }
            Plan::Log { limit, .. } => (limit.saturating_sub(first), second, third),
            // As the core answers, a request that can never pass has no times.
            Plan::Segments { .. } if verdict == Verdict::Never => (first, NEVER, NEVER),
            Plan::Segments { .. } => (first, second, third),
        };
        let nanos = |micros: u64| micros.checked_mul(1000).unwrap_or(NEVER);
        let retry_after = match verdict {
            Verdict::Allowed => 0,
            Verdict::Denied => nanos(retry),
            Verdict::Never => NEVER,
        };
        Decision {
            verdict,
            reason: Reason::of(verdict),
            remaining,
            retry_after,
            reset_after: nanos(reset),
            bound: 0,
        }
    }

    fn gcra(policy: &Policy) -> Option<Plan> {
        let limit = u128::from(policy.limit).checked_mul(1000)?;
        let divisor = gcd(limit, u128::from(policy.period));
        let rate = NonZeroU64::new(u64::try_from(limit.checked_div(divisor)?).ok()?)?;
        let permit =
            NonZeroU64::new(u64::try_from(u128::from(policy.period).checked_div(divisor)?).ok()?)?;
        Plan::bucket(NonZeroU64::new(1)?, rate, permit, policy.burst)
    }

    /// `None` if a sum of the script would not be exact: a debt and a charge, or the clock and the
    /// time to fill the bucket.
    fn bucket(step: NonZeroU64, rate: NonZeroU64, permit: NonZeroU64, burst: u64) -> Option<Plan> {
        let tolerance = burst.checked_mul(permit.get())?;
        let sums = tolerance.checked_mul(2)?.checked_add(rate.get())?.checked_add(permit.get())?;
        let ahead = div_up(tolerance, rate).checked_add(1)?.checked_mul(step.get())?;
        (sums <= EXACT && ahead <= AHEAD_MOST).then_some(Plan::Bucket {
            step,
            rate,
            permit,
            tolerance,
        })
    }

    fn segments(policy: &Policy) -> Result<Plan, LimitError> {
        if policy.anchor != Anchor::Epoch {
            return Err(LimitError::Anchor);
        }
        let (segments, limit) = (u64::from(policy.segments), policy.limit);
        let parts = NonZeroU64::new(segments.saturating_mul(1000)).ok_or(LimitError::Fraction)?;
        if policy.period % parts != 0 {
            return Err(LimitError::Fraction);
        }
        let (length, partial) = (policy.period / parts, policy.mode == Mode::Interpolated);
        let whole = if policy.mode == Mode::Strict { segments } else { segments.saturating_sub(1) };
        // The counts of a window together, and a count that fades, times the length.
        let products = limit.checked_mul(if partial { length } else { segments.saturating_add(2) });
        let is_exact = products.is_some_and(|most| most <= EXACT)
            && policy.period / 1000 <= AHEAD_MOST / 4
            && limit <= EXACT / 4;
        is_exact
            .then_some(Plan::Segments { length, limit, whole, partial })
            .ok_or(LimitError::TooLarge)
    }

    fn periods(policy: &Policy, means: Means, period: NonZeroU64) -> Option<Plan> {
        let limit = policy.limit;
        let (micros, count_rejected) = (period.get(), policy.count_rejected);
        let exact = micros.checked_mul(2)? <= AHEAD_MOST && limit <= EXACT / 4;
        let plan = match means {
            Means::Debt | Means::Segments => return None,
            Means::Steps if policy.anchor == Anchor::Epoch => {
                return Plan::bucket(
                    period,
                    NonZeroU64::new(limit)?,
                    NonZeroU64::new(1)?,
                    policy.burst,
                );
            }
            Means::Steps => Plan::Window {
                period: micros,
                limit: policy.burst,
                anchored: true,
                count_rejected: false,
            },
            Means::Window => Plan::Window {
                period: micros,
                limit,
                anchored: policy.anchor == Anchor::First,
                count_rejected,
            },
            Means::Weighted => {
                // The script adds up three products of this size at most.
                let weights = limit.checked_mul(micros)?.checked_mul(3)?;
                return (exact && weights <= EXACT).then_some(Plan::Weighted { period, limit });
            }
            Means::Log => Plan::Log { period: micros, limit, count_rejected },
        };
        exact.then_some(plan)
    }
}

/// A weighted window's state. Times are microseconds.
struct Weighted {
    period: NonZeroU64,
    limit: u64,
    /// When the running window began.
    start: u64,
    /// Permits taken in the window before.
    previous: u64,
    /// Permits taken in the running window.
    current: u64,
}

impl Weighted {
    /// The permits left at `now`, times the period.
    fn room(&self, now: u64) -> u64 {
        let period = self.period.get();
        let left = period.saturating_sub(now.saturating_sub(self.start));
        let weight =
            self.previous.saturating_mul(left).saturating_add(self.current.saturating_mul(period));
        self.limit.saturating_mul(period).saturating_sub(weight)
    }

    /// Microseconds until `cost` fits. It may fit in the running window. Otherwise it may fit in
    /// the next one, where the running window's count is the previous count. At the start of the
    /// window after that it fits, because both counts are 0.
    fn retry(&self, now: u64, cost: u64) -> u64 {
        let elapsed = now.saturating_sub(self.start);
        let period = self.period.get();
        let at = match self.fits(self.previous, self.current.saturating_add(cost), elapsed) {
            Some(elapsed) => self.start.saturating_add(elapsed),
            None => {
                let next = self.start.saturating_add(period);
                next.saturating_add(self.fits(self.current, cost, 0).unwrap_or(period))
            }
        };
        at.saturating_sub(now)
    }

    /// The earliest time in a window, in microseconds since its start and not before `elapsed`, at
    /// which the weighted count of the previous window and `taken` are together at most the limit.
    /// `None` if there is no such time in the window.
    fn fits(&self, previous: u64, taken: u64, elapsed: u64) -> Option<u64> {
        let room = self.limit.checked_sub(taken)?;
        let period = self.period.get();
        let needed = match NonZeroU64::new(previous) {
            Some(previous) => period.saturating_sub(room.saturating_mul(period) / previous),
            None => 0,
        };
        Some(needed.max(elapsed)).filter(|elapsed| *elapsed < period)
    }

    fn reset(&self, now: u64) -> u64 {
        let windows = match (self.previous, self.current) {
            (0, 0) => return 0,
            (_, 0) => 1,
            _ => 2,
        };
        self.start.saturating_add(self.period.get().saturating_mul(windows)).saturating_sub(now)
    }
}

fn div_up(n: u64, d: NonZeroU64) -> u64 {
    n / d + u64::from(n % d != 0)
}
