//! Shares of tenants that are idle and backlogged by turns, beside the max-min fair shares of the
//! requests that they made. Time is virtual.

use crate::common::{is_short, Rng, MS, SEC};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tollbar::hierarchy::{ClassId, Hierarchy};
use tollbar::table::{OnFull, Options, PolicyId, Table};
use tollbar::Limiter;

/// A tenant with its rates, in permits a second, and the requests that it makes.
struct Tenant {
    class: ClassId,
    guaranteed: f64,
    ceiling: f64,
    /// Requests a second; 0 while it is idle.
    asks: u64,
    /// Requests since the phase settled, and those that passed.
    asked: u64,
    passed: u64,
}

/// When the requests of tenants come.
#[derive(Clone, Copy, Debug)]
enum Arrivals {
    /// Each tenant sends at even intervals, with its own offset.
    Even,
    /// All tenants send their requests on the same ticks, every 10 ms, always in the same order.
    Ticks,
}

struct Simulation {
    shop: Arc<(Table, Hierarchy)>,
    tenants: Vec<Tenant>,
    rate: f64,
    now: u64,
    rng: Rng,
}

impl Simulation {
    /// `rates` of a tenant: guaranteed and ceiling, 0 for none.
    fn new(rate: u64, burst: u64, tenants: u64, rates: impl Fn(u64) -> (u64, u64)) -> Simulation {
        let options = Options { on_full: OnFull::Deny, ..Options::new(5_000) };
        let table = Table::private(&options, &[Hierarchy::policy()]).expect("a table");
        let mut tree = Hierarchy::new(PolicyId::FIRST, &format!("{rate}/s"), burst, 2_000)
            .expect("a hierarchy");
        let text = |rate: u64| if rate == 0 { String::new() } else { format!("{rate}/s") };
        let mut add = |n: u64| {
            let (guaranteed, ceiling) = rates(n);
            let class =
                tree.add(ClassId::ROOT, &n.to_be_bytes(), &text(guaranteed), &text(ceiling), 1);
            let ceiling = if ceiling == 0 { rate } else { ceiling };
            Tenant {
                class: class.expect("a class"),
                guaranteed: guaranteed as f64,
                ceiling: ceiling as f64,
                asks: 0,
                asked: 0,
                passed: 0,
            }
        };
        let tenants = (0..tenants).map(&mut add).collect();
        let shop = Arc::new((table, tree));
        Simulation { shop, tenants, rate: rate as f64, now: 100 * SEC, rng: Rng(54) }
    }

    /// Runs a phase, whose first `settling` nanoseconds do not count.
    fn run(&mut self, arrivals: Arrivals, settling: u64, length: u64) {
        let shop = self.shop.clone();
        let ask = |class, time| {
            shop.1.take_at(&shop.0, class, b"", time, 1).expect("an answer").decision.is_allowed()
        };
        self.run_with(arrivals, settling, length, &ask);
    }

    /// [`Simulation::run`] with another limiter.
    fn run_with(
        &mut self,
        arrivals: Arrivals,
        settling: u64,
        length: u64,
        ask: &dyn Fn(ClassId, u64) -> bool,
    ) {
        let (from, to) = (self.now, self.now + settling + length);
        let mut events = BinaryHeap::new();
        for (n, tenant) in self.tenants.iter_mut().enumerate() {
            (tenant.asked, tenant.passed) = (0, 0);
            if let Some(interval) = SEC.checked_div(tenant.asks) {
                events.push(Reverse((from + self.rng.below(interval), n)));
            }
        }
        while let Some(Reverse((at, n))) = events.pop() {
            if at >= to {
                break;
            }
            let tenant = &mut self.tenants[n];
            let time = match arrivals {
                Arrivals::Even => at,
                Arrivals::Ticks => at - at % (10 * MS),
            };
            let passed = ask(tenant.class, time);
            if at >= from + settling {
                tenant.asked += 1;
                tenant.passed += u64::from(passed);
            }
            events.push(Reverse((at + SEC / tenant.asks, n)));
        }
        self.now = to;
    }

