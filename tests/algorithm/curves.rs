//! Refill curves (S12) and level-dependent refill (S39): their numbers, their text, and random
//! policies beside exact models.

use crate::common::*;
use crate::oracle::curves::{Curve, Levels};
use crate::oracle::{compare, q, Model, Side, Step, Q};
use std::time::Duration;
use tollbar::algorithm::{Algorithm, Charge, Rule};
use tollbar::clock::Manual;
use tollbar::limiter::Cell;
use tollbar::policy::{text, Fault, Keep, Knots};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::units::LAST;
use tollbar::{Kind, Limiter, Policy, PolicyError, Shared, State, Verdict, NEVER};

const FIRST: PolicyId = PolicyId::FIRST;

/// S12: of 100 permits in a slice, how many have come after half of it.
#[test]
fn s12_a_curve_says_how_early_the_permits_come() {
    for (curve, half) in [
        ("linear", 50),
        ("ln", 62),
        ("log2", 58),
        ("front", 75),
        ("step", 75),
        ("0:0 50%:80% 100%:100%", 80),
    ] {
        let text = format!("100/min curve {curve}");
        for slice in [0, 1, 1_000_000] {
            let limiter = state(&text);
            let begin = slice * MIN;
            assert_eq!(limiter.take_up_to_at(begin + MIN / 2, u64::MAX), half, "{text}");
            // The rest comes by the last nanosecond, and not one permit more.
            assert_eq!(limiter.take_up_to_at(begin + MIN - 1, u64::MAX), 100 - half, "{text}");
            assert_eq!(limiter.peek_at(begin + MIN - 1, 1).remaining, 0, "{text}");
        }
    }
}

/// S12: exactly N in each slice, for a caller that takes each permit when it comes.
#[test]
fn s12_each_slice_admits_exactly_its_limit() {
    let mut rng = Rng(12);
    for (limit, period) in
        [(1, 1), (7, 1), (3, 2), (10, 3), (10, 999), (100, 60 * SEC), (1, DAY), (97, 365 * DAY)]
    {
        for knots in
            [Knots::NONE, Knots::LN, Knots::LOG2, Knots::FRONT, Knots::STEP, random_curve(&mut rng)]
        {
            let policy = Policy::new(limit, period).with_curve(knots);
            let limiter = State::new(&policy).unwrap_or_else(|why| panic!("{policy}: {why}"));
            let mut now = 5 * period;
            for slice in 5..8 {
                let mut taken = 0;
                loop {
                    let wait = limiter.peek_at(now, 1).retry_after;
                    if now + wait >= (slice + 1) * period {
                        break;
                    }
                    now += wait;
                    assert_eq!(limiter.admit_at(now, 1), Verdict::Allowed, "{policy} at {now}");
                    taken += 1;
                }
                assert_eq!(taken, limit, "{policy}, slice {slice}");
                now = (slice + 1) * period;
            }
        }
    }
}

/// The named curves follow their functions from below.
#[test]
fn the_named_curves_are_near_their_functions() {
    type Function = fn(f64) -> f64;
    let functions: [(&str, Function, f64); 3] = [
        ("linear", |t| t, 0.0),
        ("ln", |t| (t * (std::f64::consts::E - 1.0)).ln_1p(), 0.004),
        ("log2", |t| (1.0 + t).log2(), 0.007),
    ];
    for (name, function, most) in functions {
        let limiter = state(&format!("1000000/s curve {name}"));
        let mut worst = 0.0f64;
        for n in 0..1000 {
            let now = SEC + n * MS;
            let exact = function(n as f64 / 1000.0) * 1e6;
            let has = limiter.peek_at(now, 0).remaining as f64;
            assert!(has <= exact + 2.0, "{name} at {n}: {has} above {exact}");
            worst = worst.max((exact - has) / 1e6);
        }
        assert!(worst <= most + 1e-5 && worst >= most * 0.8, "{name}: {worst}");
    }
}

