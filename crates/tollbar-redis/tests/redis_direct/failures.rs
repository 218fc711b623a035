//! Servers that forget, refuse, hang and die.

use crate::server::{Raw, Server};
use crate::{impatient, limit, store, SLOW};
use std::time::{Duration, Instant};
use tollbar::Verdict;
use tollbar_redis::redis::{LinkError, Operation, Why};
use tollbar_redis::store::{RedisStore, Store, StoreError};

/// Requests one permit of a key.
fn ask(store: &mut RedisStore, key: &str) -> Result<Verdict, StoreError> {
    let limit = limit(store, "5/day");
    store.check(&limit, key.as_bytes(), 1).map(|decision| decision.verdict)
}

#[test]
fn a_flush_of_scripts_in_between_is_not_noticed() {
    let server = Server::start();
    let mut store = store(&server.tcp());
    for text in SLOW {
        let limit = limit(&store, text);
        for left in (0..5).rev() {
            server.command(&["SCRIPT", "FLUSH"]);
            assert_eq!(store.check(&limit, text.as_bytes(), 1).unwrap().remaining, left, "{text}");
        }
        server.command(&["SCRIPT", "FLUSH"]);
        assert!(!store.check(&limit, text.as_bytes(), 1).unwrap().is_allowed());
    }
}

#[test]
fn a_flush_of_keys_makes_them_new() {
    let server = Server::start();
    let mut store = store(&server.tcp());
    for text in SLOW {
        let limit = limit(&store, text);
        assert!(store.check(&limit, b"key", 5).unwrap().is_allowed());
        server.command(&["FLUSHALL"]);
        assert!(store.check(&limit, b"key", 5).unwrap().is_allowed(), "{text}");
        server.command(&["FLUSHALL"]);
    }
}

#[test]
fn what_others_put_at_a_key_admits_nothing_and_stays() {
    let server = Server::start();
    let mut store = store(&server.tcp());
    let key = "tollbar:{test}:key";
    let foreign: [&[&str]; 9] = [
        &["LPUSH", key, "x"],
        &["HSET", key, "a", "b"],
        &["SADD", key, "x"],
        &["SET", key, ""],
        &["SET", key, "hello"],
        &["SET", key, "1"],
        &["SET", key, "-1 -1"],
        &["SET", key, "99999999999999999999999999999999999999999999999999 0"],
        &["SET", key, "1 2 3 4"],
    ];
    for text in SLOW {
        let limit = limit(&store, text);
        for plant in foreign {
            server.command(&["DEL", key]);
            server.command(plant);
            let before = server.command(&["DUMP", key]);
            for decision in [
                store.check(&limit, b"key", 1),
                store.peek(&limit, b"key", 1),
                store.check(&limit, b"key", 0),
            ] {
                let Err(StoreError::Foreign(name)) = decision else {
                    panic!("{text}: {plant:?}: {decision:?}")
                };
                assert_eq!(name.as_str(), key);
            }
            assert!(matches!(store.take_up_to(&limit, b"key", 1), Err(StoreError::Foreign(_))));
            assert_eq!(server.command(&["DUMP", key]), before, "{text}: {plant:?}");
            // `reset` removes the foreign value.
            store.reset(&limit, b"key").unwrap();
            assert!(store.check(&limit, b"key", 5).unwrap().is_allowed(), "{text}");
        }
    }
    // A sorted set that the store did not write.
    let limit = limit(&store, "5/day algo sliding-log");
    for (score, member) in
        [("1", "x"), ("+inf", "0000000000000001 1"), ("99999999999999999", "0000000000000001 1")]
    {
        server.command(&["DEL", key]);
        server.command(&["ZADD", key, score, member]);
        assert!(
            matches!(store.check(&limit, b"key", 1), Err(StoreError::Foreign(_))),
            "{score} {member}"
        );
    }
}

