//! The one-line text form of a policy: reading, printing, and the columns of errors.

use crate::common::*;
use proptest::prelude::*;
use tollbar::policy::text::{parse, parse_list, print, TEXT_MOST};
use tollbar::policy::{Fault, Knots, Opt, Span, Zone};
use tollbar::{Anchor, Kind, Mode, Policy, PolicyError, State, SyntaxError, Unit};

#[test]
fn the_examples() {
    let plain = Policy::new(100, SEC);
    assert_eq!(policy("100/s"), plain);

    let interval =
        Policy { anchor: Anchor::First, ..Policy::new(3, MIN).with_kind(Kind::Interval) };
    assert_eq!(policy("3/min burst 3 algo interval anchor first"), interval);

    let sliding = Policy {
        segments: 6,
        mode: Mode::Strict,
        ..Policy::new(120, MIN).with_kind(Kind::SlidingWindow)
    };
    assert_eq!(policy("120/60s algo sliding-window segments 6 mode strict"), sliding);

    assert_eq!(
        policy("10/100ms burst 20 init 0"),
        Policy { burst: 20, init: 0, ..Policy::new(10, 100 * MS) }
    );
    assert_eq!(policy("1000/day"), Policy::new(1000, DAY));

    let bytes = Policy { unit: Unit::Bytes, ..Policy::new(250_000_000, SEC).with_burst(1_000_000) };
    assert_eq!(policy("250000000/s burst 1mb unit bytes"), bytes);
}

#[test]
fn canonical_printing() {
    for (read, printed) in [
        ("100/s", "100/s"),
        ("  100 / 1s   burst 100 ", "100/s"),
        ("100/1000ms algo gcra", "100/s"),
        ("100/s algo token-bucket", "100/s"),
        ("100/s algo leaky-bucket init 100", "100/s"),
        ("3/min burst 3 algo interval anchor first", "3/min algo interval anchor first"),
        (
            "120/60s algo sliding-window segments 6 mode strict",
            "120/min algo sliding-window segments 6 mode strict",
        ),
        ("120/min mode n segments 10 algo sliding-window", "120/min algo sliding-window"),
        ("10/100ms burst 20 init 0", "10/100ms burst 20 init 0"),
        ("5/s borrow init 0", "5/s borrow"),
        ("5/s borrow init 5", "5/s init 5 borrow"),
        ("1000/24h", "1000/day"),
        ("1000/d", "1000/day"),
        ("5/minute", "5/min"),
        ("10 per hour", "10/h"),
        ("10/2 minutes", "10/2min"),
        ("10 per 2 hours burst 3", "10/2h burst 3"),
        ("1/week", "1/7day"),
        ("3 / 2 weeks", "3/14day"),
        ("5/second", "5/s"),
        ("5/30 secs", "5/30s"),
        ("1 per 1 day", "1/day"),
        ("5 per 1 hour", "5/h"),
        ("9 per 1 month from 31", "9/month from 31"),
        ("9/1months", "9/month"),
        ("9 per years", "9/year"),
        ("10/min algo warm-up warm 5 seconds", "10/min algo warm-up warm 5s"),
        ("1/365d", "1/365day"),
        ("1/90min", "1/90min"),
        ("1/1500us", "1/1500us"),
        ("250000000/s burst 1mb unit bytes", "250000000/s burst 1000000 unit bytes"),
        ("1gib/s burst 1kib unit bytes", "1073741824/s burst 1024 unit bytes"),
        ("100/s algo pacer slack 10", "100/s algo pacer slack 10"),
        ("100/s algo warm-up warm 2000ms cold 3", "100/s algo warm-up warm 2s"),
        ("100/s cold 5 warm 1min algo warm-up", "100/s algo warm-up warm 1min cold 5"),
        (
            "9/s algo fixed-window count rejected anchor epoch",
            "9/s algo fixed-window count rejected",
        ),
        ("0/s", "0/s"),
        ("100/s reserve low 20 high 0", "100/s reserve low 20 high 0"),
        ("100/s reserve low 20 burst 30 unit permits", "100/s burst 30 reserve low 20"),
        (
            "100/s algo interval reserve  p-1   2kb q_2 0 burst 3kib unit bytes",
            "100/s burst 3072 algo interval reserve p-1 2000 q_2 0 unit bytes",
        ),
        (
            "9/s count rejected reserve a1 8 algo fixed-window",
            "9/s algo fixed-window count rejected reserve a1 8",
        ),
        ("100/min reserve low 20; 1000/h", "100/min reserve low 20; 1000/h"),
        ("0/s reserve low 20", "0/s reserve low 20"),
    ] {
        assert_eq!(policy(read).to_string(), printed, "{read}");
    }
}

