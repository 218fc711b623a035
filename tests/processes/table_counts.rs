//! A table counts each decision once, under its policy and its verdict. The counts of all threads
//! and processes add up, also after processes were killed.

use crate::children::{board, forked, wait};
use crate::common::{policy, Rng, SEC};
use std::sync::atomic::Ordering;
use std::{env, thread};
use tollbar::table::{Missing, OnFull, Options, PolicyId, Request, Table};
use tollbar::{Counts, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;
const SECOND: PolicyId = PolicyId::new(1);

fn options() -> Options {
    Options::new(1000).with_seed(7)
}

fn counts(allowed: u64, denied: u64, never: u64) -> Counts {
    Counts { allowed, denied, never }
}

/// Drops an answer: these tests compare counts only.
fn ignore<T>(_: T) {}

/// The counts that `act` adds under the first policy. It must add none under the second.
fn added(table: &Table, act: impl FnOnce()) -> Counts {
    let (before, second) = (table.counts(FIRST).unwrap(), table.counts(SECOND));
    act();
    let after = table.counts(FIRST).unwrap();
    assert_eq!(table.counts(SECOND), second, "the other policy's counts moved");
    counts(after.allowed - before.allowed, after.denied - before.denied, after.never - before.never)
}

#[test]
fn ten_refusals_raise_one_series_by_ten() {
    let two = |text: &str| Table::private(&options(), &[policy(text), policy("5/s")]).unwrap();
    let tables = [
        two("3/min"),
        two("3/min algo interval"),
        two("3/min algo fixed-window"),
        two("3/min algo weighted-window"),
        two("3/min algo pacer slack 2"),
        Table::private(&options(), &[policy("3/min algo sliding-window")]).unwrap(),
        Table::private(&options(), &[policy("3/min algo sliding-log")]).unwrap(),
    ];
    for table in &tables {
        let ask = |n: u64| {
            (0..n)
                .filter(|_| table.admit_at(FIRST, b"a client", SEC, 1) == Verdict::Allowed)
                .count()
        };
        let name = table.policy(FIRST).unwrap();
        let mut allowed = 0;
        let admitted = added(table, || allowed = ask(3) as u64);
        assert_eq!(admitted, counts(allowed, 3 - allowed, 0), "{name:?}");
        ask(3);
        assert_eq!(added(table, || ignore(ask(10))), counts(0, 10, 0), "{name:?}");
        assert_eq!(
            added(table, || ignore(table.check_at(FIRST, b"a client", SEC, 1))),
            counts(0, 1, 0),
            "{name:?}"
        );
        // A cost that can never pass, a cost of 0, and a peek.
        assert_eq!(
            added(table, || ignore(table.check_at(FIRST, b"a client", SEC, 1 << 40))),
            counts(0, 0, 1),
            "{name:?}"
        );
        assert_eq!(
            added(table, || ignore(table.admit_at(FIRST, b"a client", SEC, 0))),
            counts(1, 0, 0),
            "{name:?}"
        );
        assert_eq!(
            added(table, || ignore(table.peek_at(FIRST, b"a client", SEC, 1))),
            counts(0, 0, 0),
            "{name:?}"
        );
        assert_eq!(
            added(table, || ignore(table.peek_at(FIRST, b"a fresh one", SEC, 1))),
            counts(0, 0, 0),
            "{name:?}"
        );
        // `take_up_to`: one permit of a fresh key, none of a used one.
        assert_eq!(
            added(table, || ignore(table.take_up_to_at(FIRST, b"a taker", SEC, 1))),
            counts(1, 0, 0),
            "{name:?}"
        );
        assert_eq!(
            added(table, || ignore(table.take_up_to_at(FIRST, b"a client", SEC, 2))),
            counts(0, 1, 0),
            "{name:?}"
        );
        // Long keys, which a call hashes.
        let long = [7; 100];
        assert_eq!(
            added(table, || ignore(table.admit_at(FIRST, &long, SEC, 1))),
            counts(1, 0, 0),
            "{name:?}"
        );
        assert_eq!(
            added(table, || ignore(table.admit(FIRST, &[8; 100], 1))),
            counts(1, 0, 0),
            "{name:?}"
        );
        // The statistics have the sum.
        let (sum, second) =
            (table.counts(FIRST).unwrap(), table.counts(SECOND).unwrap_or_default());
        let all = counts(
            sum.allowed + second.allowed,
            sum.denied + second.denied,
            sum.never + second.never,
        );
        assert_eq!(table.stats().decisions, all);
    }
}

#[test]
fn a_batch_counts_each_of_its_requests_under_its_policy() {
    let table = Table::private(&options(), &[policy("3/min"), policy("5/min")]).unwrap();
    for mixed in [false, true] {
        let key = |n: u64| (n % 7 + 100 * u64::from(mixed)).to_le_bytes();
        let keys: Vec<[u8; 8]> = (0..100).map(key).collect();
        let of = |n: usize| if mixed && n % 3 == 0 { SECOND } else { FIRST };
        let mut requests: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(n, key)| Request { policy: of(n), key, cost: 1 })
            .collect();
        // A request that ends before the lookup, and one that can never pass.
        requests[50].key = b"";
        requests[51].cost = 1 << 40;
        for _ in 0..3 {
            let before = [FIRST, SECOND].map(|id| table.counts(id).unwrap());
            let mut verdicts = [Verdict::Allowed; 100];
            table.admit_many_at(SEC, &requests, &mut verdicts);
            for (id, before) in [FIRST, SECOND].into_iter().zip(before) {
                let count_of = |verdict| {
                    let one = |(request, got): &(&Request, &Verdict)| {
                        request.policy == id && **got == verdict
                    };
                    requests.iter().zip(&verdicts).filter(one).count() as u64
                };
                let after = table.counts(id).unwrap();
                assert_eq!(after.allowed - before.allowed, count_of(Verdict::Allowed));
                assert_eq!(after.denied - before.denied, count_of(Verdict::Denied));
                assert_eq!(after.never - before.never, count_of(Verdict::Never));
            }
        }
    }
    assert_eq!(table.stats().decisions.never, 6);
}