/// A curve of 1 to 64 random knots, in whole percents or in hundredths.
fn random_curve(rng: &mut Rng) -> Knots {
    let (step, count) = (rng.pick(&[1, 100]), rng.pick(&[0, 3, 15, 40, 63]));
    let mut numbers = |count: u64| {
        let number = |_| rng.below(10_000 / step + 1) * step;
        let mut all: Vec<u64> = (0..count).map(number).collect();
        all.sort_unstable();
        all
    };
    let (times, shares) = (numbers(count), numbers(count));
    let mut pairs: Vec<[u64; 2]> =
        times.into_iter().zip(shares).map(|(at, share)| [at, share]).collect();
    let end = pairs.last().map_or(5_000, |[at, _]| *at);
    pairs.push([if rng.one_in(3) { 10_000 } else { end }, 10_000]);
    pairs.retain(|pair| *pair != [0, 0]);
    pairs.dedup();
    let pairs: Vec<[u16; 2]> = pairs.iter().map(|pair| pair.map(|n| n as u16)).collect();
    Knots::of_hundredths(&pairs)
}

/// Bands of random levels and rates.
fn random_bands(rng: &mut Rng) -> Knots {
    let mut levels: Vec<u8> = (0..rng.below(4)).map(|_| rng.within(1, 99) as u8).collect();
    levels.push(0);
    levels.sort_unstable();
    levels.dedup();
    let rates = [1, 10, 25, 33, 50, 75, 80, 99, 100];
    let pairs: Vec<[u8; 2]> = levels.into_iter().map(|level| [level, rng.pick(&rates)]).collect();
    Knots::of(&pairs)
}

#[test]
fn random_curves_decide_as_the_definition_does() {
    let mut rng = Rng(22);
    for _ in 0..rounds(150) {
        let limit = rng.pick(&[1, 2, 3, 7, 100, 101, 127, 128, 129, (1 << 20) + 1]);
        let period = rng.pick(&[1, 2, 3, 99, 100, 101, 1 << 10, (1 << 20) - 1, SEC, MIN + 1, DAY]);
        let policy = Policy::new(limit, period).with_curve(random_curve(&mut rng));
        if State::validate(&policy).is_ok() {
            compare(&policy.to_string(), 20, Step(1), |policy| Box::new(Curve::new(policy)));
        }
    }
}

/// Limits and periods at the ends of their types compile and decide exactly, or are refused when
/// they are made.
#[test]
fn the_largest_curves_are_exact_or_refused() {
    let mut rng = Rng(23);
    let numbers: Vec<u64> = (0..64)
        .flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1])
        .chain([u64::MAX - 1, u64::MAX])
        .collect();
    let mut made = 0;
    for _ in 0..rounds(20_000) {
        let policy =
            Policy::new(rng.pick(&numbers), rng.pick(&numbers)).with_curve(random_curve(&mut rng));
        let Ok(Rule::Curve(curve)) = Rule::new(&policy) else { continue };
        made += 1;
        let (model, last) = (Curve::new(&policy), curve.last_time());
        for now in
            [0, 1, policy.period / 2, policy.period - 1, policy.period, last / 2, last - 1, last]
                .map(|t| t.min(last))
        {
            assert_eq!(
                curve.available(0, now),
                model.come(now % policy.period),
                "{policy} at {now}"
            );
            for cost in [1, policy.limit / 2, policy.limit].map(|cost| cost.max(1)) {
                let at = curve.admits_at(0, now, cost);
                let slice = now - now % policy.period;
                if at == NEVER {
                    // The next slice's permits come after the last time.
                    assert!(
                        last - slice < policy.period.saturating_mul(2),
                        "{policy}: {cost} at {now}"
                    );
                    continue;
                }
                assert!(
                    at >= now && at - slice < policy.period.saturating_mul(2),
                    "{policy}: {cost} at {now}: {at}"
                );
                assert!(model.come(at % policy.period) >= cost, "{policy}: {cost} at {now}: {at}");
                if at > now {
                    assert!(
                        curve.step(0, at - 1, cost).next.is_none(),
                        "{policy}: {cost} at {now}: {at}"
                    );
                }
            }
        }
        assert!(curve.step(0, last + 1, 1).next.is_none(), "{policy}");
    }
    assert!(made > rounds(20_000) / 10, "{made}");
}

