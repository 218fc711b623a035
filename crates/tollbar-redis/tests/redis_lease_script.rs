//! Asks the script of leases in a real Redis and its arithmetic in Rust the same questions, at
//! times that the test chooses. The answers must be equal.

#[path = "../../../tests/common/random.rs"]
mod random;
#[path = "common/redis.rs"]
mod redis;

use random::Rng;
use redis::{Raw, Server};
use std::time::Instant;
use tollbar::Policy;
use tollbar_redis::lease::ask::{Ask, Requester};
use tollbar_redis::lease::bucket::{self, Grant};
use tollbar_redis::lease::change::Stored;
use tollbar_redis::lease::record::Record;
use tollbar_redis::lease::{OnLoss, Options, Terms};

/// The script with the test's clock in place of the server's. Keys live an hour longer, so that the
/// server does not expire any by its own clock.
fn script() -> String {
    let replaced = |text: String, from: &str, to: &str| {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text.replace(from, to)
    };
    let text = include_str!("../src/lease/lease.lua").to_string();
    let text = replaced(text, "redis.call('TIME')", "{ARGV[#ARGV - 2], ARGV[#ARGV - 1]}");
    replaced(text, "'PXAT', expires)", "'PXAT', expires + ARGV[#ARGV])")
}

const LONGER: i64 = 3_600_000;
/// Keys of a limit.
const KEYS: usize = 3;
/// A value that the script did not write counts as an empty bucket.
const GARBAGE: Stored = Stored { tat: u64::MAX, version: u64::MAX, until: 0 };

/// A limit and the values that the server is expected to hold.
#[derive(Default)]
struct Limit {
    number: usize,
    stored: [Option<Stored>; KEYS],
    record: Option<Record>,
    /// The grant of the last question, and the name of the data in it.
    last: Grant,
}

/// The questions about one limit in a call, each about another key.
struct Part<'a> {
    limit: &'a mut Limit,
    terms: Terms,
    asks: Vec<(usize, Ask)>,
    from: Requester,
}

/// A server, the script, and the server's clock in microseconds.
struct Store<'a> {
    server: &'a Server,
    script: &'a str,
    clock: u64,
}

impl Limit {
    fn record_key(&self) -> String {
        format!("tollbar:{{{}}}:record", self.number)
    }

    fn key(&self, n: usize) -> String {
        format!("tollbar:{{{}}}:k:{n}", self.number)
    }
}

impl Part<'_> {
    /// As wire.rs packs it.
    fn header(&self) -> Vec<u8> {
        let ask = self.asks.first().map_or(Ask::default(), |(_, ask)| *ask);
        let (count, first) = (self.asks.len() as u64, u64::from(self.from.first));
        let mut header = packed(&[count, self.from.heard, first, ask.at, ask.slack, ask.life]);
        header.extend(hex(self.from.seen).bytes());
        header
    }
}

fn hex(n: u64) -> String {
    if n == 0 {
        String::new()
    } else {
        format!("{n:x}")
    }
}

fn packed(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as f64).to_le_bytes()).collect()
}

