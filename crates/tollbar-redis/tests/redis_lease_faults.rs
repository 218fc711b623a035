//! What an operator reads about a store that answers and does not serve: the fault in words, the
//! command that failed, the key, and the server's own text.

#[path = "common/redis.rs"]
mod redis;

use redis::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tollbar_redis::lease::{Circuit, Client, Node, Options};
use tollbar_redis::redis::Url;

/// Drives a client until its node has a fault, asks about a key meanwhile, and returns the texts
/// that it had.
fn troubles(url: &str, until: impl Fn(&str) -> bool) -> Vec<String> {
    let policy = "5/min burst 5".parse().expect("a policy");
    let node = Node::private("faults", &policy, &Options::new(1)).expect("a node");
    let mut client = Client::new(&Url::parse(url).expect("a URL"))
        .and_then(|client| client.with(&node))
        .expect("a client");
    let mut said: Vec<String> = Vec::new();
    let begun = Instant::now();
    while !said.last().is_some_and(|text| until(text)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it said only {said:?}");
        let _ = node.check(b"192.0.2.1", 1);
        let pause = client.tick();
        client.wait(pause);
        let text = client.trouble().as_str().to_string();
        if !text.is_empty() && said.last() != Some(&text) {
            said.push(text);
        }
    }
    said
}

fn says(url: &str, words: &str) {
    let said = troubles(url, |text| text.starts_with(words));
    println!("{said:?}");
}

/// A server with a user who may do only what `rules` say.
fn with_user(rules: &str) -> (Server, String) {
    let server = Server::start();
    let mut command = vec!["ACL", "SETUSER", "ann", "on", ">pass"];
    command.extend(rules.split(' '));
    assert_eq!(server.command(&command).text(), "OK");
    let url = server.tcp().replace("redis://", "redis://ann:pass@");
    (server, url)
}

#[test]
fn a_server_that_wants_a_password() {
    let server = Server::with(&["--requirepass", "secret"]);
    says(&server.tcp(), "the server wants a password (SCRIPT LOAD): NOAUTH ");
}

#[test]
fn a_wrong_password() {
    let server = Server::with(&["--requirepass", "secret"]);
    let url = server.tcp().replace("redis://", "redis://:wrong@");
    says(&url, "the server refuses this user or password (AUTH): WRONGPASS ");
}

#[test]
fn a_user_without_a_command() {
    let refused = "the server does not let this user run a command or use a key";
    let (_server, url) = with_user("~* +@all -evalsha");
    let said = troubles(&url, |text| text.contains("192.0.2.1"));
    let last = said.last().expect("a text");
    assert!(
        last.starts_with(&format!("{refused} (EVALSHA, key \"192.0.2.1\"): NOPERM ")),
        "{last}"
    );
    assert!(last.contains("evalsha"), "{last}");
    let (_server, url) = with_user("~* +@all -set");
    let words =
        "the server does not let this user run the script, which needs GET, MGET, SET and TIME";
    says(&url, &format!("{words} (EVALSHA, key \"192.0.2.1\"): ERR "));
    let (_server, url) = with_user("~* +@all -script|load");
    says(&url, &format!("{refused} (SCRIPT LOAD): NOPERM "));
    let (_server, url) = with_user("~other:* +@all");
    says(&url, &format!("{refused} (EVALSHA, "));
}

#[test]
fn a_server_without_the_command() {
    let server = Server::with(&["--rename-command", "EVALSHA", ""]);
    says(
        &server.tcp(),
        "the server does not know a command (EVALSHA, key \"192.0.2.1\"): ERR unknown command ",
    );
}

#[test]
fn a_replica() {
    let first = Server::start();
    let port = first.port().to_string();
    let replica = Server::with(&["--replicaof", &format!("127.0.0.1 {port}")]);
    says(&replica.tcp(), "the server is a replica (EVALSHA, ");
}

/// Another type in the place of a key of the limit is overwritten, and no fault.
#[test]
fn a_key_of_another_type() {
    let server = Server::start();
    server.command(&["LPUSH", "tollbar:{faults}:k:192.0.2.1", "x"]);
    server.command(&["LPUSH", "tollbar:{faults}:epoch", "x"]);
    let policy = "5/min burst 5".parse().expect("a policy");
    let node = Node::private("faults", &policy, &Options::new(1)).expect("a node");
    let mut client = Client::new(&Url::parse(&server.tcp()).expect("a URL"))
        .and_then(|client| client.with(&node))
        .expect("a client");
    let since = Instant::now();
    while server.command(&["TYPE", "tollbar:{faults}:k:192.0.2.1"]).text() != "string" {
        assert!(since.elapsed() < Duration::from_secs(60), "the key keeps its type");
        let _ = node.check(b"192.0.2.1", 1);
        let pause = client.tick();
        client.wait(pause);
    }
    assert_eq!(client.trouble().as_str(), "");
}

