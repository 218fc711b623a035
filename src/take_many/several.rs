//! One request with several limits: it collects them, peeks at them and charges them.

use super::answer::{admitted, refused};
use super::part::{Part, Target};
use super::{Limit, ManyError, Taken, LIMITS_MOST};
use crate::decision::Decision;
use core::mem::MaybeUninit;

/// Charges each limit with its cost, or charges none. Each limit reads its own clock.
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
/// "10/s, and at most 4 at one time":
///
/// ```
/// use std::cell::Cell;
/// use tollbar::in_flight::{InFlight, Options};
/// use tollbar::take_many::{take_many, Limit};
/// use tollbar::{Limiter, Reason};
///
/// let rate = Limiter::new(&"10/s".parse()?)?;
/// let open = InFlight::private(&Options::new(1000))?;
/// let ask = || {
///     let ticket = Cell::default();
///     let taken = take_many(&[Limit::Limiter(&rate, 1), Limit::InFlight(&open, b"ann", 4, &ticket)])?;
///     Ok::<_, tollbar::take_many::ManyError>(taken.decision.is_allowed().then(|| open.permit(ticket.get())).ok_or(taken))
/// };
/// let held: Vec<_> = (0..4).map(|_| ask().unwrap().expect("a permit")).collect();
/// let refused = ask()?.unwrap_err();
/// assert_eq!((refused.bound, refused.decision.reason), (1, Reason::InFlight));
/// drop(held);
/// assert!(ask()?.is_ok());
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

/// [`take_many`] or, with a time, [`take_many_at`], with the decision of each limit in
/// `decisions[i]`. If the request is refused, each limit gives the decision that it would make
/// alone. Without `decisions` only the answer's verdict and reason are valid, and an admission is
/// cheaper.
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

/// A request that collects its limits.
#[doc(hidden)]
pub struct Several<'a> {
    /// The caller's time for the next limit that is added.
    now: Option<u64>,
    /// The number of limits added.
    limits: usize,
    /// Whether a request of the call names a class.
    has_classes: bool,
    parts: Parts<'a>,
}

impl<'a> Several<'a> {
    /// A request at the caller's time or, without one, at the times of the limits' clocks.
    #[inline]
    pub fn new(now: Option<u64>) -> Several<'a> {
        Several { now, limits: 0, has_classes: false, parts: Parts::new() }
    }

    /// Gives the limits that are added from now on another time: a calendar counts from 1970, and
    /// other limits may count from another zero.
    pub fn set_now(&mut self, now: Option<u64>) {
        self.now = now;
    }

    /// Adds a limit. [`ManyError::Count`] if there are [`LIMITS_MOST`].
    #[inline(never)]
    pub fn add(&mut self, limit: &Limit<'a>) -> Result<(), ManyError> {
        match *limit {
            Limit::Class(class, limit) => self.add_class(limit, class.as_bytes()),
            _ => self.add_part(limit, None),
        }
    }

    /// Adds a limit for a request of a class.
    pub fn add_class(&mut self, limit: &Limit<'a>, class: &'a [u8]) -> Result<(), ManyError> {
        self.add_part(limit, Some(class))
    }

    #[inline]
    fn add_part(&mut self, limit: &Limit<'a>, class: Option<&'a [u8]>) -> Result<(), ManyError> {
        let index = self.limits;
        if index >= LIMITS_MOST {
            return Err(ManyError::Count);
        }
        self.limits += 1;
        let (target, cost) = Target::of(limit);
        if class.is_some() && matches!(target, Target::None | Target::InFlight(_)) {
            return Err(ManyError::Class(index));
        }
        if matches!(target, Target::None) {
            return Ok(());
        }
        self.has_classes |= class.is_some();
        match self
            .parts
            .all_mut()
            .iter_mut()
            .find(|part| part.class == class && part.target.is(&target))
        {
            Some(part) => {
                part.cost = part.cost.saturating_add(cost);
                part.limits |= 1 << index;
            }
            None => {
                let now = self.now.unwrap_or_else(|| target.now());
                self.parts.push(Part::new((target, class), index, cost, now, self.now.is_some()));
            }
        }
        Ok(())
    }

    /// [`take_all`] of the added limits.
    #[inline(never)]
    pub fn take(&mut self, decisions: Option<&mut [Decision]>) -> Result<Taken, ManyError> {
        if self.limits == 0 {
            return Err(ManyError::Count);
        }
        let admits = self.prepare()?;
        let parts = self.parts.all_mut();
        if !admits {
            parts.iter_mut().filter(|part| !part.admits).for_each(Part::refuse);
            return Ok(refused(parts, decisions));
        }
        let order = order(parts);
        match charge_all(parts, &order)? {
            true => Ok(admitted(parts, decisions)),
            false => Ok(refused(parts, decisions)),
        }
    }

    /// Whether [`Several::take`] would admit the request now. It charges and counts nothing. A
    /// request without limits is admitted.
    pub fn admits(mut self) -> Result<bool, ManyError> {
        self.prepare()
    }

    /// Looks at all limits, and returns whether all of them admit.
    #[inline(always)]
    fn prepare(&mut self) -> Result<bool, ManyError> {
        let parts = self.parts.all_mut();
        if self.has_classes {
            merge_classes(parts)?;
        }
        let mut admits = true;
        for part in parts.iter_mut() {
            admits &= part.prepare()?;
        }
        Ok(admits)
    }
}

