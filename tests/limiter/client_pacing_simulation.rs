//! Clients that pace themselves, and servers that refuse, on a virtual clock.

use crate::common::{is_short, policy, MS, SEC};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tollbar::http::{Draft, Fields, Limit, Seen};
use tollbar::pacing::{Algorithm, Answer, Hosts, Options, Ticket, PER_SECOND};
use tollbar::{Shared, State};

const HOST: &[u8] = b"http://api.example";

/// A server that admits by a policy, which changes at given times.
struct Server<'a> {
    policies: &'a [(u64, &'a str)],
    fields: Fields,
    state: State,
    phase: usize,
}

impl<'a> Server<'a> {
    fn new(policies: &'a [(u64, &'a str)], fields: Fields) -> Server<'a> {
        Server { policies, fields, state: State::new(&policy(policies[0].1)).unwrap(), phase: 0 }
    }

    /// The status and the header of its answer.
    fn answer(&mut self, now: u64) -> (u16, Seen) {
        while self.policies.get(self.phase + 1).is_some_and(|next| now >= next.0) {
            self.phase += 1;
            self.state = State::new(&policy(self.policies[self.phase].1)).unwrap();
        }
        let decision = self.state.check_at(now, 1);
        let limit = Limit::new(b"limit", &policy(self.policies[self.phase].1), &decision);
        let mut text = [0; 300];
        let length = self.fields.write(&[limit], 0, &mut text);
        (if decision.is_allowed() { 200 } else { 429 }, Seen::read(&text[..length], 0))
    }
}

/// One request of a run.
#[derive(Clone, Copy)]
struct Sent {
    at: u64,
    client: usize,
    accepted: bool,
}

/// The options of a client with the ceiling 100/s.
fn client(algorithm: Algorithm) -> Options {
    Options { algorithm, most: 100 * PER_SECOND, ..Options::new() }
}

const AIMD: Algorithm = Algorithm::Aimd { increase: 5 * PER_SECOND };

/// The time from a request to its answer.
const ROUND_TRIP: u64 = 20 * MS;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Ask(usize, Option<(u64, u64)>),
    Answered(usize, (u64, u64)),
}

/// Clients of 16 workers each send as often as their pace allows.
fn run(clients: &[Options], server: &mut Server<'_>, until: u64) -> Vec<Sent> {
    const WORKERS: usize = 16;
    let mut pace: Vec<Hosts> =
        clients.iter().map(|options| Hosts::new(options, 4).unwrap()).collect();
    let mut answers: Vec<(u16, Seen)> = vec![(0, Seen::default()); clients.len() * WORKERS];
    let mut steps: BinaryHeap<Reverse<(u64, u64, Step)>> = BinaryHeap::new();
    let mut sent = Vec::new();
    let mut number = 0;
    let mut then = |steps: &mut BinaryHeap<_>, at: u64, step: Step| {
        number += 1;
        steps.push(Reverse((at, number, step)));
    };
    for worker in 0..clients.len() * WORKERS {
        then(&mut steps, worker as u64 * MS / 10, Step::Ask(worker, None));
    }
    while let Some(Reverse((now, _, step))) = steps.pop() {
        if now >= until {
            break;
        }
        match step {
            Step::Ask(worker, held) => {
                let hosts = &mut pace[worker / WORKERS];
                let ticket = held
                    .map_or_else(|| hosts.acquire(HOST, now), |(host, turn)| Ticket { host, turn });
                let held = (ticket.host, ticket.turn);
                match hosts.wait(ticket, now) {
                    0 => {
                        answers[worker] = server.answer(now);
                        sent.push(Sent {
                            at: now,
                            client: worker / WORKERS,
                            accepted: answers[worker].0 == 200,
                        });
                        then(&mut steps, now + ROUND_TRIP, Step::Answered(worker, held));
                    }
                    wait => then(&mut steps, now + wait, Step::Ask(worker, Some(held))),
                }
            }
            Step::Answered(worker, (host, turn)) => {
                let (status, seen) = answers[worker];
                let answer = Answer::of(status, &seen);
                pace[worker / WORKERS].respond(Ticket { host, turn }, now, answer, &seen);
                then(&mut steps, now, Step::Ask(worker, None));
            }
        }
    }
    sent
}

/// Requests per second between two times, in hundredths: all of them, and the accepted ones.
fn rates(sent: &[Sent], from: u64, to: u64) -> (u64, u64) {
    let count = |of: &dyn Fn(&Sent) -> bool| {
        sent.iter().filter(|one| (from..to).contains(&one.at) && of(one)).count()
    };
    let rate = |count: usize| count as u64 * 100 * SEC / (to - from);
    (rate(count(&|_| true)), rate(count(&|one| one.accepted)))
}

