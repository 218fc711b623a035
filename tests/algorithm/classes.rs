//! Classes that a policy names (`100/s reserve low 20 high 0`): a request passes only if its
//! class's reserve is left after it.

use crate::common::*;
use crate::oracle::reserves::{model, TEXTS};
use crate::oracle::Side;
use tollbar::clock::Manual;
use tollbar::policy::{Classes, Keep, PolicyError, CLASSES_MOST};
use tollbar::table::{Options, PolicyId, RequestError, Table};
use tollbar::take_many::{take_all, take_many, take_many_at, Limit, ManyError};
use tollbar::{Decision, Limiter, Reason, State, Verdict, NEVER};

const FIRST: PolicyId = PolicyId::FIRST;
const KEY: &[u8] = b"key";

fn limiter(text: &str) -> Limiter<State, Manual> {
    Limiter::with(state(text), Manual::new(HOUR))
}

fn table(text: &str) -> Table {
    Table::private(&Options::new(100), &[policy(text)]).unwrap()
}

fn of_table(table: &Table, now: u64, cost: u64, class: &str) -> Decision {
    table.check_class_at(FIRST, KEY, now, cost, class.as_bytes()).unwrap()
}

fn summary(decision: Decision) -> (Verdict, Reason, u64) {
    (decision.verdict, decision.reason, decision.remaining)
}

/// Of 100 permits the class `standard` may use 80: its requests are refused from the moment at
/// which 20 permits are left.
#[test]
fn m5_a_class_stops_exactly_at_its_reserve() {
    for text in [
        "100/s reserve standard 20 urgent 0",
        "100/s ban 1h after 1000 reserve standard 20 urgent 0",
        "100/min reserve standard 20 urgent 0; 1000/h",
        "1000/h reserve standard 20 urgent 0; 100/s",
        "100/s algo interval reserve standard 20 urgent 0",
        "100/s algo fixed-window reserve standard 20 urgent 0",
        "100/s algo fixed-window anchor first reserve standard 20 urgent 0",
        "100/s algo weighted-window reserve standard 20 urgent 0",
        "100/forever reserve standard 20 urgent 0",
    ] {
        let (limiter, table, several) = (limiter(text), table(text), limiter(text));
        let take = |class| {
            let taken =
                take_many_at(&[Limit::Class(class, &Limit::Limiter(&several, 1))], HOUR).unwrap();
            [
                limiter.check_class(1, class).unwrap(),
                of_table(&table, HOUR, 1, class),
                taken.decision,
            ]
            .map(summary)
        };
        for n in 0..80 {
            assert_eq!(
                take("standard"),
                [(Verdict::Allowed, Reason::Admitted, 99 - n); 3],
                "{text}"
            );
        }
        for _ in 0..3 {
            assert_eq!(take("standard"), [(Verdict::Denied, Reason::Reserve, 20); 3], "{text}");
            assert_eq!(take("1"), [(Verdict::Denied, Reason::Reserve, 20); 3], "{text}: by number");
        }
        for n in 0..20 {
            assert_eq!(take("urgent"), [(Verdict::Allowed, Reason::Admitted, 19 - n); 3], "{text}");
        }
        assert_eq!(take("urgent"), [(Verdict::Denied, Reason::Rate, 0); 3], "{text}");
        assert_eq!(
            take("standard"),
            [(Verdict::Denied, Reason::Rate, 0); 3],
            "{text}: nothing is left for any class"
        );
        assert_eq!(
            summary(limiter.check_class(81, "standard").unwrap()),
            (Verdict::Never, Reason::Burst, 0),
            "{text}"
        );
        assert!(limiter.check_class(0, "standard").unwrap().is_allowed(), "{text}: a question");
    }
}

