//! One client for many limits, against a real Redis.

#[path = "common/redis.rs"]
mod redis;
#[path = "common/stop.rs"]
mod stop;

use redis::Server;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stop::Stop;
use tollbar_redis::lease::{Circuit, Client, Node, NodeError, Options};
use tollbar_redis::redis::{Fault, Url};

fn node(name: &str, policy: &str, options: &Options) -> Node {
    Node::private(name, &policy.parse().expect("a policy"), options).expect("a node")
}

fn nodes(count: usize, policy: &str, options: &Options) -> Vec<Node> {
    (0..count).map(|n| node(&format!("limit{n}"), policy, options)).collect()
}

fn client<'a>(url: &str, nodes: &'a [Node]) -> Client<&'a Node> {
    let mut client = Client::new(&Url::parse(url).expect("a URL")).expect("a client");
    nodes.iter().for_each(|node| client.add(node).expect("room"));
    client
}

/// Runs the client while `f` does.
fn driven<T>(client: &mut Client<&Node>, f: impl FnOnce() -> T) -> T {
    let stop = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| client.run(&stop));
        let _stop = Stop(&stop);
        f()
    })
}

/// Waits, at most thirty seconds: the machine may be busy.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_closed(node: &Node) -> bool {
    node.circuit(node.now()) == Circuit::Closed
}

/// Calls of the script.
fn calls(server: &Server) -> u64 {
    let text = server.command(&["INFO", "commandstats"]).text();
    let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.map_or(0, |line| line.split(',').next().and_then(|n| n.parse().ok()).expect("a number"))
}

/// The microseconds for which the server has run. They do not count the time for which other
/// programs had its processor.
fn worked(server: &Server) -> f64 {
    let text = server.command(&["INFO", "cpu"]).text();
    let seconds = ["used_cpu_sys:", "used_cpu_user:"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a time");
        line.trim().parse::<f64>().expect("seconds")
    });
    seconds.iter().sum::<f64>() * 1e6
}

/// A process has one connection and one heartbeat, however many limits it has.
#[test]
fn a_hundred_idle_limits() {
    let server = Server::start();
    let nodes = nodes(100, "100/min burst 100", &Options::new(2));
    driven(&mut client(&server.unix(), &nodes), || {
        until("all circuits close", || nodes.iter().all(is_closed));
        let clients = server.command(&["CLIENT", "LIST"]).text();
        assert_eq!(clients.matches("name=tollbar").count(), 1, "{clients}");
        std::thread::sleep(Duration::from_millis(500));
        let (before, since) = (calls(&server), Instant::now());
        std::thread::sleep(Duration::from_secs(4));
        let rate = (calls(&server) - before) as f64 / since.elapsed().as_secs_f64();
        println!("100 idle limits: {rate:.2} calls a second");
        assert!(rate > 0.0 && rate <= 5.0, "{rate}");
    });
}

/// The kilobytes of memory that this process has written to.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("kilobytes")
}

/// A limit that nobody asks takes little memory, although its node has room for 4,096 keys. In a
/// process of its own, because the other tests take memory at the same time.
#[cfg(target_os = "linux")]
#[test]
fn an_unused_limit_is_small() {
    const LIMITS: usize = 100;
    if std::env::var_os("TOLLBAR_MEASURES").is_none() {
        let program = std::env::current_exe().expect("this program");
        let done = std::process::Command::new(program)
            .args(["--exact", "an_unused_limit_is_small", "--nocapture"])
            .env("TOLLBAR_MEASURES", "1")
            .status();
        assert!(done.expect("the program runs").success());
        return;
    }
    let server = Server::start();
    // The first ones pay what a process needs once.
    let (policy, options) = ("100/min burst 100", Options::new(2));
    let first = nodes(Client::<&Node>::LIMITS_MOST - LIMITS, policy, &options);
    let unused: Vec<Node>;
    let mut client = client(&server.unix(), &first);
    driven(&mut client, || until("all circuits close", || first.iter().all(is_closed)));
    let before = resident();
    unused = (0..LIMITS).map(|n| node(&format!("unused{n}"), policy, &options)).collect();
    unused.iter().for_each(|node| client.add(node).expect("room"));
    driven(&mut client, || until("all circuits close", || unused.iter().all(is_closed)));
    let each = (resident() - before) as f64 / LIMITS as f64;
    println!("an unused limit: {each:.1} KiB");
    assert!(each <= 64.0, "{each}");
}

