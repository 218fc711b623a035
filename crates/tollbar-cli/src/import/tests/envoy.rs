//! Rules that are imported from Envoy and Limitador: their decisions, and the remarks about parts
//! that rules cannot express.

use super::common::*;
use super::has;
use crate::import;

/// A request for which the server gives these fields.
fn with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut request = get("/", "198.51.100.1").to_vec();
    request.extend(fields);
    request
}

const DESCRIPTORS: &str = "domain: shop
descriptors:
  # Each client, and one that is shut out.
  - key: remote_address
    rate_limit:
      unit: second
      requests_per_unit: 4
  - key: remote_address
    value: 203.0.113.9
    rate_limit:
      unit: SECOND
      requests_per_unit: 0
  - key: tenant
    value: gold
    rate_limit:
      name: gold
      unit: minute
      requests_per_unit: 7
  - key: tenant
    value: free
    rate_limit:
      unlimited: true
  - key: tenant
    rate_limit:
      unit: hour
      requests_per_unit: 3
      replaces:
        - name: gold
  - key: kind
    value: mail
    descriptors:
      - key: to
        rate_limit:
          unit: day
          requests_per_unit: 2
      - key: to
        value: postmaster
        rate_limit:
          unit: day
          requests_per_unit: 1
        shadow_mode: true
  - key: campaign
    value: spring*
    detailed_metric: true
    rate_limit:
      unit: week
      requests_per_unit: 5
  - key: job
    value: nightly
    shadow_mode: true
    rate_limit:
      unit: month
      requests_per_unit: 1
    quota_mode: true
";

#[test]
fn descriptors_decide_as_in_the_rate_limit_service() {
    let imported = import::envoy(DESCRIPTORS).expect("a configuration");
    let rules = rules(&imported.toml);
    // A client: a window of four, which begins anew with the second.
    assert_eq!(admitted(&rules, 9, 0, &with(&[])), 4);
    assert_eq!(admitted(&rules, 9, 1, &with(&[])), 4);
    assert_eq!(admitted(&rules, 9, 0, &get("/", "203.0.113.9")), 0);
    // Values of a key: one with its own limit, one without a limit, and all others.
    let tenant = |name: &str, address: &'static str, n: usize| {
        let request = [(":path", "/"), (":address", address), (":tenant", name)];
        (0..n).filter(|second| check(&rules, 10 + *second as u64, &request).is_allowed()).count()
    };
    assert_eq!(tenant("gold", "198.51.100.2", 20), 7);
    assert_eq!(tenant("free", "198.51.100.3", 20), 20);
    assert_eq!((tenant("iron", "198.51.100.4", 20), tenant("zinc", "198.51.100.5", 20)), (3, 3));
    // Nested descriptors: mails have a limit for each value of `to`.
    let mail = |to: &'static str| with(&[(":kind.mail", "1"), (":to", to)]);
    assert_eq!(admitted(&rules, 4, 100, &mail("a")) + admitted(&rules, 4, 101, &mail("b")), 4);
    assert_eq!(admitted(&rules, 4, 102, &with(&[(":kind.mail", "1")])), 4);
    // A prefix of a value: one count for each value.
    let campaign = |name: &'static str| with(&[(":campaign.spring*", name)]);
    assert_eq!(
        admitted(&rules, 4, 200, &campaign("spring1"))
            + admitted(&rules, 4, 201, &campaign("spring1")),
        5
    );
    assert_eq!(admitted(&rules, 4, 202, &campaign("spring2")), 4);
    // A shadow refuses nothing and counts.
    assert_eq!(admitted(&rules, 3, 300, &with(&[(":job.nightly", "1")])), 3);
    let dry = rules.counts().into_iter().find(|counts| counts.rule == "job-nightly-dry-run");
    assert_eq!(dry.map(|counts| (counts.allowed, counts.refused)), Some((1, 2)));
}

#[test]
fn what_descriptors_say_and_rules_cannot_is_said() {
    let imported = import::envoy(DESCRIPTORS).expect("a configuration");
    for (place, text) in [
        ("4:3", "counts a request that one limit refuses against its other limits too"),
        ("23:5", "the server must give the value of \"tenant\" as the field \":tenant\""),
        ("28:9", "replaces is left out"),
        ("29:5", "the field \":kind.mail\" to requests whose \"kind\" is \"mail\", and to no others"),
        ("36:9", "the field \":to.postmaster\" to requests whose \"to\" is \"postmaster\""),
        ("36:9", "by the rules both limits count"),
        ("42:5", "\":campaign.spring*\" to requests whose \"campaign\" begins with \"spring\", with its value, and"),
        ("54:5", "\"quota_mode\" is left out"),
    ] {
        has(&imported, place, text);
    }
}

#[test]
fn wrong_descriptors_are_said_with_their_places() {
    let text = "domain: d
descriptors:
  - value: x
  - key: a
    rate_limit: { unit: fortnight, requests_per_unit: 1 }
  - key: b
    rate_limit: { unit: second, requests_per_unit: -1 }
  - key: c
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: c
    rate_limit: { unit: second, requests_per_unit: 2 }
  - key: e
    rate_limit: { unit: second, requests_per_unit: 18446744073709551615 }
";
    let imported = import::envoy(text).expect("a configuration");
    has(&imported, "3:5", "a descriptor without a key is left out");
    has(&imported, "5:17", "expected unit: second, minute, hour, day, week, month or year");
    has(&imported, "7:17", "expected requests_per_unit: a whole number");
    has(&imported, "10:5", "\"c\" is left out: it is there already");
    has(&imported, "13:17", "rate_limit is left out: column 1");
    assert_eq!(admitted(&rules(&imported.toml), 9, 0, &with(&[(":c", "1")])), 1);
    // Neither descriptors nor local limits.
    has(&import::envoy("domain: d\n").expect("a configuration"), "1:1", "no limit was found");
}