/// Verdict, wait, reason and permits left of mixed classes are those of the oracle, for which a
/// class's request is one for its cost and its reserve that takes the cost.
#[test]
fn classes_get_what_the_oracle_says() {
    let mut rng = Rng(2697);
    for text in TEXTS {
        let plain = policy(text);
        let mut model = model(&plain);
        let (mut kept_back, mut waits) = (0, 0);
        for _ in 0..rounds(300) {
            let reserves: Vec<u64> = (0..CLASSES_MOST).map(|_| rng.below(plain.burst)).collect();
            let [a, b, c, d] = reserves[..] else { unreachable!() };
            let text = format!("{text} reserve a {a} b {b} c {c} d {d}");
            let (limiter, table, several, keys) =
                (limiter(&text), table(&text), limiter(&text), table(&text));
            model.reset();
            let mut shape = Shape::new(&plain, &mut rng);
            for _ in 0..40 {
                let (now, cost, index) = (shape.now, shape.cost(&mut rng), rng.below(5) as usize);
                let (class, reserve) = match reserves.get(index) {
                    Some(reserve) => (["a", "b", "c", "d"][index], *reserve),
                    None => (["1", "2", "3", "4"][rng.below(4) as usize], 0),
                };
                // A request of no class has no reserve; a number names the class as its name does.
                let (class, reserve) = match index {
                    4 => {
                        let n = class.parse::<usize>().unwrap();
                        (class, reserves[n - 1])
                    }
                    _ => (class, reserve),
                };
                let needed = if cost == 0 { 0 } else { cost + reserve };
                let verdict = model.verdict(now, needed, Side::Exact);
                if cost != 0 && verdict != Verdict::Never {
                    model.settle(now, cost, verdict == Verdict::Allowed);
                }
                let retry_after = match verdict {
                    Verdict::Allowed => 0,
                    Verdict::Never => NEVER,
                    Verdict::Denied => match model.admits_at(now, needed, Side::Exact) {
                        NEVER => NEVER,
                        at => at - now,
                    },
                };
                let reserved = verdict != Verdict::Allowed
                    && model.verdict(now, cost, Side::Exact) == Verdict::Allowed;
                kept_back += u64::from(reserved);
                waits += u64::from(reserved && verdict == Verdict::Denied);
                let want = (verdict, reserved, model.remaining(now, Side::Exact), retry_after);
                let many = |limit: Limit<'_>| {
                    let mut decisions = [limiter.peek(0)];
                    take_all(&[Limit::Class(class, &limit)], Some(now), Some(&mut decisions))
                        .unwrap();
                    decisions[0]
                };
                for (by, got) in [
                    limiter.check_class_at(now, cost, class.as_bytes()).unwrap(),
                    table.check_class_at(FIRST, KEY, now, cost, class.as_bytes()).unwrap(),
                    many(Limit::Limiter(&several, cost)),
                    many(Limit::Key(&keys, FIRST, KEY, cost)),
                ]
                .into_iter()
                .enumerate()
                {
                    let got = (
                        got.verdict,
                        got.reason == Reason::Reserve,
                        got.remaining,
                        got.retry_after,
                    );
                    assert_eq!(got, want, "{text}: {cost} of class {class} at {now}, call {by}");
                }
                shape.advance(&mut rng, retry_after);
            }
        }
        assert!(
            kept_back > 20 && waits > 10,
            "{text}: a reserve kept only {kept_back} requests back, {waits} for a time"
        );
    }
}

/// Credit that a thread has of a hot key counts as taken for a class with a reserve.
#[test]
fn credit_of_a_hot_key_respects_the_reserve() {
    let mut rng = Rng(5);
    for reserve in [1, 20, 150, 500, 999] {
        let text = format!("1000/h reserve low {reserve} high 0");
        let (memory, descriptor) = Table::sealed(&Options::new(100), &[policy(&text)]).unwrap();
        // Each view has its own credit, so four views in one thread stand for four threads.
        let views: Vec<Table> = (0..4)
            .map(|_| Table::open_descriptor(descriptor).unwrap().with_hot_keys(16).unwrap())
            .collect();
        let (mut admitted, mut low, mut by_credit) = (0, 0, 0);
        for n in 0..8_000 {
            let (view, now) = (&views[rng.below(4) as usize], HOUR);
            if rng.one_in(2) {
                let got = of_table(view, now, 1, "low");
                assert!(
                    !got.is_allowed() || admitted + 1 + reserve <= 1000,
                    "{text}: request {n} after {admitted}"
                );
                low += u64::from(got.is_allowed());
                admitted += u64::from(got.is_allowed());
            } else {
                let before = memory.peek_at(FIRST, KEY, now, 1).remaining;
                let got = if rng.one_in(2) {
                    of_table(view, now, 1, "high")
                } else {
                    view.check_at(FIRST, KEY, now, 1)
                };
                let after = memory.peek_at(FIRST, KEY, now, 1).remaining;
                by_credit += u64::from(got.is_allowed() && before == after);
                admitted += u64::from(got.is_allowed());
            }
        }
        assert!((900..=1000).contains(&admitted), "{text}: {admitted}");
        assert!(low > 0 || reserve == 999, "{text}: no request of the lower class passed");
        assert!(by_credit > 50, "{text}: credit paid {by_credit} requests");
        // SAFETY: the descriptor is this test's own.
        unsafe { libc::close(descriptor) };
    }
}

