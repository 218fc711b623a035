//! Single fields of a rule.

use super::draft::Defaults;
use super::fields::{inside, shown, Fields, Problems};
use super::limits::{self, LIMITS_OF_FILE_MOST};
use crate::file::{quoted, Place, Text, Value};
use crate::host::Host;
use crate::key::Key;
use crate::path::Pattern;
use crate::rule::{Limit, Missing, Refusal};
use crate::times::Times;

/// `path`.
pub fn pattern(place: Place, text: &Text, field: &str, problems: &mut Problems) -> Option<Pattern> {
    Pattern::parse(&text.text)
        .map_err(|(at, expected)| {
            let rest = text.text.get(at..).unwrap_or("");
            problems.add(
                inside(place, text, at),
                field,
                format!("{} in {}", quoted(rest), quoted(&text.text)),
                expected,
            );
        })
        .ok()
}

/// The hosts of a rule; none for all.
pub fn hosts(fields: &Fields<'_>, problems: &mut Problems) -> Vec<Host> {
    let mut all = Vec::new();
    for (place, text) in fields.texts("host", problems).unwrap_or_default() {
        match Host::parse(&text.text) {
            Ok(host) => all.push(host),
            Err((at, expected)) => problems.add(
                inside(place, text, at),
                &fields.name("host"),
                quoted(&text.text),
                expected,
            ),
        }
    }
    all
}

/// `when`: the times at which the rule counts.
pub fn when(fields: &Fields<'_>, problems: &mut Problems) -> Option<Times> {
    let (place, text) = fields.text("when", problems)?;
    Times::parse(&text.text)
        .map_err(|(at, expected)| {
            let rest = text.text.get(at..).unwrap_or("");
            let found = match rest.is_empty() {
                true => format!("the end of {}", quoted(&text.text)),
                false => format!("{} in {}", quoted(rest), quoted(&text.text)),
            };
            problems.add(inside(place, text, at), &fields.name("when"), found, expected);
        })
        .ok()
}

/// The rule's key: `address` if the rule has no field `key`.
pub fn key(fields: &Fields<'_>, pattern: &Pattern, problems: &mut Problems) -> Option<Key> {
    let Some(texts) = fields.texts("key", problems) else {
        return Key::parse(&["address"], pattern).ok();
    };
    let parts: Vec<&str> = texts.iter().map(|(_, text)| text.text.as_str()).collect();
    if parts.is_empty() {
        return None;
    }
    Key::parse(&parts, pattern)
        .map_err(|(part, at, expected)| {
            let (place, text) = texts[part];
            problems.add(
                inside(place, text, at),
                &fields.name("key"),
                quoted(text.text.get(at..).unwrap_or("")),
                expected,
            );
        })
        .ok()
}

/// `method`: the methods of a rule; none for all.
pub fn methods(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let mut all = Vec::new();
    for (place, text) in fields.texts("method", problems).unwrap_or_default() {
        if text.text.is_empty() || !text.text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') {
            problems.add(
                place,
                &fields.name("method"),
                quoted(&text.text),
                "a method in upper case, such as POST, or a list of them",
            );
        }
        all.push(text.text.clone());
    }
    all
}

/// The policies of `limit`.
pub fn policies(fields: &Fields<'_>, name: &str, problems: &mut Problems) -> Option<Vec<Limit>> {
    let texts = fields.texts(name, problems)?;
    let field = fields.name(name);
    if let Some((place, _)) = texts.get(LIMITS_OF_FILE_MOST) {
        problems.add(
            *place,
            &field,
            format!("{} limits", texts.len()),
            format!("at most {LIMITS_OF_FILE_MOST} in a file"),
        );
        return None;
    }
    let limits: Vec<Limit> = texts
        .into_iter()
        .flat_map(|(place, text)| limits::limit(place, text, &field, problems))
        .collect();
    for (n, limit) in limits.iter().enumerate() {
        if limits[..n].iter().any(|other| other.policy == limit.policy && other.when == limit.when)
        {
            problems.add(
                limit.place,
                &field,
                format!("\"{}\" a second time", limit.policy),
                "each policy once",
            );
        }
    }
    (!limits.is_empty()).then_some(limits)
}

/// `missing`: what a request without the key or the cost gets.
pub fn missing(fields: &Fields<'_>, defaults: &Defaults, problems: &mut Problems) -> Missing {
    let deny = || Missing::Deny(defaults.refusal(403));
    let Some(node) = fields.get("missing") else { return deny() };
    let name = fields.name("missing");
    match &node.value {
        Value::Text(text) if text.text == "allow" => Missing::Allow,
        Value::Text(text) if text.text == "deny" => deny(),
        Value::Table(_) => match Fields::new(node, &name, &["status", "body"], problems) {
            Some(own) => Missing::Deny(Refusal::or(
                own.refusal(problems),
                &Refusal { status: 403, body: String::new() },
            )),
            None => deny(),
        },
        value => {
            problems.add(
                node.place,
                &name,
                shown(value),
                "\"allow\", \"deny\", or { status = 403, body = \"...\" }",
            );
            deny()
        }
    }
}
