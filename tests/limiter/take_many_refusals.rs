//! E6: a refused request of several limits charges nothing, and its answer is true, whatever the
//! limits are and however often one is named.

use crate::common::{has_each, rounds, Rng};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::take_many::{take_many_at, Limit, Taken};
use tollbar::{Decision, Kind, Limiter, Policy, Shared, State, Verdict, NEVER};

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_000_000_007;

/// Policies of every kind, with and without classes.
const TEXTS: [&str; 22] = [
    "10/s burst 10 reserve a 5 b 0",
    "10/s burst 10 algo interval reserve a 5 b 0",
    "7/s burst 10 reserve a 5 b 1",
    "10/s burst 10 ban 2s after 3 reserve a 5 b 0",
    "10/s algo fixed-window reserve a 5 b 0",
    "10/s algo weighted-window reserve a 4 b 1",
    "100/forever reserve a 5 b 0",
    "10/s curve ln",
    "10/s burst 10 refill 0:50% 50%:100%",
    "10/s reserve a 5 b 0; 100/min",
    "10/s burst 8 init 0",
    "10/s burst 8 init 3",
    "6/s curve step",
    "7/s algo interval anchor first",
    "10/s burst 4 algo pacer",
    "10/s borrow",
    "20/s burst 6 algo warm-up warm 500ms",
    "9/s algo sliding-window",
    "9/s algo sliding-window segments 4 mode strict",
    "9/s algo sliding-log",
    "9/s algo fixed-window count rejected",
    "0/s",
];
const CLASSES: [Option<&str>; 3] = [None, Some("a"), Some("b")];

/// A limiter of each policy, and a table twice: through two views of its file.
struct World {
    policies: Vec<Policy>,
    limiters: Vec<Limiter<State>>,
    views: Vec<[Table; 2]>,
}

/// A limit: the policy, the place (0: the limiter, otherwise a view and a key), the cost and the
/// class.
type Pick = (usize, usize, u64, Option<&'static str>);

impl World {
    fn new(name: &str) -> World {
        let policies: Vec<Policy> = TEXTS.iter().map(|text| text.parse().expect(text)).collect();
        let directory =
            std::path::Path::new(if cfg!(target_os = "linux") { "/dev/shm" } else { "/tmp" });
        let path = directory.join(format!("tollbar-refusals-{name}-{}", std::process::id()));
        let views = |policy: &Policy| {
            // A view keeps its file without the name.
            let _ = std::fs::remove_file(&path);
            let views = [0, 1]
                .map(|_| Table::file(&path, &Options::new(100), &[*policy]).expect("a table"));
            std::fs::remove_file(&path).expect("a file");
            views
        };
        let limiters =
            policies.iter().map(|policy| Limiter::new(policy).expect("a limiter")).collect();
        World { views: policies.iter().map(views).collect(), limiters, policies }
    }

    fn limit(&self, pick: &Pick) -> Limit<'_> {
        let &(policy, place, cost, _) = pick;
        match place {
            0 => Limit::Limiter(&self.limiters[policy], cost),
            _ => Limit::Key(&self.views[policy][place % 2], PolicyId::FIRST, self.key(place), cost),
        }
    }

    fn key(&self, place: usize) -> &'static [u8] {
        [b"ann", b"bob"][usize::from(place > 2)]
    }

    fn take(&self, picks: &[Pick], now: u64) -> Taken {
        let limits: Vec<Limit<'_>> = picks.iter().map(|pick| self.limit(pick)).collect();
        let with = |(limit, pick): (_, &Pick)| match pick.3 {
            Some(class) => Limit::Class(class, limit),
            None => *limit,
        };
        let limits: Vec<Limit<'_>> = limits.iter().zip(picks).map(with).collect();
        take_many_at(&limits, now).expect("the limits exist")
    }

    /// What one limit says to a request that needs so many permits.
    fn peek(&self, (policy, place): (usize, usize), now: u64, needs: u64) -> Decision {
        match place {
            0 => self.limiters[policy].shared().peek_at(now, needs),
            _ => self.views[policy][0].peek_at(PolicyId::FIRST, self.key(place), now, needs),
        }
    }

    /// The permits that the request needs of each limit, which may be named several times.
    fn needs(&self, picks: &[Pick]) -> Vec<((usize, usize), u64)> {
        let target = |pick: &Pick| (pick.0, pick.1.min(1 + 2 * usize::from(pick.1 > 2)));
        let mut needs: Vec<((usize, usize), u64)> = Vec::new();
        for pick in picks {
            let to = target(pick);
            let mut those: Vec<(u64, u64)> = picks
                .iter()
                .filter(|other| target(other) == to && other.2 != 0)
                .map(|other| (self.reserve(other), other.2))
                .collect();
            // One after the other, those with the largest reserve first.
            those.sort_by(|one, other| other.cmp(one));
            let mut sum = 0;
            let need = those.iter().map(|(reserve, cost)| {
                sum += cost;
                sum + reserve
            });
            needs.push((to, need.max().unwrap_or(0)));
        }
        needs
    }

    fn reserve(&self, pick: &Pick) -> u64 {
        pick.3.map_or(0, |class| {
            self.policies[pick.0].classes.reserve(class.as_bytes()).expect("a class")
        })
    }

    /// Everything that is left, of every limit.
    fn left(&self, now: u64) -> Vec<(u64, u64)> {
        let places = (0..TEXTS.len()).flat_map(|policy| [(policy, 0), (policy, 1), (policy, 3)]);
        places.map(|place| self.peek(place, now, 0)).map(|d| (d.remaining, d.reset_after)).collect()
    }
}

