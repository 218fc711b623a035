//! Leases of many keys from a real Redis, and a node without a store.

#[path = "common/machine.rs"]
mod machine;
#[path = "common/redis.rs"]
mod redis;

use machine::Machine;
use redis::Server;
use std::time::{Duration, Instant};
use tollbar::Verdict;
use tollbar_redis::lease::{Circuit, Client, Fallback, Node, Options};
use tollbar_redis::redis::Url;

/// Each of many keys has its own limit over two machines: hot keys by leases, cold keys by debts.
/// While a circuit is open, its machine admits its share beside what the other has. That happens if
/// a client's thread gets no processor for the patience, 25 ms. Such a run is held to the greater
/// bound, and others are tried, since one without has the smaller bound.
#[test]
fn every_key_has_its_own_limit() {
    let _ = (0..5).any(|_| many_keys());
}

/// Returns whether no circuit opened.
fn many_keys() -> bool {
    let server = Server::start();
    // Large enough that the ring does not fill while the client's thread gets no processor for a
    // second.
    let options = Options { capacity: 32_768, overdraft: 2, ..Options::new(2) };
    let machines = [0, 1].map(|_| Machine::new(&server.unix(), "keys", "50/s burst 40", &options));
    machines.iter().for_each(|machine| {
        machine.until(Circuit::Closed);
    });
    let since = Instant::now();
    let mut admitted = vec![0_u64; 300];
    let mut attempts = 0_u64;
    while since.elapsed() < Duration::from_millis(1500) {
        for (key, count) in admitted.iter_mut().enumerate() {
            // The first ten keys are requested all the time, the others now and then.
            if key < 10 || attempts % 50 == key as u64 % 50 {
                let bytes = format!("192.0.2.{key}");
                *count += machines
                    .iter()
                    .map(|machine| u64::from(machine.check(bytes.as_bytes(), 1)))
                    .sum::<u64>();
            }
        }
        attempts += 1;
        std::thread::sleep(Duration::from_micros(500));
    }
    let most = 40 + (since.elapsed().as_secs_f64() * 50.0) as u64 + 1;
    let opened: u64 = machines.iter().map(|machine| machine.node.stats().opened).sum();
    println!(
        "hot {:?} of {most}, cold {:?}, opened {opened} times",
        &admitted[..10],
        &admitted[10..20]
    );
    assert_eq!(machines.iter().map(|machine| machine.node.stats().queue_full).sum::<u64>(), 0);
    // In all openings together the machines' shares are the rate, and each has its right anew.
    let bound = if opened == 0 { most } else { most + (most - 40) + 2 * (opened + 1) };
    assert!(
        admitted.iter().all(|count| *count <= bound),
        "{admitted:?} above {bound}, opened {opened} times"
    );
    // Hot keys come near the rate. On a machine that runs other tests, too, a quarter of it is
    // enough.
    assert!(admitted[..10].iter().all(|count| *count >= most / 4), "{admitted:?}");
    assert!(admitted[10..].iter().all(|count| *count > 0), "{admitted:?}");
    opened == 0
}

/// Without any server three nodes together admit what one limit would.
#[test]
fn three_nodes_in_an_outage() {
    let options = Options { overdraft: 1, ..Options::new(3) };
    let machines = [0, 1, 2].map(|_| {
        Machine::new("unix:/nonexistent/redis.sock", "outage", "300/s burst 60", &options)
    });
    let since = Instant::now();
    let (mut ran, mut last) = (Duration::ZERO, since);
    let mut admitted = 0_u64;
    while since.elapsed() < Duration::from_millis(1000) {
        admitted += machines.iter().map(|machine| u64::from(machine.check(b"", 1))).sum::<u64>();
        std::thread::sleep(Duration::from_micros(300));
        // The reserve holds one permit, so permits that refill while no request comes are lost.
        let now = Instant::now();
        ran += (now - last).min(Duration::from_millis(10));
        last = now;
    }
    let rate = 300.0 * since.elapsed().as_secs_f64();
    println!("{admitted} admitted, {rate:.0} by the rate");
    assert!(admitted as f64 <= rate + 60.0, "{admitted} above {rate}");
    assert!(
        admitted as f64 >= 300.0 * ran.as_secs_f64() / 2.0,
        "{admitted}: the nodes go on by themselves"
    );
    assert!(machines
        .iter()
        .all(|machine| machine.node.circuit(machine.node.now()) != Circuit::Closed));
}