fn refused(text: &str) -> SyntaxError {
    text.parse::<Policy>().expect_err(text)
}

/// Each fault, with a caret under the column that the error names.
#[test]
fn errors_name_the_column() {
    for (text, caret, fault) in [
        ("", "^", Fault::Syntax),
        ("100", "   ^", Fault::Syntax),
        ("100/", "    ^", Fault::Syntax),
        ("x/s", "^", Fault::Syntax),
        ("100/x", "    ^", Fault::Syntax),
        ("100/5", "     ^", Fault::Syntax),
        ("100/S", "    ^", Fault::Syntax),
        ("-1/s", "^", Fault::Syntax),
        ("1.5/s", " ^", Fault::Syntax),
        ("100/s burst", "           ^", Fault::Syntax),
        ("100/s burst x", "            ^", Fault::Syntax),
        ("100/s bursts 3", "      ^", Fault::Syntax),
        ("100/s 3", "      ^", Fault::Syntax),
        ("100/s; 3/s; 9/h", "          ^", Fault::Syntax),
        ("100 pro s", "    ^", Fault::Syntax),
        ("100 per", "       ^", Fault::Syntax),
        ("100/2 months", "    ^", Fault::Syntax),
        ("100 per 0 years", "        ^", Fault::Syntax),
        ("100/1 fortnight", "      ^", Fault::Syntax),
        ("100/Month", "    ^", Fault::Syntax),
        ("100/s\nburst 3", "     ^", Fault::Syntax),
        ("100/s burst 1mb", "             ^", Fault::Syntax),
        ("100/s burst 1tb unit bytes", "             ^", Fault::Syntax),
        ("100/s algo interval anchor last", "                           ^", Fault::Syntax),
        ("100/s algo sliding-window mode m", "                               ^", Fault::Syntax),
        ("100/s algo sliding-log count all", "                             ^", Fault::Syntax),
        ("100/s unit bits", "           ^", Fault::Syntax),
        ("100/s algo warm-up warm s", "                        ^", Fault::Syntax),
        ("18446744073709551616/s", "^", Fault::Overflow),
        ("1/18446744073709551616ns", "  ^", Fault::Overflow),
        ("1/213504day", "  ^", Fault::Overflow),
        ("1/s burst 18446744073709551615kb unit bytes", "          ^", Fault::Overflow),
        (
            "1/s algo sliding-window segments 4294967296",
            "                                 ^",
            Fault::Overflow,
        ),
        ("1/s algo gcar", "         ^", Fault::UnknownAlgorithm),
        ("1/s algo", "        ^", Fault::UnknownAlgorithm),
        ("1/s burst 1 burst 2", "            ^", Fault::Duplicate),
        ("1/s borrow algo gcra borrow", "                     ^", Fault::Duplicate),
        ("1/0s", "  ^", Fault::Policy(PolicyError::PeriodZero)),
        ("1/s burst 0", "    ^", Fault::Policy(PolicyError::BurstZero)),
        ("1/s burst 2 init 3", "            ^", Fault::Policy(PolicyError::InitAboveBurst)),
        ("1/s slack 3", "    ^", Fault::Policy(PolicyError::OptionMismatch)),
        ("1/s algo pacer borrow", "               ^", Fault::Policy(PolicyError::OptionMismatch)),
        (
            "1/s algo sliding-log burst 2",
            "                     ^",
            Fault::Policy(PolicyError::OptionMismatch),
        ),
        ("1/s segments 4 algo fixed-window", "    ^", Fault::Policy(PolicyError::OptionMismatch)),
        (
            "1/s algo weighted-window anchor first",
            "                         ^",
            Fault::Policy(PolicyError::OptionMismatch),
        ),
        (
            "1/s algo sliding-window segments 0",
            "                        ^",
            Fault::Policy(PolicyError::Segments),
        ),
        (
            "1/s algo sliding-window segments 1025",
            "                        ^",
            Fault::Policy(PolicyError::Segments),
        ),
        ("1/s algo warm-up warm 0s", "                 ^", Fault::Policy(PolicyError::WarmUp)),
        (
            "1/s algo warm-up warm 1s cold 0",
            "                         ^",
            Fault::Policy(PolicyError::WarmUp),
        ),
        (
            "1/s algo warm-up warm 1s cold 1001",
            "                         ^",
            Fault::Policy(PolicyError::WarmUp),
        ),
        ("1/s algo warm-up", "    ^", Fault::Policy(PolicyError::WarmUp)),
        ("1/forever algo gcra", "  ^", Fault::Policy(PolicyError::Quota)),
        ("1/s algo quota", "  ^", Fault::Policy(PolicyError::Quota)),
        ("5/forever burst 7", "          ^", Fault::Policy(PolicyError::OptionMismatch)),
        ("5/2forever", "   ^", Fault::Syntax),
        ("5/2month", "  ^", Fault::Syntax),
        ("5/1 month algo gcra", "  ^", Fault::Policy(PolicyError::Calendar)),
        ("5/1forever", "   ^", Fault::Syntax),
        ("5/month algo gcra", "  ^", Fault::Policy(PolicyError::Calendar)),
        ("5/h algo calendar", "  ^", Fault::Policy(PolicyError::Calendar)),
        ("5/h zone UTC", "  ^", Fault::Policy(PolicyError::Calendar)),
        ("5/month from 32", "             ^", Fault::Syntax),
        ("5/week from 3", "            ^", Fault::Syntax),
        ("5/year from 04", "              ^", Fault::Syntax),
        ("5/year from 13-01", "            ^", Fault::Syntax),
        ("5/year from 02-30", "  ^", Fault::Policy(PolicyError::Calendar)),
        ("5/day from 1", "           ^", Fault::Syntax),
        ("5/month burst 7", "        ^", Fault::Policy(PolicyError::OptionMismatch)),
        ("5/month zone Europe/Atlantis", "             ^", Fault::Syntax),
        ("5/month zone ../../../etc/passwd", "             ^", Fault::Syntax),
        ("5/month zone CET-1CEST,M3.6.0,M10.5.0", "             ^", Fault::Syntax),
        ("5/month zone CET-25", "             ^", Fault::Syntax),
        ("5/month zone STD1 until 0 STD2", "                        ^", Fault::Syntax),
        ("5/month zone STD1 until 7 Europe/Berlin", "                          ^", Fault::Syntax),
        ("5/month zone STD1 until 7", "                         ^", Fault::Syntax),
        ("10/s; 100/forever", "      ^", Fault::Policy(PolicyError::List)),
        ("100/s reserve", "             ^", Fault::Syntax),
        ("100/s reserve burst 3", "              ^", Fault::Syntax),
        ("100/s reserve low", "                 ^", Fault::Syntax),
        ("100/s reserve low high 3", "                  ^", Fault::Syntax),
        ("100/s reserve 1low 3", "              ^", Fault::Syntax),
        ("100/s reserve a 1 b 2 c 3 d 4 e 5", "                              ^", Fault::Syntax),
        ("100/s reserve sixteen-letters- 5", "              ^", Fault::Syntax),
        ("100/s reserve low 5mb", "                   ^", Fault::Syntax),
        ("100/s reserve low 1 low 2", "                    ^", Fault::Duplicate),
        (
            "100/s reserve low 1 burst 5 reserve high 2",
            "                            ^",
            Fault::Duplicate,
        ),
        ("100/s reserve low 18446744073709551616", "                  ^", Fault::Overflow),
        (
            "100/s reserve high 0 low 100",
            "                         ^",
            Fault::Policy(PolicyError::Classes),
        ),
        (
            "100/s reserve low 20 burst 20",
            "                  ^",
            Fault::Policy(PolicyError::Classes),
        ),
        ("100/s borrow reserve low 20", "             ^", Fault::Policy(PolicyError::Classes)),
        (
            "100/s algo pacer reserve low 20",
            "                 ^",
            Fault::Policy(PolicyError::OptionMismatch),
        ),
        ("100/s; 1000/h reserve low 20", "       ^", Fault::Policy(PolicyError::List)),
        (
            "1000/h reserve low 100; 100/s",
            "                        ^",
            Fault::Policy(PolicyError::Classes),
        ),
        ("16777217/s algo sliding-log", "^", Fault::Policy(PolicyError::LogTooLarge)),
    ] {
        let why = refused(text);
        assert_eq!((why.column, why.fault), (caret.len(), fault), "{text:?}: {why}");
        assert_eq!(why.expected().is_empty(), matches!(fault, Fault::Policy(_)), "{text:?}: {why}");
        assert!(why.to_string().starts_with(&format!("column {}: ", caret.len())), "{why}");
    }
}

