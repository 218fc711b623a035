//! Expiry of states, states that owe until a given time, and the move of a state to another rule: a
//! table relies on all three when it gives one key's slot to another.
//!
//! An idle state is *better* than a fresh one if a fresh state holds fewer permits than a full one:
//! gcra with an `init` below its burst, with `borrow` or not, and pacer with `slack`. In all other
//! cases an expired state and a fresh one answer alike.

mod any;
mod change;
mod owing;

use crate::common::*;
use proptest::prelude::{any, prop_assert, prop_assume, proptest, ProptestConfig, Strategy};
use tollbar::algorithm::ban::Ban;
use tollbar::algorithm::gcra::Gcra;
use tollbar::algorithm::level_refill::LevelRefill;
use tollbar::algorithm::pacer::Pacer;
use tollbar::algorithm::pair::Pair;
use tollbar::algorithm::{Algorithm, Rule};
use tollbar::policy::{Knots, Opt, Span, Zone};
use tollbar::units::HORIZON;
use tollbar::{Anchor, Kind, Policy, Verdict, NEVER};

const EACH: [&str; 72] = [
    "0/s",
    "10/s burst 7",
    "10/s burst 7 init 2",
    "10/s burst 7 init 0",
    "7/s",
    "1/day",
    "1/365d burst 2",
    "1/365d burst 3000 init 1",
    "300000000/s burst 50",
    "300000000/s burst 50 init 49",
    "1000000000/s burst 1000",
    "10000000000/s burst 1000 init 3",
    "999983/s burst 9 init 3",
    "999979/999983ns burst 17",
    "1299709/15485863us burst 100",
    "1/s burst 9000000000 init 1",
    "1/s burst 90000000000000",
    "3/7day burst 900000000000 init 5",
    "10/s burst 7 borrow",
    "10/s burst 7 borrow init 4",
    "44100/s burst 5 borrow",
    "1/s burst 90000000000000 borrow init 1",
    "10/s burst 7 ban 1min",
    "5/min ban 1h after 1000",
    "999983/s burst 9 ban 1s after 3",
    "999979/999983ns burst 17 ban 100us after 3",
    "1/365d burst 3 ban 30d after 2",
    "300000000/s burst 50 ban 1us after 7",
    "10/s; 1000/day",
    "3/s burst 5; 100/min",
    "2/s burst 3; 5/min burst 30",
    "10/s algo pacer",
    "10/s burst 4 algo pacer slack 6",
    "999983/s burst 3 algo pacer slack 7",
    "1/365d algo pacer",
    "3/7s burst 90000000000000 algo pacer",
    "10/s burst 7 algo interval",
    "10/s burst 15 algo interval",
    "25/s burst 15 algo interval",
    "3/s algo interval",
    "999983/999979ns algo interval",
    "1/365d burst 5 algo interval",
    "10/s burst 7 algo interval anchor first",
    "10/s algo fixed-window",
    "10/s algo fixed-window count rejected",
    "1000000/s algo fixed-window",
    "999983/1234567891ns algo fixed-window",
    "10/s algo fixed-window anchor first",
    "5/120ns algo fixed-window anchor first",
    "1000000/s algo fixed-window anchor first count rejected",
    "10/s algo weighted-window",
    "1000000/s algo weighted-window",
    "123456789/min algo weighted-window",
    "6000000000/30000day algo weighted-window",
    "10/s burst 4 algo warm-up warm 2s",
    "44100/s burst 9 algo warm-up warm 10ms",
    "3/s burst 9 algo warm-up warm 1min cold 10",
    "1/365d algo warm-up warm 1s",
    "10/forever",
    "1000000000000/forever",
    "10/s curve front",
    "7/s curve linear",
    "999983/1234567891ns curve ln",
    "10/120ns curve 0:0 50%:80% 100%:100%",
    "10/s burst 7 refill 0:50% 50%:100%",
    "999983/s burst 9 refill 0:33% 20%:77% 60%:100%",
    "1/365d burst 30 refill 0:100% 50%:20%",
    "3/s burst 90000000000 refill 0:1% 99%:100%",
    "10/day zone CET-1CEST,M3.5.0,M10.5.0/3",
    "1000/week from sun",
    "1000000000000/month from 31 zone <-10>10 until 1325239200 <+14>-14",
    "7/year from 02-29",
];

/// A time that every policy here can hold; the fastest policies have half the clock's range.
const END: u64 = HORIZON / 2;

fn rule(policy: &Policy) -> Rule {
    Rule::new(policy).unwrap_or_else(|why| panic!("{policy}: {why}"))
}

fn each() -> impl Iterator<Item = (Policy, Rule)> {
    with_each(one_word(), &EACH).into_iter().map(|text| (policy(&text), rule(&policy(&text))))
}