/// Whether a refusal changes the limit's state, or its time does without a request.
fn changes(policy: usize) -> bool {
    TEXTS[policy].contains("ban")
        || TEXTS[policy].contains("init")
        || TEXTS[policy].contains("rejected")
}

fn picks(rng: &mut Rng) -> Vec<Pick> {
    // Few policies, so that a limit is often named twice.
    let few = [rng.below(TEXTS.len() as u64), rng.below(TEXTS.len() as u64)];
    (0..rng.within(1, 4))
        .map(|_| {
            let policy = few[rng.below(2) as usize] as usize;
            let class = match TEXTS[policy].contains("reserve") {
                true => CLASSES[rng.below(3) as usize],
                false => None,
            };
            (policy, rng.below(5) as usize, rng.below(6), class)
        })
        .collect()
}

#[test]
fn e6_a_refused_request_charges_nothing_and_its_answer_is_true() {
    let (mut admitted, mut refused, mut never) = (0, 0, 0);
    let (mut too_much, mut innocent) = (0, 0);
    for round in 0..rounds(60) {
        let (world, mut rng) = (World::new(&format!("any-{round}")), Rng(round + 1));
        let mut now = NOW + rng.below(SECOND);
        for _ in 0..200 {
            let picks = picks(&mut rng);
            let needs = world.needs(&picks);
            let peeks: Vec<Decision> =
                needs.iter().map(|(place, needs)| world.peek(*place, now, *needs)).collect();
            let all = peeks.iter().all(Decision::is_allowed);
            let before = world.left(now);
            let taken = world.take(&picks, now);
            let context = || format!("round {round}: {picks:?} at {now}: {taken:?}");
            match taken.decision.verdict {
                Verdict::Allowed => {
                    admitted += 1;
                    too_much += u32::from(!all);
                }
                verdict => {
                    refused += 1;
                    never += u32::from(verdict == Verdict::Never);
                    innocent += u32::from(all);
                    let after = world.left(now);
                    for (n, (before, after)) in before.iter().zip(after).enumerate() {
                        assert!(
                            *before == after || changes(n / 3),
                            "{}, place {}: {before:?} {after:?}",
                            context(),
                            n % 3
                        );
                    }
                    let any = peeks.iter().any(|peek| peek.verdict == Verdict::Never);
                    assert_eq!(verdict == Verdict::Never, any, "{}", context());
                    assert!(
                        verdict != Verdict::Never || taken.decision.retry_after == NEVER,
                        "{}",
                        context()
                    );
                    retry(&world, &picks, now, &taken);
                    if let Some(wait) = taken.decision.retry_ns() {
                        now += wait;
                    }
                }
            }
            now += rng.below(SECOND / 5);
        }
    }
    println!("several limits: {admitted} admitted, {too_much} of them too much; {refused} refused ({never} for ever), {innocent} of them wrongly");
    assert_eq!((too_much, innocent), (0, 0));
    let [many, few] = [2_000, 400].map(|n| rounds(n) as u32);
    assert!(admitted > many && refused > many && never > few, "{admitted} {refused} {never}");
}

