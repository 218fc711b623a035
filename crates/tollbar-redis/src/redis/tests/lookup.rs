//! Lookups against name servers that the tests run. Every wait is bounded by ten seconds, because
//! the machine may be busy.

use crate::redis::dns::{self, DnsAnswer, Kind};
use crate::redis::hosts::{of_line, Settings};
use crate::redis::socket::HostAddress;
use crate::redis::{Link, LinkError, NameFault, Url};
use std::net::{TcpListener, UdpSocket};
use std::prelude::v1::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tollbar::clock::{Clock, Monotonic};

const SECOND: u64 = 1_000_000_000;

/// A name server's behaviour: its answer to a question for a name and a kind.
struct Server {
    place: HostAddress,
    asked: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicU32>,
}

/// An answer with this code and these addresses.
type Says = (u8, Vec<Vec<u8>>);

impl Server {
    fn new(says: impl Fn(&str, Kind) -> Option<Says> + Send + 'static) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        let port = socket.local_addr().expect("an address").port();
        let (asked, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
        let (names, stopped) = (asked.clone(), stop.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while stopped.load(Ordering::Relaxed) == 0 {
                let Ok((n, from)) = socket.recv_from(&mut bytes) else { continue };
                let (name, kind) = read_question(&bytes[..n]);
                names.lock().unwrap().push(name.clone());
                if let Some(said) = says(&name, kind) {
                    socket.send_to(&message(&bytes[..n], kind, &said), from).expect("an answer");
                }
            }
        });
        Server { place: HostAddress::of_text(b"127.0.0.1", port).expect("a place"), asked, stop }
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.asked.lock().unwrap().clone();
        names.dedup();
        names
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(1, Ordering::Relaxed);
    }
}

fn read_question(bytes: &[u8]) -> (String, Kind) {
    let (mut at, mut labels) = (12, Vec::new());
    while bytes[at] != 0 {
        let end = at + 1 + usize::from(bytes[at]);
        labels.push(String::from_utf8(bytes[at + 1..end].to_vec()).expect("text"));
        at = end;
    }
    (labels.join("."), if bytes[at + 2] == 1 { Kind::A } else { Kind::Aaaa })
}

/// An alias, and the addresses behind it.
fn message(question: &[u8], kind: Kind, (code, addresses): &Says) -> Vec<u8> {
    let mut bytes = question.to_vec();
    bytes[2] = 0x81;
    bytes[3] = 0x80 | code;
    bytes[7] = addresses.len() as u8 + 1;
    let mut record = |kind: u16, data: &[u8]| {
        bytes.extend([0xc0, 12]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 9, 0, data.len() as u8]);
        bytes.extend(data);
    };
    record(5, b"\x05alias\xc0\x0c");
    addresses.iter().for_each(|address| record(kind as u16, address));
    bytes
}

fn settings(servers: &[&Server], lines: &str) -> Settings {
    let mut settings = Settings::new();
    lines.lines().for_each(|line| settings.line(line.as_bytes()));
    for (to, server) in settings.servers.iter_mut().zip(servers) {
        *to = server.place;
    }
    settings.count = servers.len();
    settings
}

/// Settings with a short timeout, for servers that are silent on purpose.
fn impatient(servers: &[&Server], lines: &str) -> Settings {
    Settings { timeout: SECOND / 5, ..settings(servers, lines) }
}

fn link(url: &str, settings: Settings) -> Link {
    let mut link = Link::new(&Url::parse(url).expect("a URL"));
    link.lookup.given = Some(settings);
    link
}

/// Advances until the link is connected or has failed.
fn through(link: &mut Link) -> Result<(), LinkError> {
    link.connect()?;
    let since = Instant::now();
    while !link.advance()? {
        assert!(since.elapsed() < Duration::from_secs(10));
        link.wait(true, SECOND / 50)?;
    }
    Ok(())
}

fn v4(last: u8) -> Option<Says> {
    Some((0, vec![vec![127, 0, 0, last]]))
}

/// Listeners at one port of two addresses of this machine.
fn listeners() -> (TcpListener, TcpListener, u16) {
    let first = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = first.local_addr().expect("an address").port();
    (first, TcpListener::bind(("127.0.0.2", port)).expect("the same port"), port)
}

