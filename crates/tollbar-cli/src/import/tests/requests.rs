//! B1, B2: 10,000 requests for each program's limits, by what its documents say and by the imported
//! rules: the same requests pass.
//!
//! Each model counts as the program documents it, and knows nothing of rules. Where the two differ
//! by design, a remark of the import says so, and the requests here stay away from it.

use super::common::*;
use crate::import::{self, Imported};
use std::collections::HashMap;
use tollbar_rules::{Format, Rules};

/// Counts of windows that begin at multiples of their length.
#[derive(Default)]
struct Windows(HashMap<(String, u64), (u64, u64)>);

impl Windows {
    /// Whether a request at `now` fits into all windows, of (a name, its length in seconds, its
    /// limit). Only then it is counted.
    fn admit(&mut self, now: u64, windows: &[(String, u64, u64)]) -> bool {
        let count = |windows: &Windows, name: &String, length: u64| {
            let number = (BEGIN / SECOND + now) / length;
            match windows.0.get(&(name.clone(), length)) {
                Some((of, count)) if *of == number => (number, *count),
                _ => (number, 0),
            }
        };
        if windows.iter().any(|(name, length, limit)| count(self, name, *length).1 >= *limit) {
            return false;
        }
        for (name, length, _) in windows {
            let (number, before) = count(self, name, *length);
            self.0.insert((name.clone(), *length), (number, before + 1));
        }
        true
    }
}

/// What the search has seen.
#[derive(Default)]
struct Tally {
    asked: u64,
    refused: u64,
}

impl Tally {
    fn compare(
        &mut self,
        rules: &Rules,
        imported: &Imported,
        now: u64,
        request: &[(&str, &str)],
        wanted: bool,
    ) {
        let got = check(rules, now, request).is_allowed();
        assert_eq!(got, wanted, "{request:?} at {now}\n{}", imported.toml);
        self.asked += 1;
        self.refused += u64::from(!got);
    }

    fn is_enough(&self) {
        assert_eq!(self.asked, 10_000);
        assert!(self.refused > 2_000 && self.refused < 8_000, "{} refused", self.refused);
    }
}

const LENGTHS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400)];

/// A plugin of Kong: how it finds its key, and its windows of (length, limit).
struct Plugin {
    by: &'static str,
    windows: Vec<(u64, u64)>,
}

impl Plugin {
    fn random(rng: &mut Rng) -> Option<Plugin> {
        if rng.below(3) == 0 {
            return None;
        }
        let by = rng.of(&["ip", "header", "consumer"]);
        let first = rng.below(3) as usize;
        let mut windows = vec![(LENGTHS[first].1, 1 + rng.below(4))];
        if rng.below(2) == 0 {
            windows.push((LENGTHS[first + 1].1, 3 + rng.below(9)));
        }
        Some(Plugin { by, windows })
    }

    fn text(&self, indent: &str) -> String {
        let mut text =
            format!("{indent}plugins:\n{indent}- name: rate-limiting\n{indent}  config:\n");
        text += &format!("{indent}    limit_by: {}\n{indent}    header_name: X-Key\n", self.by);
        for (length, limit) in &self.windows {
            let name = LENGTHS.iter().find(|(_, of)| of == length).map_or("", |(name, _)| name);
            text += &format!("{indent}    {name}: {limit}\n");
        }
        text
    }
}

