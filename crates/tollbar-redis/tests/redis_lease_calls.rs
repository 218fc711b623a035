//! Leases whose calls a client of the program's own carries to a real Redis.

#[path = "common/redis.rs"]
mod redis;

use redis::{Raw, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tollbar_redis::lease::{Calls, Circuit, Node, Options, Turn, CALL_SCRIPT};

const SOON: u64 = 10_000_000_000;

fn node(name: &str, policy: &str) -> Node {
    Node::private(name, &policy.parse().expect("a policy"), &Options::new(1)).expect("a node")
}

/// Makes the call that is due, by a client that connects anew for each. `send` says what becomes of
/// it. Returns the call's keys; `None` if the store knows everything.
fn turn(
    calls: &mut Calls<&Node>,
    mut send: impl FnMut(&[&[u8]]) -> std::io::Result<Raw>,
) -> Option<Vec<String>> {
    let (reply, keys) = match calls.turn() {
        Turn::Pause(0) => return None,
        Turn::Pause(millis) => {
            calls.wait(millis.min(5));
            return Some(Vec::new());
        }
        Turn::Call(call) => {
            let count = call.keys().to_string();
            let mut command = vec![&b"EVAL"[..], CALL_SCRIPT.as_bytes(), count.as_bytes()];
            command.extend(call.parts());
            let keys = call.parts().take(call.keys());
            let keys = keys.map(|key| String::from_utf8_lossy(key).into_owned()).collect();
            (send(&command), keys)
        }
    };
    match reply {
        Ok(Raw::Error(text)) => calls.refused(text.as_bytes()),
        Ok(Raw::Array(items)) => match &items[..] {
            [Raw::Bulk(item)] => calls.answered(item),
            _ => panic!("{items:?}"),
        },
        Ok(other) => panic!("{other:?}"),
        Err(error) => calls.lost(error.to_string().as_bytes()),
    }
    Some(keys)
}

/// Runs `f` while a thread makes the calls.
fn carried<T>(calls: &mut Calls<&Node>, server: &Server, f: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Acquire) {
                turn(calls, |command| server.try_bytes(command));
            }
        });
        let found = f();
        ends.store(true, Ordering::Release);
        found
    })
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(30), "{what} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Exactness keeps back eight permits. A thread that gets no processor for the patience loses what
/// the store has served it. The restarted store hears from the node what ann has had.
#[test]
fn it_admits_what_the_store_has_also_after_a_loss() {
    let mut server = Server::start();
    let node = node("day", "1000/day burst 400");
    let mut calls = Calls::new().expect("calls");
    calls.add(&node).expect("a limit");
    let mut admitted = [0, 0];
    let spend = |key: &[u8]| (0..450).filter(|_| node.wait(key, 1, SOON).is_allowed()).count();
    for (round, count) in admitted.iter_mut().enumerate() {
        *count = carried(&mut calls, &server, || {
            until("the store", || node.circuit(node.now()) == Circuit::Closed);
            if round == 1 {
                assert!(spend(b"ann") <= 9);
            }
            spend([&b"ann"[..], b"bob"][round])
        });
        if round == 0 {
            assert_eq!(calls.trouble().as_str(), "");
            server.kill();
            let since = Instant::now();
            while calls.circuit() != Circuit::Open {
                assert!(since.elapsed() < Duration::from_secs(30));
                turn(&mut calls, |command| server.try_bytes(command));
            }
            let trouble = calls.trouble();
            assert!(
                trouble.as_str().starts_with("the program's Redis client failed: "),
                "{trouble}"
            );
            server.restart();
        }
    }
    println!("admitted to ann and bob: {admitted:?} of 400");
    assert!(admitted.iter().all(|count| (300..=401).contains(count)), "{admitted:?}");
}