impl Store<'_> {
    /// Asks both in one call and compares the answers.
    fn ask(&self, parts: &mut [Part<'_>]) {
        // Before the time is read: a pause between the two counts as passed.
        let asked = Instant::now();
        let real = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time")
            .as_millis();
        let longer = real as i64 - self.clock as i64 / 1000 + LONGER;
        let records = parts.iter().map(|part| part.limit.record_key());
        let keys = parts.iter().flat_map(|part| part.asks.iter().map(|(n, _)| part.limit.key(*n)));
        let names: Vec<String> = records.chain(keys).collect();
        let mut command: Vec<Vec<u8>> = vec![b"EVAL".to_vec(), self.script.into()];
        command.push(names.len().to_string().into());
        command.extend(names.into_iter().map(String::into_bytes));
        command.extend([hex(parts[0].from.fresh).into(), parts.len().to_string().into()]);
        command.extend(parts.iter().flat_map(|part| [part.header(), text(&part.terms).into()]));
        let questions = parts.iter().flat_map(|part| &part.asks).map(|(_, ask)| {
            packed(&[ask.want, ask.least, ask.hint, ask.debt, ask.waiting, ask.cost])
        });
        command.extend(questions);
        let (seconds, micros) = (self.clock / 1_000_000, self.clock % 1_000_000);
        command
            .extend([seconds.to_string(), micros.to_string(), longer.to_string()].map(Vec::from));
        let command: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let reply = self.server.try_bytes(&command).expect("an answer");
        let Raw::Array(reply) = reply else { panic!("{reply:?}") };
        assert_eq!(reply.len(), parts.len());
        for (part, reply) in parts.iter_mut().zip(&reply) {
            let Raw::Bulk(reply) = reply else { panic!("{reply:?}") };
            self.compare(part, reply, asked);
        }
    }

    fn compare(&self, part: &mut Part<'_>, reply: &[u8], asked: Instant) {
        let Part { limit, terms, asks, from } = part;
        let (kind, reply) = reply.split_first().expect("a reply");
        assert_eq!(*kind, b'+', "{}", String::from_utf8_lossy(reply));
        let (numbers, tail) = reply.split_at(16 + 48 * asks.len());
        let numbers: Vec<u64> = numbers
            .chunks(8)
            .map(|number| f64::from_le_bytes(number.try_into().expect("eight bytes")) as u64)
            .collect();
        let (epoch, in_force) =
            std::str::from_utf8(tail).expect("text").split_once(';').expect("a name");
        let epoch = u64::from_str_radix(epoch, 16).expect("digits");
        let before = limit.record;
        let probe = (KEYS, Ask::default());
        for (n, (key, ask)) in asks.iter().chain(asks.is_empty().then_some(&probe)).enumerate() {
            let stored = limit.stored.get(*key).copied().flatten();
            let (record, grant, value) = match asks.is_empty() {
                true => {
                    let (record, grant) = bucket::probe(limit.record, terms, ask, from, self.clock);
                    (record, grant, GARBAGE)
                }
                // The call's first question has written the record. The others find it so.
                false => {
                    let from = &Requester { first: from.first && n == 0, ..*from };
                    let known = if n == 0 { before } else { limit.record };
                    bucket::execute(known, stored, terms, ask, from, self.clock)
                }
            };
            let said = |at: usize| numbers.get(2 + 6 * n + at).copied().unwrap_or(0);
            let theirs = Grant {
                permits: said(0),
                retry: said(1),
                tat: said(2),
                served: said(3),
                life: said(4),
                open: said(5) != 0,
                now: numbers[0],
                most: numbers[1],
                epoch,
                terms: grant.terms,
            };
            let context = || format!("{ask:?} {terms:?} {from:?} {stored:?} {before:?} {record:?}");
            assert_eq!(theirs, grant, "{}", context());
            assert_eq!(in_force, grant.terms.as_ref().map_or(String::new(), text), "{}", context());
            limit.record = Some(record);
            if grant.tat > grant.now && !asks.is_empty() {
                limit.stored[*key] = Some(value);
                let text = self.server.command(&["GET", &limit.key(*key)]).text();
                let Stored { tat, version, until } = value;
                assert_eq!(text, format!("{tat} {version} {until}"), "{}", context());
                let left = self.server.command(&["PTTL", &limit.key(*key)]).int() - LONGER;
                let needed = (grant.tat - grant.now + record.margin) as i64 / 1000;
                let passed = asked.elapsed().as_millis() as i64 + 2;
                assert!(
                    left <= needed + 2 && left + passed >= needed,
                    "it expires in {left} ms, not {needed}"
                );
            }
            limit.last = grant;
        }
    }
}

/// Terms as the script takes them.
fn text(terms: &Terms) -> String {
    let numbers = [
        terms.version,
        terms.num,
        terms.den,
        terms.burst,
        terms.cap,
        terms.debt_cap,
        terms.life,
        terms.overdraft,
        terms.nodes,
        terms.on_loss,
        terms.flags,
        terms.overdraft_before,
        terms.since,
    ];
    numbers.map(|number| number.to_string()).join(" ")
}