/// Up to [`LIMITS_MOST`] parts, of which the first `count` are written.
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

/// Makes one part of the requests of several classes at one limit. They pass if they pass one after
/// the other, the class with the largest reserve first: each finds its cost and its reserve after
/// the costs of those before it. One charge of all costs needs as many permits as the most that one
/// of them needs.
#[inline(never)]
fn merge_classes(parts: &mut [Part<'_>]) -> Result<(), ManyError> {
    parts.iter_mut().try_for_each(Part::read_reserve)?;
    for first in 0..parts.len() {
        let Some((part, rest)) = parts.get_mut(first..).and_then(<[_]>::split_first_mut) else {
            break;
        };
        if matches!(part.target, Target::None)
            || !rest.iter().any(|other| other.target.is(&part.target))
        {
            continue;
        }
        let mut asked = [(0, 0); LIMITS_MOST];
        let mut count = 0;
        let mut ask = |part: &Part<'_>| {
            if let Some(place) = asked.get_mut(count) {
                *place = (part.reserve, part.cost);
                count += 1;
            }
        };
        ask(part);
        for other in rest.iter_mut().filter(|other| other.target.is(&part.target)) {
            ask(other);
            part.limits |= other.limits;
            // A part without a limit decides nothing.
            other.target = Target::None;
        }
        (part.cost, part.reserve) = together(&asked);
    }
    Ok(())
}

/// The sum of costs, and the permits that must be left after it, of requests with these reserves
/// and costs.
fn together(asked: &[(u64, u64)]) -> (u64, u64) {
    let costs = |least: u64| {
        let those = asked.iter().filter(|(reserve, _)| *reserve >= least);
        those.fold(0_u64, |sum, (_, cost)| sum.saturating_add(*cost))
    };
    let needs = asked
        .iter()
        .filter(|(_, cost)| *cost != 0)
        .map(|(reserve, _)| costs(*reserve).saturating_add(*reserve));
    let sum = costs(0);
    (sum, needs.max().unwrap_or(0).saturating_sub(sum))
}

/// The order of charges: limits that refill a permit fastest first, and limits that cannot take
/// permits back last.
#[inline]
fn order(parts: &[Part<'_>]) -> [u8; LIMITS_MOST] {
    let before = |a: u8, b: u8| match (parts.get(a as usize), parts.get(b as usize)) {
        (Some(a), Some(b)) if a.refill == b.refill => a.target.rank() < b.target.rank(),
        (Some(a), Some(b)) => a.refill < b.refill,
        _ => false,
    };
    let mut order = [0; LIMITS_MOST];
    for (part, _) in (0..).zip(parts) {
        // Insertion sort: later parts move up by one place.
        let mut at = part as usize;
        while let Some([earlier, place]) =
            at.checked_sub(1).and_then(|from| order.get_mut(from..=at))
        {
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

/// Charges all limits in their order. If one refuses, it gives the earlier charges back and returns
/// false.
#[inline]
fn charge_all(parts: &mut [Part<'_>], order: &[u8; LIMITS_MOST]) -> Result<bool, ManyError> {
    for n in 0..parts.len() {
        let Some((&last, before)) = order.get(..=n).and_then(|order| order.split_last()) else {
            break;
        };
        let Some(part) = parts.get_mut(last as usize) else { break };
        let charged = part.charge();
        if !matches!(charged, Ok(true)) {
            give_back(parts, before);
            return charged;
        }
    }
    Ok(true)
}

/// Gives back the charges of these parts, the last one first.
#[inline(never)]
fn give_back(parts: &[Part<'_>], charged: &[u8]) {
    charged.iter().rev().filter_map(|&n| parts.get(n as usize)).for_each(Part::undo);
}
