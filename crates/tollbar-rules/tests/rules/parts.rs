//! Further limits of a rule, plans, hosts and times.

use crate::common::*;
use tollbar_rules::{Format, Rules};

/// Who decides on so many requests, one after the other.
fn deciders(rules: &Rules, n: usize, request: &[(&str, &str)]) -> Vec<(bool, String)> {
    let of = |_| {
        let answer = check(rules, 0, request);
        (answer.is_allowed(), answer.rule().unwrap_or("").to_owned())
    };
    (0..n).map(of).collect()
}

const LOGIN: &str = "version = 1\n[route.login]\npath = '/login'\nmethod = 'POST'\nlimit = '5/h'\n\
    [route.login.limits.account]\nkey = 'field account'\nlimit = '3/h'\nmissing = 'allow'\nstatus = 423\n\
    [route.login.limits.all]\nkey = 'all'\nlimit = '7/h'\nstatus = 503\nbody = 'busy'\n";

#[test]
fn a_route_has_several_limits_with_keys_of_their_own() {
    let rules = rules(LOGIN);
    let post = |address, account| {
        check(
            &rules,
            0,
            &[
                (":method", "POST"),
                (":path", "/login"),
                (":address", address),
                (":account", account),
            ],
        )
    };
    let said = |address, account| {
        let answer = post(address, account);
        (answer.status(), answer.rule().unwrap_or("").to_owned())
    };
    assert_eq!(
        [said("1.1.1.1", "ann").0, said("2.2.2.2", "ann").0, said("3.3.3.3", "ann").0],
        [200; 3]
    );
    assert_eq!(said("4.4.4.4", "ann"), (423, "login.account".to_owned()));
    // Three have passed, and the refusal has charged nothing. Without an account that limit says
    // nothing.
    assert_eq!((0..4).filter(|_| post("5.5.5.5", "").is_allowed()).count(), 4);
    assert_eq!(said("5.5.5.5", ""), (503, "login.all".to_owned()));
    let get = [(":method", "GET"), (":path", "/login"), (":address", "5.5.5.5")];
    assert_eq!(deciders(&rules, 1, &get), [(true, String::new())]);
    let counts = rules.counts();
    let names: Vec<&str> = counts.iter().map(|counts| counts.rule.as_str()).collect();
    assert_eq!(names, ["login", "login.account", "login.all"]);
    assert_eq!((counts[1].refused, counts[1].missing, counts[2].refused), (1, 5, 1));
    // A name of the file for one of them: as other rules.
    assert_eq!(rules.reset("login.all", None), Ok(true));
    assert!(post("6.6.6.6", "").is_allowed());
}

#[test]
fn one_route_is_limited_in_requests_and_in_tokens() {
    let rules = rules(
        "version = 1\n[route.chat]\npath = '/chat'\nkey = 'header k'\nlimit = ['5/h', '100/day']\n\
         [route.chat.limits.tokens]\nlimit = '1000/h'\ncost = 'field tokens'\n[shadow.less]\nof = 'chat.tokens'\nlimit = '500/h'\n",
    );
    let ask = |key: &'static str, tokens: &'static str| {
        deciders(&rules, 1, &[(":path", "/chat"), ("k", key), (":tokens", tokens)]).remove(0)
    };
    assert_eq!(ask("a", "999"), (true, "chat.tokens".to_owned()));
    assert_eq!(ask("a", "2"), (false, "chat.tokens".to_owned()));
    for left in 1..=5 {
        assert!(ask("b", "1").0, "{left}");
    }
    assert_eq!(ask("b", "1"), (false, "chat".to_owned()));
    assert_eq!(rules.counts()[2].would_refuse, 1);
}