#[test]
fn error_messages() {
    assert_eq!(refused("100").to_string(), "column 4: expected `/` and a period");
    assert!(refused("1/s algo x")
        .to_string()
        .starts_with("column 10: unknown algorithm, expected `gcra`"));
    assert_eq!(refused("1/0s").to_string(), "column 3: the period is zero");
    let months = refused("9 per 3 months").to_string();
    assert!(
        months
            .starts_with("column 7: expected 1, because a calendar counts single months and years"),
        "{months}"
    );
    assert_eq!(
        refused("1/s burst 1 burst 1").to_string(),
        "column 13: given twice, expected each option once"
    );
}

/// Errors that no text can cause, and errors that only compiling a policy finds.
#[test]
fn every_policy_error() {
    let compile = |policy: Policy| State::new(&policy).map(drop).expect_err("impossible");
    assert_eq!(compile(Policy::new(17, 1)), PolicyError::RateTooHigh);
    assert_eq!(
        compile(Policy::new(1 << 40, 1).with_kind(Kind::FixedWindow)),
        PolicyError::RateTooHigh
    );
    assert_eq!(compile(Policy::new(1, SEC).with_burst(u64::MAX)), PolicyError::BurstTooLarge);
    assert_eq!(
        compile(policy("3/s burst 4 algo interval anchor first")),
        PolicyError::BurstTooLarge
    );
    assert_eq!(compile(policy("3/10ns algo sliding-window segments 3")), PolicyError::Segments);
    assert_eq!(compile(Policy::new(1, 0)), PolicyError::PeriodZero);
    assert_eq!(compile(Policy::new(100, SEC).with_second(1_000_000, DAY)), PolicyError::List);
    assert_eq!(
        compile(Policy { burst: 0, init: 0, ..Policy::new(1, SEC) }),
        PolicyError::BurstZero
    );
    assert_eq!(compile(Policy { init: 2, ..Policy::new(1, SEC) }), PolicyError::InitAboveBurst);
    assert_eq!(compile(Policy { slack: 1, ..Policy::new(1, SEC) }), PolicyError::OptionMismatch);
    assert_eq!(compile(Policy::new(1, SEC).with_kind(Kind::WarmUp)), PolicyError::WarmUp);
    assert_eq!(
        compile(Policy::new(1 << 25, SEC).with_kind(Kind::SlidingLog)),
        PolicyError::LogTooLarge
    );
    for text in ["1/s algo sliding-log", "1/s algo sliding-window"] {
        let why = tollbar::algorithm::Rule::new(&policy(text)).expect_err("more than a word");
        assert_eq!(why, PolicyError::NotOneWord);
    }
}

