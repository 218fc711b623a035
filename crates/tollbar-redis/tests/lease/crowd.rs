//! Many machines and many keys in virtual time: the shipped nodes and drivers, the shipped
//! arithmetic of the store, and a network that takes 50 to 250 us each way.
#![allow(dead_code)] // each test program uses a part of it

use super::common::Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use tollbar::{Decision, Policy, Reason};
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{self, Grant};
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::{Driver, Node, Options, Terms, Wait};

/// How long a caller takes to wake the client, and the client's longest pause while it is busy.
const WAKE: u64 = 20_000;
const TURN: u64 = 1_000_000;
/// The most questions about keys in a call.
const KEYS_OF_A_CALL: usize = 64;

struct Machine {
    node: Node,
    driver: Driver,
    /// When the next turn is, and when the client took the last one.
    turn_at: u64,
    turned: u64,
    /// The latest arrival of a question at the store, and of an answer here.
    asked: u64,
    answered: u64,
    waits: Vec<(usize, Wait)>,
    admitted: u64,
    /// The name of the store's data in the last answer.
    seen: u64,
}

enum Event {
    Turn,
    Question(Option<Vec<u8>>, Ask),
    Answer(Grant),
}

/// A request, and what became of it.
#[derive(Clone, Copy)]
pub struct Request {
    pub machine: usize,
    pub key: u64,
    pub cost: u64,
    pub at: u64,
    pub decision: Option<Decision>,
    /// How long the request waited.
    pub took: u64,
}

pub struct Crowd {
    machines: Vec<Machine>,
    pub requests: Vec<Request>,
    pub now: u64,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Events by their number.
    what: HashMap<u64, Event>,
    number: u64,
    keys: HashMap<Vec<u8>, Stored>,
    record: Option<Record>,
    /// The name of the store's data.
    data: u64,
    pub random: Rng,
    pub questions: u64,
    /// Calls with these questions.
    pub calls: u64,
}

impl Crowd {
    /// Machines of one limit, whose circuits are closed and whose store has begun long ago.
    pub fn new(kinds: &[(Policy, Options)], seed: u64) -> Crowd {
        let now = 1 << 50;
        let machines = kinds.iter().enumerate().map(|(n, (policy, options))| Machine {
            node: Node::private("crowd", policy, options).expect("a node"),
            driver: Driver::new(options.capacity as usize, seed ^ n as u64).expect("memory"),
            turn_at: u64::MAX,
            turned: 0,
            asked: 0,
            answered: 0,
            waits: Vec::new(),
            admitted: 0,
            seen: 0,
        });
        let mut crowd = Crowd {
            machines: machines.collect(),
            requests: Vec::new(),
            now,
            events: BinaryHeap::new(),
            what: HashMap::new(),
            number: 0,
            keys: HashMap::new(),
            record: None,
            data: 1,
            random: Rng(seed),
            questions: 0,
            calls: 0,
        };
        for machine in 0..kinds.len() {
            crowd.turn_by(machine, now);
        }
        crowd.pass(10_000_000);
        (crowd.questions, crowd.calls) = (0, 0);
        crowd
    }

    /// Admitted by each machine.
    pub fn admitted(&self) -> Vec<u64> {
        self.machines.iter().map(|machine| machine.admitted).collect()
    }

    /// Puts other terms in force.
    pub fn set(&mut self, terms: &Terms) {
        let version = self.record.map_or(0, |record| record.terms.version) + 1;
        let terms = Terms { version, ..*terms };
        let (from, raw) = (Requester { fresh: 1, ..Requester::default() }, self.now / 1000);
        let (record, ..) = bucket::execute(self.record, None, &terms, &Ask::default(), &from, raw);
        assert_eq!(record.terms.version, version);
        self.record = Some(record);
    }

    /// Requests denied because a machine had no place for the key.
    pub fn full(&self) -> u64 {
        self.machines.iter().map(|machine| machine.node.stats().full).sum()
    }

    /// A request that waits for nothing.
    pub fn check(&mut self, n: usize, key: u64) -> Decision {
        self.beat(n);
        let (now, machine) = (self.now, &mut self.machines[n]);
        let decision = machine.node.check_at(&key.to_le_bytes(), now, 1);
        machine.admitted += u64::from(decision.is_allowed());
        let urgent = decision.reason == Reason::Pending;
        self.turn_by(n, now + if urgent { WAKE } else { TURN });
        decision
    }

    /// A request for `cost` permits that waits for the store, for at most 100 ms. Its outcome is in
    /// [`Crowd::requests`].
    pub fn wait(&mut self, n: usize, key: u64, cost: u64) {
        self.beat(n);
        let (now, number) = (self.now, self.requests.len());
        self.requests.push(Request { machine: n, key, cost, at: now, decision: None, took: 0 });
        self.machines[n].waits.push((number, Wait::new(cost, now + 100_000_000)));
        self.poll(n);
        self.turn_by(n, now + WAKE);
    }