/// Whether a state that was idle for long has more to give than a fresh one.
fn idle_is_better(policy: &Policy) -> bool {
    policy.init < policy.burst || policy.borrow || policy.slack > 0
}

/// The nanoseconds by which a bucket's expiry may be late; `None` for other algorithms.
fn slop(policy: &Policy) -> Option<u64> {
    let per_permit = match policy.kind {
        _ if policy.limit == 0 => return None,
        Kind::Gcra if policy.second.is_some() => {
            let pair = Pair::new(policy).unwrap();
            let (nanos, per) = pair.step_length();
            return Some((nanos * pair.slow_steps()).div_ceil(per) + 3);
        }
        Kind::Gcra if policy.ban != 0 => Ban::new(policy).unwrap().grid().per_permit(),
        Kind::Gcra if !policy.borrow => Gcra::new(policy).unwrap().grid().per_permit(),
        Kind::Gcra | Kind::Pacer => Pacer::new(policy).unwrap().grid().per_permit(),
        Kind::LevelRefill => LevelRefill::new(policy).unwrap().grid().per_permit(),
        _ => return None,
    };
    let unit =
        u128::from(policy.period).div_ceil(u128::from(policy.limit) * u128::from(per_permit.get()));
    Some(unit as u64 + 3)
}

/// A clock that jumps.
struct Walk {
    now: u64,
    period: u64,
    interval: u64,
}

impl Walk {
    fn new(policy: &Policy, rng: &mut Rng) -> Walk {
        let period = scale(policy);
        let starts = [
            0,
            1,
            period,
            DAY + rng.below(DAY),
            UNIX_NOW + rng.below(DAY),
            HORIZON - rng.below(DAY),
        ];
        Walk { now: rng.pick(&starts), period, interval: period / policy.limit.max(1) }
    }

    fn jump(&self, rng: &mut Rng) -> u64 {
        match rng.below(8) {
            0 => 0,
            1 => rng.below(4),
            2 => rng.below(self.interval.saturating_mul(3) + 1),
            3 => self.interval,
            4 => rng.below(self.period),
            5 => self.period,
            6 => rng.below(self.period.saturating_mul(3)),
            _ => rng.next() >> rng.within(4, 63),
        }
    }

    /// A time after the last one or, once in three times, before it.
    fn anywhere(&mut self, rng: &mut Rng) -> u64 {
        let jump = self.jump(rng);
        self.now = if rng.one_in(3) {
            self.now.saturating_sub(jump)
        } else {
            self.now.saturating_add(jump)
        };
        self.now = self.now.min(HORIZON + DAY);
        self.now
    }

    /// A time at or after the last one.
    fn onward(&mut self, rng: &mut Rng) -> u64 {
        let jump = self.jump(rng);
        self.now = self.now.saturating_add(jump);
        self.now
    }
}

fn cost(policy: &Policy, rng: &mut Rng) -> u64 {
    match rng.below(6) {
        0 => policy.burst,
        1 | 2 => rng.within(0, policy.burst.saturating_add(1)),
        _ => 1,
    }
}

/// The new state after a step, a booking or a charge, if it changed, and whether it was a step.
fn touch(rule: &Rule, state: u64, now: u64, cost: u64, rng: &mut Rng) -> Option<(u64, bool)> {
    if rng.one_in(5) {
        let cost = if rng.one_in(4) { rng.next() >> rng.below(64) } else { cost };
        let charged = rule.charge(state, now, cost);
        assert!(
            charged.rest <= cost && (charged.next.is_some() || charged.rest == cost),
            "{charged:?}"
        );
        // A charge from the fresh word expires as an admission does.
        return charged.next.map(|next| (next, state == 0));
    }
    if rng.one_in(5) && cost != 0 {
        return rule.reserve(state, now, cost).map(|booked| (booked.next, false));
    }
    rule.step(state, now, cost).next.map(|next| (next, true))
}

/// A state after up to `most` steps or bookings, and the time then.
fn used(policy: &Policy, rule: &Rule, most: u64, rng: &mut Rng) -> (u64, u64) {
    let mut walk = Walk::new(policy, rng);
    let (mut state, mut now) = (0, walk.now);
    for _ in 0..rng.within(1, most) {
        if let Some((next, _)) = touch(rule, state, now, cost(policy, rng), rng) {
            state = next;
        }
        now = walk.anywhere(rng);
    }
    (state, now)
}

/// A time that is small, large, or anything in between.
fn sometime(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => rng.below(3),
        1 => UNIX_NOW + rng.below(YEAR),
        2 => HORIZON - rng.below(DAY),
        3 => rng.next(),
        _ => rng.next() >> rng.below(64),
    }
}

