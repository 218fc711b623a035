//! The limits that the layers of one request ask. The header fields of the answer describe all of
//! them once, whatever the order of the layers, and a layer that refuses gives back what the
//! layers around it were charged.

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tollbar::algorithm::Charge;
use tollbar::clock::Clock;
use tollbar::http::{more_after, Draft, Fields, Limit, Reset};
use tollbar::table::{PolicyId, Receipt, Refund, Table};
use tollbar::take_many::LIMITS_MOST;
use tollbar::{Decision, Policy};

/// The most bytes of one limit's header fields, beside four for each byte of its name.
const FIELDS_MOST: usize = 600;

/// What the layers of a request have asked so far, the outermost first. The request's extensions
/// have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers(Arc<Mutex<Vec<Asked>>>);

/// A limit of one layer, and its decision.
#[derive(Debug)]
pub(crate) struct Asked {
    pub name: String,
    pub fields: Fields,
    pub policy: Policy,
    pub decision: Decision,
    pub more_after: u64,
    pub charged: Option<Charged>,
}

/// What a layer was charged.
pub(crate) struct Charged {
    pub table: Arc<Table>,
    pub policy: PolicyId,
    pub key: Vec<u8>,
    pub by: ChargedBy,
    /// The layer's clock, if it is not the table's.
    pub clock: Option<Arc<dyn Clock + Send + Sync>>,
}

/// How a layer gives a charge back.
#[derive(Debug)]
pub(crate) enum ChargedBy {
    Receipt(Receipt),
    /// Of a layer with several limits.
    Charge(Charge),
}

impl Charged {
    /// Gives the charge back, and returns what a peek says then.
    fn give_back(self) -> Decision {
        let Charged { table, policy, key, by, clock } = self;
        let now = clock.map(|clock| clock.now());
        // A receipt that the table no longer knows stays charged. The answer is a refusal in any
        // case.
        let _ = match (by, now) {
            (ChargedBy::Receipt(receipt), None) => {
                table.settle(&receipt, 0, Refund::Safe).map(|_| ())
            }
            (ChargedBy::Receipt(receipt), Some(now)) => {
                table.settle_at(&receipt, now, 0, Refund::Safe).map(|_| ())
            }
            (ChargedBy::Charge(charge), None) => {
                table.give_back(policy, &key, charge, charge.cost).map(|_| ())
            }
            (ChargedBy::Charge(charge), Some(now)) => {
                table.give_back_at(policy, &key, now, charge, charge.cost).map(|_| ())
            }
        };
        table.peek_uncounted(policy, &key, now, 1)
    }
}

impl fmt::Debug for Charged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charged").field("policy", &self.policy).field("by", &self.by).finish()
    }
}

impl Layers {
    /// The layers of a request, and whether the caller is the outermost, which writes the fields.
    pub fn of(request: &mut Extensions) -> (Layers, bool) {
        if let Some(layers) = request.get::<Layers>() {
            return (layers.clone(), false);
        }
        let layers = Layers::default();
        request.insert(layers.clone());
        (layers, true)
    }

    /// Adds a limit, and returns its place.
    pub fn add(&self, asked: Asked) -> usize {
        self.with(|all| {
            all.push(asked);
            all.len() - 1
        })
    }

    /// Reads by `peek` what the limit at `place` has left after a later charge. The request stays
    /// admitted.
    pub fn read_again(&self, place: usize, peek: impl Fn(u64) -> Decision) {
        self.with(|all| {
            if let Some(asked) = all.get_mut(place) {
                let Decision { verdict, reason, retry_after, .. } = asked.decision;
                asked.decision = Decision { verdict, reason, retry_after, ..peek(1) };
                asked.more_after = more_after(&asked.policy, &asked.decision, 1, peek);
            }
        });
    }

    /// Gives back what the layers so far were charged. A policy that takes nothing back stays
    /// charged.
    pub fn give_back(&self) {
        self.with(|all| {
            for asked in all {
                if let Some(charged) = asked.charged.take() {
                    asked.decision = charged.give_back();
                }
            }
        });
    }

    /// Adds the fields of all layers to an answer. Of Retry-After, RateLimit and X-RateLimit-,
    /// those that the service has set itself stay as they are, because numbers of two writers in
    /// one family would contradict each other.
    pub fn write(&self, headers: &mut HeaderMap) {
        let own: Vec<String> = headers.keys().map(family).collect();
        let mut made = HeaderMap::new();
        self.with(|all| {
            let retry = Fields { retry_after: true, ..Fields::default() };
            append(&mut made, all, &retry, |fields| fields.retry_after);
            for legacy in [Reset::Seconds, Reset::Epoch].map(Some) {
                let of = Fields { legacy, ..Fields::default() };
                append(&mut made, all, &of, |fields| fields.legacy == legacy);
            }
            for draft in [Draft::Six, Draft::Seven, Draft::Eleven].map(Some) {
                let of = Fields { draft, ..Fields::default() };
                append(&mut made, all, &of, |fields| fields.draft == draft);
            }
        });
        for (name, value) in &made {
            if !own.contains(&family(name)) {
                headers.append(name.clone(), value.clone());
            }
        }
    }

    fn with<T>(&self, call: impl FnOnce(&mut Vec<Asked>) -> T) -> T {
        // If a call panicked while it held the lock, the limits are those that it had added.
        call(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes one kind of fields, with the limits of the layers that want it.
fn append(headers: &mut HeaderMap, all: &[Asked], kind: &Fields, wants: impl Fn(&Fields) -> bool) {
    let wanted: Vec<Limit<'_>> =
        all.iter().filter(|asked| wants(&asked.fields)).map(limit).collect();
    // More limits than this have no room in a field. The last one asked refuses, if one does.
    let limits = wanted.get(wanted.len().saturating_sub(LIMITS_MOST)..).unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let utc = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let names: usize = limits.iter().map(|limit| limit.name.len()).sum();
    let mut text = vec![0; FIELDS_MOST * limits.len() + 4 * names];
    let length = kind.write(limits, utc, &mut text);
    append_lines(headers, &text[..length.min(text.len())]);
}

fn limit(asked: &Asked) -> Limit<'_> {
    Limit::new(asked.name.as_bytes(), &asked.policy, &asked.decision)
        .with_more_after(asked.more_after)
}

/// The fields that belong together.
fn family(name: &HeaderName) -> String {
    let families = ["x-ratelimit", "ratelimit"];
    families
        .into_iter()
        .find(|family| name.as_str().starts_with(family))
        .unwrap_or(name.as_str())
        .to_owned()
}

/// Adds the lines `NAME: VALUE\r\n` that the core has written.
fn append_lines(headers: &mut HeaderMap, lines: &[u8]) {
    for line in lines.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let value = line[colon + 1..].trim_ascii();
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
}
