//! Makes the same requests of the server and, at the server's time, of the local core. The
//! decisions must be equal, with waits rounded up to whole microseconds.

use crate::common::{policy, Rng, SEC};
use crate::server::Server;
use crate::{limit, store};
use tollbar::policy::Opt;
use tollbar::{Decision, Kind, Policy, PolicyError, Shared, State, NEVER};
use tollbar_redis::store::{LimitError, RedisStore, Store};

/// Rounds the waits up to whole microseconds.
fn coarse(decision: Decision) -> Decision {
    let up = |nanos: u64| if nanos == NEVER { NEVER } else { nanos.div_ceil(1000) * 1000 };
    Decision {
        retry_after: up(decision.retry_after),
        reset_after: up(decision.reset_after),
        ..decision
    }
}

/// Makes `requests` requests of every sort on a new key, with pauses. Returns how many checks were
/// allowed and denied.
fn compare(
    store: &mut RedisStore,
    key: &str,
    text: &str,
    requests: u32,
    random: &mut Rng,
) -> (u32, u32) {
    let policy = policy(text);
    let limit = limit(store, text);
    let local = State::new(&policy).unwrap();
    let (mut admitted, mut refused) = (0, 0);
    for n in 0..requests {
        let cost =
            if random.below(8) == 0 { random.below(policy.burst + 2) } else { 1 + random.below(2) };
        match random.below(8) {
            0 => {
                let decision = store.peek(&limit, key.as_bytes(), cost).unwrap();
                assert_eq!(
                    decision,
                    coarse(local.peek_at(store.server_time(), cost)),
                    "{text}: peek {cost}, request {n}"
                );
            }
            1 => {
                let taken = store.take_up_to(&limit, key.as_bytes(), cost).unwrap();
                assert_eq!(
                    taken,
                    local.take_up_to_at(store.server_time(), cost),
                    "{text}: up to {cost}, request {n}"
                );
            }
            _ => {
                let decision = store.check(&limit, key.as_bytes(), cost).unwrap();
                assert_eq!(
                    decision,
                    coarse(local.check_at(store.server_time(), cost)),
                    "{text}: check {cost}, request {n}"
                );
                *if decision.is_allowed() { &mut admitted } else { &mut refused } += 1;
            }
        }
        // A round trip takes some 50 us. Pauses let whole periods pass now and then.
        if random.below(16) == 0 {
            let micros = random.below(policy.period / 1000 * 2).min(3_000);
            std::thread::sleep(std::time::Duration::from_micros(micros));
        }
    }
    (admitted, refused)
}

/// Compares several policies of one algorithm: the named ones, and random ones.
fn algorithm(named: &[&str], options: &[&str], bursts: bool) {
    let server = Server::start();
    let mut store = store(&server.unix());
    let mut random = Rng(named.len() as u64 + 17 * options.len() as u64);
    let mut texts: Vec<String> = named.iter().map(|text| text.to_string()).collect();
    for option in options {
        for _ in 0..6 {
            let (most, period) = (1 + random.below(60), 150 + random.below(9_000));
            let burst = if bursts && !option.contains("first") {
                format!(" burst {}", 1 + random.below(2 * most))
            } else {
                String::new()
            };
            texts.push(format!("{most}/{period}us{burst} {option}"));
        }
    }
    let mut sums = (0, 0);
    for (n, text) in texts.iter().enumerate() {
        let (admitted, refused) = compare(&mut store, &n.to_string(), text, 400, &mut random);
        sums = (sums.0 + admitted, sums.1 + refused);
    }
    // A trace with only one verdict compares little. On a slow machine fewer requests are denied,
    // so slower policies follow.
    let mut slow = 1_u64;
    while sums.0 <= 500 || sums.1 <= 500 {
        slow *= 4;
        assert!(slow <= 1 << 12, "{sums:?}");
        for (n, option) in options.iter().enumerate() {
            let text = format!("10/{}us {option}", 1000 * slow);
            let (admitted, refused) =
                compare(&mut store, &format!("slow {slow} {n}"), &text, 400, &mut random);
            sums = (sums.0 + admitted, sums.1 + refused);
        }
    }
}

#[test]
fn gcra() {
    let named = [
        "9973/s burst 3",
        "10000/s burst 1",
        "7/ms burst 20",
        "1000/min burst 40",
        "300/s burst 3000",
        "1/2100us",
    ];
    algorithm(&named, &[""], true);
}

#[test]
fn interval() {
    let named = [
        "3/ms burst 7 algo interval",
        "1/us burst 3 algo interval",
        "5/ms algo interval anchor first",
    ];
    algorithm(&named, &["algo interval", "algo interval anchor first"], true);
}

#[test]
fn fixed_window() {
    let named = ["20/ms algo fixed-window", "2/137us algo fixed-window count rejected"];
    let options =
        ["algo fixed-window", "algo fixed-window anchor first", "algo fixed-window count rejected"];
    algorithm(&named, &options, false);
}

#[test]
fn weighted_window() {
    algorithm(
        &["10/ms algo weighted-window", "1/777us algo weighted-window"],
        &["algo weighted-window"],
        false,
    );
}

#[test]
fn s45_sliding_window() {
    // Twelve segments of any of the random periods would not be whole microseconds.
    let of = |segments: u64, mode: &str, random: &mut Rng| {
        let (most, segment) = (1 + random.below(60), 20 + random.below(2_000));
        format!("{most}/{}us algo sliding-window segments {segments}{mode}", segment * segments)
    };
    let mut random = Rng(45);
    let modes = ["", " mode strict", " mode interpolated"];
    let texts: Vec<String> = [1, 2, 5, 12, 100]
        .iter()
        .flat_map(|segments| modes.map(|mode| (*segments, mode)))
        .map(|(segments, mode)| of(segments, mode, &mut random))
        .collect();
    let named: Vec<&str> = texts.iter().map(String::as_str).collect();
    algorithm(&named, &[], false);
}

