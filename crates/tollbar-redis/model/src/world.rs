//! The world: which events the model explores, how many of each, and which properties hold.

use crate::{Machine, Store, PERMIT};
use core::hash::{Hash, Hasher};
use stateright::{Model, Property};
use tollbar::Policy;
use tollbar_redis::lease::{Options, Terms};

/// How much may happen, and by which terms.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The burst in permits.
    pub burst: u64,
    /// A machine's right in permits.
    pub overdraft: u64,
    /// A step of time, in microseconds.
    pub tick: u64,
    /// Steps of time.
    pub ticks: u64,
    /// Questions of both machines.
    pub questions: u64,
    /// Connections that break.
    pub cuts: u64,
    /// Machines that are killed.
    pub kills: u64,
    /// Times that the store loses its data.
    pub losses: u64,
    /// Steps of the server's clock, of [`Limits::step`] ticks each, forward or back.
    pub steps: u64,
    /// Ticks that the server's clock steps at once.
    pub step: i64,
    /// What is wrong with the protocol.
    pub fault: Fault,
}

/// The model: limits, and the shipped terms that follow from them.
#[derive(Clone, Debug)]
pub struct Leases {
    limits: Limits,
    terms: Terms,
}

/// A fault that is planted into the protocol. The checker must find what it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The protocol as it is.
    None,
    /// The store keeps nothing of the burst back for rights.
    NoCorrection,
    /// The store charges a lease as if it were spent at once.
    ChargedEarly,
    /// A right is whole after each answer.
    AlwaysOpen,
    /// A machine takes no answer for a confirmation of its debts.
    Unconfirmed,
    /// The machines tell the store nothing about its time.
    TimeUnreported,
    /// The bound allows a killed machine its unreported debts, and not its successor's right.
    SuccessorForgotten,
}

/// One thing that happens. Machines are told apart by their place in [`World::machines`], which
/// each event may exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request that waits for nothing, on this machine.
    Check(usize),
    /// The machine sends a question that asks for so many permits.
    Send(usize, u64),
    /// The machine sends a question for a request that waits, and asks for so many permits besides.
    Wait(usize, u64),
    /// The store executes the machine's question.
    Execute(usize),
    /// The answer reaches the machine.
    Hear(usize),
    /// The machine's connection breaks, with the question or the answer on it.
    Cut(usize),
    /// The machine is killed, and another takes its place.
    Kill(usize),
    /// The store loses its data.
    Lose,
    /// The server's clock steps by so many ticks.
    Step(i64),
    /// Time passes.
    Tick,
}

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// The two machines.
    pub machines: [Machine; 2],
    /// The store.
    pub store: Store,
    /// Ticks since the beginning.
    pub tick: u64,
    /// Ticks that the server's clock is ahead of the true time.
    clock: i64,
    /// Permits admitted beyond the rate, in microseconds of the rate. The bound is about this.
    pub level: u64,
    /// What faults have added to the bound, in permits.
    pub allowed: u64,
    /// Ticks until the last answer is so old that its right may be back.
    recent: u64,
    /// How far the data's time is ahead of the true time at the least, and how much it has risen
    /// from there at the most, in microseconds.
    least: Option<i64>,
    /// See `least`.
    rise: u64,
    /// The longest way of a question to the store, in ticks.
    longest: u64,
    questions: u64,
    cuts: u64,
    kills: u64,
    losses: u64,
    steps: u64,
    /// Ticks that steps back have taken.
    back: u64,
}

/// The machines' steady clock at the beginning, in microseconds, and the server's clock.
const BEGIN: u64 = 1 << 40;
const SERVER: u64 = 1 << 50;
/// The longest that a question is in flight, in microseconds. Then the client breaks the
/// connection.
const FLIGHT: u64 = 1_000_000;
/// More than the unit of times in a key's line, in microseconds.
const ROUNDED: u64 = 1_000;

impl Limits {
    /// The usual world: as many ticks and questions as given, and nothing that breaks.
    pub fn new(burst: u64, overdraft: u64, ticks: u64, questions: u64) -> Limits {
        Limits {
            burst,
            overdraft,
            tick: PERMIT,
            ticks,
            questions,
            cuts: 0,
            kills: 0,
            losses: 0,
            steps: 0,
            step: 0,
            fault: Fault::None,
        }
    }

    /// The model of this world.
    pub fn model(self) -> Leases {
        let terms = self.terms();
        Leases { limits: self, terms }
    }

