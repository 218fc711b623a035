//! A reload while requests are decided: the new set as a whole, with every key's state, or the old
//! one.

use crate::common::*;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tollbar_rules::{Format, LoadError, Options, Rules};

/// Two files in turn. Each marks its refusals, and `extra` and `tail` are in one of them only. Both
/// give `changing` one rate and one burst in other words: a key whose debt a reload makes shorter
/// takes another slot, and once all of its slots are taken it loses permits (docs/table.md).
fn variant(odd: bool) -> String {
    let (mark, limit, other, extra) = if odd {
        ("odd", "1000/h", "4000/h", "[group.extra]\npath = '/x'\nlimit = '3/h'\nbody = 'odd'\nstatus = 431\n[group.extra.keys]\n'9.9.9.9' = '7/h'\n")
    } else {
        (
            "even",
            "2000/2h burst 1000",
            "4000/h burst 3999",
            "[group.tail]\npath = '/x'\nlimit = '4/h'\nbody = 'even'\nstatus = 430\n",
        )
    };
    let status = if odd { 431 } else { 430 };
    format!(
        "version = 1\nstatus = {status}\nbody = '{mark}'\n{extra}
        [group.quota]\npath = '/quota'\nlimit = '1000/forever'\n
        [group.changing]\npath = '/changing'\nlimit = ['{limit}', '{other}']\n
        [group.open]\npath = '/open'\nlimit = '1000000000/s'\n"
    )
}

/// Ends the threads, also if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// 10^4 reloads beside three threads of requests. Every third file is bad.
#[test]
fn reloads_under_load_are_never_torn_and_lose_no_state() {
    const RELOADS: u64 = 10_000;
    let rules = Rules::from_text(
        &variant(true),
        Format::Toml,
        &Options { keys: 1000, ..Options::default() },
    )
    .expect("rules");
    let (stop, checked, quota, changing) =
        (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let good = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (rules, stop, checked, quota, changing) =
                (&rules, &stop, &checked, &quota, &changing);
            scope.spawn(move || {
                let mut n = thread;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    let path = ["/quota", "/changing", "/x", "/open"][n % 4];
                    let answer = check(rules, 0, &get(path, "1.1.1.1"));
                    // The set of an answer is one file's: generations alternate between the two.
                    let (status, body) =
                        if answer.generation() % 2 == 1 { (431, "odd") } else { (430, "even") };
                    match (path, answer.is_allowed()) {
                        ("/quota", true) => drop(quota.fetch_add(1, Ordering::Relaxed)),
                        ("/changing", true) => drop(changing.fetch_add(1, Ordering::Relaxed)),
                        ("/open", allowed) => assert!(allowed, "a reload refused a request"),
                        (_, true) => {}
                        (path, false) => {
                            assert_eq!((answer.status(), answer.body()), (status, body), "{path}");
                            let rule = answer.rule().unwrap_or("");
                            let own = if status == 431 { "extra" } else { "tail" };
                            assert!(
                                rule == path.trim_start_matches('/')
                                    || (path == "/x" && rule == own),
                                "{path} {rule} {status}"
                            );
                        }
                    }
                    checked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stop = StopOnDrop(&stop);
        for reload in 0..RELOADS {
            let odd = good.load(Ordering::Relaxed) % 2 == 1;
            if reload % 3 == 2 {
                let before = rules.set().generation();
                let bad = rules
                    .replace(&variant(odd).replace("'1000/forever'", "'1000/never'"), Format::Toml);
                assert!(matches!(bad, Err(LoadError::Problems(..))), "{bad:?}");
                assert_eq!(rules.set().generation(), before);
            } else {
                rules
                    .replace(&variant(odd), Format::Toml)
                    .unwrap_or_else(|error| panic!("reload {reload}: {error}"));
                good.fetch_add(1, Ordering::Relaxed);
            }
        }
        // The threads have had time for all permits, however busy the machine is.
        while checked.load(Ordering::Relaxed) < 20_000 {
            std::thread::yield_now();
        }
    });
    assert_eq!(quota.into_inner(), 1000);
    assert_eq!(changing.into_inner(), 1000);
}

/// A1: a reload that raises or lowers a rate and its burst beside two threads of requests, in a
/// table that has all the keys for which it was made. The clock stands still, so each key gets the
/// 40 permits that it had left: no more, and no request is refused before.
#[test]
fn a1_a_reload_under_load_refuses_nobody_who_has_permits_left() {
    reloads_under_load(&["100/h burst 100", "200/h burst 200"], 0);
}

/// S28: with room for windows and logs the same holds for a reload that changes the algorithm.
#[test]
fn a_reload_under_load_changes_the_algorithm_and_refuses_nobody_who_has_permits_left() {
    let limits = [
        "100/h burst 100",
        "200/h algo sliding-window segments 20",
        "90/h algo sliding-log",
        "80/min algo sliding-window segments 6",
    ];
    reloads_under_load(&limits, 100);
}

fn reloads_under_load(limits: &[&str], room: u32) {
    const KEYS: usize = 2_000;
    const LEFT: usize = 40;
    let file = |n: usize| {
        let limit = limits[n % limits.len()];
        format!("version = 1\n[group.a]\nkey = 'address'\nlimit = '{limit}'\n")
    };
    let options = Options { keys: KEYS as u64, room, ..Options::default() };
    let rules = Rules::from_text(&file(0), Format::Toml, &options).expect("rules");
    let addresses: Vec<String> =
        (0..KEYS).map(|n| format!("10.0.{}.{}", n / 250, n % 250)).collect();
    for address in &addresses {
        assert_eq!(admitted(&rules, 100 - LEFT, 0, &get("/", address)), 100 - LEFT);
    }
    let got: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    let (stop, reloads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|thread| {
            let (rules, addresses, got) = (&rules, &addresses, &got);
            scope.spawn(move || {
                // The threads take the same keys in opposite orders.
                for n in 0..(LEFT + 2) * KEYS / 2 {
                    let key = if thread == 0 { n % KEYS } else { KEYS - 1 - n % KEYS };
                    let allowed = check(rules, 0, &get("/", &addresses[key])).is_allowed();
                    // This thread may have slept meanwhile, so what the other one got is read after
                    // the answer. The other thread may have got the last permit, and not have
                    // counted it yet.
                    let got = got[key].fetch_add(usize::from(allowed), Ordering::SeqCst);
                    assert!(
                        allowed || got + 1 >= LEFT,
                        "{} was refused after {got}",
                        addresses[key]
                    );
                }
            })
        });
        let _stop = StopOnDrop(&stop);
        while threads.iter().any(|thread| !thread.is_finished()) {
            let n = reloads.fetch_add(1, Ordering::Relaxed);
            let reloaded = rules.replace(&file(n as usize + 1), Format::Toml).expect("good rules");
            assert_eq!(reloaded.changed, ["a"], "{reloaded:?}");
        }
    });
    assert!(reloads.into_inner() > 2, "hardly a reload");
    for (got, address) in got.into_iter().zip(&addresses) {
        let rest = admitted(&rules, LEFT + 1, 0, &get("/", address));
        assert_eq!(got.into_inner() + rest, LEFT, "{address}");
    }
}

