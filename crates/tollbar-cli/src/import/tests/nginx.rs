//! Rules that are imported from nginx configurations: their decisions, and the remarks about
//! directives that rules cannot express.

use super::common::*;
use crate::import;
use tollbar_rules::{read, Format};

const SITE: &str = r#"
user nobody;
include mime.types;
http {
    limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
    limit_req_zone "$http_x_api_key$cookie_sid" zone=two:10m rate=30r/m; # a comment; with { braces }
    limit_req_zone $server_name zone=all:1m rate=5r/s;
    limit_conn_zone $binary_remote_addr zone=addr:10m;
    set_real_ip_from 10.0.0.0/8;
    limit_req_status 429;
    server {
        limit_req zone=one burst=4 nodelay;
        location / { proxy_pass http://b; }
        location /api/ {
            limit_req zone=one burst=2 nodelay;
            limit_req zone=two burst=1;
        }
        location = /login { limit_req_status 444; limit_req zone=all; }
        location ~ \.php$ { limit_req zone=one; }
        location /dry { limit_req_dry_run on; limit_req zone=one burst=1 nodelay; limit_conn addr 1; }
        location /open/ { limit_conn addr 4; limit_conn other 4; limit_conn_status 429; }
    }
}
"#;

#[test]
fn a_configuration_decides_as_in_nginx() {
    let imported = import::nginx(SITE).expect("a configuration");
    let rules = rules(&imported.toml);
    // burst=4: one by the rate, and four.
    assert_eq!(admitted(&rules, 9, 0, &get("/x", "1.1.1.1")), 5);
    let refused = check(&rules, 0, &get("/x", "1.1.1.1"));
    assert_eq!((refused.status(), refused.decision().retry_after), (429, SECOND / 10));
    // The location's own limits take the place of the server's. Its second zone has no key here, so
    // it does not count.
    assert_eq!(admitted(&rules, 9, 0, &get("/api/x", "1.1.1.1")), 3);
    let keyed =
        [(":path", "/api/x"), (":address", "1.1.1.2"), ("X-Api-Key", "a"), ("Cookie", "sid=b")];
    assert_eq!(admitted(&rules, 9, 0, &keyed), 2);
    // One key for all clients.
    assert_eq!(
        (
            admitted(&rules, 3, 0, &get("/login", "1.1.1.3")),
            check(&rules, 0, &get("/login", "1.1.1.4")).status()
        ),
        (1, 444)
    );
    assert_eq!(admitted(&rules, 9, 0, &get("/dry/x", "1.1.1.1")), 9);
    let counts = rules.counts();
    let dry = counts
        .iter()
        .find(|counts| counts.rule.ends_with("-dry-run"))
        .map(|counts| (counts.allowed, counts.refused));
    assert_eq!(dry, Some((2, 7)));
    // Behind the proxy.
    let behind = [(":path", "/"), (":address", "10.0.0.1"), ("X-Forwarded-For", "1.1.1.9")];
    assert_eq!(
        (admitted(&rules, 9, 0, &behind), admitted(&rules, 9, 0, &get("/", "1.1.1.9"))),
        (5, 0)
    );
}

#[test]
fn what_rules_cannot_express_is_said_with_its_place() {
    let imported = import::nginx(SITE).expect("a configuration");
    let places: Vec<(usize, usize)> =
        imported.remarks.iter().map(|r| (r.place.line, r.place.column)).collect();
    // mime.types; one, which several share; $server_name; the zone of limit_conn; the delay of
    // /api/; the pattern; /dryx; three limit_conn and its status.
    let expected = [
        (3, 1),
        (5, 5),
        (7, 5),
        (8, 5),
        (16, 13),
        (19, 9),
        (20, 9),
        (20, 83),
        (21, 27),
        (21, 46),
        (21, 66),
    ];
    assert_eq!(places, expected, "{:#?}", imported.remarks);
    for import::Remark { place, text } in &imported.remarks {
        assert!(imported.toml.contains(&format!("# {place}: {text}")), "{text}");
    }
}

/// A limit_conn is said with the directive that does the same in nginx.
#[test]
fn limit_conn_is_said_as_a_directive_of_the_module() {
    let imported = import::nginx(SITE).expect("a configuration");
    let said = |line: usize, column: usize| {
        let remark =
            imported.remarks.iter().find(|r| (r.place.line, r.place.column) == (line, column));
        remark.map(|remark| remark.text.clone()).unwrap_or_default()
    };
    assert!(said(8, 5)
        .ends_with("nginx module does: tollbar_conn_zone $binary_remote_addr zone=addr:10m;"));
    assert!(said(21, 27).ends_with("nginx module does: tollbar_conn addr 4;"));
    assert_eq!(said(21, 46), "limit_conn is left out: no limit_conn_zone has the zone \"other\"");
    assert!(said(21, 66).ends_with("has it as: tollbar_conn_status 429;"));
}

/// Two servers may have locations of one path. Rules know no hosts, so the limits of both count.
#[test]
fn locations_of_one_path_add_up() {
    let text =
        "http { limit_req_zone $remote_addr zone=a:1m rate=1r/s; limit_req_zone $remote_addr zone=b:1m rate=1r/s;
        server { location /x/ { limit_req zone=a burst=4 nodelay; } }
        server { location /x/ { limit_req zone=b burst=2 nodelay; } }
    }";
    let imported = import::nginx(text).expect("a configuration");
    let rules = rules(&imported.toml);
    assert_eq!(admitted(&rules, 9, 0, &get("/x/1", "1.1.1.1")), 3);
    assert_eq!(imported.remarks.last().map(|remark| remark.place.line), Some(3));
}

#[test]
fn locations_are_exclusive() {
    // In nginx the requests of /static/ inherit from the server, and not from the location / beside
    // it.
    let text = "http { limit_req_zone $remote_addr zone=z:1m rate=1r/s; server {
        location / { limit_req zone=z burst=1 nodelay; }
        location /static/ { root /s; }
    } }";
    let rules = rules(&import::nginx(text).expect("a configuration").toml);
    assert_eq!(
        (
            admitted(&rules, 9, 0, &get("/", "1.1.1.1")),
            admitted(&rules, 9, 0, &get("/static/x", "1.1.1.1"))
        ),
        (2, 9)
    );
}

#[test]
fn faults_have_lines() {
    for (text, line) in [
        ("http {\n", 1),
        ("http { a b }\n", 1),
        ("\n}", 2),
        ("a;\nb", 2),
        ("\n;", 2),
        ("a \"b", 1),
        ("\n\n{ a; }", 3),
    ] {
        let problems = import::nginx(text).expect_err(text);
        assert_eq!(problems.first().map(|problem| problem.place.line), Some(line), "{text}");
    }
    // A configuration without limits gives a file without rules, and the reader of rules refuses
    // that file.
    let none = import::nginx("events {}").expect("a configuration");
    assert!(read(&none.toml, Format::Toml).is_err());
    let whole = import::nginx("http {\n  limit_req zone=x }").expect_err("no end");
    assert_eq!(whole[0].to_string(), "2:20: \"}\" after \"limit_req\"; expected \";\" or \"{\"");
    // Hostile nesting and quotes.
    assert!(import::nginx(&"a{".repeat(100_000)).is_err());
    let odd =
        import::nginx("http { limit_req_zone \"$http_a\\\"b\" zone=\"x y\":1m rate=0r/s; limit_req zone=nothing; }")
            .expect("a configuration");
    // The zone, the limit, and that no limit is left.
    assert_eq!(odd.remarks.len(), 3, "{odd:#?}");
}
