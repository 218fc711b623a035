//! Link and session against a real server.

#[path = "common/redis.rs"]
mod server;

use server::Server;
use std::time::{Duration, Instant};
use tollbar_redis::redis::{Answer, Arg, Fault, Link, LinkError, Operation, Script, Session, Url};

static SCRIPTS: [Script; 2] = [
    Script { name: "echo", source: "return {ARGV[1], tonumber(ARGV[2]) + 1, KEYS[1]}" },
    Script { name: "set", source: "return redis.call('SET', KEYS[1], ARGV[1])" },
];

/// A link and a session, driven by blocking waits.
struct Talk {
    link: Link,
    session: Session,
}

impl Talk {
    fn new(url: &str) -> Talk {
        let url = Url::parse(url).unwrap();
        Talk { link: Link::new(&url), session: Session::new(&url, &SCRIPTS, 4096, 0).unwrap() }
    }

    fn open(url: &str) -> Talk {
        let mut talk = Talk::new(url);
        talk.connect().unwrap();
        talk.until(|session| session.is_ready());
        talk
    }

    fn connect(&mut self) -> Result<(), LinkError> {
        self.link.connect()?;
        while !self.link.advance()? {
            self.link.wait(true, 1_000_000_000)?;
        }
        self.session.begin();
        Ok(())
    }

    /// Moves bytes in both directions, and waits for the socket.
    fn turn(&mut self) -> Result<(), LinkError> {
        let output = !self.session.output().is_empty();
        let ready = self.link.wait(output, 1_000_000_000)?;
        if ready.writable {
            let n = self.link.write(self.session.output())?;
            self.session.wrote(n);
        }
        if ready.readable {
            let n = self.link.read(self.session.input())?;
            self.session.read(n);
        }
        Ok(())
    }

    fn until(&mut self, done: impl Fn(&Session) -> bool) {
        let start = Instant::now();
        while !done(&self.session) {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", self.session);
            self.turn().unwrap();
            assert_eq!(self.session.next(), None);
        }
    }

    /// Waits for the next reply and gives it to `read`.
    fn answer<T>(&mut self, read: impl Fn(Result<Answer<'_>, Fault>) -> T) -> T {
        let start = Instant::now();
        loop {
            if let Some(result) = self.session.next() {
                return read(result);
            }
            assert!(start.elapsed() < Duration::from_secs(30));
            self.turn().unwrap();
        }
    }
}

#[test]
fn scripts_are_called_by_tcp_and_by_unix_socket() {
    let server = Server::start();
    for url in [server.tcp(), server.unix(), format!("redis://localhost:{}", server.port())] {
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