#[test]
fn lists() {
    let read = |text: &str| {
        let mut all = Vec::new();
        parse_list(text.as_bytes(), |policy| all.push(policy)).map(|()| all)
    };
    assert_eq!(read("10/s; 100/min algo sliding-log ;1000/day").unwrap().len(), 3);
    assert_eq!(read("10/s").unwrap(), [policy("10/s")]);
    // Columns count from the start of the whole text.
    assert_eq!(read("10/s; 100/x").unwrap_err().column, 11);
    assert_eq!(read("10/s;").unwrap_err().column, 6);
    assert_eq!(read("10/s; 1/0s").unwrap_err().column, 9);
}

#[test]
fn printing_stops_at_the_end_of_the_space() {
    let policy = policy("120/min algo sliding-window segments 6 mode strict");
    let whole = policy.to_string();
    for room in 0..whole.len() {
        let mut out = vec![0; room];
        assert_eq!(print(&policy, &mut out), room);
        assert_eq!(out, whole.as_bytes()[..room]);
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..20u64, any::<u64>(), (0..64u32).prop_map(|shift| 1 << shift), Just(u64::MAX)]
}

fn period() -> impl Strategy<Value = u64> {
    let unit = prop::sample::select(vec![1, US, MS, SEC, MIN, HOUR, DAY]);
    (number(), unit).prop_map(|(n, unit)| n.saturating_mul(unit).max(1))
}

