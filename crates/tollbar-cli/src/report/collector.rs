//! Collects the report's figures, request by request.

use super::limits::Limits;
use super::paths::{Paths, Top, NONE};
use super::series::{Axis, Strip};
use crate::problem::Result;
use crate::replay::ask::Ask;
use crate::replay::engine::Engine;
use crate::replay::fullest::Fullest;
use crate::replay::run::Run;
use crate::replay::tables::Tables;
use tollbar::policy::Opt;
use tollbar::{Kind, Policy, Verdict};

/// The bursts that are tried beside the policy's own.
const BURSTS: [u64; 3] = [5, 10, 20];

/// Everything that is collected. About 1 KB for each client.
pub struct Collector {
    /// The first policy's limit under other algorithms.
    pub algorithms: Vec<Run>,
    /// The first policy's rate with other bursts.
    pub bursts: Vec<Run>,
    /// The limits that might be set.
    pub limits: Limits,
    /// The time axis of all series.
    pub axis: Axis,
    /// All requests, with the refusals of the first policy.
    pub all: Strip,
    /// Refusals of each policy.
    pub refused: Vec<Strip>,
    /// For each client, the same as `all`.
    pub strips: Vec<Strip>,
    /// For each client that the first policy refused, what it asked for.
    pub tops: Vec<Option<Box<Top>>>,
    /// The names of paths.
    pub paths: Paths,
    /// Clients whose first user agent says that it is a robot.
    pub robots: Vec<bool>,
    /// The most requests of one client in a minute.
    pub busiest: Fullest,
    /// Bit n: a request stands in minute n of an hour.
    pub minutes: u64,
    /// Whether every time is a whole second.
    pub whole_seconds: bool,
    verdicts: Vec<Verdict>,
}

impl Collector {
    /// A collector for these policies. The first one is compared with its variants.
    pub fn new(policies: &[Policy]) -> Result<Collector> {
        let first = policies[0];
        let mut algorithms = Vec::new();
        for kind in [
            Kind::Gcra,
            Kind::Interval,
            Kind::FixedWindow,
            Kind::WeightedWindow,
            Kind::SlidingWindow,
            Kind::SlidingLog,
        ] {
            let plain = Policy::new(first.limit, first.period).with_kind(kind);
            // Windows have no burst: their limit is all that they admit at once.
            push(
                &mut algorithms,
                if kind.takes(Opt::Burst) { plain.with_burst(first.burst) } else { plain },
            );
        }
        let mut bursts = Vec::new();
        for burst in BURSTS {
            push(&mut bursts, Policy::new(first.limit, first.period).with_burst(burst));
        }
        Ok(Collector {
            algorithms,
            bursts,
            limits: Limits::new(),
            axis: Axis::new(),
            all: Strip::default(),
            refused: vec![Strip::default(); policies.len()],
            strips: Vec::new(),
            tops: Vec::new(),
            paths: Paths::new(),
            robots: Vec::new(),
            busiest: Fullest::new(60_000_000_000),
            minutes: 0,
            whole_seconds: true,
            verdicts: vec![Verdict::Allowed; policies.len()],
        })
    }

    /// The number of a path. The call also checks whether a new client's agent is a robot's.
    pub fn path(&mut self, key: u32, is_new: bool, path: &[u8], agent: &[u8]) -> u32 {
        if is_new {
            debug_assert_eq!(self.robots.len(), key as usize);
            self.robots.push(is_robot(agent));
        }
        self.paths.number(path)
    }

    /// Adds the decision of policy `n` on the next request. [`Collector::request`] ends the
    /// request.
    #[inline]
    pub fn verdict(&mut self, n: usize, verdict: Verdict) {
        self.verdicts[n] = verdict;
    }

    /// A request on which all policies have decided.
    pub fn request(&mut self, tables: &Tables, ask: Ask<'_>, path: u32) -> Result<()> {
        for run in self.algorithms.iter_mut().chain(&mut self.bursts) {
            let _ = run.admit(tables, ask)?;
        }
        self.limits.request(ask.number, ask.now, ask.cost);
        let times = self.axis.reach(ask.now);
        if times > 1 {
            self.all.widen(times);
            self.refused.iter_mut().chain(&mut self.strips).for_each(|strip| strip.widen(times));
        }
        let bin = self.axis.bin(ask.now);
        let is_refused = self.verdicts[0] != Verdict::Allowed;
        self.all.add(bin, is_refused);
        for (strip, verdict) in self.refused.iter_mut().zip(&self.verdicts) {
            if *verdict != Verdict::Allowed {
                strip.add(bin, true);
            }
        }
        let key = ask.number as usize;
        if key >= self.strips.len() {
            self.strips.resize_with(key + 1, Strip::default);
            self.tops.resize_with(key + 1, || None);
        }
        self.strips[key].add(bin, is_refused);
        if is_refused && path != NONE {
            self.tops[key].get_or_insert_with(Box::default).add(path);
        }
        self.busiest.add(ask.now, ask.number, 1);
        self.minutes |= 1 << (ask.now / 60_000_000_000 % 60);
        self.whole_seconds &= ask.now % 1_000_000_000 == 0;
        Ok(())
    }
}

/// A policy that a limiter can have; others are left out of the comparison.
fn push(runs: &mut Vec<Run>, policy: Policy) {
    if let Ok(engine) = Engine::new(&policy) {
        runs.push(Run::new(policy, engine));
    }
}

fn is_robot(agent: &[u8]) -> bool {
    let agent = agent.to_ascii_lowercase();
    [&b"bot"[..], b"crawl", b"spider", b"slurp"]
        .iter()
        .any(|word| memchr::memmem::find(&agent, word).is_some())
}
