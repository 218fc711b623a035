//! A9: keys that begin anew, by a call and by the word `reset` of a reloaded file.

use crate::common::*;
use tollbar_rules::{Field, Format, ResetError, Rules};

const FILE: &str = "version = 1
[group.all]
limit = ['2/h', '3/day']
[group.all.keys]
'2.2.2.2' = ['3/h', '3/day']
[group.log]
path = '/log'
limit = '2/h algo sliding-log'
[group.month]
path = '/month'
limit = '2/month'
[group.joined]
path = '/joined'
key = ['address', 'header X-A | nothing']
limit = '2/h'
[route.id]
path = '/users/:id'
key = 'path id'
limit = '2/h'
";

/// Requests until one is refused, and the name of the rule that refuses it.
fn use_up(rules: &Rules, path: &str, address: &str) -> (u32, String) {
    let mut passed = 0;
    loop {
        let answer = rules.check(&get(path, address).map(Field::from)).expect("a decision");
        if !answer.is_allowed() {
            return (passed, answer.rule().unwrap_or_default().to_owned());
        }
        passed += 1;
    }
}

#[test]
fn a9_a_key_of_a_rule_begins_anew_and_no_other_does() {
    let rules = rules(FILE);
    for address in ["1.1.1.1", "2.2.2.2", "3.3.3.3"] {
        use_up(&rules, "/", address);
    }
    for (key, passes) in [("1.1.1.1", 2), ("2.2.2.2", 3), ("[::ffff:1.1.1.1]:80", 2)] {
        assert_eq!(rules.reset("all", Some(key)), Ok(true), "{key}");
        let address = if key.starts_with('[') { "1.1.1.1" } else { key };
        assert_eq!(use_up(&rules, "/", address), (passes, "all".to_owned()), "{key}");
        assert_eq!(use_up(&rules, "/", "3.3.3.3").0, 0);
    }
    // One that has no state.
    assert_eq!(rules.reset("all", Some("9.9.9.9")), Ok(true));
}

#[test]
fn a9_all_keys_of_a_rule_begin_anew_under_every_algorithm() {
    // The rule `all` would refuse first.
    let alone = FILE
        .replace("limit = ['2/h', '3/day']", "limit = ['200/h', '300/day']")
        .replace("['3/h', '3/day']", "['300/h', '300/day']");
    let rules = rules(&alone);
    for (rule, path) in
        [("log", "/log"), ("month", "/month"), ("joined", "/joined"), ("id", "/users/7")]
    {
        for address in ["1.1.1.1", "2.2.2.2"] {
            use_up(&rules, path, address);
        }
        for _ in 0..3 {
            assert_eq!(rules.reset(rule, None), Ok(true), "{rule}");
            // More if a month ends meanwhile.
            let (passed, refusing) = use_up(&rules, path, "1.1.1.1");
            assert!(passed >= 2 && refusing == rule, "{rule}: {passed}, {refusing}");
        }
    }
    for (rule, key, path) in
        [("log", "1.1.1.1", "/log"), ("month", "1.1.1.1", "/month"), ("id", "7", "/users/7")]
    {
        assert_eq!(rules.reset(rule, Some(key)), Ok(true), "{rule}");
        assert!(use_up(&rules, path, "1.1.1.1").0 >= 2, "{rule}");
    }
}

#[test]
fn a9_keys_with_a_policy_of_their_own_begin_anew_with_all() {
    let rules = rules(FILE);
    assert_eq!(use_up(&rules, "/", "2.2.2.2").0, 3);
    assert_eq!(rules.reset("all", None), Ok(true));
    assert_eq!(use_up(&rules, "/", "2.2.2.2").0, 3);
}

#[test]
fn a9_what_cannot_be_reset_is_named() {
    let rules = rules(FILE);
    let of = |rule, key| rules.reset(rule, key).expect_err("an error");
    assert_eq!(of("none", None), ResetError::NoSuchRule("none".to_owned()));
    assert_eq!(
        of("none", Some("1.1.1.1")).to_string(),
        "no rule \"none\"; expected the name of a rule in force"
    );
    assert_eq!(
        of("all", Some("ann")).to_string(),
        "\"ann\"; expected an address, which the rule's key is"
    );
    assert_eq!(of("all", Some("")), ResetError::NotAnAddress(String::new()));
    assert_eq!(of("joined", Some("1.1.1.1")), ResetError::NoText);
    assert_eq!(of("id", Some("")), ResetError::NoText);
}

#[test]
fn a9_a_reload_with_another_word_begins_a_rule_anew() {
    let file = |reset: &str, limit: &str| {
        format!("version = 1\n[group.a]\nlimit = '{limit}'\n{reset}[group.b]\npath = '/b'\nlimit = '1/h'\n")
    };
    let rules = rules(&file("", "2/h"));
    use_up(&rules, "/", "1.1.1.1");
    // A raised rate gives a key that has none left nothing at once, and the word does.
    assert_eq!(rules.replace(&file("", "50/h"), Format::Toml).expect("a reload").changed, ["a"]);
    assert_eq!(use_up(&rules, "/", "1.1.1.1").0, 0);
    let reloaded =
        rules.replace(&file("reset = 'incident 12'\n", "50/h"), Format::Toml).expect("a reload");
    assert_eq!((reloaded.anew, reloaded.changed), (vec!["a".to_owned()], vec![]));
    assert_eq!(use_up(&rules, "/", "1.1.1.1"), (50, "a".to_owned()));
    // The same word again is none.
    assert_eq!(
        rules
            .replace(&file("reset = 'incident 12'\n", "50/h"), Format::Toml)
            .expect("a reload")
            .anew,
        Vec::<String>::new()
    );
    assert_eq!(use_up(&rules, "/", "1.1.1.1").0, 0);
    assert_eq!(
        rules
            .replace(&file("reset = 'incident 13'\n", "3/h"), Format::Toml)
            .expect("a reload")
            .anew,
        ["a"]
    );
    assert_eq!(use_up(&rules, "/", "1.1.1.1").0, 3);
}
