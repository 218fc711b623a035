//! Rules that are imported from Kong and Traefik: their decisions, and the remarks about parts that
//! rules cannot express.

use super::common::*;
use super::has;
use crate::import::{self, Imported};
use tollbar_rules::Format;

const KONG: &str = r#"_format_version: "3.0"
plugins:
  - name: rate-limiting
    config: { second: 5, hour: 12, policy: local, limit_by: ip }
  - name: response-ratelimiting
  - name: rate-limiting
    route: other
    config: { second: 1 }
services:
  - name: orders
    url: http://orders.internal
    plugins:
      - name: rate-limiting
        config:
          minute: 3
          limit_by: header
          header_name: X-Api-Key
          policy: redis
          error_code: 503
          error_message: "come back later"
    routes:
      - name: order-list
        paths: [/orders/, /carts/]
      - name: order-admin
        paths: [/orders/admin/]
        methods: [POST]
        hosts: [admin.example]
        plugins:
          - name: rate-limiting
            config: { day: 2, month: 40, limit_by: service, namespace: x }
  - name: static
    routes:
      - name: images
        paths: [/images, "~/regex/[0-9]+"]
consumers:
  - username: partner
    plugins:
      - name: rate-limiting
        config: { second: 1, minute: wrong }
"#;

#[test]
fn the_nearest_plugin_of_kong_counts() {
    let imported = import::kong(KONG).expect("a configuration");
    let rules = rules(&imported.toml);
    // The global plugin, where neither service nor route has one.
    assert_eq!(admitted(&rules, 9, 0, &get("/images/1", "198.51.100.1")), 5);
    assert_eq!(admitted(&rules, 9, 1, &get("/images/1", "198.51.100.1")), 5);
    assert_eq!(admitted(&rules, 9, 2, &get("/", "198.51.100.1")), 2);
    // A service's plugin counts over all paths of the service, by header, and without it by
    // address.
    let keyed =
        |path: &'static str| [(":path", path), (":address", "198.51.100.2"), ("X-Api-Key", "k")];
    assert_eq!(
        (admitted(&rules, 2, 0, &keyed("/orders/1")), admitted(&rules, 2, 0, &keyed("/carts/1"))),
        (2, 1)
    );
    let refused = check(&rules, 0, &keyed("/orders/1"));
    assert_eq!((refused.status(), refused.body()), (503, "come back later"));
    assert_eq!(admitted(&rules, 9, 0, &get("/orders/1", "198.51.100.2")), 3);
    // A route's plugin takes the place of the service's, for its methods.
    let admin = |method: &'static str| {
        [(":method", method), (":path", "/orders/admin/1"), (":address", "198.51.100.3")]
    };
    assert_eq!(
        (admitted(&rules, 9, 0, &admin("POST")), admitted(&rules, 9, 0, &admin("GET"))),
        (2, 3)
    );
    // The limit of a consumer, beside that of the route.
    let partner =
        [(":path", "/images/1"), (":address", "198.51.100.4"), (":consumer.partner", "1")];
    assert_eq!(admitted(&rules, 9, 0, &partner), 1);
}

#[test]
fn what_kong_says_and_rules_cannot_is_said() {
    let imported = import::kong(KONG).expect("a configuration");
    for (place, text) in [
        ("5:5", "the plugin \"response-ratelimiting\" is left out"),
        ("6:5", "write it below its route, and not in the global list"),
        ("18:19", "nodes of Kong share these counters"),
        ("27:16", "hosts is left out: rules choose by path and method only"),
        ("30:52", "limit_by: service: rules know no services"),
        ("30:61", "\"namespace\" is left out"),
        ("34:17", "Kong also takes longer names such as /imagesx"),
        ("34:26", "the path is left out: a rule cannot have it"),
        ("38:9", "by the rules all limits count"),
        ("38:9", "the field \":consumer.partner\" to requests of the consumer \"partner\""),
        ("39:38", "minute is left out: expected a whole number"),
    ] {
        has(&imported, place, text);
    }
}

