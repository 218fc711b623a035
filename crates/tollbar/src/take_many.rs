//! Several limits in one request: a user and an address, a second and a day, one's own share and everybody's.
//!
//! # What holds
//!
//! *Either all limits are charged or none, and no limit ever admits more than its bound.* A call that loses a race may hold, until it has
//! given it back (a process that is killed meanwhile: until it has refilled), its costs on the limits before the one that refused, so that
//! others may be refused that much earlier. It leaves charged at most what those limits refilled meanwhile.
//!
//! # How
//!
//! 1. Limits that are the same are merged into one of their costs together.
//! 2. The call looks at all limits and writes nothing. If one refuses, the request is refused, and nothing has been charged. That limit
//!    is told of its refusal, as it is by a check: some policies count refusals, and with `init` a bucket begins to fill.
//! 3. It charges the limits in a common order: those that refill a permit fastest first. So two calls that race for the same limits meet at
//!    the first of them, and one of the two is admitted. If a limit refuses now, because another call was faster, the call gives
//!    back what it has charged before, as [`GiveBack`](crate::algorithm::GiveBack) says is safe.
//!
//! Limits that cannot give back come last, and the last limit is never charged by a call that is refused: beside `10/s`, `1/day` keeps its
//! permit whatever happens. If there are two such limits (sliding windows, logs, tables whose threads have credit in advance), the first
//! of them may stay charged by a call that loses a race.

use crate::algorithm::Charge;
use crate::clock::Clock;
use crate::decision::{Decision, Reason, Verdict};
use crate::limiter::{Limiter, Shared};
#[cfg(not(loom))]
use crate::table::{KeyLimit, Look};
#[cfg(not(loom))]
use crate::table::{PolicyId, Table, TableError};
use core::mem::MaybeUninit;

/// The most limits of one call.
pub const LIMITS_MOST: usize = 16;

/// Any [`Limiter`].
pub trait AnyLimiter: Sync {
    /// [`Limiter::now`].
    fn now(&self) -> u64;
    /// What a check at `now` would answer.
    fn peek_at(&self, now: u64, cost: u64) -> Decision;
    /// Charges, uncounted.
    fn charge_at(&self, now: u64, cost: u64) -> Decision;
    /// Gives a charge back.
    fn undo(&self, charge: Charge, now: &dyn Fn() -> u64);
    /// Counts a decision.
    fn count(&self, verdict: Verdict);
    /// The nanoseconds in which one permit that was given back would have come back by itself; `u64::MAX` if none can be given back.
    fn refill(&self) -> u64;
}

impl<S: Shared, C: Clock + Sync> AnyLimiter for Limiter<S, C> {
    fn now(&self) -> u64 {
        Limiter::now(self)
    }

    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        self.shared().peek_at(now, cost)
    }

    fn charge_at(&self, now: u64, cost: u64) -> Decision {
        self.shared().check_at(now, cost)
    }

    fn undo(&self, charge: Charge, now: &dyn Fn() -> u64) {
        self.shared().give_back(charge, charge.cost, now);
    }

    fn count(&self, verdict: Verdict) {
        self.count_decided(verdict);
    }

    fn refill(&self) -> u64 {
        self.shared().refill().unwrap_or(u64::MAX)
    }
}

/// One limit of a request, and what the request costs there.
#[derive(Clone, Copy)]
pub enum Limit<'a> {
    /// Admits every request, for callers some of whose limits are optional.
    Unlimited,
    /// A limiter.
    Limiter(&'a dyn AnyLimiter, u64),
    /// A key under a policy of a table.
    #[cfg(not(loom))]
    Key(&'a Table, PolicyId, &'a [u8], u64),
}

/// The answer of several limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Of all limits: whether the request may pass and why, the smallest rest, the longest wait, the longest time until all are fresh. The
    /// reason is that of the limit that bound.
    pub decision: Decision,
    /// Which limit bound: of a refusal the one with the longest wait, and of an admission the one with the smallest rest.
    pub bound: usize,
}

/// The error of a call with several limits: nothing has been charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManyError {
    /// No limit at all, or more than [`LIMITS_MOST`].
    Count,
    /// The limit of that index is of a table that cannot decide.
    #[cfg(not(loom))]
    Table(usize, TableError),
}

