//! What a leased limit is made of: options, and the numbers that follow from them and the policy.
//!
//! The store counts in microseconds of its own clock. One permit takes `den / num` of them, both whole and without a common
//! divisor. Everything that the script multiplies stays below 2^53, where Lua's numbers are exact.

use crate::policy::{Kind, Policy, PolicyError};
use core::fmt;

/// What a node does while the store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Rescue {
    /// It goes on by itself at its share, `limit / nodes`; what it admits is charged when the store is back.
    #[default]
    Share = 0,
    /// It refuses what no lease covers.
    Deny = 1,
    /// It admits what no lease covers, uncounted.
    Allow = 2,
}

/// How one limit is shared between machines. All nodes of a limit say the same, but for `capacity`; while a change is rolled out the stricter
/// is in force, and there may never be more machines than the smallest `nodes` that one of them has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Machines that share the limit, at most: 1 to 65,535. A node without the store has `1 / nodes` of it.
    pub nodes: u32,
    /// How long a lease may be spent, in nanoseconds from before it was asked for. 0: chosen for the policy: a sixteenth of the
    /// time in which its burst comes back, 4 s at most.
    pub life: u64,
    /// Permits of a key that a node admits before the store has been asked: what cold keys live on. They are charged
    /// afterwards. [`Options::OVERDRAFT_DEFAULT`]: chosen for the policy.
    pub overdraft: u64,
    /// Whether the bound is the policy's own: the store gives out less than the burst, by what leases and overdrafts could
    /// add to it. Otherwise it gives out the whole burst and the bound is the greater one.
    pub exact: bool,
    /// What a node does while the store does not answer.
    pub rescue: Rescue,
    /// Keys of this node that are to have a lease at one time.
    pub capacity: u64,
}

impl Options {
    /// The overdraft is chosen for the policy: an eighth of a node's share of the burst, 64 at most; 0 where the burst is too
    /// short-lived for it.
    pub const OVERDRAFT_DEFAULT: u64 = u64::MAX;

    /// For a limit that `nodes` machines share, everything else as is usual.
    pub const fn new(nodes: u32) -> Options {
        Options {
            nodes,
            life: 0,
            overdraft: Options::OVERDRAFT_DEFAULT,
            exact: true,
            rescue: Rescue::Share,
            capacity: 4096,
        }
    }
}

/// Why a limit cannot be leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TermsError {
    /// A policy that no state can be made of.
    Policy(PolicyError),
    /// Only gcra (token bucket, leaky bucket) can be leased, without `borrow`, and with a full bucket to begin with.
    Algorithm,
    /// 0 machines, or more than 65,535.
    Nodes,
    /// The life of a lease is below 1 ms or above 10 minutes.
    Life,
    /// Nothing of the burst is left for leases once the exact bound's reserve is taken off: a greater burst, a shorter life,
    /// a smaller overdraft or fewer nodes would do, or a bound that is not exact.
    BurstTooSmall,
    /// burst and period are too large to be counted in microseconds exactly.
    TooLarge,
    /// A capacity of 0, or above 16,777,216.
    Capacity,
    /// The name is empty, longer than 64 bytes, or has a brace, a space or a byte that is no visible ASCII character.
    Name,
}

impl TermsError {
    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            TermsError::Policy(error) => error.message(),
            TermsError::Algorithm => "only gcra can be leased, without `borrow` and `init`",
            TermsError::Nodes => "nodes must be 1 to 65535",
            TermsError::Life => "the life of a lease must be 1 ms to 10 minutes",
            TermsError::BurstTooSmall => {
                "the burst has no room for a lease: nodes, their overdraft and the life of a lease take it up"
            }
            TermsError::TooLarge => "burst and period are too large to be counted exactly in the store",
            TermsError::Capacity => "the capacity must be 1 to 16777216 keys",
            TermsError::Name => "a name is 1 to 64 visible ASCII characters without braces",
        }
    }
}

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for TermsError {}

impl From<PolicyError> for TermsError {
    fn from(error: PolicyError) -> TermsError {
        TermsError::Policy(error)
    }
}

/// The numbers of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Terms {
    /// Permits in `den` microseconds.
    pub num: u64,
    /// Microseconds.
    pub den: u64,
    /// How far ahead of its clock the store charges for grants, in microseconds: the burst, less what exactness costs.
    pub cap: u64,
    /// How far ahead debts may drive it.
    pub debt_cap: u64,
    /// The largest grant, and so the largest cost.
    pub most: u64,
    /// Nanoseconds of a lease.
    pub life: u64,
    /// Permits a node admits of a cold key.
    pub overdraft: u64,
    /// Machines.
    pub nodes: u64,
    /// A [`Rescue`].
    pub rescue: u64,
}

