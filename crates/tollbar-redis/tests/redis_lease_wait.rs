//! Requests that wait for a real Redis: decided as by the store, by whichever machine they are
//! asked of, and after a restart of the store.

#[path = "common/redis.rs"]
mod redis;
#[path = "common/stop.rs"]
mod stop;

use redis::Server;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stop::Stop;
use tollbar::{Policy, Reason};
use tollbar_redis::lease::{Circuit, Client, Node, OnLoss, Options};
use tollbar_redis::redis::Url;

const SECOND: u64 = 1_000_000_000;

/// Runs `test` with the nodes of so many machines, whose clients run in threads of their own.
fn machines(server: &Server, text: &str, options: &[Options], test: impl FnOnce(&[Node])) {
    let policy: Policy = text.parse().expect("a policy");
    let nodes: Vec<Node> =
        options.iter().map(|o| Node::private("waits", &policy, o).expect("a node")).collect();
    let stop = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for node in &nodes {
            let url = Url::parse(&server.unix()).expect("a URL");
            let stop = &stop;
            scope.spawn(move || {
                let client = Client::new(&url).and_then(|client| client.with(node));
                client.expect("a client").run(stop)
            });
        }
        let _stop = Stop(&stop);
        nodes.iter().for_each(connected);
        test(&nodes);
    });
}

fn connected(node: &Node) {
    let begin = Instant::now();
    while node.circuit(node.now()) != Circuit::Closed {
        assert!(begin.elapsed() < Duration::from_secs(60), "the client does not connect");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn options(nodes: u32, on_loss: OnLoss) -> Options {
    Options { overdraft: 0, on_loss, ..Options::new(nodes) }
}

/// Requests of one key that wait, asked of machines in turn, are decided as by the store.
#[test]
fn f1_machines_in_turn_are_one_store() {
    let server = Server::start();
    for count in [1, 2, 7] {
        server.command(&["FLUSHALL"]);
        let all = vec![options(count, OnLoss::Full); count as usize];
        machines(&server, "5/min", &all, |nodes| {
            for user in 0..20_u32 {
                let key = user.to_le_bytes();
                let reasons: Vec<Reason> = (0..7)
                    .map(|n| nodes[n % nodes.len()].wait(&key, 1, 30 * SECOND).reason)
                    .collect();
                // On a machine that stood still for seconds a permit may have come back.
                let admitted = reasons.iter().filter(|r| **r == Reason::Admitted).count();
                assert!((5..=6).contains(&admitted), "{count} machines: {reasons:?}");
                assert_eq!(reasons[6], Reason::StoreDenied, "{count} machines: {reasons:?}");
            }
        });
    }
}

/// Requests that come before the client has reached the store wait for it. If it is not there, they
/// are decided as soon as that is known, and without a client at once.
#[test]
fn requests_before_the_first_connection_wait_for_it() {
    let server = Server::start();
    let policy: Policy = "60/day burst 60".parse().expect("a policy");
    for (url, most) in
        [(Some(server.unix()), 60), (Some("unix:/no/socket".to_owned()), 0), (None, 0)]
    {
        let node = Node::private("early", &policy, &options(1, OnLoss::Full)).expect("a node");
        let (stop, node) = (AtomicU32::new(0), &node);
        let mut client = url.as_ref().map(|url| {
            let client = Client::new(&Url::parse(url).expect("a URL"));
            client.and_then(|client| client.with(node)).expect("a client")
        });
        let begin = Instant::now();
        let admitted: u32 = std::thread::scope(|scope| {
            let ask = || (0..20).filter(|_| node.wait(b"k", 1, 60 * SECOND).is_allowed()).count();
            let early: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            // The requests are there before the client's first turn.
            std::thread::sleep(Duration::from_millis(20));
            let stop = &stop;
            if let Some(mut client) = client.take() {
                scope.spawn(move || client.run(stop));
            }
            let _stop = Stop(stop);
            early.into_iter().map(|thread| thread.join().expect("requests") as u32).sum()
        });
        println!("{admitted} of {most} by {url:?} within {:?}", begin.elapsed());
        // A machine that did not run for 250 ms has decided by its share, which is nothing.
        assert!(admitted == most || begin.elapsed() > Duration::from_millis(250), "{admitted}");
        assert!(begin.elapsed() < Duration::from_secs(50), "{url:?}: {:?}", begin.elapsed());
    }
}

/// A wait takes a round trip: the caller wakes the client, and the answer wakes the caller. The
/// bound is wide for a busy machine; the figure is printed.
#[test]
fn f1_a_wait_is_a_round_trip() {
    let server = Server::start();
    machines(&server, "5/min", &[options(1, OnLoss::Full)], |nodes| {
        let mut took: Vec<Duration> = (0..2_000_u32)
            .map(|user| {
                let begin = Instant::now();
                assert!(nodes[0].wait(&user.to_le_bytes(), 1, 30 * SECOND).is_allowed());
                let took = begin.elapsed();
                std::thread::sleep(Duration::from_micros(200));
                took
            })
            .collect();
        took.sort_unstable();
        let (half, most) = (took[took.len() / 2], took[took.len() * 99 / 100]);
        println!("2,000 waits: p50 {half:?}, p99 {most:?}");
        assert!(half < Duration::from_millis(4), "the client sleeps through its bell: {half:?}");
    });
}

/// Many threads wait for few keys: as many pass as the store has permits, and all come back.
#[test]
fn threads_wait_together() {
    let server = Server::start();
    machines(&server, "1/h burst 50", &[options(2, OnLoss::Full); 2], |nodes| {
        let admitted = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let (node, admitted) = (&nodes[thread % 2], &admitted);
                scope.spawn(move || {
                    for _ in 0..10 {
                        let decision = node.wait(b"key", 1, 30 * SECOND);
                        let is_allowed = u32::from(decision.is_allowed());
                        admitted.fetch_add(is_allowed, Ordering::Relaxed);
                    }
                });
            }
        });
        let admitted = admitted.into_inner();
        println!("{admitted} of 50 by 160 requests");
        assert!((40..=50).contains(&admitted), "{admitted} of 50");
    });
}

