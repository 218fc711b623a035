//! The permits of a limiter, for which callers wait.

use super::waiting::Permits;
use super::{Limiter, Shared};
use crate::algorithm::Charge;
use crate::clock::Clock;
use crate::decision::Decision;
use core::convert::Infallible;

impl<S: Shared, C: Clock> Permits for Limiter<S, C> {
    type Error = Infallible;

    fn now(&self) -> u64 {
        self.clock().now()
    }

    fn check(&self, now: u64, cost: u64) -> Result<Decision, Self::Error> {
        Ok(self.shared().check_at(now, cost))
    }

    fn peek(&self, now: u64, cost: u64) -> Result<Decision, Self::Error> {
        Ok(self.shared().peek_at(now, cost))
    }

    fn book(&self, now: u64, cost: u64, until: u64) -> Result<Option<u64>, Self::Error> {
        Ok(self.shared().reserve_at(now, cost, until))
    }

    fn books_ahead(&self) -> Result<bool, Self::Error> {
        Ok(self.shared().books_ahead())
    }

    fn counts_refusals(&self) -> Result<bool, Self::Error> {
        Ok(self.shared().counts_refusals())
    }

    fn give_back(&self, booking: Charge) {
        Limiter::give_back(self, booking, booking.cost);
    }

    fn last_of(
        &self,
        now: u64,
        costs: &mut dyn Iterator<Item = u64>,
        until: u64,
    ) -> Result<u64, Self::Error> {
        Ok(self.shared().last_of(now, costs, until))
    }
}
