//! The options of a leased limit, and the terms: the numbers that follow from options and policy.
//!
//! The store counts in microseconds. One permit takes `den / num` of them; both are whole and have
//! no common divisor. Every product that the script makes stays below 2^53, up to which Lua's
//! numbers are exact.

use core::fmt;
use tollbar::policy::{Kind, Policy, PolicyError};

/// What a node does with requests that no lease covers while the store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Fallback {
    /// The node admits its share of the rate, `limit / nodes`, and charges it when the store is
    /// back.
    #[default]
    Share = 0,
    /// The node denies them.
    Deny = 1,
    /// The node admits them and charges nothing.
    Allow = 2,
}

/// How full the store takes a key's bucket to be after a loss of data. Data are lost when the store
/// is flushed, or restarts without its data or with old ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OnLoss {
    /// A key that the store has lost begins with a full bucket, as an idle key does. A user who
    /// spent permits shortly before the loss may spend them a second time: at most a burst for each
    /// loss. Machines restore the keys about which they have asked recently.
    #[default]
    Full = 0,
    /// Every key's bucket counts as empty at the loss, and refills. Nobody gets a permit twice, and
    /// everybody, idle users too, waits for the refill.
    Refill = 1,
}

/// How machines share one limit. The first machine that asks the store puts its policy and options
/// into the store's record of the limit, and from then on all machines follow the record
/// ([`set`](super::set) changes it). A machine with another configuration says so
/// ([`Client::notice`](super::Client::notice)). `capacity` and `fallback` are the machine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The most machines that share the limit: 1 to 65,535. Without the store a node has
    /// `1 / nodes` of the rate.
    pub nodes: u32,
    /// For how many nanoseconds a node may spend a lease, counted from before it asked for the
    /// lease: 1 ms to 10 minutes. 0 (the default): a sixteenth of the time in which the burst
    /// refills. That is at most 4 s, and at least 50 ms or a quarter of the refill time, whichever
    /// is less.
    pub life: u64,
    /// A node's right: the permits of a key that it may have admitted and the store has not charged
    /// yet. At most 127. [`Options::OVERDRAFT_DEFAULT`] (the default) chooses it for the policy.
    pub overdraft: u64,
    /// `true` (the default): all machines together keep the policy's own bound. The rights of all
    /// nodes could add permits to it, so the store grants that many fewer than the burst. `false`:
    /// the store grants the whole burst, and the bound is greater by the rights of all nodes.
    pub exact: bool,
    /// What a node does while the store does not answer.
    pub fallback: Fallback,
    /// How full the store takes a key's bucket to be after a loss of data.
    pub on_loss: OnLoss,
    /// The number of keys of this node that can have leases or use their reserve at one time: 1 to
    /// 16,777,216. The default is 4096.
    pub capacity: u64,
}

impl Options {
    /// The right is 8 permits, or what the rate brings in 10 ms if that is more, and at most 64.
    /// The rights of the other nodes take at most an eighth of the burst. As long as all rights
    /// take at most half of it, each is one permit at least. One node's right is at most a quarter
    /// of the burst. Without `exact` only the first sentence and the burst bound it.
    pub const OVERDRAFT_DEFAULT: u64 = u64::MAX;

    /// The default options for a limit that `nodes` machines share.
    pub const fn new(nodes: u32) -> Options {
        Options {
            nodes,
            life: 0,
            overdraft: Options::OVERDRAFT_DEFAULT,
            exact: true,
            fallback: Fallback::Share,
            on_loss: OnLoss::Full,
            capacity: 4096,
        }
    }
}

/// Why a limit cannot be leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TermsError {
    /// The policy is invalid.
    Policy(PolicyError),
    /// The policy is not gcra (token bucket, leaky bucket), has `borrow`, `ban`, classes, a second
    /// rate or an `init` other than its burst, or has a limit of 0.
    Algorithm,
    /// `nodes` is 0 or more than 65,535.
    Nodes,
    /// `life` is below 1 ms or above 10 minutes.
    Life,
    /// With an exact bound nothing of the burst is left for the store to grant. A larger burst, a
    /// smaller overdraft, fewer nodes or `exact: false` would leave permits.
    BurstTooSmall,
    /// The burst, the period or the overdraft is too large to be counted exactly in microseconds
    /// below 2^53.
    TooLarge,
    /// `capacity` is 0 or above 16,777,216.
    Capacity,
    /// The name is empty, longer than 64 bytes, or has a brace, a space or another byte that is not
    /// visible ASCII.
    Name,
}

