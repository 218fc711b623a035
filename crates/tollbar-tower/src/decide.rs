//! How a layer decides on a request under its limits.

use crate::after::After;
use crate::layers::{Asked, Charged, ChargedBy, Layers};
use crate::limit::Limits;
use crate::options::Asks;
use http::StatusCode;
use std::sync::Arc;
use tollbar::algorithm::Charge;
use tollbar::http::{more_after, problem, Fields};
use tollbar::table::PolicyId;
use tollbar::take_many::{take_all, Limit};
use tollbar::{Decision, Reason, Verdict, NEVER};

/// The most bytes of one limit's header fields, beside four for each byte of its name.
const FIELDS_MOST: usize = 600;
/// The problem of a request without a key.
const MISSING: &str = r#"{"title":"Forbidden","status":403,"detail":"the request has no key that it could be counted by"}"#;

/// The decision of all limits of a layer.
pub(crate) struct Decided {
    pub decision: Decision,
    /// The limit that bound the decision: 0 is the layer's own, and the further ones follow.
    bound: usize,
    /// The charge that waits for the answer.
    pub after: Option<After>,
}

/// A key under a policy.
struct Keyed<'a> {
    policy: PolicyId,
    name: &'a str,
    key: &'a [u8],
}

impl<K, R> Limits<K, R> {
    /// Decides on a request, and adds the limits to those of the request's other layers.
    pub(crate) fn decide(&self, layers: &Layers, key: &[u8], asks: &Asks) -> Decided {
        let own = Keyed { policy: self.policy, name: &self.name, key };
        let further = self.options.further.iter().zip(&asks.keys);
        let further =
            further.map(|(limit, key)| Keyed { policy: limit.policy, name: &limit.name, key });
        let limits: Vec<Keyed<'_>> = std::iter::once(own).chain(further).collect();
        let now = self.options.now();
        let mut each = Vec::with_capacity(limits.len());
        let (decision, bound) = match (&self.options.charge, &limits[..]) {
            (Some(_), _) => self.peek(&limits, asks.cost, now, &mut each),
            (None, [only]) => (self.take(only, asks.cost, now, &mut each), 0),
            _ => self.take_all(&limits, asks.cost, now, &mut each),
        };
        if !decision.is_allowed() {
            layers.give_back();
        }
        let places: Vec<Option<usize>> = limits
            .iter()
            .zip(each)
            .map(|(limit, (one, charged))| self.add(layers, limit, asks.cost, now, one, charged))
            .collect();
        let after = self.options.charge.is_some().then(|| After {
            table: Arc::clone(&self.table),
            options: self.options.clone(),
            layers: layers.clone(),
            limits: limits
                .iter()
                .zip(places)
                .map(|(limit, place)| (limit.policy, limit.key.to_vec(), place))
                .collect(),
        });
        Decided { decision, bound, after }
    }

    /// Charges the only limit.
    fn take(
        &self,
        limit: &Keyed<'_>,
        cost: u64,
        now: Option<u64>,
        each: &mut Vec<(Decision, Option<ChargedBy>)>,
    ) -> Decision {
        let at = || now.unwrap_or_else(|| self.table.now());
        // A receipt, by which a layer further in can give the charge back. An error has charged
        // nothing; a check makes a decision of it.
        let taken = match limit.key {
            [] => None,
            key => self.table.take_at(limit.policy, key, at(), cost).ok(),
        };
        let (decision, receipt) = taken
            .unwrap_or_else(|| (self.table.check_at(limit.policy, limit.key, at(), cost), None));
        each.push((decision, receipt.map(ChargedBy::Receipt)));
        decision
    }