fn never_falls(policy: &Policy, rng: &mut Rng) -> u32 {
    let rule = rule(policy);
    let (better, slop) = (idle_is_better(policy), slop(policy));
    let mut walk = Walk::new(policy, rng);
    let (mut state, mut changes) = (0, 0);
    assert_eq!(rule.expires_at(0), 0, "{policy}");
    for _ in 0..40 {
        let (now, cost) = (walk.now, cost(policy, rng));
        let before = rule.expires_at(state);
        let was = || {
            format!("{policy}: cost {cost} at {now}, from {state:#x}, which expires at {before}")
        };
        if let Some((next, stepped)) = touch(&rule, state, now, cost, rng) {
            let at = rule.expires_at(next);
            assert!(at >= before, "{at}: {}", was());
            assert!(next == 0 || at > 0, "{next}: {}", was());
            if stepped && (state == 0 || before >= now || !better) {
                assert!(at >= now, "{at}: {}", was());
            }
            let exact = rule.fresh_at(next, 0);
            assert!(at >= exact, "{at}, exactly {exact}: {}", was());
            match slop {
                _ if exact >= END => {}
                Some(slop) => assert!(at - exact <= slop, "{at}, exactly {exact}: {}", was()),
                None => assert_eq!(at, exact, "{}", was()),
            }
            changes += u32::from(next != state);
            state = next;
        }
        walk.anywhere(rng);
    }
    changes
}

#[test]
fn the_time_of_expiry_never_falls() {
    let mut rng = Rng(1);
    for (policy, _) in each() {
        let changes: u32 = (0..400).map(|_| never_falls(&policy, &mut rng)).sum();
        // A quota is used up soon.
        let least = if policy.kind == Kind::Quota { 400 } else { 600 };
        assert!(changes > least || policy.limit == 0, "{policy}: only {changes}");
    }
}

/// For any word a bucket's time of expiry is never early, hardly late, and never falls as the word
/// grows.
#[test]
fn a_bucket_expires_when_it_is_full_for_any_word() {
    let mut rng = Rng(2);
    for (policy, rule) in each() {
        let Some(slop) = slop(&policy) else { continue };
        for _ in 0..5_000 {
            let owing = rule.owing(sometime(&mut rng));
            // In higher words of most buckets the TAT was lowered.
            let word = owing.saturating_add(rng.below(9)).clamp(1, owing.max(u64::MAX >> 1));
            let (at, exact) = (rule.expires_at(word), rule.fresh_at(word, 0));
            assert!(at >= exact, "{policy}, {word}: {at}, exactly {exact}");
            assert!(at - exact <= slop || exact >= END, "{policy}, {word}: {at}, exactly {exact}");
            let later =
                word.saturating_add(rng.next() >> rng.below(64)).min(word.max(u64::MAX >> 1));
            assert!(rule.expires_at(later) >= at, "{policy}, {word}, {later}");
        }
        assert_eq!(rule.expires_at(rule.owing(NEVER)), NEVER, "{policy}");
    }
}

/// Compares `state` with a fresh one at times from `from` on: answer by answer, or permit by permit
/// where an idle state is better. The fresh state never gives more.
fn as_good_as_fresh(policy: &Policy, rule: &Rule, state: u64, from: u64, rng: &mut Rng) {
    let better = idle_is_better(policy);
    let mut walk = Walk { now: from, ..Walk::new(policy, rng) };
    let (mut old, mut fresh, mut lead) = (state, 0, 0i64);
    for _ in 0..12 {
        let now = walk.now;
        assert!(
            rule.available(old, now) >= rule.available(fresh, now) || fresh != 0,
            "{policy}, {state:#x} at {now}"
        );
        let cost = if better { 1 } else { cost(policy, rng) };
        let (a, b) = (rule.step(old, now, cost), rule.step(fresh, now, cost));
        lead += i64::from(a.verdict == Verdict::Allowed) - i64::from(b.verdict == Verdict::Allowed);
        assert!(lead >= 0, "{policy}, {state:#x}, from {from}: fewer than a fresh one at {now}");
        (old, fresh) = (a.next.unwrap_or(old), b.next.unwrap_or(fresh));
        if !better {
            assert_eq!(a.verdict, b.verdict, "{policy}, {state:#x}, from {from}: {cost} at {now}");
            assert!(
                old == fresh || fresh == 0,
                "{policy}, {state:#x}, from {from}: {cost} at {now}"
            );
        }
        walk.anywhere(rng);
        walk.now = walk.now.max(from);
    }
}

#[test]
fn an_expired_state_is_as_good_as_fresh() {
    let mut rng = Rng(3);
    for (policy, rule) in each() {
        for _ in 0..400 {
            let (state, _) = used(&policy, &rule, 12, &mut rng);
            let at = rule.expires_at(state);
            if at >= END {
                continue;
            }
            for from in
                [at, at + 1, at + rng.below(scale(&policy)), at + (rng.next() >> rng.within(4, 60))]
            {
                as_good_as_fresh(&policy, &rule, state, from, &mut rng);
            }
        }
    }
}