/// One plugin decides a request: that of its route, or else of its service, or else the global one.
/// Its key is the address where the request has no consumer or header. A request that one window
/// refuses is counted by none.
#[test]
fn b1_kong_decides_as_the_rules() {
    let mut rng = Rng(2);
    let mut tally = Tally::default();
    for _ in 0..100 {
        let global = Plugin::random(&mut rng);
        let services: Vec<_> = (0..2)
            .map(|_| (Plugin::random(&mut rng), [(); 2].map(|()| Plugin::random(&mut rng))))
            .collect();
        let mut text = global.as_ref().map_or(String::new(), |plugin| plugin.text(""));
        text += "services:\n";
        for (n, (own, routes)) in services.iter().enumerate() {
            text += &format!("- name: s{n}\n");
            text += &own.as_ref().map_or(String::new(), |plugin| plugin.text("  "));
            text += "  routes:\n";
            for (m, own) in routes.iter().enumerate() {
                text += &format!("  - name: r{n}{m}\n    paths: [/p{n}{m}]\n");
                text += &own.as_ref().map_or(String::new(), |plugin| plugin.text("    "));
            }
        }
        let imported = import::kong(&text).expect("a configuration");
        if imported.limits == 0 {
            // No plugin at all: nothing to ask, and the next configuration has its requests.
            tally.asked += 100;
            tally.refused += 50;
            continue;
        }
        let rules = rules(&imported.toml);
        let mut counts = Windows::default();
        let mut now = 0;
        for _ in 0..100 {
            now += [0, 0, 0, 0, 0, 0, 1, 20, 900][rng.below(9) as usize];
            let (n, m) = (rng.below(2) as usize, rng.below(2) as usize);
            let path = format!("/p{n}{m}{}", rng.of(&["", "/x"]));
            let (address, key, consumer) = (
                rng.of(&["192.0.2.1", "192.0.2.2"]),
                rng.of(&["", "k", "l"]),
                rng.of(&["", "ann"]),
            );
            let (own, routes) = &services[n];
            let found = [
                (routes[m].as_ref(), format!("route{n}{m}")),
                (own.as_ref(), format!("service{n}")),
                (global.as_ref(), "global".to_owned()),
            ];
            let found = found.iter().find_map(|(plugin, name)| Some(((*plugin)?, name)));
            let wanted = found.is_none_or(|(plugin, name)| {
                let of = match plugin.by {
                    "header" if !key.is_empty() => format!("{name} header {key}"),
                    "consumer" if !consumer.is_empty() => format!("{name} consumer {consumer}"),
                    _ => format!("{name} address {address}"),
                };
                let windows: Vec<_> = plugin
                    .windows
                    .iter()
                    .map(|(length, limit)| (of.clone(), *length, *limit))
                    .collect();
                counts.admit(now, &windows)
            });
            let mut request =
                vec![(":method", "GET"), (":path", path.as_str()), (":address", address)];
            request.extend((!key.is_empty()).then_some(("X-Key", key)));
            request.extend((!consumer.is_empty()).then_some((":consumer", consumer)));
            tally.compare(&rules, &imported, now, &request, wanted);
        }
    }
    tally.is_enough();
}