/// A caller gets permits of a slice back only in that slice. In any order of charges and returns,
/// the callers together keep no more permits than the curve has given by then.
#[test]
fn returns_of_a_curve_never_let_more_in_than_has_come() {
    let mut rng = Rng(24);
    for _ in 0..rounds(20_000) {
        let policy = Policy::new(rng.within(1, 12), 1000).with_curve(random_curve(&mut rng));
        let (table, model) =
            (Table::private(&Options::new(10), &[policy]).unwrap(), Curve::new(&policy));
        let (mut now, mut charges) = (rng.below(3000), Vec::new());
        for _ in 0..30 {
            now += rng.below(200);
            let cost = rng.within(1, 4);
            if table.admit_at(FIRST, b"key", now, cost) == Verdict::Allowed {
                charges.push((Charge { at: now, cost }, cost));
                let kept: u64 = charges
                    .iter()
                    .filter(|(c, _)| c.at / 1000 == now / 1000)
                    .map(|(_, kept)| kept)
                    .sum();
                assert!(kept <= model.come(now % 1000), "{policy}: {kept} at {now}");
            }
            if let (true, false) = (rng.one_in(2), charges.is_empty()) {
                let n = rng.below(charges.len() as u64) as usize;
                let (charge, kept) = &mut charges[n];
                let back = table
                    .give_back_at(FIRST, b"key", now, *charge, rng.within(1, *kept + 1).min(*kept))
                    .unwrap();
                assert!(
                    back == 0 || charge.at / 1000 == now / 1000,
                    "{policy}: {back} of {charge:?} at {now}"
                );
                *kept -= back;
            }
        }
    }
}

/// S39: 60,000 requests and more of random policies. The exact bucket would admit each admitted
/// request, a refusal's wait is exact, and the bucket lags by what crossing bands rounds away.
#[test]
fn s39_level_dependent_refill_never_admits_more_than_the_exact_bucket() {
    let mut rng = Rng(39);
    let (mut asked, mut refused, mut exact) = (0u64, 0u64, 0u64);
    while asked < 60_000 {
        let policy =
            Policy::new(rng.pick(&[1, 3, 7, 10, 97, 1000]), rng.pick(&[SEC, 999, MIN, 1_234_567]))
                .with_burst(rng.pick(&[1, 2, 9, 100, 257]))
                .with_bands(random_bands(&mut rng));
        // Some rates of bands have no common unit that the word can count at a high rate.
        let rule = match Rule::new(&policy) {
            Err(PolicyError::RateTooHigh) if policy.period == 999 => continue,
            rule => rule.unwrap_or_else(|why| panic!("{policy}: {why}")),
        };
        let Rule::LevelRefill(bucket) = rule else { panic!("{policy}") };
        // The rate of the band in which the bucket is at this level.
        let rate = |level: &Q| {
            let begins = |percent: u16| q(u128::from(policy.burst) * u128::from(percent) / 10_000);
            let reached = policy.knots.pairs().filter(|[at, _]| begins(*at) <= *level).last();
            u64::from(reached.expect("the first band begins at 0")[1])
        };
        let units = u128::from(policy.limit) * u128::from(bucket.grid().per_permit().get());
        let unit = (u128::from(policy.period) / units) as u64 + 1;
        for _ in 0..20 {
            let (cell, mut model) = (Cell::new(rule), Levels::new(&policy));
            // How many nanoseconds later than the exact bucket this one may be full. A charge that
            // moves both buckets to a slower band makes more of it, because a part of a permit
            // takes longer there.
            let (mut lag, mut shape) = (0u64, Shape::new(&policy, &mut rng));
            for _ in 0..shape.length {
                let (now, cost) = (shape.now, shape.cost(&mut rng));
                let answer = cell.check_at(now, cost);
                asked += 1;
                if cost != 0 && cost <= policy.burst {
                    let fits = model.fits(now, cost, Side::Exact);
                    assert!(
                        fits || !answer.is_allowed(),
                        "{policy}: {cost} at {now} is above the exact bucket"
                    );
                    assert!(
                        answer.remaining <= model.remaining(now, Side::Exact),
                        "{policy} at {now}"
                    );
                    if let Some(wait) = answer.retry_ns() {
                        let soonest = model.admits_at(now, cost, Side::Exact) - now;
                        assert!(
                            wait >= soonest && wait <= soonest.saturating_add(lag + 1),
                            "{policy}: {wait} for {soonest}, {lag}"
                        );
                        assert!(
                            cell.peek_at(now + wait, cost).is_allowed(),
                            "{policy}: refused at its time"
                        );
                        assert_eq!(cell.peek_at(now + wait - 1, cost).retry_after, 1, "{policy}");
                        refused += 1;
                        exact += u64::from(wait == soonest);
                    }
                    if answer.is_allowed() {
                        let before = model.level(now);
                        model.settle(now, cost, true);
                        let (old, new) = (rate(&before), rate(&model.level(now)));
                        let kept = if before == q(policy.burst) && lag == 0 {
                            0
                        } else {
                            lag.saturating_add(2 * unit)
                        };
                        lag = kept
                            .saturating_mul(old.div_ceil(new))
                            .saturating_add(2 * unit)
                            .min(1 << 62);
                    }
                }
                shape.advance(&mut rng, answer.retry_after);
            }
        }
    }
    assert!(
        refused > 10_000 && exact > refused / 2,
        "{exact} of {refused} refusals had the exact bucket's wait"
    );
}

