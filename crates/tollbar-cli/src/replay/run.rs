//! One policy with what it decided.

use super::ask::Ask;
use super::engine::Engine;
use super::fullest::Fullest;
use super::keys::Keys;
use super::tables::Tables;
use crate::problem::Result;
use tollbar::{Decision, Policy, Verdict};

/// A policy, the states of its keys, and counts.
pub struct Run {
    /// The policy.
    pub policy: Policy,
    /// Its states.
    pub engine: Engine,
    /// Requests by verdict.
    pub allowed: u64,
    /// Refused for now.
    pub denied: u64,
    /// Refused for ever.
    pub never: u64,
    /// Refusals of each key.
    pub refused: Vec<u64>,
    fullest: Fullest,
}

/// The keys that are ranked.
pub const RANKS: usize = 10;

impl Run {
    /// Nothing decided yet.
    pub fn new(policy: Policy, engine: Engine) -> Run {
        let fullest = Fullest::new(policy.period);
        Run { policy, engine, allowed: 0, denied: 0, never: 0, refused: Vec::new(), fullest }
    }

    /// Decides on a request and counts it.
    #[inline]
    pub fn admit(&mut self, tables: &Tables, ask: Ask<'_>) -> Result<Verdict> {
        let verdict = self.engine.admit(tables, ask)?;
        self.count(verdict, ask);
        Ok(verdict)
    }

    /// [`Run::admit`] with all of the answer.
    pub fn check(&mut self, tables: &Tables, ask: Ask<'_>) -> Result<Decision> {
        let decision = self.engine.check(tables, ask)?;
        self.count(decision.verdict, ask);
        Ok(decision)
    }

    #[inline]
    fn count(&mut self, verdict: Verdict, ask: Ask<'_>) {
        match verdict {
            Verdict::Allowed => {
                self.allowed += 1;
                self.fullest.add(ask.now, ask.number, ask.cost);
                return;
            }
            Verdict::Denied => self.denied += 1,
            Verdict::Never => self.never += 1,
        }
        let number = ask.number as usize;
        if number >= self.refused.len() {
            self.refused.resize(number + 1, 0);
        }
        self.refused[number] += 1;
    }

    /// Requests refused, for now or for ever.
    pub fn refusals(&self) -> u64 {
        self.denied + self.never
    }

    /// Keys that were refused anything.
    pub fn keys_refused(&self) -> u64 {
        self.refused.iter().filter(|&&refused| refused > 0).count() as u64
    }

    /// The most that one key was admitted in any window of a period, and the key
    /// ([`Fullest::most`]).
    pub fn most(&self, keys: &Keys) -> Option<(u64, Option<u32>)> {
        self.fullest.most(|key| keys.bytes(key))
    }

    /// The `most` keys that were refused most often, each with the number of its refusals. Keys
    /// with as many are in the order of their bytes.
    pub fn worst(&self, keys: &Keys, most: usize) -> Vec<(u32, u64)> {
        let mut all: Vec<(u32, u64)> = self
            .refused
            .iter()
            .enumerate()
            .filter(|(_, &n)| n > 0)
            .map(|(key, &n)| (key as u32, n))
            .collect();
        let order = |a: &(u32, u64), b: &(u32, u64)| {
            b.1.cmp(&a.1).then_with(|| keys.bytes(a.0).cmp(keys.bytes(b.0)))
        };
        if all.len() > most {
            all.select_nth_unstable_by(most, order);
            all.truncate(most);
        }
        all.sort_unstable_by(order);
        all
    }
}