/// Below this numbers are exact in the script.
const EXACT: u128 = 1 << 53;
/// Permits that a lease can hold.
pub(super) const PERMITS_MOST: u64 = (1 << 24) - 1;
/// The life of a lease that is chosen for a policy is a sixteenth of the burst's time, so that exactness costs an eighth of the
/// burst, but at most this: it is for so long that a killed machine's leases are lost...
const LIFE_LONG: u64 = 4_000_000_000;
/// ...and not less than this or a quarter of the burst's time: a shorter one hardly outlives its question.
const LIFE_SHORT: u64 = 50_000_000;
/// The longest and the shortest time that an answer may take.
const PATIENCE_MOST: u64 = 250_000_000;
const PATIENCE_LEAST: u64 = 5_000_000;
const MILLISECOND: u64 = 1_000_000;
const LIFE_MOST: u64 = 600_000 * MILLISECOND;
const SLACK_LEAST: u64 = 10_000;
const SLACK_MOST: u64 = 1_000_000;
const HOLD_LEAST: u64 = 2_000_000;
/// The longest time that is ahead of the store's clock: 35 years.
const AHEAD_MOST: u128 = 1 << 50;

impl Terms {
    /// For `policy` under `options`.
    pub fn new(policy: &Policy, options: &Options) -> Result<Terms, TermsError> {
        policy.validate()?;
        if policy.kind != Kind::Gcra || policy.borrow || policy.init != policy.burst || policy.limit == 0 {
            return Err(TermsError::Algorithm);
        }
        if options.nodes == 0 || options.nodes > 65_535 {
            return Err(TermsError::Nodes);
        }
        if options.capacity == 0 || options.capacity > 1 << 24 {
            return Err(TermsError::Capacity);
        }
        let (num, den) = ratio(policy.limit, policy.period).ok_or(TermsError::TooLarge)?;
        let nodes = u64::from(options.nodes);
        let refill = micros(policy.burst, num, den);
        let life = match options.life {
            0 => chosen_life(refill),
            life if (MILLISECOND..=LIFE_MOST).contains(&life) => life,
            _ => return Err(TermsError::Life),
        };
        let overdraft = match options.overdraft {
            Options::OVERDRAFT_DEFAULT => {
                let usual = quotient(policy.burst, 8 * nodes).min(64);
                // None where it would leave less than an eighth of the burst to leases.
                let costs = correction(life, micros(usual.saturating_mul(nodes), num, den), usual);
                if costs * 8 <= refill * 7 {
                    usual
                } else {
                    0
                }
            }
            given => given,
        };
        let owed = micros(overdraft.saturating_mul(nodes), num, den);
        let cap = match options.exact {
            true => refill.checked_sub(correction(life, owed, overdraft)).ok_or(TermsError::BurstTooSmall)?,
            false => refill,
        };
        let most = quotient128(cap * u128::from(num), den);
        if most == 0 {
            return Err(TermsError::BurstTooSmall);
        }
        // The greatest products: (cap + owed + a life's jitter) * num, and permits * den.
        let ahead = cap + owed;
        if ahead >= AHEAD_MOST || (ahead + 1) * u128::from(num) >= EXACT || most * u128::from(den) >= EXACT {
            return Err(TermsError::TooLarge);
        }
        let most = (most as u64).min(PERMITS_MOST);
        if overdraft > PERMITS_MOST {
            return Err(TermsError::TooLarge);
        }
        Ok(Terms {
            num,
            den,
            cap: cap as u64,
            debt_cap: ahead as u64,
            most,
            life,
            overdraft,
            nodes,
            rescue: options.rescue as u64,
        })
    }

    /// Nanoseconds that an answer may take before the circuit opens, and a debt before it is told: half a lease's life, within bounds
    /// that do not depend on it.
    pub fn patience(&self) -> u64 {
        patience(self.life)
    }

    /// The node's own bucket: its share of the rate, with a burst of the overdraft. Without an overdraft it begins empty.
    pub(super) fn reserve(&self, policy: &Policy) -> Result<Policy, TermsError> {
        let period = policy.period.checked_mul(self.nodes).ok_or(TermsError::TooLarge)?;
        let mut reserve = Policy::new(policy.limit, period).with_burst(self.overdraft.max(1));
        if self.overdraft == 0 {
            reserve.init = 0;
        }
        // A rate that is exact for the limit may need other units for its share.
        crate::algorithm::Rule::new(&reserve)?;
        Ok(reserve)
    }

    /// Microseconds that `permits` take, rounded up.
    pub fn charge(&self, permits: u64) -> u64 {
        u64::try_from(micros(permits, self.num, self.den)).unwrap_or(u64::MAX)
    }

    /// Permits that fit into so many microseconds.
    pub fn fitting(&self, micros: u64) -> u64 {
        fitting(micros, self.num, self.den)
    }

    /// Microseconds in which the store's bucket fills up, from as far ahead as it can be.
    pub fn refill(&self) -> u64 {
        self.debt_cap
    }

    /// Microseconds by which the store's time may be beyond what a node has worked out when its question arrives: a lease's
    /// life, 10 ms at least and 1 s at most. What comes later opens the circuit anyway.
    pub fn slack(&self) -> u64 {
        quotient(self.life, 1000).clamp(SLACK_LEAST, SLACK_MOST)
    }