impl core::fmt::Display for ManyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ManyError::Count => write!(f, "a request has 1 to {LIMITS_MOST} limits"),
            #[cfg(not(loom))]
            ManyError::Table(n, error) => write!(f, "limit {n}: {error}"),
        }
    }
}

impl core::error::Error for ManyError {}

/// Takes the cost of each limit from all limits, or nothing from any. Each limit reads its own clock.
///
/// ```
/// use tollbar::take_many::{take_many, Limit};
/// use tollbar::table::{Options, PolicyId, Table};
/// use tollbar::Limiter;
///
/// let all = Limiter::new(&"1000/s".parse()?)?;
/// let users = Table::private(&Options::new(10_000), &["2/s".parse()?, "5/day".parse()?])?;
/// let (second, day) = (PolicyId::new(0), PolicyId::new(1));
/// let ask = |user: &[u8]| {
///     take_many(&[Limit::Limiter(&all, 1), Limit::Key(&users, second, user, 1), Limit::Key(&users, day, user, 1)])
/// };
/// assert!(ask(b"ann")?.decision.is_allowed());
/// assert!(ask(b"ann")?.decision.is_allowed());
/// let refused = ask(b"ann")?;
/// assert_eq!((refused.decision.is_allowed(), refused.bound), (false, 1)); // 2/s
/// assert_eq!(users.peek(day, b"ann", 1).remaining, 3); // which the refusal left alone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ManyError`]. Nothing has been charged.
pub fn take_many(limits: &[Limit<'_>]) -> Result<Taken, ManyError> {
    take_all(limits, None, Some(&mut []))
}

/// [`take_many`] at the caller's time.
///
/// # Errors
/// Those of [`take_many`].
pub fn take_many_at(limits: &[Limit<'_>], now: u64) -> Result<Taken, ManyError> {
    take_all(limits, Some(now), Some(&mut []))
}

/// [`take_many`] or, with a time, [`take_many_at`], and what each limit says by itself: `decisions[i]` is what limit `i` decides, or, of a
/// refused request, would. Without `decisions` the answer has a verdict and a reason only, and an admission is cheaper.
///
/// # Errors
/// Those of [`take_many`].
pub fn take_all(
    limits: &[Limit<'_>],
    now: Option<u64>,
    decisions: Option<&mut [Decision]>,
) -> Result<Taken, ManyError> {
    let mut several = Several::new(now);
    for limit in limits {
        several.add(limit)?;
    }
    several.take(decisions)
}

/// A request that is being put together, limit by limit.
#[doc(hidden)]
pub struct Several<'a> {
    /// The caller's time.
    now: Option<u64>,
    /// How many limits were added.
    limits: usize,
    parts: Parts<'a>,
}

impl<'a> Several<'a> {
    /// A request at the caller's time or, without one, at the limits' own.
    #[inline]
    pub fn new(now: Option<u64>) -> Several<'a> {
        Several { now, limits: 0, parts: Parts::new() }
    }

    /// Adds a limit. [`ManyError::Count`] if there are [`LIMITS_MOST`].
    #[inline(never)]
    pub fn add(&mut self, limit: &Limit<'a>) -> Result<(), ManyError> {
        let index = self.limits;
        if index >= LIMITS_MOST {
            return Err(ManyError::Count);
        }
        self.limits += 1;
        let (target, cost) = Target::of(limit);
        if matches!(target, Target::None) {
            return Ok(());
        }
        match self.parts.all_mut().iter_mut().find(|part| part.target.is(&target)) {
            Some(part) => {
                part.cost = part.cost.saturating_add(cost);
                part.limits |= 1 << index;
            }
            None => {
                let now = self.now.unwrap_or_else(|| target.now());
                self.parts.push(Part::new(target, index, cost, now, self.now.is_some()));
            }
        }
        Ok(())
    }

    /// [`take_all`] of what was added.
    #[inline(never)]
    pub fn take(&mut self, decisions: Option<&mut [Decision]>) -> Result<Taken, ManyError> {
        if self.limits == 0 {
            return Err(ManyError::Count);
        }
        let parts = self.parts.all_mut();
        for part in parts.iter_mut() {
            if !part.look()? {
                part.refuse();
                return Ok(refused(parts, decisions));
            }
        }
        let order = order(parts);
        match charge_all(parts, &order)? {
            true => Ok(admitted(parts, decisions)),
            false => Ok(refused(parts, decisions)),
        }
    }
}

/// Up to [`LIMITS_MOST`] parts. Those that a request does not have are not written.
struct Parts<'a> {
    count: usize,
    parts: [MaybeUninit<Part<'a>>; LIMITS_MOST],
}

impl<'a> Parts<'a> {
    #[inline]
    fn new() -> Parts<'a> {
        Parts { count: 0, parts: [const { MaybeUninit::uninit() }; LIMITS_MOST] }
    }

    /// Does nothing if all places are taken.
    #[inline]
    fn push(&mut self, part: Part<'a>) {
        if let Some(place) = self.parts.get_mut(self.count) {
            place.write(part);
            self.count += 1;
        }
    }

    #[inline]
    fn all_mut(&mut self) -> &mut [Part<'a>] {
        // SAFETY: `push` has written the first `count` of them, which are no more than there are.
        unsafe { core::slice::from_raw_parts_mut(self.parts.as_mut_ptr().cast(), self.count) }
    }
}

