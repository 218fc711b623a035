//! B1, B2: a limit of the configuration is in the rules file, or a remark names its line.

use super::common::*;
use super::has;
use crate::import;
use std::collections::HashSet;
use tollbar_rules::Format;

/// A variable of nginx, and a request's field that gives its value. A request may lack all but the
/// first two.
const VARIABLES: [(&str, &str); 7] = [
    ("$binary_remote_addr", ":address"),
    ("${remote_addr}", ":address"),
    ("$http_x_tenant", "X-Tenant"),
    ("${http_x_api_key}", "X-Api-Key"),
    ("$cookie_sid", "Cookie"),
    ("$arg_k", ":arg_k"),
    ("$host", "Host"),
];

/// nginx joins the values of a key's variables and the text between them, and limits all requests
/// but those whose key is empty. The rules must admit exactly the same requests. With a rate of one
/// a minute and no burst, the first request of each key passes at one instant, and no other.
#[test]
fn b1_joined_variables_limit_whom_nginx_limits() {
    let mut rng = Rng(1);
    let (mut asked, mut refused, mut exempt) = (0, 0, 0);
    for _ in 0..200 {
        let parts: Vec<usize> =
            (0..1 + rng.below(3)).map(|_| rng.below(VARIABLES.len() as u64) as usize).collect();
        let literal = ["", "", ":", "-"][rng.below(4) as usize];
        let key: Vec<&str> = parts.iter().map(|&part| VARIABLES[part].0).collect();
        let key = key.join(literal);
        let text = format!(
            "http {{ limit_req_zone \"{key}\" zone=a:10m rate=1r/m; server {{ location / {{ limit_req zone=a; }} }} }}"
        );
        let imported = import::nginx(&text).expect("a configuration");
        let rules = rules(&imported.toml);
        let mut seen = HashSet::new();
        for _ in 0..50 {
            let (address, host) = (format!("192.0.2.{}", rng.below(3)), "a.test".to_owned());
            let mut values = [
                address.clone(),
                address,
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                host,
            ];
            for value in &mut values[2..6] {
                if rng.below(2) == 0 {
                    *value = ["x", "y", "xy"][rng.below(3) as usize].to_owned();
                }
            }
            let in_key: Vec<&str> = parts.iter().map(|&part| values[part].as_str()).collect();
            let joined = in_key.join(literal);
            // nginx's text of "x" and "y" is that of "xy" and "": the rules tell them apart, which
            // limits nobody less.
            let by_parts = in_key.join("\0") + literal;
            let wanted = joined.is_empty() || seen.insert(by_parts);
            let cookie = format!("sid={}", values[4]);
            let mut fields = vec![(":method", "GET"), (":path", "/")];
            for (n, (_, field)) in VARIABLES.iter().enumerate() {
                if !values[n].is_empty() && n != 1 {
                    fields.push((field, if n == 4 { &cookie } else { &values[n] }));
                }
            }
            let got = check(&rules, 0, &fields).is_allowed();
            assert_eq!(got, wanted, "{key} {fields:?}\n{}", imported.toml);
            asked += 1;
            refused += usize::from(!got);
            exempt += usize::from(joined.is_empty());
        }
    }
    assert_eq!(asked, 10_000);
    assert!(refused > 3000 && exempt > 300, "{refused} refused, {exempt} with an empty key");
}

fn kong(text: &str) -> import::Imported {
    import::kong(text).expect("a configuration")
}

#[test]
fn b2_kongs_plugins_of_consumers_and_their_groups() {
    const ROUTE: &str =
        "services:\n- name: s\n  routes:\n  - name: r\n    paths: [/api]\n    plugins:\n    - name: rate-limiting\n";
    // A consumer's plugin below a route limits this consumer, and nobody else.
    let imported = kong(&format!("{ROUTE}      consumer: bob\n      config: {{minute: 2}}\n"));
    has(&imported, "7:7", "\":consumer.bob\" to requests of the consumer \"bob\"");
    let rules = rules(&imported.toml);
    let request = [(":method", "GET"), (":path", "/api/x"), (":address", "192.0.2.1")];
    assert_eq!(admitted(&rules, 9, 0, &request), 9);
    let bob = [request[0], request[1], request[2], (":consumer.bob", "bob")];
    assert_eq!(admitted(&rules, 9, 0, &bob), 2);
    // Groups of consumers are not in rules.
    let imported =
        kong(&format!("{ROUTE}      consumer_group: gold\n      config: {{minute: 2}}\n"));
    has(&imported, "7:7", "the plugin is left out: rules know no groups of consumers");
    assert_eq!(imported.limits, 0);
    let imported = kong("consumer_groups:\n- name: gold\n  plugins:\n  - name: rate-limiting\n    config: {minute: 90}\nplugins:\n- name: rate-limiting\n  config: {minute: 5}\n");
    has(&imported, "4:5", "the plugin \"rate-limiting\" is left out");
    assert_eq!(imported.limits, 1);
    let imported =
        kong("plugins:\n- name: rate-limiting\n  consumer_group: gold\n  config: {minute: 90}\n");
    has(&imported, "2:3", "write it below its consumer_group");
    assert_eq!(imported.limits, 0);
    // Each plugin has one remark or one group, wherever it stands.
    let imported = kong("workspaces:\n- plugins:\n  - name: rate-limiting-advanced\n    config: {limit: [5]}\n  - name: cors\n    config: {}\n");
    assert_eq!(
        imported.remarks.iter().filter(|remark| remark.text.contains("left out")).count(),
        1
    );
}

