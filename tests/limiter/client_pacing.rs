//! Client pacing: the published traces of the rate, pauses, lying servers, and the list of hosts.

use crate::common::{rounds, Rng, MS, SEC};
use tollbar::http::Seen;
use tollbar::pacing::{
    Algorithm, Answer, Hosts, Options, SendingRate, Ticket, HOSTS_MOST, MOST, PER_SECOND,
};

const HOST: &[u8] = b"https://api.example";
const NOTHING: Seen =
    Seen { limit: None, window: None, remaining: None, more_after: None, retry_after: None };

/// The defaults, which are cubic.
fn defaults() -> Options {
    Options::new()
}

/// Table "base" of TestAdaptiveRateLimit_Update in aws-sdk-go-v2,
/// aws/retry/adaptive_ratelimit_test.go: throttled, milliseconds, measured rate, rate.
const TABLE: [(bool, u64, f64, f64); 17] = [
    (false, 200, 0.0, 0.5),
    (false, 400, 0.0, 0.5),
    (false, 600, 4.8, 0.5),
    (false, 800, 4.8, 0.5),
    (false, 1000, 4.16, 0.5),
    (false, 1200, 4.16, 0.6912),
    (false, 1400, 4.16, 1.0976),
    (false, 1600, 5.632, 1.6384),
    (false, 1800, 5.632, 2.3328),
    (true, 2000, 4.3264, 3.02848),
    (false, 2200, 4.3264, 3.486_639_173_470_259_8),
    (false, 2400, 4.3264, 3.821_874_416_040_255_4),
    (false, 2600, 5.66528, 4.053_385_727_709_987),
    (false, 2800, 5.66528, 4.200_373_108_479_455),
    (false, 3000, 4.333056, 4.282_036_558_348_658),
    (true, 3200, 4.333056, 2.997_425_590_844_06),
    (false, 3400, 4.333056, 3.452_226_394_386_346_3),
];

/// In units of the rate, and two units of rounding.
fn equals(got: u64, wanted: f64) -> bool {
    (got as f64 - wanted * PER_SECOND as f64).abs() <= 2.0
}

#[test]
fn the_rate_has_the_published_trace() {
    let mut rate = SendingRate::new(&defaults(), 0);
    for (throttled, at, measured, wanted) in TABLE {
        match throttled {
            true => rate.throttled(&defaults(), at * MS),
            false => rate.answered(&defaults(), at * MS),
        }
        assert!(
            equals(rate.measured(), measured) && equals(rate.computed(), wanted),
            "at {at} ms: {rate:?}"
        );
    }
}

/// The SDKs' algorithm in doubles.
struct Reference {
    rate: f64,
    top: f64,
    rise: f64,
    cut_at: f64,
    measured: f64,
    answers: f64,
    bucket: f64,
    throttled: bool,
}

impl Reference {
    fn sample(&mut self, throttled: bool, now: f64) {
        let bucket = (now * 2.0).floor() / 2.0;
        self.answers += 1.0;
        if bucket > self.bucket {
            self.measured = self.answers / (bucket - self.bucket) * 0.8 + self.measured * 0.2;
            (self.answers, self.bucket) = (0.0, bucket);
        }
        let next = if throttled {
            self.top = if self.throttled { self.measured.min(self.rate) } else { self.measured };
            self.rise = (self.top * 0.3 / 0.4).cbrt();
            (self.cut_at, self.throttled) = (now, true);
            self.top * 0.7
        } else {
            0.4 * (now - self.cut_at - self.rise).powi(3) + self.top
        };
        self.rate = next.min(2.0 * self.measured).clamp(0.5, 1e6);
    }
}

