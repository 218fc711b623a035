//! A link and a session, driven by blocking waits of at most half a minute.
#![allow(dead_code)] // each test program uses a part of it

use std::time::{Duration, Instant};
use tollbar_redis::redis::{Answer, Fault, Link, LinkError, Script, Session, Url};

pub static SCRIPTS: [Script; 2] = [
    Script { name: "echo", source: "return {ARGV[1], tonumber(ARGV[2]) + 1, KEYS[1]}" },
    Script { name: "set", source: "return redis.call('SET', KEYS[1], ARGV[1])" },
];

/// A link and a session, driven by blocking waits.
pub struct Talk {
    pub link: Link,
    pub session: Session,
}

impl Talk {
    pub fn new(url: &str) -> Talk {
        let url = Url::parse(url).unwrap();
        Talk { link: Link::new(&url), session: Session::new(&url, &SCRIPTS, 4096, 0).unwrap() }
    }

    pub fn open(url: &str) -> Talk {
        let mut talk = Talk::new(url);
        talk.reopen();
        talk
    }

    /// Connects again, and waits until calls can be made.
    pub fn reopen(&mut self) {
        self.connect().unwrap();
        self.until(|session| session.is_ready());
    }

    pub fn connect(&mut self) -> Result<(), LinkError> {
        let start = Instant::now();
        self.link.connect()?;
        while !self.link.advance()? {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", self.link);
            self.link.wait(true, 1_000_000_000)?;
        }
        self.session.begin();
        Ok(())
    }

    /// Moves bytes in both directions, and waits for the socket.
    pub fn turn(&mut self) -> Result<(), LinkError> {
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

    pub fn until(&mut self, done: impl Fn(&Session) -> bool) {
        let start = Instant::now();
        while !done(&self.session) {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", self.session);
            self.turn().unwrap();
            assert_eq!(self.session.next(), None);
        }
    }

    /// Waits for the next reply and gives it to `read`.
    pub fn answer<T>(&mut self, read: impl Fn(Result<Answer<'_>, Fault>) -> T) -> T {
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
