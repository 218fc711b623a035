//! Link and session against a real server.

#[path = "common/redis.rs"]
mod server;
#[path = "common/talk.rs"]
mod talk;

use server::Server;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use talk::Talk;
use tollbar_redis::redis::{Arg, Fault, Link, LinkError, Operation, Url};

#[test]
fn scripts_are_called_by_tcp_and_by_unix_socket() {
    let server = Server::start();
    server.command(&["CONFIG", "SET", "bind", "127.0.0.1 -::1"]);
    let mut urls =
        vec![server.tcp(), server.unix(), format!("redis://localhost:{}", server.port())];
    // Where the machine has the address.
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        urls.push(format!("redis://[::1]:{}", server.port()));
    }
    for url in urls {
        let mut talk = Talk::open(&url);
        for n in 0..40 {
            talk.session.call(0, &[b"key"], &[Arg::Bytes(b"a\r\n\0b"), Arg::Int(n)]).unwrap();
        }
        for n in 0..40 {
            talk.answer(|answer| {
                let answer = answer.unwrap();
                assert_eq!(
                    (answer.bytes(0), answer.int(1), answer.bytes(2)),
                    (Some(&b"a\r\n\0b"[..]), Some(n + 1), Some(&b"key"[..]))
                );
            });
        }
        assert!(server.command(&["CLIENT", "LIST"]).text().contains("name=tollbar"));
    }
}