#[test]
fn the_rate_equals_the_reference_in_doubles() {
    let mut random = Rng(22);
    for _ in 0..rounds(300) {
        let mut rate = SendingRate::new(&defaults(), 0);
        let mut reference = Reference {
            rate: 0.5,
            top: 0.0,
            rise: 0.0,
            cut_at: 0.0,
            measured: 0.0,
            answers: 0.0,
            bucket: 0.0,
            throttled: false,
        };
        let (mut now, between, refusals) = (0, random.within(MS, 400 * MS), random.within(5, 100));
        for _ in 0..300 {
            now += random.within(1, between);
            // Before the first half second is over the reference measures 0, and the type does not.
            let throttled = reference.measured > 0.0 && random.one_in(refusals);
            match throttled {
                true => rate.throttled(&defaults(), now),
                false => rate.answered(&defaults(), now),
            }
            reference.sample(throttled, now as f64 / 1e9);
            let wanted = reference.rate * PER_SECOND as f64;
            // Both lose a few units to rounding, the double in proportion to the cube.
            let near = (rate.computed() as f64 - wanted).abs() <= 8.0 + wanted * 1e-6;
            assert!(near, "at {now} ns: {rate:?}, reference {wanted}");
        }
    }
}

#[test]
fn aimd_cuts_a_tenth_and_rises_evenly() {
    let options = Options { algorithm: Algorithm::Aimd { increase: 5 * PER_SECOND }, ..defaults() };
    let mut rate = SendingRate::new(&options, 0);
    (1..=200).for_each(|n| rate.answered(&options, n * 10 * MS));
    rate.throttled(&options, 2 * SEC);
    let cut = rate.measured() * 9 / 10;
    assert_eq!(rate.rate(&options), cut);
    (201..=300).for_each(|n| rate.answered(&options, n * 10 * MS));
    assert_eq!(rate.rate(&options), cut + 5 * PER_SECOND);
}

#[test]
fn a_host_is_paced_by_its_ceiling_and_its_burst() {
    let options = Options { most: 10 * PER_SECOND, burst: 3, ..defaults() };
    let mut hosts = Hosts::new(&options, 1).unwrap();
    let tickets: Vec<Ticket> = (0..6).map(|_| hosts.acquire(HOST, 0)).collect();
    let waits = |hosts: &mut Hosts, of: &[Ticket], now| {
        of.iter().map(|one| hosts.wait(*one, now)).collect::<Vec<_>>()
    };
    assert_eq!(waits(&mut hosts, &tickets, 0), [0, 0, 0, 100 * MS, 200 * MS, 300 * MS]);
    assert_eq!(waits(&mut hosts, &tickets[3..], 150 * MS), [0, 50 * MS, 150 * MS]);
    // A caller that gives its turn up lets the next one move up.
    hosts.leave(tickets[4], 150 * MS);
    assert_eq!(waits(&mut hosts, &tickets[5..], 150 * MS), [50 * MS]);
    // Idle for an hour: a burst of 3, and no more.
    let later: Vec<Ticket> = (0..4).map(|_| hosts.acquire(HOST, 3600 * SEC)).collect();
    let later: Vec<u64> = later.into_iter().map(|ticket| hosts.wait(ticket, 3600 * SEC)).collect();
    assert_eq!(later, [0, 0, 0, 100 * MS]);
}

fn respond(hosts: &mut Hosts, ticket: Ticket, now: u64, status: u16, header: &str) {
    let seen = Seen::read(header.as_bytes(), 0);
    hosts.respond(ticket, now, Answer::of(status, &seen), &seen);
}