    /// The max-min fair rates of the requests that were made:
    /// `min(asked, ceiling, max(guaranteed, fair))`, where `fair` uses up the rate.
    fn fair(&self, seconds: f64) -> Vec<f64> {
        let shares = |fair: f64| -> Vec<f64> {
            let share =
                |t: &Tenant| fair.max(t.guaranteed).min(t.ceiling).min(t.asked as f64 / seconds);
            self.tenants.iter().map(share).collect()
        };
        let (mut low, mut high) = (0.0, self.rate);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if shares(middle).iter().sum::<f64>() > self.rate {
                high = middle;
            } else {
                low = middle;
            }
        }
        shares(low)
    }

    /// The largest relative distance of a tenant's rate from its fair one, and the sum of all
    /// distances relative to the sum of rates.
    fn distance(&self, length: u64) -> (f64, f64) {
        let seconds = length as f64 / SEC as f64;
        let fair = self.fair(seconds);
        let far = |(tenant, fair): (&Tenant, &f64)| (tenant.passed as f64 / seconds - fair).abs();
        let all = || self.tenants.iter().zip(&fair).filter(|(_, fair)| **fair > 0.0);
        let worst = all().map(|pair| far(pair) / pair.1).fold(0.0, f64::max);
        (worst, all().map(far).sum::<f64>() / fair.iter().sum::<f64>())
    }
}

/// 1,000 tenants share 10,000 permits a second. A tenth of them has a guarantee of 20/s, four
/// tenths one of 2/s, and some have a ceiling of 15/s or 50/s.
fn thousand(burst: u64) -> Simulation {
    Simulation::new(10_000, burst, 1_000, |n| {
        let guaranteed = if n % 10 == 0 { 20 } else { 2 * u64::from(n % 10 < 5) };
        let ceiling = match n {
            _ if n % 7 == 0 => 15.max(guaranteed),
            _ if n % 11 == 0 => 50,
            _ => 0,
        };
        (guaranteed, ceiling)
    })
}

/// Who is active in a phase: all tenants, every second one, two of ten, all.
fn begin(simulation: &mut Simulation, phase: u64) {
    let rng = &mut simulation.rng;
    for (n, tenant) in (0_u64..).zip(&mut simulation.tenants) {
        let active = match phase % 4 {
            1 => n % 2 == 0,
            2 => n % 10 == 3 || n % 10 == 0,
            _ => true,
        };
        tenant.asks = match rng.below(10) {
            _ if !active => 0,
            0..=2 => rng.within(1, 7),
            3..=5 => rng.within(10, 50),
            _ => rng.within(50, 200),
        };
    }
}

fn worst_of(burst: u64, arrivals: Arrivals, settling: u64) -> (f64, f64) {
    let mut simulation = thousand(burst);
    let length = if is_short() { 30 * SEC } else { 60 * SEC };
    let (mut worst, mut most) = (0.0_f64, 0.0_f64);
    for phase in 0..4 {
        begin(&mut simulation, phase);
        simulation.run(arrivals, settling, length);
        let (one, all) = simulation.distance(length);
        println!(
            "{arrivals:?} burst {burst} phase {phase}: worst {:.3} %, all {:.3} %",
            one * 100.0,
            all * 100.0
        );
        (worst, most) = (worst.max(one), most.max(all));
    }
    (worst, most)
}

#[test]
fn a_thousand_tenants_get_max_min_fair_shares() {
    let (worst, all) = worst_of(SEC / 2, Arrivals::Even, 5 * SEC);
    assert!(worst < 0.01, "a tenant is {:.2} % from its fair share", worst * 100.0);
    assert!(all < 0.002, "{:.2} %", all * 100.0);
}