#[test]
fn a_database_has_its_own_keys() {
    let server = Server::start();
    let mut talk = Talk::open(&format!("{}/3", server.tcp()));
    talk.session.call(1, &[b"key"], &[Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert_eq!(answer.unwrap().bytes(0), Some(&b"OK"[..])));
    assert_eq!(server.keys(), 0);
    assert!(server.command(&["INFO", "keyspace"]).text().contains("db3:keys=1"));
    // A database that does not exist.
    let mut talk = Talk::new(&format!("{}/99", server.tcp()));
    talk.connect().unwrap();
    talk.answer(|answer| assert_eq!(answer, Err(Fault::Script)));
    assert!(talk.session.error_text().contains("out of range"), "{:?}", talk.session);
}

#[test]
fn users_and_passwords() {
    let server = Server::with(&["--requirepass", "p@ss/word"]);
    assert!(matches!(server.try_command(&["PING"]), Ok(server::Raw::Error(_))));
    let port = server.port();
    let mut talk = Talk::open(&format!("redis://:p%40ss%2fword@127.0.0.1:{port}"));
    talk.session.call(1, &[b"key"], &[Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert!(answer.is_ok()));
    for wrong in ["", ":wrong@", "nobody:p%40ss%2fword@"] {
        let mut talk = Talk::new(&format!("redis://{wrong}127.0.0.1:{port}"));
        talk.connect().unwrap();
        talk.answer(|answer| assert_eq!(answer, Err(Fault::Refused), "{wrong}"));
        assert!(!talk.session.is_ready());
    }
}

/// A password in a file is read for each connection, so one that rotates is used at the next.
#[test]
fn a_rotated_password_is_read_again() {
    let server = Server::start();
    let token = |n: u8| [b'0' + n].repeat(3000);
    let set = |n: u8| {
        let password = format!(">{}", String::from_utf8(token(n)).unwrap());
        server.command(&["ACL", "SETUSER", "me", "reset", "on", &password, "~*", "+@all"]);
    };
    let file = server.socket().with_file_name("password");
    let url = format!("redis://me@127.0.0.1:{}?password_file={}", server.port(), file.display());
    let mut talk = Talk::new(&url);
    talk.connect().unwrap();
    talk.answer(|answer| assert_eq!(answer, Err(Fault::Credentials)));
    assert_eq!(talk.session.error_text(), "errno 2");
    std::fs::write(&file, token(1)).unwrap();
    set(1);
    talk.reopen();
    // Another password, and a file with the old one: the open connection goes on.
    set(2);
    talk.session.call(1, &[b"key"], &[Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert!(answer.is_ok()));
    talk.connect().unwrap();
    talk.answer(|answer| assert_eq!(answer, Err(Fault::Refused)));
    std::fs::write(&file, [token(2).as_slice(), b"\n"].concat()).unwrap();
    talk.reopen();
}

#[test]
fn an_acl_user_may_do_no_more_than_is_needed() {
    let server = Server::start();
    server.command(&[
        "ACL",
        "SETUSER",
        "limiter",
        "on",
        ">secret",
        "~tollbar:*",
        "-@all",
        "+script|load",
        "+evalsha",
        "+set",
    ]);
    let mut talk = Talk::open(&format!("redis://limiter:secret@127.0.0.1:{}", server.port()));
    talk.session.call(1, &[b"tollbar:key"], &[Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert_eq!(answer.unwrap().bytes(0), Some(&b"OK"[..])));
    talk.session.call(1, &[b"other"], &[Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert_eq!(answer, Err(Fault::Refused)));
}

#[test]
fn a_flushed_script_is_loaded_again() {
    let server = Server::start();
    let mut talk = Talk::open(&server.unix());
    server.command(&["SCRIPT", "FLUSH"]);
    talk.session.call(0, &[b"key"], &[Arg::Int(1), Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert_eq!(answer, Err(Fault::NoScript)));
    talk.session.call(0, &[b"key"], &[Arg::Int(1), Arg::Int(1)]).unwrap();
    talk.answer(|answer| assert_eq!(answer.unwrap().int(1), Some(2)));
}

#[test]
fn a_server_that_is_gone_is_an_error_and_comes_back() {
    let mut server = Server::start();
    let mut talk = Talk::open(&server.tcp());
    server.kill();
    let start = Instant::now();
    let why = loop {
        assert!(start.elapsed() < Duration::from_secs(30));
        if let Err(why) = talk.turn() {
            break why;
        }
    };
    assert!(matches!(why, LinkError::Ended | LinkError::System(Operation::Read, _)), "{why}");
    assert_eq!((talk.link.fd(), talk.link.is_open()), (-1, false));
    assert_eq!(talk.connect(), Err(LinkError::System(Operation::Connect, libc::ECONNREFUSED)));
    server.restart();
    talk.connect().unwrap();
    talk.until(|session| session.is_ready());
}

#[test]
fn a_socket_that_is_not_there_is_an_error_at_once() {
    let mut link = Link::new(&Url::parse("unix:/nonexistent/redis.sock").unwrap());
    assert_eq!(link.connect(), Err(LinkError::System(Operation::Connect, libc::ENOENT)));
    assert_eq!(link.advance(), Err(LinkError::Closed));
    assert_eq!(link.read(&mut [0; 8]), Err(LinkError::Closed));
    assert_eq!(link.write(&[0; 8]), Err(LinkError::Closed));
}

#[test]
fn nothing_waits_but_wait() {
    let server = Server::start();
    let mut talk = Talk::open(&server.tcp());
    server.pause();
    let start = Instant::now();
    assert_eq!(talk.link.read(&mut [0; 8]), Ok(0));
    // More than the socket's buffers hold.
    let block = vec![0; 1 << 20];
    let mut total = 0;
    while let n @ 1.. = talk.link.write(&block).unwrap() {
        total += n;
    }
    assert!(total > 0 && start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let start = Instant::now();
    let ready = talk.link.wait(false, 50_000_000).unwrap();
    assert!(!ready.readable && start.elapsed() >= Duration::from_millis(49));
    server.resume();
}

#[test]
fn descriptors_are_this_programs_only_and_closed() {
    let server = Server::start();
    let talk = Talk::open(&server.tcp());
    let fd = talk.link.fd();
    // SAFETY: a descriptor's flags.
    let flags = |fd| unsafe { (libc::fcntl(fd, libc::F_GETFD), libc::fcntl(fd, libc::F_GETFL)) };
    assert_ne!(flags(fd).0 & libc::FD_CLOEXEC, 0);
    assert_ne!(flags(fd).1 & libc::O_NONBLOCK, 0);
    let before = server.command(&["CLIENT", "LIST"]).text().matches("name=tollbar").count();
    drop(talk);
    let start = Instant::now();
    while server.command(&["CLIENT", "LIST"]).text().matches("name=tollbar").count() == before {
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}

/// The hosts of a URL are tried in turn: one that refuses, a name that nobody has, and one that
/// serves. A connection that breaks goes to the same host again, and after a rejection to the next.
#[test]
fn several_hosts_are_tried_in_turn() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (first, mut second) = (Server::start(), Server::start());
    let url = format!(
        "redis://127.0.0.1:{closed},nobody.invalid,127.0.0.1:{},127.0.0.1:{}",
        first.port(),
        second.port()
    );
    let clients = |server: &Server| {
        server.command(&["CLIENT", "LIST"]).text().matches("name=tollbar").count()
    };
    let mut talk = Talk::open(&url);
    assert_eq!((clients(&first), clients(&second)), (1, 0));
    talk.reopen();
    assert_eq!((clients(&first), clients(&second)), (1, 0));
    talk.link.reject();
    talk.reopen();
    assert_eq!((clients(&first), clients(&second)), (0, 1));
    second.kill();
    talk.reopen();
    assert_eq!(clients(&first), 1);
    drop(first);
    // The last host that failed says why.
    let why = talk.connect().expect_err("nobody serves");
    let refused = LinkError::System(Operation::Connect, libc::ECONNREFUSED);
    assert!(why == refused || matches!(why, LinkError::Name(_)), "{why}");
}

/// A host that takes connections and never answers is left when the caller gives up.
#[test]
fn a_silent_host_is_left_for_the_next() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start();
    let url = format!("redis://{},127.0.0.1:{}", silent.local_addr().unwrap(), server.port());
    let mut talk = Talk::new(&url);
    talk.connect().unwrap();
    assert_eq!(talk.session.next(), None);
    talk.link.reject();
    talk.reopen();
}