/// Callers that wait already, and callers that come during the pause: nobody sends before its end,
/// and one sends at its end to the nanosecond.
#[test]
fn all_callers_wait_until_the_instant_of_a_retry_after() {
    let mut hosts = Hosts::new(&Options { most: 10 * PER_SECOND, ..defaults() }, 4).unwrap();
    let tickets: Vec<Ticket> = (0..20).map(|_| hosts.acquire(HOST, 0)).collect();
    respond(&mut hosts, tickets[0], 50 * MS, 429, "Retry-After: 7\r\n");
    let end = 50 * MS + 7 * SEC;
    let late = hosts.acquire(HOST, 6 * SEC);
    for ticket in tickets[1..].iter().chain([&late]) {
        assert!(hosts.wait(*ticket, SEC) >= end - SEC);
        assert!(hosts.wait(*ticket, end - 1) >= 1);
    }
    let waits: Vec<u64> = tickets[1..].iter().map(|one| hosts.wait(*one, end)).collect();
    assert_eq!(waits.iter().filter(|wait| **wait == 0).count(), 1);
    assert_eq!(waits[0], 0);
    // A shorter pause does not end a longer one. Another host is free.
    respond(&mut hosts, tickets[1], end, 429, "Retry-After: 60\r\n");
    respond(&mut hosts, tickets[2], end + SEC, 503, "Retry-After: 1\r\n");
    assert_eq!(hosts.read(HOST, end + 2 * SEC).unwrap().paused, 58 * SEC);
    let other = hosts.acquire(b"https://other.example", end);
    assert_eq!(hosts.wait(other, end), 0);
}

/// The minute of a pause is no time without refusals: the first answer after it finds the rate
/// where the cut has left it.
#[test]
fn a_pause_does_not_raise_the_rate() {
    let mut hosts = Hosts::new(&defaults(), 1).unwrap();
    let answer = |hosts: &mut Hosts, now: u64, status: u16, header: &str| {
        let ticket = hosts.acquire(HOST, now);
        respond(hosts, ticket, now, status, header);
        hosts.read(HOST, now).unwrap().rate
    };
    for n in 1..=100 {
        answer(&mut hosts, n * 20 * MS, 200, "");
    }
    let cut = answer(&mut hosts, 2 * SEC, 429, "Retry-After: 60\r\n");
    let after = answer(&mut hosts, 62 * SEC + MS, 200, "");
    assert!(after.abs_diff(cut) * 100 < cut, "{cut} {after}");
}

/// Sixteen requests were under way when the rate was cut, and all of them are refused: the rate is
/// cut once.
#[test]
fn the_refusals_of_one_moment_cut_the_rate_once() {
    let mut hosts = Hosts::new(&Options { burst: 40, ..defaults() }, 1).unwrap();
    let mut now = 0;
    for _ in 0..100 {
        now += 20 * MS;
        let ticket = hosts.acquire(HOST, now);
        respond(&mut hosts, ticket, now, 200, "");
    }
    let tickets: Vec<Ticket> = (0..16).map(|_| hosts.acquire(HOST, now)).collect();
    respond(&mut hosts, tickets[0], now, 429, "");
    let cut = hosts.read(HOST, now).unwrap().rate;
    tickets[1..].iter().for_each(|ticket| respond(&mut hosts, *ticket, now, 429, ""));
    assert_eq!(hosts.read(HOST, now).unwrap().rate, cut);
    // A request that was sent after the cut cuts again.
    now += 10 * SEC;
    let ticket = hosts.acquire(HOST, now);
    respond(&mut hosts, ticket, now, 429, "");
    assert!(hosts.read(HOST, now).unwrap().rate < cut);
}

#[test]
fn statuses_and_fields_say_who_is_throttled() {
    let answer = |status: u16, header: &str| Answer::of(status, &Seen::read(header.as_bytes(), 0));
    assert_eq!(answer(429, ""), Answer::Throttled);
    assert_eq!(answer(503, "Retry-After: 3\n"), Answer::Throttled);
    assert_eq!(answer(503, ""), Answer::Answered);
    assert_eq!(answer(403, "X-RateLimit-Remaining: 0\n"), Answer::Throttled);
    assert_eq!(answer(403, ""), Answer::Answered);
    assert_eq!(
        (answer(200, "Retry-After: 3\n"), answer(404, "")),
        (Answer::Answered, Answer::Answered)
    );
}