const LOCAL: &str = "
static_resources:
  listeners:
    - filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                http_filters:
                  - name: envoy.filters.http.local_ratelimit
                    typed_config:
                      '@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
                      stat_prefix: everything
                      token_bucket: { max_tokens: 6, tokens_per_fill: 2, fill_interval: 1s }
                      filter_enabled: { default_value: { numerator: 100, denominator: HUNDRED } }
                      filter_enforced: { default_value: { numerator: 100, denominator: HUNDRED } }
                route_config:
                  virtual_hosts:
                    - name: all
                      routes:
                        - match: { prefix: /login/ }
                          route:
                            cluster: web
                            rate_limits:
                              - actions:
                                  - request_headers: { header_name: x-user, descriptor_key: user }
                          typed_per_filter_config:
                            envoy.filters.http.local_ratelimit:
                              '@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
                              stat_prefix: login
                              token_bucket: { max_tokens: 100, fill_interval: 0.010s }
                              descriptors:
                                - entries: [{ key: user }, { key: kind, value: robot }]
                                  token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: 60s }
                              filter_enabled: { default_value: { numerator: 50 } }
                              filter_enforced: { default_value: { numerator: 1000000, denominator: MILLION } }
                              status: { code: 503 }
                        - match: { path: /dark }
                          typed_per_filter_config:
                            envoy.filters.http.local_ratelimit:
                              '@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
                              stat_prefix: dark
                              token_bucket: { max_tokens: 1, fill_interval: 1h }
                              filter_enabled: { default_value: { numerator: 100 } }
                        - match: { path: /off }
                          typed_per_filter_config:
                            envoy.filters.http.local_ratelimit:
                              '@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
                              stat_prefix: off
                              token_bucket: { max_tokens: 1, fill_interval: 1s }
";

#[test]
fn local_limits_decide_as_in_envoy() {
    let imported = import::envoy(LOCAL).expect("a configuration");
    let rules = rules(&imported.toml);
    // All clients together: six, then two in a second.
    assert_eq!(admitted(&rules, 9, 0, &get("/", "198.51.100.1")), 6);
    assert_eq!(admitted(&rules, 9, 1, &get("/", "198.51.100.2")), 2);
    // The route's limit takes the place of the filter's, and robots have one of their own for each
    // user.
    assert_eq!(admitted(&rules, 99, 2, &get("/login/x", "198.51.100.1")), 99);
    let robot = [
        (":path", "/login/"),
        (":address", "198.51.100.1"),
        ("X-User", "ann"),
        (":kind.robot", "1"),
    ];
    assert_eq!(admitted(&rules, 9, 3, &robot), 1);
    assert_eq!(check(&rules, 3, &robot).status(), 503);
    // Not enforced: a shadow.
    assert_eq!(admitted(&rules, 9, 4, &get("/dark", "198.51.100.1")), 9);
    has(&imported, "34:64", "filter_enabled is for 50 of 100 requests; the rule is for all");
    has(&imported, "40:31", "the rule is a shadow");
    has(&imported, "47:31", "is left out: its filter_enabled is 0 %");
}

const LIMITS: &str = "
- namespace: shop
  name: users
  max_value: 3
  seconds: 60
  conditions:
    - \"req.method == 'POST'\"
    - \"req.path == '/orders'\"
  variables: [user_id]
- namespace: shop
  max_value: 10
  seconds: 1
  conditions: [\"descriptors[0]['plan'] == 'free' && descriptors[0].beta != 'yes'\", \"region != 'eu'\"]
  variables: [\"descriptors[0]['tenant']\"]
- namespace: shop
  max_value: 20
  seconds: 3600
- namespace: shop
  max_value: many
  seconds: 60
";

#[test]
fn limitador_decides_by_conditions_and_variables() {
    let imported = import::limitador(LIMITS).expect("a configuration");
    let rules = rules(&imported.toml);
    let order =
        |user: &'static str| [(":method", "POST"), (":path", "/orders"), (":user_id", user)];
    assert_eq!(
        (admitted(&rules, 5, 0, &order("ann")), admitted(&rules, 5, 0, &order("bob"))),
        (3, 3)
    );
    // All requests together are 20 in an hour: 14 are left.
    assert_eq!(admitted(&rules, 50, 0, &get("/orders", "198.51.100.1")), 14);
    assert_eq!(admitted(&rules, 50, 3600, &get("/", "198.51.100.1")), 20);
    has(
        &imported,
        "2:3",
        "a window of Limitador begins with a first request; a window of the rule at a multiple of 60 s",
    );
    has(&imported, "9:15", "the value of \"user_id\" as the field \":user_id\"");
    has(&imported, "13:16", "for which \"descriptors[0]['plan'] == 'free' && descriptors[0].be");
    has(&imported, "13:84", "for which \"region != 'eu'\" is true");
    has(&imported, "14:15", "the value of \"tenant\"");
    has(&imported, "18:3", "expected whole numbers for max_value and seconds");
}

#[test]
fn limits_of_two_namespaces_have_a_field_of_their_own() {
    let text =
        "limits:\n- { namespace: a, max_value: 1, seconds: 60 }\n- { namespace: b, max_value: 2, seconds: 60 }\n";
    let imported = import::limitador(text).expect("a configuration");
    let rules = rules(&imported.toml);
    assert_eq!(admitted(&rules, 5, 0, &with(&[(":namespace.a", "1")])), 1);
    assert_eq!(admitted(&rules, 5, 0, &with(&[(":namespace.b", "1")])), 2);
    has(&imported, "3:3", "the field \":namespace.b\" to requests of the namespace \"b\"");
}