const PLANS: &str = "version = 1\n[group.api]\nkey = 'header k'\nlimit = ['2/h', '10/day']\nplan = 'field plan | header x-plan'\n\
    [group.api.plans]\npro = ['4/h', '20/day']\n[group.api.plans.top]\nlimit = ['6/h', '60/day']\nstatus = 402\n\
    [group.api.plans.top.keys]\nbig = ['8/h', '80/day']\n[group.api.keys]\nann = 'pro'\neve = ['1/h', '1/day']\n";

#[test]
fn a_request_names_its_plan() {
    let rules = rules(PLANS);
    let most = |key: &'static str, more: &[(&'static str, &'static str)]| {
        let mut request = vec![(":path", "/"), ("k", key)];
        request.extend(more);
        admitted(&rules, 20, 0, &request)
    };
    assert_eq!(most("a", &[]), 2);
    assert_eq!(most("b", &[(":plan", "pro")]), 4);
    assert_eq!(most("c", &[(":plan", "top")]), 6);
    assert_eq!(most("d", &[("X-Plan", "top")]), 6);
    // The first source that says something; an unknown plan, and two of them, are none.
    assert_eq!(most("e", &[(":plan", "pro"), ("X-Plan", "top")]), 4);
    assert_eq!(most("f", &[("X-Plan", "best")]), 2);
    assert_eq!(most("g", &[("X-Plan", "pro"), ("X-Plan", "top")]), 2);
    // Keys with the policies of a plan, or their own.
    assert_eq!((most("ann", &[]), most("eve", &[]), most("big", &[(":plan", "top")])), (4, 1, 8));
    let refused = check(&rules, 0, &[(":path", "/"), ("k", "c"), (":plan", "top")]);
    assert_eq!((refused.rule(), refused.status()), (Some("api.top"), 402));
}

/// "Per tenant for each user": a part of a joined key names the plan.
#[test]
fn a_part_of_a_joined_key_has_its_policy() {
    let rules = rules(
        "version = 1\n[group.user]\npath = '/t/:tenant/**'\nkey = ['path tenant', 'field user']\nlimit = '3/h'\nplan = 'path tenant'\n\
         plans = { acme = '5/h' }\n[group.user.limits.country]\nkey = ['field country', 'field user']\nlimit = '9/h'\nplan = 'field country'\nplans = { XX = '1/h' }\nmissing = 'allow'\n",
    );
    let most = |path: &'static str, user: &'static str, country: &'static str| {
        admitted(&rules, 20, 0, &[(":path", path), (":user", user), (":country", country)])
    };
    assert_eq!((most("/t/acme/x", "ann", ""), most("/t/acme/x", "bob", "")), (5, 5));
    assert_eq!((most("/t/other/x", "ann", ""), most("/t/other/x", "ann", "")), (3, 0));
    assert_eq!((most("/t/acme/x", "cid", "XX"), most("/t/acme/x", "cid", "DE")), (1, 4));
}

#[test]
fn a_rule_is_for_a_host() {
    let rules = rules(
        "version = 1\n[group.site]\nkey = 'all'\nlimit = '100/h'\n[group.admin]\nhost = 'admin.example.com'\nkey = 'all'\nlimit = '2/h'\n\
         [route.wild]\npath = '/x'\nhost = '*.example.com'\nkey = 'all'\nlimit = '9/h'\n[route.one]\npath = '/x'\nhost = ['a.example.com', 'localhost']\nkey = 'all'\nlimit = '8/h'\n\
         [route.any]\npath = '/x'\nmethod = 'GET'\nkey = 'all'\nlimit = '7/h'\n",
    );
    let left = |path: &'static str, more: &[(&'static str, &'static str)]| {
        let mut request = vec![(":method", "GET"), (":path", path)];
        request.extend(more);
        let answer = check(&rules, 0, &request);
        format!("{} {}", answer.rule().unwrap_or(""), answer.decision().remaining)
    };
    assert_eq!(left("/", &[("Host", "ADMIN.example.com.:8443")]), "admin 1");
    assert_eq!(left("/", &[("host", "www.example.com")]), "site 98");
    // The server's word goes before the header, as does the target's host.
    assert_eq!(
        left("/", &[("Host", "admin.example.com"), (":host", "www.example.com")]),
        "site 97"
    );
    assert_eq!(left("http://admin.example.com/y", &[("Host", "www.example.com")]), "admin 0");
    // One of several: nobody knows which the server takes.
    assert_eq!(left("/", &[("Host", "www"), ("Host", "admin.example.com")]), "admin 0");
    // One host is nearer than a domain, and that nearer than a method.
    assert_eq!(left("/x", &[("Host", "a.example.com")]), "one 7");
    assert_eq!(left("/x", &[("Host", "b.example.com")]), "wild 8");
    assert_eq!(left("/x", &[("Host", "other")]), "any 6");
    assert_eq!(left("/x", &[]), "any 5");
}

