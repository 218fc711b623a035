//! Searches the bound of leases for violations, under an adversary in virtual time.
//!
//! The nodes and the store's arithmetic are the shipped ones. The clock, the network and the faults
//! are simulated: lost and late messages, cut connections, killed nodes; a store that is flushed,
//! restarted empty or with an old file, stopped, or finds a foreign value; and steps of the store's
//! clock.
//!
//! A search that stays far below the bound would not see a small violation. So every search must
//! come to 95 % of the bound.

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "lease/store.rs"]
mod store;
#[path = "lease/world.rs"]
mod world;

use tollbar::Policy;
use tollbar_redis::lease::{Fallback, OnLoss, Options, Terms};
use world::{Powers, World, DELAY};

type Kind = (Policy, Options);

fn schedules(usual: u64) -> u64 {
    std::env::var("TOLLBAR_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn kind(policy: &str, overdraft: u64, nodes: u32, life: u64) -> Kind {
    let options = Options {
        overdraft,
        capacity: 64,
        fallback: Fallback::Deny,
        on_loss: OnLoss::Refill,
        life: life * 1_000_000,
        ..Options::new(nodes)
    };
    (policy.parse().expect("a policy"), options)
}

/// Policies, grouped by what a search of them is about. In each group at least one policy allows
/// nearly the whole burst at once.
fn cases() -> [(&'static str, Vec<Kind>); 5] {
    [
        (
            "leases alone",
            vec![
                kind("1000/s burst 100", 0, 3, 0),
                kind("1000/s burst 100", 0, 3, 2),
                kind("70/s burst 40", 0, 4, 10),
            ],
        ),
        (
            "leases and overdrafts",
            vec![
                kind("1000/s burst 100", 5, 3, 0),
                kind("70/s burst 40", 2, 4, 0),
                kind("20000/s burst 2000", 20, 4, 0),
                kind("3/s burst 30", 1, 2, 0),
                kind("1000/s burst 800", 1, 3, 4),
            ],
        ),
        (
            "minutes",
            vec![
                kind("100/min burst 100", 0, 3, 0),
                kind("100/min burst 100", 0, 3, 50),
                kind("600/min burst 100", 1, 2, 0),
            ],
        ),
        ("an hour", vec![kind("300/h burst 300", 0, 3, 0), kind("60/h burst 60", 1, 2, 0)]),
        (
            "one machine",
            vec![
                kind("100/min burst 100", 0, 1, 0),
                kind("100/min burst 100", 0, 1, 50),
                kind("300/h burst 300", 2, 1, 0),
            ],
        ),
    ]
}

/// The adversary's powers in most searches.
const USUAL: Powers =
    Powers { clock: false, kills: true, losses: true, waits: false, changes: false };

/// The outcome of a search.
struct Found {
    /// The schedule that broke the bound, if one did.
    violation: Option<String>,
    /// Permits above the rate at the worst instant.
    worst: f64,
}

/// Runs schedules until one breaks the bound. `bound` gives the bound of a world's schedule.
fn search(
    kinds: &[Kind],
    powers: Powers,
    schedules: u64,
    bound: &dyn Fn(&World) -> f64,
    seed: u64,
) -> Found {
    const EACH: u64 = 250;
    let (mut worst, mut admitted) = (0.0_f64, 0);
    for world in 0..schedules.div_ceil(EACH) {
        let seed = seed << 32 | world;
        let (tried, broken) = live(kinds, powers, EACH.min(schedules), bound, seed, false);
        if let Some(most) = broken {
            // Repeats the schedule with a log.
            let log = live(kinds, powers, EACH, bound, seed, true).0.log.join("\n");
            let violation =
                Some(format!("{kinds:?}\nseed {seed:#x}: {} above {most}\n{log}", tried.worst()));
            return Found { violation, worst: tried.worst() };
        }
        worst = worst.max(tried.worst_ever);
        admitted += tried.admitted;
    }
    assert!(admitted > schedules, "a search in which hardly anything is admitted finds nothing");
    Found { violation: None, worst }
}

/// Runs the schedules of one world, up to the first that breaks the bound. Returns the world and
/// the broken bound.
fn live(
    kinds: &[Kind],
    powers: Powers,
    schedules: u64,
    bound: &dyn Fn(&World) -> f64,
    seed: u64,
    verbose: bool,
) -> (World, Option<f64>) {
    let mut world = World::new(kinds, powers, seed);
    world.verbose = verbose;
    let broken = run(&mut world, schedules, bound);
    (world, broken)
}

/// Runs schedules up to the first that breaks the bound. Returns that bound.
fn run(world: &mut World, schedules: u64, bound: &dyn Fn(&World) -> f64) -> Option<f64> {
    for _ in 0..schedules {
        world.begin();
        for _ in 0..60 {
            world.step();
            let most = bound(world);
            if world.worst() > most {
                return Some(most);
            }
        }
    }
    None
}

/// Searches all cases; the nearest of each kind must have come to 95 % of the burst.
fn search_all(powers: Powers, each: u64, bound: impl Fn(&Kind, &World) -> f64, seed: u64) {
    for (what, kinds) in cases() {
        let mut nearest = 0.0_f64;
        for kind in kinds {
            // A machine that runs alone restores a key that the store has evicted. A machine that
            // replaces it cannot.
            let powers = Powers { kills: powers.kills && kind.1.nodes > 1, ..powers };
            let found = search(&[kind], powers, each, &|world| bound(&kind, world), seed);
            if let Some(violation) = found.violation {
                panic!("{violation}");
            }
            let share = found.worst / kind.0.burst as f64;
            println!(
                "{what}: {}, {} nodes, overdraft {}: {:.0} %",
                kind.0,
                kind.1.nodes,
                kind.1.overdraft,
                share * 100.0
            );
            nearest = nearest.max(share);
        }
        assert!(nearest >= 0.95, "{what}: the search came to {nearest:.2} of the bound only");
    }
}

#[test]
fn exact_mode_is_never_above_the_policy() {
    let each = schedules(16_000) / 16;
    search_all(USUAL, each, bound_of, 1);
    println!("{} schedules, no violation", each * 16);
}

/// Requests that wait are decided by the store's time, and admitted at most a patience later.
#[test]
fn requests_that_wait_add_a_patience() {
    let bound = |kind: &Kind, world: &World| {
        let terms = Terms::new(&kind.0, &kind.1).expect("terms");
        bound_of(kind, world) + (terms.fitting(terms.patience() / 1000 + 1) + 1) as f64
    };
    search_all(Powers { waits: true, ..USUAL }, schedules(8_000) / 16, bound, 8);
}

/// Each rule that keeps the bound is needed, and the search is strong enough to see it: without the
/// permits that the store keeps back for rights, and with leases that the store charges as spent at
/// once, it finds a violation.
#[test]
fn without_a_rule_a_violation_is_found_at_once() {
    let seeds = schedules(16_000) / 4_000;
    for kind in cases()[1].1.iter().filter(|kind| kind.1.overdraft > 1) {
        let inexact = (kind.0, Options { exact: false, ..kind.1 });
        for seed in 0..seeds {
            find(kind, seed, World::new(&[inexact], USUAL, seed), World::ambush);
        }
    }
    for kind in cases()[0].1.iter().filter(|kind| kind.1.life != 2_000_000) {
        for seed in 0..seeds {
            let mut world = World::new(&[*kind], USUAL, seed);
            world.store.charges_early = true;
            find(kind, seed, world, World::step);
        }
    }
}

/// Finds a violation of the bound of `kind` in a world with a fault, in schedules of up to 60 turns
/// of the adversary.
fn find(kind: &Kind, seed: u64, mut world: World, turn: fn(&mut World)) {
    let found = (1..=5_000).find(|_| {
        world.begin();
        (0..60).any(|_| {
            turn(&mut world);
            world.worst() > bound_of(kind, &world)
        })
    });
    println!("{}, {} nodes, seed {seed}: schedule {found:?}", kind.0, kind.1.nodes);
    assert!(found.is_some(), "{kind:?}, seed {seed}");
}

fn bound_of(kind: &Kind, world: &World) -> f64 {
    kind.0.burst as f64 + world.unreported() + world.rolled_back
}

/// With `exact` off, the store gives out the whole burst, and the machines together may admit the
/// burst and, on top, their rights.
#[test]
fn without_the_correction_the_greater_bound_holds() {
    let (what, kinds) = &cases()[1];
    let mut nearest = 0.0_f64;
    for (policy, options) in kinds {
        let kind = (*policy, Options { exact: false, ..*options });
        let most = (policy.burst + u64::from(options.nodes) * options.overdraft) as f64;
        let bound = |world: &World| most + world.unreported() + world.rolled_back;
        let found = search(&[kind], USUAL, schedules(5_000) / 5, &bound, 3);
        if let Some(violation) = found.violation {
            panic!("{violation}");
        }
        nearest = nearest.max(found.worst / most);
    }
    assert!(nearest >= 0.95, "{what}: the search came to {nearest:.2} of the bound only");
}

/// With [`OnLoss::Full`] each loss adds at most what the store may have granted before it.
#[test]
fn a_full_burst_for_each_loss() {
    let mut nearest = 0.0_f64;
    for (policy, options) in &cases()[1].1 {
        let kind = (*policy, Options { on_loss: OnLoss::Full, ..*options });
        let bound = |world: &World| {
            policy.burst as f64 * (1.0 + f64::from(world.losses)) + world.unreported()
        };
        let found = search(&[kind], USUAL, schedules(5_000) / 5, &bound, 7);
        if let Some(violation) = found.violation {
            panic!("{violation}");
        }
        nearest = nearest.max(found.worst / policy.burst as f64);
    }
    assert!(
        nearest >= 1.9,
        "the search came to {nearest:.2} bursts only, and a loss gives one more"
    );
}

/// Whatever the server's clock does, the data's time gains on the true time at most a lease's life,
/// the way of a question and a thousandth of the time that passes, and what is admitted follows it.
/// Time that was withheld may come back; `rise` includes it.
#[test]
fn a_clock_that_lies_gives_a_lifes_worth_once() {
    let powers = Powers { clock: true, ..Powers::default() };
    let farthest = std::cell::Cell::new(0);
    let bound = |kind: &Kind, world: &World| {
        let (error, slack) =
            (world.store.error, Terms::new(&kind.0, &kind.1).expect("terms").slack());
        let ahead = (error.greatest - error.first) as u64;
        // A thousandth of the time since the last answer, which may have come two seconds before.
        let drift = (world.now - world.began) / 1_000_000 + 2000;
        assert!(
            ahead <= slack + DELAY / 1000 + drift,
            "{ahead} us ahead, of {slack}: {error:?}\n{}",
            world.log.join("\n")
        );
        farthest.set(farthest.get().max(ahead * 100 / slack));
        kind.0.burst as f64
            + error.rise as f64 * 1000.0 * kind.0.limit as f64 / kind.0.period as f64
    };
    search_all(powers, schedules(8_000) / 16, bound, 4);
    assert!(farthest.get() >= 95, "the clock was ahead by {} % of a life only", farthest.get());
}

/// Runs machines that all take whatever they can, at 1000/s, for so many seconds. Returns what was
/// admitted in each tenth of a second.
fn flooded(seconds: u64, step: impl FnMut(&mut World, u64)) -> (World, Vec<u64>) {
    let kind = kind("1000/s burst 500", 10, 3, 0);
    let kind = (kind.0, Options { fallback: Fallback::Share, ..kind.1 });
    let mut world = World::new(&[kind], USUAL, 5);
    world.begin();
    let tenths = world.flood(seconds * 1_000_000_000, step);
    (world, tenths)
}

/// Checks that after second `from` the full rate was admitted, but for `but` in a hundred. A second
/// may lack some leases' worth that the next second has.
fn whole(tenths: &[u64], from: usize, but: u64) {
    let each: Vec<u64> =
        tenths[from * 10..].chunks_exact(10).map(|second| second.iter().sum()).collect();
    assert!(each.iter().all(|second| *second >= 950 - 10 * but), "{each:?}");
    assert!(each.iter().sum::<u64>() >= (990 - 10 * but) * each.len() as u64, "{each:?}");
}

/// A second after each fault of the store the machines admit the full rate, and never more than the
/// policy. They use a store that answers again within a probe's interval, the question's and the
/// answer's way, and a turn of the driver.
#[test]
fn after_every_fault_all_of_the_rate() {
    type Fault = (&'static str, fn(&mut World));
    let faults: [Fault; 5] = [
        ("flushed", |world| world.store.data = store::Data::default()),
        ("restarted empty", |world| world.crash(None)),
        ("restarted with an old file", |world| world.crash(Some(()))),
        ("stopped", |world| world.store.answers = !world.store.answers),
        ("a machine replaced", |world| world.replace(0, 0)),
    ];
    for (what, fault) in faults {
        // Twice, a second apart: the second fault continues a stopped store.
        let (mut done, mut back) = (0, None);
        let (world, tenths) = flooded(10, |world, at| {
            if at / 1_000_000_000 == 3 + done && done < 2 {
                fault(world);
                done += 1;
            }
            if done == 2 && back.is_none() && world.closed() == 3 {
                back = Some(at - 4_000_000_000);
            }
        });
        whole(&tenths[..30], 1, 0);
        whole(&tenths[50..], 0, 0);
        assert!(world.worst() <= 500.0, "{what}: {}", world.worst());
        let back = back.expect("it comes back") / 1_000_000;
        assert!(back <= 50 + 2 * DELAY / 1_000_000 + 4, "{what}: {back} ms");
    }
}

/// One step back, after three seconds: the fleet is at its full rate again after at most a life and
/// the grace, and admits nothing beyond the burst.
#[test]
fn after_a_step_back_all_of_the_rate() {
    for back in [
        50_000,
        200_000,
        1_000_000,
        3_000_000,
        60_000_000,
        3_600_000_000,
        1_690_000_000_000_000_i64,
    ] {
        let mut stepped = false;
        let (world, tenths) = flooded(10, |world, at| {
            if at >= 3_000_000_000 && !std::mem::replace(&mut stepped, true) {
                world.store.step_clock(world.now, -back);
            }
        });
        whole(&tenths[..30], 1, 0);
        // 25 ms of a life and the grace of a second.
        whole(&tenths[40..], 0, 0);
        assert!(world.worst() <= 500.0, "{back}: {}", world.worst());
    }
}

/// Steps to and fro, ten times a second: the fleet admits nearly its full rate, and at most a
/// life's worth more.
#[test]
fn steps_to_and_fro() {
    for by in [200_000, 2_000_000, 3_600_000_000_i64] {
        let (world, tenths) = flooded(20, |world, at| {
            world.store.ahead = if at / 100_000_000 % 2 == 0 { 0 } else { by };
        });
        let carried = 1000.0 * (world.store.error.rise as f64 / 1e6);
        println!("{by}: {:.0} above the rate, {:?}", world.worst(), world.store.error);
        assert!(world.worst() <= 500.0 + carried, "{by}: {}", world.worst());
        assert!(world.store.error.rise <= 58_000 + 200_000, "{by}: {:?}", world.store.error);
        whole(&tenths, 2, 10);
    }
}

/// A server whose clock stands still grants nothing without end. The nodes go on at their shares,
/// and their clients say why.
#[test]
fn a_clock_that_stands_still_is_a_fault() {
    let (world, tenths) = flooded(20, |world, at| match at / 1_000_000_000 {
        3..=12 => {
            world.store.frozen = 1_700_000_000_000_000;
            if at == 12_000_000_000 {
                assert_eq!(
                    (world.closed(), world.notices()),
                    (0, vec!["the server answers, but its clock stands still"; 3])
                );
            }
        }
        _ => world.store.frozen = 0,
    });
    let fallback_permits: u64 = tenths[60..130].iter().sum();
    assert!(
        (6_000..=7_100).contains(&fallback_permits),
        "{fallback_permits} of 7000 at their shares"
    );
    assert!(world.worst() <= 500.0 + 30.0, "{}", world.worst());
    whole(&tenths, 15, 0);
    assert_eq!((world.closed(), world.notices().len()), (3, 0));
}

/// Another program overwrites the key again and again, so the key stays empty. Each answer by
/// itself is right, but none grants anything.
#[test]
fn a_store_that_never_grants_is_a_fault() {
    let (mut opened, mut said) = (None, 0);
    let (world, tenths) = flooded(30, |world, at| {
        if (3_000_000_000..20_000_000_000).contains(&at) {
            world.plant();
            if world.closed() == 0 {
                opened = opened.or(Some(at));
                let text = "the server answers, but has granted nothing for longer than the limit explains";
                said += u64::from(world.notices() == [text; 3]);
            }
        }
    });
    // A second, a refill of half of one, a life, and sixteen shares of what a machine asks for.
    let after = opened.expect("a fault").saturating_sub(3_000_000_000) / 1_000_000;
    assert!((1_500..=8_000).contains(&after) && said > 1000, "after {after} ms, said {said} times");
    let fallback_permits: u64 = tenths[120..200].iter().sum();
    println!("after {after} ms; {fallback_permits} of 8000 at their shares");
    assert!(
        (6_000..=8_000).contains(&fallback_permits),
        "{fallback_permits} of 8000 at their shares, but for the trials"
    );
    assert!(world.worst() <= 500.0 + 30.0, "{}", world.worst());
    whole(&tenths, 25, 0);
    assert_eq!((world.closed(), world.notices().len()), (3, 0));
}