/// The hardest case: everyone asks on one tick, in one order, so those who come later in a tick
/// always find a greater debt.
#[test]
fn tenants_on_one_tick_are_near_their_fair_shares() {
    let (worst, all) = worst_of(SEC, Arrivals::Ticks, 5 * SEC);
    // A short run simulates half the time, so the permits of one tick weigh twice as much.
    let most = if is_short() { 0.05 } else { 0.025 };
    assert!(worst < most, "a tenant is {:.2} % from its fair share", worst * 100.0);
    assert!(all < 0.005, "{:.2} %", all * 100.0);
}

/// The measure notices an unfair limiter: a bucket that all tenants share gives each of them a part
/// in proportion to its requests.
#[test]
fn a_shared_bucket_is_not_fair() {
    let mut simulation = thousand(SEC / 2);
    let bucket = Limiter::new(&"10000/s".parse().expect("a policy")).expect("a limiter");
    begin(&mut simulation, 0);
    let length = 20 * SEC;
    simulation.run_with(Arrivals::Even, 5 * SEC, length, &|_, time| {
        bucket.check_at(time, 1).is_allowed()
    });
    let (worst, all) = simulation.distance(length);
    println!("a shared bucket: worst {:.0} %, all {:.0} %", worst * 100.0, all * 100.0);
    assert!(worst > 1.0 && all > 0.5);
}

/// Tenants share the root, and users their tenant: a tenant with more users gets no more than
/// another, and its users share what it gets.
#[test]
fn users_share_what_their_tenant_gets() {
    let options = Options { on_full: OnFull::Deny, ..Options::new(5_000) };
    let table = Table::private(&options, &[Hierarchy::policy()]).expect("a table");
    let mut tree = Hierarchy::new(PolicyId::FIRST, "4000/s", SEC / 2, 100).expect("a hierarchy");
    // (users, the tenant's ceiling, the fair rate of a user)
    let kinds = [(1_u64, "", 1_250.0), (5, "", 250.0), (50, "", 25.0), (10, "250/s", 25.0)];
    let mut users = Vec::new();
    for (n, (count, ceiling, fair)) in kinds.into_iter().enumerate() {
        let tenant =
            tree.add(ClassId::ROOT, &[n as u8 + 1], "100/s", ceiling, 1).expect("a tenant");
        let class = tree.add(tenant, b"users", "1/s", "", 50).expect("users");
        users.extend((0..count).map(|user| (class, user.to_be_bytes(), fair, 0_u32)));
    }
    let (mut rng, mut events) = (Rng(55), BinaryHeap::new());
    (0..users.len()).for_each(|n| events.push(Reverse((100 * SEC + rng.below(SEC / 2_000), n))));
    while let Some(Reverse((at, n))) = events.pop() {
        if at >= 130 * SEC {
            break;
        }
        let (class, key, _, passed) = &mut users[n];
        let share = tree.take_at(&table, *class, key, at, 1).expect("an answer");
        *passed += u32::from(share.decision.is_allowed() && at >= 110 * SEC);
        events.push(Reverse((at + SEC / 2_000, n)));
    }
    for (class, key, fair, passed) in users {
        let rate = f64::from(passed) / 20.0;
        assert!((rate / fair - 1.0).abs() < 0.01, "{class:?} {key:?}: {rate}/s of {fair}/s");
    }
}

/// Few permits in a burst.
#[test]
fn slow_hierarchies_are_fair_too() {
    for (rate, burst, tenants) in [
        (10, 2 * SEC, 3),
        (100, SEC, 20),
        (50, 2 * SEC, 10),
        (1_000, 100 * MS, 50),
        (10, 2 * SEC, 9),
        (10, 2 * SEC, 1),
    ] {
        let mut simulation = Simulation::new(rate, burst, tenants, |_| (0, 0));
        for tenant in &mut simulation.tenants {
            tenant.asks = 200;
        }
        simulation.run(Arrivals::Even, 100 * SEC, 400 * SEC);
        let (worst, all) = simulation.distance(400 * SEC);
        println!(
            "{rate}/s burst {burst} for {tenants}: worst {:.3} %, all {:.3} %",
            worst * 100.0,
            all * 100.0
        );
        assert!(worst < 0.01, "{:.2} %", worst * 100.0);
    }
}
