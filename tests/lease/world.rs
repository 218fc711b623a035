//! A store and some nodes in virtual time, with a network between them that an adversary has.

use crate::common::Rng;
use tollbar::lease::bucket::{self, Ask, Epoch, Grant, GRACE};
use tollbar::lease::{Driver, Node, Options};
use tollbar::Policy;

/// What the store has: one key's TAT and the epoch.
#[derive(Clone, Copy, Default)]
struct Data {
    tat: Option<u64>,
    epoch: Option<Epoch>,
}

/// The store, with a clock of its own.
struct Store {
    data: Data,
    /// An older copy, for a restart that finds yesterday's file.
    snapshot: Data,
    run: u64,
    /// Microseconds that its clock is behind the others'.
    behind: u64,
    answers: bool,
}

/// A question or an answer on its way.
struct Parcel {
    arrives: u64,
    ask: Ask,
    seen: u64,
    answer: Option<Grant>,
}

struct Machine {
    node: Node,
    driver: Driver,
    seen: u64,
    connection: std::collections::VecDeque<Parcel>,
    connected: bool,
}

pub struct World {
    pub policy: Policy,
    options: Options,
    store: Store,
    machines: Vec<Machine>,
    pub now: u64,
    pub random: Rng,
    key: u64,
    /// What has been admitted beyond the rate, in permits times the period; it must not be above the burst.
    level: u128,
    level_at: u64,
    pub highest: u128,
    pub worst_ever: f64,
    pub admitted: u64,
    pub log: Vec<String>,
    pub verbose: bool,
}

