//! One limit for many clients.

use crate::common::{away_from_edges, MIN, SEC};
use crate::server::Server;
use crate::{limit, store, SLOW};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::time::Duration;
use tollbar::Verdict;
use tollbar_redis::store::{RedisStore, Store};

/// Runs four clients at once until each has been denied. Returns how many requests were admitted.
fn rush(server: &Server, text: &str, key: &str) -> u64 {
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                let url = if n % 2 == 0 { server.unix() } else { server.tcp() };
                let start = &start;
                scope.spawn(move || {
                    let mut store = store(&url);
                    let limit = limit(&store, text);
                    start.wait();
                    let mut admitted = 0;
                    // Fails if the store never denies, instead of looping for ever.
                    while admitted < 10_000
                        && store.check(&limit, key.as_bytes(), 1).unwrap().is_allowed()
                    {
                        admitted += 1;
                    }
                    admitted
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    })
}

#[test]
fn clients_at_once_get_exactly_the_limit() {
    let server = Server::start();
    for text in SLOW {
        let text = text.replace("5/day", "500/day");
        assert_eq!(rush(&server, &text, &text), 500, "{text}");
    }
}

#[test]
fn clients_at_once_get_the_burst_and_the_rate() {
    let server = Server::start();
    let clock = || {
        let mut store = store(&server.unix());
        let limit = limit(&store, "1/day");
        let _ = store.peek(&limit, b"clock", 1).unwrap();
        store.server_time()
    };
    let round = || {
        let start = clock();
        let admitted: u64 = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut store = store(&server.unix());
                        let limit = limit(&store, "2000/s burst 10");
                        let mut admitted = 0;
                        loop {
                            admitted += store.take_up_to(&limit, b"key", 3).unwrap();
                            if store.server_time() > start + 500_000_000 {
                                return admitted;
                            }
                        }
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        let most = 10 + (clock() - start) / 500_000;
        assert!(admitted <= most, "{admitted} of {most}");
        admitted
    };
    // Repeats if the machine was so busy that the half second passed.
    assert!((0..20).any(|_| round() > 50));
}