/// Where each band is a whole number of times slower than the one above it, nothing is rounded.
#[test]
fn slower_bands_below_are_exact() {
    for text in [
        "10/s burst 8 refill 0:50% 50%:100%",
        "3/min burst 9 refill 0:25% 33%:50% 66%:100%",
        "100/s burst 200 refill 0:50% 50%:100%",
        "7/s burst 5 refill 0:20% 40%:100%",
        "10/s burst 5 algo level-refill",
    ] {
        compare(text, 300, Step(1), |policy| Box::new(Levels::new(policy)));
    }
}

/// From empty, half of the bucket fills at half of the rate.
#[test]
fn an_empty_bucket_fills_slowly_at_first() {
    let limiter = state("100/s burst 200 refill 0:50% 50%:100%");
    assert_eq!(limiter.take_up_to_at(HOUR, 1000), 200);
    for (after, has) in [
        (0, 0),
        (SEC, 50),
        (2 * SEC, 100),
        (2 * SEC + SEC / 2, 150),
        (3 * SEC, 200),
        (4 * SEC, 200),
    ] {
        assert_eq!(limiter.peek_at(HOUR + after, 1).remaining, has, "{after}");
    }
    // 40 s of requests at full speed: half of the rate, as the bucket is never above its first
    // half.
    let taken: u64 = (1..=40_000).map(|n| limiter.take_up_to_at(HOUR + n * MS, 1000)).sum();
    assert_eq!(taken, 2000);
}

/// Every rate and burst compiles to a bucket that never divides by 0 nor wraps, or is refused.
#[test]
fn the_largest_buckets_are_safe_or_refused() {
    let mut rng = Rng(40);
    let numbers: Vec<u64> = (0..64)
        .flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1])
        .chain([u64::MAX - 1, u64::MAX])
        .collect();
    let mut made = 0;
    for _ in 0..rounds(40_000) {
        let mut number = || rng.pick(&numbers) >> rng.below(64);
        let (limit, period, burst) = (number(), number(), number());
        let policy =
            Policy::new(limit, period).with_burst(burst).with_bands(random_bands(&mut rng));
        let Ok(Rule::LevelRefill(bucket)) = Rule::new(&policy) else { continue };
        made += 1;
        let last = bucket.last_time();
        let mut state = 0;
        for now in [0, 1, last / 2, last - 1, last] {
            for cost in [1, burst / 2, burst, burst / 3].map(|cost| cost.clamp(1, burst)) {
                let step = bucket.step(state, now, cost);
                match step.next {
                    Some(next) => {
                        assert!(bucket.expires_at(next) >= bucket.expires_at(state), "{policy}");
                        state = next;
                    }
                    None => {
                        let at = bucket.admits_at(state, now, cost);
                        assert!(at > now, "{policy}: {cost} at {now}");
                        if at != NEVER {
                            assert!(
                                bucket.step(state, at, cost).next.is_some(),
                                "{policy}: {cost} at {at}"
                            );
                            assert!(
                                bucket.step(state, at - 1, cost).next.is_none(),
                                "{policy}: {cost} before {at}"
                            );
                        }
                    }
                }
                let charged = bucket.charge(state, now, cost);
                assert!(charged.rest <= cost);
                state = charged.next.unwrap_or(state);
            }
        }
        assert!(bucket.step(0, last + 1, 1).next.is_none(), "{policy}");
    }
    assert!(made > rounds(40_000) / 20, "{made}");
}