fn traefik(text: &str) -> import::Imported {
    import::traefik(text, Format::Yaml).expect("a configuration")
}

#[test]
fn b2_traefiks_chains_and_entry_points() {
    const LIMIT: &str = "    rl: {rateLimit: {average: 100, burst: 3}}\n";
    let of = |imported: &import::Imported, path| {
        admitted(&rules(&imported.toml), 9, 0, &get(path, "192.0.2.1"))
    };
    let chain = "http:\n  routers:\n    b: {rule: \"PathPrefix(`/b`)\", middlewares: [outer]}\n  middlewares:\n    outer: {chain: {middlewares: [secured@file]}}\n    secured: {chain: {middlewares: [rl]}}\n";
    let imported = traefik(&format!("{chain}{LIMIT}"));
    assert_eq!((of(&imported, "/b/x"), of(&imported, "/c")), (3, 9));
    // A chain may name itself.
    let imported = traefik(&chain.replace("[rl]", "[outer]"));
    has(&imported, "6:37", "the chain \"outer\" is left out: chains are followed 8 deep");
    assert_eq!(imported.limits, 0);
    // An entry point's middlewares hold for the routers that listen there.
    let points = "entryPoints:\n  web: {address: \":80\", http: {middlewares: [rl]}}\n  other: {address: \":81\"}\n";
    for (listens, admits) in [("", 3), (", entryPoints: [web]", 3), (", entryPoints: [other]", 9)] {
        let text = format!(
            "{points}http:\n  routers:\n    b: {{rule: \"PathPrefix(`/b`)\"{listens}}}\n  middlewares:\n{LIMIT}"
        );
        let imported = traefik(&text);
        let left_out = imported
            .remarks
            .iter()
            .any(|remark| remark.text.contains("no router of this file names it"));
        assert_eq!(left_out, admits == 9, "{text}");
        if admits == 3 {
            assert_eq!(of(&imported, "/b"), admits, "{text}");
        }
    }
    // A middleware that no router names.
    let imported = traefik(&format!(
        "http:\n  routers:\n    b: {{rule: \"PathPrefix(`/b`)\"}}\n  middlewares:\n{LIMIT}"
    ));
    has(&imported, "5:5", "the middleware \"rl\" is left out: no router of this file names it");
}

#[test]
fn b2_envoys_windows_of_several_units() {
    let text = "domain: d\ndescriptors:\n  - key: ip\n    rate_limit: {unit: minute, requests_per_unit: 2, unit_multiplier: 5}\n  - key: path\n    value: /api*v1\n    rate_limit: {unit: minute, requests_per_unit: 5}\n";
    let imported = import::envoy(text).expect("a configuration");
    let rules = rules(&imported.toml);
    let request = [(":method", "GET"), (":path", "/"), (":ip", "a")];
    let at = |seconds| admitted(&rules, 9, seconds, &request);
    assert_eq!([at(0), at(60), at(299), at(300), at(599)], [2, 0, 0, 2, 0]);
    has(&imported, "5:5", "\"/api*v1\": only a * at the end of a value stands for other texts");
    let wrong = import::envoy(&text.replace("unit_multiplier: 5", "unit_multiplier: x"))
        .expect("a configuration");
    has(&wrong, "4:17", "expected unit_multiplier: a whole number");
}

/// A file of another program, or of none, gives no rules file.
#[test]
fn b2_a_file_without_limits_has_none() {
    for text in [
        "",
        "a: b\n",
        "apiVersion: v1\nkind: ConfigMap\ndata: {config.yaml: \"domain: d\"}\n",
        "services: {web: {labels: [\"x=y\"]}}\n",
    ] {
        for imported in [
            import::envoy(text),
            import::kong(text),
            import::limitador(text),
            import::traefik(text, Format::Yaml),
        ] {
            assert_eq!(imported.map_or(0, |imported| imported.limits), 0, "{text}");
        }
    }
    assert_eq!(import::nginx("http { server { } }").expect("a configuration").limits, 0);
}