/// Each connection looks the name up again, so the link follows a name that moves. While no name
/// server answers, it uses the last address.
#[test]
fn a_name_that_moves_is_followed() {
    let (first, second, port) = listeners();
    let at = Arc::new(AtomicU32::new(1));
    let to = at.clone();
    let server = Server::new(move |_, kind| match (to.load(Ordering::Relaxed), kind) {
        (0, _) => None,
        (last, Kind::A) => v4(last as u8),
        (_, Kind::Aaaa) => Some((0, vec![])),
    });
    let mut link = link(&format!("redis://store.example:{port}"), impatient(&[&server], ""));
    through(&mut link).expect("the first");
    assert_eq!(first.accept().expect("a connection").1.ip().to_string(), "127.0.0.1");
    at.store(2, Ordering::Relaxed);
    through(&mut link).expect("the second");
    second.accept().expect("a connection");
    at.store(0, Ordering::Relaxed);
    through(&mut link).expect("the second, by memory");
    second.accept().expect("a connection");
    at.store(1, Ordering::Relaxed);
    through(&mut link).expect("the first");
    first.accept().expect("a connection");
    assert_eq!(server.names(), ["store.example"]);
}

/// No call waits for a silent name server: connecting, advancing and closing return at once. A link
/// that is closed meanwhile goes on with the next server, and has one socket at most.
#[test]
fn a_silent_name_server_costs_no_wait() {
    let (first, _second, port) = listeners();
    let silent = Server::new(|_, _| None);
    let good = Server::new(|_, kind| if kind == Kind::A { v4(1) } else { Some((0, vec![])) });
    let mut slow = settings(&[&silent, &good], "");
    slow.timeout = 3600 * SECOND;
    let mut link = link(&format!("redis://store.example:{port}"), slow);
    link.connect().expect("a question");
    for _ in 0..1000 {
        assert_eq!(link.advance(), Ok(false));
        assert!(link.fd() >= 0 && link.wants(true).readable && !link.wants(true).writable);
    }
    link.close();
    assert_eq!(link.fd(), -1);
    through(&mut link).expect("by the second server");
    first.accept().expect("a connection");
    // On a busy machine the silent server's thread may read its question last.
    let end = Instant::now() + Duration::from_secs(60);
    while silent.names().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((silent.names().len(), good.names().len()), (1, 1));
}

#[test]
fn the_search_list_is_gone_through_in_order() {
    let (first, _second, port) = listeners();
    let server = Server::new(|name, kind| match (name, kind) {
        ("redis.b.example", Kind::A) => v4(1),
        ("redis.b.example", Kind::Aaaa) => Some((0, vec![])),
        _ => Some((3, vec![])),
    });
    let mut link = link(
        &format!("redis://redis:{port}"),
        settings(&[&server], "search a.example b.example c.example"),
    );
    through(&mut link).expect("the second domain's");
    first.accept().expect("a connection");
    assert_eq!(server.names(), ["redis.a.example", "redis.b.example"]);
}

#[test]
fn names_with_dots_are_tried_as_they_are_first() {
    let lines = "search one.example\noptions ndots:2";
    for (host, names) in [
        ("a.b.c", vec!["a.b.c", "a.b.c.one.example"]),
        ("a.b", vec!["a.b.one.example", "a.b"]),
        ("a.b.", vec!["a.b"]),
    ] {
        let server = Server::new(|_, _| Some((3, vec![])));
        let mut link = link(&format!("redis://{host}:1"), settings(&[&server], lines));
        assert_eq!(through(&mut link), Err(LinkError::Name(NameFault::Absent)));
        assert_eq!(server.names(), names, "{host}");
    }
}

/// Name servers that refuse, that answer only one kind, and that do not listen.
#[test]
fn the_next_server_is_asked() {
    let (first, _second, port) = listeners();
    let closed = Server::new(|_, _| None);
    let place = HostAddress::of_text(
        b"127.0.0.1",
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
    );
    let refuses = Server::new(|_, _| Some((5, vec![])));
    let half = Server::new(|_, kind| if kind == Kind::A { v4(1) } else { None });
    let mut servers = impatient(&[&closed, &refuses, &half], "");
    servers.servers[0] = place.expect("a place where nobody listens");
    let mut link = link(&format!("redis://store.example:{port}"), servers);
    through(&mut link).expect("by the third server");
    first.accept().expect("a connection");
    let silent = Server::new(|_, _| None);
    let mut link =
        self::link("redis://store.example:1", impatient(&[&silent], "options attempts:3"));
    assert_eq!(through(&mut link), Err(LinkError::Name(NameFault::NoAnswer)));
    assert_eq!(silent.asked.lock().unwrap().len(), 6, "three times two kinds");
}