const BARE: Fields = Fields { retry_after: false, legacy: None, draft: None };

fn near(rate: u64, wanted: u64) -> bool {
    rate.abs_diff(wanted) * 20 <= wanted
}

/// How many seconds after `from` the rate is settled: from then on, and for `seconds` seconds in
/// all, what the client sends and what the server accepts in each ten seconds is within 5 % of
/// `wanted`.
fn settles(sent: &[Sent], from: u64, seconds: u64, wanted: u64) -> Option<u64> {
    let good = |second: u64| {
        let (all, accepted) = rates(sent, second * SEC, (second + 10) * SEC);
        near(all, wanted) && near(accepted, wanted)
    };
    (from..from + seconds)
        .find(|first| (*first..from + seconds).all(good))
        .map(|first| first - from)
}

/// The requests of a client against a server that admits 50/s, then 25/s from the second 60 to the
/// second 120, then 50/s again.
fn halved(algorithm: Algorithm, fields: Fields) -> Vec<Sent> {
    let policies =
        [(0, "50/s burst 10"), (60 * SEC, "25/s burst 10"), (120 * SEC, "50/s burst 10")];
    run(&[client(algorithm)], &mut Server::new(&policies, fields), 190 * SEC)
}

/// The client has a ceiling of 100/s. Its rate settles within 6 s at the beginning, after the
/// server's rate has halved, and after it has come back.
#[test]
fn a_rate_settles_when_the_server_halves_and_comes_back() {
    for algorithm in [Algorithm::Cubic, AIMD] {
        for fields in [BARE, BARE.with_draft(Draft::Eleven), Fields::new().with_draft(Draft::Seven)]
        {
            let sent = halved(algorithm, fields);
            for (from, seconds, wanted) in [(0, 50, 5000), (60, 50, 2500), (120, 60, 5000)] {
                let settled = settles(&sent, from, seconds, wanted);
                println!("{algorithm:?} {fields:?} from {from} s: settled after {settled:?} s");
                assert!(
                    settled.is_some_and(|after| after <= 6),
                    "{algorithm:?} {fields:?} from {from} s: {settled:?}"
                );
            }
        }
    }
}

/// Without pacing, half of the requests of a 100/s client are refused. With it, in the steady state
/// fewer than one of 50 are.
#[test]
fn few_requests_are_refused() {
    for algorithm in [Algorithm::Cubic, AIMD] {
        let sent = halved(algorithm, BARE);
        let (all, accepted) = rates(&sent, 10 * SEC, 60 * SEC);
        assert!((all - accepted) * 50 < all, "{algorithm:?}: {all} {accepted}");
        // A server that sends its limit and its window is never asked for more, once it has
        // refused.
        let sent = halved(algorithm, BARE.with_draft(Draft::Eleven));
        let (all, accepted) = rates(&sent, 10 * SEC, 60 * SEC);
        assert_eq!(all, accepted, "{algorithm:?}");
    }
}

/// Each refusal asks for a whole second, which is what a server with whole seconds can say, and the
/// client waits that long.
#[test]
fn a_retry_after_of_a_second_is_kept_and_the_mean_stays_near() {
    let mut server = Server::new(&[(0, "50/s")], Fields::new());
    let sent = run(&[client(Algorithm::Cubic)], &mut server, 120 * SEC);
    let (all, accepted) = rates(&sent, 10 * SEC, 120 * SEC);
    assert!(near(all, 5000) && near(accepted, 5000), "{all} {accepted}");
    // The answer of a refused request arrives a round trip after the request.
    for refused in sent.iter().filter(|one| !one.accepted) {
        let from = refused.at + ROUND_TRIP;
        let early = sent.iter().filter(|one| one.at > from && one.at < from + SEC).count();
        assert_eq!(early, 0, "after the refusal at {}", refused.at);
    }
}