#[test]
fn sliding_log() {
    let named = ["10/ms algo sliding-log", "1/333us algo sliding-log", "200/10ms algo sliding-log"];
    algorithm(&named, &["algo sliding-log", "algo sliding-log count rejected"], false);
}

/// The server keeps each key until it is as good as new, and not much longer.
#[test]
fn keys_expire_when_they_are_as_good_as_new() {
    let server = Server::start();
    let mut store = store(&server.unix());
    let mut random = Rng(5);
    for text in [
        "7/90ms burst 11",
        "7000/s burst 5",
        "7/90ms algo interval",
        "7/90ms algo interval anchor first",
        "7/90ms algo fixed-window count rejected",
        "7/90ms algo weighted-window",
        "7/90ms algo sliding-log",
        "7/90ms algo sliding-log count rejected",
        "7/90ms algo sliding-window segments 9",
        "7/90ms algo sliding-window segments 9 mode interpolated",
        "1000003/day burst 1000",
    ] {
        let limit = limit(&store, text);
        let key = format!("tollbar:{{test}}:{text}");
        let mut seen = 0;
        for _ in 0..40 {
            let cost = 1 + random.below(3);
            let decision = store.check(&limit, text.as_bytes(), cost).unwrap();
            let fresh = store.server_time() + decision.reset_after;
            let expires = server.command(&["PEXPIRETIME", &key]).int();
            let now = server.command(&["TIME"]);
            let now = now
                .items()
                .iter()
                .fold(0, |sum, part| sum * 1_000_000 + part.text().parse::<u64>().unwrap())
                * 1000;
            if !decision.is_allowed() {
                continue;
            }
            seen += 1;
            // On a busy machine the key may have expired already; then it was as good as new.
            let gone = expires == -2;
            let expires =
                if gone { now } else { u64::try_from(expires).expect("an expiry") * 1_000_000 };
            assert!(expires >= fresh, "{text}: gone at {expires}, fresh at {fresh}");
            assert!(
                gone || expires <= fresh + 2_000_000,
                "{text}: kept until {expires}, fresh at {fresh}"
            );
        }
        assert!(seen > 2, "{text}");
    }
    // All keys have expired but those of policies of a second and more.
    std::thread::sleep(std::time::Duration::from_millis(250));
    let left = server.command(&["KEYS", "*90ms*"]);
    assert_eq!(left.items(), [], "{left:?}");
}

#[test]
fn what_the_server_cannot_count_exactly_is_refused() {
    let store = store("redis://192.0.2.1");
    let refused = |text: &str| store.limit("test", &policy(text)).map(drop).unwrap_err();
    for (text, why) in [
        ("10/us algo sliding-window segments 5", LimitError::Fraction),
        ("10/s algo sliding-window anchor first", LimitError::Anchor),
        ("1000000/365day algo sliding-window mode interpolated", LimitError::TooLarge),
        ("10/s algo pacer", LimitError::Unsupported(Kind::Pacer)),
        ("10/s algo warm-up warm 1s", LimitError::Unsupported(Kind::WarmUp)),
        ("10/s borrow", LimitError::Borrow),
        ("10/s ban 1h", LimitError::Ban),
        ("10/s init 0", LimitError::Init),
        ("10/1500ns algo fixed-window", LimitError::Fraction),
        ("10/999ns algo interval", LimitError::Fraction),
        ("10/1ns algo sliding-log", LimitError::Fraction),
        // A permit is 8.64·10^10 units, so these bursts exceed 2^53 units, or 64 bits.
        ("1000003/day burst 1000000", LimitError::TooLarge),
        ("1000003/day burst 1000000000", LimitError::TooLarge),
        ("1000000/day algo weighted-window", LimitError::TooLarge),
        ("1/day burst 40000", LimitError::TooLarge),
        ("0/0s", LimitError::Policy(PolicyError::PeriodZero)),
    ] {
        if text == "0/0s" {
            let mut wrong = policy("1/s");
            wrong.period = 0;
            assert_eq!(store.limit("test", &wrong).map(drop), Err(why));
            continue;
        }
        assert_eq!(refused(text), why, "{text}");
    }
    let known = "gcra interval fixed-window weighted-window sliding-window sliding-log";
    let said = LimitError::Unsupported(Kind::Pacer).to_string();
    assert_eq!(said, format!("the Redis store does not have algo pacer; expected one of {known}"));
    let page = include_str!("../../src/store/redis.rs");
    assert!(
        page.contains(&format!("//! | algorithms | {};", known.replace(' ', ", "))),
        "the table at its top"
    );
    // A script decides by each of these, and by no other.
    for kind in Kind::ALL {
        let warm_up = if kind.takes(Opt::Warm) { SEC } else { 0 };
        let of_kind = match kind {
            Kind::Calendar => policy("10/day algo calendar"),
            _ => Policy { warm_up, ..Policy::new(10, SEC).with_kind(kind) },
        };
        let made = store.limit("test", &of_kind);
        assert_eq!(
            made.map(drop).err(),
            (!known.contains(kind.name())).then_some(LimitError::Unsupported(kind))
        );
    }
    for text in [
        "1000003/day burst 1000",
        "10/1500ns",
        "250mb/s burst 1gb unit bytes",
        "1000000/s",
        "1/day",
        "16777216/day algo sliding-log",
    ] {
        assert!(store.limit("test", &policy(text)).is_ok(), "{text}");
    }
}