/// A client has at most 128 limits, each once. A call has room for all of them.
#[test]
fn as_many_as_there_may_be() {
    let server = Server::start();
    let named = |n| node(&format!("{n:064}"), "5/min", &Options::new(1));
    let nodes: Vec<Node> = (0..129).map(named).collect();
    let (some, last) = nodes.split_at(128);
    let mut client = client(&server.unix(), some);
    assert_eq!(client.add(&last[0]), Err(NodeError::TooMany));
    driven(&mut client, || until("all circuits close", || some.iter().all(is_closed)));
    let url = Url::parse("unix:/nonexistent/redis.sock").expect("a URL");
    let one = Client::new(&url).and_then(|client| client.with(&nodes[0])).expect("a client");
    assert_eq!(one.with(&nodes[0]).err(), Some(NodeError::TooMany));
}

/// A limit that leaves tells the store what it owes, and stops no other. Another client may ask for
/// it at once, and the first one may have it again.
#[test]
fn a_limit_leaves_and_comes_back() {
    let server = Server::start();
    // So that each of them owes the store something.
    let options = Options { overdraft: 4, ..Options::new(2) };
    let nodes = nodes(40, "100/hour burst 100", &options);
    let mut client = client(&server.unix(), &nodes);
    driven(&mut client, || until("all circuits close", || nodes.iter().all(is_closed)));
    for (n, node) in nodes.iter().enumerate() {
        assert!(node.check(format!("first{n}").as_bytes(), 1).is_allowed());
    }
    // Calls with questions of several limits are under way.
    client.tick();
    let (gone, stays) = nodes.split_at(20);
    for (n, node) in gone.iter().enumerate() {
        assert_eq!(client.remove(node, 10_000), Some(true));
        assert_eq!((client.remove(node, 10_000), node.stats().owed), (None, 0));
        let kept = format!("tollbar:{{limit{n}}}:k:first{n}");
        assert_eq!(server.command(&["EXISTS", &kept]).int(), 1);
    }
    driven(&mut client, || {
        for (n, node) in stays.iter().enumerate() {
            let key = format!("then{n}");
            until("it admits", || node.wait(key.as_bytes(), 50, 1_000_000_000).is_allowed());
            until("it owes nothing", || node.stats().owed == 0);
        }
    });
    assert!(gone.iter().all(|node| !client.is_leader(node.name())));
    let mut other = self::client(&server.unix(), gone);
    driven(&mut other, || {
        for (n, node) in gone.iter().enumerate() {
            let key = format!("then{n}");
            until("it admits", || node.wait(key.as_bytes(), 50, 1_000_000_000).is_allowed());
        }
    });
    assert!(other.close(10_000));
    gone.iter().for_each(|node| client.add(node).expect("a free place"));
    driven(&mut client, || {
        for (n, node) in nodes.iter().enumerate() {
            let key = format!("again{n}");
            until("it admits", || node.wait(key.as_bytes(), 50, 1_000_000_000).is_allowed());
        }
    });
    assert!(client.close(10_000));
}

/// A client that ends leaves the circuit closed, so that nobody falls back before another one has
/// taken over. A busy machine may open it; one of ten tries must not.
#[test]
fn an_end_opens_no_circuit() {
    let server = Server::start();
    let options = Options { overdraft: 0, ..Options::new(1) };
    let undisturbed = (0..10).any(|turn| {
        let node = node(&format!("ends{turn}"), "1000/hour burst 1000", &options);
        let nodes = std::slice::from_ref(&node);
        let (mut first, mut second) =
            (client(&server.unix(), nodes), client(&server.unix(), nodes));
        driven(&mut first, || until("it closes", || is_closed(&node)));
        let before = node.stats().opened;
        assert!(first.close(10_000));
        let stays = is_closed(&node);
        let passes = driven(&mut second, || node.wait(b"idle", 1, 30_000_000_000).is_allowed());
        stays && passes && node.stats().opened == before
    });
    assert!(undisturbed);
}