/// Values of the right form with any numbers: a key never has more than a new key, and the script
/// never fails.
#[test]
fn planted_numbers_never_admit_more() {
    let server = Server::start();
    let mut store = store(&server.tcp());
    let key = "tollbar:{test}:key";
    let numbers = ["0", "1", "1000000", "1700000000000000", "9007199254740992", "9999999999999999"];
    for text in &SLOW[..6] {
        let limit = limit(&store, text);
        for first in numbers {
            for second in numbers {
                let value = if text.contains("weighted") {
                    format!("{first} {second} {second}")
                } else if *text == "5/day" {
                    format!("b{first} {second} 1 17280000000")
                } else if *text == "5/day algo interval" {
                    format!("b{first} {second} 86400000000 1")
                } else if text.contains("segments") {
                    format!("s3600000000 {first} {second} {second}")
                } else {
                    format!("{first} {second}")
                };
                server.command(&["SET", key, &value]);
                let taken: u64 = (0..8).map(|_| store.take_up_to(&limit, b"key", 3).unwrap()).sum();
                assert!(taken <= 5, "{text}: {value}: {taken}");
                for cost in [1, 5] {
                    let decision = store.check(&limit, b"key", cost).unwrap();
                    assert_eq!(decision.verdict, Verdict::Denied, "{text}: {value}");
                    assert!(
                        decision.retry_after <= 2 * crate::common::DAY,
                        "{text}: {value}: {decision:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_clock_set_back_waits_no_longer_than_what_is_used() {
    let server = Server::start();
    let mut store = store(&server.tcp());
    let key = "tollbar:{test}:key";
    let Raw::Array(time) = server.command(&["TIME"]) else { panic!() };
    // Values as a server would have written them whose clock was a year ahead.
    let ahead = (time[0].text().parse::<u64>().unwrap() + 365 * 86_400) * 1_000_000;
    let day = ahead - ahead % 86_400_000_000;
    for (text, value) in [
        ("5/day", format!("b{ahead} 86400000000 1 17280000000")),
        ("5/day algo interval", format!("b{} 2 86400000000 1", day / 86_400_000_000)),
        ("5/day algo fixed-window", format!("{day} 3")),
        ("5/day algo fixed-window anchor first", format!("{ahead} 3")),
        ("5/day algo weighted-window", format!("{day} 2 3")),
        (
            "5/day algo sliding-window segments 24",
            format!("s3600000000 {} 1 0 2", day / 3_600_000_000),
        ),
        ("5/day algo sliding-log", String::new()),
    ] {
        let limit = limit(&store, text);
        server.command(&["DEL", key]);
        if value.is_empty() {
            server.command(&["ZADD", key, &ahead.to_string(), "0000000000000003 3"]);
        } else {
            server.command(&["SET", key, &value]);
        }
        for _ in 0..2 {
            let decision = store.check(&limit, b"key", 4).unwrap();
            assert_eq!(decision.verdict, Verdict::Denied, "{text}");
            // The current window's count weighs on the next window, too, depending on the time of
            // day.
            let most =
                if text.contains("weighted") { 2 * crate::common::DAY } else { crate::common::DAY };
            assert!(
                decision.retry_after <= most && decision.remaining <= 2,
                "{text}: {decision:?}"
            );
        }
    }
}

/// After a clock was set back, a wait that an answer has ends, also for a key that asks on and on.
#[test]
fn a_clock_set_back_lets_a_key_wait_once() {
    let server = Server::start();
    let mut store = store(&server.unix());
    let key = "tollbar:{test}:key";
    let Raw::Array(time) = server.command(&["TIME"]) else { panic!() };
    let ahead = (time[0].text().parse::<u64>().unwrap() + 3600) * 1_000_000;
    for (text, value) in [
        ("5/200ms", format!("b{ahead} 200000 1 40000")),
        ("5/200ms algo interval", format!("b{} 5 200000 1", ahead / 200_000)),
        ("5/200ms algo fixed-window", format!("{} 5", ahead - ahead % 200_000)),
        ("5/200ms algo weighted-window", format!("{} 0 5", ahead - ahead % 200_000)),
        ("5/200ms algo sliding-window segments 4", format!("s50000 {} 5 0 0 0", ahead / 50_000)),
        (
            "5/200ms algo sliding-window segments 4 mode interpolated",
            format!("s50000 {} 5 0 0 0 0", ahead / 50_000),
        ),
    ] {
        let limit = limit(&store, text);
        server.command(&["SET", key, &value]);
        let first = store.check(&limit, b"key", 1).unwrap();
        assert!(first.retry_after <= 400_000_000, "{text}: {first:?}");
        let begin = std::time::Instant::now();
        while !store.check(&limit, b"key", 1).unwrap().is_allowed() {
            assert!(begin.elapsed().as_secs() < 30, "{text}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_killed_server_is_an_error_at_once_and_back_when_it_is() {
    let mut server = Server::start();
    for url in [server.tcp(), server.unix()] {
        let mut store = store(&url);
        assert_eq!(ask(&mut store, &url), Ok(Verdict::Allowed));
        server.kill();
        let start = Instant::now();
        for _ in 0..3 {
            let why = ask(&mut store, &url).unwrap_err();
            assert!(
                matches!(why, StoreError::Unreachable(LinkError::System(Operation::Connect, _))),
                "{why:?}"
            );
        }
        // Three refused connections. Waiting for answers would have taken 90 seconds.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        server.restart();
        assert_eq!(ask(&mut store, &url), Ok(Verdict::Allowed));
    }
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_made_again() {
    let server = Server::start();
    let mut store = store(&server.tcp());
    for _ in 0..3 {
        assert_eq!(ask(&mut store, "key"), Ok(Verdict::Allowed));
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    store.close();
    assert_eq!(ask(&mut store, "key"), Ok(Verdict::Allowed));
}

#[test]
fn a_server_that_hangs_is_waited_for_until_the_deadline() {
    let server = Server::start();
    let mut ready = store(&server.tcp());
    assert_eq!(ask(&mut ready, "key"), Ok(Verdict::Allowed));
    let mut ready = ready.with_timeout(100_000_000);
    server.pause();
    // The first store has a connection. For the others the kernel accepts one while the server is
    // stopped.
    for store in [&mut ready, &mut store(&server.tcp()).with_timeout(100_000_000)] {
        for _ in 0..2 {
            let start = Instant::now();
            let why = ask(store, "key").unwrap_err();
            assert!(why == StoreError::TimedOut && why.may_have_charged());
            let took = start.elapsed();
            // A busy machine wakes the thread late. Without a deadline the call would never return.
            assert!(
                took >= Duration::from_millis(100) && took < Duration::from_secs(30),
                "{took:?}"
            );
        }
    }
    server.resume();
    let mut ready = ready.with_timeout(10_000_000_000);
    // The late answer to the last call is not taken for this call's.
    let limit = limit(&ready, "5/day");
    let decision = ready.check(&limit, b"another", 5).unwrap();
    assert_eq!((decision.verdict, decision.remaining), (Verdict::Allowed, 0));
}

#[test]
fn a_default_deadline_is_a_second() {
    assert_eq!(RedisStore::TIMEOUT, 1_000_000_000);
    let server = Server::start();
    let mut store = impatient(&server.unix());
    // The first answer may be late on a busy machine.
    assert!((0..30).any(|n| ask(&mut store, &n.to_string()) == Ok(Verdict::Allowed)));
    server.pause();
    let start = Instant::now();
    assert_eq!(ask(&mut store, "key"), Err(StoreError::TimedOut));
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn users_and_what_they_may_do() {
    let server = Server::start();
    // The rights that src/store/redis.rs documents, and no others.
    let allowed = "-@all +auth +evalsha +script|load +time +get +set +zrange +zrangebyscore +zadd +zremrangebyscore +zremrangebyrank \
                   +zcard +pexpireat +del +unlink";
    let mut acl = vec!["ACL", "SETUSER", "limiter", "on", ">p@ss", "~tollbar:*"];
    acl.extend(allowed.split_whitespace());
    server.command(&acl);
    let port = server.port();
    let mut permitted = store(&format!("redis://limiter:p%40ss@127.0.0.1:{port}"));
    for text in SLOW {
        let limit = limit(
            &permitted,
            &format!("{text}{}", if text.ends_with("log") { " count rejected" } else { "" }),
        );
        for _ in 0..3 {
            let _ = permitted
                .check(&limit, text.as_bytes(), 3)
                .unwrap_or_else(|why| panic!("{text}: {why}"));
        }
        permitted.reset(&limit, text.as_bytes()).unwrap();
    }
    for wrong in ["limiter:wrong", "nobody:p%40ss"] {
        let why = ask(&mut store(&format!("redis://{wrong}@127.0.0.1:{port}")), "key").unwrap_err();
        assert!(
            matches!(why, StoreError::Refused(_)) && why.to_string().contains("WRONGPASS"),
            "{why}"
        );
    }
    // A user who may not write.
    server.command(&[
        "ACL",
        "SETUSER",
        "reader",
        "on",
        ">pw",
        "~*",
        "-@all",
        "+@read",
        "+evalsha",
        "+script|load",
        "+time",
    ]);
    let why = ask(&mut store(&format!("redis://reader:pw@127.0.0.1:{port}")), "key").unwrap_err();
    assert!(matches!(why, StoreError::Refused(_)), "{why}");
    let mut acl = vec![
        "ACL",
        "SETUSER",
        "blind",
        "on",
        ">pw",
        "~tollbar:*",
        "-@all",
        "+evalsha",
        "+script|load",
        "+time",
    ];
    acl.push("+set");
    server.command(&acl);
    let why = ask(&mut store(&format!("redis://blind:pw@127.0.0.1:{port}")), "key").unwrap_err();
    assert!(matches!(why, StoreError::Refused(_)), "not to be taken for a wrong value: {why}");
}

#[test]
fn databases_are_separate() {
    let server = Server::start();
    let (mut first, mut third) = (store(&server.tcp()), store(&format!("{}?db=3", server.unix())));
    for store in [&mut first, &mut third] {
        let limit = limit(store, "5/day");
        assert!(store.check(&limit, b"key", 5).unwrap().is_allowed());
        assert!(!store.check(&limit, b"key", 1).unwrap().is_allowed());
    }
    let why = ask(&mut store(&format!("{}/99", server.tcp())), "key").unwrap_err();
    assert!(why.to_string().contains("out of range"), "{why}");
}

#[test]
fn a_server_that_cannot_serve_says_why() {
    let server = Server::with(&["--busy-reply-threshold", "20"]);
    let mut store = store(&server.tcp());
    assert_eq!(ask(&mut store, "key"), Ok(Verdict::Allowed));

    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(ask(&mut store, "key"), Err(StoreError::Unavailable(Why::OutOfMemory)));
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(ask(&mut store, "key"), Ok(Verdict::Allowed));

    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert_eq!(ask(&mut store, "key"), Err(StoreError::Unavailable(Why::NoReplicas)));
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);

    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(ask(&mut store, "key"), Err(StoreError::Unavailable(Why::ReadOnly)));
    server.command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    assert_eq!(ask(&mut store, "key"), Err(StoreError::Unavailable(Why::MasterDown)));
    server.command(&["REPLICAOF", "NO", "ONE"]);
    assert_eq!(ask(&mut store, "key"), Ok(Verdict::Allowed));

    std::thread::scope(|scope| {
        scope.spawn(|| server.try_command(&["EVAL", "while true do end", "0"]));
        let start = Instant::now();
        while !matches!(server.try_command(&["PING"]), Ok(Raw::Error(why)) if why.starts_with("BUSY"))
        {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
        assert_eq!(ask(&mut store, "key"), Err(StoreError::Unavailable(Why::Busy)));
        // The same for a store that connects only now.
        let fresh = ask(&mut crate::store(&server.tcp()), "key");
        assert_eq!(fresh, Err(StoreError::Unavailable(Why::Busy)));
        server.command(&["SCRIPT", "KILL"]);
    });
    assert_eq!(ask(&mut store, "key"), Ok(Verdict::Allowed));
}

#[test]
fn a_cluster_is_refused_by_name() {
    let nodes =
        [Server::with(&["--cluster-enabled", "yes"]), Server::with(&["--cluster-enabled", "yes"])];
    let mut store = store(&nodes[0].tcp());
    assert_eq!(ask(&mut store, "key"), Err(StoreError::Unavailable(Why::ClusterDown)));
    nodes[0].command(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
    nodes[1].command(&["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]);
    nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &nodes[1].port().to_string()]);
    let start = Instant::now();
    let ready =
        |node: &Server| node.command(&["CLUSTER", "INFO"]).text().contains("cluster_state:ok");
    while !nodes.iter().all(ready) {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    // All keys of a limit are in one slot.
    let slot = nodes[0].command(&["CLUSTER", "KEYSLOT", "tollbar:{test}:key"]).int();
    let (here, there) = if slot < 8192 { (0, 1) } else { (1, 0) };
    let mut right = crate::store(&nodes[here].tcp());
    assert_eq!(ask(&mut right, "key"), Ok(Verdict::Allowed));
    let mut wrong = crate::store(&nodes[there].tcp());
    let why = ask(&mut wrong, "key").unwrap_err();
    assert!(matches!(why, StoreError::Moved(_)), "{why}");
    assert!(why.to_string().contains(&format!(":{}", nodes[here].port())), "{why}");
}

#[test]
fn what_is_no_server_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    assert_eq!(
        ask(&mut store(&format!("redis://127.0.0.1:{port}")), "key"),
        Err(StoreError::Protocol)
    );
    answers.join().unwrap();
}

#[test]
fn a_forked_process_makes_its_own_connection() {
    let server = Server::start();
    assert!(parent_and_child_are_answered(&mut store(&server.tcp())));
}

/// E2: the child has its parent's process number, each in a PID namespace of its own.
#[test]
fn a_child_with_its_parents_number_makes_its_own_connection() {
    const NO_NAMESPACE: i32 = 77;
    let server = Server::start();
    let url = server.tcp();
    // SAFETY: it changes where the next child of this process runs, and nothing else.
    let unshare = || unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 };
    // The first process of a namespace has the number 1.
    let parent = || {
        let answered =
            std::process::id() == 1 && unshare() && parent_and_child_are_answered(&mut store(&url));
        i32::from(!answered)
    };
    match code_of(child(|| if unshare() { code_of(child(parent)) } else { NO_NAMESPACE })) {
        NO_NAMESPACE => println!("not root: this machine makes no PID namespace"),
        code => assert_eq!(code, 0),
    }
}

/// Whether a process and its forked child get their own answers.
fn parent_and_child_are_answered(store: &mut RedisStore) -> bool {
    let limit = limit(store, "5/day");
    let charged = store.check(&limit, b"key", 1).is_ok();
    let mut asks = || {
        (0..200)
            .all(|_| store.peek(&limit, b"key", 0).is_ok_and(|decision| decision.remaining == 4))
    };
    let child = child(|| i32::from(!asks()));
    charged && asks() && code_of(child) == 0
}

/// A forked child that runs `run` and ends with the code that it returns.
fn child(run: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the calls of `run` take no lock that another thread may have held, and the child ends
    // without destructors and exit handlers.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(run()),
            child => child,
        }
    }
}

/// Waits for a child of this process, and returns its code.
fn code_of(child: libc::pid_t) -> i32 {
    let mut status = -1;
    // SAFETY: the status is writable for the call.
    let ended = unsafe { libc::waitpid(child, &mut status, 0) };
    assert!(ended == child && libc::WIFEXITED(status), "{ended} of {child}: {status}");
    libc::WEXITSTATUS(status)
}
