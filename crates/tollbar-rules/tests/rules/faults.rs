//! What is wrong with a file: where, what was found, what is expected.

use tollbar_rules::{read, Format};

fn problems(text: &str, format: Format) -> Vec<String> {
    read(text, format).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// The only problem of a TOML file whose first line is the version.
fn problem(text: &str) -> String {
    let all = problems(&format!("version = 1\n{text}"), Format::Toml);
    assert_eq!(all.len(), 1, "{text}: {all:#?}");
    all.into_iter().next().unwrap_or_default()
}

#[test]
fn each_fault_has_a_place_and_says_what_is_expected() {
    for (text, expected) in [
        ("[group.a]\nlimit = \"5r/y\"", "3:11: group.a.limit: \"r/y\" in \"5r/y\"; expected a limit: a whole number"),
        (
            "[group.a]\nlimit = \"10/s burts 5\"",
            "3:15: group.a.limit: \"burts 5\" in \"10/s burts 5\"; expected `burst`, `algo`",
        ),
        ("[group.a]\nlimit = [\"10/s\", \"10/\"]", "3:22: group.a.limit: the end of \"10/\"; expected a period"),
        (
            "[group.a]\nlimti = \"1/s\"\nlimit = \"1/s\"",
            "3:1: group.a: unknown field \"limti\"; expected limit, or another of path, method",
        ),
        ("[group.a]\nlimit = 5", "3:9: group.a.limit: 5; expected a string, or a list of strings"),
        ("[group.a]\n", "2:8: group.a: no limit; expected limit = "),
        ("[group.a]\nlimit = '1/s; 1/s algo quota'", "3:"),
        ("[group.a]\nlimit = '5/min algo sliding-window anchor first'", "3:36: group.a.limit: `anchor first` in"),
        (
            "[group.a]\nlimit = '1/s'\npath = 'x'",
            "4:9: group.a.path: \"x\" in \"x\"; expected a path that begins with /",
        ),
        ("[group.a]\nlimit = '1/s'\npath = '/a/**/b'", "4:15: group.a.path: \"b\" in"),
        ("[group.a]\nlimit = '1/s'\nkey = ['all', 'cookie']", "4:16: group.a.key: \"cookie\"; expected address,"),
        ("[group.a]\nlimit = '1/s'\nkey = 'path id'", "4:8: group.a.key: \"path id\"; expected path NAME"),
        ("[group.a]\nlimit = '1/s'\nmethod = 'get'", "4:10: group.a.method: \"get\"; expected a method in upper case"),
        (
            "[group.a]\nlimit = '1/s'\nstatus = 200",
            "4:10: group.a.status: 200; expected a whole number from 400 to 599",
        ),
        ("[group.a]\nlimit = '1/s'\nmissing = 'no'", "4:11: group.a.missing: \"no\"; expected \"allow\", \"deny\", or"),
        ("[group.a]\nlimit = '1/s'\nexempt = ['x']", "4:11: group.a.exempt: \"x\"; expected a key, or an address"),
        (
            "[group.a]\nlimit = '1/s'\nkey = 'all'\nexempt = ['x']",
            "5:11: group.a.exempt: \"x\"; expected a rule whose key has one source",
        ),
        (
            "[group.a]\nlimit = '1/s'\nkeys = { '1.1.1.1' = ['1/s', '2/s'] }",
            "4:22: group.a.keys.1.1.1.1: 2 policies; expected 1",
        ),
        (
            "[group.a]\nlimit = '9/month zone Mars/Base'",
            "3:23: group.a.limit: \"Mars/Base\" in \"9/month zone Mars/Base\"; expected ",
        ),
        (
            "[group.a]\nlimit = '9/month'\nkeys = { '1.1.1.1' = '9/h' }",
            "4:22: group.a.keys.1.1.1.1: \"9/h\"; expected a calendar, because the limit of the rule is \"9/month\"",
        ),
        (
            "[group.a]\nlimit = '9/h'\nkeys = { '1.1.1.1' = '9/month' }",
            "4:22: group.a.keys.1.1.1.1: \"9/month\"; expected another policy than a calendar",
        ),
        ("[group.a]\nlimit = ['1/s', '1/s']", "3:17: group.a.limit: \"1/s\" a second time"),
        ("[route.a]\nlimit = '1/s'", "2:8: route.a: no path"),
        ("[group.a]\nlimit = '1/s'\n[route.a]\npath = '/'", "4:8: route.a: the name of the rule in line 2"),
        (
            "[group.a]\nlimit = '1/s'\n[route.b]\npath = '/'\nreplaces = 'c'",
            "6:12: route.b.replaces: \"c\"; expected one of a (groups)",
        ),
        ("[group.a]\nlimit = '1/s'\n[shadow.b]\nof = 'c'\nlimit = '2/s'", "5:6: shadow.b.of: \"c\"; expected one of a"),
        ("[group.'a b']\nlimit = '1/s'", "2:8: group.a b: \"a b\"; expected a name of 1 to 63"),
        (
            "trusted-proxies = '10.0.0.1/8'\n[group.a]\nlimit = '1/s'",
            "2:19: trusted-proxies: \"10.0.0.1/8\"; expected a network",
        ),
        ("", "1:1: no rules; expected a [group.NAME]"),
        ("[group.a]\nlimit = '1/s'\nlimit = '2/s'", "4:1: "),
        ("[group.a\nlimit = '1/s'", "2:9: "),
    ] {
        let found = problem(text);
        assert!(found.starts_with(expected), "{text}\nfound    {found}\nexpected {expected}");
    }
}

#[test]
fn one_run_reports_all_faults() {
    let text =
        "version = 2\nfoo = 1\n[group.a]\nlimit = '5/y'\nstatus = 1\n[route.b]\npath = 'x'\n";
    let lines: Vec<usize> = read(text, Format::Toml)
        .err()
        .unwrap_or_default()
        .iter()
        .map(|problem| problem.place.line)
        .collect();
    assert_eq!(lines, [1, 2, 4, 5, 7]);
    // Faults of the syntax, which the parser recovers from.
    let syntax = problems("version = 1\n[group.a]\nlimit = \nbody = 'x\n", Format::Toml);
    assert!(
        syntax.len() >= 2 && syntax[0].starts_with("3:") && syntax[1].starts_with("4:"),
        "{syntax:#?}"
    );
}

#[test]
fn faults_of_yaml_have_places_too() {
    for (text, expected) in [
        ("version: 1\ngroup:\n  a:\n    limit: 5r/y\n", "4:13: group.a.limit: \"r/y\""),
        ("version: 1\ngroup:\n  a:\n    limit: \"5r/y\"\n", "4:14: group.a.limit: \"r/y\""),
        ("version: 1\ngroup:\n  a: &x\n    limit: 1/s\n", "3:"),
        ("version: 1\ngroup:\n  a: {limit: 1/s, limit: 2/s}\n", "3:19: limit a second time"),
        ("version: 1\ngroup:\n  a: *x\n", "3:6: "),
        ("version: 1\n---\nversion: 1\n", "3:1: a second document"),
        ("version: 1\ngroup: [\n", "3:1: "),
        (
            "version: 1\nstatus: yes\ngroup: {a: {limit: 1/s}}\n",
            "2:9: status: \"yes\"; expected a whole number",
        ),
    ] {
        let found = problems(text, Format::Yaml);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{text}\n{found:#?}\nexpected {expected}"
        );
    }
    let deep = format!("version: {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(problems(&deep, Format::Yaml).len(), 1);
    let deep = format!("version = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!problems(&deep, Format::Toml).is_empty());
}

/// Seventeen limits would not fit one request.
#[test]
fn limits_of_one_request_are_counted_as_far_as_rules_overlap() {
    let group =
        |n: usize, path: &str| format!("[group.g{n}]\npath = '{path}'\nlimit = ['1/s', '2/min']\n");
    let separate: String = (0..20).map(|n| group(n, &format!("/p{n}/**"))).collect();
    assert_eq!(problems(&format!("version = 1\n{separate}"), Format::Toml), [""; 0]);
    let together: String = (0..9).map(|n| group(n, "/**")).collect();
    let found = problems(&format!("version = 1\n{together}"), Format::Toml);
    assert!(found.len() == 9 && found[0].contains("18 limits"), "{found:#?}");
}

/// Costs, further limits, plans, hosts and times.
#[test]
fn faults_of_parts_have_places_too() {
    let group = "[group.a]\nlimit = '1/s'\n";
    for (text, expected) in [
        ("cost = 'field'", "4:9: group.a.cost: \"field\"; expected field NAME, header NAME"),
        ("cost = 'field a | b'", "4:19: group.a.cost: \"b\"; expected field NAME"),
        (
            "cost = -1",
            "4:8: group.a.cost: -1; expected a whole number, or where the cost comes from",
        ),
        ("cost = 'answer'", "4:9: group.a.cost: \"answer\"; expected field NAME"),
        ("cost = 'answer a b'", "4:8: group.a.cost: \"answer a b\"; expected answer NAME"),
        (
            "cost = 'field a'\nestimate = 5",
            "5:12: group.a.estimate: an estimate; expected cost = \"answer NAME\"",
        ),
        ("host = 'a b'", "4:10: group.a.host: \"a b\"; expected a host without a port"),
        ("when = 'mun'", "4:9: group.a.when: \"mun\" in \"mun\"; expected days such as"),
        (
            "when = 'sun 0/s'",
            "4:13: group.a.when: \"0/s\" in \"sun 0/s\"; expected days and times only",
        ),
        ("plan = 'field p'", "4:8: group.a.plan: a plan, and no plans; expected plans ="),
        ("plan = 'all'\nplans = { x = '1/s' }", "4:9: group.a.plan: \"all\"; expected header NAME"),
        ("plans = { x = {} }", "4:11: group.a.plans.x: no limit; expected limit ="),
        (
            "plans = { x = { path = '/', limit = '1/s' } }",
            "4:17: group.a.plans.x: unknown field \"path\"; expected one of limit",
        ),
        ("plans = { x = '1/y' }", "4:18: group.a.plans.x.limit: \"y\" in \"1/y\"; expected "),
        (
            "plans = 'x'",
            "4:9: group.a.plans: \"x\"; expected a table of names: [group.a.plans.NAME]",
        ),
        ("limits = { x = {} }", "4:12: group.a.limits.x: no limit; expected limit ="),
        (
            "limits = { 'x y' = { limit = '1/s' } }",
            "4:12: group.a.limits.x y: \"x y\"; expected a name of",
        ),
        (
            "keys = { '1.1.1.1' = 'pro' }",
            "4:23: group.a.keys.1.1.1.1: \"pro\" in \"pro\"; expected a limit",
        ),
        (
            "limits = { b = { limit = '1/s' } }\n[group.'a.b']\nlimit = '1/s'",
            "5:8: group.a.b: the name of the rule in line 4",
        ),
    ] {
        let found = problem(&format!("{group}{text}"));
        assert!(found.starts_with(expected), "{text}\nfound    {found}\nexpected {expected}");
    }
    let found = problem("[group.a]\nlimit = '1/s, sun 0/s'\nkeys = { '1.1.1.1' = '1/s' }");
    assert!(
        found.starts_with("4:22: group.a.keys.1.1.1.1: a key of a rule with a schedule"),
        "{found}"
    );
    let found = problem("[group.a]\nlimit = '1/s, son 0/s'");
    assert!(found.starts_with("3:15: group.a.limit: \"son 0/s\" in"), "{found}");
}
