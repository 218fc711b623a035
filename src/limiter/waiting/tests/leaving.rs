//! Callers that leave in any order: what comes back, who gets in, and whether the bound holds.

use super::*;
use crate::search::rounds;

const PERMIT: u64 = 100 * MS;

/// What a queue without bookings would do that checks at every instant: the first caller takes its
/// permits as soon as they are there.
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
    let mut used: Vec<_> = callers
        .iter()
        .zip(ends)
        .filter_map(|(caller, end)| Some((end.admitted()?, caller.cost)))
        .collect();
    used.push((START, 1));
    used
}

/// The permits that stay charged when all of `callers` have come at `begin` and left before the
/// first departure, if only the first of the queue books and no more of a booking comes back than
/// the limit has not refilled by the latest departure that it has ever promised. The second number:
/// if no booking came back that a caller of another cost, or none, follows.
pub(crate) fn stay_charged(callers: &[Caller], burst: u64, begin: u64) -> (u64, u64) {
    let full = burst * PERMIT;
    let (start, mut leaving) = (begin + full, Vec::from(callers));
    leaving.sort_unstable_by_key(|caller| caller.gives_up);
    let (mut tat, mut highest, mut now) = (start, start, begin);
    let mut queue: Vec<Caller> = Vec::from(callers);
    let (mut booked, mut most) = (None, 0);
    for gone in leaving {
        let first = queue[0];
        let departs = *booked.get_or_insert_with(|| {
            tat = tat.max(now) + first.cost * PERMIT;
            highest = highest.max(tat);
            tat - full
        });
        let at = queue.iter().position(|caller| caller.gives_up == gone.gives_up).unwrap();
        queue.remove(at);
        now = gone.gives_up;
        if at == 0 && queue.first().map(|next| next.cost) != Some(first.cost) {
            let latest = now.max(highest - full);
            tat -=
                (first.cost * PERMIT).saturating_sub(latest.saturating_sub(departs)).min(tat - now);
            booked = None;
            // A queue of equal costs hands its only booking on, which is then the latest.
            most +=
                if callers.iter().all(|other| other.cost == first.cost) { 0 } else { first.cost };
        }
    }
    ((tat - start) / PERMIT, most)
}

/// 20 callers of `burst` permits at most that leave at different times before the first departure.
pub(crate) fn twenty(rng: &mut Rng, burst: u64, begin: u64) -> Vec<Caller> {
    let mut times: Vec<u64> =
        (0..20).map(|n| begin + n * (PERMIT / 20) + rng.below(PERMIT / 20)).collect();
    (0..20)
        .map(|_| {
            let gives_up = times.swap_remove(rng.below(times.len() as u64) as usize);
            Caller { cost: 1 + rng.below(burst), gives_up, ..caller(begin) }
        })
        .collect()
}

/// 20 callers come at one time, and leave in any order before the first departure. All permits come
/// back: the state is as if nobody had come.
#[test]
fn a2_all_twenty_come_back_in_any_order() {
    let mut rng = Rng(20);
    for text in [
        "10/s burst 1",
        "10/s burst 4",
        "10/s burst 1; 300/min burst 1000",
        "10/s burst 4; 300/min burst 1000",
    ] {
        for _ in 0..rounds(10_000) {
            let clock = Manual::default();
            let limiter = taken(text, &clock);
            let burst = limiter.peek(0).remaining + 1;
            assert!(limiter.check(burst - 1).is_allowed());
            let before = limiter.peek(1).retry_after;
            let callers = twenty(&mut rng, burst, START);
            let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
            assert!(ends.iter().all(|end| matches!(end, End::GaveUp(_))), "{ends:?}");
            clock.set(START);
            let after = limiter.peek(1).retry_after;
            assert!(
                (before..=before + late_in(text)).contains(&after),
                "{text}: {before} {after} {callers:?}"
            );
        }
    }
}

/// Callers that come and leave at any time. Each is admitted exactly when an ideal queue would
/// admit it, and nobody is overtaken.
#[test]
fn a2_random_callers_beside_the_oracle() {
    let mut rng = Rng(7);
    let (mut calls, mut admitted, mut too_much) = (0, 0, 0);
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
        assert_eq!(ends, ideal(&callers, burst), "trace {trace}: {callers:?}");
        let order: Vec<u64> = ends.iter().filter_map(|end| end.admitted()).collect();
        assert!(order.windows(2).all(|pair| pair[0] <= pair[1]), "trace {trace}: {order:?}");
        (calls, admitted) = (calls + callers.len(), admitted + order.len());
    }
    println!("{admitted} of {calls} callers admitted, as by the oracle; {too_much} traces above the bound");
    assert_eq!(too_much, 0);
}

/// Callers with deadlines: those that the estimate refuses at once would not have been admitted by
/// an ideal queue either, as long as nobody gives up.
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
                Caller {
                    cost: 1 + rng.below(burst),
                    deadline: comes + rng.below(12 * PERMIT),
                    ..caller(comes)
                }
            })
            .collect();
        let (ends, _) = World::new(&clock).run(&limiter, &callers, &mut |_| 0);
        assert!(within_the_bound(used(&callers, &ends), burst), "trace {trace}");
        // The ideal queue refuses at once, too.
        let (mut tat, mut left) = (START + PERMIT, START);
        for (caller, end) in callers.iter().zip(&ends) {
            let at = left
                .max(caller.comes)
                .max((tat + caller.cost * PERMIT).saturating_sub(burst * PERMIT));
            let passes = at <= caller.deadline;
            if passes {
                tat = tat.max(at) + caller.cost * PERMIT;
                left = at;
            }
            match end {
                End::Admitted(when) => {
                    assert!(passes && *when == at, "trace {trace}: {caller:?}: {end:?}, {at}")
                }
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
