//! A permit in flight as one of several limits: "10/s, and at most 4 at one time".

use std::cell::Cell;
use std::sync::Barrier;
use tollbar::algorithm::Charge;
use tollbar::clock::Manual;
use tollbar::in_flight::{InFlight, Options, Refusal, Ticket};
use tollbar::take_many::{take_all, take_many_at, AnyLimiter, Limit, ManyError, Taken};
use tollbar::{Decision, Limiter, Reason, State, Verdict, NEVER};

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1000 * SECOND;
const KEY: &[u8] = b"192.0.2.7";

fn limiter(text: &str) -> Limiter<State, Manual> {
    Limiter::with(State::new(&text.parse().unwrap()).unwrap(), Manual::new(NOW))
}

fn flights() -> InFlight {
    InFlight::private(&Options::new(100)).unwrap()
}

fn ask(rate: &dyn AnyLimiter, flights: &InFlight, now: u64) -> (Taken, Ticket) {
    let ticket = Cell::default();
    let limits = [Limit::Limiter(rate, 1), Limit::InFlight(flights, KEY, 4, &ticket)];
    (take_many_at(&limits, now).unwrap(), ticket.get())
}

/// If the in-flight limit refuses, no rate is charged. If the rate refuses, no permit is in flight.
/// The answer names the limit that refused.
#[test]
fn ten_a_second_and_four_at_one_time() {
    let (rate, flights) = (limiter("10/s"), flights());
    let held: Vec<Ticket> = (0..4)
        .map(|n| {
            let (taken, ticket) = ask(&rate, &flights, NOW);
            assert_eq!(
                (taken.decision.verdict, taken.decision.reason),
                (Verdict::Allowed, Reason::Admitted)
            );
            assert_eq!(
                (taken.decision.remaining, taken.bound, taken.decision.retry_after),
                (3 - n, 1, 0)
            );
            ticket
        })
        .collect();
    assert_eq!(flights.count(KEY), 4);
    for _ in 0..1000 {
        let (taken, ticket) = ask(&rate, &flights, NOW);
        assert_eq!(
            (taken.decision.verdict, taken.decision.reason),
            (Verdict::Denied, Reason::InFlight)
        );
        assert_eq!(
            (taken.bound, taken.decision.remaining, taken.decision.retry_after),
            (1, 0, NEVER)
        );
        assert_eq!(ticket, Ticket::default());
    }
    assert_eq!(rate.peek(1).remaining, 6);
    // Each caller releases its permit and asks again. Six more pass. Then the rate refuses, and the
    // permits stay free.
    let mut passed = 0;
    for ticket in held {
        assert!(flights.release(ticket));
    }
    for _ in 0..50 {
        let (taken, ticket) = ask(&rate, &flights, NOW);
        match taken.decision.verdict {
            Verdict::Allowed => assert!(flights.release(ticket)),
            _ => assert_eq!(
                (taken.decision.reason, taken.decision.retry_after),
                (Reason::Rate, SECOND / 10)
            ),
        }
        passed += u32::from(taken.decision.is_allowed());
    }
    assert_eq!((passed, flights.count(KEY)), (6, 0));
    assert!(ask(&rate, &flights, NOW + SECOND / 10).0.decision.is_allowed());
}

/// A limiter that another call empties between the peek and the charge.
struct Emptied(State);

impl AnyLimiter for Emptied {
    fn now(&self) -> u64 {
        NOW
    }
    fn peek_at(&self, now: u64, cost: u64) -> Decision {
        tollbar::Shared::peek_at(&self.0, now, cost)
    }
    fn charge_at(&self, now: u64, cost: u64) -> Decision {
        tollbar::Shared::take_up_to_at(&self.0, now, 100);
        tollbar::Shared::check_at(&self.0, now, cost)
    }
    fn undo(&self, _: Charge, _: &dyn Fn() -> u64) {
        panic!("it has charged nothing");
    }
    fn count(&self, _: Verdict, _: Reason) {}
    fn refill(&self) -> u64 {
        1
    }
}

