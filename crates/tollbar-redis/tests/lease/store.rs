//! The store in virtual time: the shipped arithmetic, a server's clock that lies, and what a server
//! does to its keys.
#![allow(dead_code)] // each test program uses a part of it

use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{self, Grant};
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::Terms;

/// What the store has: one key's value, with the time of the server's clock at which it is
/// forgotten, and the limit's record.
#[derive(Clone, Copy, Default)]
pub struct Data {
    pub key: Option<Stored>,
    pub expires: u64,
    pub record: Option<Record>,
}

pub struct Store {
    pub data: Data,
    /// An older copy, for a restart that finds yesterday's file.
    pub snapshot: Data,
    /// Microseconds that the server's clock is ahead of the true time.
    pub ahead: i64,
    /// Its clock stands at this; 0: it does not.
    pub frozen: u64,
    pub answers: bool,
    /// Changes that cut what keys had used.
    pub cuts: u64,
    /// A fault: leases are charged as spent at once.
    pub charges_early: bool,
    /// Of the data's time, since a schedule began.
    pub error: Error,
}

/// How far the data's time is ahead of the true one, in microseconds. Other data begin anew.
#[derive(Clone, Copy, Debug, Default)]
pub struct Error {
    pub first: i64,
    pub least: i64,
    pub greatest: i64,
    /// The most that it rose.
    pub rise: i64,
    last: i64,
    of: u64,
}

/// The server's clock when the simulation's is 0: some day in 2023.
const BEGIN: i64 = 1_700_000_000_000_000;

impl Store {
    pub fn new() -> Store {
        let (data, error) = (Data::default(), Error::default());
        Store {
            data,
            snapshot: data,
            ahead: 0,
            frozen: 0,
            answers: true,
            cuts: 0,
            charges_early: false,
            error,
        }
    }

    /// What the server's clock says.
    pub fn clock(&self, now: u64) -> u64 {
        match self.frozen {
            0 => (BEGIN + (now / 1000) as i64 + self.ahead) as u64,
            at => at,
        }
    }

    /// Steps it, at the earliest to 1970.
    pub fn step_clock(&mut self, now: u64, by: i64) {
        self.ahead = (self.ahead + by).max(1 - BEGIN - (now / 1000) as i64);
    }

    /// Sets it.
    pub fn set_clock(&mut self, now: u64, clock: u64) {
        self.ahead = clock as i64 - BEGIN - (now / 1000) as i64;
    }

    /// The script, for a question about no key.
    pub fn probe(&mut self, terms: &Terms, ask: &Ask, requester: &Requester, now: u64) -> Grant {
        let raw = self.clock(now);
        let (record, grant) = bucket::probe(self.data.record, terms, ask, requester, raw);
        self.note_cut(&record);
        self.data.record = Some(record);
        self.error.note(grant.epoch, grant.now as i64 - (now / 1000) as i64);
        grant
    }

    fn note_cut(&mut self, record: &Record) {
        let known = self.data.record.map_or(0, |record| record.terms.version);
        let last = record.changes.list().last();
        self.cuts += u64::from(last.is_some_and(|last| last.version > known && last.most != 0));
    }

    /// The script.
    pub fn execute(&mut self, terms: &Terms, ask: &Ask, requester: &Requester, now: u64) -> Grant {
        let raw = self.clock(now);
        let stored = self.data.key.filter(|_| self.data.expires > raw);
        let life = if self.charges_early { 0 } else { ask.life };
        let ask = &Ask { life, ..*ask };
        let (record, mut grant, key) =
            bucket::execute(self.data.record, stored, terms, ask, requester, raw);
        if self.charges_early {
            grant.life = terms.life / 1000;
        }
        self.note_cut(&record);
        self.data.record = Some(record);
        if grant.tat > grant.now {
            self.data.key = Some(key);
            self.data.expires = grant.tat - grant.now + raw + record.margin;
        }
        self.error.note(grant.epoch, grant.now as i64 - (now / 1000) as i64);
        grant
    }
}

impl Error {
    /// From here on.
    pub fn begin(&mut self) {
        *self = Error { first: self.last, least: self.last, greatest: self.last, rise: 0, ..*self };
    }

    fn note(&mut self, of: u64, error: i64) {
        if self.of != of {
            *self = Error { first: error, least: error, greatest: error, of, ..*self };
        }
        self.last = error;
        self.least = self.least.min(error);
        self.greatest = self.greatest.max(error);
        self.rise = self.rise.max(error - self.least);
    }
}