#[test]
fn a_reload_reports_and_keeps_its_changes() {
    let rules = rules("version = 1\n[group.a]\nlimit = '5/h'\n[group.b]\nlimit = '9/h algo sliding-log'\n[group.c]\npath='/c'\nlimit = '1/h'");
    assert_eq!(admitted(&rules, 3, 0, &get("/", "1.1.1.1")), 3);
    let reloaded = rules
        .replace("version = 1\n[group.b]\nlimit = '8/h algo sliding-log'\n[group.a]\nlimit = '6/h'\n[route.d]\npath='/d'\nlimit = '1/h'", Format::Toml)
        .expect("good rules");
    let names = |names: &[String]| names.join(" ");
    assert_eq!(
        (
            names(&reloaded.added),
            names(&reloaded.removed),
            names(&reloaded.changed),
            names(&reloaded.anew)
        ),
        ("d".into(), "c".into(), "a".into(), "b".into())
    );
    // Two were left of five.
    assert_eq!(admitted(&rules, 9, 0, &get("/", "1.1.1.1")), 2);
}

/// A rule that goes and comes back begins anew, and a policy of the table that serves another rule
/// has none of its debts.
#[test]
fn the_policy_of_a_removed_rule_serves_a_new_one_afresh() {
    let of = |name: &str| {
        format!(
            "version = 1\n[group.{name}]\nlimit = '2/h'\n[group.{name}.keys]\n'2.2.2.2' = '3/h'"
        )
    };
    let rules = rules(&of("r0"));
    let begin = (rules.now() - BEGIN) / SECOND;
    for n in 1..400 {
        // Several rules within the time of a debt. A key has twelve slots, and debts of rules that
        // are gone hold some of them.
        let now = begin + n / 6 * 10_000;
        assert_eq!(admitted(&rules, 9, now, &get("/", "1.1.1.1")), 2, "{n}");
        if n < 7 {
            // A reset reads the clock, so it holds for requests of about now.
            assert_eq!(admitted(&rules, 9, now, &get("/", "2.2.2.2")), 3, "{n}");
        }
        rules
            .replace(&of(&format!("r{n}")), Format::Toml)
            .unwrap_or_else(|error| panic!("reload {n}: {error}"));
        let counts = rules.counts();
        assert_eq!((counts[0].allowed, counts[0].refused), (0, 0), "{n}");
    }
}

