//! Some nodes in virtual time, a store, and a network between them that an adversary has.
#![allow(dead_code)] // each test program uses a part of it

use super::common::Rng;
use super::store::{Data, Store};
use tollbar::Policy;
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::Grant;
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::{Circuit, Driver, Node, Options, Terms, Wait};

/// What the adversary may do besides: to the store's clock, to single keys, to machines' terms.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Powers {
    /// Steps of the server's clock.
    pub clock: bool,
    /// Machines are replaced by others.
    pub kills: bool,
    /// Data are lost: flushed, or with the process.
    pub losses: bool,
    /// Requests wait for the store.
    pub waits: bool,
    /// The limit's terms are changed, to those of any kind.
    pub changes: bool,
}

/// A question or an answer on its way.
struct Parcel {
    arrives: u64,
    ask: Ask,
    /// Whether the question is about the key.
    of_key: bool,
    terms: Terms,
    from: Requester,
    answer: Option<Grant>,
}

struct Machine {
    node: Node,
    driver: Driver,
    /// The data's name and time in its last answers.
    seen: u64,
    heard: u64,
    connection: std::collections::VecDeque<Parcel>,
    connected: bool,
    /// Whether it has asked on this connection.
    asked: bool,
    waits: Vec<(u64, Wait)>,
}

pub struct World {
    pub policy: Policy,
    /// Terms of the limit. All machines are configured with the first, and one that replaces
    /// another with any.
    kinds: Vec<(Policy, Options)>,
    pub powers: Powers,
    pub store: Store,
    machines: Vec<Machine>,
    pub now: u64,
    pub random: Rng,
    key: u64,
    /// When the schedule began.
    pub began: u64,
    /// Permits that the killed machines of the schedule may have admitted without a report.
    lost: u64,
    /// Losses of data in the schedule.
    pub losses: u32,
    /// Permits that were admitted since the old files with which the store was started again. A
    /// machine that has heard of their charges shows that these are lost, and others may ask first.
    pub rolled_back: f64,
    /// What had been admitted when the store last wrote its file.
    copied: u64,
    /// What has been admitted beyond the rate, in permits times the period; it must not be above
    /// the burst.
    level: u128,
    level_at: u64,
    pub highest: u128,
    pub worst_ever: f64,
    pub admitted: u64,
    pub log: Vec<String>,
    pub verbose: bool,
}

/// The longest way through the network, one way.
pub const DELAY: u64 = 8_000_000;

impl World {
    /// As many machines as the fewest that a kind of them allows.
    pub fn new(kinds: &[(Policy, Options)], powers: Powers, seed: u64) -> World {
        let nodes = kinds.iter().map(|(_, options)| options.nodes).min().expect("a kind");
        World {
            policy: kinds[0].0,
            kinds: kinds.to_vec(),
            powers,
            store: Store::new(),
            machines: (0..nodes).map(|n| machine(&kinds[0], seed ^ u64::from(n))).collect(),
            now: 1_000_000_000_000,
            random: Rng(seed),
            key: 0,
            began: 0,
            lost: 0,
            losses: 0,
            rolled_back: 0.0,
            copied: 0,
            level: 0,
            level_at: 0,
            highest: 0,
            worst_ever: 0.0,
            admitted: 0,
            log: Vec::new(),
            verbose: false,
        }
    }

    /// The adversary begins anew: another key, everybody connected, all that was owed long ago.
    pub fn begin(&mut self) {
        self.log.clear();
        self.machines.iter_mut().for_each(|machine| machine.waits.clear());
        self.key += 1;
        self.store.answers = true;
        self.store.frozen = 0;
        self.store.data.key = None;
        for _ in 0..10 {
            self.pass(200_000_000);
        }
        // Until no key counts as empty any more.
        self.leap(self.refill() + 3_000_000_000);
        self.pass(400_000_000);
        self.copy();
        self.rolled_back = 0.0;
        self.store.error.begin();
        (self.level, self.level_at, self.highest, self.began) = (0, self.now, 0, self.now);
        (self.lost, self.losses, self.store.cuts) = (0, 0, 0);
    }

