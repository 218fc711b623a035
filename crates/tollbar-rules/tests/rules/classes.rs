//! Classes of requests: the reserve that each leaves to the others.

use crate::common::*;
use tollbar_rules::{explain, lint, read, Field, Format, Options, Rules};

const CLASSED: &str = "
version = 1
[group.a]
key = 'header k'
class = 'field plan | header X-Class'
limit = ['10/h reserve low 8 high 0 usual 5', '100/day']
keys = { gold = ['20/h reserve high 0 usual 5 low 15', '200/day'] }
[shadow.b]
of = 'a'
limit = '10/h reserve low 9 high 0'
";

#[test]
fn a_request_leaves_the_reserve_of_its_class() {
    let rules = rules(CLASSED);
    let of = |key: &'static str, class: (&'static str, &'static str)| {
        admitted(&rules, 30, 0, &[(":path", "/"), ("k", key), class])
    };
    // From class to class one key takes what the class before it left.
    assert_eq!(
        [of("a", ("x-class", "low")), of("a", ("x-class", "usual")), of("a", ("x-class", "high"))],
        [2, 3, 5]
    );
    // The policy of a key has reserves of its own.
    assert_eq!((of("gold", (":plan", "low")), of("gold", (":plan", "high"))), (5, 15));
    let shadow = rules.counts().into_iter().find(|counts| counts.rule == "b").expect("a shadow");
    assert!(shadow.would_refuse > 0, "{shadow:?}");
}

/// No class, an empty one, one that is misspelt, one in other letters, and the number of a class,
/// which a policy takes elsewhere.
#[test]
fn without_a_known_class_the_greatest_reserve_counts() {
    let rules = rules(CLASSED);
    let unknown = [
        ("none", ""),
        ("x-class", ""),
        ("x-class", "hihg"),
        ("x-class", "HIGH"),
        ("x-class", "2"),
        (":plan", "2"),
    ];
    for (n, field) in unknown.into_iter().enumerate() {
        let key = format!("key{n}");
        assert_eq!(admitted(&rules, 30, 0, &[(":path", "/"), ("k", &key), field]), 2, "{field:?}");
    }
    // The server's word comes first in the file, so a client's word does not replace it.
    let both = [(":path", "/"), ("k", "both"), (":plan", "low"), ("x-class", "high")];
    assert_eq!(admitted(&rules, 30, 0, &both), 2);
}

#[test]
fn a_reload_may_change_the_classes() {
    let rules = rules(CLASSED);
    let of = |class| admitted(&rules, 30, 0, &[(":path", "/"), ("k", "a"), ("x-class", class)]);
    assert_eq!(of("low"), 2);
    let other = CLASSED.replace("usual", "bulk").replace("low 8", "low 4");
    assert_eq!(rules.replace(&other, Format::Toml).expect("good rules").changed, ["a"]);
    assert_eq!([of("bulk"), of("low"), of("high")], [3, 1, 4]);
}

/// After a reload the shared table has the new rules' classes. A process that was forked before
/// still decides by the old rules, whose class names the table no longer has.
#[test]
fn old_rules_decide_after_a_reload_that_changes_the_classes() {
    let options = Options { keys: 1000, shared: true, ..Options::default() };
    let rules = Rules::from_text(CLASSED, Format::Toml, &options).expect("rules");
    let mut pipe = [0; 2];
    // SAFETY: two places, which the call writes.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let child = Child::fork(|| {
        let mut byte = 0u8;
        // SAFETY: one byte of this function. The read returns when the parent has reloaded.
        unsafe { libc::read(pipe[0], (&raw mut byte).cast(), 1) };
        let request = [(":path", "/"), ("k", "a"), ("x-class", "usual")]
            .map(|(name, value)| Field::from((name, value)));
        rules.check_at(&request, BEGIN).is_ok_and(|answer| answer.is_allowed())
    });
    let reloaded = rules.replace(&CLASSED.replace("usual", "bulk"), Format::Toml);
    // SAFETY: writes one byte of a string.
    unsafe { libc::write(pipe[1], b"x".as_ptr().cast(), 1) };
    assert!(child.passed());
    assert_eq!(reloaded.expect("good rules").changed, ["a"]);
}

