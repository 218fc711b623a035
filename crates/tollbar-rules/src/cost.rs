//! What a request costs: a number, a value of the request, or a word of the answer.

use crate::key::Source;
use crate::path::Pattern;
use crate::request::{Said, Seen};
use std::fmt;

/// A number, or the first of these sources that the request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    sources: Vec<Source>,
    /// The amount of a request without any of the sources.
    otherwise: Option<u64>,
}

/// The cost of a request under a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// What the request takes before it is answered: its cost or, beside `answer`, an estimate.
    pub taken: Amount,
    /// The word of the answer that says the real cost
    /// ([`Rules::settle`](crate::Rules::settle)), with its colon.
    pub answer: Option<String>,
}

/// The amount that a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Amount(u64),
    /// The request has none of the sources.
    Missing,
    /// Several values, or a value that is no whole number.
    Wrong,
}

const EXPECTED: &str =
    "field NAME, header NAME, cookie NAME or path NAME; two with | between them for the first that is there; a number as the last for a request with none of them";

impl Amount {
    /// A number.
    pub const fn number(number: u64) -> Amount {
        Amount { sources: Vec::new(), otherwise: Some(number) }
    }

    /// Reads sources with `|` between them, of which the last may be a number.
    ///
    /// # Errors
    /// The offset of the wrong source, and what is expected there.
    pub fn parse(text: &str, pattern: &Pattern) -> Result<Amount, (usize, &'static str)> {
        let mut amount = Amount { sources: Vec::new(), otherwise: None };
        let mut at = 0;
        for part in text.split('|') {
            let begin = at + part.len() - part.trim_start().len();
            at += part.len() + 1;
            if amount.otherwise.is_some() {
                return Err((begin, "nothing after the number, which every request has"));
            }
            let part = part.trim();
            if let Ok(number) = part.parse::<i64>() {
                let number = u64::try_from(number).map_err(|_| (begin, "a number from 0 on"))?;
                amount.otherwise = Some(number);
                continue;
            }
            match Source::parse(part, pattern) {
                Ok(Source::All | Source::Nothing | Source::Address(..)) => {
                    return Err((begin, EXPECTED))
                }
                Ok(source) => amount.sources.push(source),
                Err(of_path) if part.starts_with("path ") => return Err((begin, of_path)),
                Err(_) => return Err((begin, EXPECTED)),
            }
        }
        Ok(amount)
    }

    /// The number, if the amount is the same for all requests.
    pub fn fixed(&self) -> Option<u64> {
        self.otherwise.filter(|_| self.sources.is_empty())
    }

    /// The sources.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The amount of a request.
    pub(crate) fn of(&self, request: &Seen<'_>) -> Asked {
        for source in &self.sources {
            match source.said(request) {
                Said::Nothing => {}
                Said::Several => return Asked::Wrong,
                Said::One(value) => return number(value).map_or(Asked::Wrong, Asked::Amount),
            }
        }
        self.otherwise.map_or(Asked::Missing, Asked::Amount)
    }
}

/// The whole number of a text. One of more than 64 bits is the greatest that there is.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit =
        |number: u64, byte: &u8| number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    Some(text.iter().fold(0, digit))
}

/// The cost of a request under a rule that says nothing of it.
pub(crate) static ONE: Cost = Cost::number(1);

impl Cost {
    /// The same for each request.
    pub const fn number(number: u64) -> Cost {
        Cost { taken: Amount::number(number), answer: None }
    }

    /// The number, if all requests cost the same.
    pub fn fixed(&self) -> Option<u64> {
        self.taken.fixed().filter(|_| self.answer.is_none())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, source) in self.sources.iter().enumerate() {
            write!(f, "{}{source}", if n > 0 { " | " } else { "" })?;
        }
        match self.otherwise {
            Some(number) if self.sources.is_empty() => write!(f, "{number}"),
            Some(number) => write!(f, " | {number}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Field;

    fn of(text: &str, fields: &[(&str, &str)]) -> Asked {
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()))
            .collect();
        let pattern = Pattern::parse("/take/:n").expect("a pattern");
        let amount = Amount::parse(text, &pattern).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(amount.to_string(), text);
        amount.of(&Seen::new(&fields, &[], Default::default()))
    }

    #[test]
    fn the_first_source_that_is_there_says_the_amount() {
        let request =
            [(":path", "/take/7"), (":tokens", "90"), ("X-Cost", " 12 "), ("x-bad", "1.5")];
        for (text, asked) in [
            ("5", Asked::Amount(5)),
            ("field tokens", Asked::Amount(90)),
            ("header x-cost", Asked::Amount(12)),
            ("path n", Asked::Amount(7)),
            ("field none | header x-cost", Asked::Amount(12)),
            ("field none | 3", Asked::Amount(3)),
            ("field none", Asked::Missing),
            ("header x-bad | 3", Asked::Wrong),
        ] {
            assert_eq!(of(text, &request), asked, "{text}");
        }
        let at = |value| of("header x", &[("x", value)]);
        for (value, asked) in [
            ("0", Asked::Amount(0)),
            ("18446744073709551616", Asked::Amount(u64::MAX)),
            ("-1", Asked::Wrong),
            ("+1", Asked::Wrong),
            ("1e3", Asked::Wrong),
        ] {
            assert_eq!(at(value), asked, "{value}");
        }
        assert_eq!(of("header x", &[("x", "1"), ("X", "2")]), Asked::Wrong);
    }

    #[test]
    fn a_wrong_source_has_a_place() {
        let pattern = Pattern::parse("/a").expect("a pattern");
        for (text, at) in [
            ("feld x", 0),
            ("address", 0),
            ("header a |  all", 12),
            ("field a | 5 | field b", 14),
            ("field a | -5", 10),
            ("path id", 0),
            ("field a | ", 10),
        ] {
            assert_eq!(Amount::parse(text, &pattern).map_err(|(at, _)| at), Err(at), "{text}");
        }
    }
}