    /// Microseconds for which terms stay in force after the last question by them: nodes ask every 0.4 s, and two lives of a
    /// lease cover what was granted.
    pub fn hold(&self) -> u64 {
        quotient(self.life, 500).max(HOLD_LEAST)
    }
}

/// Permits that fit into so many microseconds, at `num` permits in `den` of them.
pub(super) fn fitting(micros: u64, num: u64, den: u64) -> u64 {
    quotient128(u128::from(micros) * u128::from(num), den) as u64
}

/// Nanoseconds of a lease, for a burst that comes back in `refill` microseconds.
fn chosen_life(refill: u128) -> u64 {
    let nanos = refill.saturating_mul(1000);
    let short = quotient128(nanos, 4).min(u128::from(LIFE_SHORT));
    quotient128(nanos, 16).max(short).clamp(u128::from(MILLISECOND), u128::from(LIFE_LONG)) as u64
}

fn patience(life: u64) -> u64 {
    (life / 2).clamp(PATIENCE_LEAST, PATIENCE_MOST)
}

/// Microseconds of the burst that an exact bound takes off at once: what leases may carry on for their life. With overdrafts also
/// twice the patience, for which a debt may be untold (a client is silent for so long, or a debt waits so long), and two overdrafts of
/// each node, `owed`: one charged ahead, one not charged yet. The proof is in docs/distributed.md.
fn correction(life: u64, owed: u128, overdraft: u64) -> u128 {
    let untold = if overdraft == 0 { 0 } else { 2 * patience(life) };
    u128::from(life.saturating_add(untold) / 1000 + 1) + 2 * owed
}

/// `permits * den / num`, rounded up.
pub(super) fn micros(permits: u64, num: u64, den: u64) -> u128 {
    let product = u128::from(permits) * u128::from(den);
    let whole = quotient128(product, num);
    whole + u128::from(whole * u128::from(num) != product)
}

/// `limit` permits per `period` nanoseconds as permits per microseconds, without a common divisor.
fn ratio(limit: u64, period: u64) -> Option<(u64, u64)> {
    // limit / period ns = 1000 limit / period us
    let num = u128::from(limit) * 1000;
    let den = u128::from(period);
    let divisor = gcd(num, den);
    let num = u64::try_from(num.checked_div(divisor)?).ok()?;
    let den = u64::try_from(den.checked_div(divisor)?).ok()?;
    Some((num, den))
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

fn quotient(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(0)
}

fn quotient128(a: u128, b: u64) -> u128 {
    a.checked_div(u128::from(b)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, options: Options) -> Result<Terms, TermsError> {
        Terms::new(&text.parse::<Policy>().expect("a policy"), &options)
    }

    #[test]
    fn twenty_thousand_a_second() {
        let options = Options { overdraft: 0, life: 50_000_000, ..Options::new(4) };
        let terms = terms("20000/s burst 2000", options).expect("terms");
        assert_eq!((terms.num, terms.den), (1, 50));
        // The burst's 100 ms, less the lease's 50.
        assert_eq!(terms.cap, 100_000 - 50_001);
        assert_eq!(terms.most, 999);
        assert_eq!((terms.charge(3), terms.fitting(149)), (150, 2));
    }

    #[test]
    fn rates_that_are_no_whole_microseconds() {
        let terms = terms("3/s burst 300", Options { overdraft: 0, ..Options::new(2) }).expect("terms");
        assert_eq!((terms.num, terms.den), (3, 1_000_000));
        assert_eq!((terms.charge(1), terms.charge(3)), (333_334, 1_000_000));
        assert_eq!(terms.fitting(999_999), 2);
    }

    #[test]
    fn what_cannot_be_leased_is_refused() {
        let refused = |text, options, error| assert_eq!(terms(text, options), Err(error), "{text}");
        refused("10/s algo fixed-window", Options::new(2), TermsError::Algorithm);
        refused("10/s borrow", Options::new(2), TermsError::Algorithm);
        refused("10/s init 0", Options::new(2), TermsError::Algorithm);
        refused("0/s", Options::new(2), TermsError::Algorithm);
        refused("10/s", Options::new(0), TermsError::Nodes);
        refused("10/s", Options { life: 999_999, ..Options::new(1) }, TermsError::Life);
        refused("10/s", Options { capacity: 0, ..Options::new(1) }, TermsError::Capacity);
        refused("10/s burst 1", Options::new(2), TermsError::BurstTooSmall);
        refused("10/s burst 10", Options { overdraft: 5, ..Options::new(2) }, TermsError::BurstTooSmall);
        refused("7/day burst 1000000", Options::new(2), TermsError::TooLarge);
        assert!(terms("7/day", Options::new(2)).is_ok());
        assert!(terms("10000000000/s", Options::new(2)).is_ok());
    }
}
