//! Callers that leave in any order: what comes back, who gets in, and whether the bound holds.

use super::*;

const PERMIT: u64 = 100 * MS;

/// What a queue without bookings would do that checks at every instant: the first caller takes its permits as soon as they are there.
fn ideal(callers: &[Caller], burst: u64) -> Vec<End> {
    let (mut tat, mut left) = (START + PERMIT, START);
    let end = |caller: &Caller| {
        let head = left.max(caller.comes);
        let at = head.max((tat + caller.cost * PERMIT).saturating_sub(burst * PERMIT));
        if at <= caller.gives_up.min(caller.deadline) {
            tat = tat.max(at) + caller.cost * PERMIT;
            left = at;
            End::Admitted(at)
        } else {
            left = left.max(caller.gives_up);
            End::GaveUp(caller.gives_up)
        }
    };
    callers.iter().map(end).collect()
}

/// Whether no window of the admissions has more than the burst and the refill of the window.
pub(crate) fn within_the_bound(mut used: Vec<(u64, u64)>, burst: u64) -> bool {
    used.sort_unstable();
    (0..used.len()).all(|first| {
        let mut sum = 0;
        used[first..].iter().all(|&(at, cost)| {
            sum += cost;
            sum * PERMIT <= burst * PERMIT + (at - used[first].0)
        })
    })
}

fn used(callers: &[Caller], ends: &[End]) -> Vec<(u64, u64)> {
    let mut used: Vec<_> =
        callers.iter().zip(ends).filter_map(|(caller, end)| Some((end.admitted()?, caller.cost))).collect();
    used.push((START, 1));
    used
}

fn rounds(n: u64) -> u64 {
    if std::env::var_os("TOLLBAR_QUICK").is_some() {
        n / 10
    } else {
        n
    }
}

/// 20 callers come at one time, and leave in any order before the first departure. All permits come back: the state is as if nobody had come.
#[test]
fn a2_all_twenty_come_back_in_any_order() {
    let mut rng = Rng(20);
    let (mut traces, mut lost) = (0, 0);
    for _ in 0..rounds(10_000) {
        for text in ["10/s burst 1", "10/s burst 4", "10/s burst 1; 1000/day"] {
            let clock = Manual::default();
            let limiter = taken(text, &clock);
            let burst = limiter.peek(0).remaining + 1;
            if burst > 1 {
                assert!(limiter.check(burst - 1).is_allowed());
            }
            let before = limiter.peek(1).retry_after;
            let callers: Vec<Caller> = (0..20)
                .map(|_| Caller { cost: 1 + rng.below(burst), gives_up: START + rng.below(PERMIT), ..caller(START) })
                .collect();
            let equal = callers.iter().all(|caller| caller.cost == callers[0].cost);
            let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut at_random(&mut rng));
            assert!(ends.iter().all(|end| matches!(end, End::GaveUp(_))), "{ends:?}");
            clock.set(START);
            let late = limiter.peek(1).retry_after - before;
            // At most the smaller part of a booking whose larger predecessor went back before.
            assert!(
                late == 0 || !equal && late <= (burst - 1) * PERMIT,
                "{text}: {} permits lost: {callers:?}",
                late / PERMIT
            );
            traces += 1;
            lost += u64::from(late != 0);
        }
    }
    println!("{traces} traces; permits lost in {lost}");
}

/// Callers that come and leave at any time. With equal costs each is admitted exactly when an ideal queue would admit it. With unequal costs nobody is
/// admitted too early; how many are late is printed.
#[test]
fn a2_random_callers_beside_the_oracle() {
    let mut rng = Rng(7);
    let (mut calls, mut late, mut refused, mut too_much) = (0, 0, 0, 0);
    for trace in 0..rounds(20_000) {
        let burst = 1 + rng.below(4);
        let equal = trace % 2 == 0;
        let text = std::format!("10/s burst {burst}");
        let clock = Manual::default();
        let limiter = taken(&text, &clock);
        let mut comes = START;
        let callers: Vec<Caller> = (0..30)
            .map(|_| {
                comes += if rng.below(3) == 0 { 0 } else { rng.below(PERMIT) };
                let patience = if rng.below(3) == 0 { 20 * SEC } else { rng.below(6 * PERMIT) };
                let cost = if equal { 1 } else { 1 + rng.below(burst) };
                Caller { cost, gives_up: comes + patience, ..caller(comes) }
            })
            .collect();
        let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
        too_much += u64::from(!within_the_bound(used(&callers, &ends), burst));
        let wanted = ideal(&callers, burst);
        for (n, (end, ideal)) in ends.iter().zip(&wanted).enumerate() {
            calls += 1;
            if equal {
                assert_eq!(end, ideal, "trace {trace}, caller {n}: {callers:?}");
            }
            late += u64::from(end.admitted().is_some() && end.admitted() > ideal.admitted());
            refused += u64::from(end.admitted().is_none() && ideal.admitted().is_some());
        }
        // Nobody is overtaken.
        let order: Vec<u64> = ends.iter().filter_map(|end| end.admitted()).collect();
        assert!(order.windows(2).all(|pair| pair[0] <= pair[1]), "trace {trace}: {order:?}");
    }
    println!("{calls} callers: {too_much} traces above the bound, {refused} not admitted though the oracle admits, {late} late");
    assert_eq!(too_much, 0);
}

/// Callers with deadlines: those that the estimate refuses at once would not have been admitted by an ideal queue either, as long as nobody gives up.
#[test]
fn a2_a_refusal_at_once_is_right() {
    let mut rng = Rng(9);
    let (mut refused, mut wrong) = (0, 0);
    for trace in 0..rounds(20_000) {
        let burst = 1 + rng.below(4);
        let clock = Manual::default();
        let limiter = taken(&std::format!("10/s burst {burst}"), &clock);
        let mut comes = START;
        let callers: Vec<Caller> = (0..30)
            .map(|_| {
                comes += if rng.below(3) == 0 { 0 } else { rng.below(PERMIT) };
                Caller { cost: 1 + rng.below(burst), deadline: comes + rng.below(12 * PERMIT), ..caller(comes) }
            })
            .collect();
        let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
        assert!(within_the_bound(used(&callers, &ends), burst), "trace {trace}");
        // The ideal queue refuses at once, too.
        let (mut tat, mut left) = (START + PERMIT, START);
        for (caller, end) in callers.iter().zip(&ends) {
            let at = left.max(caller.comes).max((tat + caller.cost * PERMIT).saturating_sub(burst * PERMIT));
            let passes = at <= caller.deadline;
            if passes {
                tat = tat.max(at) + caller.cost * PERMIT;
                left = at;
            }
            match end {
                End::Admitted(when) => assert!(passes && *when == at, "trace {trace}: {caller:?}: {end:?}, {at}"),
                End::Refused(when) => {
                    assert_eq!(*when, caller.comes, "trace {trace}: refused later than at once");
                    refused += 1;
                    wrong += u64::from(passes);
                }
                End::GaveUp(_) => unreachable!(),
            }
        }
    }
    println!("{refused} refused at once, {wrong} of them though the oracle admits");
    assert!(refused > rounds(20_000));
    assert_eq!(wrong, 0);
}
