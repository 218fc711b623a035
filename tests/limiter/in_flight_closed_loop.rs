//! Gradient2 grows only while its limit is in use, and an overload that lasts does not become its
//! rule: closed loops of clients, and open loads of ten minutes, on a virtual clock.

use crate::common::{MS, SEC};
use crate::overload::{
    gradient2, serve, Callers, Event, Site, Static, BETWEEN, DEADLINE, WINDOW, WORK,
};
use tollbar::in_flight::{Adaptive, AdaptiveOptions};

/// The limit and the answers in the second half of a simulation.
#[derive(Debug, Default)]
struct Seen {
    /// The highest and the last limit; the highest of the whole simulation.
    highest: u32,
    last: u32,
    answered: u64,
    /// Answered later than [`DEADLINE`]: too much was admitted.
    late: u64,
    refused: u64,
    /// Refused although a worker was idle: an exact oracle would have admitted it.
    needless: u64,
    /// The sum of the latencies.
    latency: u64,
}

impl Seen {
    fn count(&mut self, event: Event) {
        match event {
            Event::Refused { idle } => {
                self.refused += 1;
                self.needless += u64::from(idle);
            }
            Event::Answered(latency) => {
                self.answered += 1;
                self.late += u64::from(latency > DEADLINE);
                self.latency += latency;
            }
        }
    }

    fn mean(&self) -> u64 {
        self.latency / self.answered.max(1)
    }
}

fn adaptive(site: &Site, options: &AdaptiveOptions) -> Seen {
    let mut seen = Seen::default();
    serve(&mut Adaptive::new(options), site, |limit, now, event| {
        seen.last = limit.limit();
        seen.highest = seen.highest.max(seen.last);
        if now >= site.until / 2 {
            seen.count(event);
        }
    });
    seen
}

fn fixed(site: &Site, limit: u64) -> Seen {
    let mut seen = Seen::default();
    serve(&mut Static(limit, 0), site, |_, now, event| {
        if now >= site.until / 2 {
            seen.count(event);
        }
    });
    seen
}

/// Forty clients never have more than 40 requests in flight. A limit above twice that number would
/// rest on no sample: it does not grow to its ceiling of 1,000, with windows or without.
#[test]
fn a_closed_loop_bounds_the_limit_by_twice_its_clients() {
    for window in [0, WINDOW] {
        let site =
            Site { callers: Callers::Closed(40), workers: |_| 80, work: WORK, until: 60 * SEC };
        let seen = adaptive(&site, &gradient2(window));
        println!("40 clients, 80 workers, windows of {window} ns: {seen:?}");
        assert!((40..=80).contains(&seen.last) && seen.highest <= 80, "{seen:?}");
        // Once the limit is above 40 no client is refused.
        assert_eq!((seen.refused, seen.late), (0, 0));
    }
}

/// Ten workers for 40 clients. All 40 in flight wait 30 ms each for a worker. The limit stays where
/// the latency is within 1.5 times that of the warm-up, and below the 40 clients, and the workers
/// are never idle.
#[test]
fn a_closed_loop_that_overloads_its_server_does_not_raise_the_limit() {
    let site = Site { callers: Callers::Closed(40), workers: |_| 10, work: WORK, until: 300 * SEC };
    let (seen, all) = (adaptive(&site, &gradient2(WINDOW)), fixed(&site, 1000));
    println!("40 clients, 10 workers: {seen:?}; without a limit {all:?}");
    assert!(seen.highest < 40 && seen.needless == 0, "{seen:?}");
    assert!(
        seen.mean() < all.mean() && seen.answered * 100 >= all.answered * 99,
        "{seen:?} {all:?}"
    );
}

/// 5,000 requests a second reach a server that answers 4,000, for ten minutes. Every answer of the
/// last five is in time, as many as the best static limit gives, and none is refused while a worker
/// is idle. The limit settles where the latency is 1.5 times that of an idle server, at about
/// 1.5 * 40 + 4.
///
/// When the long-term latency learned from the queue, too, this limit was at its ceiling of 1,000
/// after 200 s, and no answer was in time.
#[test]
fn an_overload_of_ten_minutes_does_not_become_the_rule() {
    let site =
        Site { callers: Callers::Open(BETWEEN), workers: |_| 40, work: WORK, until: 600 * SEC };
    let (seen, best) = (adaptive(&site, &gradient2(WINDOW)), fixed(&site, 64));
    println!("5,000/s of 4,000/s: {seen:?}; limit 64: {best:?}");
    assert!((55..=75).contains(&seen.last) && seen.highest <= 80, "{seen:?}");
    assert_eq!((seen.late, seen.needless), (0, 0), "{seen:?}");
    assert!(seen.answered * 1000 >= best.answered * 999, "{seen:?} {best:?}");
}

/// An honest load that needs 90 of a ceiling of 110: the limit gets there, and from then on it
/// refuses nothing. On its way from 20 it refuses what the oracle would admit.
#[test]
fn an_open_load_gets_the_whole_limit() {
    let site = Site {
        callers: Callers::Open(SEC / 9_000),
        workers: |_| 1000,
        work: WORK,
        until: 60 * SEC,
    };
    let options = AdaptiveOptions { most: 110, ..gradient2(WINDOW) };
    let mut refused = [0; 6];
    serve(&mut Adaptive::new(&options), &site, |_, now, event| {
        refused[(now / (10 * SEC)) as usize] += u64::from(event == Event::Refused { idle: true });
    });
    println!("9,000/s that need 90: {refused:?} refused in each ten seconds of 90,000");
    assert!(refused[0] < 45_000 && refused[2..].iter().all(|refused| *refused == 0), "{refused:?}");
}

/// The work of every request takes twice as long for good, and the server has room: the limit
/// learns the new latency, and admits the whole load again.
#[test]
fn a_server_that_is_slower_for_good_is_learned() {
    let site = Site {
        callers: Callers::Open(SEC / 4_000),
        workers: |_| 1000,
        work: |now| if now < 60 * SEC { (5 * MS, 15 * MS) } else { (10 * MS, 30 * MS) },
        until: 180 * SEC,
    };
    let mut refused = [0; 9];
    serve(&mut Adaptive::new(&gradient2(WINDOW)), &site, |_, now, event| {
        refused[(now / (20 * SEC)) as usize] += u64::from(event == Event::Refused { idle: true });
    });
    println!("4,000/s, twice as slow from 60 s on: {refused:?} refused in each 20 s of 80,000");
    assert!(refused[1..3].iter().chain(&refused[5..]).all(|refused| *refused == 0), "{refused:?}");
    assert!(refused[3] < 60_000 && refused[4] < 20_000, "{refused:?}");
}
