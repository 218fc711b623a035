//! Importers and files that nobody would write: each gives rules that can be read, or says that
//! they cannot, or faults with places. None panics, and none takes long.

use crate::import::{self, Imported};
use tollbar_rules::{read, Format, Problem};

type Importer = fn(&str) -> Result<Imported, Vec<Problem>>;

const ALL: [(&str, Importer); 6] = [
    ("nginx", import::nginx),
    ("envoy", import::envoy),
    ("limitador", import::limitador),
    ("kong", import::kong),
    ("traefik", |text| import::traefik(text, Format::Yaml)),
    ("traefik in TOML", |text| import::traefik(text, Format::Toml)),
];

/// Files from which the mutants come: each importer's fields at least once.
const SEEDS: [&str; 6] = [
    "http { limit_req_zone $remote_addr$http_x$cookie_y zone=a:1m rate=1r/s; limit_conn_zone $x zone=c:1m; limit_conn c 3;\n server { limit_req zone=a burst=5 nodelay; location = /x { limit_req_dry_run on; limit_req_status 503; limit_req zone=a; } } }",
    "domain: d\ndescriptors:\n  - key: a\n    value: b*\n    rate_limit: { unit: second, requests_per_unit: 5, replaces: [{ name: x }] }\n    shadow_mode: true\n  - key: remote_address\n    rate_limit: { unlimited: true }\n    descriptors:\n      - key: c\n        rate_limit: { unit: day, requests_per_unit: 1 }\n",
    "- match: { prefix: /a }\n  x:\n    stat_prefix: s\n    token_bucket: { max_tokens: 5, tokens_per_fill: 2, fill_interval: 0.5s }\n    filter_enabled: { default_value: { numerator: 100 } }\n    descriptors: [{ entries: [{ key: a, value: b }], token_bucket: { max_tokens: 1, fill_interval: 1s } }]\n",
    "- namespace: n\n  name: m\n  max_value: 5\n  seconds: 60\n  conditions: [\"req.path == '/x'\", \"a != 'b'\"]\n  variables: [u, \"descriptors[0]['v']\"]\n",
    "plugins: [{ name: rate-limiting, config: { second: 5, month: 9, limit_by: header, header_name: X, error_code: 429 } }]\nservices:\n  - name: s\n    routes: [{ name: r, paths: [/a, /b/], methods: [GET], plugins: [{ name: rate-limiting, config: { hour: 1, limit_by: path, path: /c } }] }]\nconsumers: [{ username: u, plugins: [{ name: rate-limiting, config: { day: 3 } }] }]\n",
    "http:\n  routers: { r: { rule: \"Host(`h`) && PathPrefix(`/a`, `/b`) && Method(`GET`)\", middlewares: [m] } }\n  middlewares: { m: { rateLimit: { average: 5, period: 1m30s, burst: 9, sourceCriterion: { ipStrategy: { depth: 1, excludedIPs: [10.0.0.0/8] } } } } }\n",
];

/// Imports the text by each importer, and reads the rules that come out.
fn bears(text: &str) {
    for (name, importer) in ALL {
        match importer(text) {
            Ok(imported) => {
                // The rules load, or the remark of the first place says why not.
                let loads = read(&imported.toml, Format::Toml).is_ok();
                let says = imported.remarks.iter().any(|r| {
                    r.text.starts_with("no limit was found")
                        || r.text.starts_with("the rules cannot be loaded before")
                });
                assert!(loads != says, "{name}: {}", imported.toml);
                // The rules are always TOML: nothing in the configuration ends a comment or a
                // string.
                if let Err(problems) = read(&imported.toml, Format::Toml) {
                    assert!(
                        problems.iter().all(|p| !p.field.is_empty()
                            || p.found.contains(" rules")
                            || p.found.contains(" limits")),
                        "{name}: {problems:#?}"
                    );
                }
                assert!(
                    imported.remarks.iter().all(|r| !r.text.contains(char::is_control)),
                    "{name}: {:#?}",
                    imported.remarks
                );
            }
            Err(problems) => assert!(!problems.is_empty(), "{name}"),
        }
    }
}

/// Numbers by Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }
}