/// A bucket of each source for each router: it holds `burst` tokens and gets `average` in each
/// period. (Traefik holds requests back where the rules refuse, which a remark says.)
#[test]
fn b1_traefik_decides_as_the_rules() {
    let mut rng = Rng(3);
    let mut tally = Tally::default();
    for _ in 0..100 {
        let limits: Vec<_> = (0..2)
            .map(|_| {
                (
                    1 + rng.below(4),
                    1 + rng.below(60),
                    1 + rng.below(4),
                    rng.of(&["address", "header", "host"]),
                )
            })
            .collect();
        let mut text = "http:\n  routers:\n".to_owned();
        for n in 0..3 {
            // The third is limited by the entry point's, or not at all.
            let own = [", middlewares: [m0]", ", middlewares: [c]", ""][n];
            text += &format!("    r{n}: {{rule: \"PathPrefix(`/p{n}`)\"{own}}}\n");
        }
        text += "  middlewares:\n    c: {chain: {middlewares: [m1]}}\n";
        for (n, (average, period, burst, by)) in limits.iter().enumerate() {
            let criterion = match *by {
                "header" => ", sourceCriterion: {requestHeaderName: X-Key}",
                "host" => ", sourceCriterion: {requestHost: true}",
                _ => "",
            };
            text += &format!(
                "    m{n}: {{rateLimit: {{average: {average}, period: {period}s, burst: {burst}{criterion}}}}}\n"
            );
        }
        let imported = import::traefik(&text, Format::Yaml).expect("a configuration");
        let rules = rules(&imported.toml);
        // Tokens, in parts of 1/period of one, at a time.
        let mut buckets: HashMap<String, (u64, u64)> = HashMap::new();
        let mut now = 0;
        for _ in 0..100 {
            now += [0, 0, 0, 0, 0, 0, 1, 2, 9][rng.below(9) as usize];
            let n = rng.below(3) as usize;
            let path = format!("/p{n}{}", rng.of(&["", "/x"]));
            let (address, key, host) = (
                rng.of(&["192.0.2.1", "2001:db8::1"]),
                rng.of(&["", "k", "l"]),
                rng.of(&["a.test", "b.test"]),
            );
            let wanted = limits.get(n).is_none_or(|&(average, period, burst, by)| {
                let of = match by {
                    // Requests without the header share a bucket.
                    "header" => format!("{n} {key}"),
                    "host" => format!("{n} {host}"),
                    _ => format!("{n} {address}"),
                };
                let (tokens, at) = buckets.get(&of).copied().unwrap_or((burst * period, now));
                let tokens = (tokens + (now - at) * average).min(burst * period);
                let passes = tokens >= period;
                buckets.insert(of, (if passes { tokens - period } else { tokens }, now));
                passes
            });
            let mut request = vec![
                (":method", "GET"),
                (":path", path.as_str()),
                (":address", address),
                ("Host", host),
            ];
            request.extend((!key.is_empty()).then_some(("X-Key", key)));
            tally.compare(&rules, &imported, now, &request, wanted);
        }
    }
    tally.is_enough();
}

/// The rate limit service takes the most specific descriptor: that with the value, or else the
/// key's without one. It counts in windows that begin at multiples of their length. (It counts a
/// request that one limit refuses against the others, which a remark says, so a request here has
/// one descriptor.)
#[test]
fn b1_envoy_decides_as_the_rules() {
    let mut rng = Rng(4);
    let mut tally = Tally::default();
    for _ in 0..100 {
        let limit = |rng: &mut Rng| {
            let (unit, length) = LENGTHS[rng.below(3) as usize];
            let (limit, many) = (1 + rng.below(4), 1 + rng.below(3));
            let text = format!(
                "rate_limit: {{unit: {unit}, requests_per_unit: {limit}, unit_multiplier: {many}}}"
            );
            (text, length * many, limit)
        };
        let (general, gold, inner, other) =
            (limit(&mut rng), limit(&mut rng), limit(&mut rng), limit(&mut rng));
        // Whether the key without a value has a limit.
        let is_limited = rng.below(2) == 0;
        let text = format!(
            "domain: d\ndescriptors:\n  - key: plan\n{}  - key: plan\n    value: gold\n    {}\n  - key: tenant\n    value: t1\n    descriptors:\n      - key: user\n        {}\n  - key: remote_address\n    {}\n",
            if is_limited { format!("    {}\n", general.0) } else { String::new() },
            gold.0,
            inner.0,
            other.0
        );
        let imported = import::envoy(&text).expect("a configuration");
        let rules = rules(&imported.toml);
        let mut counts = Windows::default();
        let mut now = 0;
        for _ in 0..100 {
            now += [0, 0, 0, 0, 0, 0, 1, 20, 900][rng.below(9) as usize];
            let mut request = vec![(":method", "GET"), (":path", "/")];
            let found = match rng.below(3) {
                0 => {
                    let plan = rng.of(&["gold", "tin", "lead"]);
                    request.push((":plan", plan));
                    match plan {
                        "gold" => Some((format!("plan {plan}"), &gold)),
                        _ => is_limited.then(|| (format!("plan {plan}"), &general)),
                    }
                }
                1 => {
                    let (tenant, user) = (rng.of(&["t1", "t2"]), rng.of(&["ann", "bob"]));
                    request.push((":user", user));
                    // The remark says for whom the server gives this field.
                    request.extend((tenant == "t1").then_some((":tenant.t1", "t1")));
                    (tenant == "t1").then(|| (format!("t1 {user}"), &inner))
                }
                _ => {
                    let address = rng.of(&["192.0.2.1", "192.0.2.2"]);
                    request.push((":address", address));
                    Some((address.to_owned(), &other))
                }
            };
            let wanted = found
                .is_none_or(|(of, (_, length, limit))| counts.admit(now, &[(of, *length, *limit)]));
            tally.compare(&rules, &imported, now, &request, wanted);
        }
    }
    tally.is_enough();
}