    /// The shipped terms: one permit a second.
    fn terms(&self) -> Terms {
        let policy: Policy =
            format!("1/s burst {}", self.burst).parse().expect("a policy of the model");
        let options = Options {
            overdraft: self.overdraft,
            exact: self.fault != Fault::NoCorrection,
            // A little longer than two ticks, so that a lease can be spent two ticks after it was
            // asked for.
            life: 1_001_000_000,
            ..Options::new(2)
        };
        // The store's record has these terms.
        Terms { version: 1, ..Terms::new(&policy, &options).expect("terms of the model") }
    }

    /// Whether the store can lose data or step its clock.
    fn keeps_time(&self) -> bool {
        self.losses + self.steps != 0
    }
}

impl Leases {
    /// The ticks after which a right comes back at the earliest, rounded up.
    fn recent(&self) -> u64 {
        self.terms.cap / self.limits.tick + 1
    }

    /// The most ticks for which a question is in flight: a second. Then the client breaks the
    /// connection.
    fn flight_most(&self) -> u64 {
        FLIGHT.div_ceil(self.limits.tick)
    }

    /// The machines' steady clock, in nanoseconds.
    fn now(&self, world: &World) -> u64 {
        (BEGIN + world.tick * self.limits.tick) * 1000
    }

    /// The server's clock, in microseconds.
    fn raw(&self, world: &World) -> u64 {
        let tick = self.limits.tick;
        (SERVER + world.tick * tick).saturating_add_signed(world.clock * tick as i64)
    }

    /// The most permits that a machine asks for. Where the cap leaves a lease no life, none.
    fn largest_want(&self) -> u64 {
        match self.terms.cap > PERMIT {
            true => self.terms.most,
            false => 0,
        }
    }

    /// Whether the key's bucket has been full for so long that each machine knows it. A machine
    /// counts from the answer, and rounds up.
    fn is_idle(&self, world: &World) -> bool {
        let quiet = world.machines.iter().all(Machine::is_quiet);
        quiet && world.recent == 0 && world.store.is_full(self.raw(world) - FLIGHT - ROUNDED)
    }

    /// Whether each machine admits the first request of a key that is idle: by its right, or by the
    /// answer of the store.
    fn first_request_passes(&self, world: &World) -> bool {
        let (terms, now) = (&self.terms, self.now(world));
        [0, 1].into_iter().all(|n| {
            let mut world = world.clone();
            if world.machines[n].admits(terms, now) {
                return true;
            }
            if terms.overdraft != 0 || world.machines[n].is_firm(now) {
                return false;
            }
            world.machines[n].waits = true;
            world.machines[n].send(terms, 0, now, self.limits.fault);
            self.execute(&mut world, n);
            world.machines[n].hear(terms, now, self.limits.fault)
        })
    }

    fn execute(&self, world: &mut World, n: usize) {
        let (raw, now, tick) = (self.raw(world), self.now(world), self.limits.tick);
        let Some(flight) = world.machines[n].flight.as_mut() else { return };
        let (sent, fault) = (flight.sent, self.limits.fault);
        let grant = world.store.execute(&self.terms, &flight.ask, flight.seen, raw, fault);
        flight.answer = Some(grant);
        if self.limits.steps != 0 {
            world.longest = world.longest.max((now - sent) / 1000 / tick);
            let error = grant.now as i64 - (now / 1000) as i64;
            let least = world.least.map_or(error, |least| least.min(error));
            world.least = Some(least);
            world.rise = world.rise.max((error - least) as u64);
        }
    }
}

impl World {
    fn new() -> World {
        World {
            machines: [Machine::default(), Machine::default()],
            store: Store::new(1),
            tick: 0,
            clock: 0,
            level: 0,
            allowed: 0,
            recent: 0,
            least: None,
            rise: 0,
            longest: 0,
            questions: 0,
            cuts: 0,
            kills: 0,
            losses: 0,
            steps: 0,
            back: 0,
        }
    }

    /// Without what decides nothing. The two machines are alike, so the world with both exchanged
    /// is the same.
    fn tidied(mut self, leases: &Leases) -> World {
        let (now, keeps_time) = (leases.now(&self), leases.limits.keeps_time());
        self.machines.iter_mut().for_each(|machine| machine.tidy(now, keeps_time));
        let number = |machine: &Machine| {
            let mut hasher = std::hash::DefaultHasher::new();
            machine.hash(&mut hasher);
            hasher.finish()
        };
        if number(&self.machines[0]) > number(&self.machines[1]) {
            self.machines.swap(0, 1);
        }
        self
    }
}