/// A zone of any words that make one.
fn zone(offsets: u64, turns: u64, changes: bool, turning: bool) -> Zone {
    let offset = |bits: u64| ((bits % 179_999) as i32 - 89_999) as u32;
    let turn = |bits: u64| {
        (bits % 1_209_599 + 1) as u32
            | ([5 << 6 | 2 << 3 | 6, 1 << 10 | 200, 3 << 9 | 60][bits as usize % 3] << 21)
    };
    let law = |bits: u64| match turning {
        true => [
            u64::from(offset(bits)) | u64::from(offset(bits >> 20)) << 32,
            u64::from(turn(turns)) | u64::from(turn(turns >> 9)) << 32,
        ],
        false => [u64::from(offset(bits)), 0],
    };
    let ([a, b], [c, d]) = (law(offsets), law(offsets >> 7));
    let words = if changes { [a, b, c, d, 1 + turns % (1 << 40)] } else { [a, b, 0, 0, 0] };
    Zone::from_words(words).expect("a zone")
}

prop_compose! {
    /// Any valid policy.
    fn any_policy()(
        limit in number(), period in period(), burst in number(), init in number(), slack in number(), warm_up in period(),
        kind in prop::sample::select(Kind::ALL.to_vec()), mode in prop::sample::select(vec![Mode::N, Mode::Strict, Mode::Interpolated]),
        segments in 1..=1024u32, cold in 1..=1000u32, flags in any::<[bool; 6]>(), reserves in prop::collection::vec(number(), 0..=4),
    ) -> Policy {
        let limit = if kind == Kind::SlidingLog { limit % ((1 << 24) + 1) } else { limit };
        let span = Span::ALL[segments as usize % 4];
        let period = if kind == Kind::Calendar { span.nanos() } else { period };
        let mut policy = Policy::new(limit, period).with_kind(kind);
        let [own_burst, own_init, borrow, anchored, count, bytes] = flags;
        if kind.takes(Opt::Burst) && own_burst {
            policy = policy.with_burst(burst.max(u64::from(limit != 0)));
        }
        if kind == Kind::Gcra {
            policy.borrow = borrow;
            if own_init || borrow {
                policy.init = init.min(policy.burst);
            }
        }
        if anchored && kind.takes(Opt::Anchor) {
            policy.anchor = Anchor::First;
        }
        match kind {
            Kind::SlidingWindow => (policy.segments, policy.mode) = (segments, mode),
            Kind::Pacer => policy.slack = slack,
            Kind::WarmUp => (policy.warm_up, policy.cold) = (warm_up, cold),
            Kind::Calendar => {
                policy.from = match span {
                    Span::Day => 0,
                    Span::Week => cold % 7,
                    Span::Month => cold % 31,
                    Span::Year => cold % 12 * 32 + cold % 29,
                };
                policy.zone = zone(burst, init, anchored, bytes);
            }
            _ => {}
        }
        policy.count_rejected = count && kind.takes(Opt::Count);
        policy.unit = if bytes { Unit::Bytes } else { Unit::Permits };
        if kind.takes(Opt::Reserve) && !policy.borrow {
            for (name, reserve) in ["low", "n0rmal_-", "LOW", "a-name-of-15-by"].iter().zip(reserves) {
                policy.classes = policy.classes.and(name, reserve % policy.burst.max(1)).unwrap();
            }
        }
        policy
    }
}