impl World {
    pub fn new(policy: &Policy, options: &Options, seed: u64) -> World {
        let machines = (0..options.nodes).map(|n| machine(policy, options, seed ^ u64::from(n))).collect();
        World {
            policy: *policy,
            options: *options,
            store: Store { data: Data::default(), snapshot: Data::default(), run: 1, behind: 0, answers: true },
            machines,
            now: 1_000_000_000_000,
            random: Rng(seed),
            key: 0,
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
        self.key += 1;
        self.store.behind = 0;
        self.store.answers = true;
        self.store.data.tat = None;
        for _ in 0..40 {
            self.pass(200_000_000);
        }
        self.store.snapshot = self.store.data;
        (self.level, self.level_at, self.highest) = (0, self.now, 0);
    }

    /// One thing happens.
    pub fn step(&mut self) {
        match self.random.below(100) {
            0..=39 => self.burst(),
            40..=47 => self.siege(),
            48..=54 => self.hoard(),
            55..=84 => {
                let by = self.random.skewed(40_000_000);
                self.pass(by);
            }
            85..=88 => self.cut(),
            89..=90 => {
                self.say(|| "flush".into());
                self.store.data = Data::default();
            }
            91 => self.crash(None),
            92 => self.crash(Some(())),
            93 => self.store.snapshot = self.store.data,
            94 => {
                self.store.answers = !self.store.answers;
                let answers = self.store.answers;
                self.say(|| format!("answers {answers}"));
            }
            95 => {
                // Back only: what a jump forward does is said in docs/distributed.md.
                let by = self.random.skewed(2_000_000);
                self.store.behind += by;
                self.say(|| format!("clock back by {by}"));
            }
            96 => {
                // Something that is no number: a TAT as late as can be.
                self.say(|| "planted".into());
                self.store.data.tat = Some(u64::MAX);
            }
            97 => self.kill(),
            _ => self.deliver_all(),
        }
    }

    /// Some requests at once.
    fn burst(&mut self) {
        let n = self.random.below(self.machines.len() as u64) as usize;
        let (count, cost) = (1 + self.random.skewed(self.policy.burst), 1 + self.random.skewed(4));
        self.drain(n, count, cost);
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

    /// The bucket is let fill, everybody fetches leases by spending little of them, and just before they end spends all, and
    /// what has been granted meanwhile.
    fn hoard(&mut self) {
        let fill =
            (u128::from(self.policy.burst) * u128::from(self.policy.period) / u128::from(self.policy.limit)) as u64;
        self.pass(fill);
        let life = self.machines[0].node.terms().life;
        for _ in 0..3 + self.random.below(3) {
            let sip = 1 + self.random.below(3);
            for n in 0..self.machines.len() {
                self.drain(n, sip, 1);
                self.drive(n);
            }
            let by = self.random.below(life / 8);
            self.pass(by);
        }
        let wait = self.random.below(life);
        self.pass(wait);
        for _ in 0..2 + self.random.below(20) {
            for n in 0..self.machines.len() {
                self.drain(n, self.policy.burst, 1);
                self.drive(n);
            }
            let by = self.random.skewed(500_000);
            self.pass(by);
        }
    }

    fn drain(&mut self, n: usize, count: u64, cost: u64) {
        let key = self.key.to_le_bytes();
        let mut admitted = 0;
        while admitted < count * cost && self.machines[n].node.check_at(&key, self.now, cost).is_allowed() {
            admitted += cost;
        }
        if admitted != 0 {
            self.admit(admitted);
            self.say(|| format!("node {n} admitted {admitted}"));
        }
    }

    fn admit(&mut self, permits: u64) {
        let passed = u128::from(self.now - self.level_at) * u128::from(self.policy.limit);
        self.level = self.level.saturating_sub(passed) + u128::from(permits) * u128::from(self.policy.period);
        self.level_at = self.now;
        self.highest = self.highest.max(self.level);
        self.worst_ever = self.worst_ever.max(self.worst());
        self.admitted += permits;
    }

    /// Permits above what the rate has brought, at the worst instant.
    fn worst(&self) -> f64 {
        self.highest as f64 / self.policy.period as f64
    }

    pub fn is_within(&self, burst: u64) -> bool {
        self.highest <= u128::from(burst) * u128::from(self.policy.period)
    }

    /// Time passes; whoever drives is woken every few milliseconds.
    fn pass(&mut self, by: u64) {
        let end = self.now + by;
        while self.now < end {
            let turn = 1 + self.random.skewed(4_000_000);
            self.now = (self.now + turn).min(end);
            for n in 0..self.machines.len() {
                self.drive(n);
            }
            if by > 100_000_000 {
                self.now = (self.now + 50_000_000).min(end);
            }
        }
    }

    /// What the process that asks does when it is woken.
    fn drive(&mut self, n: usize) {
        let now = self.now;
        self.deliver(n);
        let machine = &mut self.machines[n];
        machine.driver.collect(&machine.node, now);
        if machine.connected && machine.driver.waiting_for(now) > 1_000_000_000 {
            machine.lose(now);
        }
        if !machine.connected {
            if !self.store.answers {
                return;
            }
            machine.connected = true;
            machine.driver.connected();
        }
        while let Some(question) = machine.driver.next(&machine.node, now) {
            let ask = question.ask;
            machine.driver.sent(&machine.node, now);
            let delay = self.random.skewed(8_000_000);
            let after = machine.connection.back().map_or(0, |parcel| parcel.arrives);
            let arrives = (now + delay).max(after);
            machine.connection.push_back(Parcel { arrives, ask, seen: machine.seen, answer: None });
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
        let store_now = self.store_now();
        for at in 0..self.machines[n].connection.len() {
            let terms = *self.machines[n].node.terms();
            let parcel = &mut self.machines[n].connection[at];
            if parcel.answer.is_none() && parcel.arrives <= now && self.store.answers {
                let answer = self.store.execute(&terms, &parcel.ask, parcel.seen, &mut self.random, store_now);
                parcel.answer = Some(answer);
                parcel.arrives = now + self.random.skewed(8_000_000);
            }
        }
        let machine = &mut self.machines[n];
        while let Some(Parcel { answer: Some(answer), .. }) = machine.connection.front().filter(|p| p.arrives <= now) {
            machine.seen = answer.epoch;
            machine.driver.answered(&machine.node, answer, now);
            machine.connection.pop_front();
        }
    }

    /// A connection is lost with everything on it.
    fn cut(&mut self) {
        let n = self.random.below(self.machines.len() as u64) as usize;
        self.say(|| format!("cut {n}"));
        let now = self.now;
        self.machines[n].lose(now);
    }

    /// The store's process ends and another begins: with nothing, or with what an old file has.
    fn crash(&mut self, old: Option<()>) {
        self.say(|| format!("crash {old:?}"));
        self.store.data = if old.is_some() { self.store.snapshot } else { Data::default() };
        self.store.run += 1;
        let now = self.now;
        self.machines.iter_mut().for_each(|machine| machine.lose(now));
    }

    /// A node is killed, with its lease, and another takes its place.
    fn kill(&mut self) {
        if self.random.below(8) != 0 {
            return;
        }
        let n = self.random.below(self.machines.len() as u64) as usize;
        self.say(|| format!("kill {n}"));
        self.machines[n] = machine(&self.policy, &self.options, self.now);
    }

    fn store_now(&self) -> u64 {
        self.now / 1000 + 1_700_000_000_000_000 - self.store.behind
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

impl Store {
    /// The script.
    fn execute(&mut self, terms: &tollbar::lease::Terms, ask: &Ask, seen: u64, random: &mut Rng, now: u64) -> Grant {
        let epoch = Epoch::meet(self.data.epoch, seen, self.run, random.next() | 1, now);
        self.data.epoch = Some(epoch);
        let stored = self.data.tat.filter(|tat| *tat > now);
        let grant = bucket::grant(terms, stored, epoch.floor(terms, now), ask, now);
        if ask.want != 0 || ask.debt != 0 {
            self.data.tat = Some(grant.tat);
        }
        Grant { epoch: epoch.id, ..grant }
    }
}

fn machine(policy: &Policy, options: &Options, seed: u64) -> Machine {
    let node = Node::private("sim", policy, options).expect("a node");
    let driver = Driver::new(64, seed).expect("memory");
    Machine { node, driver, seen: 0, connection: Default::default(), connected: false }
}

const _: () = assert!(GRACE >= 1_000_000);