impl TermsError {
    /// One line for people.
    pub const fn message(self) -> &'static str {
        match self {
            TermsError::Policy(error) => error.message(),
            TermsError::Algorithm => {
                "only a single gcra can be leased, without `borrow`, `ban`, `init` and `reserve`"
            }
            TermsError::Nodes => "nodes must be 1 to 65535",
            TermsError::Life => "the life of a lease must be 1 ms to 10 minutes",
            TermsError::BurstTooSmall => {
                "the burst has no room for a lease: the overdrafts of all nodes take it up"
            }
            TermsError::TooLarge => {
                "burst and period are too large to be counted exactly in the store"
            }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Terms {
    /// The number of the change that brought these terms into the store's record. 0: a machine's
    /// configuration, which no store has confirmed.
    pub version: u64,
    /// The rate is `num` permits in `den` microseconds.
    pub num: u64,
    /// See `num`.
    pub den: u64,
    /// The burst in permits.
    pub burst: u64,
    /// How far ahead of the store's time grants may drive a key's TAT, in microseconds: the burst,
    /// less what exactness costs.
    pub cap: u64,
    /// How far ahead of the store's time debts may drive a key's TAT, in microseconds.
    pub debt_cap: u64,
    /// The largest grant in permits, and so the largest cost.
    pub most: u64,
    /// The life of a lease in nanoseconds.
    pub life: u64,
    /// A node's right in permits.
    pub overdraft: u64,
    /// The most machines that share the limit.
    pub nodes: u64,
    /// An [`OnLoss`] as a number.
    pub on_loss: u64,
    /// `EXACT`, `LIFE_GIVEN` and `OVERDRAFT_GIVEN`.
    pub flags: u64,
    /// A node's right before `since`.
    pub overdraft_before: u64,
    /// The data's time at which a node's right becomes `overdraft`, in microseconds.
    pub since: u64,
    /// A [`Fallback`] as a number. It is the machine's own and not in the store.
    pub fallback: u64,
}

/// [`Terms::flags`]: [`Options::exact`].
pub(super) const EXACT: u64 = 1;
/// [`Terms::flags`]: the options give the life. Otherwise it follows from the policy.
pub(super) const LIFE_GIVEN: u64 = 2;
/// [`Terms::flags`]: the options give the overdraft. Otherwise it follows from the policy.
pub(super) const OVERDRAFT_GIVEN: u64 = 4;

/// Lua's numbers are exact below this.
const WHOLE: u128 = 1 << 53;
/// The most permits of a lease: 24 bits of its word.
pub(super) const PERMITS_MOST: u64 = (1 << 24) - 1;
/// The most permits of a right: 7 bits of a key's word.
const RIGHT_MOST: u64 = 127;
/// The longest default life, in nanoseconds. If a machine is killed, nobody can use its leases for
/// the rest of their life. A shorter default is a sixteenth of the burst's refill time.
const LIFE_LONG: u64 = 4_000_000_000;
/// The shortest default life in nanoseconds, unless a quarter of the burst's refill time is
/// shorter. A question takes a part of the life that it asks for, so a shorter lease would leave
/// little time to spend it.
const LIFE_SHORT: u64 = 50_000_000;
/// The most and the least of [`Terms::patience`], in nanoseconds.
pub(super) const PATIENCE_MOST: u64 = 250_000_000;
const PATIENCE_LEAST: u64 = 5_000_000;
const MILLISECOND: u64 = 1_000_000;
const LIFE_MOST: u64 = 600_000 * MILLISECOND;
const SLACK_LEAST: u64 = 10_000;
const SLACK_MOST: u64 = 1_000_000;
/// Times ahead of the store's clock are below this many microseconds: 35 years.
const AHEAD_MOST: u128 = 1 << 50;

impl Terms {
    /// The terms of `policy` under `options`. Refuses what [`TermsError`] lists.
    pub fn new(policy: &Policy, options: &Options) -> Result<Terms, TermsError> {
        policy.validate()?;
        if policy.kind != Kind::Gcra
            || policy.borrow
            || policy.ban != 0
            || policy.second.is_some()
            || !policy.classes.is_empty()
            || policy.init != policy.burst
            || policy.limit == 0
        {
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
            Options::OVERDRAFT_DEFAULT => usual_right(policy, nodes, options.exact),
            given => given,
        };
        let owed = micros(overdraft.saturating_mul(nodes), num, den);
        let cap = match options.exact {
            true => refill.checked_sub(owed).ok_or(TermsError::BurstTooSmall)?,
            false => refill,
        };
        let most = quotient128(cap * u128::from(num), den);
        if most == 0 {
            return Err(TermsError::BurstTooSmall);
        }
        // The greatest products of the script: (cap + owed, rounded up) * num, and permits * den.
        let ahead = cap + owed;
        if ahead >= AHEAD_MOST
            || (ahead + 1) * u128::from(num) >= WHOLE
            || most * u128::from(den) >= WHOLE
        {
            return Err(TermsError::TooLarge);
        }
        let most = (most as u64).min(PERMITS_MOST);
        if overdraft > RIGHT_MOST {
            return Err(TermsError::TooLarge);
        }
        let given = |flag, is_given| if is_given { flag } else { 0 };
        Ok(Terms {
            version: 0,
            num,
            den,
            burst: policy.burst,
            cap: cap as u64,
            debt_cap: ahead as u64,
            most,
            life,
            overdraft,
            nodes,
            on_loss: options.on_loss as u64,
            flags: given(EXACT, options.exact)
                | given(LIFE_GIVEN, options.life != 0)
                | given(OVERDRAFT_GIVEN, options.overdraft != Options::OVERDRAFT_DEFAULT),
            overdraft_before: overdraft,
            since: 0,
            fallback: options.fallback as u64,
        })
    }

    /// Whether [`Terms::new`] may have made these terms. A node's memory may be damaged, and sums
    /// over terms that nobody made could overflow.
    pub(super) fn may_be_made(&self) -> bool {
        let ahead = u128::from(self.debt_cap);
        (1..=65_535).contains(&self.nodes)
            && self.num != 0
            && self.den != 0
            && u128::from(self.version) < WHOLE
            && u128::from(self.burst) < WHOLE
            && u128::from(self.since) < WHOLE
            && self.cap <= self.debt_cap
            && ahead < AHEAD_MOST
            && (ahead + 1) * u128::from(self.num) < WHOLE
            && self.most != 0
            && self.most == self.fitting(self.cap).min(PERMITS_MOST)
            && self.life <= LIFE_MOST
            && self.overdraft <= RIGHT_MOST
            && self.overdraft_before <= self.overdraft
            && self.flags <= EXACT | LIFE_GIVEN | OVERDRAFT_GIVEN
            && self.on_loss <= OnLoss::Refill as u64
    }

    /// Nanoseconds that a question may be in flight, or a debt unconfirmed, before the circuit
    /// opens: half a lease's life, at least 5 ms and at most 250 ms.
    pub fn patience(&self) -> u64 {
        patience(self.life)
    }

    /// The policy of a node's reserve: the node's share of the rate, and a burst of its right.
    /// Without a right the burst is 1 and the reserve begins empty.
    pub(super) fn reserve(&self) -> Result<Policy, TermsError> {
        let period = self.den.checked_mul(1000).and_then(|period| period.checked_mul(self.nodes));
        let period = period.ok_or(TermsError::TooLarge)?;
        let mut reserve = Policy::new(self.num, period).with_burst(self.overdraft.max(1));
        if self.overdraft == 0 {
            reserve.init = 0;
        }
        // The core may be able to count the limit's rate and not the node's share of it. Such a
        // share is refused here.
        tollbar::algorithm::Rule::new(&reserve)?;
        Ok(reserve)
    }

    /// What the terms `in_force` have other than this machine's configuration.
    pub(super) fn mismatch(&self, in_force: &Terms) -> Option<&'static str> {
        let right = |terms: &Terms| match terms.flags & OVERDRAFT_GIVEN {
            0 => None,
            _ => Some(terms.overdraft),
        };
        let life = |terms: &Terms| if terms.flags & LIFE_GIVEN == 0 { 0 } else { terms.life };
        Some(if (self.num, self.den) != (in_force.num, in_force.den) {
            "the store's record of the limit has another rate than this machine's configuration, and is in force"
        } else if self.burst != in_force.burst {
            "the store's record of the limit has another burst than this machine's configuration, and is in force"
        } else if self.nodes != in_force.nodes {
            "the store's record of the limit has another number of nodes than this machine's configuration, and is in force"
        } else if life(self) != life(in_force) {
            "the store's record of the limit has another life of leases than this machine's configuration, and is in force"
        } else if right(self) != right(in_force) {
            "the store's record of the limit has another overdraft than this machine's configuration, and is in force"
        } else if self.flags & EXACT != in_force.flags & EXACT || self.on_loss != in_force.on_loss {
            "the store's record of the limit has another exactness or on_loss than this machine's configuration, and is in force"
        } else {
            return None;
        })
    }

    /// Whether every bucket counts as empty after a loss of data.
    pub(super) fn refills(&self) -> bool {
        self.on_loss == OnLoss::Refill as u64
    }

    /// Microseconds that `permits` take, rounded up.
    pub fn charge(&self, permits: u64) -> u64 {
        u64::try_from(micros(permits, self.num, self.den)).unwrap_or(u64::MAX)
    }

    /// Whole permits that fit into `micros` microseconds.
    pub fn fitting(&self, micros: u64) -> u64 {
        fitting(micros, self.num, self.den)
    }

    /// Microseconds in which a key's bucket in the store refills after the largest possible debt.
    pub fn refill(&self) -> u64 {
        self.debt_cap
    }

    /// Microseconds by which the store's time may be beyond a node's estimate when the node's
    /// question arrives: a lease's life, at least 10 ms and at most 1 s. That is longer than the
    /// patience, after which the circuit is open.
    pub fn slack(&self) -> u64 {
        quotient(self.life, 1000).clamp(SLACK_LEAST, SLACK_MOST)
    }
}

/// Whole permits that fit into `micros` microseconds, at `num` permits in `den` microseconds.
pub(super) fn fitting(micros: u64, num: u64, den: u64) -> u64 {
    quotient128(u128::from(micros) * u128::from(num), den) as u64
}

/// The default life of a lease in nanoseconds, for a burst that refills in `refill` microseconds.
fn chosen_life(refill: u128) -> u64 {
    let nanos = refill.saturating_mul(1000);
    let short = quotient128(nanos, 4).min(u128::from(LIFE_SHORT));
    quotient128(nanos, 16).max(short).clamp(u128::from(MILLISECOND), u128::from(LIFE_LONG)) as u64
}

/// [`Terms::patience`] of leases that live for `life` nanoseconds.
pub(super) fn patience(life: u64) -> u64 {
    (life / 2).clamp(PATIENCE_LEAST, PATIENCE_MOST)
}

/// [`Options::OVERDRAFT_DEFAULT`].
fn usual_right(policy: &Policy, nodes: u64, exact: bool) -> u64 {
    let (burst, ten_millis) = (policy.burst, u128::from(policy.limit) * 10_000_000);
    let wanted = (quotient128(ten_millis, policy.period) as u64).clamp(8, 64);
    if !exact {
        return wanted.min(burst);
    }
    let fits = match nodes {
        1 => burst / 4,
        _ => quotient(burst, 8 * (nodes - 1)),
    };
    // The store needs two permits to grant, or a lease would leave nobody else any.
    let least = u64::from(2 * nodes <= burst && burst >= nodes + 2);
    wanted.min(fits).max(least)
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
mod tests;
