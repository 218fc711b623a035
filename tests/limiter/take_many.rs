//! Several limits in one call: all or nothing.

use crate::common::Rng;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use tollbar::clock::Manual;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::take_many::{take_all, take_many_at, Limit, ManyError, LIMITS_MOST};
use tollbar::{Decision, Limiter, Policy, Reason, State, Verdict, NEVER};

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1000 * SECOND;
const KEY: &[u8] = b"192.0.2.7";

fn limiter(text: &str) -> Limiter<State, Manual> {
    Limiter::with(State::new(&text.parse().unwrap()).unwrap(), Manual::new(NOW))
}

fn table(texts: &[&str]) -> Table {
    let policies: Vec<Policy> = texts.iter().map(|text| text.parse().unwrap()).collect();
    Table::private(&Options::new(1000), &policies).unwrap()
}

/// The answer has the binding limit, the longest wait and the fewest permits left, in any order of
/// the limits.
#[test]
fn the_answer_is_that_of_all_limits() {
    let (second, hour) = (limiter("2/s"), limiter("5/h"));
    let users = table(&["3/min"]);
    let ask = |cost| {
        let limits = [
            Limit::Limiter(&second, cost),
            Limit::Key(&users, PolicyId::FIRST, KEY, cost),
            Limit::Limiter(&hour, 1),
        ];
        take_many_at(&limits, NOW).unwrap()
    };
    let passed = ask(1);
    assert_eq!(
        (passed.decision.verdict, passed.bound, passed.decision.remaining),
        (Verdict::Allowed, 0, 1)
    );
    assert_eq!(passed.decision.reset_after, 720 * SECOND);
    assert!(ask(1).decision.is_allowed());
    let refused = ask(1);
    assert_eq!(
        (refused.decision.verdict, refused.decision.reason, refused.bound),
        (Verdict::Denied, Reason::Rate, 0)
    );
    assert_eq!((refused.decision.retry_after, refused.decision.remaining), (SECOND / 2, 0));
    // Two limits refuse: the longer wait binds.
    let refused = ask(2);
    assert_eq!((refused.bound, refused.decision.retry_after), (1, 20 * SECOND));
    let never = ask(4);
    assert_eq!((never.decision.verdict, never.decision.retry_after), (Verdict::Never, NEVER));
    assert_eq!(
        (hour.peek(1).remaining, users.peek_at(PolicyId::FIRST, KEY, NOW, 1).remaining),
        (3, 1)
    );
    // The binding limit counts the refusal.
    assert_eq!(
        (
            second.counts().allowed,
            second.counts().denied,
            hour.counts().allowed,
            hour.counts().denied
        ),
        (2, 1, 2, 0)
    );
    let counted = users.stats().decisions;
    assert_eq!((counted.allowed, counted.denied), (2, 1));
}

/// `1/day` beside `10/s` keeps its permit, to the unit, through 10^5 refusals of the other.
#[test]
fn a_refusal_leaves_the_other_limits_alone() {
    let day = limiter("1/day");
    let users = table(&["10/s", "1/day"]);
    assert!(users.check_at(PolicyId::FIRST, KEY, NOW, 10).is_allowed());
    for n in 0..100_000 {
        let limits = [
            Limit::Limiter(&day, 1),
            Limit::Key(&users, PolicyId::FIRST, KEY, 1),
            Limit::Key(&users, PolicyId::new(1), KEY, 1),
        ];
        let refused = take_many_at(&limits, NOW + n % 100_000_000).unwrap();
        assert_eq!((refused.decision.verdict, refused.bound), (Verdict::Denied, 1));
    }
    assert_eq!(day.shared().peek_at_fresh(), (1, 0));
    let kept = users.peek_at(PolicyId::new(1), KEY, NOW, 1);
    assert_eq!((kept.remaining, kept.reset_after), (1, 0));
}

/// Two fields of a limiter's decision that show its word.
trait Fresh {
    fn peek_at_fresh(&self) -> (u64, u64);
}

impl Fresh for State {
    fn peek_at_fresh(&self) -> (u64, u64) {
        let decision = tollbar::Shared::peek_at(self, NOW, 1);
        (decision.remaining, decision.reset_after)
    }
}