#[test]
fn kong_in_json_and_each_kind_of_key() {
    let config = |by: &str| {
        let text = format!(
            r#"{{"plugins": [{{"name": "rate-limiting", "config": {{"minute": 2, {by}}}}}]}}"#
        );
        import::kong(&text).expect("a configuration")
    };
    let two = |imported: &Imported, one: &[(&str, &str)], other: &[(&str, &str)]| {
        let rules = rules(&imported.toml);
        (admitted(&rules, 3, 0, one), admitted(&rules, 3, 0, other))
    };
    let (a, b) = (get("/x", "198.51.100.1"), get("/y", "198.51.100.2"));
    assert_eq!(two(&config(r#""limit_by": "ip""#), &a, &b), (2, 2));
    // The default is the consumer, and without one the address.
    let named = [(":path", "/x"), (":address", "198.51.100.1"), (":consumer", "ann")];
    assert_eq!(two(&config(r#""policy": "local""#), &a, &named), (2, 2));
    assert_eq!(two(&config(r#""limit_by": "service""#), &a, &b), (2, 0));
    let path = config(r#""limit_by": "path", "path": "/x""#);
    assert_eq!(two(&path, &a, &b), (2, 3));
    has(&path, "1:76", "Kong counts requests of other paths by their address");
    has(&config(r#""limit_by": "moon""#), "1:76", "limit_by: \"moon\": the rule counts by address");
}

const TRAEFIK_YAML: &str = "http:
  routers:
    api:
      rule: Host(`shop.example`) && PathPrefix(`/api/`) && Method(`GET`)
      middlewares: [slow, missing@file]
      service: api
    pages:
      rule: PathPrefix(`/`)
      middlewares: [keyed]
      service: pages
    strange:
      rule: Path(`/a`) || Path(`/b`)
      service: pages
  middlewares:
    slow:
      rateLimit:
        average: 6
        period: 1m
        burst: 3
        sourceCriterion:
          ipStrategy:
            depth: 2
            excludedIPs: [10.0.0.0/8, nonsense]
    keyed:
      rateLimit:
        average: 100
        sourceCriterion:
          requestHeaderName: X-Tenant
    open:
      inFlightReq:
        amount: 10
";
const TRAEFIK_TOML: &str = r#"[http.routers.api]
rule = "Host(`shop.example`) && PathPrefix(`/api/`) && Method(`GET`)"
middlewares = ["slow", "missing@file"]
[http.routers.pages]
rule = "PathPrefix(`/`)"
middlewares = ["keyed"]
[http.routers.strange]
rule = "Path(`/a`) || Path(`/b`)"
[http.middlewares.slow.rateLimit]
average = 6
period = "1m"
burst = 3
[http.middlewares.slow.rateLimit.sourceCriterion.ipStrategy]
depth = 2
excludedIPs = ["10.0.0.0/8", "nonsense"]
[http.middlewares.keyed.rateLimit]
average = 100
[http.middlewares.keyed.rateLimit.sourceCriterion]
requestHeaderName = "X-Tenant"
[http.middlewares.open.inFlightReq]
amount = 10
"#;

#[test]
fn routers_of_traefik_have_buckets_of_their_own() {
    for (text, format) in [(TRAEFIK_YAML, Format::Yaml), (TRAEFIK_TOML, Format::Toml)] {
        let imported = import::traefik(text, format).expect("a configuration");
        let rules = rules(&imported.toml);
        // Three at once, then one in ten seconds.
        assert_eq!(admitted(&rules, 9, 0, &get("/api/x", "198.51.100.1")), 3);
        assert_eq!(admitted(&rules, 9, 10, &get("/api/x", "198.51.100.1")), 1);
        assert_eq!(admitted(&rules, 9, 10, &get("/api/x", "198.51.100.2")), 3);
        // The client behind a proxy.
        let behind = [
            (":method", "GET"),
            (":path", "/api/"),
            (":address", "10.0.0.1"),
            ("X-Forwarded-For", "198.51.100.3"),
        ];
        assert_eq!(
            (
                admitted(&rules, 9, 20, &behind),
                admitted(&rules, 9, 20, &get("/api/", "198.51.100.3"))
            ),
            (3, 0)
        );
        // The other router: by header, and one bucket for requests without it. The burst is 1.
        let tenant = [(":path", "/"), (":address", "198.51.100.1"), ("X-Tenant", "a")];
        assert_eq!(
            (admitted(&rules, 9, 30, &tenant), admitted(&rules, 9, 30, &get("/", "198.51.100.1"))),
            (1, 1)
        );
        assert_eq!(admitted(&rules, 9, 30, &get("/", "198.51.100.9")), 0);
        for text in [
            "\"Host\" is left out: rules choose by path and method only",
            "the middleware \"missing@file\" is left out: it is not in this file",
            "the limits are for all paths, because rules have no path for it",
            "Traefik holds a request back for up to half the time of one permit",
            "ipStrategy.depth is left out",
            "\"nonsense\" is left out: expected a network, such as 192.0.2.0/24",
            "inFlightReq with amount \"10\" is left out",
        ] {
            assert!(
                imported.remarks.iter().any(|remark| remark.text.contains(text)),
                "{text}: {:#?}",
                imported.remarks
            );
        }
    }
    let imported = import::traefik(TRAEFIK_YAML, Format::Yaml).expect("a configuration");
    has(&imported, "4:13", "\"Host\"");
    has(&imported, "12:13", "Path(`/a`) || Path(`/b`)");
    has(&imported, "22:20", "depth");
    has(&imported, "31:9", "inFlightReq");
}

#[test]
fn a_resource_of_kubernetes_and_middlewares_without_routers() {
    let text = "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata:\n  name: slow\nspec:\n  rateLimit:\n    average: 1\n    period: 2\n    burst: 2\n    sourceCriterion:\n      requestHost: true\n";
    let imported = import::traefik(text, Format::Yaml).expect("a configuration");
    let rules = rules(&imported.toml);
    let host = |name: &'static str| [(":path", "/"), (":address", "198.51.100.1"), ("Host", name)];
    assert_eq!((admitted(&rules, 9, 0, &host("a")), admitted(&rules, 9, 0, &host("b"))), (2, 2));
    assert_eq!((admitted(&rules, 9, 1, &host("a")), admitted(&rules, 9, 2, &host("a"))), (0, 1));
    for (period, expected) in [
        ("0s", false),
        ("1m30s", true),
        ("1.5h", true),
        ("1 fortnight", false),
        ("9999999h", false),
    ] {
        let text = format!(
            "http: {{ middlewares: {{ a: {{ ratelimit: {{ average: 5, period: {period} }} }} }} }}"
        );
        let imported = import::traefik(&text, Format::Yaml).expect("a configuration");
        assert_eq!(
            imported.toml.contains("[group.a]"),
            expected,
            "{period}: {:?}",
            imported.remarks
        );
    }
}