/// A restart of the store, which comes back empty: with `full` an idle user has all of his burst,
/// with `refill` he has what refilled.
#[test]
fn f2_a_restart_costs_an_idle_user_nothing() {
    for (on_loss, least, most) in [(OnLoss::Full, 299, 299), (OnLoss::Refill, 0, 20)] {
        let mut server = Server::start();
        server.command(&["CONFIG", "SET", "save", ""]);
        let policy: Policy = "1000/day".parse().expect("a policy");
        let node = Node::private("day", &policy, &options(2, on_loss)).expect("a node");
        let stop = AtomicU32::new(0);
        let admitted = std::thread::scope(|scope| {
            let url = Url::parse(&server.unix()).expect("a URL");
            let (node, stop) = (&node, &stop);
            scope.spawn(move || {
                let client = Client::new(&url).and_then(|client| client.with(node));
                client.expect("a client").run(stop)
            });
            let _stop = Stop(stop);
            connected(node);
            let _ = node.wait(b"somebody", 1, 30 * SECOND);
            server.kill();
            let begin = Instant::now();
            while node.circuit(node.now()) == Circuit::Closed && begin.elapsed().as_secs() < 60 {
                std::thread::sleep(Duration::from_millis(1));
            }
            server.restart();
            connected(node);
            (0..299)
                .filter(|_| {
                    let decision = node.wait(b"idle", 1, 30 * SECOND);
                    decision.is_allowed() && decision.reason == Reason::Admitted
                })
                .count()
        });
        println!("{on_loss:?}: {admitted} of 299 after the restart");
        assert!((least..=most).contains(&admitted), "{on_loss:?}: {admitted}");
    }
}