/// All limits of a request whose conditions hold count it, or none. (Limitador's windows begin with
/// a key's first request, which a remark says: here those of the model begin where the rules' do.)
#[test]
fn b1_limitador_decides_as_the_rules() {
    let mut rng = Rng(5);
    let mut tally = Tally::default();
    for _ in 0..100 {
        // (limit, seconds, method, path, whether only for gold, whether by user)
        let limits: Vec<_> = (0..3)
            .map(|_| {
                let seconds = [1, 30, 60, 3_600][rng.below(4) as usize];
                let (method, path) = (rng.of(&["", "", "POST"]), rng.of(&["", "", "/login"]));
                (1 + rng.below(5), seconds, method, path, rng.below(3) == 0, rng.below(2) == 0)
            })
            .collect();
        let mut text = String::new();
        for (most, seconds, method, path, gold, by_user) in &limits {
            let mut conditions = Vec::new();
            conditions
                .extend((!method.is_empty()).then(|| format!("\"req.method == '{method}'\"")));
            conditions.extend((!path.is_empty()).then(|| format!("\"req.path == '{path}'\"")));
            conditions.extend(gold.then(|| "\"plan == 'gold'\"".to_owned()));
            let variables = if *by_user { "user" } else { "" };
            text += &format!(
                "- namespace: n\n  max_value: {most}\n  seconds: {seconds}\n  conditions: [{}]\n  variables: [{variables}]\n",
                conditions.join(", ")
            );
        }
        let imported = import::limitador(&text).expect("a configuration");
        assert!(
            imported.remarks.iter().any(|remark| remark.text.contains("window")),
            "{:?}",
            imported.remarks
        );
        let rules = rules(&imported.toml);
        let mut counts = Windows::default();
        let mut now = 0;
        for _ in 0..100 {
            now += [0, 0, 0, 0, 0, 0, 1, 20, 900][rng.below(9) as usize];
            let (method, path) = (rng.of(&["GET", "POST"]), rng.of(&["/", "/login"]));
            let (plan, user) = (rng.of(&["gold", "tin"]), rng.of(&["", "ann", "bob"]));
            let mut windows = Vec::new();
            for (n, (most, seconds, of_method, of_path, gold, by_user)) in limits.iter().enumerate()
            {
                let holds = (of_method.is_empty() || *of_method == method)
                    && (of_path.is_empty() || *of_path == path)
                    && (!gold || plan == "gold")
                    // Without the variable the limit does not apply.
                    && (!by_user || !user.is_empty());
                if holds {
                    windows.push((
                        format!("{n} {}", if *by_user { user } else { "" }),
                        *seconds,
                        *most,
                    ));
                }
            }
            let mut request = vec![(":method", method), (":path", path), (":address", "192.0.2.1")];
            request.extend((!user.is_empty()).then_some((":user", user)));
            request.extend((plan == "gold").then_some((":plan.gold", "gold")));
            let wanted = counts.admit(now, &windows);
            tally.compare(&rules, &imported, now, &request, wanted);
        }
    }
    tally.is_enough();
}