/// The script runs and its reply gets lost: the permits are charged and nobody has them.
#[test]
fn a_lost_reply_admits_nothing_twice() {
    let server = Server::start();
    let node = node("lost", "100/day burst 50");
    let mut calls = Calls::new().expect("calls");
    calls.add(&node).expect("a limit");
    let (mut admitted, mut made) = (0, 0);
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(2) {
        admitted += u64::from(node.check(b"ann", 1).is_allowed());
        turn(&mut calls, |command| {
            made += 1;
            let reply = server.try_bytes(command);
            if made % 3 == 0 {
                Err(std::io::ErrorKind::TimedOut.into())
            } else {
                reply
            }
        });
    }
    println!("admitted {admitted} of 50, with {made} calls");
    assert!(made > 6 && (5..=51).contains(&admitted), "{admitted} with {made} calls");
}

/// While a call takes longer than the patience, the machine admits its share. A user of a third of
/// the rate passes. A machine that is busy with other things is slower yet, so one attempt of five
/// has to do.
#[test]
fn a_slow_call_starves_nobody() {
    let server = Server::start();
    let attempt = |number: u32| {
        let node = node(&format!("slow{number}"), "100/s burst 50");
        let mut calls = Calls::new().expect("calls");
        calls.add(&node).expect("a limit");
        let ends = AtomicBool::new(false);
        let passed = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Acquire) {
                    turn(&mut calls, |command| {
                        std::thread::sleep(Duration::from_millis(60));
                        server.try_bytes(command)
                    });
                }
            });
            until("the store", || node.circuit(node.now()) == Circuit::Closed);
            let ask = |_: &i32| {
                std::thread::sleep(Duration::from_millis(30));
                node.wait(b"ann", 1, SOON).is_allowed()
            };
            let passed = (0..60).filter(ask).count();
            ends.store(true, Ordering::Release);
            passed
        });
        println!("{passed} of 60 passed");
        passed >= 58
    };
    assert!((0..5).any(attempt));
}

#[test]
fn each_call_has_the_keys_of_one_limit() {
    let server = Server::start();
    let nodes = ["one", "two", "three"].map(|name| node(name, "100/s burst 50"));
    let mut calls = Calls::new().expect("calls");
    nodes.iter().for_each(|node| calls.add(node).expect("a limit"));
    let mut seen = [0; 3];
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) || seen.contains(&0) {
        assert!(since.elapsed() < Duration::from_secs(30), "{seen:?}");
        nodes.iter().for_each(|node| _ = node.check(b"ann", 1));
        let keys = turn(&mut calls, |command| server.try_bytes(command)).unwrap_or_default();
        for (number, node) in nodes.iter().enumerate() {
            let tag = format!("tollbar:{{{}}}", String::from_utf8_lossy(node.name()));
            let mine = keys.iter().filter(|key| key.starts_with(&tag)).count();
            assert!(mine == 0 || mine == keys.len(), "{keys:?}");
            seen[number] += usize::from(mine > 1);
        }
    }
}

#[test]
fn a_stores_error_is_in_its_words() {
    let server = Server::start();
    let node = node("full", "100/s burst 50");
    let mut calls = Calls::new().expect("calls");
    calls.add(&node).expect("a limit");
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let since = Instant::now();
    while calls.trouble().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(30));
        turn(&mut calls, |command| server.try_bytes(command));
    }
    let trouble = calls.trouble();
    assert!(trouble.as_str().starts_with("the server is out of memory (EVALSHA"), "{trouble}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    while calls.circuit() != Circuit::Closed {
        assert!(since.elapsed() < Duration::from_secs(30));
        turn(&mut calls, |command| server.try_bytes(command));
    }
    assert_eq!(calls.trouble().as_str(), "");
}

/// What the node has admitted without a lease is said before the end.
#[test]
fn the_last_calls_say_what_the_store_does_not_know() {
    let server = Server::start();
    let node = node("end", "100/day burst 50");
    let mut calls = Calls::new().expect("calls");
    calls.add(&node).expect("a limit");
    while node.circuit(node.now()) != Circuit::Closed {
        turn(&mut calls, |command| server.try_bytes(command));
    }
    assert!(node.check(b"ann", 1).is_allowed());
    calls.hurry(true);
    let since = Instant::now();
    while turn(&mut calls, |command| server.try_bytes(command)).is_some() {
        assert!(since.elapsed() < Duration::from_secs(30));
    }
    assert!(calls.close());
    assert_eq!(server.command(&["EXISTS", "tollbar:{end}:k:ann"]).int(), 1);
}
