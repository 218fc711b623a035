//! What shadows count: the requests that they would have decided otherwise than their rules.

use crate::common::*;
use tollbar::metrics::Format as Text;
use tollbar_rules::{metrics, Format, Options, RuleCounts, Rules};

const FILE: &str = "version = 1
[group.site]
limit = '3/h'
exempt = ['9.9.9.9']
[group.other]
path = '/other'
limit = '1/h'
[shadow.strict]
of = 'site'
limit = '1/h'
[shadow.loose]
of = 'site'
limit = '4/h'
[shadow.whole]
of = 'site'
key = 'all'
limit = '1/forever'
";

fn of(rules: &Rules, name: &str) -> RuleCounts {
    rules.counts().into_iter().find(|counts| counts.rule == name).expect("a rule of that name")
}

fn disagreements(rules: &Rules, name: &str) -> (u64, u64) {
    let counts = of(rules, name);
    (counts.would_refuse, counts.would_allow)
}

#[test]
fn a_disagreement_is_an_admission_or_a_refusal_by_the_shadows_own_rule() {
    let rules = rules(FILE);
    // Three are admitted. Of these `strict` would have refused two. Of the two that `site` refuses
    // `loose` would have admitted one.
    assert_eq!(admitted(&rules, 5, 0, &get("/", "1.1.1.1")), 3);
    assert_eq!(
        [
            disagreements(&rules, "strict"),
            disagreements(&rules, "loose"),
            disagreements(&rules, "whole")
        ],
        [(2, 0), (0, 1), (2, 0)]
    );
    assert_eq!(disagreements(&rules, "site"), (0, 0));
    // Another rule refuses the second request, so the shadows of `site` are not asked whether they
    // agree with it.
    assert_eq!(admitted(&rules, 2, 0, &get("/other", "2.2.2.2")), 1);
    assert_eq!([disagreements(&rules, "strict"), disagreements(&rules, "loose")], [(2, 0), (0, 1)]);
    // The key is exempt from the rule. A shadow with a key of its own is about it all the same.
    let before = disagreements(&rules, "whole");
    assert_eq!(admitted(&rules, 2, 0, &get("/", "9.9.9.9")), 2);
    assert_eq!(disagreements(&rules, "whole"), (before.0 + 2, 0));
    assert_eq!(of(&rules, "site").exempt, 2);
}

/// C2: a shadow is charged what its limit would be charged in the place of its rule's. Requests
/// that another rule refuses do not reach it.
#[test]
fn c2_a_shadow_decides_on_what_the_other_rules_admit() {
    let with_shadow = "version = 1
[group.site]
limit = '30/min'
[group.blog]
path = '/blog/**'
limit = '2/min'
[shadow.strict]
of = 'site'
limit = '10/min'
";
    let enforced = "version = 1
[group.site]
limit = '10/min'
[group.blog]
path = '/blog/**'
limit = '2/min'
";
    let (shadowed, enforced) = (rules(with_shadow), rules(enforced));
    for all in [&shadowed, &enforced] {
        assert_eq!(admitted(all, 20, 0, &get("/blog/1", "1.1.1.1")), 2);
        assert_eq!(admitted(all, 5, 0, &get("/", "1.1.1.1")), 5);
    }
    assert_eq!((of(&shadowed, "strict").allowed, of(&shadowed, "strict").refused), (7, 0));
    assert_eq!(of(&enforced, "site").refused, 0);
    // 23 more fill the site's own limit. A looser shadow decides on what only its rule refuses, and
    // not on what another rule refuses, too.
    let loose = rules(&with_shadow.replace("'10/min'", "'40/min'"));
    assert_eq!(admitted(&loose, 31, 0, &get("/", "1.1.1.1")), 30);
    assert_eq!((of(&loose, "strict").allowed, disagreements(&loose, "strict")), (31, (0, 1)));
    assert_eq!(admitted(&loose, 5, 0, &get("/blog/1", "1.1.1.1")), 0);
    assert_eq!(of(&loose, "strict").allowed, 36);
    let both = rules(&with_shadow.replace("'10/min'", "'40/min'").replace("'2/min'", "'1/h'"));
    assert_eq!(admitted(&both, 30, 0, &get("/", "1.1.1.1")), 30);
    // The site's limit refuses, so the blog's is not charged, and would admit each.
    assert_eq!(admitted(&both, 5, 0, &get("/blog/1", "1.1.1.1")), 0);
    assert_eq!(of(&both, "strict").allowed, 35);
}

