//! Random policies and words.

use super::*;

/// A policy of a zone whose clocks jump twice a year.
const BERLIN: &str = "9/day zone CET-1CEST,M3.5.0,M10.5.0/3";

/// A number of any size.
fn sized(most: u32) -> impl Strategy<Value = u64> {
    (0..most).prop_flat_map(|bits| (1u64 << bits)..=(2u64 << bits))
}

/// Any policy with a state of one word; some of them do not compile.
fn any_policy() -> impl Strategy<Value = Policy> {
    let numbers = (sized(34), sized(55), sized(45), any::<u64>(), sized(40));
    (numbers, any::<usize>(), any::<[bool; 3]>()).prop_map(
        |((limit, period, burst, part, warm_up), kind, flags)| {
            let [first, second, own_burst] = flags;
            let kind = one_word().nth(kind % one_word().count()).expect("one of them");
            let mut policy = match kind {
                Kind::Calendar => {
                    let span = [Span::Day, Span::Week, Span::Month, Span::Year][part as usize % 4];
                    Policy::calendar(
                        limit,
                        span,
                        if first { policy(BERLIN).zone } else { Zone::UTC },
                    )
                }
                _ => Policy::new(limit, period).with_kind(kind),
            };
            if own_burst && kind.takes(Opt::Burst) {
                policy = policy.with_burst(burst);
            }
            match kind {
                Kind::Gcra => {
                    policy.borrow = first;
                    policy.init = if second { part % (policy.burst + 1) } else { policy.burst };
                    if !first && !second && part % 2 == 0 {
                        policy = policy.with_ban(warm_up, 1 + (part / 2 % 1_000) as u32);
                    }
                }
                Kind::Pacer => policy.slack = if first { part % 1_000 } else { 0 },
                Kind::WarmUp => policy.warm_up = warm_up,
                Kind::Curve => {
                    policy.knots =
                        [Knots::NONE, Knots::LN, Knots::STEP, Knots::FRONT][part as usize % 4]
                }
                Kind::LevelRefill => {
                    let [low, middle, high] =
                        [part, part >> 8, part >> 16].map(|n| 1 + (n % 100) as u8);
                    policy.knots = Knots::of(&[[0, low], [high.min(98), middle], [99, high]]);
                }
                Kind::Interval | Kind::FixedWindow if first => policy.anchor = Anchor::First,
                _ => {}
            }
            policy.count_rejected = second && kind == Kind::FixedWindow;
            policy
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(12),
        max_global_rejects: 100_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_policys_states_keep_the_contract(policy in any_policy(), seed in any::<u64>()) {
        prop_assume!(Rule::new(&policy).is_ok());
        let (rule, mut rng) = (rule(&policy), Rng(seed));
        never_falls(&policy, &mut rng);
        let (state, _) = used(&policy, &rule, 12, &mut rng);
        let at = rule.expires_at(state);
        if at < END {
            as_good_as_fresh(&policy, &rule, state, at, &mut rng);
        }
        let until = sometime(&mut rng);
        let word = rule.owing(until);
        let at = rule.expires_at(word);
        prop_assert!(word != 0 && at >= until);
        no_more_than_fresh(&policy, &rule, word, until.saturating_sub(rng.below(policy.period)), &mut rng);
        if at < END {
            as_good_as_fresh(&policy, &rule, word, at, &mut rng);
        }
    }

    #[test]
    fn any_two_policies_hand_states_over(old in any_policy(), new in any_policy(), seed in any::<u64>()) {
        prop_assume!(Rule::new(&old).is_ok() && Rule::new(&new).is_ok());
        adopts((&new, &rule(&new)), (&old, &rule(&old)), &mut Rng(seed));
    }
}