#[test]
fn an_unknown_class_is_an_error_that_charges_nothing() {
    let (classed, plain, table) =
        (limiter("10/s reserve low 2"), limiter("10/s"), table("10/s reserve low 2"));
    for class in [
        "",
        "lo",
        "lows",
        "Low",
        "0",
        "2",
        "5",
        "11",
        "sixteen-letters-",
        "a-name-of-more-than-sixteen-bytes",
    ] {
        let unknown = PolicyError::NoSuchClass;
        assert_eq!(classed.check_class(1, class), Err(unknown), "{class}");
        assert_eq!(plain.check_class(1, class), Err(unknown), "{class}");
        let got = table.check_class_at(FIRST, KEY, HOUR, 1, class.as_bytes());
        assert_eq!(got, Err(RequestError::Policy(unknown)), "{class}");
        let (of_limiter, of_key) = (Limit::Limiter(&classed, 1), Limit::Key(&table, FIRST, KEY, 1));
        let got = take_many(&[Limit::Limiter(&plain, 1), Limit::Class(class, &of_limiter)]);
        assert_eq!(got, Err(ManyError::Class(1)), "{class}");
        let got = take_many_at(&[Limit::Limiter(&plain, 1), Limit::Class(class, &of_key)], HOUR);
        assert_eq!(got, Err(ManyError::Table(1, RequestError::Policy(unknown))), "{class}");
    }
    let nothing = Limit::Class("low", &Limit::Unlimited);
    assert_eq!(take_many(&[nothing]), Err(ManyError::Class(0)));
    assert_eq!(take_many(&[Limit::Class("low", &nothing)]), Err(ManyError::Class(0)));
    assert_eq!(
        (classed.counts(), plain.counts(), table.stats().keys),
        (Default::default(), Default::default(), 0)
    );
    for text in
        ["10/s borrow", "10/s algo pacer", "10/s algo sliding-window", "10/s algo sliding-log"]
    {
        assert_eq!(limiter(text).check_class(1, "low"), Err(PolicyError::NoSuchClass), "{text}");
    }
    assert_eq!(table.check_class(PolicyId::new(7), KEY, 1, "low"), Err(RequestError::NoSuchPolicy));
}

/// A change of the policy and an override bring their own classes. The state stays.
#[test]
fn classes_change_with_the_policy() {
    let (limiter, table) = (limiter("10/h reserve low 2"), table("10/h reserve low 2"));
    for _ in 0..4 {
        assert!(
            limiter.check_class(1, "low").unwrap().is_allowed()
                && of_table(&table, HOUR, 1, "low").is_allowed()
        );
    }
    let other = policy("10/h reserve low 6 bulk 9");
    limiter.set_policy(&other, Keep::Count).unwrap();
    table.set_policy(FIRST, &other).unwrap();
    for got in [limiter.check_class(1, "low").unwrap(), of_table(&table, HOUR, 1, "low")] {
        assert_eq!((got.verdict, got.reason, got.remaining), (Verdict::Denied, Reason::Reserve, 6));
    }
    assert_eq!((table.policy(FIRST), limiter.changed_policy()), (Ok(other), Some(&other)));
    table.set_override(FIRST, KEY, &policy("100/h burst 50 reserve vip 1"), Keep::Count).unwrap();
    assert!(of_table(&table, HOUR, 1, "vip").is_allowed());
    let got = table.check_class_at(FIRST, KEY, HOUR, 1, b"low");
    assert_eq!(
        got,
        Err(RequestError::Policy(PolicyError::NoSuchClass)),
        "the override has other classes"
    );
    assert!(table.check_class_at(FIRST, b"other", HOUR, 1, b"low").unwrap().is_allowed());
}

#[test]
fn policies_that_can_have_no_classes_are_refused() {
    let low = Classes::NONE.and("low", 2).unwrap();
    for text in [
        "10/s borrow",
        "10/s algo pacer",
        "10/s algo warm-up warm 2s",
        "10/s algo sliding-window",
        "10/s algo sliding-log",
    ] {
        assert!(policy(text).with_classes(low).validate().is_err(), "{text}");
    }
    assert_eq!(
        State::with_credit(&policy("1000000/s reserve low 2")).err(),
        Some(PolicyError::Classes)
    );
    assert_eq!(
        policy("10/s").with_classes(Classes::NONE.and("low", 10).unwrap()).validate(),
        Err(PolicyError::Classes)
    );
    let list = policy("100/s; 1000/h").with_classes(Classes::NONE.and("low", 99).unwrap());
    assert_eq!(list.validate(), Ok(()));
    let small = policy("1000/h; 100/s").with_classes(Classes::NONE.and("low", 100).unwrap());
    assert_eq!(small.validate(), Err(PolicyError::Classes), "the second burst has no room for it");
    // A limit of 0 denies all classes alike.
    let closed = limiter("0/s reserve low 2");
    assert_eq!(closed.check_class(1, "low").unwrap().verdict, Verdict::Denied);
    for name in ["", "1a", "a b", "ä", "-a", "a-name-that-is-16"] {
        assert_eq!(Classes::NONE.and(name, 1), Err(PolicyError::Classes), "{name:?}");
    }
    let full = ["b", "c", "d"].iter().fold(low, |classes, name| classes.and(name, 1).unwrap());
    assert_eq!(full.and("e", 1), Err(PolicyError::Classes));
    assert_eq!(low.and("low", 1), Err(PolicyError::Classes));
    assert_eq!(full.iter().collect::<Vec<_>>(), [("low", 2), ("b", 1), ("c", 1), ("d", 1)]);
    assert_eq!(Classes::of_raw(&full.to_raw()), Ok(full));
    let mut raw = full.to_raw();
    raw.swap(0, 1);
    assert!(Classes::of_raw(&raw).is_ok());
    raw[0] = ([0; 16], 0);
    assert_eq!(Classes::of_raw(&raw), Err(PolicyError::Classes), "an unused one before a used one");
    raw[0] = (*b"low\0x\0\0\0\0\0\0\0\0\0\0\0", 2);
    assert_eq!(Classes::of_raw(&raw), Err(PolicyError::Classes), "bytes behind the name");
}