/// A reply to a limit that has left goes to no limit that has come in its place.
#[test]
fn a_late_reply_is_for_nobody() {
    let server = Server::start();
    let exact = Options { overdraft: 0, ..Options::new(1) };
    let large = nodes(2, "100000/hour burst 100000", &exact);
    let small = node("small", "20/hour burst 20", &exact);
    let mut client = client(&server.unix(), &large);
    driven(&mut client, || until("all circuits close", || large.iter().all(is_closed)));
    server.pause();
    let send = |client: &mut Client<&Node>| {
        for _ in 0..3 {
            client.tick();
        }
    };
    assert!(!large[0].check(b"k", 1000).is_allowed());
    send(&mut client);
    assert!(client.remove(&large[0], 0).is_some());
    client.add(&small).expect("its place");
    assert!(!small.check(b"k", 1).is_allowed());
    send(&mut client);
    server.resume();
    let admitted = driven(&mut client, || {
        until("it admits", || small.check(b"k", 1).is_allowed());
        let since = Instant::now();
        let ask = |_: &()| since.elapsed() < Duration::from_millis(500);
        let more = core::iter::repeat(())
            .take_while(ask)
            .filter(|()| small.wait(b"k", 1, 100_000_000).is_allowed());
        1 + more.count()
    });
    println!("admitted {admitted} of 20");
    assert!((15..=20).contains(&admitted), "{admitted}");
}

/// A store that is mute while all calls are of a limit that has left is noticed, and the others'
/// circuits open.
#[test]
fn a_mute_store_and_a_limit_that_left() {
    let server = Server::start();
    let exact = Options { overdraft: 0, ..Options::new(1) };
    let nodes = nodes(2, "100000/hour burst 100000", &exact);
    let mut client = client(&server.unix(), &nodes);
    driven(&mut client, || until("all circuits close", || nodes.iter().all(is_closed)));
    server.pause();
    for key in 0..400_u32 {
        let _ = nodes[0].check(&key.to_le_bytes(), 1);
        client.tick();
    }
    assert!(client.remove(&nodes[0], 0).is_some());
    driven(&mut client, || {
        let _ = nodes[1].check(b"quiet", 1);
        until("it opens", || nodes[1].circuit(nodes[1].now()) == Circuit::Open);
        server.resume();
        until("it closes", || is_closed(&nodes[1]));
    });
}

/// A limit leaves a store that does not answer within the time that it is given.
#[test]
fn a_limit_leaves_a_silent_store() {
    let mut server = Server::start();
    let nodes = nodes(3, "100/hour burst 100", &Options { overdraft: 4, ..Options::new(2) });
    let mut client = client(&server.unix(), &nodes);
    driven(&mut client, || until("all circuits close", || nodes.iter().all(is_closed)));
    server.kill();
    assert!(nodes[1].check(b"k", 1).is_allowed());
    let since = Instant::now();
    assert_eq!(client.report(&nodes[1], 100), Some(false));
    assert_eq!(client.remove(&nodes[1], 100), Some(false));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert_eq!(client.remove(&nodes[0], 0), Some(true));
    assert!(client.close(0));
}

/// Each limit's keys are its own, and a limit of which everybody asks leaves the others' first
/// questions their place.
#[test]
fn a_busy_limit_starves_no_other() {
    let server = Server::start();
    let options = Options { overdraft: 0, ..Options::new(2) };
    let nodes = nodes(20, "1000/s burst 10000", &options);
    let mut client = client(&server.unix(), &nodes);
    let (busy, others) = nodes.split_first().expect("nodes");
    driven(&mut client, || {
        until("all circuits close", || nodes.iter().all(is_closed));
        let stop = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut key = 0_u64;
                while stop.load(Ordering::Relaxed) == 0 {
                    for _ in 0..500 {
                        key += 1;
                        let _ = busy.check(&key.to_le_bytes(), 1);
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let _stop = Stop(&stop);
            until("the busy limit has asked", || busy.stats().asked > 1000);
            let since = Instant::now();
            for node in others {
                until("it is admitted", || node.wait(b"first", 1, 1_000_000_000).is_allowed());
            }
            println!("first answers of 19 limits beside a busy one: {:?}", since.elapsed());
        })
    });
}

/// A limit whose keys the store's ACL refuses stops no other, and the error names it.
#[test]
fn a_refused_limit_stops_no_other() {
    let server = Server::start();
    let user = ["ACL", "SETUSER", "some", "on", ">word", "+@all"];
    let keys = ["~tollbar:{limit0}:*", "~tollbar:{limit2}:*"];
    server.command(&[&user[..], &keys[..]].concat());
    let nodes = nodes(3, "1000/s burst 100", &Options { overdraft: 0, ..Options::new(2) });
    let mut client = client(&format!("{}?user=some&password=word", server.unix()), &nodes);
    driven(&mut client, || {
        until("two circuits close", || is_closed(&nodes[0]) && is_closed(&nodes[2]));
        for key in 0..50_u64 {
            for n in [0, 2] {
                let admits = || nodes[n].wait(&key.to_le_bytes(), 1, 1_000_000_000).is_allowed();
                until("the other limits admit", admits);
            }
            let _ = nodes[1].check(&key.to_le_bytes(), 1);
        }
        assert!(!is_closed(&nodes[1]));
    });
    assert_eq!(client.fault(), Some(Fault::Refused));
    let text = client.trouble().to_string();
    for part in ["limit limit1: ", "(EVALSHA", "NOPERM"] {
        assert!(text.contains(part), "{text}");
    }
    let of = |n: usize| client.trouble_with(&nodes[n]).to_string();
    assert!(of(1).contains("(EVALSHA") && !of(1).contains("limit1"), "{}", of(1));
    assert_eq!((of(0), of(2)), (String::new(), String::new()));
    // The limit comes back by itself, and then its questions go with the others'.
    server.command(&["ACL", "SETUSER", "some", "~tollbar:{limit1}:*"]);
    driven(&mut client, || until("it closes", || is_closed(&nodes[1])));
    assert_eq!((client.fault(), client.trouble().as_str()), (None, ""));
}