    /// One thing happens.
    pub fn step(&mut self) {
        match self.random.below(100) {
            0..=36 => self.burst(),
            37..=45 => self.siege(),
            46..=51 => self.hoard(self.machines.len()),
            52 => self.ambush(),
            53..=82 => self.wait(),
            83..=86 => self.cut(),
            87..=89 if self.powers.losses => self.lose(),
            90 if self.powers.losses => self.forget(),
            91 => self.copy(),
            92 => {
                self.store.answers = !self.store.answers;
                let answers = self.store.answers;
                self.say(|| format!("answers {answers}"));
            }
            93 => {
                self.say(|| "planted".into());
                self.plant();
            }
            94 if self.machines.len() == 1 => {
                // With more machines one that did not ask last would be granted what another had.
                self.say(|| "evicted".into());
                self.store.data.key = None;
            }
            94..=95 if self.powers.kills => self.kill(),
            96..=97 if self.powers.clock => self.step_clock(),
            96..=97 if self.powers.changes => {
                let kind = self.random.below(self.kinds.len() as u64) as usize;
                self.set(kind);
            }
            _ => self.deliver_all(),
        }
    }

    /// Everybody takes what there is for `nanos`; what was admitted in each tenth of a second.
    pub fn flood(&mut self, nanos: u64, mut also: impl FnMut(&mut World, u64)) -> Vec<u64> {
        let (begin, mut tenths) = (self.now, vec![0; (nanos / 100_000_000) as usize]);
        while self.now < begin + nanos {
            let at = self.now - begin;
            also(self, at);
            let before = self.admitted;
            for n in 0..self.machines.len() {
                self.drain(n, self.policy.burst, 1);
                self.drive(n);
            }
            tenths[(at / 100_000_000) as usize] += self.admitted - before;
            self.now += 1_000_000;
        }
        tenths
    }

    /// Nodes that take their store for one that answers as it should.
    pub fn closed(&self) -> usize {
        self.machines
            .iter()
            .filter(|machine| machine.node.circuit(self.now) == Circuit::Closed)
            .count()
    }