#[test]
fn addresses_and_localhost_ask_nobody() {
    let server = Server::new(|_, _| Some((3, vec![])));
    let (first, _second, port) = listeners();
    for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
        let mut link = link(&format!("redis://{host}:{port}"), settings(&[&server], ""));
        through(&mut link).expect(host);
        first.accept().expect("a connection");
    }
    let mut link = link("redis://[::1]:1", settings(&[&server], ""));
    assert!(matches!(through(&mut link), Err(LinkError::System(..))));
    assert!(server.names().is_empty());
}

#[test]
fn files_are_read_as_their_manuals_say() {
    let mut settings = Settings::new();
    for line in [
        "# nameserver 192.0.2.9",
        "nameserver 192.0.2.1 # the first",
        "nameserver\t2001:db8::1",
        "nameserver nobody",
        "domain x.example",
        "search a.example\tb.example",
        "options rotate ndots:5 timeout:3 attempts:9 ndots:",
        "options timeout:99999999999999999999999",
    ] {
        settings.line(line.as_bytes());
    }
    assert_eq!(
        (settings.count, settings.dots, settings.timeout, settings.attempts),
        (2, 5, 3 * SECOND, 5)
    );
    assert_eq!(settings.search.as_str(), "a.example b.example ");
    let mut none = Settings::new();
    none.finish();
    assert_eq!(none.count, 1);
    assert_eq!(of_line(b"192.0.2.1 a.example  A # b", b"a"), Some(b"192.0.2.1".as_slice()));
    assert_eq!(of_line(b"192.0.2.1 a.example A # b", b"b"), None);
    assert_eq!(of_line(b"192.0.2.1", b"192.0.2.1"), None);
    assert_eq!(of_line(b"::1 host.", b"host"), None);
    assert_eq!(of_line(b"::1 host", b"host."), Some(b"::1".as_slice()));
}

/// Names that cannot be asked for, and damaged messages of every length: no panic, and no address
/// that is not in the message.
#[test]
fn messages_from_anybody() {
    let mut into = [0; dns::QUESTION_MOST];
    let long = [b'a'; 64];
    for name in [b"".as_slice(), b".", b"a..b", &long, &[b"a.".repeat(127), b"b".to_vec()].concat()]
    {
        assert_eq!(dns::question(name, Kind::A, 7, &mut into), None);
    }
    assert!(dns::question(&[b"a.".repeat(126), b"b".to_vec()].concat(), Kind::A, 7, &mut into)
        .is_some());
    let length = dns::question(b"a.example", Kind::A, 7, &mut into).expect("a question");
    let question = into[..length].to_vec();
    let whole = message(&question, Kind::A, &(0, vec![vec![192, 0, 2, 1], vec![192, 0, 2, 2]]));
    let read = |message: &[u8]| {
        let mut found = Vec::new();
        (dns::answer(message, &question, Kind::A, |octets| found.push(octets.to_vec())), found)
    };
    assert_eq!(read(&whole), (DnsAnswer::Addresses, vec![vec![192, 0, 2, 1], vec![192, 0, 2, 2]]));
    for end in 0..whole.len() {
        let (answer, found) = read(&whole[..end]);
        assert!(answer != DnsAnswer::Addresses && found.len() < 2);
    }
    // The server cut the answer: its whole records count.
    let mut cut = whole[..whole.len() - 5].to_vec();
    cut[2] |= 2;
    assert_eq!(read(&cut), (DnsAnswer::Addresses, vec![vec![192, 0, 2, 1]]));
    for (at, foreign) in [(0, 1), (2, 0x01), (5, 2), (13, b'b'), (whole.len() - 1, 9)] {
        let mut other = whole.clone();
        other[at] = foreign;
        assert_eq!(read(&other).0 == DnsAnswer::Foreign, at < 20, "byte {at}");
    }
    let mut random = Monotonic.now() | 1;
    let seed = random;
    for _ in 0..20_000 {
        let mut damaged = whole.clone();
        for _ in 0..1 + random % 6 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let at = (random >> 33) as usize % damaged.len();
            damaged[at] = (random >> 24) as u8;
        }
        let (_, found) = read(&damaged);
        assert!(
            found
                .iter()
                .all(|octets| octets.len() == 4 && damaged.windows(4).any(|bytes| bytes == octets)),
            "{seed}"
        );
    }
}
