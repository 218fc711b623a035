//! Limits that follow the latency: the published traces, and the bounds.

mod common;

use common::{rounds, Rng, MS};
use tollbar::in_flight::{Aimd, Gradient2};

/// Netflix's Gradient2Limit in doubles, line for line.
struct Reference {
    estimate: f64,
    least: f64,
    most: f64,
    long: f64,
    count: u32,
    sum: f64,
}

impl Reference {
    fn sample(&mut self, in_flight: u32, latency: u64) -> u32 {
        let now = latency as f64;
        if self.count < 10 {
            self.count += 1;
            self.sum += now;
            self.long = self.sum / f64::from(self.count);
        } else {
            let factor = 2.0 / 601.0;
            self.long = self.long * (1.0 - factor) + now * factor;
        }
        let long = self.long;
        if long / now > 2.0 {
            self.long *= 0.95;
        }
        if f64::from(in_flight) < self.estimate / 2.0 {
            return self.estimate as u32;
        }
        let gradient = (1.5 * long / now).clamp(0.5, 1.0);
        let next = self.estimate * 0.8 + 0.2 * (self.estimate * gradient + 4.0);
        self.estimate = next.clamp(self.least, self.most);
        self.estimate as u32
    }
}

#[test]
fn gradient2_has_the_published_trace() {
    let mut limit = Gradient2::new(20, 20, 200);
    let trace: Vec<u32> = (0..100)
        .map(|n| {
            let latency = if (20..60).contains(&n) { 40 * MS } else { 10 * MS };
            limit.sample(limit.limit(), latency)
        })
        .collect();
    let at = [0, 9, 19, 20, 21, 25, 30, 40, 59, 60, 70, 99].map(|n: usize| trace[n]);
    assert_eq!(at, [20, 28, 36, 33, 30, 22, 20, 20, 20, 20, 28, 52]);
}

#[test]
fn gradient2_equals_the_reference_within_rounding() {
    let mut random = Rng(14);
    let mut differ = 0;
    for _ in 0..rounds(400) {
        let (least, most) = (random.within(1, 20) as u32, random.within(50, 1000) as u32);
        let mut limit = Gradient2::new(20, least, most);
        let mut reference =
            Reference { estimate: 20.0, least: least.into(), most: most.into(), long: 0.0, count: 0, sum: 0.0 };
        for _ in 0..100 {
            // Not at half the limit, where a double and an integer may part for good.
            let all = limit.limit();
            let in_flight = if random.one_in(4) { all / 4 } else { all / 2 + 1 + random.below(u64::from(all)) as u32 };
            let latency = random.within(MS, 40 * MS);
            let (got, wanted) = (limit.sample(in_flight, latency), reference.sample(in_flight, latency));
            // A double may be just below a whole number where the integer is on it.
            assert!(got.abs_diff(wanted) <= 1, "{got} {wanted}");
            differ += u64::from(got != wanted);
        }
    }
    // Every 40th of these, where the two stand on either side of a whole number.
    assert!(differ <= rounds(400) * 100 / 40, "{differ}");
}

#[test]
fn aimd_adds_one_and_takes_a_tenth() {
    let mut limit = Aimd::new(20, 10, 25, 100 * MS);
    assert_eq!((limit.sample(20, MS, false), limit.sample(10, MS, false), limit.sample(11, MS, false)), (21, 21, 22));
    // A drop, a timeout, the floor.
    assert_eq!((limit.sample(1, MS, true), limit.sample(1, 100 * MS + 1, false)), (19, 17));
    assert_eq!((0..20).map(|_| limit.sample(1, MS, true)).last(), Some(10));
    assert_eq!((0..50).map(|_| limit.sample(25, 100 * MS, false)).last(), Some(25));
}

#[test]
fn no_sample_overflows_or_leaves_the_bounds() {
    let mut random = Rng(3);
    for _ in 0..rounds(2_000) {
        let most = random.skewed(u32::MAX.into()).max(1) as u32;
        let least = random.within(1, most.into()) as u32;
        let mut gradient = Gradient2::new(random.next() as u32, least, most);
        let mut aimd = Aimd::new(random.next() as u32, least, most, random.next());
        for _ in 0..50 {
            let (in_flight, latency) = (random.skewed(u32::MAX.into()) as u32, random.next() >> random.below(64));
            assert!((least..=most).contains(&gradient.sample(in_flight, latency)));
            assert!((least..=most).contains(&aimd.sample(in_flight, latency, random.one_in(3))));
        }
    }
}