#[test]
fn the_text_is_read_and_printed() {
    for same in [
        "100/min curve linear",
        "100/min curve ln",
        "100/min curve log2",
        "100/min curve front",
        "100/min curve step",
        "100/min curve 0:0 50%:80% 100%:100%",
        "100/min curve 0:20% 100%:100%",
        "100/min curve 0:100%",
        "1000/day curve 0:0 10%:10% 10%:30% 90%:100% unit bytes",
        "100/s burst 200 refill 0:50% 50%:100%",
        "100/s refill 0:1% 1%:33% 50%:66% 99%:100%",
        "100/s algo level-refill",
    ] {
        assert_eq!(policy(same).to_string(), same);
    }
    for (text, canonical) in [
        ("100/min algo curve", "100/min curve linear"),
        ("100/min curve ln algo curve", "100/min curve ln"),
        ("100/min curve 50%:80% 100%:100%", "100/min curve 0:0 50%:80% 100%:100%"),
        ("100/min curve 0%:0% 50%:80%   100%:100%", "100/min curve 0:0 50%:80% 100%:100%"),
        ("100/min curve 0:50% 100%:100%", "100/min curve front"),
        (
            "100/min curve 0.5%:7.05% 60.00%:80.10% 100.0%:100%",
            "100/min curve 0:0 0.5%:7.05% 60%:80.1% 100%:100%",
        ),
        ("100/min curve 0.010%:99.99% 100%:100%", "100/min curve 0:0 0.01%:99.99% 100%:100%"),
        ("100/s algo level-refill refill 0:50% burst 9", "100/s burst 9 refill 0:50%"),
    ] {
        assert_eq!(policy(text).to_string(), canonical, "{text}");
    }
    // The longest text has room.
    let knots: Vec<[u16; 2]> = (0..40).map(|n| [9111 + 22 * n, 9142 + 22 * n]).collect();
    let longest = Policy {
        unit: tollbar::Unit::Bytes,
        ..Policy::new(u64::MAX, u64::MAX - 1).with_curve(Knots::of_hundredths(&knots))
    };
    let text = longest.to_string();
    assert!(text.len() > 600 && text.len() < text::TEXT_MOST, "{}: {text}", text.len());
    assert_eq!(text::parse(text.as_bytes()), Ok(longest));
}

