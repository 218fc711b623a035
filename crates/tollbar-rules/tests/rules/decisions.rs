//! The rules that take part in a request, and the answer that the request gets.

use crate::common::*;
use tollbar::Reason;
use tollbar_rules::{Format, Options, Rules};

fn site() -> Rules {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rules/site.toml");
    Rules::open(path, &Options { keys: 1000, ..Options::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn groups_add_up_and_the_nearest_route_counts() {
    let rules = site();
    // The blog's 6/min binds before the site's 15 at once.
    assert_eq!(admitted(&rules, 10, 0, &get("/blog/x", "198.51.100.1")), 6);
    // All or nothing: refusals of the blog have charged the site nothing.
    assert_eq!(admitted(&rules, 20, 0, &get("/", "198.51.100.1")), 9);
    let refused = check(&rules, 0, &get("/", "198.51.100.1"));
    assert_eq!(
        (refused.rule(), refused.status(), refused.body()),
        (Some("site"), 429, "slow down")
    );
    assert_eq!(refused.decision().retry_after, 2 * SECOND);
    // A file costs ten requests of the site; images cost none.
    assert_eq!(admitted(&rules, 3, 0, &get("/files/a", "198.51.100.2")), 1);
    assert_eq!(admitted(&rules, 50, 0, &get("/images/a", "198.51.100.2")), 50);
    assert_eq!(check(&rules, 0, &get("/images/a", "198.51.100.2")).rule(), None);
    // The route's method is not POST, so the group's own cost counts.
    let post = [(":method", "POST"), (":path", "/files/a"), (":address", "198.51.100.3")];
    assert_eq!(admitted(&rules, 20, 0, &post), 15);
}

#[test]
fn keys_missing_keys_exemptions_and_keys_with_policies_of_their_own() {
    let rules = site();
    let without = check(&rules, 0, &get("/api/x", "198.51.100.1"));
    assert_eq!(
        (without.status(), without.body(), without.rule()),
        (403, "an API key is needed", Some("api"))
    );
    assert_eq!(without.decision().reason, Reason::MissingKey);
    // The refusal has charged the site nothing.
    assert_eq!(admitted(&rules, 20, 0, &get("/", "198.51.100.1")), 15);
    let api = |key: &'static str, n: usize| {
        (0..n)
            .filter(|n| {
                // Each from another client, so that the site's limit does not bind.
                let address = format!("203.0.113.{}", n % 250);
                check(&rules, 0, &[(":path", "/api/x"), (":address", &address), ("x-api-key", key)])
                    .is_allowed()
            })
            .count()
    };
    assert_eq!((api("other", 50), api("gold", 250)), (20, 250));
    // An exempt network, behind a trusted proxy and not behind another.
    let behind =
        |peer: &'static str| [(":path", "/"), (":address", peer), ("X-Forwarded-For", "192.0.2.7")];
    assert_eq!(
        (
            admitted(&rules, 50, 0, &behind("10.1.1.1")),
            admitted(&rules, 50, 0, &behind("11.1.1.1"))
        ),
        (50, 15)
    );
    let exempt = check(&rules, 0, &behind("10.1.1.1"));
    assert_eq!((exempt.decision().reason, exempt.rule()), (Reason::Exempt, Some("site")));
    // An exempt key of the blog.
    assert_eq!(admitted(&rules, 15, 0, &get("/blog/", "66.249.73.135")), 15);
    // A key of several sources: the account, else the session; without both the route allows the
    // request.
    let login = |more: &[(&'static str, &'static str)]| {
        let mut request =
            vec![(":method", "POST"), (":path", "/login"), (":address", "198.51.100.9")];
        request.extend_from_slice(more);
        request
    };
    assert_eq!(admitted(&rules, 5, 0, &login(&[(":account", "ann")])), 3);
    assert_eq!(admitted(&rules, 5, 0, &login(&[("Cookie", "a=b; session=ann")])), 3);
    let answer = check(&rules, 0, &login(&[]));
    assert_eq!((answer.is_allowed(), answer.rule()), (true, Some("site")));
    // The route with a segment's name is nearer than nothing, and the group counts too.
    let report = |id: &str, key| {
        check(
            &rules,
            0,
            &[
                (":path", &format!("/api/reports/{id}")),
                (":address", "198.51.100.10"),
                ("x-api-key", key),
            ],
        )
        .is_allowed()
    };
    assert_eq!((report("7", "a"), report("7", "b"), report("8", "a")), (true, false, true));
}

#[test]
fn a_shadow_counts_and_refuses_nothing() {
    let rules = site();
    assert_eq!(admitted(&rules, 15, 0, &get("/", "198.51.100.1")), 15);
    let counts = rules.counts();
    let of = |name: &str| {
        counts
            .iter()
            .find(|counts| counts.rule == name)
            .map(|counts| (counts.allowed, counts.refused))
    };
    assert_eq!((of("site"), of("site-strict")), (Some((15, 0)), Some((10, 5))));
}

/// A client spells a limited path in six ways (`//login`, `/%6Cogin`, …). The rule counts all six,
/// so spelling evades no limit.
#[test]
fn other_spellings_of_a_path_are_limited() {
    let rules = rules("version = 1\n[route.login]\npath = '/login'\nkey = 'all'\nlimit = '3/min'");
    let paths = ["/login", "//login", "/%6Cogin", "/x/../login", "/login/", "/login?x"];
    assert_eq!(
        paths.iter().filter(|path| check(&rules, 0, &get(path, "1.1.1.1")).is_allowed()).count(),
        3
    );
}

#[test]
fn sliding_windows_and_logs_have_tables_of_their_own_beside_others() {
    let rules = rules(
        "version = 1\n[group.all]\nlimit = ['10/s', '5/min algo sliding-log', '8/min algo sliding-window mode strict']",
    );
    assert_eq!(admitted(&rules, 10, 0, &get("/", "1.1.1.1")), 5);
    assert_eq!(admitted(&rules, 10, 0, &get("/", "1.1.1.2")), 5);
    assert_eq!(admitted(&rules, 10, 67, &get("/", "1.1.1.1")), 5);
}

/// The text of a policy may be a list of two rates, alone and among others, and for a key of its
/// own. A refusal by another limit charges neither rate.
#[test]
fn a_policy_text_may_be_a_list() {
    let rules = rules(
        "version = 1\n[route.all]\npath = '/'\nkey = 'header k'\nlimit = ['10/s; 12/day', '11/min']\n\
         keys = { gold = ['20/s; 1000/day', '30/min'] }\n[route.one]\npath = '/one'\nlimit = '4/s; 5/day'",
    );
    let of = |key: &'static str| [(":path", "/"), (":address", "1.1.1.1"), ("k", key)];
    // 10/s, then 11/min, then 12/day.
    let admitted_at = |seconds| admitted(&rules, 40, seconds, &of("a"));
    assert_eq!((admitted_at(0), admitted_at(1), admitted_at(60)), (10, 1, 1));
    assert_eq!(
        (admitted(&rules, 40, 0, &of("gold")), admitted(&rules, 40, 1, &of("gold"))),
        (20, 10)
    );
    let one = get("/one", "1.1.1.2");
    assert_eq!(
        (admitted(&rules, 9, 0, &one), admitted(&rules, 9, 1, &one), admitted(&rules, 9, 2, &one)),
        (4, 1, 0)
    );
}

/// The YAML file decides as the TOML file does, on requests that reach every rule.
#[test]
fn yaml_and_toml_are_the_same_rules() {
    let toml = site();
    let text = include_str!("../../../../examples/rules/site.yaml");
    let yaml = Rules::from_text(text, Format::Yaml, &Options { keys: 1000, ..Options::default() })
        .unwrap_or_else(|error| panic!("{error}"));
    let paths = ["/", "/blog/a", "/files/x", "/images/y", "/api/x", "/api/reports/1", "/login"];
    let mut refused = 0;
    for n in 0..4000u64 {
        // A sequence without a pattern that the rules share (Knuth's multiplier).
        let pick = |of: u64, salt: u64| {
            (((n + salt).wrapping_mul(6_364_136_223_846_793_005) >> 33) % of) as usize
        };
        let address = ["198.51.100.1", "192.0.2.1", "66.249.73.135", "10.0.0.1"][pick(4, 1)];
        let mut request = vec![
            (":method", ["GET", "POST"][pick(2, 2)]),
            (":path", paths[pick(7, 3)]),
            (":address", address),
        ];
        match pick(4, 4) {
            0 => request.push(("X-Api-Key", ["gold", "tin"][pick(2, 5)])),
            1 => request.push((":account", "ann")),
            2 => request.push(("x-forwarded-for", "203.0.113.5")),
            _ => {}
        }
        let of = |rules: &Rules| {
            let answer = check(rules, n / 10, &request);
            (
                answer.rule().map(str::to_owned),
                answer.status(),
                answer.body().to_owned(),
                *answer.decision(),
            )
        };
        let (one, two) = (of(&toml), of(&yaml));
        assert_eq!(one, two, "{request:?}");
        refused += usize::from(one.1 != 200);
    }
    assert!((200..3800).contains(&refused), "{refused}");
}

#[test]
fn the_guide_has_the_example() {
    let guide = include_str!("../../../../docs/rules.md");
    let site = include_str!("../../../../examples/rules/site.toml");
    assert!(
        guide.contains(&format!("```toml\n{site}```")),
        "docs/rules.md has another text than examples/rules/site.toml"
    );
}

#[test]
fn the_nearest_route_counts_wherever_it_stands() {
    let rules = rules(
        "version = 1\n[route.all]\npath = '/**'\nlimit = '1/h'\n[route.wide]\npath = '/a/**'\nlimit = '2/h'
        [route.narrow]\npath = '/a/b'\nlimit = '3/h'\n[route.post]\npath = '/a/b'\nmethod = 'POST'\nlimit = '4/h'",
    );
    let of = |method, path| {
        admitted(&rules, 9, 0, &[(":method", method), (":path", path), (":address", "1.1.1.1")])
    };
    assert_eq!(
        (of("GET", "/a/b"), of("POST", "/a/b"), of("GET", "/a/c"), of("GET", "/x")),
        (3, 4, 2, 1)
    );
}

#[test]
fn an_answer_has_the_policy_that_binds() {
    let rules = rules(
        "version = 1\n[group.a]\nkey = 'header x-plan'\nlimit = ['9/h', '2/min']\n[group.a.keys]\nb = ['8/h', '3/min']\na = ['7/h', '4/min']",
    );
    for (plan, expected) in [("tin", "2/min"), ("a", "4/min"), ("b", "3/min")] {
        let answer = check(&rules, 0, &[(":path", "/"), ("x-plan", plan)]);
        assert_eq!(answer.policy().map(ToString::to_string).as_deref(), Some(expected));
    }
    assert!(check(&rules, 0, &[(":path", "/")]).policy().is_none());
}

#[test]
fn a_limit_may_ban_and_a_ban_stays_over_a_reload() {
    let file = |limit: &str| {
        format!(
            "version = 1\n[group.a]\nlimit = '{limit} ban 1h after 3'\n[shadow.b]\nof = 'a'\nlimit = '1/min ban 1d'"
        )
    };
    let rules = rules(&file("2/min"));
    let ask = |second| check(&rules, second, &get("/", "1.1.1.1"));
    assert!(ask(0).is_allowed() && ask(0).is_allowed());
    let reasons = [(); 3].map(|()| ask(1).decision().reason);
    assert_eq!(reasons, [Reason::Rate, Reason::Rate, Reason::Banned]);
    assert_eq!(ask(1).decision().retry_after, 3600 * SECOND);
    rules.replace(&file("9/min"), tollbar_rules::Format::Toml).expect("good rules");
    assert_eq!((ask(3599).decision().reason, ask(3601).is_allowed()), (Reason::Banned, true));
}

#[test]
fn a_limit_may_be_a_list_of_two_rates() {
    let rules = rules("version = 1\n[group.a]\nlimit = '2/s; 3/h'");
    assert_eq!(admitted(&rules, 5, 0, &get("/", "1.1.1.1")), 2);
    assert_eq!(admitted(&rules, 5, 2, &get("/", "1.1.1.1")), 1);
    assert_eq!(check(&rules, 2, &get("/", "1.1.1.1")).decision().bound, 1);
}

/// B7: the spellings of a path that the server behind the rules takes for one are one for the
/// rules.
#[test]
fn b7_paths_of_other_servers() {
    let of = |same: &str| {
        rules(&format!(
            "version = 1\n{same}\n[group.login]\npath = '/Login'\nlimit = '1/h'\n[group.users]\npath = '/users/:id'\nkey = 'path id'\nlimit = '1/h'\nexempt = ['Root']\n[group.users.keys]\nAnn = '3/h'"
        ))
    };
    let passed = |rules: &Rules, paths: &[&str]| -> Vec<bool> {
        paths.iter().map(|path| check(rules, 0, &get(path, "1.1.1.1")).is_allowed()).collect()
    };
    let spellings = ["/Login", "/Login;x=1", "/LOGIN", "/login"];
    assert_eq!(passed(&of(""), &spellings), [true; 4]);
    assert_eq!(passed(&of("same-paths = 'parameters'"), &spellings), [true, false, true, true]);
    assert_eq!(passed(&of("same-paths = 'any-case'"), &spellings), [true, true, false, false]);
    let both = of("same-paths = ['any-case', 'parameters']");
    assert_eq!(passed(&both, &spellings), [true, false, false, false]);
    assert_eq!(
        passed(&both, &["/users/ann", "/USERS/Ann", "/users/ANN;x", "/users/Ann"]),
        [true, true, true, false]
    );
    assert_eq!(passed(&both, &["/users/root", "/users/ROOT", "/users/Root"]), [true; 3]);
    let error = Rules::from_text(
        "version = 1\nsame-paths = 'case'\n[group.a]\nlimit = '1/s'",
        Format::Toml,
        &Options::default(),
    );
    let text = error.map(|_| ()).expect_err("an unknown word").to_string();
    assert!(text.starts_with("rules:2:14: same-paths: \"case\"; expected \"any-case\""), "{text}");
}

/// B7: a client that varies one of two values of its key's header has no key for each.
#[test]
fn b7_several_values_of_a_key_are_refused() {
    for (missing, status) in
        [("", 403), ("missing = 'allow'\n", 403), ("missing = { status = 401 }\n", 401)]
    {
        let rules = rules(&format!(
            "version = 1\n[group.a]\nkey = 'header X-Api-Key'\n{missing}limit = '2/h'"
        ));
        for varying in ["a", "b", "c"] {
            let request = [(":path", "/"), ("X-Api-Key", varying), ("X-Api-Key", "k")];
            let answer = check(&rules, 0, &request);
            assert_eq!((answer.is_allowed(), answer.status()), (false, status), "{missing}");
        }
        assert_eq!(
            admitted(&rules, 9, 0, &[(":path", "/"), ("X-Api-Key", "k"), ("X-Api-Key", "k")]),
            2
        );
        assert_eq!(rules.counts()[0].missing, 3);
    }
}