#[test]
fn a_request_keeps_its_set() {
    let of = |name: &str| format!("version = 1\n[group.{name}]\nlimit = '1/h'");
    let rules = rules(&of("r0"));
    let answers: Vec<_> = (1..40)
        .map(|n| {
            let answer = check(&rules, 0, &get("/", "1.1.1.1"));
            rules
                .replace(&of(&format!("r{n}")), Format::Toml)
                .unwrap_or_else(|error| panic!("reload {n}: {error}"));
            answer
        })
        .collect();
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer.rule(), Some(&*format!("r{n}")));
    }
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_read_again_when_it_changes_and_a_bad_one_once() {
    let folder =
        Scratch(std::env::temp_dir().join(format!("tollbar-rules-{}", std::process::id())));
    fs::create_dir_all(&folder.0).expect("a folder");
    let path = folder.0.join("rules.toml");
    let of = |limit: &str| format!("version = 1\n[group.a]\nlimit = '{limit}'");
    // As ConfigMaps do: the name is a link to the file, and changes to another file.
    let link = |name: &str, text: &str| {
        fs::write(folder.0.join(name), text).expect("a file");
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(folder.0.join(name), &path).expect("a link");
    };
    link("one", &of("1/h"));
    let rules = Rules::open(&path, &Options::default()).expect("good rules");
    assert!(rules.reload_if_changed().expect("the same file").is_none());
    link("two", &of("2/h"));
    assert_eq!(
        rules.reload_if_changed().expect("good rules").expect("another file").changed,
        ["a"]
    );
    link("three", &of("2/fortnight"));
    let error = rules.reload_if_changed().expect_err("a bad file").to_string();
    assert!(error.starts_with(&format!("{}:3:", path.display())), "{error}");
    assert!(rules.reload_if_changed().expect("the same bad file").is_none());
    // C9: the metrics say so until a reload succeeds.
    let failed = || {
        let mut out = vec![0; 1 << 16];
        let length = tollbar_rules::metrics(
            &[("site", &rules)],
            tollbar::metrics::Format::Prometheus,
            &mut out,
        );
        let text = String::from_utf8(out[..length].to_vec()).expect("a text");
        text.contains("tollbar_rules_last_reload_failed{limit=\"site\"} 1\n")
    };
    assert!(failed() && rules.has_failed_to_reload());
    assert_eq!(admitted(&rules, 9, 0, &get("/", "1.1.1.1")), 2);
    fs::remove_file(&path).expect("a link");
    assert!(matches!(rules.reload_if_changed(), Err(LoadError::Read(..))));
    link("four", &of("5/h"));
    assert!(rules.reload_if_changed().expect("good rules").is_some());
    assert!(!failed());
    // The key had none left of two, and has none left of five now.
    assert_eq!(admitted(&rules, 9, 0, &get("/", "1.1.1.1")), 0);
    assert_eq!(admitted(&rules, 9, 0, &get("/", "1.1.1.2")), 5);
}

/// A forked child decides on the same states; only the process that opened the rules reloads them.
#[test]
fn shared_rules_are_one_limit_for_all_processes() {
    let options = Options { keys: 1000, shared: true, ..Options::default() };
    let rules = Rules::from_text("version = 1\n[group.a]\nlimit = '5/h'", Format::Toml, &options)
        .expect("rules");
    assert_eq!(admitted(&rules, 2, 0, &get("/", "1.1.1.1")), 2);
    let child = Child::fork(|| {
        let passed = admitted(&rules, 2, 0, &get("/", "1.1.1.1"));
        passed == 2
            && matches!(rules.replace("version = 1", Format::Toml), Err(LoadError::OtherProcess(_)))
    });
    assert!(child.passed());
    assert_eq!(admitted(&rules, 9, 0, &get("/", "1.1.1.1")), 1);
}

/// A child that has its parent's process number, each in a PID namespace of its own, may not reload
/// either.
#[test]
fn a_child_with_its_parents_number_is_another_process() {
    // SAFETY: it changes where the next child of this process runs, and nothing else.
    let unshared = || unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 };
    // The first process of a namespace has the number 1.
    let has_number_one = || std::process::id() == 1;
    if !Child::fork(unshared).passed() {
        println!("not root: this machine makes no PID namespace");
        return;
    }
    let options = Options { keys: 1000, shared: true, ..Options::default() };
    let nested = Child::fork(|| {
        unshared()
            && Child::fork(|| {
                let rules = Rules::from_text(
                    "version = 1\n[group.a]\nlimit = '5/h'",
                    Format::Toml,
                    &options,
                )
                .expect("rules");
                let again = || rules.replace("version = 1\n[group.a]\nlimit = '6/h'", Format::Toml);
                has_number_one()
                    && unshared()
                    && Child::fork(|| {
                        has_number_one() && matches!(again(), Err(LoadError::OtherProcess(1)))
                    })
                    .passed()
                    && again().is_ok()
            })
            .passed()
    });
    assert!(nested.passed());
}