#[test]
fn faults() {
    for (text, expected) in [
        (
            "class = 'header X-Class'\nlimit = '10/h'",
            "3:9: group.a.class: a class, and no limit with classes; expected limit = \"100/s reserve low 20",
        ),
        (
            "limit = '10/h reserve low 5'",
            "3:9: group.a.limit: \"10/h reserve low 5\" in a rule without a class; expected class = \"field NAME\"",
        ),
        ("limit = '10/h reserve low 5'\nclass = 'header a | address'", "4:10: group.a.class: \"header a | address\"; expected header NAME, cookie NAME"),
        ("limit = '10/h reserve low 5'\nclass = 'header a | heder b'", "4:21: group.a.class: \"heder b\"; expected header NAME, cookie NAME"),
        ("limit = '10/h reserve low 5'\nclass = 'path id'", "4:10: group.a.class: \"path id\"; expected path NAME with"),
        ("limit = '10/h reserve low 5'\nclass = 7", "4:9: group.a.class: 7; expected a string"),
        ("limit = '10/h reserve low 10'\nclass = 'field c'", "3:27: group.a.limit: \"10/h reserve low 10\": a policy"),
        (
            "limit = ['10/h reserve low 5', '20/day reserve lwo 5']\nclass = 'field c'",
            "3:32: group.a.limit: \"20/day reserve lwo 5\" with other classes than \"10/h reserve low 5\"; expected the same",
        ),
        (
            "limit = '10/h reserve low 5'\nclass = 'field c'\nkeys = { '1.1.1.1' = '20/h' }",
            "5:22: group.a.keys.1.1.1.1: \"20/h\" with other classes than \"10/h reserve low 5\"; expected the same",
        ),
        (
            "limit = '10/h'\n[shadow.b]\nof = 'a'\nlimit = '9/h reserve low 5'",
            "6:9: shadow.b.limit: \"9/h reserve low 5\" in a rule without a class",
        ),
    ] {
        let found = read(&format!("version = 1\n[group.a]\n{text}"), Format::Toml).err().unwrap_or_default();
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\n{found:#?}\nexpected {expected}");
    }
}

#[test]
fn explain_says_the_class_and_lint_who_chooses_it() {
    let file = read(CLASSED, Format::Toml).expect("good rules");
    for (field, expected) in [
        (("x-class", "high"), "; of class high (field plan | header x-class)\n"),
        (("none", "x"), "; of class low, which has the greatest reserve, because it names none (field plan"),
        ((":plan", "a b"), "; of class low, which has the greatest reserve, because a\\x20b is no class (field plan"),
    ] {
        let request =
            [(":path", "/"), ("k", "a"), field].map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes()));
        let text = explain(&file, &request);
        assert!(text.contains(expected), "{text}");
    }
    let found: Vec<String> = lint(&file).iter().map(ToString::to_string).collect();
    let note = "5:9: note: a: a client can name the class with the least reserve (field plan | header x-class); \"field NAME\"";
    assert!(found.iter().any(|one| one.starts_with(note)), "{found:#?}");
}

/// The metrics count each refusal for a class's reserve, and each refusal by a ban, once.
#[test]
fn c11_metrics_by_reason() {
    let text =
        "version = 1\n[group.plan]\nkey = 'header k'\nclass = 'header class'\nlimit = '10/h reserve low 8 high 0'\n\
                [group.login]\nlimit = '3/h ban 1d after 3'\nkey = 'address'\n";
    let rules = rules(text);
    let get = |k, class, address| {
        admitted(
            &rules,
            10,
            0,
            &[(":path", "/"), ("k", k), ("class", class), (":address", address)],
        )
    };
    // The reserve refuses eight, and leaves the login's permits alone.
    assert_eq!(get("a", "low", "9.9.9.1"), 2);
    assert_eq!((rules.reserved(), rules.banned()), (8, 0));
    // Three pass, two exceed the rate, the next one begins the ban, and four more are banned.
    assert_eq!(get("b", "high", "9.9.9.2"), 3);
    assert_eq!((rules.reserved(), rules.banned()), (8, 5));
    let mut out = vec![0; 8192];
    let length =
        tollbar_rules::metrics(&[("site", &rules)], tollbar::metrics::Format::Prometheus, &mut out);
    let text = String::from_utf8(out[..length].to_vec()).expect("UTF-8");
    for line in
        ["{limit=\"site\",reason=\"banned\"} 5\n", "{limit=\"site\",reason=\"reserve\"} 8\n"]
    {
        assert!(text.contains(&format!("tollbar_rules_reasons_total{line}")), "{text}");
    }
}