/// A limit that is named twice is charged for both, at once.
#[test]
fn the_same_limit_twice_is_one_limit() {
    let three = limiter("3/s");
    let users = table(&["3/s", "3/s"]);
    let key = |policy: u32, cost| Limit::Key(&users, PolicyId::new(policy), KEY, cost);
    assert!(take_many_at(&[Limit::Limiter(&three, 2), Limit::Limiter(&three, 1)], NOW)
        .unwrap()
        .decision
        .is_allowed());
    assert_eq!(
        take_many_at(&[Limit::Limiter(&three, 1)], NOW).unwrap().decision.verdict,
        Verdict::Denied
    );
    let more = take_many_at(&[key(0, 2), key(1, 1), key(0, 2)], NOW).unwrap();
    assert_eq!((more.decision.verdict, more.bound), (Verdict::Never, 0));
    assert_eq!(users.peek_at(PolicyId::new(1), KEY, NOW, 1).remaining, 3);
    assert!(take_many_at(&[key(0, 2), key(1, 1), key(0, 1)], NOW).unwrap().decision.is_allowed());
    let left = |policy| users.peek_at(PolicyId::new(policy), KEY, NOW, 1).remaining;
    assert_eq!((left(0), left(1)), (0, 2));
}

/// A refusal records the same as a refused check: an empty bucket begins to fill, and windows that
/// count refusals count it.
#[test]
fn a_refusal_is_made_where_it_bound() {
    let (empty, other) = (limiter("1/s burst 5 init 0"), limiter("100/s"));
    let users = table(&["1/s burst 5 init 0"]);
    let mut passed = 0;
    for second in 0..10 {
        let limits = [
            Limit::Limiter(&other, 1),
            Limit::Limiter(&empty, 1),
            Limit::Key(&users, PolicyId::FIRST, KEY, 1),
        ];
        passed +=
            u32::from(take_many_at(&limits, NOW + second * SECOND).unwrap().decision.is_allowed());
    }
    // Both buckets begin to fill at the first request.
    assert_eq!(passed, 9);
    let counting = limiter("2/min algo fixed-window count rejected");
    let ask =
        |cost| take_many_at(&[Limit::Limiter(&counting, cost)], NOW).unwrap().decision.verdict;
    assert_eq!((ask(1), ask(2), ask(1)), (Verdict::Allowed, Verdict::Denied, Verdict::Denied));
}

#[test]
fn bad_calls_charge_nothing() {
    let one = limiter("3/s");
    let users = table(&["3/s"]);
    assert_eq!(take_many_at(&[], NOW), Err(ManyError::Count));
    let many = [Limit::Limiter(&one, 1); LIMITS_MOST + 1];
    assert_eq!(take_many_at(&many, NOW), Err(ManyError::Count));
    let limits = [Limit::Limiter(&one, 1), Limit::Key(&users, PolicyId::new(7), KEY, 1)];
    assert!(
        matches!(take_many_at(&limits, NOW), Err(ManyError::Table(1, _))),
        "{:?}",
        take_many_at(&limits, NOW)
    );
    assert_eq!(one.peek(1).remaining, 3);
    // The table's options decide on a request without a key.
    let limits = [Limit::Limiter(&one, 1), Limit::Key(&users, PolicyId::FIRST, b"", 1)];
    let refused = take_many_at(&limits, NOW).unwrap();
    assert_eq!((refused.decision.reason, refused.bound), (Reason::MissingKey, 1));
    users.exempt(PolicyId::FIRST, KEY).unwrap();
    let limits = [Limit::Limiter(&one, 3), Limit::Key(&users, PolicyId::FIRST, KEY, 9)];
    assert!(take_many_at(&limits, NOW).unwrap().decision.is_allowed());
    assert_eq!(one.peek(1).remaining, 0);
}