#[test]
fn keys_that_are_missing_exempt_or_find_no_place_count_as_they_are_answered() {
    let table = |missing| {
        Table::private(&Options { missing, ..options() }, &[policy("3/min"), policy("5/s")])
            .unwrap()
    };
    let missing = |table: &Table| {
        let mut verdict = [Verdict::Allowed];
        let _ = table.admit_at(FIRST, b"", SEC, 1);
        let _ = table.check(FIRST, b"", 1);
        table.admit_many_at(SEC, &[Request { policy: FIRST, key: b"", cost: 1 }], &mut verdict);
        table.take_up_to_at(FIRST, b"", SEC, 1);
    };
    for (answer, expected) in [
        (Missing::Deny, counts(0, 4, 0)),
        (Missing::Allow, counts(4, 0, 0)),
        (Missing::Report, counts(0, 0, 0)),
    ] {
        let table = table(answer);
        assert_eq!(added(&table, || missing(&table)), expected, "{answer:?}");
    }
    let other = table(Missing::Deny);
    other.exempt(FIRST, b"ours").unwrap();
    assert_eq!(
        added(&other, || (0..10).for_each(|_| ignore(other.admit_at(FIRST, b"ours", SEC, 1)))),
        counts(10, 0, 0)
    );
    // While the table has exempt keys, all requests take the slow path.
    assert_eq!(
        added(&other, || (0..10).for_each(|_| ignore(other.admit_at(FIRST, b"theirs", SEC, 1)))),
        counts(3, 7, 0)
    );
    // A policy that the table does not have counts nowhere.
    let _ = other.admit_at(PolicyId::new(9), b"theirs", SEC, 1);
    let _ = other.admit_at(PolicyId::new(9), b"", SEC, 1);
    let _ = other.admit_at(PolicyId::new(1 << 20), b"", SEC, 1);
    assert!(
        other.counts(PolicyId::new(9)).is_err() && other.counts(PolicyId::new(1 << 20)).is_err()
    );
    assert_eq!(other.stats().decisions, counts(13, 7, 0));

    for on_full in [OnFull::Deny, OnFull::Inherit, OnFull::Allow, OnFull::EvictNearest] {
        let full =
            Table::private(&options().with_on_full(on_full), &[policy("1/h"), policy("5/s")])
                .unwrap();
        let mut expected = counts(0, 0, 0);
        let asked = added(&full, || {
            for n in 0..4 * full.slots() {
                match full.admit_at(FIRST, &n.to_le_bytes(), SEC, 1) {
                    Verdict::Allowed => expected.allowed += 1,
                    Verdict::Denied => expected.denied += 1,
                    Verdict::Never => expected.never += 1,
                }
            }
        });
        assert_eq!(asked, expected, "{on_full:?}");
        assert_eq!(expected.allowed + expected.denied, 4 * full.slots());
        let stats = full.stats();
        assert_eq!(expected.denied, stats.refused, "{on_full:?}");
        assert!(
            expected.denied > full.slots()
                || matches!(on_full, OnFull::Allow | OnFull::EvictNearest)
        );
    }
}

