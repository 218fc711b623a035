//! The state of each key under one policy, in memory of the replay or in a table.

use super::tables::Tables;
use crate::problem::{Problem, Result};
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::limiter::Shared;
use tollbar::table::PolicyId;
use tollbar::{Decision, Policy, PolicyError, State, Verdict};

/// The states of all keys under one policy.
pub enum Engine {
    /// A word for each key.
    Words(Rule, Vec<u64>),
    /// A sliding window or log for each key, made with its first request.
    States(Policy, Vec<Option<Box<State>>>),
    /// A table that other policies may share: its number among [`Tables`], and the policy's number in it.
    Table(usize, PolicyId),
}

/// A request as the engine decides it.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The key's number.
    pub number: u32,
    /// The key's bytes.
    pub key: &'a [u8],
    /// Nanoseconds.
    pub now: u64,
    /// Permits.
    pub cost: u64,
}

impl Engine {
    /// States for each key.
    pub fn new(policy: &Policy) -> std::result::Result<Engine, PolicyError> {
        if policy.limit == 0 {
            policy.validate()?;
            return Ok(Engine::Words(Rule::Closed, Vec::new()));
        }
        match Rule::new(policy) {
            Ok(rule) => Ok(Engine::Words(rule, Vec::new())),
            Err(PolicyError::NotOneWord) => State::validate(policy).map(|()| Engine::States(*policy, Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// The verdict alone.
    #[inline]
    pub fn admit(&mut self, tables: &Tables, ask: Ask<'_>) -> Result<Verdict> {
        match self {
            Engine::Words(rule, words) => {
                let word = word(words, ask.number);
                let step = rule.step(*word, ask.now, ask.cost);
                if let Some(next) = step.next {
                    *word = next;
                }
                Ok(step.verdict)
            }
            Engine::States(policy, states) => Ok(state(policy, states, ask.number)?.admit_at(ask.now, ask.cost)),
            Engine::Table(table, policy) => tables.check(*table, *policy, ask).map(|decision| decision.verdict),
        }
    }

    /// The verdict, what remains, and when to come back.
    pub fn check(&mut self, tables: &Tables, ask: Ask<'_>) -> Result<Decision> {
        match self {
            Engine::Words(rule, words) => {
                let word = word(words, ask.number);
                let step = rule.step(*word, ask.now, ask.cost);
                if let Some(next) = step.next {
                    *word = next;
                }
                Ok(rule.describe(step.verdict, *word, ask.now, ask.cost))
            }
            Engine::States(policy, states) => Ok(state(policy, states, ask.number)?.check_at(ask.now, ask.cost)),
            Engine::Table(table, policy) => tables.check(*table, *policy, ask),
        }
    }
}

#[inline]
fn word(words: &mut Vec<u64>, number: u32) -> &mut u64 {
    let number = number as usize;
    if number >= words.len() {
        words.resize(number + 1, 0);
    }
    &mut words[number]
}

fn state<'a>(policy: &Policy, states: &'a mut Vec<Option<Box<State>>>, number: u32) -> Result<&'a State> {
    let number = number as usize;
    if number >= states.len() {
        states.resize_with(number + 1, || None);
    }
    let place = &mut states[number];
    if place.is_none() {
        *place = Some(Box::new(
            State::new(policy).map_err(|error| Problem::io(format!("{policy}, key {}: {error}", number + 1)))?,
        ));
    }
    place.as_deref().ok_or_else(|| Problem::io("out of memory"))
}