#[test]
fn the_script_is_the_arithmetic() {
    let (server, script) = (Server::start(), script());
    let policies = [
        ["20000/s burst 2000", "20000/s burst 3000", "10000/s burst 2000"],
        ["3/s burst 300", "3/s burst 200", "7/s burst 300"],
        ["7/day", "8/day", "7/day burst 8"],
        ["10000000000/s", "5000000000/s", "10000000000/s burst 8000000000"],
        ["999999937/s burst 1000000", "999999937/s burst 1000001", "999999939/s burst 1000000"],
        ["1000/day burst 40", "1000/day burst 50", "3/s burst 300"],
    ];
    let (mut changed, mut converted, mut rolled_back, mut hinted, mut cut, mut served, mut granted) =
        (0, 0, 0, 0, 0, 0, 0);
    for (number, texts) in policies.into_iter().enumerate() {
        let mut random = Rng(7 + number as u64);
        let terms = texts.map(|text| {
            let policy: Policy = text.parse().expect("a policy");
            let on_loss = random.pick(&[OnLoss::Full, OnLoss::Refill]);
            let exact = random.one_in(2);
            let options = Options { overdraft: 1, exact, on_loss, ..Options::new(2) };
            let terms = Terms::new(&policy, &options);
            terms
                .or_else(|_| Terms::new(&policy, &Options { exact: false, ..options }))
                .expect("terms")
        });
        let mut limits = [
            Limit { number: 2 * number, ..Limit::default() },
            Limit { number: 2 * number + 1, ..Limit::default() },
        ];
        let mut store = Store { server: &server, script: &script, clock: 1_700_000_000_000_000 };
        let mut kind = 0;
        for round in 0..700 {
            let [limit, _] = &mut limits;
            let key = random.below(KEYS as u64) as usize;
            match random.below(60) {
                0 => {
                    server.command(&["DEL", &limit.key(key)]);
                    limit.stored[key] = None;
                }
                1 => {
                    server.command(&["DEL", &limit.record_key()]);
                    limit.record = None;
                }
                2 => {
                    server.command(&["SET", &limit.key(key), "-12"]);
                    limit.stored[key] = Some(GARBAGE);
                }
                3 => {
                    server.command(&["DEL", &limit.key(key)]);
                    server.command(&["RPUSH", &limit.key(key), "1"]);
                    limit.stored[key] = Some(GARBAGE);
                }
                4 => store.clock += random.skewed(3_600_000_000),
                5 => store.clock = store.clock.saturating_sub(random.skewed(3_600_000_000)).max(1),
                6 => store.clock = 1 + random.below(1 << 40),
                7 => kind = random.below(3) as usize,
                8 => {
                    server.command(&["DEL", &limit.record_key()]);
                    server.command(&["RPUSH", &limit.record_key(), "1"]);
                    limit.record = None;
                }
                _ => store.clock += random.skewed(2_000_000),
            }
            let both = random.one_in(3);
            let mut parts = Vec::new();
            for limit in limits.iter_mut().take(if both { 2 } else { 1 }) {
                let last = limit.last;
                // Most machines know the terms in force. Now and then one has its own, of an old
                // version or of the next.
                let in_force = limit.record.map_or(terms[kind], |record| record.terms);
                let version = in_force.version;
                let terms = match random.below(20) {
                    0 => terms[kind],
                    1 => Terms { version, ..terms[kind] },
                    2 => Terms { version: version + 1 + random.below(2), ..terms[kind] },
                    3 => Terms { version: version.saturating_sub(1), ..in_force },
                    _ => in_force,
                };
                let from = Requester {
                    seen: match random.one_in(10) {
                        true => random.pick(&[0, 0xdead, last.epoch]),
                        false => last.epoch,
                    },
                    heard: match random.below(20) {
                        0 => last.now + random.skewed(3_000_000),
                        1 => 0,
                        _ => last.now,
                    },
                    first: random.one_in(4),
                    fresh: 0x1000 + round,
                };
                let asks = asks(&mut random, &terms, &last);
                parts.push(Part { limit, terms, asks, from });
            }
            let before: Vec<_> =
                parts.iter().map(|part| (part.limit.record, part.limit.stored)).collect();
            store.ask(&mut parts);
            for (part, (record, stored)) in parts.iter().zip(before) {
                let Some((key, ask)) = part.asks.last() else { continue };
                let last = &part.limit.last;
                let old = record.map_or(0, |record| record.terms.version);
                let version = part.limit.record.map_or(0, |record| record.terms.version);
                changed += u64::from(old != 0 && version > old);
                converted += u64::from(stored[*key].is_some_and(|key| {
                    key.version < version && key.tat > last.now && key.tat != GARBAGE.tat
                }));
                rolled_back += u64::from(record.is_some_and(|record| {
                    part.from.seen == record.id && part.from.heard > record.now
                }));
                served += u64::from(last.served != 0 && last.served < ask.waiting);
                granted += u64::from(last.permits != 0 && last.life != 0);
                hinted += u64::from(ask.hint != 0 && ask.hint == last.tat);
                let most = ask.at + ask.slack;
                cut += u64::from(record.is_some_and(|record| last.now == most.max(record.now)));
            }
        }
    }
    println!(
        "{changed} changes, {converted} keys converted, {rolled_back} losses, {hinted} by the hint, {cut} at the time that the asker allowed"
    );
    println!("{served} times a part of the requests that wait, {granted} leases");
    assert!(changed > 50 && converted > 20 && rolled_back > 50, "{changed} {converted}");
    assert!(hinted > 100 && cut > 100, "{hinted} {cut}");
    assert!(served > 20 && granted > 100, "{served} {granted}");
}

/// Questions about no key, one key, or all. The parts about the machine are equal.
fn asks(random: &mut Rng, terms: &Terms, last: &Grant) -> Vec<(usize, Ask)> {
    let around = |random: &mut Rng, time: u64, by: u64| {
        (time + random.skewed(by)).saturating_sub(random.skewed(by))
    };
    let at = if random.one_in(3) { 0 } else { around(random, last.now, 3_000_000) };
    let life = random.pick(&[0, 1000, terms.life / 1000, 2 * terms.cap]);
    let count = random.pick(&[0, 1, 1, 1, KEYS]);
    let first = random.below(KEYS as u64) as usize;
    (0..count)
        .map(|n| {
            let ask = Ask {
                want: if random.one_in(4) { 0 } else { 1 + random.below(terms.most.min(1000)) },
                least: random.within(1, terms.most.min(20)),
                hint: if random.one_in(2) {
                    0
                } else {
                    around(random, last.tat, 2 * terms.debt_cap)
                },
                debt: if random.one_in(3) { random.below(terms.most.min(50)) } else { 0 },
                at,
                slack: terms.slack(),
                waiting: match random.below(3) {
                    0 => 0,
                    1 => random.below(terms.most.min(100)),
                    _ => random.below(2 * terms.most),
                },
                cost: random.below(terms.most.min(20)),
                life,
            };
            ((first + n) % KEYS, ask)
        })
        .collect()
}
