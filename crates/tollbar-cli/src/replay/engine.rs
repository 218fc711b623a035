//! The state of each key under one policy, in memory of the replay or in a table.

use super::ask::{unknown_class, Ask};
use super::tables::Tables;
use crate::problem::{Problem, Result};
use tollbar::algorithm::closed::Closed;
use tollbar::algorithm::{describe_leaving, step_leaving, Algorithm, Rule};
use tollbar::limiter::Shared;
use tollbar::policy::Classes;
use tollbar::table::PolicyId;
use tollbar::{Decision, Policy, PolicyError, State, Verdict};

/// The states of all keys under one policy.
pub enum Engine {
    /// A word for each key.
    Words(Rule, Classes, Vec<u64>),
    /// A sliding window or log for each key, made with its first request.
    States(Policy, Vec<Option<Box<State>>>),
    /// A table that other policies may share: its number among [`Tables`], and the policy's number
    /// in it.
    Table(usize, PolicyId),
}

impl Engine {
    /// States for each key.
    pub fn new(policy: &Policy) -> std::result::Result<Engine, PolicyError> {
        if policy.limit == 0 {
            policy.validate()?;
            return Ok(Engine::Words(Rule::Closed(Closed), policy.classes, Vec::new()));
        }
        match Rule::new(policy) {
            Ok(rule) => Ok(Engine::Words(rule, policy.classes, Vec::new())),
            Err(PolicyError::NotOneWord) => {
                State::validate(policy).map(|()| Engine::States(*policy, Vec::new()))
            }
            Err(error) => Err(error),
        }
    }

    /// The verdict alone.
    #[inline]
    pub fn admit(&mut self, tables: &Tables, ask: Ask<'_>) -> Result<Verdict> {
        match self {
            Engine::Words(rule, classes, words) => {
                let word = word(words, ask.number);
                let step = match reserve(classes, ask.class)? {
                    0 => rule.step(*word, ask.now, ask.cost),
                    reserve => step_leaving(rule, *word, ask.now, ask.cost, reserve),
                };
                if let Some(next) = step.next {
                    *word = next;
                }
                Ok(step.verdict)
            }
            Engine::States(policy, states) => {
                Ok(state(policy, states, ask.number)?.admit_at(ask.now, ask.cost))
            }
            Engine::Table(table, policy) => {
                tables.check(*table, *policy, ask).map(|decision| decision.verdict)
            }
        }
    }

    /// The verdict, what remains, and when to come back.
    pub fn check(&mut self, tables: &Tables, ask: Ask<'_>) -> Result<Decision> {
        match self {
            Engine::Words(rule, classes, words) => {
                let word = word(words, ask.number);
                let reserve = reserve(classes, ask.class)?;
                let step = match reserve {
                    0 => rule.step(*word, ask.now, ask.cost),
                    _ => step_leaving(rule, *word, ask.now, ask.cost, reserve),
                };
                if let Some(next) = step.next {
                    *word = next;
                }
                Ok(match reserve {
                    0 => rule.describe(step.verdict, *word, ask.now, ask.cost),
                    _ => describe_leaving(rule, step.verdict, *word, ask.now, ask.cost, reserve),
                })
            }
            Engine::States(policy, states) => {
                Ok(state(policy, states, ask.number)?.check_at(ask.now, ask.cost))
            }
            Engine::Table(table, policy) => tables.check(*table, *policy, ask),
        }
    }
}

/// The permits that a request of that class leaves. A policy without classes leaves none for any.
#[inline]
fn reserve(classes: &Classes, class: &[u8]) -> Result<u64> {
    if class.is_empty() || classes.is_empty() {
        return Ok(0);
    }
    classes.reserve(class).ok_or_else(|| unknown_class(class))
}

#[inline]
fn word(words: &mut Vec<u64>, number: u32) -> &mut u64 {
    let number = number as usize;
    if number >= words.len() {
        words.resize(number + 1, 0);
    }
    &mut words[number]
}

fn state<'a>(
    policy: &Policy,
    states: &'a mut Vec<Option<Box<State>>>,
    number: u32,
) -> Result<&'a State> {
    let number = number as usize;
    if number >= states.len() {
        states.resize_with(number + 1, || None);
    }
    let place = &mut states[number];
    if place.is_none() {
        *place = Some(Box::new(
            State::new(policy)
                .map_err(|error| Problem::io(format!("{policy}, key {}: {error}", number + 1)))?,
        ));
    }
    place.as_deref().ok_or_else(|| Problem::io("out of memory"))
}
