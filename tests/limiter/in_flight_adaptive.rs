//! Limits that follow the latency: the published traces, and the bounds.

use crate::common::{rounds, Rng, MS};
use tollbar::in_flight::{
    Adaptive, AdaptiveOptions, AdaptiveTicket, Aimd, Gradient2, InFlight, Options, Outcome, Refusal,
};

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
        let mut reference = Reference {
            estimate: 20.0,
            least: least.into(),
            most: most.into(),
            long: 0.0,
            count: 0,
            sum: 0.0,
        };
        for _ in 0..100 {
            // Never exactly half of the limit, because there a double and an integer may decide
            // differently, and the traces then differ for good.
            let all = limit.limit();
            let in_flight = if random.one_in(4) {
                all / 4
            } else {
                all / 2 + 1 + random.below(u64::from(all)) as u32
            };
            let latency = random.within(MS, 40 * MS);
            let (got, wanted) =
                (limit.sample(in_flight, latency), reference.sample(in_flight, latency));
            // A double may be just below a whole number when the integer equals it.
            assert!(got.abs_diff(wanted) <= 1, "{got} {wanted}");
            differ += u64::from(got != wanted);
        }
    }
    // In at most one sample of 40 the double and the integer are on different sides of a whole
    // number.
    assert!(differ <= rounds(400) * 100 / 40, "{differ}");
}

#[test]
fn aimd_adds_one_and_takes_a_tenth() {
    let mut limit = Aimd::new(20, 10, 25, 100 * MS);
    assert_eq!(
        (limit.sample(20, MS, false), limit.sample(10, MS, false), limit.sample(11, MS, false)),
        (21, 21, 22)
    );
    // In turn: a dropped request, a latency above the timeout, the floor.
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
            let (in_flight, latency) =
                (random.skewed(u32::MAX.into()) as u32, random.next() >> random.below(64));
            assert!((least..=most).contains(&gradient.sample(in_flight, latency)));
            assert!((least..=most).contains(&aimd.sample(in_flight, latency, random.one_in(3))));
        }
    }
}

/// Acquires as many permits as the limit, and releases all with the given latency. Returns the
/// limit after each release.
fn round(limit: &Adaptive, latency: u64) -> Vec<u32> {
    let tickets: Vec<AdaptiveTicket> = std::iter::from_fn(|| limit.acquire()).collect();
    assert_eq!(tickets.len() as u32, limit.limit());
    let after = |ticket: AdaptiveTicket| {
        assert!(limit.release(ticket, Outcome::Answered, latency));
        limit.limit()
    };
    tickets.into_iter().map(after).collect()
}

/// `Adaptive` gives the same limits for the same samples as `Gradient2` and `Aimd`, which follow
/// the published trace.
#[test]
fn an_adaptive_limit_equals_its_algorithm() {
    let mut random = Rng(41);
    for _ in 0..rounds(200) {
        let (least, most) = (random.within(1, 20) as u32, random.within(50, 1000) as u32);
        let (mut gradient2, mut aimd) =
            (Gradient2::new(20, least, most), Aimd::new(20, least, most, 30 * MS));
        let shared = Adaptive::new(&AdaptiveOptions::gradient2(20, least, most));
        let other = Adaptive::new(&AdaptiveOptions::aimd(20, least, most, 30 * MS));
        for _ in 0..50 {
            let latency = random.within(MS, 40 * MS);
            let dropped = random.one_in(10);
            let outcome = if dropped { Outcome::Dropped } else { Outcome::Answered };
            // The n-th ticket was acquired with n in flight.
            let n = random.within(1, shared.limit().into());
            let tickets: Vec<AdaptiveTicket> = (0..n).map(|_| shared.acquire().unwrap()).collect();
            assert!(shared.release_at(tickets[n as usize - 1], Outcome::Answered, latency, 0));
            assert_eq!(shared.limit(), gradient2.sample(n as u32, latency));
            assert!(tickets[1..].iter().all(|ticket| shared.release_at(
                *ticket,
                Outcome::Ignored,
                latency,
                0
            )));
            let ticket = other.acquire().unwrap();
            assert!(other.release_at(ticket, outcome, latency, 0));
            assert_eq!(other.limit(), aimd.sample(1, latency, dropped));
            assert_eq!((shared.read().in_flight, other.read().in_flight), (0, 0));
        }
    }
}

