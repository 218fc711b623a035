//! What the linter finds in files with one fault each, and what `explain` says.

use tollbar_rules::{explain, lint, read, Field, Format, Level, RuleFile};

fn file(text: &str) -> RuleFile {
    read(&format!("version = 1\n{text}"), Format::Toml)
        .unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"))
}

fn findings(text: &str, level: Level) -> Vec<String> {
    lint(&file(text))
        .into_iter()
        .filter(|finding| finding.level == level)
        .map(|finding| finding.to_string())
        .collect()
}

#[test]
fn worst_cases_that_no_burst_explains_are_warnings() {
    let text =
        "trusted-proxies = '10.0.0.0/8'\n[group.a]\nlimit = ['120/min', '500/h algo sliding-window mode strict']";
    assert_eq!(
        findings(text, Level::Surprise),
        ["4:10: warning: a: \"120/min\" admits 239 in some minute; \"120/min algo sliding-window mode strict\" never more than 120"]
    );
}

#[test]
fn worst_cases_that_the_burst_explains_are_not_worth_a_line() {
    let text = "trusted-proxies = '10.0.0.0/8'\n[group.a]\nlimit = '120/min burst 20'";
    assert_eq!(lint(&file(text)), []);
}

#[test]
fn the_worst_case_of_a_calendar_says_where_it_is() {
    let text =
        "trusted-proxies = '10.0.0.0/8'\n[group.a]\nlimit = ['1000/month zone Europe/Berlin', '50/week algo calendar']";
    assert_eq!(
        findings(text, Level::Surprise),
        ["4:10: warning: a: \"1000/month zone STD-1DST,M3.5.0,M10.5.0/3\" admits 3000 in some time as long as a mean window: at the end of one window, in a short one and at the start of a third",
         "4:43: warning: a: \"50/week algo calendar\" admits 100 in some time as long as a mean window: at the end of one window and at the start of the next"]
    );
}

#[test]
fn warnings() {
    for (text, expected) in [
        ("[group.a]\nlimit = '1/s burst 5'\nkey = 'header X-Forwarded-For'", "2:8: warning: a: anybody can choose the key: every client can send the header x-forwarded-for"),
        ("trusted-proxies = '0.0.0.0/0'\n[group.a]\nlimit = '1/s'", "2:19: warning: trusted-proxies has every address"),
        ("[route.a]\npath = '/x'\nlimit = '1/s'\n[route.b]\npath = '/x'\nlimit = '2/s'", "5:8: warning: b: no request reaches it: route a in line 2 is nearer"),
        (
            "[route.a]\npath = '/x'\nmethod = 'GET'\nlimit = '1/s'\n[route.b]\npath = '/x'\nmethod = 'POST'\nlimit = '1/s'\n[route.c]\npath = '/x'\nmethod = ['GET', 'POST']\nlimit = '1/s'",
            "10:8: warning: c: no request reaches it",
        ),
        ("[group.a]\nlimit = '1/s'\npath = '/a/**'\n[route.b]\npath = '/b'\nreplaces = 'a'", "5:8: warning: b: it replaces a, which is for other requests"),
        ("[group.a]\nlimit = '1/s'\npath = '/a'\n[route.b]\npath = '/a'\nreplaces = 'a'", "2:8: warning: a: no request reaches it: routes replace it"),
        ("[group.a]\nlimit = '10/s burst 5'\ncost = 6", "3:9: warning: a: a request costs 6, and \"10/s burst 5\" never has more than 5"),
        ("[group.a]\nlimit = '10/s burst 5'\n[route.b]\npath = '/b'\ncost = 6", "3:9: warning: a: route b costs 6"),
        ("[group.a]\nlimit = '10/s'\n[group.b]\npath = '/b'\nlimit = '20/s'", "6:9: warning: b: \"20/s\" never refuses: \"10/s\" of a in line 3 refuses before"),
        ("[group.a]\nlimit = ['10/s', '5/s']", "3:10: warning: a: \"10/s\" never refuses: \"5/s\" of a in line 3"),
    ] {
        let found = findings(text, Level::Warning);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\nfound {found:#?}\nexpected {expected}");
    }
}

/// Files beside those above that are as they should be.
#[test]
fn no_warnings() {
    for text in [
        "[route.a]\npath = '/x'\nlimit = '1/s'\n[route.b]\npath = '/*'\nlimit = '2/s'",
        "[route.a]\npath = '/x'\nmethod = 'GET'\nlimit = '1/s'\n[route.b]\npath = '/x'\nlimit = '2/s'",
        "[group.a]\nlimit = '10/s'\n[group.b]\npath = '/b'\nlimit = '20/min'",
        "[group.a]\nlimit = '10/s'\n[group.b]\npath = '/b'\nkey = 'all'\nlimit = '20/s'",
        "[group.a]\nlimit = '10/s'\n[route.b]\npath = '/b'\nlimit = '20/s'\nreplaces = 'a'",
        "[group.a]\nlimit = '10/s'\nexempt = '1.1.1.1'\n[group.b]\npath = '/b'\nlimit = '20/s'",
        "[group.a]\nlimit = ['10/s', '100/min']",
    ] {
        assert_eq!(findings(text, Level::Warning), [""; 0], "{text}");
    }
    let site = include_str!("../../../../examples/rules/site.toml");
    let file = read(site, Format::Toml).expect("good rules");
    assert!(lint(&file).iter().all(|finding| finding.level != Level::Warning));
}

#[test]
fn keys_that_clients_choose_are_noted_without_a_group_by_address() {
    let alone = "[group.a]\nlimit = '1/s burst 1'\nkey = 'header X-Key'";
    let note = findings(alone, Level::Note);
    assert!(
        note.len() == 1 && note[0].contains("(header x-key) with each request is not limited"),
        "{note:#?}"
    );
    let both = format!("trusted-proxies = '10.0.0.1'\n{alone}\n[group.b]\nlimit = '9/s burst 1'");
    assert!(!findings(&both, Level::Note).iter().any(|note| note.contains("not limited")));
}

#[test]
fn explained() {
    let file = read(include_str!("../../../../examples/rules/site.toml"), Format::Toml)
        .expect("good rules");
    let explain = |fields: &[(&str, &str)]| {
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()))
            .collect();
        explain(&file, &fields)
    };
    let out = explain(&[
        (":method", "GET"),
        (":path", "/api//reports/7?x"),
        (":address", "10.0.0.1"),
        ("X-Forwarded-For", "1.1.1.1, 198.51.100.7"),
        ("X-Api-Key", "gold"),
    ]);
    for line in [
        "request: GET /api/reports/7 from 198.51.100.7",
        "group site (line 5): yes: takes 1 of \"30/min burst 15\" by address; else 429 \"slow down\"",
        "group blog (line 11): no: its path is /blog/**",
        "group api (line 28): yes: takes 1 of \"1000/s burst 2000\" (the key's own) by header x-api-key; else 429 \"\"",
        "route report (line 46): yes: takes 1 of \"1/10s\" by path id; else 429 \"\"",
        "shadow site-strict (line 52): yes: takes 1 of \"10/min\" by address; refuses nothing",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }
    let out =
        explain(&[(":method", "PUT"), (":path", "/files/\u{1b}[2J"), (":address", "192.0.2.1")]);
    for line in [
        "request: PUT /files/\\x1b[2J from 192.0.2.1",
        "group site (line 5): exempt, and not charged",
        "route files (line 17): no: its method is GET, HEAD",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }
    let out = explain(&[(":method", "GET"), (":path", "/images/a")]);
    assert!(out.contains("group site (line 5): no: route images replaces it"), "{out}");
}