    /// Charges all limits or none.
    fn take_all(
        &self,
        limits: &[Keyed<'_>],
        cost: u64,
        now: Option<u64>,
        each: &mut Vec<(Decision, Option<ChargedBy>)>,
    ) -> (Decision, usize) {
        let at = now.unwrap_or_else(|| self.table.now());
        let asked: Vec<Limit<'_>> = limits
            .iter()
            .map(|limit| Limit::Key(&self.table, limit.policy, limit.key, cost))
            .collect();
        let mut decisions = vec![fault(); limits.len()];
        let Ok(taken) = take_all(&asked, Some(at), Some(&mut decisions)) else {
            return (fault(), 0);
        };
        let is_charged = taken.decision.is_allowed();
        let by = || is_charged.then_some(ChargedBy::Charge(Charge { at, cost }));
        each.extend(decisions.into_iter().map(|decision| (decision, by())));
        (taken.decision, taken.bound)
    }

    /// Asks all limits, and charges nothing. The first one that refuses bounds the decision, and
    /// else the one with the fewest permits left.
    fn peek(
        &self,
        limits: &[Keyed<'_>],
        cost: u64,
        now: Option<u64>,
        each: &mut Vec<(Decision, Option<ChargedBy>)>,
    ) -> (Decision, usize) {
        for limit in limits {
            let peeked = self.table.try_peek(limit.policy, limit.key, now, cost);
            each.push((peeked.unwrap_or_else(|_| fault()), None));
        }
        let bound = (0..each.len())
            .min_by_key(|&n| (each[n].0.is_allowed(), each[n].0.remaining))
            .unwrap_or_default();
        let decision = each[bound].0;
        for limit in limits {
            // A policy that the table does not have has no counts.
            let Decision { verdict, reason, .. } = decision;
            let _ = self.table.count_refused(limit.policy, limit.key, verdict, reason);
        }
        (decision, bound)
    }

    /// Adds a limit to those of the request, for the header fields. `None` for a request without a
    /// key, and for a policy that the table does not have: those have no fields.
    fn add(
        &self,
        layers: &Layers,
        limit: &Keyed<'_>,
        cost: u64,
        now: Option<u64>,
        decision: Decision,
        by: Option<ChargedBy>,
    ) -> Option<usize> {
        if decision.reason == Reason::MissingKey {
            return None;
        }
        let policy = self.table.policy_of(limit.policy, limit.key).ok()?;
        let peek = |cost| self.table.peek_uncounted(limit.policy, limit.key, now, cost);
        let more_after = match self.fields {
            Fields { legacy: None, draft: None, .. } => NEVER,
            _ => more_after(&policy, &decision, cost, peek),
        };
        let charged = by.map(|by| Charged {
            table: Arc::clone(&self.table),
            policy: limit.policy,
            key: limit.key.to_vec(),
            by,
            clock: self.options.clock.clone(),
        });
        Some(layers.add(Asked {
            name: limit.name.to_owned(),
            fields: self.fields,
            policy,
            decision,
            more_after,
            charged,
        }))
    }

    /// The usual body of a refusal.
    pub(crate) fn problem(&self, decided: &Decided) -> String {
        let Decided { decision, bound, .. } = decided;
        if decision.reason == Reason::MissingKey {
            return MISSING.to_owned();
        }
        let further = bound.checked_sub(1).and_then(|n| self.options.further.get(n));
        let (id, name) =
            further.map_or((self.policy, &self.name), |limit| (limit.policy, &limit.name));
        let Ok(policy) = self.table.policy(id) else { return String::new() };
        let limit = tollbar::http::Limit::new(name.as_bytes(), &policy, decision);
        let mut text = vec![0; FIELDS_MOST + 6 * name.len()];
        let length = problem(&[limit], StatusCode::TOO_MANY_REQUESTS.as_u16(), &mut text);
        text.truncate(length);
        String::from_utf8(text).unwrap_or_default()
    }
}

/// The refusal of a table that cannot decide.
fn fault() -> Decision {
    Decision {
        verdict: Verdict::Denied,
        reason: Reason::Fault,
        remaining: 0,
        retry_after: NEVER,
        reset_after: NEVER,
        bound: 0,
    }
}