#[test]
fn requests_that_credit_pays_are_counted() {
    let policies = [policy("1000/s burst 1000"), policy("1000000/s burst 100000")];
    let table = Table::private(&options().with_hot_keys(64), &policies).unwrap();
    for id in [SECOND, FIRST] {
        let before = table.counts(id).unwrap();
        let expected = std::sync::Mutex::new(counts(0, 0, 0));
        // Two threads, one after the other: the second may have the first one's block of credit.
        for _ in 0..2 {
            let ask = || {
                for n in 0..20_000 {
                    let (key, now, cost) = ((n % 3_u64).to_le_bytes(), SEC + n * 1000, 1 + n % 2);
                    let verdict = match n % 7 {
                        0 => table.check_at(id, &key, now, cost).verdict,
                        1 if table.take_up_to_at(id, &key, now, cost) == 0 => Verdict::Denied,
                        1 => Verdict::Allowed,
                        _ => table.admit_at(id, &key, now, cost),
                    };
                    let mut expected = expected.lock().unwrap();
                    match verdict {
                        Verdict::Allowed => expected.allowed += 1,
                        Verdict::Denied => expected.denied += 1,
                        Verdict::Never => expected.never += 1,
                    }
                }
            };
            std::thread::scope(|scope| scope.spawn(ask).join().unwrap());
        }
        let after = table.counts(id).unwrap();
        let added = counts(
            after.allowed - before.allowed,
            after.denied - before.denied,
            after.never - before.never,
        );
        let expected = expected.into_inner().unwrap();
        assert_eq!(added, expected);
        assert!(expected.allowed > 1000, "{expected:?}");
    }
}

#[test]
fn a_change_of_the_policy_leaves_its_counts() {
    let table = Table::private(&options(), &[policy("3/min"), policy("5/s")]).unwrap();
    let ask = || (0..10).for_each(|_| ignore(table.admit_at(FIRST, b"a client", SEC, 1)));
    assert_eq!(added(&table, ask), counts(3, 7, 0));
    table.set_policy(FIRST, &policy("4/h")).unwrap();
    let Counts { allowed, denied, never } = added(&table, ask);
    assert_eq!((allowed + denied, never), (10, 0));
    assert_eq!(table.counts(FIRST).unwrap(), counts(3 + allowed, 7 + denied, 0));
}

/// Makes one random call. `step` gets the policy and the verdict of each decision.
fn work(table: &Table, rng: &mut Rng, policies: u32, mut step: impl FnMut(PolicyId, Verdict)) {
    let id = PolicyId::new(rng.below(policies.into()) as u32);
    let key = rng.below(500).to_le_bytes();
    match rng.below(8) {
        0 => {
            let requests = [Request { policy: id, key: &key, cost: 1 }; 3];
            let mut verdicts = [Verdict::Never; 3];
            table.admit_many(&requests, &mut verdicts);
            verdicts.into_iter().for_each(|verdict| step(id, verdict));
        }
        1 => match table.take_up_to(id, &key, 2) {
            0 => step(id, Verdict::Denied),
            _ => step(id, Verdict::Allowed),
        },
        2 => step(id, table.check(id, &key, 1 + rng.below(20)).verdict),
        3 => step(id, table.admit(id, &rng.next().to_le_bytes(), 1)),
        _ => step(id, table.admit(id, &key, 1)),
    }
}

/// `threads` threads on `policies` policies: the counts equal the returned verdicts exactly.
fn threads_count_exactly(threads: u64, policies: u32, each: u64) {
    let texts: Vec<_> = (0..policies).map(|n| policy(&format!("{}/min burst 10", n + 1))).collect();
    let table = Table::private(&options(), &texts).unwrap();
    let mut expected = vec![[0; 3]; policies as usize];
    thread::scope(|scope| {
        let work = |seed| {
            let table = &table;
            move || {
                let mut expected = vec![[0; 3]; policies as usize];
                let mut rng = Rng(seed);
                (0..each).for_each(|_| {
                    work(table, &mut rng, policies, |id, verdict| {
                        expected[id.number() as usize][verdict as usize] += 1
                    })
                });
                expected
            }
        };
        let all: Vec<_> = (0..threads).map(|seed| scope.spawn(work(seed))).collect();
        for thread in all {
            for (sum, own) in expected.iter_mut().zip(thread.join().unwrap()) {
                (0..3).for_each(|verdict| sum[verdict] += own[verdict]);
            }
        }
    });
    let mut all = [0; 3];
    for (n, expected) in expected.iter().enumerate() {
        let Counts { allowed, denied, never } = table.counts(PolicyId::new(n as u32)).unwrap();
        assert_eq!([allowed, denied, never], *expected, "policy {n}");
        (0..3).for_each(|verdict| all[verdict] += expected[verdict]);
    }
    let Counts { allowed, denied, never } = table.stats().decisions;
    assert_eq!([allowed, denied, never], all);
    assert!(all.iter().all(|sum| *sum > 0), "{all:?}");
}

