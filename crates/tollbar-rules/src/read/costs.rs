//! `cost` and `estimate`: what a request costs.

use super::fields::{inside, shown, Fields, Problems};
use crate::cost::{Amount, Cost};
use crate::file::{quoted, Value};
use crate::key::Source;
use crate::path::Pattern;

const EXPECTED: &str =
    "a whole number, or where the cost comes from: field NAME, header NAME or answer NAME";

/// Reads `cost` and `estimate`.
pub fn cost(fields: &Fields<'_>, pattern: &Pattern, problems: &mut Problems) -> Option<Cost> {
    let estimate = amount("estimate", fields, pattern, problems);
    let answer = match fields.get("cost").map(|node| &node.value) {
        Some(Value::Text(text)) => text.text.trim().strip_prefix("answer "),
        _ => None,
    };
    let Some(word) = answer else {
        let taken = amount("cost", fields, pattern, problems);
        if let Some(node) = fields.get("estimate") {
            let expected = "cost = \"answer NAME\" beside it, because other costs are known before";
            problems.add(node.place, &fields.name("estimate"), "an estimate", expected);
        }
        return taken.map(|taken| Cost { taken, answer: None });
    };
    match Source::parse(&format!("field {}", word.trim()), pattern) {
        Ok(Source::Field(word)) => {
            let taken = estimate.unwrap_or(Amount::number(1));
            Some(Cost { taken, answer: Some(word) })
        }
        _ => {
            if let Some((place, text)) = fields.text("cost", problems) {
                let expected = "answer NAME with the name of a word of the answer, such as tokens";
                problems.add(place, &fields.name("cost"), quoted(&text.text), expected);
            }
            None
        }
    }
}

fn amount(
    name: &str,
    fields: &Fields<'_>,
    pattern: &Pattern,
    problems: &mut Problems,
) -> Option<Amount> {
    let node = fields.get(name)?;
    let Value::Text(text) = &node.value else {
        if let Value::Number(number) = node.value {
            if let Ok(number) = u64::try_from(number) {
                return Some(Amount::number(number));
            }
        }
        problems.add(node.place, &fields.name(name), shown(&node.value), EXPECTED);
        return None;
    };
    Amount::parse(&text.text, pattern)
        .map_err(|(at, expected)| {
            let rest = text.text.get(at..).unwrap_or("");
            problems.add(inside(node.place, text, at), &fields.name(name), quoted(rest), expected);
        })
        .ok()
}
