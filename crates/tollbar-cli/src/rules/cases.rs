//! The cases of a rules file: requests, and what the rules must decide on them. `tollbar rules
//! test` runs them.

use crate::civil;
use tollbar_rules::internal::{quoted, shown, Fields, Node, Problems, Value};
use tollbar_rules::Place;

/// Requests of one fresh start of the rules.
pub struct Case {
    pub name: String,
    /// The time of the first request, in Unix nanoseconds.
    pub start: u64,
    pub steps: Vec<Step>,
}

/// Equal requests.
pub struct Step {
    pub place: Place,
    /// The request's fields.
    pub request: Vec<(String, String)>,
    /// The words of the answer to an admitted request. It is settled if there are any.
    pub answer: Vec<(String, String)>,
    /// The time since the last request, and the time between these requests, in nanoseconds.
    pub after: u64,
    pub every: u64,
    pub times: u64,
    /// How many of them must pass.
    pub pass: u64,
    /// What the last one must be answered, as far as the case says it.
    pub status: Option<u64>,
    pub rule: Option<String>,
    pub body: Option<String>,
    pub wait: Option<u64>,
}

const OF_STEP: [&str; 14] = [
    "request", "address", "headers", "fields", "answer", "after", "every", "times", "pass",
    "status", "rule", "body", "wait", "host",
];
/// The default of `start`: 2026-01-05, a Monday, at 00:00 UTC.
const START: u64 = 1_767_571_200 * SECOND;
const SECOND: u64 = 1_000_000_000;

/// Reads the cases. Without problems there is at least one.
pub fn read(root: &Node, problems: &mut Problems) -> Vec<Case> {
    let Some(fields) = Fields::new(root, "", &["version", "case"], problems) else {
        return Vec::new();
    };
    if fields.number("version", 1, 1, problems).is_none() && fields.get("version").is_none() {
        problems.add(root.place, "version", "no version", "version = 1");
    }
    let cases: Vec<Case> =
        list(&fields, "case", problems).iter().filter_map(|node| case(node, problems)).collect();
    if cases.is_empty() && problems.all.is_empty() {
        problems.add(root.place, "case", "no cases", "a [[case]] with a [[case.step]]");
    }
    cases
}

fn case(node: &Node, problems: &mut Problems) -> Option<Case> {
    let fields = Fields::new(node, "case", &["name", "start", "step"], problems)?;
    let name = match fields.text("name", problems) {
        Some((_, text)) => text.text.clone(),
        None => {
            if fields.get("name").is_none() {
                problems.add(node.place, "case", "no name", "name = \"what the case shows\"");
            }
            return None;
        }
    };
    let start = fields.text("start", problems).map_or(Some(START), |(place, text)| {
        let dated = format!("{}Z", text.text.trim_end_matches('Z').replace(' ', "T"));
        let start =
            civil::rfc3339(text.text.as_bytes()).or_else(|_| civil::rfc3339(dated.as_bytes()));
        start
            .map_err(|_| {
                let expected = "a time such as 2026-03-29T01:30:00Z or 2026-03-29T02:30:00+01:00";
                problems.add(place, "case.start", quoted(&text.text), expected);
            })
            .ok()
    })?;
    let nodes = list(&fields, "step", problems);
    if nodes.is_empty() && fields.get("step").is_none() {
        problems.add(node.place, "case", "no steps", "a [[case.step]] with a request");
    }
    let steps = nodes.iter().filter_map(|node| step(node, problems)).collect();
    Some(Case { name, start, steps })
}

fn step(node: &Node, problems: &mut Problems) -> Option<Step> {
    let fields = Fields::new(node, "case.step", &OF_STEP, problems)?;
    let Some((place, text)) = fields.text("request", problems) else {
        if fields.get("request").is_none() {
            problems.add(node.place, "case.step", "no request", "request = \"GET /login\"");
        }
        return None;
    };
    let Some((method, target)) = text.text.split_once(' ') else {
        let expected = "a method and a target, such as GET /login";
        problems.add(place, "case.step.request", quoted(&text.text), expected);
        return None;
    };
    let mut request =
        vec![(":method".to_owned(), method.to_owned()), (":path".to_owned(), target.to_owned())];
    for name in ["address", "host"] {
        if let Some((_, text)) = fields.text(name, problems) {
            request.push((format!(":{name}"), text.text.clone()));
        }
    }
    request.extend(pairs(&fields, "fields", ":", problems));
    request.extend(pairs(&fields, "headers", "", problems));
    let times = fields.number("times", 1, 1_000_000, problems).unwrap_or(1);
    let word = |name: &str, problems: &mut Problems| {
        fields.text(name, problems).map(|(_, text)| text.text.clone())
    };
    Some(Step {
        place: node.place,
        answer: pairs(&fields, "answer", ":", problems),
        request,
        after: span(&fields, "after", problems).unwrap_or(0),
        every: span(&fields, "every", problems).unwrap_or(0),
        times,
        pass: fields.number("pass", 0, 1_000_000, problems).unwrap_or(times),
        status: fields.number("status", 200, 599, problems),
        rule: word("rule", problems),
        body: word("body", problems),
        wait: span(&fields, "wait", problems),
    })
}

/// A table of names and values. A value that is a list is as many fields.
fn pairs(
    fields: &Fields<'_>,
    name: &str,
    before: &str,
    problems: &mut Problems,
) -> Vec<(String, String)> {
    let Some(node) = fields.get(name) else { return Vec::new() };
    let Value::Table(entries) = &node.value else {
        let expected = "a table of names and values: { X-Api-Key = \"gold\" }";
        problems.add(node.place, &fields.name(name), shown(&node.value), expected);
        return Vec::new();
    };
    let mut all = Vec::new();
    for entry in entries {
        let named = |value| (format!("{before}{}", entry.name), value);
        match &entry.node.value {
            Value::List(list) => all.extend(list.iter().filter_map(value).map(named)),
            _ => match value(&entry.node) {
                Some(value) => all.push(named(value)),
                None => {
                    let found = shown(&entry.node.value);
                    problems.add(
                        entry.node.place,
                        &fields.name(name),
                        found,
                        "a string or a number",
                    );
                }
            },
        }
    }
    all
}

fn value(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A time such as `500ms`, `10s`, `5min`, `1h` or `2day`.
fn span(fields: &Fields<'_>, name: &str, problems: &mut Problems) -> Option<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", SECOND),
        ("min", 60 * SECOND),
        ("h", 3600 * SECOND),
        ("day", 86_400 * SECOND),
    ];
    let (place, text) = fields.text(name, problems)?;
    let digits = text.text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.text.split_at(digits);
    let of_unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let ns =
        number.parse::<u64>().ok().zip(of_unit).and_then(|(n, (_, unit))| n.checked_mul(*unit));
    if ns.is_none() {
        let expected = "a time such as 500ms, 10s, 5min, 1h or 2day";
        problems.add(place, &fields.name(name), quoted(&text.text), expected);
    }
    ns
}

fn list<'a>(fields: &Fields<'a>, name: &str, problems: &mut Problems) -> &'a [Node] {
    match fields.get(name).map(|node| (node, &node.value)) {
        None => &[],
        Some((_, Value::List(list))) => list,
        Some((node, value)) => {
            let expected = format!("a list of tables: [[{}]]", fields.name(name));
            problems.add(node.place, &fields.name(name), shown(value), expected);
            &[]
        }
    }
}