#[test]
fn threads_that_own_their_lines_count_exactly() {
    threads_count_exactly(8, 3, 50_000);
}

/// With more pairs of a thread and a policy than lines, the further pairs share counters.
#[test]
fn threads_without_a_line_count_exactly() {
    threads_count_exactly(24, 60, 5_000);
}

/// Threads one after the other, each of which takes over the line of the one before.
#[test]
fn threads_that_end_leave_their_lines() {
    let table = Table::private(&options(), &[policy("100/s")]).unwrap();
    for _ in 0..2_000 {
        thread::scope(|scope| {
            scope.spawn(|| table.admit(FIRST, b"a client", 1));
            scope.spawn(|| table.admit(FIRST, b"another", 1));
        });
    }
    let Counts { allowed, denied, never } = table.counts(FIRST).unwrap();
    assert_eq!((allowed + denied, never), (4_000, 0));
}

/// A child has its parent's thread pointer and a copy of its handle, and claims other lines.
#[test]
fn a_child_and_its_parent_count_at_once() {
    // So many requests that both processes run at the same time: with 300,000 each, a shared line
    // lost no count.
    const EACH: u64 = 10_000_000;
    let table = Table::shared(&options(), &[policy("3/min"), policy("5/s")]).unwrap();
    let ask = |n| (0..n).for_each(|_| ignore(table.admit_at(FIRST, b"a client", SEC, 1)));
    ask(10);
    let go = &board(1)[0];
    let child = |_| {
        forked(|| {
            go.fetch_add(1, Ordering::SeqCst);
            while go.load(Ordering::SeqCst) < 2 {}
            ask(EACH)
        })
    };
    let children: Vec<_> = (0..2).map(child).collect();
    while go.load(Ordering::SeqCst) < 2 {}
    ask(EACH);
    children.into_iter().for_each(wait);
    assert_eq!(table.counts(FIRST).unwrap(), counts(3, 7 + 3 * EACH, 0));
}

/// Processes are killed at any instruction. Each notes a verdict after it got it, so the counts are
/// never below the notes, and above them by at most one call for each killed process. More
/// processes come and go than there are lines, so later ones take the lines of the dead.
#[test]
fn kills_lose_no_count() {
    let kills: u64 = env::var("TOLLBAR_SOAK").map_or(300, |n| n.parse().unwrap());
    const POLICIES: u32 = 3;
    const AT_ONCE: usize = 3;
    let texts = [policy("100/s"), policy("7/min"), policy("1/h burst 5")];
    let table =
        Table::shared(&Options { clock: tollbar::clock::Source::Monotonic, ..options() }, &texts)
            .unwrap();
    let board = board(10);
    let begin = |seed| {
        forked(|| {
            let mut rng = Rng(seed);
            loop {
                work(&table, &mut rng, POLICIES, |id, verdict| {
                    let place = id.number() as usize * 3 + verdict as usize;
                    board[place].fetch_add(1, Ordering::SeqCst);
                });
                board[9].fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let mut rng = Rng(kills);
    let mut children: Vec<_> = (0..AT_ONCE as u64).map(&begin).collect();
    for killed in 0..kills {
        // Some processes end while they claim their first lines, and some make thousands of
        // requests.
        let steps = board[9].load(Ordering::SeqCst) + rng.pick(&[0, 1, 10, 3_000]);
        while board[9].load(Ordering::SeqCst) < steps {
            thread::yield_now();
        }
        let victim = rng.below(AT_ONCE as u64) as usize;
        // SAFETY: numbers only; a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(children[victim], libc::SIGKILL) }, 0);
        wait(children[victim]);
        children[victim] = begin(1000 + killed);
    }
    for child in &children {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(*child, libc::SIGKILL) }, 0);
        wait(*child);
    }
    let mut above = 0;
    for n in 0..POLICIES {
        let Counts { allowed, denied, never } = table.counts(PolicyId::new(n)).unwrap();
        for (verdict, count) in [allowed, denied, never].into_iter().enumerate() {
            let expected = board[n as usize * 3 + verdict].load(Ordering::SeqCst);
            assert!(
                count >= expected,
                "policy {n}, verdict {verdict}: {count} counted, {expected} expected"
            );
            above += count - expected;
        }
    }
    // A batch is one call and three decisions.
    let most = 3 * (kills + AT_ONCE as u64);
    let total = table.stats().decisions;
    println!("{kills} killed: {total:?}, {above} of them in calls that did not return");
    assert!(above <= most, "{above} more than expected, {kills} killed");
    assert!(total.allowed + total.denied > 1_000, "{total:?}");
}