/// 10^5 releases at one latency, with the whole limit in flight: the limit only grows, up to its
/// ceiling. (Netflix's first gradient algorithm lowers its limit to measure the latency of an idle
/// server.)
#[test]
fn no_probe_drops_the_limit() {
    let limit = Adaptive::new(&AdaptiveOptions::gradient2(20, 5, 300));
    let mut limits = vec![20];
    while limits.len() < 100_000 {
        limits.extend(round(&limit, 10 * MS));
    }
    assert!(limits.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!((limits.last(), limit.read().latency_ns), (Some(&300), 10 * MS));
}

#[test]
fn a_permit_comes_back_once() {
    let limit = Adaptive::new(&AdaptiveOptions::aimd(2, 0, 2, MS));
    let (first, second) = (limit.acquire().unwrap(), limit.acquire().unwrap());
    assert_eq!((limit.acquire(), first.to_bits(), second.to_bits()), (None, 1, 2));
    assert!(!limit.release(AdaptiveTicket::default(), Outcome::Answered, 1));
    // After two dropped requests the limit is at its floor, 1, and 1 permit is in flight.
    assert!(limit.release(first, Outcome::Dropped, 1));
    assert_eq!((limit.limit(), limit.acquire()), (1, None));
    assert!(limit.release(AdaptiveTicket::from_bits(second.to_bits()), Outcome::Dropped, 1));
    assert!(!limit.release(second, Outcome::Answered, 1));
    assert_eq!((limit.limit(), limit.read().in_flight), (1, 0));
}

/// All releases of a window are one sample: their mean latency, the most permits in flight, and
/// whether a request was dropped. A window has at least ten releases.
#[test]
fn a_window_is_one_sample() {
    let options =
        AdaptiveOptions { window_ns: 100 * MS, ..AdaptiveOptions::aimd(20, 5, 100, 30 * MS) };
    let limit = Adaptive::new(&options);
    let release = |outcome, latency, now| {
        let tickets: Vec<AdaptiveTicket> = (0..10).map(|_| limit.acquire().unwrap()).collect();
        assert!(limit.release_at(tickets[9], outcome, latency, now));
        assert!(tickets[1..].iter().all(|ticket| limit.release_at(
            *ticket,
            Outcome::Ignored,
            latency,
            now
        )));
        limit.limit()
    };
    // The first window ends with its tenth release, and the next one 100 ms later.
    let limits: Vec<u32> = (0..10).map(|_| release(Outcome::Answered, 10 * MS, 0)).collect();
    assert_eq!((limits[8], limits[9]), (20, 21));
    // The mean of nine short latencies and a long one is below the timeout.
    (0..9).for_each(|n| assert_eq!(release(Outcome::Answered, 10 * MS, n), 21));
    assert_eq!(release(Outcome::Answered, 90 * MS, 100 * MS - 1), 21);
    // With 10 permits in flight of a limit of 21, less than half is in flight, so the sample
    // changes nothing.
    assert_eq!(release(Outcome::Answered, 10 * MS, 100 * MS), 21);
    (0..9).for_each(|_| assert_eq!(release(Outcome::Answered, 10 * MS, 300 * MS), 21));
    // One dropped request makes the window's sample a drop.
    assert_eq!(release(Outcome::Dropped, 10 * MS, 300 * MS), 18);
}

/// The limit of a table's key: the table counts, and a process's own count stays 0.
#[test]
fn a_keys_limit_follows_the_latency() {
    let flights = InFlight::private(&Options::new(10)).unwrap();
    let limit = Adaptive::new(&AdaptiveOptions::aimd(2, 1, 3, MS));
    let acquire = || limit.acquire_key(&flights, b"server");
    let (first, second) = (acquire().unwrap(), acquire().unwrap());
    assert_eq!((acquire(), limit.read().in_flight), (Err(Refusal::Limit), 0));
    assert!(limit.release_key(&flights, b"server", first, Outcome::Answered, MS));
    assert_eq!(limit.limit(), 3);
    assert!(!limit.release_key(
        &flights,
        b"server",
        tollbar::in_flight::Ticket::default(),
        Outcome::Dropped,
        MS
    ));
    assert!(limit.release_key(&flights, b"server", second, Outcome::Dropped, MS));
    assert_eq!((limit.limit(), flights.count(b"server")), (2, 0));
}

/// AIMD raises the limit by 1 for each release of any thread.
#[test]
fn threads_lose_no_sample() {
    let limit = Adaptive::new(&AdaptiveOptions::aimd(8, 1, u32::MAX, MS));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    // The ticket says that as many permits as the limit are in flight, so the
                    // sample raises the limit by 1.
                    let full = limit
                        .acquire()
                        .map(|_| AdaptiveTicket::from_bits(u32::MAX.into()))
                        .unwrap();
                    assert!(limit.release(full, Outcome::Answered, 1));
                }
            });
        }
    });
    assert_eq!((limit.limit(), limit.read().in_flight), (8 + 8000, 0));
}