    /// What is said of the store, by any of them.
    pub fn notices(&self) -> Vec<&'static str> {
        self.machines.iter().filter_map(|machine| machine.driver.notice(&machine.node)).collect()
    }

    /// The limit's terms become those of the numbered kind, if the store takes the change.
    pub fn set(&mut self, kind: usize) {
        if !self.store.answers {
            return;
        }
        let (policy, options) = &self.kinds[kind];
        let version = self.store.data.record.map_or(0, |record| record.terms.version) + 1;
        let terms = Terms { version, ..Terms::new(policy, options).expect("terms") };
        let fresh = self.random.next() | 1;
        let requester = Requester { fresh, first: true, ..Requester::default() };
        let now = self.now;
        let answer = self.store.execute(&terms, &Ask::default(), &requester, now);
        self.say(|| format!("terms of kind {kind}: {:?}", answer.terms));
    }

    /// What smaller bursts may have given away in the schedule: what they have cut from the larger.
    pub fn forgiven(&self) -> f64 {
        let bursts = self.kinds.iter().map(|(policy, _)| policy.burst);
        let difference = bursts.clone().max().unwrap_or(0) - bursts.min().unwrap_or(0);
        (self.store.cuts * difference) as f64
    }

    /// How many machines know the store's terms.
    pub fn informed(&self) -> usize {
        let terms = self.store.data.record.map(|record| record.terms.version);
        let knows = |machine: &&Machine| Some(machine.node.terms().version) == terms;
        self.machines.iter().filter(knows).count()
    }

    /// Another program writes something that is no number: a TAT as late as can be.
    pub fn plant(&mut self) {
        let key = Stored { tat: u64::MAX, version: u64::MAX, until: 0 };
        (self.store.data.key, self.store.data.expires) = (Some(key), u64::MAX);
    }

    /// One machine goes and another comes, with the numbered kind of terms.
    pub fn replace(&mut self, n: usize, kind: usize) {
        self.say(|| format!("machine {n} is replaced by one of kind {kind}"));
        // It may not know the latest terms.
        self.lost += self
            .kinds
            .iter()
            .map(|(policy, options)| Terms::new(policy, options).expect("terms").overdraft)
            .max()
            .unwrap_or(0);
        self.machines[n] = machine(&self.kinds[kind], self.now);
    }

    /// What killed machines add to the bound: each its right.
    pub fn unreported(&self) -> f64 {
        self.lost as f64
    }

    /// Permits above what the rate has brought, at the worst instant.
    pub fn worst(&self) -> f64 {
        self.highest as f64 / self.policy.period as f64
    }

    /// Nanoseconds in which an empty bucket fills.
    pub fn refill(&self) -> u64 {
        let fill = |policy: &Policy| {
            u128::from(policy.burst) * u128::from(policy.period) / u128::from(policy.limit)
        };
        self.kinds.iter().map(|(policy, _)| fill(policy) as u64).max().unwrap_or(0)
    }

    /// Some requests at once.
    fn burst(&mut self) {
        let n = self.random.below(self.machines.len() as u64) as usize;
        let (count, cost) = (1 + self.random.skewed(self.policy.burst), 1 + self.random.skewed(4));
        if self.powers.waits && self.random.one_in(2) {
            let end = self.now + self.random.skewed(1_000_000_000);
            let waits = (0..count).map(|_| (cost, Wait::new(cost, end)));
            self.machines[n].waits.extend(waits);
            self.poll(n);
        } else {
            self.drain(n, count, cost);
        }
        self.drive(n);
    }

    /// Everybody takes what there is, for a while: that is how leases grow.
    fn siege(&mut self) {
        for _ in 0..self.random.below(40) {
            for n in 0..self.machines.len() {
                self.drain(n, self.policy.burst, 1);
                self.drive(n);
            }
            let by = self.random.skewed(3_000_000);
            self.pass(by);
        }
    }

    /// The bucket is let fill, the first machines fetch leases by spending little of them, and just
    /// before they end spend all, and what has been granted meanwhile.
    fn hoard(&mut self, machines: usize) {
        self.leap(self.refill());
        let life = self.machines[0].node.terms().life;
        for _ in 0..3 + self.random.below(3) {
            let sip = 1 + self.random.below(3);
            for n in 0..machines {
                self.drain(n, sip, 1);
                self.drive(n);
            }
            let by = self.random.below(life / 8);
            self.pass(by);
        }
        let wait = self.random.below(life);
        self.pass(wait);
        for _ in 0..2 + self.random.below(20) {
            for n in 0..machines {
                self.drain(n, self.policy.burst, 1);
                self.drive(n);
            }
            let by = self.random.skewed(500_000);
            self.pass(by);
        }
    }

    /// One machine takes what the store has, and then the others use their rights, of which the
    /// store knows nothing.
    pub fn ambush(&mut self) {
        self.hoard(1);
        for _ in 0..self.random.below(60) {
            self.drain(0, self.policy.burst, 1);
            self.drive(0);
            let by = self.random.skewed(1_000_000);
            self.pass(by);
        }
        for n in 0..self.machines.len() {
            self.drain(n, self.policy.burst, 1);
        }
    }

    /// Mostly some milliseconds; at times longer than new data wait for those who knew others.
    fn wait(&mut self) {
        let most = if self.random.one_in(6) { 3_000_000_000 } else { 40_000_000 };
        let by = self.random.skewed(most);
        self.pass(by);
    }

    fn drain(&mut self, n: usize, count: u64, cost: u64) {
        let key = self.key.to_le_bytes();
        let mut admitted = 0;
        while admitted < count * cost
            && self.machines[n].node.check_at(&key, self.now, cost).is_allowed()
        {
            admitted += cost;
        }
        if admitted != 0 {
            self.admit(admitted);
            self.say(|| format!("node {n} admitted {admitted}"));
        }
    }

    /// Requests that wait look whether they are decided.
    fn poll(&mut self, n: usize) {
        let (key, now, machine) = (self.key.to_le_bytes(), self.now, &mut self.machines[n]);
        let (node, mut admitted) = (&machine.node, 0);
        machine.waits.retain_mut(|(cost, wait)| match node.poll_wait(wait, &key, now) {
            Some(decision) => {
                admitted += if decision.is_allowed() { *cost } else { 0 };
                false
            }
            None => true,
        });
        if admitted != 0 {
            self.admit(admitted);
            self.say(|| format!("node {n} admitted {admitted} that waited"));
        }
    }

    fn admit(&mut self, permits: u64) {
        let passed = u128::from(self.now - self.level_at) * u128::from(self.policy.limit);
        self.level = self.level.saturating_sub(passed)
            + u128::from(permits) * u128::from(self.policy.period);
        self.level_at = self.now;
        self.highest = self.highest.max(self.level);
        self.worst_ever = self.worst_ever.max(self.worst());
        self.admitted += permits;
    }

    /// Time passes; whoever drives is woken every few milliseconds.
    pub fn pass(&mut self, by: u64) {
        let end = self.now + by;
        while self.now < end {
            let turn = 1 + self.random.skewed(4_000_000);
            self.now = (self.now + turn).min(end);
            for n in 0..self.machines.len() {
                self.drive(n);
            }
            let silent = self.machines.iter().all(|machine| machine.connection.is_empty());
            if by > 100_000_000 && silent {
                self.now = (self.now + 50_000_000).min(end);
            }
        }
    }

    /// A time in which nobody asks for anything, and nothing is on its way.
    fn leap(&mut self, by: u64) {
        if by > 1_000_000_000 {
            self.pass(50_000_000);
            self.now += by - 100_000_000;
            self.pass(50_000_000);
        } else {
            self.pass(by);
        }
    }

    /// What the process that asks does when it is woken.
    fn drive(&mut self, n: usize) {
        let now = self.now;
        self.deliver(n);
        self.poll(n);
        let machine = &mut self.machines[n];
        machine.driver.collect(&machine.node, now);
        if machine.connected && machine.driver.waiting_for(now) > 1_000_000_000 {
            machine.lose(now);
        }
        if !machine.connected {
            if !self.store.answers {
                return;
            }
            (machine.connected, machine.asked) = (true, false);
            machine.driver.connected();
        }
        if !machine.driver.is_due(now) {
            return;
        }
        while let Some(question) = machine.driver.ask(&machine.node, now) {
            let (ask, of_key, terms) = (question.ask, question.key.is_some(), machine.node.terms());
            let fresh = self.random.next() | 1;
            let from = Requester {
                seen: machine.seen,
                heard: machine.heard,
                first: !std::mem::replace(&mut machine.asked, true),
                fresh,
            };
            let delay = self.random.skewed(DELAY);
            let after = machine.connection.back().map_or(0, |parcel| parcel.arrives);
            let arrives = (now + delay).max(after);
            let parcel = Parcel { arrives, ask, of_key, terms, from, answer: None };
            machine.connection.push_back(parcel);
        }
    }

    fn deliver_all(&mut self) {
        for n in 0..self.machines.len() {
            self.deliver(n);
        }
    }

    /// What has arrived is executed, and what has been answered arrives.
    fn deliver(&mut self, n: usize) {
        let now = self.now;
        for at in 0..self.machines[n].connection.len() {
            let parcel = &mut self.machines[n].connection[at];
            if parcel.answer.is_none() && parcel.arrives <= now && self.store.answers {
                let Parcel { terms, ask, from, .. } = &parcel;
                parcel.answer = Some(match parcel.of_key {
                    true => self.store.execute(terms, ask, from, now),
                    false => self.store.probe(terms, ask, from, now),
                });
                parcel.arrives = now + self.random.skewed(DELAY);
            }
        }
        let machine = &mut self.machines[n];
        while let Some(Parcel { answer: Some(answer), .. }) =
            machine.connection.front().filter(|p| p.arrives <= now)
        {
            let known = if machine.seen == answer.epoch { machine.heard } else { 0 };
            (machine.seen, machine.heard) = (answer.epoch, known.max(answer.now));
            machine.driver.answered(&machine.node, answer, now);
            machine.connection.pop_front();
        }
    }

    /// Data are lost, with the process or without.
    fn lose(&mut self) {
        self.losses += 1;
        match self.random.below(4) {
            0 => self.crash(None),
            1 => self.crash(Some(())),
            _ => {
                self.say(|| "flush".into());
                self.store.data = Data::default();
            }
        }
    }

    /// All is taken and then lost, and a machine that has no memory of it asks when the grace is
    /// over. Another such may be the first to be met by the new data.
    fn forget(&mut self) {
        self.siege();
        if self.random.one_in(2) && self.powers.kills {
            self.kill();
        }
        self.lose();
        let by = 1 + self.random.below(3_000_000_000);
        self.pass(by);
        if self.powers.kills {
            self.kill();
        }
        self.siege();
    }

    /// The store writes a file.
    fn copy(&mut self) {
        self.store.snapshot = self.store.data;
        self.copied = self.admitted;
    }

    /// A connection is lost with everything on it.
    fn cut(&mut self) {
        let n = self.random.below(self.machines.len() as u64) as usize;
        self.say(|| format!("cut {n}"));
        let now = self.now;
        self.machines[n].lose(now);
    }

    /// The store's process ends and another begins: with nothing, or with what an old file has.
    pub fn crash(&mut self, old: Option<()>) {
        self.say(|| format!("crash {old:?}"));
        self.store.data = if old.is_some() { self.store.snapshot } else { Data::default() };
        if old.is_some() {
            self.rolled_back += (self.admitted - self.copied) as f64;
        }
        let now = self.now;
        self.machines.iter_mut().for_each(|machine| machine.lose(now));
    }

    /// A node is killed, with its lease, and another takes its place, of any kind. Not while the
    /// data's loss would be forgotten with it: those that are left know the data that are there.
    fn kill(&mut self) {
        let n = self.random.below(self.machines.len() as u64) as usize;
        let data = self.store.data.record.map_or(0, |record| record.id);
        let mut left = self.machines.iter().enumerate().filter(|(other, _)| *other != n);
        if data == 0 || !left.all(|(_, machine)| machine.seen == data) {
            return;
        }
        let kind = self.random.below(self.kinds.len() as u64) as usize;
        self.replace(n, kind);
    }

    /// A step, some steps, or all of a sudden another year.
    fn step_clock(&mut self) {
        let by = match self.random.below(8) {
            0..=3 => self.random.pick(&[200_000, 2_000_000, 60_000_000, 3_600_000_000]),
            4..=6 => self.random.skewed(5_000_000) as i64,
            _ => {
                let year = 1 + self.random.below(100_000_000);
                self.store.set_clock(self.now, year);
                self.say(|| "1970".into());
                return;
            }
        };
        let by = if self.random.one_in(2) { by } else { -by };
        self.store.step_clock(self.now, by);
        self.say(|| format!("clock stepped by {by}"));
    }

    fn say(&mut self, what: impl FnOnce() -> String) {
        if self.verbose {
            let line = format!("{:>12.3} ms  {}", self.now as f64 / 1e6, what());
            self.log.push(line);
        }
    }
}

impl Machine {
    fn lose(&mut self, now: u64) {
        self.connection.clear();
        self.connected = false;
        self.driver.dropped(&self.node, now);
    }
}

fn machine((policy, options): &(Policy, Options), seed: u64) -> Machine {
    let node = Node::private("sim", policy, options).expect("a node");
    let driver = Driver::new(64, seed).expect("memory");
    let connection = Default::default();
    Machine {
        node,
        driver,
        seen: 0,
        heard: 0,
        connection,
        connected: false,
        asked: false,
        waits: Vec::new(),
    }
}