/// S29 and C7: servers of 50/s that send nothing but `Retry-After`, in whole seconds, accept 50 ±
/// 5 % from the second 60 on, whatever their burst is. Each refusal stops the client for a second,
/// in which a bucket of less than 50 permits overflows. So a client that is refused every seven
/// seconds, as by the SDKs' curve, has 36/s at small bursts.
///
/// Both sides: fewer than one request in 500 is refused, and the requests that a server would have
/// admitted beside are those 5 %.
#[test]
fn every_burst_settles_by_retry_after_alone() {
    let among = |burst: &u64| !is_short() || *burst <= 10 || burst % 10 == 0;
    let (mut least, mut most_refused) = ((u64::MAX, 0), (0, 0));
    for burst in (1..=100).filter(among) {
        let text = format!("50/s burst {burst}");
        let policies = [(0, text.as_str())];
        let sent =
            run(&[client(Algorithm::Cubic)], &mut Server::new(&policies, Fields::new()), 240 * SEC);
        let (all, accepted) = rates(&sent, 60 * SEC, 240 * SEC);
        assert!(near(all, 5000) && near(accepted, 5000), "{text}: sent {all}, accepted {accepted}");
        assert!((all - accepted) * 500 < all, "{text}: sent {all}, accepted {accepted}");
        least = least.min((accepted, burst));
        most_refused = most_refused.max((all - accepted, burst));
    }
    println!(
        "hundredths a second: least accepted {least:?}, most refused {most_refused:?} (burst)"
    );
}

/// The same at other rates, and after the server's rate has halved and come back. A rise is slow on
/// purpose: within two minutes the client has found that the rate has doubled.
#[test]
fn retry_after_alone_finds_other_rates() {
    for (policy, wanted, ceiling) in
        [("5/s burst 1", 500, 10), ("1/s burst 1", 100, 5), ("500/s burst 1", 50_000, 1000)]
    {
        let options = Options { most: ceiling * PER_SECOND, ..Options::new() };
        let sent = run(&[options], &mut Server::new(&[(0, policy)], Fields::new()), 400 * SEC);
        let (all, accepted) = rates(&sent, 100 * SEC, 400 * SEC);
        println!("{policy}: sent {all}, accepted {accepted} in hundredths of a request per second");
        assert!(near(accepted, wanted) && near(all, wanted), "{policy}: {all} {accepted}");
    }
    for burst in [1, 10, 50] {
        let [full, half] = ["50/s", "25/s"].map(|rate| format!("{rate} burst {burst}"));
        let policies = [(0, full.as_str()), (120 * SEC, half.as_str()), (240 * SEC, full.as_str())];
        let sent =
            run(&[client(Algorithm::Cubic)], &mut Server::new(&policies, Fields::new()), 480 * SEC);
        let (halved, back) =
            (rates(&sent, 180 * SEC, 240 * SEC), rates(&sent, 360 * SEC, 480 * SEC));
        println!("burst {burst}: halved {halved:?}, back {back:?}");
        assert!(
            halved.1 * 100 >= 2500 * 80 && halved.0 * 100 <= 2500 * 105,
            "burst {burst}: {halved:?}"
        );
        assert!(back.1 * 100 >= 5000 * 85 && back.0 * 100 <= 5000 * 105, "burst {burst}: {back:?}");
    }
}

/// A server that also sends its limit is paced by that limit, as before: the slower curve is for
/// answers that say nothing else.
#[test]
fn a_server_that_sends_its_limit_is_not_slower_than_one_that_does_not() {
    for policy in ["50/s burst 1", "50/s burst 10", "50/s burst 100"] {
        let accepted = |fields| {
            let policies = [(0, policy)];
            let sent =
                run(&[client(Algorithm::Cubic)], &mut Server::new(&policies, fields), 120 * SEC);
            rates(&sent, 10 * SEC, 120 * SEC).1
        };
        let (bare, with_limit) =
            (accepted(Fields::new()), accepted(Fields::new().with_draft(Draft::Eleven)));
        println!("{policy}: {bare} by Retry-After alone, {with_limit} with RateLimit");
        assert!(with_limit >= bare && near(with_limit, 5000), "{policy}: {bare} {with_limit}");
    }
}

#[test]
fn two_clients_share_fairly() {
    for algorithm in [Algorithm::Cubic, AIMD] {
        let options = client(algorithm);
        let sent =
            run(&[options, options], &mut Server::new(&[(0, "50/s burst 10")], BARE), 300 * SEC);
        let of = |client: usize| {
            let own: Vec<Sent> = sent.iter().filter(|one| one.client == client).copied().collect();
            rates(&own, 60 * SEC, 300 * SEC).1
        };
        let (first, second) = (of(0), of(1));
        assert!(near(first + second, 5000), "{algorithm:?}: {first} {second}");
        // Each has at least 45 % of what both have.
        assert!(
            first.min(second) * 100 >= (first + second) * 45,
            "{algorithm:?}: {first} {second}"
        );
    }
}