#[test]
fn a_wrong_text_says_where_and_what() {
    let all = (1..=64).map(|n| format!("{n}%:{n}%")).collect::<Vec<_>>().join(" ");
    for (text, column, expected) in [
        ("100/min curve", 14, "`linear`, `ln`"),
        ("100/min curve square", 15, "`linear`, `ln`, `log2`, `front`, `step` or knots such as"),
        ("100/min curve 0:0 50%", 22, "`:`"),
        ("100/min curve 0:0 50%:", 23, "a knot such as"),
        ("100/min curve 0:0 50:80%", 21, "`%`"),
        ("100/min curve 0:0 101%:80%", 19, "0% to 100%"),
        ("100/min curve 0:0 50%:80%", 26, "another knot"),
        ("100/min curve 0:0 50%:80% 40%:100%", 27, "a knot such as"),
        ("100/min curve 0:0 50%:80% 60%:70%", 27, "neither earlier nor lower"),
        ("100/min curve 0:0 0:0 100%:100%", 19, "later or higher"),
        ("100/min curve 0:0 50.%:80%", 19, "at most two decimals"),
        ("100/min curve 0:0 50.125%:80%", 19, "at most two decimals"),
        ("100/min curve 0:0 100.01%:100%", 19, "0% to 100%"),
        ("100/min curve 0:0 99999999999%:100%", 19, "0% to 100%"),
        (&format!("100/min curve {all} 100%:100%"), 509, "at most 64 knots"),
        ("100/s refill 0:12.5%", 16, "a whole number of percents"),
        ("100/s refill", 13, "bands such as"),
        ("100/s refill 10%:50%", 14, "from level 0"),
        ("100/s refill 0:50% 0:60%", 20, "a level above"),
        ("100/s refill 0:0", 14, "a rate of 1%"),
        ("100/s refill 0:1% 1%:1% 2%:1% 3%:1% 4%:1%", 37, "at most 4 bands"),
    ] {
        let why = text::parse(text.as_bytes()).expect_err(text);
        assert_eq!((why.column, why.fault), (column, Fault::Syntax), "{text}: {why}");
        assert!(why.expected().contains(expected), "{text}: {why}");
    }
    // Options of other algorithms, and policies that are no texts.
    for (text, column) in [
        ("100/min curve ln burst 9", 18),
        ("100/min algo gcra curve ln", 19),
        ("100/min curve ln refill 0:50%", 18),
        ("100/min refill 0:50% init 3", 22),
        ("100/forever curve ln", 13),
        ("10/s; 100/min curve ln", 7),
    ] {
        let why = text::parse(text.as_bytes()).expect_err(text);
        assert_eq!(
            (why.column, matches!(why.fault, Fault::Policy(_))),
            (column, true),
            "{text}: {why}"
        );
    }
    for knots in [
        Knots::of(&[[50, 80]]),
        Knots::of(&[[50, 80], [40, 100]]),
        Knots::of(&[[50, 80], [60, 70], [100, 100]]),
        Knots::of(&[[50, 80], [50, 80], [100, 100]]),
        Knots::of(&[[0, 0], [100, 100]]),
        Knots::of(&[[50, 101]]),
        Knots::of(&[[101, 100]]),
    ] {
        assert_eq!(
            Policy::new(9, SEC).with_curve(knots).validate(),
            Err(PolicyError::Knots),
            "{knots:?}"
        );
    }
    for bands in [
        Knots::of(&[[1, 50]]),
        Knots::of(&[[0, 101]]),
        Knots::of(&[[0, 50], [100, 100]]),
        Knots::of(&[[0, 50], [50, 0]]),
        Knots::of(&[[0, 50], [50, 60], [50, 70]]),
        Knots::of(&[[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]]),
        Knots::of(&[[0, 0], [50, 50]]),
    ] {
        assert_eq!(
            Policy::new(9, SEC).with_bands(bands).validate(),
            Err(PolicyError::Knots),
            "{bands:?}"
        );
    }
    assert_eq!(
        Policy { knots: Knots::LN, ..Policy::new(9, SEC) }.validate(),
        Err(PolicyError::OptionMismatch)
    );
}

/// A table's file keeps each curve and all bands, and a limiter with threads' credit refuses them.
#[test]
fn tables_keep_them_and_credit_refuses_them() {
    let mut rng = Rng(41);
    for _ in 0..rounds(200) {
        let one = Policy::new(10, SEC).with_curve(random_curve(&mut rng));
        let other = Policy::new(10, SEC).with_burst(30).with_bands(random_bands(&mut rng));
        let (table, descriptor) = Table::sealed(&Options::new(10), &[one, other]).unwrap();
        let again = Table::open_descriptor(descriptor).unwrap();
        // SAFETY: the descriptor is this test's own.
        unsafe { libc::close(descriptor) };
        assert_eq!([FIRST, PolicyId::new(1)].map(|id| again.policy(id).unwrap()), [one, other]);
        drop(table);
        for policy in [one, other] {
            assert_eq!(
                Limiter::with_credit(&policy).err(),
                Some(PolicyError::OptionMismatch),
                "{policy}"
            );
        }
    }
}

