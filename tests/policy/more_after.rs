//! E5: the times that clients read are right under every policy: when one permit more is left, when
//! the request passes, and when the state is fresh.

use crate::common::{policy, rounds, with_each, Rng, SEC};
use tollbar::clock::Source;
use tollbar::http::more_after;
use tollbar::table::{Keep, Options, PolicyId, Table};
use tollbar::{Anchor, Decision, Kind, Policy, Shared, State, Verdict, NEVER};

const TEXTS: [&str; 32] = [
    "10/s burst 7",
    "7/s burst 7 init 2",
    "6/min burst 7 ban 16min",
    "6/min burst 7 ban 1s",
    "11/s burst 5 ban 2s after 3",
    "10/s burst 7 ban 1min after 4",
    "10/s burst 7; 100/min burst 9",
    "10/s; 1000/day",
    "1000/s burst 5; 10000/min",
    "10/s burst 7 borrow",
    "10/s burst 7 borrow init 4",
    "10/s burst 7 algo interval",
    "10/s burst 15 algo interval",
    "10/s burst 7 algo interval anchor first",
    "10/s algo fixed-window",
    "10/s algo fixed-window anchor first",
    "10/s algo fixed-window count rejected",
    "10/s algo weighted-window",
    "10/s algo sliding-window segments 5",
    "10/s algo sliding-window anchor first segments 4 mode strict",
    "10/s algo sliding-window segments 5 mode interpolated",
    "10/s algo sliding-log",
    "10/s burst 4 algo pacer slack 6",
    "10/s burst 4 algo warm-up warm 2s",
    "10/forever",
    "10/s curve front",
    "10/s curve 0:50% 30%:60% 30%:70% 90%:100%",
    "10/s burst 7 refill 0:50% 50%:100%",
    "10/day zone CET-1CEST,M3.5.0,M10.5.0/3",
    "10/s burst 9 reserve low 4 high 0",
    "10/s algo interval reserve low 4 high 1",
    "10/s burst 9 ban 3s after 2 reserve low 4 high 0",
];

/// A limiter, a key of a table, or a key with an override.
#[allow(clippy::large_enum_variant)]
enum Place {
    Limiter(State),
    Key(Table),
}

impl Place {
    fn check(&self, now: u64, cost: u64, class: Option<&str>) -> Decision {
        match (self, class) {
            (Place::Limiter(state), None) => state.check_at(now, cost),
            (Place::Limiter(state), Some(class)) => {
                state.check_class_at(now, cost, class.as_bytes()).expect("a class")
            }
            (Place::Key(table), None) => table.check_at(PolicyId::FIRST, b"k", now, cost),
            (Place::Key(table), Some(class)) => table
                .check_class_at(PolicyId::FIRST, b"k", now, cost, class.as_bytes())
                .expect("a class"),
        }
    }

    fn uncounted(&self, now: u64, cost: u64) -> Decision {
        match self {
            Place::Limiter(state) => state.peek_uncounted_at(now, cost),
            Place::Key(table) => table.peek_uncounted(PolicyId::FIRST, b"k", Some(now), cost),
        }
    }

    /// The permits left at a time, by a peek for no permit.
    fn left(&self, now: u64) -> u64 {
        match self {
            Place::Limiter(state) => state.peek_at(now, 0).remaining,
            Place::Key(table) => table.peek_at(PolicyId::FIRST, b"k", now, 0).remaining,
        }
    }
}

fn places(of: &Policy) -> Vec<Place> {
    let mut places = vec![Place::Limiter(State::new(of).expect("a state"))];
    // Tables have no windows that are anchored to the first request and have more than a word.
    let options = Options { clock: Source::Wall, ..Options::new(100) };
    match Table::private(&options, &[*of]) {
        Ok(table) => places.push(Place::Key(table)),
        Err(why) => {
            assert!(of.anchor == Anchor::First && of.kind == Kind::SlidingWindow, "{of}: {why}")
        }
    }
    // A key of another policy of the same kind of state.
    let other = if of.kind.is_forever() { "1/forever" } else { "3/s burst 2" };
    let other = Table::private(&options, &[policy(other)]).expect("a table");
    if other.set_override(PolicyId::FIRST, b"k", of, Keep::Time).is_ok() {
        places.push(Place::Key(other));
    }
    places
}

