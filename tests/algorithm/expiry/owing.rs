//! States that owe until a time.

use super::*;

#[test]
fn what_owes_expires_then_and_gives_no_more_than_a_fresh_state() {
    let mut rng = Rng(5);
    for (policy, rule) in each() {
        for round in 0..600 {
            let until = if round == 0 { 0 } else { sometime(&mut rng) };
            let word = rule.owing(until);
            let at = rule.expires_at(word);
            assert_ne!(word, 0, "{policy}, {until}");
            assert!(at >= until, "{policy}, {until}: {at}");
            if policy.limit != 0 && until <= END {
                assert!(rule.fresh_at(word, 0) >= until, "{policy}, {until}");
            }
            // No window comes after the first if it is longer than the clock.
            if until <= END / 2 && policy.period <= HORIZON {
                assert_ne!(at, NEVER, "{policy}, {until}");
                let late = at - until;
                match (policy.kind, slop(&policy)) {
                    _ if policy.limit == 0 => assert_eq!(at, until.max(1)),
                    (_, Some(slop)) => assert!(late <= 2 * slop, "{policy}, {until}: {late}"),
                    // One unit of its clock, which shares the word with the store.
                    (Kind::WarmUp, _) => {
                        assert!(late <= YEAR.min(policy.period / 8), "{policy}, {until}: {late}")
                    }
                    // The longest month, in a zone that moves by a day in it.
                    (Kind::Calendar, _) => {
                        assert!(late < policy.period + 2 * DAY, "{policy}, {until}: {late}")
                    }
                    _ => assert!(
                        late < policy.period || at == policy.period,
                        "{policy}, {until}: {late}"
                    ),
                }
            }
            let now = until.saturating_sub(rng.next() >> rng.below(64));
            assert!(
                rule.available(word, now) <= rule.available(0, now),
                "{policy}, {until} at {now}"
            );
            no_more_than_fresh(&policy, &rule, word, now, &mut rng);
            if policy.kind == Kind::FixedWindow || depends_on_the_first(&policy) && policy.ban == 0
            {
                assert_eq!(
                    rule.step(word, at.saturating_sub(1), 1).verdict,
                    Verdict::Denied,
                    "{policy}, {until}"
                );
            }
            if at < END {
                as_good_as_fresh(&policy, &rule, word, at, &mut rng);
            }
        }
    }
}

/// A debt that is taken over many times grows only by the few nanoseconds of each rounding.
#[test]
fn a_debt_that_is_passed_on_stays_what_it_is() {
    let mut rng = Rng(6);
    for (policy, rule) in each() {
        for _ in 0..100 {
            let word = rule.owing(rng.below(END / 2));
            let first = rule.expires_at(word);
            let last = (0..100).fold(word, |word, _| rule.owing(rule.expires_at(word)));
            let grown = rule.expires_at(last) - first;
            assert!(grown <= slop(&policy).map_or(0, |slop| 200 * slop), "{policy}: {grown}");
        }
    }
}

/// A debt until a time that no word can hold admits nothing.
#[test]
fn what_owes_for_ever_admits_nothing() {
    let mut rng = Rng(7);
    for (policy, rule) in each() {
        let word = rule.owing(NEVER);
        assert_eq!(rule.expires_at(word), NEVER, "{policy}");
        for _ in 0..2_000 {
            let now = sometime(&mut rng);
            let cost = rng.within(1, policy.burst.max(1));
            assert_eq!(
                rule.step(word, now, cost),
                tollbar::algorithm::Step::deny(),
                "{policy}: {cost} at {now}"
            );
            assert_eq!(rule.available(word, now), 0, "{policy} at {now}");
            assert_eq!(rule.admits_at(word, now, cost), NEVER, "{policy}: {cost} at {now}");
            assert_eq!(rule.reserve(word, now, cost), None, "{policy}: {cost} at {now}");
        }
    }
}

/// `owing` and the calls on its words neither overflow nor decrease at the edges of times and
/// costs.
#[test]
fn the_edges_of_what_owes() {
    let mut rng = Rng(8);
    for (policy, rule) in each() {
        for _ in 0..2_000 {
            let mut state = rule.owing(sometime(&mut rng));
            assert!(rule.expires_at(state) > 0, "{policy}: {state}");
            for _ in 0..4 {
                let (now, cost) = (sometime(&mut rng), sometime(&mut rng));
                let before = rule.expires_at(state);
                let _ = rule.describe(Verdict::Denied, state, now, cost);
                if let Some((next, _)) = touch(&rule, state, now, cost, &mut rng) {
                    assert!(
                        rule.expires_at(next) >= before,
                        "{policy}, {state:#x}: {cost} at {now}"
                    );
                    state = next;
                }
            }
        }
    }
}
