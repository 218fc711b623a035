//! The cost of a decision on a limit that is shared through Redis: by leases, by tollbar's direct
//! mode, and by one script call for each request with the `redis` crate. One run starts and stops
//! one `redis-server`. `--smoke`: a short run that checks no goal.

mod peer;
mod server;

use peer::PerRequest;
use server::Server;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tollbar::Policy;
use tollbar_redis::lease::{Circuit, Client, Node, Options};
use tollbar_redis::redis::Url;
use tollbar_redis::store::{RedisStore, Store};

/// More permits than a core can ask for, so that the limit refuses nothing.
const POLICY: &str = "100000000/s burst 16000000";

/// The figures of one way.
struct Seen {
    way: &'static str,
    admitted: f64,
    decisions: u64,
    asked: u64,
    median: Duration,
}

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let each = Duration::from_millis(if smoke { 150 } else { 2000 });
    let server = Server::start();
    let url =
        Url::parse(&server.url()).unwrap_or_else(|why| fail(&format!("{}: {why}", server.url())));
    let policy: Policy = POLICY.parse().unwrap_or_else(|why| fail(&format!("{POLICY}: {why}")));
    let seen = [
        leased("leases, one key", &url, &policy, &[b"one".to_vec()], each),
        leased(
            "leases, 100 keys",
            &url,
            &policy,
            &(0..100).map(|n| format!("key {n}").into_bytes()).collect::<Vec<_>>(),
            each,
        ),
        direct(&url, &policy, each),
        per_request(&server, each),
    ];
    println!(
        "{:<34} {:>16} {:>18} {:>14}",
        "one thread, unix socket", "admitted a second", "of them asked Redis", "median"
    );
    for seen in &seen {
        let share = seen.asked as f64 / seen.decisions as f64;
        println!(
            "{:<34} {:>16.0} {:>17.4} % {:>14?}",
            seen.way,
            seen.admitted,
            share * 100.0,
            seen.median
        );
    }
    let [one, _, direct, crated] = &seen;
    println!(
        "leases of one key are {:.0} x direct mode and {:.0} x the redis crate",
        one.admitted / direct.admitted,
        one.admitted / crated.admitted
    );
    let share = one.asked as f64 / one.decisions as f64;
    judge("admitted a second by leases, in millions", one.admitted / 1e6, true, 10.0, smoke);
    judge("decisions that touch Redis, in percent", share * 100.0, false, 0.1, smoke);
}

/// A hundred decisions are timed together, because reading the clock costs as much as some of them.
const TIMED: usize = 100;

fn leased(way: &'static str, url: &Url, policy: &Policy, keys: &[Vec<u8>], each: Duration) -> Seen {
    let options = Options { capacity: 1024, overdraft: 0, ..Options::new(2) };
    let name = format!("bench-{}", keys.len());
    let node = Node::private(&name, policy, &options).unwrap_or_else(|why| fail(&why.to_string()));
    let stop = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| match Client::new(url).and_then(|client| client.with(&node)) {
            Ok(mut client) => client.run(&stop),
            Err(why) => fail(&why.to_string()),
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        while node.circuit(node.now()) != Circuit::Closed {
            if Instant::now() > deadline {
                fail("the client does not reach the server");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // The node asks for larger leases as it spends more, and in its first second a new limit
        // counts as empty. So the first calls do not count.
        let warm = if each < Duration::from_secs(1) { each } else { Duration::from_millis(1500) };
        run(warm, keys, |key| node.check(key, 1).is_allowed());
        let before = node.stats().asked;
        let (admitted, decisions, median, took) =
            run(each, keys, |key| node.check(key, 1).is_allowed());
        let asked = node.stats().asked - before;
        stop.store(1, Ordering::Release);
        Seen { way, admitted: admitted as f64 / took.as_secs_f64(), decisions, asked, median }
    })
}

fn direct(url: &Url, policy: &Policy, each: Duration) -> Seen {
    let mut store = RedisStore::new(url).unwrap_or_else(|_| fail("out of memory"));
    let limit = store.limit("bench-direct", policy).unwrap_or_else(|why| fail(&why.to_string()));
    let check = |key: &[u8]| match store.check(&limit, key, 1) {
        Ok(decision) => decision.is_allowed(),
        Err(why) => fail(&why.to_string()),
    };
    let (admitted, decisions, median, took) = run(each, &[b"one".to_vec()], check);
    Seen {
        way: "direct, a script call a request",
        admitted: admitted as f64 / took.as_secs_f64(),
        decisions,
        asked: decisions,
        median,
    }
}

fn per_request(server: &Server, each: Duration) -> Seen {
    let mut peer = PerRequest::new(server).unwrap_or_else(|why| fail(&why.to_string()));
    let check = |key: &[u8]| peer.check(key).unwrap_or_else(|why| fail(&why.to_string()));
    let (admitted, decisions, median, took) = run(each, &[b"one".to_vec()], check);
    Seen {
        way: "redis crate, a GCRA script a request",
        admitted: admitted as f64 / took.as_secs_f64(),
        decisions,
        asked: decisions,
        median,
    }
}

/// Asks for `each`. Returns the permits admitted, the number of requests, the median time of a
/// decision, and the time of the whole.
fn run(
    each: Duration,
    keys: &[Vec<u8>],
    mut check: impl FnMut(&[u8]) -> bool,
) -> (u64, u64, Duration, Duration) {
    let begin = Instant::now();
    let (mut admitted, mut decisions) = (0, 0);
    let mut times = Vec::with_capacity(1 << 20);
    let mut keys = keys.iter().cycle();
    loop {
        let before = Instant::now();
        for _ in 0..TIMED {
            if let Some(key) = keys.next() {
                admitted += u64::from(check(key));
            }
        }
        decisions += TIMED as u64;
        if times.len() < times.capacity() {
            times.push(before.elapsed() / TIMED as u32);
        }
        if begin.elapsed() >= each {
            break;
        }
    }
    let took = begin.elapsed();
    times.sort_unstable();
    (admitted, decisions, times.get(times.len() / 2).copied().unwrap_or_default(), took)
}

fn judge(what: &str, measured: f64, least: bool, goal: f64, smoke: bool) {
    let met = if least { measured >= goal } else { measured <= goal };
    let verdict = match (smoke, met) {
        (true, _) => "not judged",
        (_, true) => "met",
        _ => "MISSED",
    };
    println!("{what}: {measured:.4} (goal {} {goal}) {verdict}", if least { ">=" } else { "<=" });
}

fn fail(why: &str) -> ! {
    eprintln!("tollbar-leases: {why}");
    std::process::exit(1);
}