/// Ten commands for a limit of five. Half of them are delayed by a second on their way: by the
/// clients' clocks both halves would pass.
#[test]
fn a_command_that_comes_late_is_judged_when_it_comes() {
    let server = Server::start();
    let mut clients: Vec<RedisStore> =
        (0..10).map(|_| store(&server.tcp()).with_timeout(10_000_000_000)).collect();
    let limit = limit(&clients[0], "5/s burst 5");
    for client in &mut clients {
        assert_eq!(client.peek(&limit, b"key", 5).unwrap().verdict, Verdict::Allowed);
    }
    server.pause();
    let mut granted: Vec<u64> = Vec::new();
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        let sent: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(n, client)| {
                let limit = &limit;
                scope.spawn(move || {
                    if n >= 5 {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                    let decision = client.check(limit, b"key", 1).unwrap();
                    (u64::from(decision.is_allowed()), client.server_time())
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(1_200));
        server.resume();
        for (grant, time) in sent.into_iter().map(|thread| thread.join().unwrap()) {
            granted.push(grant);
            times.push(time);
        }
    });
    // Each 200 ms add a permit, if this machine takes that long for ten commands.
    let spread = times.iter().max().unwrap() - times.iter().min().unwrap();
    let grants: u64 = granted.iter().sum();
    assert!(grants >= 5 && grants <= 5 + spread / 200_000_000, "{grants} in {spread} ns");
}

/// The command for a request is the same at any time: it has no client's clock in it.
#[test]
fn nothing_of_the_clients_clock_is_sent() {
    let server = Server::start();
    let mut store = store(&server.unix());
    let _ = store.check(&limit(&store, "1/day"), b"warm", 1).unwrap();
    let monitor = UnixStream::connect(server.socket()).unwrap();
    (&monitor).write_all(b"MONITOR\r\n").unwrap();
    let mut lines = BufReader::new(monitor).lines().map(|line| line.unwrap());
    assert_eq!(lines.next().unwrap(), "+OK");
    for text in SLOW {
        let limit = limit(&store, text);
        for _ in 0..2 {
            let _ = store.check(&limit, text.as_bytes(), 1).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        // +1700000000.123456 [0 unix:/path] "EVALSHA" …
        let mut sent = lines
            .by_ref()
            .filter_map(|line| line.split_once("] \"EVALSHA\" ").map(|(_, args)| args.to_string()));
        let (first, second) = (sent.next().unwrap(), sent.next().unwrap());
        assert!(first.contains(text), "{first}");
        assert_eq!(first, second);
    }
}

/// Bursts below half the rate and rates below one a second work as any other policy.
#[test]
fn small_bursts_and_slow_rates_are_no_errors() {
    let server = Server::start();
    let mut store = store(&server.unix());
    for (text, burst, interval) in [
        ("100/day burst 10", 10, 864_000_000_000),
        ("1000000/day burst 1", 1, 86_400_000),
        ("1/day burst 3", 3, 86_400_000_000_000_u64),
    ] {
        let limit = limit(&store, text);
        assert!(store.check(&limit, text.as_bytes(), 1).unwrap().is_allowed(), "{text}");
        let start = store.server_time();
        let admitted = (0..20)
            .filter(|_| store.check(&limit, text.as_bytes(), 1).unwrap().is_allowed())
            .count() as u64;
        // And the permits that refilled meanwhile.
        let most = burst - 1 + (store.server_time() - start) / interval;
        assert!(admitted >= burst - 1 && admitted <= most, "{text}: {admitted} of {most}");
    }
}

/// Of 2.7 permits 2 are taken and 0.7 stay.
#[test]
fn a_part_of_a_permit_is_not_charged() {
    let server = Server::start();
    let mut store = store(&server.unix());
    let limit = limit(&store, "10/s burst 5");
    assert_eq!(store.take_up_to(&limit, b"key", 5), Ok(5));
    let empty = store.server_time();
    std::thread::sleep(Duration::from_millis(270));
    let taken = store.take_up_to(&limit, b"key", 5).unwrap();
    let whole = (store.server_time() - empty) / 100_000_000;
    assert_eq!(taken, whole.min(5));
    // The debt is exactly what was taken: the next permit is there when one more has refilled since
    // `empty`.
    let decision = store.peek(&limit, b"key", 1).unwrap();
    if whole < 5 && !decision.is_allowed() {
        assert_eq!(store.server_time() + decision.retry_after, empty + (whole + 1) * 100_000_000);
    }
}

/// A key under a changed policy never gets more than a new key.
#[test]
fn a_changed_policy_gives_no_more_than_a_new_key() {
    let server = Server::start();
    let mut store = store(&server.unix());
    for kind in [
        "",
        "algo interval",
        "algo fixed-window",
        "algo weighted-window",
        "algo sliding-window",
        "algo sliding-log",
    ] {
        for (before, after) in
            [("100/day", "7/day"), ("7/day", "100/day"), ("7/min", "9/day"), ("9/day", "7/min")]
        {
            let (one, other) = (
                limit(&store, &format!("{before} {kind}")),
                limit(&store, &format!("{after} {kind}")),
            );
            // Windows of `7/min` begin with each minute.
            away_from_edges(MIN);
            store.reset(&one, b"key").unwrap();
            store.take_up_to(&one, b"key", 6).unwrap();
            let most = crate::common::policy(after).limit;
            let got = store.take_up_to(&other, b"key", 1000).unwrap();
            assert!(got <= most, "{before} to {after} {kind}: {got}");
            // After that the key has no permits left.
            assert!(
                store.take_up_to(&other, b"key", 1000).unwrap() <= 1,
                "{before} to {after} {kind}"
            );
        }
    }
}

/// Whole permits are kept, whatever the units of the policies are, up to the new burst.
#[test]
fn a_changed_rate_keeps_the_permits() {
    let server = Server::start();
    let mut store = store(&server.unix());
    for (n, (before, used, after, left)) in [
        ("1001/day", 1, "1000/day", 999),
        ("1000/day", 1000, "1001/day", 1),
        ("7/day", 3, "100/day", 97),
        ("5/day algo interval", 2, "9/25h algo interval", 7),
        ("5/day algo interval", 5, "5/day", 0),
        ("9/day", 4, "9/day algo interval", 5),
    ]
    .into_iter()
    .enumerate()
    {
        let (key, one, other) = (n.to_le_bytes(), limit(&store, before), limit(&store, after));
        assert!(store.check(&one, &key, used).unwrap().is_allowed());
        let decision = store.peek(&other, &key, 1).unwrap();
        assert_eq!(decision.remaining, left, "{before} to {after}: {decision:?}");
    }
}

/// A period of a former policy that has begun gave no permits. The new policy counts from the first
/// request that it sees, also from one that it denies.
#[test]
fn a_begun_period_gives_no_permits_to_another_rate() {
    let server = Server::start();
    let mut store = store(&server.unix());
    let one = limit(&store, "5/4s algo interval");
    let other = limit(&store, "5/5s burst 5");
    // Two seconds of a period of four: a permit of `other` for each.
    let into = store.server_time() % (4 * SEC);
    if !(2 * SEC..3 * SEC).contains(&into) {
        std::thread::sleep(Duration::from_nanos((6 * SEC - into) % (4 * SEC)));
    }
    assert!(store.check(&one, b"key", 5).unwrap().is_allowed());
    let start = store.server_time();
    let decision = store.check(&other, b"key", 1).unwrap();
    let most = (store.server_time() - start) / SEC;
    assert!(decision.remaining <= most, "{decision:?}");
    if most == 0 {
        assert!(!decision.is_allowed(), "{decision:?}");
        std::thread::sleep(Duration::from_nanos(decision.retry_after));
        let decision = store.check(&other, b"key", 1).unwrap();
        assert!(decision.is_allowed(), "{decision:?}");
    }
}