/// Pieces that mean something to one of the importers, or to their syntaxes.
const PIECES: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    ",",
    "\n",
    "\n  ",
    "- ",
    "\"",
    "'",
    "#",
    ";",
    "*a",
    "&a ",
    "!!str ",
    "---\n",
    "<<: ",
    "0",
    "-1",
    "99999999999999999999999",
    "18446744073709551615",
    "1e99",
    "0.0000000000001s",
    "s",
    "`",
    "$",
    "${",
    "/",
    "/**",
    "/:a",
    "\u{0}",
    "\u{202e}",
    "é",
    "\\",
    "true",
    "null",
    "key",
    "[group.x]\nlimit = '1/s'\n",
];

fn mutant(seed: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = seed.chars().collect();
    for _ in 0..=random.below(6) {
        let at = random.below(characters.len());
        let end = (at + random.below(12)).min(characters.len());
        match random.below(4) {
            0 => drop(characters.drain(at..end)),
            1 => {
                let copy: Vec<char> = characters[at..end].to_vec();
                let to = random.below(characters.len());
                characters.splice(to..to, copy);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                characters.splice(at..at, piece.chars());
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn mutants_of_good_files_are_read_or_refused() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..400 {
        for seed in SEEDS {
            bears(&mutant(seed, &mut random));
            if round == 0 {
                bears(seed);
            }
        }
    }
}

#[test]
fn pieces_in_any_order_are_read_or_refused() {
    let mut random = Random(7);
    for _ in 0..400 {
        let text: String =
            (0..random.below(30)).map(|_| PIECES[random.below(PIECES.len())]).collect();
        bears(&text);
    }
}

/// Each would take minutes, gigabytes or the stack, if an importer believed it.
#[test]
fn bombs_are_refused_or_bounded() {
    let deep = 20_000;
    bears(&"[".repeat(deep));
    bears(&"{a: ".repeat(deep));
    bears(&(0..2_000).map(|depth| format!("{}- a:\n", " ".repeat(depth))).collect::<String>());
    bears(&"- ".repeat(deep));
    bears(&"a{".repeat(deep));
    bears(&format!("a = {}", "[".repeat(deep)));
    bears(&"[a.".repeat(deep));
    // A billion laughs.
    let laughs: String =
        (1..30).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{},", n - 1).repeat(9))).collect();
    bears(&format!("a0: &a0 x\n{laughs}"));
    bears(&format!("domain: {}\ndescriptors: []\n", "x".repeat(1 << 20)));
    // More limits than a rules file may have, and names that are all different.
    let descriptors: String = (0..20_000)
        .map(|n| format!("- {{key: k{n}, rate_limit: {{unit: second, requests_per_unit: 1}}}}\n"))
        .collect();
    bears(&format!("domain: d\ndescriptors:\n{descriptors}"));
    bears(&(0..50_000).map(|n| format!("k{n}: {n}\n")).collect::<String>());
    let zones: String = (0..5_000)
        .map(|n| format!("limit_req_zone $a zone=z{n}:1m rate=1r/s; limit_req zone=z{n};"))
        .collect();
    bears(&format!("http {{ {zones} }}"));
    let routes: String =
        (0..5_000).map(|n| format!("- {{name: same, paths: [/p{n}]}}\n")).collect();
    bears(&format!("plugins: [{{name: rate-limiting, config: {{second: 1}}}}]\nroutes:\n{routes}"));
}

/// The text of a configuration cannot add rules, end a comment, or name a rule's table.
#[test]
fn text_stays_text() {
    let evil = "x\\n[group.evil]\\nlimit = '1/s' \\\"";
    let text = format!("domain: d\ndescriptors:\n- key: \"{evil}\"\n  value: \"a.b]{evil}\"\n  rate_limit: {{ unit: second, requests_per_unit: 1 }}\n");
    let imported = import::envoy(&text).expect("YAML");
    let rules =
        read(&imported.toml, Format::Toml).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(rules.rules.len(), 1, "{}", imported.toml);
    let nginx = "http { limit_req_zone $http_a zone='a.b]\n[group.evil]':1m rate=1r/s; limit_req zone='a.b]\n[group.evil]'; location '~ x\n[group.evil]' { limit_req zone=y; } }";
    let imported = import::nginx(nginx).expect("a configuration");
    let rules =
        read(&imported.toml, Format::Toml).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(
        rules.rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>(),
        ["-a-b--all"],
        "{}",
        imported.toml
    );
}