/// A state is not as good as fresh long before it expires.
#[test]
fn before_it_expires_a_state_is_worse_than_fresh() {
    let mut rng = Rng(4);
    let (mut seen, mut worse) = (0, 0);
    for (policy, rule) in each() {
        // A warm-up that is paid for and warm gives more than a cold one.
        if policy.kind == Kind::WarmUp {
            continue;
        }
        for _ in 0..200 {
            let (state, _) = used(&policy, &rule, 12, &mut rng);
            let at = rule.expires_at(state);
            let early = at.saturating_sub(1 + slop(&policy).unwrap_or(0));
            if at >= END || early == 0 {
                continue;
            }
            let (has, fresh) = (rule.available(state, early), rule.available(0, early));
            assert!(has <= fresh, "{policy}, {state:#x} at {early}");
            (seen, worse) = (seen + 1, worse + u32::from(has < fresh));
        }
    }
    assert!(worse > seen / 3, "{worse} of {seen}");
}

/// Whether windows start with the first request, so that those of two states differ.
fn anchored(policy: &Policy) -> bool {
    policy.anchor == Anchor::First
}

/// Whether later answers depend on the time of the first request or refusal, through the start of
/// windows, the warmth of a store or a ban. Then two traces cannot be compared permit by permit.
fn depends_on_the_first(policy: &Policy) -> bool {
    anchored(policy) || policy.kind == Kind::WarmUp || policy.ban != 0
}

/// Asserts that `state` gives no more than a fresh one on a trace from `from` on. Where answers
/// depend on the first request, it gives no more than it has left until it expires. A
/// level-dependent refill may be faster for the state that took less before, so it gives no more
/// than its bound.
fn no_more_than_fresh(policy: &Policy, rule: &Rule, state: u64, from: u64, rng: &mut Rng) {
    let mut walk = Walk { now: from, ..Walk::new(policy, rng) };
    let (mut mine, mut fresh, mut lead) = (state, 0, 0i64);
    let expires = rule.expires_at(state);
    for _ in 0..rng.within(5, 60) {
        let now = walk.now;
        if depends_on_the_first(policy) {
            if now >= expires {
                return;
            }
            let left = rule.available(state, now) as i64;
            lead -= i64::from(rule.step(mine, now, 1).verdict == Verdict::Allowed);
            assert!(
                left + lead >= 0,
                "{policy}, {state:#x} from {from}: more than a window at {now}"
            );
        }
        let (a, b) = (rule.step(mine, now, 1), rule.step(fresh, now, 1));
        (mine, fresh) = (a.next.unwrap_or(mine), b.next.unwrap_or(fresh));
        if policy.kind == Kind::LevelRefill {
            let refill =
                u128::from(now - from) * u128::from(policy.limit) / u128::from(policy.period);
            lead += i64::from(a.verdict == Verdict::Allowed);
            let bound = u128::from(policy.burst) + refill;
            assert!(
                lead as u128 <= bound,
                "{policy}, {state:#x} from {from}: {lead} of {bound} at {now}"
            );
        } else if !depends_on_the_first(policy) {
            lead +=
                i64::from(b.verdict == Verdict::Allowed) - i64::from(a.verdict == Verdict::Allowed);
            assert!(lead >= 0, "{policy}, {state:#x} from {from}: more than a fresh one at {now}");
        }
        if rng.one_in(3) {
            walk.onward(rng);
        }
    }
}

fn adopts(new: (&Policy, &Rule), old: (&Policy, &Rule), rng: &mut Rng) {
    let (state, now) = used(old.0, old.1, 12, rng);
    let (word, expires) = (new.1.adopt(old.1, state), old.1.expires_at(state));
    let context = || format!("{} to {}, {state:#x} to {word:#x}", old.0, new.0);
    assert_eq!(word == 0, state == 0, "{}", context());
    let at = new.1.expires_at(word);
    assert!(at >= expires, "{}: {expires} to {at}", context());
    if state == 0 {
        return;
    }
    let another = old.1 != new.1;
    // A state that has expired, and is not the rest of a window that still runs, is as good as
    // fresh.
    let long_after = expires.max(at);
    if long_after < END {
        as_good_as_fresh(new.0, new.1, word, long_after + rng.below(DAY), rng);
    }
    if expires < END / 2 && new.0.limit != 0 && new.0.period <= HORIZON && another {
        let most = expires.max(new.0.period) + 2 * new.0.period + slop(new.0).unwrap_or(0) * 2;
        assert!(at <= most, "{}: {expires} to {at}", context());
    }
    // Before that it gives no more than a fresh one: together both gave at most the sum of their
    // bounds.
    if another && now <= at && (!idle_is_better(new.0) || now <= expires) {
        no_more_than_fresh(new.0, new.1, word, now, rng);
    }
}
