//! How many requests and clients each limit of a grid would have refused.
//!
//! The grid has token buckets of unit cost or any other. For each client and rate the bucket is
//! followed as if nothing were refused: `tat = max(tat, now) + cost * T` is when it would be full
//! again, and `need = ceil((tat - now) / T)` the burst that this request needs. The largest need of
//! a client is the smallest burst under which it is never refused. A smaller burst has a bucket of
//! its own from its first refusal on; until then the two are equal, so most clients have few
//! buckets.

/// A rate of the grid.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Permits.
    pub limit: u64,
    /// As policies write it.
    pub unit: &'static str,
    /// Nanoseconds a permit; whole for every rate of the grid.
    pub interval: u64,
}

const SECOND: u64 = 1_000_000_000;

const fn rate(limit: u64, unit: &'static str, period: u64) -> Rate {
    Rate { limit, unit, interval: period * SECOND / limit }
}

/// The rates, slow ones first.
pub const RATES: [Rate; 20] = [
    rate(12, "h", 3_600),
    rate(30, "h", 3_600),
    rate(1, "min", 60),
    rate(2, "min", 60),
    rate(3, "min", 60),
    rate(5, "min", 60),
    rate(10, "min", 60),
    rate(15, "min", 60),
    rate(20, "min", 60),
    rate(30, "min", 60),
    rate(1, "s", 1),
    rate(2, "s", 1),
    rate(5, "s", 1),
    rate(10, "s", 1),
    rate(20, "s", 1),
    rate(50, "s", 1),
    rate(100, "s", 1),
    rate(200, "s", 1),
    rate(500, "s", 1),
    rate(1_000, "s", 1),
];

/// The bursts.
pub const BURSTS: [u64; 20] =
    [1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1_000];

/// One client under all rates.
struct ClientBuckets {
    tats: [u64; RATES.len()],
    needs: [u64; RATES.len()],
    /// For each rate in turn, the buckets of the bursts that are below the need.
    buckets: Vec<u64>,
}

/// The grid.
pub struct Limits {
    clients: Vec<Option<Box<ClientBuckets>>>,
    /// Refused requests by rate and burst.
    pub refused: [[u64; BURSTS.len()]; RATES.len()],
}

fn below(need: u64) -> usize {
    BURSTS.iter().take_while(|&&burst| burst < need).count()
}

impl Limits {
    /// A grid without requests.
    pub fn new() -> Limits {
        Limits { clients: Vec::new(), refused: [[0; BURSTS.len()]; RATES.len()] }
    }

    /// A request of a client.
    pub fn request(&mut self, key: u32, now: u64, cost: u64) {
        if cost == 0 {
            return;
        }
        let key = key as usize;
        if key >= self.clients.len() {
            self.clients.resize_with(key + 1, || None);
        }
        let client = self.clients[key].get_or_insert_with(|| {
            Box::new(ClientBuckets {
                tats: [0; RATES.len()],
                needs: [0; RATES.len()],
                buckets: Vec::new(),
            })
        });
        let mut at = 0;
        for (n, rate) in RATES.iter().enumerate() {
            let price = cost.saturating_mul(rate.interval);
            let before = client.tats[n];
            let after = before.max(now).saturating_add(price);
            client.tats[n] = after;
            let need = (after - now).div_ceil(rate.interval);
            let have = below(client.needs[n]);
            for (burst, bucket) in client.buckets[at..at + have].iter_mut().enumerate() {
                let next = (*bucket).max(now).saturating_add(price);
                if next - now <= BURSTS[burst].saturating_mul(rate.interval) {
                    *bucket = next;
                } else {
                    self.refused[n][burst] += 1;
                }
            }
            if need > client.needs[n] {
                client.needs[n] = need;
                let all = below(need);
                // These buckets refuse for the first time, so this request does not charge them.
                client
                    .buckets
                    .splice(at + have..at + have, std::iter::repeat_n(before, all - have));
                for refused in &mut self.refused[n][have..all] {
                    *refused += 1;
                }
                at += all;
            } else {
                at += have;
            }
        }
    }

    /// How many of the clients that `counts` chooses by their numbers each limit would have refused
    /// a request, by rate and burst.
    pub fn clients_refused(&self, counts: impl Fn(usize) -> bool) -> Vec<Vec<u64>> {
        let mut hurt = vec![vec![0; BURSTS.len()]; RATES.len()];
        for (key, client) in self.clients.iter().enumerate() {
            let Some(client) = client.as_ref().filter(|_| counts(key)) else { continue };
            for (n, &need) in client.needs.iter().enumerate() {
                for count in &mut hurt[n][..below(need)] {
                    *count += 1;
                }
            }
        }
        hurt
    }

    /// The smallest burst under which a client is never refused, at each rate.
    pub fn needs(&self, key: u32) -> Option<&[u64; RATES.len()]> {
        self.clients.get(key as usize)?.as_deref().map(|client| &client.needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollbar::algorithm::Algorithm;
    use tollbar::algorithm::Rule;
    use tollbar::{Policy, Verdict};

    /// Every cell of the grid, against the library's own token bucket.
    #[test]
    fn each_cell_is_what_the_library_decides() {
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut now = 1_431_857_103 * SECOND;
        let mut requests = Vec::new();
        for _ in 0..6_000 {
            now += [0, 0, 1, SECOND / 100, SECOND, 30 * SECOND][random(6) as usize];
            // Whole seconds and others, single permits and others, and once in a while a step back.
            let late = if random(50) == 0 { 3 * SECOND } else { 0 };
            let cost = if random(20) == 0 { random(4) } else { 1 };
            requests.push((random(40) as u32 * random(2) as u32, now - late, cost));
        }
        let mut limits = Limits::new();
        for &(key, now, cost) in &requests {
            limits.request(key, now, cost);
        }
        let clients = limits.clients_refused(|_| true);
        let mut refusals = 0;
        for (r, rate) in RATES.iter().enumerate() {
            for (b, &burst) in BURSTS.iter().enumerate() {
                let rule =
                    Rule::new(&Policy::new(1, rate.interval).with_burst(burst)).expect("a policy");
                let mut words = [0; 40];
                let (mut refused, mut hurt) = (0, [false; 40]);
                for &(key, now, cost) in &requests {
                    let step = rule.step(words[key as usize], now, cost);
                    words[key as usize] = step.next.unwrap_or(words[key as usize]);
                    if step.verdict != Verdict::Allowed {
                        refused += 1;
                        hurt[key as usize] = true;
                    }
                }
                let hurt = hurt.iter().filter(|&&hurt| hurt).count() as u64;
                assert_eq!(
                    (limits.refused[r][b], clients[r][b]),
                    (refused, hurt),
                    "{}/{} burst {burst}",
                    rate.limit,
                    rate.unit
                );
                refusals += refused;
            }
        }
        assert!(refusals > 10_000, "the log is to be refused by some limits: {refusals}");
    }
}