/// A changed policy keeps the permits that are left, or the time until the state is fresh.
#[test]
fn a_changed_policy_keeps_the_count_or_the_time() {
    let begin = HOUR;
    for (old, new, keep, left) in [
        // 40 of 80 are used at half a slice.
        ("100/min curve 0:80% 100%:100%", "50/min curve 0:100%", Keep::Count, 10),
        ("100/min curve 0:80% 100%:100%", "200/min curve 0:100%", Keep::Time, 160),
        ("100/min curve 0:80% 100%:100%", "100/min", Keep::Count, 50),
        ("100/min curve 0:80% 100%:100%", "100/min", Keep::Time, 50),
        ("100/min", "100/min curve 0:80% 100%:100%", Keep::Count, 60),
        ("100/min", "100/min curve linear", Keep::Time, 0),
        ("60/min burst 80 refill 0:50% 50%:100%", "60/min burst 80", Keep::Count, 40),
        ("60/min burst 80", "60/min burst 80 refill 0:50% 50%:100%", Keep::Count, 40),
        // The time of expiry is some nanoseconds late.
        ("60/min burst 80 refill 0:50% 50%:100%", "60/min burst 80", Keep::Time, 39),
        ("60/min burst 80", "10/min curve 0:100%", Keep::Reset, 10),
    ] {
        let now = begin + MIN / 2;
        let limiter = Limiter::with(state(old), Manual::new(now));
        assert_eq!(limiter.take_up_to(40), 40, "{old}");
        limiter.set_policy(&policy(new), keep).unwrap();
        let table = Table::private(&Options::new(10), &[policy(old)]).unwrap();
        assert_eq!(table.take_up_to_at(FIRST, b"key", now, 40), 40, "{old}");
        table.set_policy_keeping(FIRST, &policy(new), keep).unwrap();
        let has = [limiter.peek(0).remaining, table.peek_at(FIRST, b"key", now, 0).remaining];
        assert_eq!(has, [left; 2], "{old} to {new}, {keep:?}");
    }
}

/// A caller that waits is admitted at the instant of its permit, though neither algorithm books
/// ahead.
#[test]
fn a_waiting_caller_is_admitted_when_its_permit_comes() {
    for (text, times) in [
        ("4/s curve linear", [250, 500, 750, 1000].map(|ms| ms * MS)),
        ("4/s curve step", [0, 250, 500, 750].map(|ms| ms * MS)),
    ] {
        let limiter = Limiter::with(state(text), Manual::new(HOUR));
        for time in times {
            assert!(limiter.wait_ns(1, NEVER).is_allowed(), "{text}");
            assert!(
                limiter.now().abs_diff(HOUR + time) <= 1,
                "{text}: {:?}",
                Duration::from_nanos(limiter.now() - HOUR)
            );
        }
        assert_eq!(limiter.reserve(1, NEVER), None, "{text} books nothing ahead");
    }
    assert!(state("9/s curve front").admit_at(LAST, 1) == Verdict::Allowed);
}

/// A charge afterwards: a curve counts up to its limit, a bucket gets a debt.
#[test]
fn charges_afterwards() {
    let limiter = state("10/s curve linear");
    assert_eq!(limiter.charge_at(HOUR, 15), 5, "the slice has 10");
    assert_eq!(limiter.peek_at(HOUR, 10).retry_after, 2 * SEC - 1, "all of the next slice");
    assert_eq!(limiter.peek_at(HOUR, 1).retry_after, SEC + SEC.div_ceil(10));
    let limiter = state("10/s burst 10 refill 0:50% 50%:100%");
    // Full in 1.5 s. A debt of 7 permits takes 1.4 s.
    assert_eq!(limiter.charge_at(HOUR, 100), 100 - 10 - 7);
    assert_eq!(limiter.peek_at(HOUR, 1).retry_after, 1400 * MS + 200 * MS);
    assert_eq!(limiter.charge_at(HOUR, 1), 1, "no more");
}

/// The oracle is not the library: a curve whose last knot is at the end of the period and not a
/// nanosecond before it keeps its last permit.
#[test]
fn the_last_permit_comes_in_its_slice() {
    let model = Curve::new(&policy("5/7ns curve linear"));
    assert_eq!((0..7).map(|t| model.come(t)).collect::<Vec<_>>(), [0, 0, 1, 2, 3, 4, 5]);
    let half: Q = Levels::new(&policy("10/s burst 3 refill 0:50%")).level(HOUR);
    assert_eq!((half, policy("5/7ns curve linear").kind), (q(3), Kind::Curve));
}