/// Each limit's decision is the one that it would have made alone, and the decisions are in the
/// caller's order. The call decides like a program that peeks at all limits and then charges all.
#[test]
fn random_requests_are_decided_as_one_by_one() {
    let texts = [
        "2/s",
        "30/min",
        "5/10s burst 3",
        "7/s",
        "40/min algo fixed-window",
        "20/min algo sliding-window",
        "9/min algo sliding-log",
    ];
    let mut rng = Rng(3);
    let (mut passed, mut refused) = (0, 0);
    for _ in 0..60 {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            texts.iter().map(|text| (limiter(text), limiter(text))).unzip();
        let (our_table, their_table) = (table(&texts[..5]), table(&texts[..5]));
        let mut now = NOW;
        for _ in 0..300 {
            let picks: Vec<(usize, usize, u64)> = (0..rng.within(1, 6))
                .map(|_| {
                    (rng.below(texts.len() as u64) as usize, rng.below(3) as usize, rng.below(3))
                })
                .collect();
            // Each limit once: a limit that is named twice has one decision for both costs.
            let picks: Vec<_> = picks
                .iter()
                .enumerate()
                .filter(|(n, a)| !picks[..*n].iter().any(|b| (b.0, b.1) == (a.0, a.1)))
                .map(|(_, a)| *a)
                .collect();
            let keys = [b"a".as_slice(), b"b"];
            let limits: Vec<Limit<'_>> = picks
                .iter()
                .map(|&(text, place, cost)| match place {
                    1.. if text < 5 => {
                        Limit::Key(&our_table, PolicyId::new(text as u32), keys[place - 1], cost)
                    }
                    _ => Limit::Limiter(&ours[text], cost),
                })
                .collect();
            let one_by_one = |charge: bool| -> Vec<Decision> {
                let decide = |&(text, place, cost): &(usize, usize, u64)| match (place, charge) {
                    (1.., true) if text < 5 => {
                        their_table.check_at(PolicyId::new(text as u32), keys[place - 1], now, cost)
                    }
                    (1.., false) if text < 5 => {
                        their_table.peek_at(PolicyId::new(text as u32), keys[place - 1], now, cost)
                    }
                    (_, true) => theirs[text].check_at(now, cost),
                    (_, false) => tollbar::Shared::peek_at(theirs[text].shared(), now, cost),
                };
                picks.iter().map(decide).collect()
            };
            // The limiter at places 1 and 2 is that at place 0.
            if picks
                .iter()
                .enumerate()
                .any(|(n, a)| picks[..n].iter().any(|b| a.0 >= 5 && b.0 == a.0))
            {
                continue;
            }
            let peeks = one_by_one(false);
            let all = peeks.iter().all(Decision::is_allowed);
            let expected = if all { one_by_one(true) } else { peeks };
            let blank = take_many_at(&[Limit::Limiter(&limiter("1/s"), 0)], now).unwrap().decision;
            let mut decisions = vec![blank; limits.len()];
            let taken = take_all(&limits, Some(now), Some(&mut decisions)).unwrap();
            assert_eq!(decisions, expected, "{picks:?}");
            assert_eq!(taken.decision.is_allowed(), all);
            assert_eq!(
                taken.decision.remaining,
                expected.iter().map(|d| d.remaining).min().unwrap()
            );
            assert_eq!(
                taken.decision.retry_after,
                expected.iter().map(|d| d.retry_after).max().unwrap()
            );
            assert_eq!(
                taken.decision.reset_after,
                expected.iter().map(|d| d.reset_after).max().unwrap()
            );
            (passed, refused) = (passed + u32::from(all), refused + u32::from(!all));
            now += rng.below(SECOND);
        }
    }
    assert!(passed > 2000 && refused > 2000, "{passed} {refused}");
}

/// 16 threads ask for random subsets of 8 limits, 4 of them keys, at one instant. Each limit is
/// charged exactly for the admitted requests.
#[test]
fn the_sum_of_the_winners_is_exact() {
    for round in 0..200_u64 {
        let windows = [
            "40/s algo fixed-window",
            "30/min algo weighted-window",
            "50/h algo fixed-window anchor first",
            "100/day algo interval anchor first",
        ];
        let texts = if round % 2 == 0 { ["40/s", "30/min", "50/h", "100/day"] } else { windows };
        let limiters: Vec<_> = texts.iter().map(|text| limiter(text)).collect();
        let users = table(&texts);
        let taken: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
        let start = Barrier::new(16);
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (limiters, users, taken, start) = (&limiters, &users, &taken, &start);
                scope.spawn(move || {
                    let mut rng = Rng(round * 100 + thread);
                    start.wait();
                    for _ in 0..40 {
                        let set = rng.within(1, 255);
                        let costs: Vec<u64> = (0..8).map(|_| rng.within(1, 3)).collect();
                        let picked = |n: &usize| set >> n & 1 != 0;
                        let mut limits: Vec<Limit<'_>> = (0..8)
                            .filter(picked)
                            .map(|n| match n {
                                0..=3 => Limit::Limiter(&limiters[n], costs[n]),
                                _ => Limit::Key(users, PolicyId::new(n as u32 - 4), KEY, costs[n]),
                            })
                            .collect();
                        if rng.one_in(2) {
                            limits.reverse();
                        }
                        if take_many_at(&limits, NOW).unwrap().decision.is_allowed() {
                            (0..8).filter(picked).for_each(|n| {
                                taken[n].fetch_add(costs[n], Ordering::Relaxed);
                            });
                        }
                    }
                });
            }
        });
        let bursts = [40, 30, 50, 100];
        for (n, burst) in (0..8).zip(bursts.iter().chain(&bursts)) {
            let left = match n {
                0..=3 => limiters[n].peek(1).remaining,
                _ => users.peek_at(PolicyId::new(n as u32 - 4), KEY, NOW, 1).remaining,
            };
            assert_eq!(taken[n].load(Ordering::Relaxed) + left, *burst, "limit {n}, round {round}");
        }
    }
}