/// A full store serves a question now and then, and the circuit must not open and close all the
/// time: each time it opens, the client waits for longer before it asks again.
#[test]
fn a_full_store_opens_the_circuit_a_few_times() {
    let server = Server::start();
    let used: u64 = server
        .command(&["INFO", "memory"])
        .text()
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok())
        .expect("the memory in use");
    let policy = "5/min burst 5".parse().expect("a policy");
    let node = Node::private("faults", &policy, &Options::new(1)).expect("a node");
    let mut client = Client::new(&Url::parse(&server.tcp()).expect("a URL"))
        .and_then(|client| client.with(&node))
        .expect("a client");
    let (begun, mut said, mut turn) = (Instant::now(), String::new(), 0_u64);
    while begun.elapsed() < Duration::from_secs(6) {
        // By turns of 30 ms the memory is too small and large enough.
        let full = begun.elapsed().as_millis() / 30 % 2 == 0;
        if u64::from(full) != turn % 2 {
            turn += 1;
            let most = if full { used / 2 } else { used * 100 };
            server.command(&["CONFIG", "SET", "maxmemory", &most.to_string()]);
        }
        let _ = node.check(format!("key {turn}").as_bytes(), 1);
        let pause = client.tick();
        client.wait(pause);
        let text = client.trouble();
        if text.as_str().contains("OOM") {
            said = text.as_str().to_string();
        }
    }
    println!("opened {} times: {said}", node.stats().opened);
    assert!(said.starts_with("the server is out of memory (EVALSHA, "), "{said}");
    assert!(node.stats().opened <= 12, "{} times", node.stats().opened);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let freed = Instant::now();
    while node.circuit(node.now()) != Circuit::Closed {
        assert!(freed.elapsed() < Duration::from_secs(30));
        let pause = client.tick();
        client.wait(pause);
    }
    println!("closed {:?} after there was memory", freed.elapsed());
}

#[test]
fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
    says(&format!("redis://127.0.0.1:{free}"), "the server refuses connections");
    says("unix:/no/such/socket", "the server's socket does not exist");
}

/// A client waits for as long as its URL says; a second is the default.
#[test]
fn a_timeout_in_the_url() {
    let server = Server::start();
    server.pause();
    let begun = Instant::now();
    says(&format!("{}?timeout=2500ms", server.tcp()), "the server does not answer in time");
    assert!(begun.elapsed() >= Duration::from_millis(2500), "{:?}", begun.elapsed());
    server.resume();
}

#[test]
fn a_server_that_stops() {
    let server = Server::start();
    server.pause();
    says(&server.tcp(), "the server does not answer in time");
    server.resume();
}

/// A port for TLS closes the connection when it reads a command.
#[test]
fn a_port_of_another_protocol() {
    let port = stub(|mut peer| {
        let _ = peer.read(&mut [0; 7]);
    });
    says(&port, "the server closed the connection before it answered, as a port for TLS does");
}

/// Servers that cannot be brought into this state at will: they answer EVALSHA with an error.
#[test]
fn what_a_server_says_in_other_states() {
    for (error, words) in [
        ("LOADING Redis is loading the dataset in memory", "the server is loading its data"),
        (
            "MISCONF Redis is configured to save",
            "the server cannot save its data and accepts no writes",
        ),
        ("BUSY Redis is busy running a script", "the server is busy with a script"),
        ("CLUSTERDOWN Hash slot not served", "the server's cluster is down"),
        ("WRONGTYPE Operation against a key", "a key holds another type"),
    ] {
        let port = stub(move |peer| {
            let mut lines = BufReader::new(peer.try_clone().expect("a copy")).lines();
            let mut peer = peer;
            while let Some(Ok(line)) = lines.next() {
                let answer = match line.as_str() {
                    "EVALSHA" => format!("-{error}\r\n"),
                    "SETNAME" => "+OK\r\n".to_string(),
                    "INFO" => "$0\r\n\r\n".to_string(),
                    "LOAD" => format!("$40\r\n{}\r\n", "a".repeat(40)),
                    _ => continue,
                };
                if peer.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        });
        says(&port, &format!("{words} (EVALSHA, key \"192.0.2.1\"): {error}"));
    }
}

/// A server that serves each connection by `serve`, and its URL.
fn stub(serve: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for peer in listener.incoming().flatten() {
            std::thread::spawn(move || serve(peer));
        }
    });
    format!("redis://127.0.0.1:{port}")
}