/// An admitted request whose answer says that no permit is left: the client stays away until the
/// reset, unless that may be a second that the server has rounded up.
#[test]
fn a_spent_quota_pauses() {
    let paused = |status: u16, header: &str| {
        let mut hosts = Hosts::new(&defaults(), 1).unwrap();
        let ticket = hosts.acquire(HOST, 0);
        respond(&mut hosts, ticket, 0, status, header);
        hosts.read(HOST, 0).unwrap().paused
    };
    assert_eq!(paused(200, "RateLimit: \"a\";r=0;t=12\r\n"), 12 * SEC);
    assert_eq!(paused(200, "RateLimit: \"a\";r=0;t=1\r\n"), 0);
    assert_eq!(paused(429, "RateLimit: \"a\";r=0;t=1\r\n"), SEC);
    assert_eq!(paused(200, "RateLimit: \"a\";r=1;t=12\r\n"), 0);
    assert_eq!(paused(403, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 30\n"), 30 * SEC);
}

/// Whatever a server says, its host sends again after the longest pause and one interval of the
/// lowest rate.
#[test]
fn a_lying_server_is_bounded() {
    let lies = [
        "Retry-After: 600\n",
        "Retry-After: 10000000000\n",
        "Retry-After: 1000000000000\n",
        "Retry-After: 999999999999999999999999999\n",
        "Retry-After: -5\n",
        "Retry-After: NaN\n",
        "Retry-After: 1e9\n",
        "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\n",
        "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\n",
        "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1900000000\n",
        "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 9007199254740993\n",
        "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n",
        "RateLimit-Policy: \"a\";q=0;w=60\nRateLimit: \"a\";r=0;t=0\n",
        "RateLimit-Policy: \"a\";q=9223372036854775808;w=1\nRateLimit: \"a\";r=5\n",
        "RateLimit-Policy: \"a\";q=1;w=999999999999999\nRateLimit: \"a\";r=0;t=999999999999999\n",
        "RateLimit-Policy: \"a\";q=1;w=0\nRateLimit: \"a\";r=0;t=0\n",
    ];
    let options = Options { pause_most: 90 * SEC, ..defaults() };
    for (lie, status) in
        lies.iter().flat_map(|lie| [200, 403, 429, 503].map(|status| (lie, status)))
    {
        let seen = Seen::read(lie.as_bytes(), 1_795_000_000 * SEC);
        let mut hosts = Hosts::new(&options, 1).unwrap();
        let first = hosts.acquire(HOST, 0);
        for n in 0..50 {
            hosts.respond(first, n, Answer::of(status, &seen), &seen);
        }
        let state = hosts.read(HOST, 50).unwrap();
        assert!(state.rate >= options.least && state.rate <= options.most, "{lie} {state:?}");
        assert!(state.paused <= 90 * SEC, "{lie} {state:?}");
        let next = hosts.acquire(HOST, 50);
        let mut now = 50;
        while now <= 92 * SEC + 50 {
            match hosts.wait(next, now) {
                0 => break,
                wait => now += wait,
            }
        }
        assert!(now <= 92 * SEC + 50, "{lie} with {status}: {now}");
    }
}

/// Random answers, times and options: the rate stays in its bounds, a pause too, and no arithmetic
/// overflows.
#[test]
fn no_answer_leaves_the_bounds() {
    let mut random = Rng(7);
    for _ in 0..rounds(2_000) {
        let most = random.skewed(MOST).max(1);
        let algorithm = match random.one_in(2) {
            true => Algorithm::Cubic,
            false => Algorithm::Aimd { increase: random.next() >> random.below(64) },
        };
        let (least, burst) = (random.within(1, most), random.within(1, u32::MAX.into()) as u32);
        let options = Options {
            algorithm,
            least,
            most,
            burst,
            pause_most: random.next() >> random.below(64),
        };
        let mut hosts = Hosts::new(&options, 2).unwrap();
        let mut now = random.next() >> random.below(64);
        for _ in 0..40 {
            // Now and then the clock goes back.
            now = match random.one_in(10) {
                true => now / 2,
                false => now.saturating_add(random.next() >> random.within(1, 63)),
            };
            let name = random.pick(&[&b"a"[..], b"b", b"c"]);
            let ticket = hosts.acquire(name, now);
            let some =
                |random: &mut Rng| random.one_in(2).then(|| random.next() >> random.below(64));
            let seen = Seen {
                limit: some(&mut random),
                window: some(&mut random),
                remaining: some(&mut random),
                more_after: some(&mut random),
                retry_after: some(&mut random),
            };
            hosts.wait(ticket, now);
            match random.below(4) {
                0 => hosts.leave(ticket, now),
                1 => hosts.respond(ticket, now, Answer::Throttled, &seen),
                _ => hosts.respond(ticket, now, Answer::Answered, &seen),
            }
            let state = hosts.read(name, now).unwrap();
            assert!(
                (least..=most).contains(&state.rate) && hosts.len() <= 2,
                "{options:?} {state:?}"
            );
        }
    }
}

#[test]
fn a_full_list_forgets_the_host_that_is_idle_the_longest() {
    let mut hosts = Hosts::new(&defaults(), 3).unwrap();
    let first = hosts.acquire(b"paused", 0);
    respond(&mut hosts, first, 0, 429, "Retry-After: 100\n");
    for (at, name) in [(1, b"old"), (2, b"new")] {
        let ticket = hosts.acquire(name, at * SEC);
        hosts.respond(ticket, at * SEC, Answer::Throttled, &NOTHING);
    }
    let _ = hosts.acquire(b"another", 3 * SEC);
    // The pause lasts until 100 s, so its host is not idle though its last call is the oldest.
    let known = [&b"paused"[..], b"old", b"new", b"another"]
        .map(|name| hosts.read(name, 3 * SEC).is_some());
    assert_eq!((known, hosts.len()), ([true, false, true, true], 3));
    // A ticket of a forgotten host does not wait, and its answer is counted for a new host of that
    // name.
    let old = hosts.acquire(b"old", 4 * SEC);
    let names: Vec<Ticket> =
        (0..3).map(|n| hosts.acquire(format!("{n}").as_bytes(), 200 * SEC)).collect();
    assert_eq!((hosts.wait(old, 200 * SEC), hosts.wait(names[0], 200 * SEC)), (0, 0));
    hosts.leave(old, 200 * SEC);
    assert_eq!(hosts.read(b"old", 200 * SEC), None);
}

#[test]
fn a_host_that_is_idle_for_ten_minutes_is_new() {
    let mut hosts = Hosts::new(&defaults(), 3).unwrap();
    let ticket = hosts.acquire(HOST, 0);
    hosts.respond(ticket, 0, Answer::Throttled, &NOTHING);
    let cut = hosts.read(HOST, 0).unwrap().rate;
    let _ = hosts.acquire(HOST, 599 * SEC);
    assert_eq!(hosts.read(HOST, 599 * SEC).unwrap().rate, cut);
    let _ = hosts.acquire(HOST, 1200 * SEC);
    assert_eq!(hosts.read(HOST, 1200 * SEC).unwrap().rate, defaults().most);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let fails = |options: Options| Hosts::new(&options, 1).is_none();
    assert!(fails(Options { least: 0, ..defaults() }));
    assert!(fails(Options { least: 2, most: 1, ..defaults() }));
    assert!(fails(Options { most: MOST + 1, ..defaults() }));
    assert!(fails(Options { burst: 0, ..defaults() }));
    assert!(
        Hosts::new(&defaults(), 0).is_none() && Hosts::new(&defaults(), HOSTS_MOST + 1).is_none()
    );
    assert!(Hosts::new(&defaults(), HOSTS_MOST).is_some_and(|hosts| hosts.is_empty()));
}