/// A limit of the request, with the costs of all that are the same.
#[derive(Clone, Copy)]
struct Part<'a> {
    target: Target<'a>,
    /// Which of the caller's limits it is: a bit each, and the first of them.
    limits: u32,
    index: usize,
    cost: u64,
    now: u64,
    /// The caller's time.
    given: bool,
    refill: u64,
    #[cfg(not(loom))]
    look: Option<Look<'a>>,
    /// What the limit has said last.
    decision: Option<Decision>,
}

#[derive(Clone, Copy)]
enum Target<'a> {
    None,
    Limiter(&'a dyn AnyLimiter),
    #[cfg(not(loom))]
    Key(KeyLimit<'a>),
}

impl<'a> Target<'a> {
    #[inline]
    fn of(limit: &Limit<'a>) -> (Target<'a>, u64) {
        match *limit {
            Limit::Unlimited => (Target::None, 0),
            Limit::Limiter(limiter, cost) => (Target::Limiter(limiter), cost),
            #[cfg(not(loom))]
            Limit::Key(table, policy, key, cost) => (Target::Key(KeyLimit { table, policy, key }), cost),
        }
    }

    #[inline]
    fn is(&self, other: &Target<'_>) -> bool {
        match (self, other) {
            (Target::None, Target::None) => true,
            (Target::Limiter(a), Target::Limiter(b)) => address(*a) == address(*b),
            #[cfg(not(loom))]
            (Target::Key(a), Target::Key(b)) => a.is(b),
            _ => false,
        }
    }

    fn now(&self) -> u64 {
        match self {
            Target::None => 0,
            Target::Limiter(limiter) => limiter.now(),
            #[cfg(not(loom))]
            Target::Key(key) => key.table.now(),
        }
    }

    #[inline]
    fn count(&self, verdict: Verdict) {
        match self {
            Target::None => {}
            Target::Limiter(limiter) => limiter.count(verdict),
            #[cfg(not(loom))]
            Target::Key(key) => key.count(verdict),
        }
    }

    /// What orders limits that refill alike: the same for all threads of a process.
    fn rank(&self) -> u64 {
        match self {
            Target::None => 0,
            Target::Limiter(limiter) => address(*limiter) as u64,
            #[cfg(not(loom))]
            Target::Key(key) => key.hash(),
        }
    }
}

fn address(limiter: &dyn AnyLimiter) -> usize {
    core::ptr::from_ref(limiter).cast::<()>() as usize
}

impl<'a> Part<'a> {
    #[inline]
    fn new(target: Target<'a>, index: usize, cost: u64, now: u64, given: bool) -> Part<'a> {
        Part {
            target,
            limits: 1 << index,
            index,
            cost,
            now,
            given,
            refill: u64::MAX,
            #[cfg(not(loom))]
            look: None,
            decision: None,
        }
    }

    /// Looks at the limit; whether it admits the cost.
    #[inline]
    fn look(&mut self) -> Result<bool, ManyError> {
        Ok(match &self.target {
            Target::None => true,
            Target::Limiter(limiter) => {
                self.refill = limiter.refill();
                limiter.peek_at(self.now, self.cost).is_allowed()
            }
            #[cfg(not(loom))]
            Target::Key(key) => {
                let look = key.look(self.now, self.cost).map_err(|error| ManyError::Table(self.index, error))?;
                (self.refill, self.look) = (look.refill, Some(look));
                look.verdict == Verdict::Allowed
            }
        })
    }

    /// Makes the refusal that the look has found: a bucket with `init` begins to fill with it, and some policies count it. If a reset or
    /// another thread has come between and the limit admits the cost, that is given back.
    #[inline(never)]
    fn refuse(&mut self) {
        // An error would have been the look's.
        if let Ok(true) = self.charge() {
            self.undo();
            self.decision = None;
        }
    }

    /// Charges the limit; whether it admits the cost.
    #[inline]
    fn charge(&mut self) -> Result<bool, ManyError> {
        let decision = match &self.target {
            Target::None => return Ok(true),
            Target::Limiter(limiter) => limiter.charge_at(self.now, self.cost),
            #[cfg(not(loom))]
            Target::Key(key) => {
                if self.look.is_some_and(|look| key.charge_looked(&look, self.now).is_some()) {
                    return Ok(true);
                }
                self.look = None;
                key.charge(self.now, self.cost).map_err(|error| ManyError::Table(self.index, error))?
            }
        };
        self.decision = Some(decision);
        Ok(decision.is_allowed())
    }

    fn undo(&self) {
        let charge = Charge { at: self.now, cost: self.cost };
        let now = || if self.given { self.now } else { self.target.now() };
        match &self.target {
            Target::None => {}
            Target::Limiter(limiter) => limiter.undo(charge, &now),
            #[cfg(not(loom))]
            Target::Key(key) => key.undo(charge, &now),
        }
    }

    /// What the limit says of the request that it has admitted.
    fn told(&self) -> Option<Decision> {
        match (&self.target, self.decision) {
            (_, Some(decision)) => Some(decision),
            #[cfg(not(loom))]
            (Target::Key(key), None) => key.describe_looked(self.look.as_ref()?, self.now, self.cost),
            _ => None,
        }
    }

    /// Tells every limit that is this part what it has said.
    fn tell(&self, decision: Decision, decisions: &mut [Decision]) {
        for (index, told) in decisions.iter_mut().enumerate().take(LIMITS_MOST) {
            if self.limits >> index & 1 != 0 {
                *told = decision;
            }
        }
    }

    /// What the limit would say of the request now, of which nothing is charged.
    fn peek(&self) -> Option<Decision> {
        match &self.target {
            Target::None => None,
            Target::Limiter(limiter) => Some(limiter.peek_at(self.now, self.cost)),
            #[cfg(not(loom))]
            Target::Key(key) => key.peek(self.now, self.cost).ok(),
        }
    }
}

/// The order in which parts are charged: those that refill a permit fastest first, and those that cannot give back last.
#[inline]
fn order(parts: &[Part<'_>]) -> [u8; LIMITS_MOST] {
    let before = |a: u8, b: u8| match (parts.get(a as usize), parts.get(b as usize)) {
        (Some(a), Some(b)) if a.refill == b.refill => a.target.rank() < b.target.rank(),
        (Some(a), Some(b)) => a.refill < b.refill,
        _ => false,
    };
    let mut order = [0; LIMITS_MOST];
    for (part, _) in (0..).zip(parts) {
        // Insertion: those that come after it move on.
        let mut at = part as usize;
        while let Some([earlier, place]) = at.checked_sub(1).and_then(|from| order.get_mut(from..=at)) {
            if !before(part, *earlier) {
                break;
            }
            *place = *earlier;
            at -= 1;
        }
        if let Some(place) = order.get_mut(at) {
            *place = part;
        }
    }
    order
}

/// Charges all limits in their order, or none: then one has refused, and what had been charged was given back.
#[inline]
fn charge_all(parts: &mut [Part<'_>], order: &[u8; LIMITS_MOST]) -> Result<bool, ManyError> {
    for n in 0..parts.len() {
        let Some((&last, before)) = order.get(..=n).and_then(|order| order.split_last()) else { break };
        let Some(part) = parts.get_mut(last as usize) else { break };
        let charged = part.charge();
        if !matches!(charged, Ok(true)) {
            give_back(parts, before);
            return charged;
        }
    }
    Ok(true)
}

/// Gives back what was charged of these parts, the last first.
#[inline(never)]
fn give_back(parts: &[Part<'_>], charged: &[u8]) {
    charged.iter().rev().filter_map(|&n| parts.get(n as usize)).for_each(Part::undo);
}

/// Counts an admission, and sums up what the limits say.
#[inline]
fn admitted(parts: &[Part<'_>], decisions: Option<&mut [Decision]>) -> Taken {
    parts.iter().for_each(|part| part.target.count(Verdict::Allowed));
    match decisions {
        None => Taken { decision: UNLIMITED, bound: 0 },
        Some(decisions) => told(parts, decisions),
    }
}

/// Sums up what the limits say of an admitted request.
#[inline(never)]
fn told(parts: &[Part<'_>], decisions: &mut [Decision]) -> Taken {
    decisions.fill(UNLIMITED);
    let mut all: Option<Taken> = None;
    for part in parts {
        let Some(decision) = part.told() else { continue };
        part.tell(decision, decisions);
        let part = Taken { decision, bound: part.index };
        all = Some(all.map_or(part, |all| sum(all, part, decision.remaining < all.decision.remaining)));
    }
    all.unwrap_or(Taken { decision: UNLIMITED, bound: 0 })
}

/// Sums up what the limits say of a refused request, and counts the refusal where it bound.
#[inline(never)]
fn refused(parts: &[Part<'_>], mut decisions: Option<&mut [Decision]>) -> Taken {
    let mut all: Option<Taken> = None;
    let mut target = &Target::None;
    if let Some(decisions) = &mut decisions {
        decisions.fill(UNLIMITED);
    }
    for part in parts {
        // A limit that refused when it was charged may have room again by now: what it said then counts.
        let refused = part.decision.filter(|decision| !decision.is_allowed());
        let Some(decision) = refused.or_else(|| part.peek()) else { continue };
        if let Some(decisions) = &mut decisions {
            part.tell(decision, decisions);
        }
        let taken = Taken { decision, bound: part.index };
        let binds = all.map_or(true, |all| {
            let wait = |decision: &Decision| (decision.verdict as u32, decision.retry_after);
            wait(&decision) > wait(&all.decision)
        });
        all = Some(all.map_or(taken, |all| sum(all, taken, binds)));
        if binds {
            target = &part.target;
        }
    }
    // All limits admit the request by now, though one refused it when all were looked at.
    let taken = all.filter(|all| !all.decision.is_allowed()).unwrap_or(Taken { decision: PASSED_REFUSAL, bound: 0 });
    target.count(taken.decision.verdict);
    taken
}

/// The answer of both: `binds` says whether the second is the one that binds.
fn sum(all: Taken, one: Taken, binds: bool) -> Taken {
    let (binding, a, b) = (if binds { one } else { all }, all.decision, one.decision);
    let decision = Decision {
        remaining: a.remaining.min(b.remaining),
        retry_after: a.retry_after.max(b.retry_after),
        reset_after: a.reset_after.max(b.reset_after),
        ..binding.decision
    };
    Taken { decision, bound: binding.bound }
}

/// What no limit says, and an admission of which nothing else was asked.
const UNLIMITED: Decision = Decision {
    verdict: Verdict::Allowed,
    reason: Reason::Admitted,
    remaining: u64::MAX,
    retry_after: 0,
    reset_after: 0,
};
/// A refusal whose cause has passed.
const PASSED_REFUSAL: Decision =
    Decision { verdict: Verdict::Denied, reason: Reason::Rate, remaining: 0, retry_after: 0, reset_after: 0 };
