//! Asks the script of leases in a real Redis and its arithmetic in Rust the same questions, at
//! times that the test chooses. The answers must be equal.

#[path = "../../../tests/common/random.rs"]
mod random;
#[path = "common/redis.rs"]
mod redis;

use random::Rng;
use redis::{Raw, Server};
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
    let text = replaced(text, "redis.call('TIME')", "{ARGV[15], ARGV[16]}");
    replaced(
        text,
        "'PXAT', string.format('%.0f', expires)",
        "'PXAT', string.format('%.0f', expires + ARGV[17])",
    )
}

const LONGER: i64 = 3_600_000;
/// A value that the script did not write counts as an empty bucket.
const GARBAGE: Stored = Stored { tat: u64::MAX, version: u64::MAX, until: 0 };

/// A limit, its script, and the values that the server is expected to hold.
struct Limit<'a> {
    server: &'a Server,
    script: &'a str,
    key: String,
    record_key: String,
    stored: Option<Stored>,
    record: Option<Record>,
    /// The server's clock, in microseconds.
    clock: u64,
}

impl Limit<'_> {
    /// Asks both and compares the answers. Returns the arithmetic's.
    fn ask(&mut self, terms: &Terms, ask: &Ask, requester: &Requester) -> Grant {
        let hex = |n: u64| if n == 0 { String::new() } else { format!("{n:x}") };
        // Before the time is read: a pause between the two counts as passed.
        let asked = std::time::Instant::now();
        let real = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("a time")
            .as_millis();
        let longer = real as i64 - self.clock as i64 / 1000 + LONGER;
        let numbers = [ask.want, ask.least, ask.hint, ask.debt].map(|n| n.to_string());
        let more = [requester.heard, ask.at, ask.slack, ask.waiting, ask.cost, ask.life];
        let mut args = vec![text(terms)];
        args.extend(numbers);
        args.extend([hex(requester.seen), hex(requester.fresh)]);
        args.extend(more.map(|n| n.to_string()));
        args.push(u64::from(requester.first).to_string());
        args.extend([
            (self.clock / 1_000_000).to_string(),
            (self.clock % 1_000_000).to_string(),
            longer.to_string(),
        ]);
        let mut command = vec!["EVAL", self.script, "2", &self.record_key, &self.key];
        command.extend(args.iter().map(String::as_str));
        let reply = self.server.command(&command);

        let (record, grant, key) =
            bucket::execute(self.record, self.stored, terms, ask, requester, self.clock);
        let said = |n: usize| match &reply.items()[n] {
            Raw::Int(number) => *number as u64,
            text => text.text().parse().expect("a number"),
        };
        let (before, stored) = (self.record, self.stored);
        let context =
            || format!("{ask:?} {terms:?} {requester:?} {stored:?} {before:?} {record:?}");
        assert_eq!(
            (said(0), said(1), said(2), reply.items()[3].text(), said(4)),
            (grant.permits, grant.retry, grant.tat, hex(grant.epoch), grant.now),
            "{}",
            context()
        );
        let in_force = grant.terms.as_ref().map_or(String::new(), text);
        assert_eq!(
            (said(5), said(6), said(7) != 0, said(8), reply.items()[9].text()),
            (grant.served, grant.life, grant.open, grant.most, in_force),
            "{}",
            context()
        );
        self.record = Some(record);
        if grant.tat > grant.now {
            self.stored = Some(key);
            let value = self.server.command(&["GET", &self.key]).text();
            assert_eq!(
                value,
                format!("{} {} {}", key.tat, key.version, key.until),
                "{}",
                context()
            );
            let left = self.server.command(&["PTTL", &self.key]).int() - LONGER;
            let needed = (grant.tat - grant.now + record.margin) as i64 / 1000;
            let passed = asked.elapsed().as_millis() as i64 + 2;
            assert!(
                left <= needed + 2 && left + passed >= needed,
                "it expires in {left} ms, not {needed}"
            );
        }
        grant
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
        let mut limit = Limit {
            server: &server,
            script: &script,
            key: format!("{{{number}}}:k"),
            record_key: format!("{{{number}}}:record"),
            stored: None,
            record: None,
            clock: 1_700_000_000_000_000,
        };
        let (mut last, mut kind) = (Grant::default(), 0);
        for round in 0..700 {
            match random.below(60) {
                0 => {
                    server.command(&["DEL", &limit.key]);
                    limit.stored = None;
                }
                1 => {
                    server.command(&["DEL", &limit.record_key]);
                    limit.record = None;
                }
                2 => {
                    server.command(&["SET", &limit.key, "-12"]);
                    limit.stored = Some(GARBAGE);
                }
                3 => {
                    server.command(&["DEL", &limit.key]);
                    server.command(&["RPUSH", &limit.key, "1"]);
                    limit.stored = Some(GARBAGE);
                }
                4 => limit.clock += random.skewed(3_600_000_000),
                5 => limit.clock = limit.clock.saturating_sub(random.skewed(3_600_000_000)).max(1),
                6 => limit.clock = 1 + random.below(1 << 40),
                7 => kind = random.below(3) as usize,
                _ => limit.clock += random.skewed(2_000_000),
            }
            // Most machines know the terms in force. Now and then one has its own, of an old
            // version or of the next.
            let in_force = limit.record.map_or(terms[kind], |record| record.terms);
            let version = in_force.version;
            let terms = &match random.below(20) {
                0 => terms[kind],
                1 => Terms { version, ..terms[kind] },
                2 => Terms { version: version + 1 + random.below(2), ..terms[kind] },
                3 => Terms { version: version.saturating_sub(1), ..in_force },
                _ => in_force,
            };
            let around = |random: &mut Rng, time: u64, by: u64| {
                (time + random.skewed(by)).saturating_sub(random.skewed(by))
            };
            let ask = Ask {
                want: if random.one_in(4) { 0 } else { 1 + random.below(terms.most.min(1000)) },
                least: random.within(1, terms.most.min(20)),
                hint: if random.one_in(2) {
                    0
                } else {
                    around(&mut random, last.tat, 2 * terms.debt_cap)
                },
                debt: if random.one_in(3) { random.below(terms.most.min(50)) } else { 0 },
                at: if random.one_in(3) { 0 } else { around(&mut random, last.now, 3_000_000) },
                slack: terms.slack(),
                waiting: match random.below(3) {
                    0 => 0,
                    1 => random.below(terms.most.min(100)),
                    _ => random.below(2 * terms.most),
                },
                cost: random.below(terms.most.min(20)),
                life: random.pick(&[0, 1000, terms.life / 1000, 2 * terms.cap]),
            };
            let requester = Requester {
                seen: if random.one_in(10) {
                    random.pick(&[0, 0xdead, last.epoch])
                } else {
                    last.epoch
                },
                heard: match random.below(20) {
                    0 => last.now + random.skewed(3_000_000),
                    1 => 0,
                    _ => last.now,
                },
                first: random.one_in(4),
                fresh: 0x1000 + round,
            };
            let (before, key_before) = (limit.record, limit.stored);
            last = limit.ask(terms, &ask, &requester);
            let old = before.map_or(0, |record| record.terms.version);
            let version = limit.record.map_or(0, |record| record.terms.version);
            changed += u64::from(old != 0 && version > old);
            converted += u64::from(key_before.is_some_and(|key| {
                key.version < version && key.tat > last.now && key.tat != GARBAGE.tat
            }));
            rolled_back +=
                u64::from(before.is_some_and(|record| {
                    requester.seen == record.id && requester.heard > record.now
                }));
            served += u64::from(last.served != 0 && last.served < ask.waiting);
            granted += u64::from(last.permits != 0 && last.life != 0);
            hinted += u64::from(ask.hint != 0 && ask.hint == last.tat);
            cut += u64::from(
                before.is_some_and(|record| last.now == (ask.at + ask.slack).max(record.now)),
            );
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