/// The rate loses its permits after the call has acquired the permit in flight: the call releases
/// the permit and leaves the cell alone.
#[test]
fn a_rate_that_refuses_its_charge_releases_the_permit() {
    let (rate, flights) = (Emptied(State::new(&"1/s".parse().unwrap()).unwrap()), flights());
    let (taken, ticket) = ask(&rate, &flights, NOW);
    assert_eq!(
        (taken.decision.verdict, taken.decision.reason, taken.bound),
        (Verdict::Denied, Reason::Rate, 0)
    );
    assert_eq!((ticket, flights.count(KEY)), (Ticket::default(), 0));
}

/// Two permits of one key are two tickets, and each limit has its decision.
#[test]
fn a_key_that_is_named_twice_takes_two_permits() {
    let (flights, others) = (flights(), flights());
    let (first, second, third) = (Cell::default(), Cell::default(), Cell::default());
    let take = |limit| {
        let limits = [
            Limit::InFlight(&flights, KEY, limit, &first),
            Limit::InFlight(&others, b"node", 9, &second),
            Limit::InFlight(&flights, KEY, limit, &third),
        ];
        let mut each = [flights_blank(); 3];
        (
            take_all(&limits, None, Some(&mut each)).unwrap(),
            each.map(|each| (each.verdict, each.remaining)),
        )
    };
    // The peek sees a free permit for each of the two. The second acquisition is refused, and the
    // call releases all.
    let (taken, _) = take(1);
    assert_eq!(
        (taken.decision.verdict, flights.count(KEY), others.count(b"node")),
        (Verdict::Denied, 0, 0)
    );
    let (taken, each) = take(2);
    assert!(taken.decision.is_allowed());
    assert_eq!(each, [(Verdict::Allowed, 0), (Verdict::Allowed, 8), (Verdict::Allowed, 0)]);
    for (table, ticket) in [(&flights, &first), (&others, &second), (&flights, &third)] {
        assert!(table.release(ticket.get()));
    }
    assert_eq!((flights.count(KEY), others.count(b"node")), (0, 0));
}

fn flights_blank() -> Decision {
    limiter("1/s").peek(1)
}

/// A full table is an error, and nothing has been charged.
#[test]
fn a_full_table_charges_nothing() {
    let (rate, flights) = (limiter("1000/s"), InFlight::private(&Options::new(1)).unwrap());
    let mut tickets = Vec::new();
    let error = (0..1000_u32).find_map(|n| {
        let (key, ticket) = (n.to_ne_bytes(), Cell::default());
        let limits = [Limit::Limiter(&rate, 1), Limit::InFlight(&flights, &key, 1, &ticket)];
        let taken = take_many_at(&limits, NOW);
        tickets.push(ticket.get());
        taken.err()
    });
    assert_eq!(error, Some(ManyError::InFlight(1, Refusal::Full)));
    assert_eq!(
        error.unwrap().to_string(),
        "limit 1: the in-flight table is full: no slot is free where the key's slots are"
    );
    assert_eq!(rate.peek(1).remaining, 1000 - (tickets.len() as u64 - 1));
}

/// Threads that take a permit in flight and one of a rate: at no time more than four permits are in
/// flight, and the rate is charged exactly once for each of them.
#[test]
fn threads_never_hold_more_than_the_limit() {
    const THREADS: usize = 8;
    let (rate, flights) = (limiter("1000000/s"), flights());
    let (open, most) = (std::sync::atomic::AtomicU64::new(0), std::sync::atomic::AtomicU64::new(0));
    let barrier = Barrier::new(THREADS);
    let passed: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let mut passed = 0;
                    for _ in 0..2000 {
                        let (taken, ticket) = ask(&rate, &flights, NOW);
                        if taken.decision.is_allowed() {
                            let now = open.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
                            most.fetch_max(now, std::sync::atomic::Ordering::SeqCst);
                            passed += 1;
                            open.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                            assert!(flights.release(ticket));
                        }
                    }
                    passed
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!((1..=4).contains(&most.into_inner()));
    assert_eq!(rate.peek(1).remaining, 1_000_000 - passed);
    assert_eq!(flights.count(KEY), 0);
}