#[test]
fn counts_stay_over_reloads_and_a_new_rule_begins_at_zero() {
    let rules = rules(FILE);
    assert_eq!(admitted(&rules, 5, 0, &get("/", "1.1.1.1")), 3);
    rules.replace(&FILE.replace("'3/h'", "'5/h'"), Format::Toml).expect("good rules");
    assert_eq!(disagreements(&rules, "strict"), (2, 0));
    // More names than there are numbers, each a while in force, so numbers come again.
    for n in 0..300 {
        let text = FILE.replace("strict", &format!("strict{n}"));
        rules.replace(&text, Format::Toml).unwrap_or_else(|error| panic!("{n}: {error}"));
        let name = format!("strict{n}");
        assert_eq!(disagreements(&rules, &name), (0, 0), "{n}");
        let address = format!("3.3.{}.{}", n / 200, n % 200);
        assert_eq!(admitted(&rules, 2, 0, &get("/", &address)), 2);
        assert_eq!(disagreements(&rules, &name), (1, 0), "{n}");
    }
}

/// The child's requests count in the parent, as the workers of a server do.
#[test]
fn processes_that_share_rules_share_their_counts() {
    let options = Options { shared: true, ..Options::default() };
    let rules = Rules::from_text(FILE, Format::Toml, &options).expect("rules");
    // SAFETY: the child decides and ends, and runs nothing else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        admitted(&rules, 5, 0, &get("/", "1.1.1.1"));
        check(&rules, 0, &get("/", "9.9.9.9"));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(disagreements(&rules, "strict"), (2, 0));
    assert_eq!(
        (of(&rules, "site").allowed, of(&rules, "site").refused, of(&rules, "site").exempt),
        (3, 2, 1)
    );
}

#[test]
fn metrics_have_a_series_by_rule_and_kind_and_no_key() {
    let rules = rules(FILE);
    let text = |format| {
        let mut out = vec![0; 8192];
        let length = metrics(&[("a\"b", &rules)], format, &mut out);
        assert_eq!(metrics(&[("a\"b", &rules)], format, &mut []), length);
        String::from_utf8(out[..length].to_vec()).expect("UTF-8")
    };
    let before = text(Text::Prometheus);
    for _ in 0..10 {
        check(&rules, 0, &get("/", "1.1.1.1"));
    }
    let after = text(Text::Prometheus);
    let changed: Vec<&str> =
        after.lines().filter(|line| !before.lines().any(|other| other == *line)).collect();
    assert_eq!(
        changed,
        [
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"site\",mode=\"enforced\",verdict=\"allowed\"} 3",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"site\",mode=\"enforced\",verdict=\"refused\"} 7",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"strict\",mode=\"shadow\",verdict=\"allowed\"} 1",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"strict\",mode=\"shadow\",verdict=\"refused\"} 9",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"loose\",mode=\"shadow\",verdict=\"allowed\"} 4",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"loose\",mode=\"shadow\",verdict=\"refused\"} 6",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"whole\",mode=\"shadow\",verdict=\"allowed\"} 1",
            "tollbar_rule_decisions_total{limit=\"a\\\"b\",rule=\"whole\",mode=\"shadow\",verdict=\"refused\"} 9",
            "tollbar_shadow_disagreements_total{limit=\"a\\\"b\",rule=\"strict\",of=\"site\",would=\"refuse\"} 2",
            "tollbar_shadow_disagreements_total{limit=\"a\\\"b\",rule=\"loose\",of=\"site\",would=\"allow\"} 1",
            "tollbar_shadow_disagreements_total{limit=\"a\\\"b\",rule=\"whole\",of=\"site\",would=\"refuse\"} 2",
        ]
    );
    assert!(
        after.contains("# TYPE tollbar_shadow_disagreements_total counter\n")
            && !after.contains("1.1.1.1")
    );
    let open = text(Text::OpenMetrics);
    assert!(
        open.contains("# TYPE tollbar_shadow_disagreements counter\n") && open.ends_with("# EOF\n")
    );
}