#[test]
fn e5_the_time_of_the_next_permit_is_right_under_every_policy() {
    let (mut early, mut late, mut steps, mut unknown) = (0_u64, 0_u64, 0_u64, 0_u64);
    for text in with_each(Kind::ALL, &TEXTS) {
        let of = policy(&text);
        let lends = of.borrow || of.kind.lends();
        let mut rng = Rng(text.len() as u64);
        for _ in 0..rounds(25) {
            for place in places(&of) {
                let period =
                    if of.kind == Kind::Calendar { 86_400 * SEC } else { of.period.min(60 * SEC) };
                let mut now = 1_700_000_000_000_000_000 + rng.next() % 1_000_000_000_000_000;
                for _ in 0..60 {
                    let class =
                        (!of.classes.is_empty()).then(|| ["low", "high"][rng.below(2) as usize]);
                    let most = if rng.one_in(3) { 9 } else { 3 };
                    // A request that is always refused or needs no permit does not begin to fill a
                    // bucket with `init`, so no permit comes to it.
                    let cost = match of.init < of.burst {
                        true => rng.within(1, of.burst.min(most)),
                        false => rng.below(most),
                    };
                    let decision = place.check(now, cost, class.filter(|_| rng.one_in(2)));
                    let more = more_after(&of, &decision, cost, |n| place.uncounted(now, n));
                    let context =
                        || format!("{text}: {cost} at {now}: {decision:?}, more after {more}");
                    steps += 1;
                    match more {
                        NEVER => {
                            unknown += 1;
                            let known = !(lends && decision.remaining != 0);
                            for wait in [1, period / 7, period, 3 * period, 100 * period] {
                                assert!(
                                    !known || place.left(now + wait) <= decision.remaining,
                                    "{}",
                                    context()
                                );
                            }
                        }
                        _ => {
                            early += u64::from(place.left(now + more) <= decision.remaining);
                            late += u64::from(place.left(now + more - 1) > decision.remaining);
                            assert!(
                                place.left(now + more) > decision.remaining,
                                "{}: too early",
                                context()
                            );
                            assert!(
                                place.left(now + more - 1) <= decision.remaining,
                                "{}: too late",
                                context()
                            );
                        }
                    }
                    figures((&of, &place), now, cost, &decision, &context);
                    now += match rng.below(4) {
                        0 => 0,
                        1 => rng.below(period / 5),
                        2 => decision.retry_ns().unwrap_or(1),
                        _ => rng.below(3 * period),
                    };
                }
            }
        }
    }
    println!("more_after: {early} too early and {late} too late of {steps}; {unknown} unknown");
    assert_eq!((early, late), (0, 0));
    assert!(steps - unknown > rounds(50_000), "{unknown} unknown of {steps}");
}

/// `retry_after` and `reset_after` of a decision.
fn figures(
    (of, place): (&Policy, &Place),
    now: u64,
    cost: u64,
    decision: &Decision,
    context: &dyn Fn() -> String,
) {
    if let (Some(wait), Verdict::Denied) = (decision.retry_ns(), decision.verdict) {
        // The wait of a class is for its reserve, too.
        assert!(
            place.uncounted(now + wait, cost).is_allowed(),
            "{}: refused at retry_after",
            context()
        );
    }
    if decision.reset_after != NEVER {
        let (then, fresh) = (now + decision.reset_after, State::new(of).expect("a state"));
        assert!(place.left(then) >= fresh.peek_at(then, 0).remaining, "{}: reset_after", context());
    }
}
