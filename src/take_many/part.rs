//! One limit of several: the peek at it, its charge, and the return of the charge.

use super::in_flight::InFlightLimit;
use super::{AnyLimiter, Limit, ManyError, LIMITS_MOST};
use crate::algorithm::Charge;
use crate::decision::{Decision, Reason, Verdict};
use crate::in_flight::Ticket;
#[cfg(not(loom))]
use crate::table::{KeyLimit, Prepared};

/// A limit of the request, with the sum of its costs if the caller named it several times.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) target: Target<'a>,
    /// The caller's limits that this part stands for: a bit for each.
    pub(super) limits: u32,
    /// The index of the first of them.
    pub(super) index: usize,
    pub(super) cost: u64,
    /// The request's class, if it names one.
    pub(super) class: Option<&'a [u8]>,
    /// The permits that must be left after the cost.
    pub(super) reserve: u64,
    /// Whether the limit admitted the cost when the call peeked at it.
    pub(super) admits: bool,
    now: u64,
    /// Whether `now` is the caller's time.
    given: bool,
    pub(super) refill: u64,
    #[cfg(not(loom))]
    prepared: Option<Prepared<'a>>,
    /// The permit in flight that the part has acquired.
    ticket: Ticket,
    /// The limit's last decision.
    pub(super) decision: Option<Decision>,
}

