//! One limit that all threads share: allowed, denied, and half of each.

use crate::book::Book;
use crate::floor_one::{BareCas, FetchAdd, Local, ReadTsc};
use crate::keys::Random;
use crate::library::Library;
use crate::measure::{measure_for, Contender};
use crate::ours_one::{Credited, GcraAt, Ours, OursAt, Through, ThroughAt};
use crate::peers::folly::{Folly, FollyAt};
use crate::peers::governor::{Direct, DirectAt};
use crate::peers::leaky::Leaky;
use crate::peers::pingora::Pingora;
use crate::peers::ratelimit::Ratelimit;
use crate::peers::{One, Padded, Says};
use crate::process::Programs;
use crate::who::{self, Who};
use std::sync::Arc;
use std::time::Duration;

/// The verdicts of the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Allowed,
    Denied,
    /// Half of them go to a limit that allows and half to one that denies, in an order that no
    /// branch predictor knows.
    Mixed,
}

pub const WORKS: [Work; 3] = [Work::Allowed, Work::Denied, Work::Mixed];

impl Work {
    /// The name of the work in the programs of other languages.
    pub fn name(self) -> &'static str {
        match self {
            Work::Allowed => "allowed",
            Work::Denied => "denied",
            Work::Mixed => "mixed",
        }
    }

    /// The name of the work in tables.
    pub fn words(self) -> &'static str {
        match self {
            Work::Mixed => "50:50",
            other => other.name(),
        }
    }
}

/// All contenders, by one thread and by two.
pub fn rows(
    book: &mut Book,
    programs: Option<&Programs>,
    library: Option<&Library>,
    rounds: usize,
    turn: Duration,
) {
    for work in WORKS {
        for threads in [1, 2] {
            let mut all = contenders(work, library);
            all.extend(programs.into_iter().flat_map(|programs| others(programs, work)));
            measure_for(&mut all, threads, rounds, turn);
            book.add(&title(work), threads, all);
        }
    }
}

pub fn title(work: Work) -> String {
    format!("one key, {}", work.words())
}

/// The contenders in this process.
pub fn contenders(work: Work, library: Option<&Library>) -> Vec<Contender<'static>> {
    let mut all = vec![
        asked(who::TOLLBAR, work, Ours::new),
        asked(who::CREDIT, work, Credited::new),
        asked(who::TOLLBAR_AT, work, OursAt::new),
        asked(who::GCRA_AT, work, GcraAt::new),
    ];
    if let Some(library) = library {
        all.push(asked(who::TOLLBAR_C, work, |says| Through::limiter(library, says)));
        all.push(asked(who::CREDIT_C, work, |says| Through::with_credit(library, says)));
        all.push(asked(who::TOLLBAR_C_AT, work, |says| ThroughAt::new(library, says)));
    }
    all.extend([
        asked(who::GOVERNOR, work, Direct::new),
        asked(who::GOVERNOR_AT, work, DirectAt::new),
        asked(who::RATELIMIT, work, Ratelimit::new),
        asked(who::LEAKY, work, Leaky::new),
        asked(who::PINGORA, work, Pingora::new),
        asked(who::FOLLY, work, Folly::new),
        asked(who::FOLLY_AT, work, FollyAt::new),
        always(who::READ_TSC, ReadTsc),
        always(who::BARE_CAS, BareCas::default()),
        always(who::FETCH_ADD, FetchAdd::default()),
        always(who::LOCAL, Local),
    ]);
    all
}

/// The contenders in programs of their own.
fn others(programs: &Programs, work: Work) -> Vec<Contender<'_>> {
    let name = work.name();
    let mut all = vec![
        programs.go.one(who::X_TIME, "x-time", name),
        programs.go.one(who::X_TIME_AT, "x-time-at", name),
        programs.java.one(who::GUAVA, "guava", name),
        programs.python.one(who::LIMITS, "limits", name),
        programs.python.one(who::PYRATE, "pyrate", name),
    ];
    if work == Work::Allowed {
        // It waits instead of refusing.
        all.push(programs.go.one(who::UBER, "uber", name));
    }
    all
}

fn asked<T: One + Send + 'static>(
    who: Who,
    work: Work,
    make: impl Fn(Says) -> T,
) -> Contender<'static> {
    let [yes, no] = [Says::Yes, Says::No].map(|says| Padded(make(says)));
    let now = crate::ours::Ours::now();
    no.0.admit(now);
    assert!(
        yes.0.admit(now) && !no.0.admit(now),
        "{}: the contender admits what it should refuse, or refuses what it should admit",
        who.name
    );
    match work {
        Work::Allowed => Contender::numbered(who, move |_, now| yes.0.admit(now)),
        Work::Denied => Contender::numbered(who, move |_, now| no.0.admit(now)),
        Work::Mixed => {
            let mut random = Random(1);
            let order: Arc<[bool]> = (0..1 << 14).map(|_| random.next() & 1 == 0).collect();
            Contender::numbered(who, move |number, now| {
                if order[number & (order.len() - 1)] {
                    yes.0.admit(now)
                } else {
                    no.0.admit(now)
                }
            })
        }
    }
}

fn always(who: Who, one: impl One + Send + 'static) -> Contender<'static> {
    let one = Padded(one);
    Contender::numbered(who, move |_, now| one.0.admit(now))
}
