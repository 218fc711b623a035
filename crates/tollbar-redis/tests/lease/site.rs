//! One machine of a limit in virtual time: callers, a client that ticks as the shipped one does,
//! and a store a fixed way off that always answers.

use std::collections::{HashMap, VecDeque};
use tollbar::{Decision, Policy};
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{self, Grant};
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::{Driver, Node, Options};

/// The way to the store and back.
pub const ROUND_TRIP: u64 = 1_000_000;
/// The client's pauses: while there was something to do in the last 100 ms, and else.
const BUSY: u64 = 1_000_000;
const IDLE: u64 = 4_000_000;
const ACTIVE: u64 = 100_000_000;

pub struct Site {
    pub node: Node,
    driver: Driver,
    pub now: u64,
    tick_at: u64,
    active_at: u64,
    /// Questions on their way: when they are answered, and what.
    flight: VecDeque<(u64, Grant)>,
    /// The keys' values in the store.
    keys: HashMap<Vec<u8>, Stored>,
    record: Option<Record>,
    pub asked: u64,
}

impl Site {
    pub fn new(policy: &Policy, options: &Options) -> Site {
        let node = Node::private("site", policy, options).expect("a node");
        // Any time will do, and the same makes the same figures.
        let now = 1 << 50;
        let mut site = Site {
            node,
            driver: Driver::new(options.capacity as usize * 8, 7).expect("memory"),
            now,
            tick_at: now,
            active_at: now,
            flight: VecDeque::new(),
            keys: HashMap::new(),
            record: None,
            asked: 0,
        };
        site.pass(1_000_000_000);
        site.asked = 0;
        site
    }

    pub fn check(&mut self, key: u64) -> Decision {
        self.node.check_at(&key.to_le_bytes(), self.now, 1)
    }

    /// Time passes for the client and the store.
    pub fn pass(&mut self, by: u64) {
        let end = self.now + by;
        loop {
            let answer_at = self.flight.front().map_or(u64::MAX, |(at, _)| *at);
            let next = answer_at.min(self.tick_at);
            if next > end {
                break;
            }
            self.now = next;
            self.tick();
        }
        self.now = end;
    }

    fn tick(&mut self) {
        let now = self.now;
        self.driver.collect(&self.node, now);
        while let Some((at, grant)) = self.flight.front().copied() {
            if at > now {
                break;
            }
            self.flight.pop_front();
            self.driver.answered(&self.node, &grant, now);
        }
        if self.driver.is_due(now) {
            while let Some(question) = self.driver.ask(&self.node, now) {
                let (key, ask) = (question.key.map(<[u8]>::to_vec), question.ask);
                self.asked += 1;
                let grant = self.execute(key, &ask, now + ROUND_TRIP / 2);
                self.flight.push_back((now + ROUND_TRIP, grant));
            }
        }
        if self.driver.is_busy() {
            self.active_at = now;
        }
        self.tick_at = now + if now - self.active_at < ACTIVE { BUSY } else { IDLE };
    }

    /// A store that never forgets: the shipped arithmetic and one record.
    fn execute(&mut self, key: Option<Vec<u8>>, ask: &Ask, at: u64) -> Grant {
        let terms = self.node.terms();
        let requester = Requester { fresh: 1, ..Requester::default() };
        let raw = at / 1000;
        let (record, grant) = match key {
            None => bucket::probe(self.record, &terms, ask, &requester, raw),
            Some(key) => {
                let known = self.keys.get(&key).copied();
                let (record, grant, value) =
                    bucket::execute(self.record, known, &terms, ask, &requester, raw);
                self.keys.insert(key, value);
                (record, grant)
            }
        };
        self.record = Some(record);
        grant
    }
}