/// Each name of a unit and the unit's canonical name.
const UNITS: [(&str, &str); 27] = [
    ("ns", "ns"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("min", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("h", "h"),
    ("hr", "h"),
    ("hrs", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("d", "day"),
    ("day", "day"),
    ("days", "day"),
    ("w", "week"),
    ("week", "week"),
    ("weeks", "week"),
    ("month", "month"),
    ("months", "month"),
    ("year", "year"),
    ("years", "year"),
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        // The same cases in every run.
        rng_seed: proptest::test_runner::RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn reading_what_was_printed_gives_the_same_policy(policy in any_policy()) {
        prop_assert_eq!(policy.validate(), Ok(()));
        let mut out = [0; TEXT_MOST];
        let len = print(&policy, &mut out);
        prop_assert!(len < TEXT_MOST);
        prop_assert_eq!(parse(&out[..len]), Ok(policy));
        // Canonical: printing what was read gives the same text.
        prop_assert_eq!(policy.to_string().into_bytes(), out[..len].to_vec());
    }

    /// A rate as people write it is the policy that its shortest form gives, alone and with an
    /// option.
    #[test]
    fn a_rate_as_people_write_it_is_the_short_form(
        limit in 0..1000u64, count in 1..400u64, unit in prop::sample::select(UNITS.to_vec()),
        per in prop::sample::select(vec!["/", " / ", "/ ", " per ", "\tper\t"]), blank in prop::sample::select(vec!["", " ", "  "]),
        bare in any::<bool>(), burst in prop::option::of(1..50u64),
    ) {
        let (written, short) = unit;
        let calendar = matches!(short, "month" | "year");
        let count = if calendar { 1 } else { count };
        let burst = match burst {
            Some(burst) if !calendar && limit != 0 => format!(" burst {burst}"),
            _ => String::new(),
        };
        let counted = if calendar { short.to_owned() } else { format!("{count}{short}") };
        let shortest = policy(&format!("{limit}/{counted}{burst}"));
        prop_assert_eq!(policy(&format!("{limit}{per}{count}{blank}{written}{burst}")), shortest);
        if bare && count == 1 {
            prop_assert_eq!(policy(&format!("{limit}{per}{written}{burst}")), shortest);
        }
        prop_assert_eq!(policy(&shortest.to_string()), shortest);
    }

    #[test]
    fn any_bytes_are_read_or_refused_within_them(text in prop::collection::vec(any::<u8>(), 0..60)) {
        bears(&text);
    }

    /// Pieces of the grammar in any order reach more code than random bytes do.
    #[test]
    fn any_pieces_are_read_or_refused_within_them(pieces in prop::collection::vec(prop::sample::select([&PIECES[..], &Kind::ALL.map(Kind::name)].concat()), 0..12)) {
        bears(pieces.concat().as_bytes());
        bears(format!("10/s {}", pieces.join(" ")).as_bytes());
    }
}

/// Pieces of texts, beside the names of the algorithms.
const PIECES: [&str; 38] = [
    "10",
    "/",
    "s",
    "min",
    "100ms",
    "0",
    "1",
    "18446744073709551615",
    "99999999999999999999",
    "burst",
    "algo",
    "init",
    "borrow",
    "anchor",
    "first",
    "epoch",
    "segments",
    "mode",
    "strict",
    "slack",
    "warm",
    "2s",
    "cold",
    "count",
    "rejected",
    "unit",
    "bytes",
    "1mb",
    " ",
    "\t",
    ";",
    "é",
    "month",
    "year",
    "zone",
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "until",
    "from",
];

fn bears(text: &[u8]) {
    match parse(text) {
        Ok(policy) => {
            assert_eq!(policy.validate(), Ok(()));
            assert_eq!(parse(policy.to_string().as_bytes()), Ok(policy));
            // It compiles or says why not.
            let _ = State::new(&Policy {
                limit: policy.limit % 1000,
                burst: policy.limit % 1000,
                ..policy
            });
        }
        Err(why) => assert!((1..=text.len() + 1).contains(&why.column), "{why:?}"),
    }
    let _ = parse_list(text, drop);
}

/// Each option alone, by each algorithm: it is accepted by those that have it and by no other.
#[test]
fn every_option_belongs_to_its_algorithms() {
    type Change = fn(&mut Policy);
    let options: [(Opt, Change); 11] = [
        (Opt::Borrow, |p| p.borrow = true),
        (Opt::Init, |p| p.init = 1),
        (Opt::Burst, |p| (p.burst, p.init) = (5, 5)),
        (Opt::Anchor, |p| p.anchor = Anchor::First),
        (Opt::Segments, |p| p.segments = 4),
        (Opt::Mode, |p| p.mode = Mode::Strict),
        (Opt::Slack, |p| p.slack = 1),
        (Opt::Count, |p| p.count_rejected = true),
        (Opt::Cold, |p| p.cold = 7),
        (Opt::From, |p| (p.from, p.period) = (4, Span::Week.nanos())),
        (Opt::Zone, |p| p.zone = "1/day zone JST-9".parse::<Policy>().expect("a policy").zone),
    ];
    for kind in Kind::ALL {
        let mut plain = Policy::new(9, DAY).with_kind(kind);
        assert_eq!(plain.segments, if kind == Kind::SlidingWindow { 10 } else { 0 });
        assert_eq!(plain.cold, if kind == Kind::WarmUp { 3 } else { 0 });
        for (option, change) in options {
            plain.warm_up = if kind == Kind::WarmUp { SEC } else { 0 };
            assert_eq!(plain.validate(), Ok(()), "{kind:?}");
            let mut policy = plain;
            change(&mut policy);
            let want = if kind.takes(option) { Ok(()) } else { Err(PolicyError::OptionMismatch) };
            assert_eq!(policy.validate(), want, "{kind:?} with {option:?}");
        }
        let knots = Policy { knots: Knots::of(&[[0, 100]]), ..plain };
        let takes = kind.takes(Opt::Curve) || kind.takes(Opt::Refill);
        let want = if takes { Ok(()) } else { Err(PolicyError::OptionMismatch) };
        assert_eq!(knots.validate(), want, "{kind:?} with knots");
        plain.warm_up = SEC;
        let want = if kind == Kind::WarmUp { Ok(()) } else { Err(PolicyError::OptionMismatch) };
        assert_eq!(plain.validate(), want, "{kind:?} with a warm-up time");
    }
}
