//! Costs from the request and from the answer.

use crate::common::*;
use tollbar_rules::{Field, Rules};

fn at(rules: &Rules, now: u64, request: &[(&str, &str)]) -> (bool, u16, u64) {
    let answer = check(rules, now, request);
    (answer.is_allowed(), answer.status(), answer.decision().remaining)
}

#[test]
fn a_field_or_a_header_says_the_cost() {
    let rules = rules(
        "version = 1\n[group.a]\nkey = 'header k'\nlimit = '1000/h'\ncost = 'field cost'\n\
         [group.b]\npath = '/up/**'\nkey = 'header k'\nlimit = '500/h'\ncost = 'header Content-Length | 100'\nstatus = 413",
    );
    let ask = |path, more: &[(&'static str, &'static str)]| {
        let mut request = vec![(":path", path), ("k", "x")];
        request.extend(more);
        at(&rules, 0, &request)
    };
    assert_eq!(ask("/", &[(":cost", "300")]), (true, 200, 700));
    assert_eq!(ask("/", &[(":cost", "701")]), (false, 429, 700));
    // Above the burst: waiting does not help.
    assert_eq!(
        check(&rules, 0, &[(":path", "/"), ("k", "x"), (":cost", "1001")]).decision().verdict
            as u32,
        2
    );
    // Without a cost, and with none that is a number: as without a key. A header is no field.
    for more in [&[][..], &[("cost", "1")], &[(":cost", "many")], &[(":cost", "1"), (":cost", "2")]]
    {
        assert_eq!(ask("/", more), (false, 403, 0), "{more:?}");
    }
    assert_eq!(ask("/up/1", &[(":cost", "0"), ("Content-Length", "450")]), (true, 200, 50));
    assert_eq!(ask("/up/1", &[(":cost", "0")]), (false, 413, 50));
    assert_eq!(ask("/up/1", &[(":cost", "0"), ("content-length", "50")]), (true, 200, 0));
    // The costs of b did not count for a.
    assert_eq!(ask("/", &[(":cost", "700")]), (true, 200, 0));
}

#[test]
fn a_request_without_the_cost_may_pass_unlimited() {
    let rules = rules(
        "version = 1\n[group.a]\nkey = 'all'\nlimit = '2/h'\ncost = 'field n'\nmissing = 'allow'",
    );
    assert_eq!(admitted(&rules, 9, 0, &[(":path", "/")]), 9);
    assert_eq!(admitted(&rules, 9, 0, &[(":path", "/"), (":n", "1")]), 2);
    assert_eq!(rules.counts()[0].missing, 9);
}

/// A route's number is a weight for its groups; a cost that a request says has a unit of its own.
#[test]
fn only_a_number_of_the_route_counts_for_its_groups() {
    let rules = rules(
        "version = 1\n[group.requests]\nkey = 'all'\nlimit = '100/h'\n[group.bytes]\nkey = 'all'\nlimit = '100/h'\ncost = 'field bytes'\n\
         [route.heavy]\npath = '/heavy'\ncost = 10\n[route.words]\npath = '/words'\ncost = 'field words'\nkey = 'all'\nlimit = '50/h'",
    );
    let left = |path| {
        let request = [(":path", path), (":bytes", "3"), (":words", "7")];
        let answer = check(&rules, 0, &request);
        assert!(answer.is_allowed());
        (answer.rule().map(str::to_owned), answer.decision().remaining)
    };
    assert_eq!(left("/heavy"), (Some("requests".to_owned()), 90));
    assert_eq!(left("/words"), (Some("words".to_owned()), 43));
    // 10 and 1 of the requests, 3 and 3 of the bytes.
    assert_eq!(left("/"), (Some("requests".to_owned()), 88));
    assert_eq!(left("/words"), (Some("words".to_owned()), 36));
}

const TOKENS: &str = "version = 1\n[group.tokens]\nkey = 'header k'\nlimit = '1000/h'\ncost = 'answer tokens'\nestimate = 'field most | 100'\n";

fn fields<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<Field<'a>> {
    pairs.iter().map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes())).collect()
}

/// Takes at `taken` and settles at `settled`, in seconds. Returns the permits left after that.
fn settle(rules: &Rules, taken: u64, settled: u64, request: &[(&str, &str)]) -> (bool, u64) {
    let answer = check(rules, taken, request);
    assert!(answer.is_allowed());
    let now = BEGIN + settled * SECOND;
    let known = rules.settle_at(&answer.taken(), &fields(request), now).expect("a sound table");
    let key = [(":path", "/"), ("k", request[1].1), (":most", "0")];
    (known, check(rules, settled, &key).decision().remaining)
}