/// Without a store `Deny` denies and `Allow` admits.
#[test]
fn deny_and_allow() {
    let make = |fallback| {
        let options = Options { fallback, ..Options::new(2) };
        Machine::new("unix:/nonexistent/redis.sock", "fallback", "10/s burst 20", &options)
    };
    let (deny, allow) = (make(Fallback::Deny), make(Fallback::Allow));
    assert!((0..50).all(|_| !deny.check(b"k", 1)));
    assert!((0..50).all(|_| allow.check(b"k", 1)));
    let (denied, uncounted) = (deny.node.stats(), allow.node.stats());
    assert_eq!((denied.denied, denied.fallback_permits, uncounted.uncounted), (50, 0, 50));
}

/// The client uses a server again soon after it was killed and started again.
#[test]
fn back_by_itself() {
    let mut server = Server::start();
    let machine = Machine::new(&server.unix(), "back", "1000/s burst 200", &Options::new(2));
    machine.until(Circuit::Closed);
    let mut times = Vec::new();
    while times.len() < 30 && !times.iter().any(|time| *time < Duration::from_millis(200)) {
        server.kill();
        machine.check(b"", 1);
        let noticed = machine.until(Circuit::Open);
        server.restart();
        times.push(machine.until(Circuit::Closed));
        println!("noticed after {noticed:?}, back after {:?}", times.last().expect("one"));
    }
    // tests/lease_simulation.rs tests in virtual time how soon a node uses a store that answers
    // again. Here it is the connection's part, some 50 ms. The best of thirty counts, because the
    // others may have waited for a processor.
    assert!(times.iter().min().expect("one") < &Duration::from_millis(200), "{times:?}");
}

/// No call waits for a server that is stopped while questions are in flight.
#[test]
fn a_stopped_server_costs_nobody_a_wait() {
    let server = Server::start();
    let machine = Machine::new(&server.unix(), "stopped", "100000/s burst 20000", &Options::new(2));
    machine.until(Circuit::Closed);
    // The scheduler delays some of the calls, and a page that comes in puts the thread to sleep. A
    // wait for the server would be long in each try, asleep or with the processor.
    let none_was_long = |_| {
        server.pause();
        let since = Instant::now();
        let (mut longest, mut none) = (Duration::ZERO, true);
        while since.elapsed() < Duration::from_millis(400) {
            let (before, began) = (usage(), Instant::now());
            machine.check(b"", 1);
            let (took, after) = (began.elapsed(), usage());
            longest = longest.max(took);
            let waited = after.0 > before.0 || after.1 - before.1 > Duration::from_millis(50);
            none &= took < Duration::from_millis(200) || !waited;
        }
        machine.until(Circuit::Open);
        server.resume();
        machine.until(Circuit::Closed);
        println!("the longest call took {longest:?}");
        none
    };
    assert!((0..5).any(none_was_long));
}

/// How often this thread has given up its processor by itself, and how long it has had one.
fn usage() -> (libc::c_long, Duration) {
    // SAFETY: numbers, of which all may be 0; the call writes them.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    (usage.ru_nvcsw, Duration::from_micros(micros(usage.ru_utime) + micros(usage.ru_stime)))
}

/// When the store is back, it is charged for what was admitted in the outage.
#[test]
fn debts_are_charged() {
    let mut server = Server::start();
    let options = Options { overdraft: 20, ..Options::new(2) };
    let mut machine = Machine::new(&server.unix(), "debts", "10/s burst 200", &options);
    machine.until(Circuit::Closed);
    server.kill();
    machine.check(b"k", 1);
    machine.until(Circuit::Open);
    let since = Instant::now();
    let admitted = (0..100).filter(|_| machine.check(b"k", 1)).count() as u64;
    // The node's share of the rate, five a second, comes back meanwhile.
    let most = 21 + (since.elapsed().as_secs_f64() * 5.0) as u64;
    assert!((15..=most).contains(&admitted), "an overdraft: {admitted}");
    server.restart();
    let now = time(&server);
    machine.until(Circuit::Closed);
    let mut client = machine.client();
    assert!(client.close(5000), "all was told");
    assert_eq!(machine.node.stats().owed, 0);
    let value = server.command(&["GET", "tollbar:{debts}:k:k"]).text();
    let tat = value.split(' ').next().and_then(|tat| tat.parse::<u64>().ok()).expect("a TAT");
    // A permit takes 100 ms. A store that has lost its data counts as empty as well. The node has
    // told it after `now`.
    assert!(tat >= now + admitted.saturating_sub(2) * 100_000, "{tat} at {now} for {admitted}");
}

/// The server's time in microseconds.
fn time(server: &Server) -> u64 {
    server
        .command(&["TIME"])
        .items()
        .iter()
        .fold(0, |sum, part| sum * 1_000_000 + part.text().parse::<u64>().expect("a time"))
}

