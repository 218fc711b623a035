//! Requests for the tests.
#![allow(dead_code)] // no test uses all of it

use tollbar_rules::{Answer, Field, Format, Options, Rules};

pub const SECOND: u64 = 1_000_000_000;
/// The times of tests begin at a day, so that windows have begun.
pub const BEGIN: u64 = 86_400 * SECOND;

pub fn rules(text: &str) -> Rules {
    Rules::from_text(text, Format::Toml, &Options { keys: 1000, ..Options::default() })
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Checks a request of these fields at a time in seconds.
pub fn check(rules: &Rules, now: u64, request: &[(&str, &str)]) -> Answer {
    let fields: Vec<Field<'_>> =
        request.iter().map(|(name, value)| Field::new(name.as_bytes(), value.as_bytes())).collect();
    rules.check_at(&fields, BEGIN + now * SECOND).expect("a sound table")
}

pub fn get<'a>(path: &'a str, address: &'a str) -> [(&'a str, &'a str); 3] {
    [(":method", "GET"), (":path", path), (":address", address)]
}

/// How many of `n` requests at one time are admitted.
pub fn admitted(rules: &Rules, n: usize, now: u64, request: &[(&str, &str)]) -> usize {
    (0..n).filter(|_| check(rules, now, request).is_allowed()).count()
}

/// A generator of pseudo-random numbers, which are the same in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub fn of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

/// The process of a test that was forked from it.
pub struct Child(libc::pid_t);

impl Child {
    /// Forks a process that calls `passes` and ends. `passes` may check requests and make system
    /// calls.
    pub fn fork(passes: impl FnOnce() -> bool) -> Child {
        // SAFETY: the child calls nothing but `passes` and `_exit`. The locks that it may find
        // taken are the allocator's, which glibc releases in a child.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let passed = passes();
            // SAFETY: ends the child without its parent's destructors.
            unsafe { libc::_exit(if passed { 0 } else { 1 }) };
        }
        Child(child)
    }

    /// Waits for the process, and returns whether `passes` was true there.
    pub fn passed(self) -> bool {
        let mut status = -1;
        // SAFETY: waits for the child of `fork`.
        unsafe { libc::waitpid(self.0, &mut status, 0) };
        status == 0
    }
}