#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    None,
    Limiter(&'a dyn AnyLimiter),
    #[cfg(not(loom))]
    Key(KeyLimit<'a>),
    InFlight(InFlightLimit<'a>),
}

impl<'a> Target<'a> {
    #[inline]
    pub(super) fn of(limit: &Limit<'a>) -> (Target<'a>, u64) {
        match *limit {
            // A class of a class is refused as a class of no limit.
            Limit::Unlimited | Limit::Class(..) => (Target::None, 0),
            Limit::Limiter(limiter, cost) => (Target::Limiter(limiter), cost),
            #[cfg(not(loom))]
            Limit::Key(table, policy, key, cost) => {
                (Target::Key(KeyLimit { table, policy, key }), cost)
            }
            Limit::InFlight(table, key, limit, ticket) => {
                (Target::InFlight(InFlightLimit { table, key, limit, ticket }), 1)
            }
        }
    }

    /// Whether both are one limit, whose costs add up. Permits in flight never are, because each
    /// has its own ticket.
    #[inline]
    pub(super) fn is(&self, other: &Target<'_>) -> bool {
        match (self, other) {
            (Target::None, Target::None) => true,
            (Target::Limiter(a), Target::Limiter(b)) => address(*a) == address(*b),
            #[cfg(not(loom))]
            (Target::Key(a), Target::Key(b)) => a.is(b),
            _ => false,
        }
    }

    pub(super) fn now(&self) -> u64 {
        match self {
            Target::None | Target::InFlight(_) => 0,
            Target::Limiter(limiter) => limiter.now(),
            #[cfg(not(loom))]
            Target::Key(key) => key.table.now(),
        }
    }

    #[inline]
    fn count(&self, verdict: Verdict, reason: Reason) {
        match self {
            Target::None | Target::InFlight(_) => {}
            Target::Limiter(limiter) => limiter.count(verdict, reason),
            #[cfg(not(loom))]
            Target::Key(key) => key.count(verdict, reason),
        }
    }

    /// The order of limits that refill equally fast. It is the same for all threads of a process.
    pub(super) fn rank(&self) -> u64 {
        match self {
            Target::None => 0,
            Target::Limiter(limiter) => address(*limiter) as u64,
            #[cfg(not(loom))]
            Target::Key(key) => key.rank(),
            Target::InFlight(seat) => seat.table.rank(seat.key),
        }
    }
}

fn address(limiter: &dyn AnyLimiter) -> usize {
    core::ptr::from_ref(limiter).cast::<()>() as usize
}

impl<'a> Part<'a> {
    #[inline]
    pub(super) fn new(
        (target, class): (Target<'a>, Option<&'a [u8]>),
        index: usize,
        cost: u64,
        now: u64,
        given: bool,
    ) -> Part<'a> {
        Part {
            target,
            limits: 1 << index,
            index,
            cost,
            class,
            reserve: 0,
            admits: true,
            now,
            given,
            refill: u64::MAX,
            #[cfg(not(loom))]
            prepared: None,
            ticket: Ticket::default(),
            decision: None,
        }
    }

    /// Reads the reserve of the part's class.
    #[inline(never)]
    pub(super) fn read_reserve(&mut self) -> Result<(), ManyError> {
        let Some(class) = self.class else { return Ok(()) };
        self.reserve = match &self.target {
            Target::Limiter(limiter) => {
                limiter.reserve_of(class).map_err(|_| ManyError::Class(self.index))?
            }
            #[cfg(not(loom))]
            Target::Key(key) => {
                key.reserve_of(class).map_err(|error| ManyError::Table(self.index, error))?
            }
            Target::None | Target::InFlight(_) => return Err(ManyError::Class(self.index)),
        };
        Ok(())
    }

    /// Peeks at the limit. Returns whether it admits the cost.
    #[inline]
    pub(super) fn prepare(&mut self) -> Result<bool, ManyError> {
        self.admits = match &self.target {
            Target::None => true,
            Target::Limiter(limiter) => {
                self.refill = limiter.refill();
                match self.reserve {
                    0 => limiter.peek_at(self.now, self.cost).is_allowed(),
                    _ => self.peek_leaving(self.now)?.is_allowed(),
                }
            }
            #[cfg(not(loom))]
            Target::Key(key) if self.reserve != 0 => {
                self.refill = key.refill();
                self.peek_leaving(self.now)?.is_allowed()
            }
            #[cfg(not(loom))]
            Target::Key(key) => {
                let prepared = key
                    .prepare(self.now, self.cost)
                    .map_err(|error| ManyError::Table(self.index, error))?;
                (self.refill, self.prepared) = (prepared.refill, Some(prepared));
                prepared.verdict == Verdict::Allowed
            }
            // A permit in flight is acquired before any rate is charged, because its release is
            // exact.
            Target::InFlight(seat) => {
                self.refill = 0;
                seat.peek().is_allowed()
            }
        };
        Ok(self.admits)
    }

    /// Records the refusal that the peek has found: a bucket with `init` begins to fill, and some
    /// policies count refusals. If the limit now admits the cost, because of a reset or another
    /// thread, the call gives the charge back.
    #[inline(never)]
    pub(super) fn refuse(&mut self) {
        // The peek would have returned an error.
        if let Ok(true) = self.charge() {
            self.undo();
            self.decision = None;
        }
    }

    /// Charges the limit. Returns whether it admits the cost.
    #[inline]
    pub(super) fn charge(&mut self) -> Result<bool, ManyError> {
        let decision = match &self.target {
            Target::None => return Ok(true),
            _ if self.reserve != 0 => self.charge_leaving()?,
            Target::Limiter(limiter) => limiter.charge_at(self.now, self.cost),
            #[cfg(not(loom))]
            Target::Key(key) => {
                if self
                    .prepared
                    .is_some_and(|prepared| key.charge_prepared(&prepared, self.now).is_some())
                {
                    return Ok(true);
                }
                self.prepared = None;
                key.charge(self.now, self.cost)
                    .map_err(|error| ManyError::Table(self.index, error))?
            }
            Target::InFlight(seat) => {
                let acquired =
                    seat.acquire().map_err(|refusal| ManyError::InFlight(self.index, refusal))?;
                if let Some(ticket) = acquired {
                    self.ticket = ticket;
                    return Ok(true);
                }
                seat.refused()
            }
        };
        self.decision = Some(decision);
        Ok(decision.is_allowed())
    }

    /// The decision that the limit would make at `now` on a request with a reserve. It charges
    /// nothing.
    #[inline(never)]
    fn peek_leaving(&self, now: u64) -> Result<Decision, ManyError> {
        match &self.target {
            Target::Limiter(limiter) => Ok(limiter.peek_leaving_at(now, self.cost, self.reserve)),
            #[cfg(not(loom))]
            Target::Key(key) => {
                let decision = key.peek_leaving(now, self.cost, self.reserve);
                decision.map_err(|error| ManyError::Table(self.index, error))
            }
            Target::None | Target::InFlight(_) => Err(ManyError::Class(self.index)),
        }
    }

    /// Charges a request with a reserve.
    #[inline(never)]
    fn charge_leaving(&self) -> Result<Decision, ManyError> {
        match &self.target {
            Target::Limiter(limiter) => {
                Ok(limiter.charge_leaving_at(self.now, self.cost, self.reserve))
            }
            #[cfg(not(loom))]
            Target::Key(key) => {
                let decision = key.charge_leaving(self.now, self.cost, self.reserve);
                decision.map_err(|error| ManyError::Table(self.index, error))
            }
            Target::None | Target::InFlight(_) => Err(ManyError::Class(self.index)),
        }
    }

    pub(super) fn undo(&self) {
        let charge = Charge { at: self.now, cost: self.cost };
        let now = || if self.given { self.now } else { self.target.now() };
        match &self.target {
            Target::None => {}
            Target::Limiter(limiter) => limiter.undo(charge, &now),
            #[cfg(not(loom))]
            Target::Key(key) => key.undo(charge, &now),
            Target::InFlight(seat) => seat.release(self.ticket),
        }
    }

    /// The limit's decision on the request that it has admitted.
    pub(super) fn decided(&self) -> Option<Decision> {
        match (&self.target, self.decision) {
            (_, Some(decision)) => Some(decision),
            #[cfg(not(loom))]
            (Target::Key(key), None) => {
                key.describe_prepared(self.prepared.as_ref()?, self.now, self.cost)
            }
            (Target::InFlight(seat), None) => Some(seat.held()),
            _ => None,
        }
    }

    /// Writes `decision` for each of the caller's limits that this part stands for.
    pub(super) fn write_to(&self, decision: Decision, decisions: &mut [Decision]) {
        for (index, place) in decisions.iter_mut().enumerate().take(LIMITS_MOST) {
            if self.limits >> index & 1 != 0 {
                *place = decision;
            }
        }
    }

    /// The decision that the limit would make now. It charges nothing.
    pub(super) fn peek(&self) -> Option<Decision> {
        self.peek_after(0)
    }

    /// The decision that the limit would make so many nanoseconds later, if no other request came.
    /// `None` if there is no limit.
    pub(super) fn peek_after(&self, wait: u64) -> Option<Decision> {
        let now = self.now.saturating_add(wait);
        match &self.target {
            Target::None => None,
            _ if self.reserve != 0 => self.peek_leaving(now).ok(),
            Target::Limiter(limiter) => Some(limiter.peek_at(now, self.cost)),
            #[cfg(not(loom))]
            Target::Key(key) => key.peek(now, self.cost).ok(),
            Target::InFlight(seat) => Some(seat.peek()),
        }
    }

    /// Counts the refusal of the request, whose limit binds.
    pub(super) fn count_refusal(&self, refusal: &Decision) {
        self.target.count(refusal.verdict, refusal.reason);
        #[cfg(not(loom))]
        if let Target::Key(key) = &self.target {
            key.note_refusal(refusal.verdict, self.now);
        }
    }

    /// Counts the admission, and gives the ticket of a permit in flight to the caller.
    #[inline]
    pub(super) fn admit(&self) {
        self.target.count(
            Verdict::Allowed,
            self.decision.map_or(Reason::Admitted, |decision| decision.reason),
        );
        if let Target::InFlight(seat) = &self.target {
            seat.ticket.set(self.ticket);
        }
    }
}