impl Model for Leases {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        // Each machine has had an answer: before that its circuit is not closed.
        let mut world = World::new();
        for n in [0, 1] {
            let now = self.now(&world);
            world.machines[n].send(&self.terms, 0, now, self.limits.fault);
            self.execute(&mut world, n);
            world.machines[n].hear(&self.terms, now, self.limits.fault);
        }
        vec![world.tidied(self)]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        for (n, machine) in world.machines.iter().enumerate() {
            events.push(Event::Check(n));
            match &machine.flight {
                None if world.questions < self.limits.questions => {
                    let wants = 0..=self.largest_want();
                    events.extend(wants.clone().map(|want| Event::Send(n, want)));
                    events.extend(wants.map(|want| Event::Wait(n, want)));
                }
                None => {}
                Some(flight) => {
                    events.push(match flight.answer {
                        None => Event::Execute(n),
                        Some(_) => Event::Hear(n),
                    });
                    if world.cuts < self.limits.cuts {
                        events.push(Event::Cut(n));
                    }
                }
            }
            if world.kills < self.limits.kills {
                events.push(Event::Kill(n));
            }
        }
        if world.losses < self.limits.losses {
            events.push(Event::Lose);
        }
        if world.steps < self.limits.steps {
            events.extend([Event::Step(self.limits.step), Event::Step(-self.limits.step)]);
        }
        let oldest =
            world.machines.iter().filter_map(|machine| Some(machine.flight.as_ref()?.sent));
        let age = oldest.min().map_or(0, |sent| (self.now(world) - sent) / 1000 / self.limits.tick);
        if world.tick < self.limits.ticks && age < self.flight_most() {
            events.push(Event::Tick);
        }
    }

    fn next_state(&self, before: &World, event: Event) -> Option<World> {
        let (terms, mut world) = (&self.terms, before.clone());
        let now = self.now(&world);
        match event {
            Event::Check(n) => {
                if !world.machines[n].admits(terms, now) {
                    return None;
                }
                world.level += PERMIT;
            }
            Event::Send(n, want) => {
                let machine = &mut world.machines[n];
                // A question about nothing is worth its place only as a heartbeat, which tells the
                // machine the store's time.
                if want == 0 && machine.debt == 0 && self.limits.steps == 0 {
                    return None;
                }
                machine.send(terms, want, now, self.limits.fault);
                world.questions += 1;
            }
            Event::Wait(n, want) => {
                // A request that is decided at once is a check.
                let mut machine = world.machines[n].clone();
                if machine.admits(terms, now) || machine.is_firm(now) {
                    return None;
                }
                world.machines[n].waits = true;
                world.machines[n].send(terms, want, now, self.limits.fault);
                world.questions += 1;
            }
            Event::Execute(n) => self.execute(&mut world, n),
            Event::Hear(n) => {
                if world.machines[n].hear(terms, now, self.limits.fault) {
                    world.level += PERMIT;
                }
            }
            Event::Cut(n) => {
                world.machines[n].lose(now);
                world.cuts += 1;
            }
            Event::Kill(n) => {
                let machine = core::mem::take(&mut world.machines[n]);
                let unreported = machine.debt + machine.flight.map_or(0, |flight| flight.ask.debt);
                world.allowed += match self.limits.fault {
                    Fault::SuccessorForgotten => unreported,
                    _ => self.limits.overdraft,
                };
                world.kills += 1;
            }
            Event::Lose => {
                world.losses += 1;
                world.store = Store::new(1 + world.losses);
                world.allowed += self.limits.burst;
            }
            Event::Step(by) => {
                world.clock += by;
                world.back += (-by).max(0) as u64;
                world.steps += 1;
            }
            Event::Tick => {
                world.tick += 1;
                world.level = world.level.saturating_sub(self.limits.tick);
            }
        }
        world.recent = match event {
            Event::Hear(_) => self.recent(),
            Event::Tick => world.recent.saturating_sub(1),
            _ => world.recent,
        };
        Some(world.tidied(self))
    }

    fn properties(&self) -> Vec<Property<Leases>> {
        vec![
            Property::<Leases>::always("the bound", |leases, world| {
                world.level <= (leases.limits.burst + world.allowed) * PERMIT + world.rise
            }),
            Property::<Leases>::always("an idle key's first request passes", |leases, world| {
                let faults = world.steps + world.losses;
                faults != 0 || !leases.is_idle(world) || leases.first_request_passes(world)
            }),
            Property::<Leases>::always("the data's time", |leases, world| {
                // The slack, the longest way, and what steps back have withheld.
                let most = leases.terms.slack() + (world.longest + world.back) * leases.limits.tick;
                world.rise <= most
            }),
            // A search that stays below the bound would not see a small violation.
            Property::<Leases>::sometimes("the whole burst", |leases, world| {
                world.level >= leases.limits.burst * PERMIT
            }),
            // The second property is not about the beginning alone.
            Property::<Leases>::sometimes("idle again", |leases, world| {
                world.questions != 0 && leases.is_idle(world)
            }),
        ]
    }
}