    pub fn pass(&mut self, by: u64) {
        self.pass_until(self.now + by);
    }

    pub fn pass_until(&mut self, end: u64) {
        while let Some(&Reverse((at, number, n))) = self.events.peek() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at.max(self.now);
            match self.what.remove(&number).expect("an event") {
                Event::Turn if self.machines[n].turn_at == at => self.turn(n),
                Event::Turn => {}
                Event::Question(key, ask) => self.execute(n, key, &ask),
                Event::Answer(grant) => {
                    let machine = &mut self.machines[n];
                    machine.seen = grant.epoch;
                    machine.driver.answered(&machine.node, &grant, at);
                    self.turn(n);
                }
            }
        }
        self.now = end;
    }

    /// The store loses its data.
    pub fn flush(&mut self) {
        self.data += 1;
        (self.record, self.keys) = (None, HashMap::new());
    }

    /// Whether every machine has had an answer from the data that the store has now.
    pub fn all_know_the_data(&self) -> bool {
        self.machines.iter().all(|machine| machine.seen == self.data)
    }

    /// Time passes in which clients take the turns of idle clients, and so send heartbeats.
    pub fn idle(&mut self, by: u64) {
        let end = self.now + by;
        while self.now < end {
            self.pass_until(end.min(self.now + 4_000_000));
            (0..self.machines.len()).for_each(|n| self.turn(n));
        }
    }

    fn event(&mut self, at: u64, n: usize, event: Event) {
        self.number += 1;
        self.what.insert(self.number, event);
        self.events.push(Reverse((at, self.number, n)));
    }

    fn turn_by(&mut self, n: usize, at: u64) {
        let machine = &mut self.machines[n];
        if at < machine.turn_at || machine.turn_at < self.now {
            machine.turn_at = at;
            self.event(at, n, Event::Turn);
        }
    }

    /// An idle client's turns, all at once, before a request.
    fn beat(&mut self, n: usize) {
        let machine = &mut self.machines[n];
        if self.now - machine.turned > 4_000_000 {
            machine.turned = self.now;
            machine.driver.collect(&machine.node, self.now);
        }
    }

    fn turn(&mut self, n: usize) {
        let now = self.now;
        let machine = &mut self.machines[n];
        (machine.turned, machine.turn_at) = (now, u64::MAX);
        machine.driver.collect(&machine.node, now);
        let mut asks = Vec::new();
        if machine.driver.is_due(now) {
            while let Some(question) = machine.driver.ask(&machine.node, now) {
                asks.push((question.key.map(<[u8]>::to_vec), question.ask));
            }
        }
        self.calls += asks.len().div_ceil(KEYS_OF_A_CALL) as u64;
        for (key, ask) in asks {
            let at = (now + self.delay()).max(self.machines[n].asked);
            self.machines[n].asked = at;
            self.questions += 1;
            self.event(at, n, Event::Question(key, ask));
        }
        self.poll(n);
        // An idle client's turns come before the next request (`beat`).
        if self.machines[n].driver.is_busy() || !self.machines[n].waits.is_empty() {
            self.turn_by(n, now + TURN);
        }
    }

    fn poll(&mut self, n: usize) {
        let (now, machine) = (self.now, &mut self.machines[n]);
        let (node, requests, admitted) = (&machine.node, &mut self.requests, &mut machine.admitted);
        machine.waits.retain_mut(|(number, wait)| {
            let request = &mut requests[*number];
            request.decision = node.poll_wait(wait, &request.key.to_le_bytes(), now);
            request.took = now - request.at;
            let is_allowed = request.decision.is_some_and(|d| d.is_allowed());
            *admitted += if is_allowed { request.cost } else { 0 };
            request.decision.is_none()
        });
    }

    fn execute(&mut self, n: usize, key: Option<Vec<u8>>, ask: &Ask) {
        let terms = self.machines[n].node.terms();
        let seen = self.machines[n].seen;
        let requester = Requester { seen, fresh: self.data, ..Requester::default() };
        let raw = self.now / 1000;
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
        let at = (self.now + self.delay()).max(self.machines[n].answered);
        self.machines[n].answered = at;
        self.event(at, n, Event::Answer(grant));
    }

    fn delay(&mut self) -> u64 {
        50_000 + self.random.below(200_000)
    }
}

/// The same requests asked of a store directly: a gcra for each key, exact.
pub struct Direct {
    tats: HashMap<u64, u64>,
    policy: Policy,
}

impl Direct {
    pub fn new(policy: &Policy) -> Direct {
        Direct { tats: HashMap::new(), policy: *policy }
    }

    pub fn check(&mut self, key: u64, now: u64) -> bool {
        let each = self.policy.period / self.policy.limit;
        let tat = self.tats.entry(key).or_insert(0);
        let next = now.max(*tat) + each;
        let admits = next <= now + each * self.policy.burst;
        if admits {
            *tat = next;
        }
        admits
    }
}
