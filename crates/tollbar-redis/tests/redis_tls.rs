//! TLS by rustls with a real redis-server. The tests make their certificates with openssl.

#[path = "common/certificates.rs"]
mod certificates;
#[path = "common/redis.rs"]
mod server;
#[path = "common/talk.rs"]
mod talk;

use certificates::Certificates;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use talk::Talk;
use tollbar_redis::lease::{Circuit, Client, Node, Options};
use tollbar_redis::redis::{Arg, LinkError, Rustls, Url};
use tollbar_redis::store::{RedisStore, Store};

/// What a client trusts, and its own certificate.
fn rustls(authority: &Certificates, own: Option<&Certificates>) -> Box<Rustls> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(authority.path("ca.crt")).expect("a certificate"))
        .expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let configuration = match own {
        None => builder.with_no_client_auth(),
        Some(own) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_file(own.path("client.crt")).expect("a certificate")],
                PrivateKeyDer::from_pem_file(own.path("client.key")).expect("a key"),
            )
            .expect("a client's certificate"),
    };
    Box::new(Rustls::new(Arc::new(configuration)))
}

fn talk(url: &str, transport: Box<Rustls>) -> Talk {
    let mut talk = Talk::new(url);
    talk.link.secure(transport);
    talk
}

/// Answers longer than the session's memory, many at once: the rest waits decrypted in the library,
/// where no descriptor tells of it.
#[test]
fn calls_go_through_tls() {
    let made = Certificates::make("localhost");
    let server = certificates::start(&made, false);
    for host in ["localhost", "127.0.0.1"] {
        let mut talk = talk(&format!("rediss://{host}:{}", server.tls_port()), rustls(&made, None));
        talk.reopen();
        let long = vec![b'x'; 1500];
        for round in 0..20_i64 {
            for n in 0..2 {
                let number = Arg::Int(2 * round + n);
                talk.session.call(0, &[b"key"], &[Arg::Bytes(&long), number]).expect("room");
            }
            for n in 0..2 {
                talk.answer(|answer| {
                    let answer = answer.expect("an answer");
                    assert_eq!(answer.int(1), Some(2 * round + n + 1));
                    assert_eq!(answer.bytes(0), Some(&long[..]));
                });
            }
        }
    }
}

#[test]
fn a_store_decides_through_tls() {
    let made = Certificates::make("localhost");
    let server = certificates::start(&made, false);
    let url = Url::parse(&format!("rediss://localhost:{}", server.tls_port())).expect("a URL");
    let mut store = RedisStore::new(&url).expect("memory");
    store.secure(rustls(&made, None));
    let limit = store.limit("tls", &"3/day".parse().expect("a policy")).expect("a limit");
    let passed =
        (0..5).filter(|_| store.check(&limit, b"key", 1).expect("a decision").is_allowed()).count();
    assert_eq!(passed, 3);
}

/// A machine's lease of a limit, and what it has spent alone when the server goes and comes back.
#[test]
fn leases_come_through_tls() {
    let made = Certificates::make("localhost");
    let mut server = certificates::start(&made, true);
    let policy = "1000/day burst 400".parse().expect("a policy");
    let node = Node::private("tls", &policy, &Options::new(1)).expect("a node");
    let url = format!("rediss://localhost:{}", server.tls_port());
    let mut client = Client::new(&Url::parse(&url).expect("a URL"))
        .and_then(|client| client.with(&node))
        .expect("a client");
    client.secure(rustls(&made, Some(&made)));
    let mut until = |what: &str, done: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(30);
        while !done() {
            assert!(Instant::now() < end, "{what}: {}", client.trouble());
            let millis = client.tick();
            client.wait(millis);
        }
    };
    let circuit = || node.circuit(node.now());
    until("the server", &|| circuit() == Circuit::Closed);
    let passed = std::cell::Cell::new(0);
    let began = Instant::now();
    until("a second", &|| {
        passed.set(passed.get() + u32::from(node.check(b"key", 1).is_allowed()));
        began.elapsed() > Duration::from_secs(1)
    });
    // An exact limiter would admit 400. A lease ends after some time, and the machine loses the
    // permits that it has not spent by then.
    println!("{} of 400: 0 above, {} refused", passed.get(), 400 - passed.get().min(400));
    assert!((340..=401).contains(&passed.get()), "{} of 400", passed.get());
    server.kill();
    until("a notice", &|| circuit() == Circuit::Open);
    server.restart();
    until("the server again", &|| circuit() == Circuit::Closed);
}

/// The certificate must be of an authority that the client trusts, and for the URL's host.
#[test]
fn another_servers_certificate_is_refused() {
    let (made, other) = (Certificates::make("localhost"), Certificates::make("localhost"));
    let server = certificates::start(&made, false);
    let foreign = Certificates::make("cache.example");
    let stranger = certificates::start(&foreign, false);
    for (port, trusted) in [(server.tls_port(), &other), (stranger.tls_port(), &foreign)] {
        let mut talk = talk(&format!("rediss://localhost:{port}"), rustls(trusted, None));
        let why = talk.connect().expect_err("not the server");
        assert!(matches!(why, LinkError::Tls(_)), "{why}");
        assert_eq!(talk.link.fd(), -1);
    }
}

#[test]
fn a_client_has_a_certificate() {
    let made = Certificates::make("localhost");
    let server = certificates::start(&made, true);
    let url = format!("rediss://localhost:{}", server.tls_port());
    talk(&url, rustls(&made, Some(&made))).reopen();
    let mut without = talk(&url, rustls(&made, None));
    // In TLS 1.3 the client's handshake is over before the server has read its certificates.
    let refused: Result<(), LinkError> = without.connect().and_then(|()| loop {
        without.turn()?;
    });
    assert!(matches!(refused, Err(LinkError::Tls(_) | LinkError::Ended)), "{refused:?}");
}

#[test]
fn a_url_with_tls_has_no_connection_without_it() {
    let server = server::Server::start();
    let mut talk = Talk::new(&format!("rediss://127.0.0.1:{}", server.port()));
    assert_eq!(talk.connect(), Err(LinkError::NoTls));
    let made = Certificates::make("localhost");
    talk.link.secure(rustls(&made, None));
    // The server has no TLS at this port, and waits for the end of a line.
    talk.link.connect().expect("a connection");
    for _ in 0..10 {
        assert_eq!(talk.link.advance(), Ok(false));
        talk.link.wait(false, 20_000_000).expect("a wait");
    }
    assert!(!talk.link.is_open());
}

/// The next host of a URL is tried if TLS with one fails. The first record has the server's name.
#[test]
fn the_name_is_sent_and_the_next_host_is_tried() {
    let made = Certificates::make("localhost");
    let server = certificates::start(&made, false);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let first = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let mut bytes = [0; 4096];
        let length = stream.read(&mut bytes).expect("a record");
        bytes[..length].windows(9).any(|bytes| bytes == b"localhost")
    });
    let url = format!("rediss://localhost:{port},127.0.0.1:{}", server.tls_port());
    talk(&url, rustls(&made, None)).reopen();
    assert!(first.join().expect("the listener"), "the first record has no name");
}