/// The same request passes at `retry_after` and not before, if nobody else comes.
fn retry(world: &World, picks: &[Pick], now: u64, taken: &Taken) {
    let context = || format!("{picks:?} at {now}: {taken:?}");
    let fits = |at: u64| {
        world.needs(picks).iter().all(|(place, needs)| world.peek(*place, at, *needs).is_allowed())
    };
    match taken.decision.retry_ns() {
        Some(wait) => {
            assert!(!fits(now + wait - 1), "{}: passes earlier", context());
            assert!(fits(now + wait), "{}: does not pass", context());
            // Requests that change nothing: the world's peeks are the truth, and the call agrees
            // with them.
            if picks.iter().all(|pick| !changes(pick.0)) {
                assert!(!world.take(picks, now + wait - 1).decision.is_allowed(), "{}", context());
            }
            assert!(world.take(picks, now + wait).decision.is_allowed(), "{}", context());
        }
        None => {
            for at in (0..400).map(|n| now + n * SECOND / 8) {
                assert!(!fits(at), "{}: passes at {at}", context());
            }
        }
    }
}

/// Two classes of one limit: the order in which the caller names them does not matter.
#[test]
fn e6_two_classes_of_one_limit_are_one_charge() {
    for (policy, text) in TEXTS.iter().enumerate().take(5) {
        for (place, swap) in [(0, false), (0, true), (1, false), (1, true)] {
            let world = World::new("classes");
            let ask = |a: u64, b: u64| {
                let mut picks = [(policy, place, a, Some("a")), (policy, place, b, Some("b"))];
                if swap {
                    picks.reverse();
                }
                let taken = world.take(&picks, NOW);
                (taken.decision.verdict, world.peek((policy, place), NOW, 0).remaining)
            };
            // 6 and 5 are above the burst of 10.
            assert_eq!(ask(6, 1), (Verdict::Never, 10), "{text}");
            assert_eq!(ask(4, 4), (Verdict::Allowed, 2), "{text}");
            assert_eq!(ask(4, 4).0, Verdict::Denied, "{text}");
            assert!(text.contains("ban") || ask(4, 4).1 == 2, "{text}");
        }
    }
}

/// One key through two views of its file is one key.
#[test]
fn e6_two_views_of_one_file_are_one_table() {
    // A calendar needs the wall clock.
    has_each(Kind::ALL.into_iter().filter(|kind| *kind != Kind::Calendar), &TEXTS);
    let world = World::new("views");
    for (policy, text) in TEXTS.iter().enumerate() {
        let left = world.peek((policy, 1), NOW, 0).remaining;
        let cost = left / 2 + 1;
        if *text == "0/s"
            || text.contains("init")
            || text.contains("curve")
            || text.contains("borrow")
        {
            continue;
        }
        let taken = world.take(&[(policy, 1, cost, None), (policy, 2, cost, None)], NOW);
        let same = world.take(&[(policy, 3, cost, None), (policy, 3, cost, None)], NOW);
        assert_eq!(taken.decision.verdict, same.decision.verdict, "{text}");
        if !taken.decision.is_allowed() {
            assert_eq!(world.peek((policy, 1), NOW, 0).remaining, left, "{text}");
        }
    }
}
