//! Compares adaptive limits with static ones, on a virtual clock, for a server whose capacity
//! halves for 20 seconds.

use crate::common::MS;
use crate::overload::{gradient2, run, Limiter, Static, PHASE, WINDOW};
use tollbar::in_flight::{Adaptive, AdaptiveOptions, InFlight, Options, Outcome, Ticket};

/// A key of a table, with an adaptive limit.
struct Key(Adaptive, InFlight);

impl Limiter for Key {
    type Permit = Ticket;
    fn acquire(&mut self) -> Option<Ticket> {
        self.0.acquire_key(&self.1, b"the server").ok()
    }
    fn release(&mut self, permit: Ticket, latency: u64, now: u64) {
        assert!(self.0.release_key_at(
            &self.1,
            b"the server",
            permit,
            (Outcome::Answered, latency),
            now
        ));
    }
}

/// The number of requests that are answered in time in each of the three phases.
fn goodput<L: Limiter>(limiter: &mut L) -> [u64; 3] {
    let mut good = [0; 3];
    run(limiter, |_, now, in_time| good[(now / PHASE) as usize] += u64::from(in_time));
    good
}

fn aimd(window_ns: u64) -> AdaptiveOptions {
    AdaptiveOptions { window_ns, ..AdaptiveOptions::aimd(20, 5, 1000, 30 * MS) }
}

/// In each phase the adaptive limits answer at least 90 % as many requests in time as that phase's
/// best static limit. The static limits 30 and 150 do not do so in all phases, and the static limit
/// 60 does.
#[test]
fn adaptive_limits_are_near_the_best_static_one_while_the_capacity_halves() {
    let fixed: Vec<[u64; 3]> = (1..=40).map(|n| goodput(&mut Static(n * 5, 0))).collect();
    let best: [u64; 3] =
        std::array::from_fn(|phase| fixed.iter().map(|one| one[phase]).max().unwrap());
    let near = |one: [u64; 3]| one.iter().zip(best).all(|(&one, best)| one * 10 >= best * 9);
    assert!(!near(fixed[5]) && near(fixed[11]) && !near(fixed[29]), "{fixed:?}");
    let flights = || InFlight::private(&Options::new(10)).unwrap();
    for (name, options) in [("gradient2", gradient2(WINDOW)), ("aimd", aimd(WINDOW))] {
        let alone = goodput(&mut Adaptive::new(&options));
        let key = goodput(&mut Key(Adaptive::new(&options), flights()));
        println!("{name}: {alone:?}, of a key {key:?}, of the best {best:?}");
        assert!(near(alone) && near(key), "{name}: {alone:?} {key:?}, {best:?}");
    }
}

/// Gradient2 needs windows here. Without them each of 4,000 releases a second is a sample. Then its
/// long-term latency, a mean over about 600 samples, follows the overload within a second, and the
/// limit rises until no answer is in time.
#[test]
fn without_windows_gradient2_takes_an_overload_for_the_rule() {
    let [before, during, after] = goodput(&mut Adaptive::new(&gradient2(0)));
    let [windows, ..] = goodput(&mut Adaptive::new(&gradient2(WINDOW)));
    assert!(
        before * 10 < windows && during == 0 && after == 0,
        "{before} {during} {after}, {windows}"
    );
}