/// A peek takes nothing: at one time and without a client it always gives the same answer.
#[test]
fn peeks() {
    let options = Options { overdraft: 40, ..Options::new(2) };
    let node = Node::private("peeks", &"10/s burst 1000".parse().expect("a policy"), &options)
        .expect("a node");
    let now = node.now();
    assert!(node.check_at(b"k", now, 7).is_allowed());
    for _ in 0..1000 {
        assert_eq!(node.peek_at(b"k", now, 1).remaining, 33);
    }
    assert!(node.check_at(b"k", now, 33).is_allowed() && !node.check_at(b"k", now, 1).is_allowed());
}

/// A cost that no lease can hold is never admitted, and keys of any length are told apart.
#[test]
fn costs_and_keys() {
    let server = Server::start();
    let machine = Machine::new(&server.tcp(), "costs", "10/s burst 1000", &Options::new(2));
    machine.until(Circuit::Closed);
    let most = machine.node.terms().most;
    assert_eq!(machine.node.check(b"k", most + 1).verdict, Verdict::Never);
    assert_eq!(machine.node.check(b"k", u64::MAX).verdict, Verdict::Never);
    let long = |last: u8| [vec![b'x'; 500], vec![last]].concat();
    for key in [long(1), long(2), vec![0xff; 96], vec![0xff; 97], vec![]] {
        let since = Instant::now();
        while !machine.check(&key, 30) {
            assert!(since.elapsed() < Duration::from_secs(30), "{} bytes", key.len());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let since = Instant::now();
    while server.keys() != 6 {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "five keys and the record: {}",
            server.keys()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Two clients of one node. A silent client is displaced, and closes its connection when it runs
/// again. When the other client ends, it asks again. A client that does not lead may end without a
/// change of the circuit.
#[test]
fn one_that_is_displaced_lets_go() {
    let server = Server::start();
    let node = Node::private(
        "displaced",
        &"1000/s burst 200".parse().expect("a policy"),
        &Options::new(2),
    )
    .expect("a node");
    let url = Url::parse(&server.unix()).expect("a URL");
    let client = || Client::new(&url).and_then(|client| client.with(&node)).expect("a client");
    let connections = || server.command(&["CLIENT", "LIST"]).text().matches("name=tollbar").count();
    // At most thirty seconds: the machine may be busy.
    let until = |what: &str, done: &mut dyn FnMut() -> bool| {
        let since = Instant::now();
        while !done() {
            assert!(since.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_micros(500));
        }
    };
    let (mut first, mut second) = (client(), client());
    let asks = |one: &mut Client<&Node>| {
        until("it asks", &mut || {
            one.tick();
            one.is_leader(b"displaced") && node.circuit(node.now()) == Circuit::Closed
        });
    };
    asks(&mut first);
    let (at, opened) = (node.now(), node.stats().opened);
    assert!(second.tick() > 10 && second.fd() == -1);
    assert!(second.close(0), "it owes nothing");
    assert_eq!(
        (node.circuit(at), node.stats().opened),
        (Circuit::Closed, opened),
        "the first still asks"
    );

    // The answer to this is one that the first never reads.
    let _ = node.check(b"k", 1);
    first.tick();
    let mut third = client();
    asks(&mut third);
    assert!(first.fd() >= 0 && first.tick() > 10 && first.fd() == -1);
    until("there is one connection", &mut || {
        third.tick();
        connections() == 1
    });
    assert!(third.close(5000));
    asks(&mut first);
    assert!(first.close(5000));
    until("there is none", &mut || connections() == 0);
}

/// A server that refuses is reported as refusing, and not as gone.
#[test]
fn a_refusal_is_reported() {
    let server = Server::with(&["--requirepass", "secret"]);
    let options = Options::new(2);
    // Waits for the client's thread, at most ten seconds.
    let message = (0..100).find_map(|_| {
        let mut machine = Machine::new(&server.unix(), "refused", "10/s burst 20", &options);
        std::thread::sleep(Duration::from_millis(100));
        let client = machine.client();
        assert_ne!(machine.node.circuit(machine.node.now()), Circuit::Closed);
        client.fault().is_some().then(|| client.trouble().to_string())
    });
    assert!(message.as_ref().is_some_and(|message| message.contains("NOAUTH")), "{message:?}");
    let machine = Machine::new(
        &format!("{}?password=secret", server.unix()),
        "refused",
        "10/s burst 20",
        &options,
    );
    machine.until(Circuit::Closed);
}