/// A user who may not write: the script says which key of which limit.
#[test]
fn a_refused_write_names_its_key() {
    let server = Server::start();
    let user = ["ACL", "SETUSER", "some", "on", ">word", "+@all", "-set", "~*"];
    server.command(&user);
    let nodes = nodes(2, "1000/s burst 100", &Options::new(2));
    let mut client = client(&format!("{}?user=some&password=word", server.unix()), &nodes);
    driven(&mut client, || std::thread::sleep(Duration::from_millis(300)));
    let text = client.trouble().to_string();
    assert!(text.starts_with("limit limit0: ") && text.contains("(EVALSHA"), "{text}");
    assert!(client.fault() == Some(Fault::Refused) && !is_closed(&nodes[1]), "{text}");
    assert!(!client.close(0) || nodes.iter().all(|node| node.stats().owed == 0));
}

/// Keys of another type and a record that is no record stop nobody.
#[test]
fn values_of_other_types() {
    let server = Server::start();
    for key in ["record", "k:a"] {
        server.command(&["RPUSH", &format!("tollbar:{{limit0}}:{key}"), "x"]);
    }
    server.command(&["SET", "tollbar:{limit1}:record", "of another edition"]);
    let nodes = nodes(3, "1000/s burst 100", &Options { overdraft: 0, ..Options::new(2) });
    driven(&mut client(&server.unix(), &nodes), || {
        for node in &nodes {
            until("its circuit closes", || is_closed(node));
            until("it admits", || node.wait(b"b", 1, 1_000_000_000).is_allowed());
        }
        until("the key's bucket refills", || nodes[0].wait(b"a", 1, 1_000_000_000).is_allowed());
    });
}

/// Decisions about many keys need few calls, and a packed question costs the server a fraction of
/// one that goes alone.
#[test]
fn questions_go_together() {
    let server = Server::start();
    let keys = 10_000_u64;
    let nodes = nodes(2, "100/min burst 100", &Options::new(2));
    let asked = || nodes.iter().map(|node| node.stats().asked).sum::<u64>();
    let mut client = client(&server.unix(), &nodes);
    driven(&mut client, || {
        until("all circuits close", || nodes.iter().all(is_closed));
        let before = (calls(&server), worked(&server), asked());
        let since = Instant::now();
        let mut decisions = 0_u64;
        // 10,000 decisions a second.
        while since.elapsed() < Duration::from_secs(2) {
            while decisions < since.elapsed().as_micros() as u64 / 100 {
                decisions += 1;
                let key = decisions.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                let node = &nodes[decisions as usize % nodes.len()];
                let _ = node.check(&(key % keys).to_le_bytes(), 1);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        let (calls, questions) = (calls(&server) - before.0, asked() - before.2);
        let packed = (worked(&server) - before.1) / questions as f64;
        println!("{calls} calls for {questions} questions of {decisions} decisions");
        assert!(questions > decisions / 2, "{questions}");
        assert!(calls * 10 <= decisions, "{calls} calls for {decisions} decisions");
        assert!(calls * 8 <= questions, "{calls} calls for {questions} questions");

        let before = (worked(&server), asked());
        for key in keys..keys + 500 {
            // More than the key's right, so it waits for an answer.
            until("it admits", || {
                nodes[0].wait(&key.to_le_bytes(), 20, 1_000_000_000).is_allowed()
            });
        }
        let alone = (worked(&server) - before.0) / (asked() - before.1) as f64;
        println!(
            "of the server: {packed:.1} us a packed question, {alone:.1} us one that is alone"
        );
        assert!(packed * 2.0 <= alone, "{packed} us, alone {alone} us");
    });
}