/// `BEGIN` is Friday, 2025-03-14, 00:00 UTC, in the tables' time.
#[test]
fn a_rule_counts_at_its_times() {
    let rules = rules(
        "version = 1\n[group.all]\nkey = 'all'\nlimit = '0/s'\nwhen = 'fri 02:00-04:00, sat, zone Europe/Berlin'\nstatus = 503\nbody = 'maintenance'\n\
         [route.health]\npath = '/health'\nreplaces = 'all'\n",
    );
    let at = |now| {
        let answer = check(&rules, now, &[(":path", "/")]);
        (answer.status(), answer.decision().retry_after)
    };
    let wait = |seconds| (503, seconds * SECOND);
    let hour = 3600;
    assert_eq!(at(hour - 1), (200, 0));
    assert_eq!(at(hour), wait(2 * hour));
    assert_eq!(at(3 * hour - 1), wait(1));
    assert_eq!(at(3 * hour), (200, 0));
    assert_eq!(at(23 * hour + 5), wait(24 * hour - 5));
    assert_eq!(at(47 * hour), (200, 0));
    assert!(check(&rules, hour, &[(":path", "/health")]).is_allowed());
}

#[test]
fn a_limit_follows_a_schedule() {
    let rules = rules(
        "version = 1\n[group.all]\nkey = 'all'\nlimit = ['1000/day', '5/h, mon-fri 02:00-04:00 2/h, sat 0/s, zone Europe/Berlin']\n",
    );
    let hour = 3600;
    let most = |now| admitted(&rules, 9, now, &[(":path", "/")]);
    assert_eq!((most(0), most(0)), (5, 0));
    // Each policy has a count of its own, and the first one's goes on after the second's.
    assert!(check(&rules, hour - 60, &[(":path", "/")]).is_allowed());
    assert_eq!((most(hour), most(2 * hour), most(3 * hour)), (2, 2, 5));
    let refused = check(&rules, 23 * hour + 1, &[(":path", "/")]);
    assert_eq!((refused.status(), refused.decision().retry_after), (429, (24 * hour - 1) * SECOND));
    assert_eq!(refused.policy().map(|policy| policy.limit), Some(0));
    assert_eq!(rules.set().rules()[0].limits.len(), 4);
    // A reload to other times keeps what the policies have counted.
    assert_eq!(admitted(&rules, 3, 30 * 86_400, &[(":path", "/")]), 3);
    let other =
        "version = 1\n[group.all]\nkey = 'all'\nlimit = ['1000/day', '5/h, sun 10:00-14:00 2/h']\n";
    rules.replace(other, Format::Toml).expect("rules");
    assert_eq!(most(30 * 86_400), 2);
}

#[test]
fn without_a_given_time_the_system_s_clock_decides() {
    let always = rules("version = 1\n[group.a]\nkey = 'all'\nlimit = '0/s'\nwhen = 'mon-sun'\n");
    let request = [tollbar_rules::Field::from((":path", "/"))];
    assert!(!always.check(&request).expect("a sound table").is_allowed());
}