#[test]
fn the_answer_settles_the_estimate() {
    let rules = rules(TOKENS);
    let request = |key, tokens| [(":path", "/"), ("k", key), (":tokens", tokens)];
    // 100 are taken first. 40 of them are used, or 350 more.
    assert_eq!(settle(&rules, 0, 0, &request("a", "60")), (true, 940));
    assert_eq!(settle(&rules, 0, 0, &request("b", "450")), (true, 550));
    // Above the burst: a debt, which time pays. A request of cost 0 still passes.
    assert_eq!(settle(&rules, 0, 0, &request("c", "1500")), (true, 0));
    let waits = check(&rules, 0, &request("c", "1")).decision().retry_after;
    assert_eq!(waits, (500 + 100) * 3_600_000_000_000 / 1000);
    // An estimate of the request's own. In 36 seconds ten permits come back, and are not given back
    // a second time.
    let own = [(":path", "/"), ("k", "d"), (":tokens", "0"), (":most", "200")];
    assert_eq!(settle(&rules, 0, 36, &own), (true, 1000));
    let later = [(":path", "/"), ("k", "e"), (":tokens", "100"), (":most", "200")];
    assert_eq!(settle(&rules, 0, 36, &later), (true, 910));
    // The answer says nothing: the estimate stays.
    assert_eq!(settle(&rules, 0, 0, &[(":path", "/"), ("k", "f")]), (false, 900));
    assert_eq!(settle(&rules, 0, 0, &request("g", "few")), (false, 900));
    assert_eq!(
        rules.set().rules()[0].cost.as_ref().and_then(|c| c.answer.as_deref()),
        Some(":tokens")
    );
}

/// Never over-admit and never under-admit: any costs, settled at once, leave as much as an exact
/// count says.
#[test]
fn what_is_left_is_exact() {
    let rules = rules(&TOKENS.replace("1000/h", "100000/day"));
    let mut random = Rng(7);
    let mut left = 100_000;
    for n in 0..200 {
        let (most, used) = (random.below(300).to_string(), random.below(600));
        let used_text = used.to_string();
        let request = [(":path", "/"), ("k", "x"), (":most", &most), (":tokens", &used_text)];
        left -= used;
        assert_eq!(settle(&rules, 0, 0, &request), (true, left), "{n}");
    }
}

/// A set that a request was decided by is gone; the new one has the same rule, and perhaps another
/// that has taken nothing.
#[test]
fn a_reload_between_the_request_and_its_answer() {
    let request = [(":path", "/"), ("k", "x"), (":tokens", "600"), (":most", "50")];
    let left_after = |text: &str| {
        let rules = rules(TOKENS);
        let answer = check(&rules, 0, &request);
        rules.replace(text, tollbar_rules::Format::Toml).expect("rules");
        rules.settle_at(&answer.taken(), &fields(&request), BEGIN).expect("a sound table");
        check(&rules, 0, &[(":path", "/"), ("k", "x"), (":most", "0")]).decision().remaining
    };
    assert_eq!(left_after(TOKENS), 400);
    // A key keeps the 950 permits that it has left.
    assert_eq!(left_after(&TOKENS.replace("1000/h", "2000/h")), 400);
    // Another estimate, key or path, or another name: nobody knows what the request has taken.
    // The last request of this count has the new estimate, 900.
    assert_eq!(left_after(&TOKENS.replace("'field most | 100'", "900")), 950 - 900);
    assert_eq!(left_after(&TOKENS.replace("header k", "field k | header k")), 1000);
    assert_eq!(left_after(&TOKENS.replace("group.tokens", "group.other")), 1000);
    let replaced = format!("{TOKENS}[route.r]\npath = '/r'\nreplaces = 'tokens'\n");
    assert_eq!(left_after(&replaced), 950);
}

#[test]
fn a_shadow_is_settled_if_it_took_something() {
    let text = format!("{TOKENS}[shadow.less]\nof = 'tokens'\nlimit = '300/h'\n");
    let rules = rules(&text);
    let request = |tokens| [(":path", "/"), ("k", "x"), (":tokens", tokens)];
    // 250, then the shadow refuses 100 more, and is not charged for them.
    settle(&rules, 0, 0, &request("250"));
    settle(&rules, 0, 0, &request("100"));
    let counts = rules.counts();
    assert_eq!((counts[1].allowed, counts[1].would_refuse), (3, 1), "{counts:?}");
    // So 50 are still left of the shadow's limit: a request of 50 passes it.
    let fifty = [(":path", "/"), ("k", "x"), (":tokens", "50"), (":most", "50")];
    settle(&rules, 0, 0, &fifty);
    assert_eq!(rules.counts()[1].would_refuse, 1);
}

#[test]
fn windows_and_calendars_are_settled_too() {
    for (limit, wanted) in [
        ("1000/h algo fixed-window", [940, 550]),
        ("1000/month zone Europe/Berlin", [940, 550]),
        // A log takes no permits back, and is charged what is left.
        ("1000/h algo sliding-log", [900, 550]),
    ] {
        let rules = rules(&TOKENS.replace("1000/h", limit));
        for (key, tokens, left) in [("a", "60", wanted[0]), ("b", "450", wanted[1])] {
            let request = [(":path", "/"), ("k", key), (":tokens", tokens)];
            assert_eq!(settle(&rules, 0, 0, &request), (true, left), "{limit} {tokens}");
        }
    }
}
