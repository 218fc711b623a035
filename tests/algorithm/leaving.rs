//! Classes of requests that share a limit: a request of a lower class passes only if its reserve is
//! left after it. classes.rs has the classes of policies' texts.

use crate::common::*;
use crate::oracle::reserves::{model, TEXTS};
use crate::oracle::Side;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tollbar::clock::Manual;
use tollbar::policy::PolicyError;
use tollbar::table::{Options, PolicyId, RequestError, Table};
use tollbar::{Limiter, State, Verdict, NEVER};

const FIRST: PolicyId = PolicyId::FIRST;

fn limiter(text: &str) -> Limiter<State, Manual> {
    Limiter::with(state(text), Manual::new(HOUR))
}

fn table(text: &str) -> Table {
    Table::private(&Options::new(100), &[policy(text)]).unwrap()
}

#[test]
fn m5_standard_requests_stop_exactly_at_the_reserve() {
    for text in [
        "100/s",
        "100/s ban 1h after 1000",
        "100/min; 1000/h",
        "100/s algo interval",
        "100/s algo fixed-window",
        "100/s algo fixed-window anchor first",
        "100/s algo weighted-window",
        "100/forever",
    ] {
        let (limiter, table) = (limiter(text), table(text));
        for n in 0..80 {
            let left = limiter.check_leaving(1, 20).unwrap();
            assert_eq!((left.verdict, left.remaining), (Verdict::Allowed, 99 - n), "{text}");
            assert_eq!(
                table.check_leaving_at(FIRST, b"key", HOUR, 1, 20).unwrap().verdict,
                Verdict::Allowed,
                "{text}"
            );
        }
        for _ in 0..3 {
            assert_eq!(limiter.check_leaving(1, 20).unwrap().verdict, Verdict::Denied, "{text}");
            let refused = table.check_leaving_at(FIRST, b"key", HOUR, 1, 20).unwrap();
            assert_eq!((refused.verdict, refused.remaining), (Verdict::Denied, 20), "{text}");
        }
        assert_eq!(limiter.take_up_to(100), 20, "{text}: urgent requests have the rest");
        assert_eq!(table.take_up_to_at(FIRST, b"key", HOUR, 100), 20, "{text}");
        assert_eq!(limiter.check_leaving(81, 20).unwrap().verdict, Verdict::Never, "{text}");
        assert_eq!(limiter.check_leaving(1, u64::MAX).unwrap().verdict, Verdict::Never, "{text}");
        assert_eq!(
            limiter.check_leaving(0, 20).unwrap().verdict,
            Verdict::Allowed,
            "{text}: a question"
        );
    }
}

/// A limiter and a table's key give the oracle's answers to requests of several classes. The oracle
/// is asked for the cost and the reserve together, and charges the cost.
#[test]
fn mixed_classes_get_what_the_oracle_says() {
    let mut rng = Rng(22);
    for text in TEXTS {
        let policy = policy(text);
        let mut model = model(&policy);
        assert!(model.exact(), "{text}");
        let mut kept_back = 0;
        for _ in 0..rounds(300) {
            let (limiter, table) = (limiter(text), table(text));
            model.reset();
            let mut shape = Shape::new(&policy, &mut rng);
            for _ in 0..40 {
                let (now, cost) = (shape.now, shape.cost(&mut rng));
                let reserve = if rng.one_in(3) { 0 } else { rng.below(policy.burst + 1) };
                let needed = if cost == 0 { 0 } else { cost + reserve };
                let verdict = model.verdict(now, needed, Side::Exact);
                kept_back +=
                    u64::from(verdict == Verdict::Denied && model.fits(now, cost, Side::Exact));
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
                let want = (verdict, model.remaining(now, Side::Exact), retry_after);
                for got in [
                    limiter.check_leaving_at(now, cost, reserve).unwrap(),
                    table.check_leaving_at(FIRST, b"key", now, cost, reserve).unwrap(),
                ] {
                    let got = (got.verdict, got.remaining, got.retry_after);
                    assert_eq!(got, want, "{text}: {cost} leaving {reserve} at {now}");
                }
                shape.advance(&mut rng, retry_after);
            }
        }
        assert!(kept_back > 20, "{text}: a reserve kept only {kept_back} requests back");
    }
}

/// Threads of both classes at one instant: together they get the burst, and the lower class never
/// reaches into the reserve.
#[test]
fn threads_of_two_classes_share_a_bucket() {
    for text in ["4000/s", "4000/s algo fixed-window", "4000/forever"] {
        for _ in 0..rounds(20) {
            let (limiter, low, high) = (limiter(text), AtomicU64::new(0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for class in 0..4 {
                    let (limiter, low, high) = (&limiter, &low, &high);
                    scope.spawn(move || {
                        for _ in 0..4_000 {
                            if class < 2 {
                                let got = limiter.check_leaving(1, 1_000).unwrap();
                                low.fetch_add(u64::from(got.is_allowed()), Relaxed);
                            } else if class == 2 || limiter.peek(1).remaining < 1_500 {
                                high.fetch_add(u64::from(limiter.check(1).is_allowed()), Relaxed);
                            }
                        }
                    });
                }
            });
            let (low, high) = (low.into_inner(), high.into_inner());
            assert!(low <= 3_000 && low + high <= 4_000, "{text}: {low} and {high}");
            assert_eq!(limiter.peek(1).remaining, 4_000 - low - high, "{text}");
            assert!(
                limiter.peek(1).remaining <= 1_000,
                "{text}: the lower class takes all but its reserve"
            );
        }
    }
}

#[test]
fn policies_that_lend_or_have_more_words_keep_no_reserve() {
    for text in [
        "10/s borrow",
        "10/s algo pacer",
        "10/s algo warm-up warm 2s",
        "10/s algo sliding-window",
        "10/s algo sliding-log",
    ] {
        let (limiter, table) = (limiter(text), table(text));
        assert_eq!(limiter.check_leaving(1, 2), Err(PolicyError::OptionMismatch), "{text}");
        let refused = table.check_leaving_at(FIRST, b"key", HOUR, 1, 2);
        assert_eq!(refused, Err(RequestError::Policy(PolicyError::OptionMismatch)), "{text}");
        assert_eq!((limiter.counts(), table.stats().keys), (Default::default(), 0), "{text}");
    }
    let credit = Limiter::with_credit(&policy("1000000/s")).unwrap();
    assert_eq!(credit.check_leaving(1, 2), Err(PolicyError::OptionMismatch));
    assert_eq!(
        table("10/s").check_leaving(PolicyId::new(7), b"key", 1, 2),
        Err(RequestError::NoSuchPolicy)
    );
}
