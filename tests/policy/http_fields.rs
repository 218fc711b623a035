//! HTTP header fields: the writer's output byte by byte in every dialect, the reader's results, and
//! hostile text.

use proptest::prelude::*;
use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::http::{more_after, problem, Draft, Fields, Limit, Reset, Seen, INTEGER_MOST};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Policy, NEVER};

const SECOND: u64 = 1_000_000_000;

fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

fn allowed(remaining: u64, reset_after: u64) -> Decision {
    Decision {
        verdict: Verdict::Allowed,
        reason: Reason::Admitted,
        remaining,
        retry_after: 0,
        reset_after,
        bound: 0,
    }
}

fn denied(retry_after: u64) -> Decision {
    Decision {
        verdict: Verdict::Denied,
        reason: Reason::Rate,
        remaining: 0,
        retry_after,
        reset_after: retry_after.saturating_mul(20),
        bound: 0,
    }
}

fn written(fields: Fields, limits: &[Limit<'_>], utc: u64) -> String {
    let mut out = [0; 2048];
    let length = fields.write(limits, utc, &mut out);
    String::from_utf8(out[..length].to_vec()).expect("ASCII")
}

/// The lines of one limit, "100/min burst 20", of which 19 permits are left.
fn lines(fields: Fields) -> String {
    let limit = Limit::new(b"client", &policy("100/min burst 20"), &allowed(19, 600_000_000))
        .with_more_after(600_000_000);
    written(fields, &[limit], 1_700_000_000 * SECOND)
}

#[test]
fn each_dialect_of_an_admission() {
    assert_eq!(lines(Fields::new()), "");
    assert_eq!(
        lines(Fields::new().with_legacy(Reset::Seconds)),
        "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 19\r\nX-RateLimit-Reset: 1\r\n"
    );
    assert_eq!(
        lines(Fields::new().with_legacy(Reset::Epoch)),
        "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 19\r\nX-RateLimit-Reset: 1700000001\r\n"
    );
    assert_eq!(
        lines(Fields::new().with_draft(Draft::Six)),
        "RateLimit-Limit: 100\r\nRateLimit-Remaining: 19\r\nRateLimit-Reset: 1\r\nRateLimit-Policy: 100;w=60\r\n"
    );
    assert_eq!(
        lines(Fields::new().with_draft(Draft::Seven)),
        "RateLimit-Policy: 100;w=60\r\nRateLimit: limit=100, remaining=19, reset=1\r\n"
    );
    assert_eq!(
        lines(Fields::new().with_draft(Draft::Eleven)),
        "RateLimit-Policy: \"client\";q=100;w=60\r\nRateLimit: \"client\";r=19;t=1\r\n"
    );
}

#[test]
fn a_refusal_names_the_limit_with_the_longest_wait() {
    let (second, hour) = (policy("10/s"), policy("1000/h"));
    let limits = [
        Limit::new(b"a", &second, &denied(50_000_000)),
        Limit::new(b"b", &hour, &denied(3_600_000_001)),
        Limit::new(b"c", &hour, &allowed(7, 0)),
    ];
    assert_eq!(
        written(Fields::new().with_legacy(Reset::Seconds).with_draft(Draft::Eleven), &limits, 0),
        "Retry-After: 4\r\nX-RateLimit-Limit: 1000\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 73\r\n\
         RateLimit-Policy: \"a\";q=10;w=1, \"b\";q=1000;w=3600, \"c\";q=1000;w=3600\r\n\
         RateLimit: \"a\";r=0;t=1, \"b\";r=0;t=4, \"c\";r=7\r\n"
    );
    assert_eq!(
        written(Fields::new().with_draft(Draft::Seven), &limits, 0),
        "Retry-After: 4\r\nRateLimit-Policy: 10;w=1, 1000;w=3600, 1000;w=3600\r\nRateLimit: limit=1000, remaining=0, reset=4\r\n"
    );
    let mut out = [0; 300];
    let length = problem(&limits, 429, &mut out);
    assert_eq!(
        std::str::from_utf8(&out[..length]).unwrap(),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Too many requests\",\
         \"status\":429,\"violated-policies\":[\"a\",\"b\"]}"
    );
}

#[test]
fn a_request_that_never_passes_has_no_retry_after() {
    let never = Decision {
        verdict: Verdict::Never,
        reason: Reason::Burst,
        retry_after: NEVER,
        ..allowed(20, 0)
    };
    let limit = Limit::new(b"a", &policy("100/min burst 20"), &never);
    assert_eq!(
        written(Fields::new().with_draft(Draft::Eleven), &[limit], 0),
        "RateLimit-Policy: \"a\";q=100;w=60\r\nRateLimit: \"a\";r=20\r\n"
    );
}

#[test]
fn a_lifetime_quota_has_no_window() {
    let refused =
        Decision { retry_after: NEVER, reset_after: NEVER, remaining: 0, ..denied(SECOND) };
    let limit = Limit::new(b"a", &policy("500/forever"), &refused);
    assert_eq!(
        written(Fields::new().with_draft(Draft::Eleven), &[limit], 0),
        "RateLimit-Policy: \"a\";q=500\r\nRateLimit: \"a\";r=0\r\n"
    );
    assert!(written(Fields::new().with_draft(Draft::Seven), &[limit], 0)
        .starts_with("RateLimit-Policy: 500\r\n"));
}

#[test]
fn of_a_list_it_is_the_policy_that_bound() {
    let list = policy("10/s; 1000/day");
    let of = |bound| {
        let limit = Limit::new(b"a", &list, &Decision { bound, ..denied(SECOND) });
        written(Fields::new().with_draft(Draft::Eleven), &[limit], 0)
    };
    assert!(of(0).contains("\"a\";q=10;w=1\r\n"), "{}", of(0));
    assert!(of(1).contains("\"a\";q=1000;w=86400\r\n"), "{}", of(1));
}

#[test]
fn names_and_partitions_cannot_break_out_of_their_strings() {
    let decision = allowed(1, 0);
    let name = b"a\"b\\c\r\nSet-Cookie: x\xc3\xa9";
    let limit = Limit::new(name, &policy("1/h"), &decision);
    let text =
        written(Fields::new().with_draft(Draft::Eleven), &[limit.with_partition(b"user-7")], 0);
    assert_eq!(
        text,
        "RateLimit-Policy: \"a\\\"b\\\\c??Set-Cookie: x??\";q=1;w=3600;pk=:dXNlci03:\r\n\
         RateLimit: \"a\\\"b\\\\c??Set-Cookie: x??\";r=1;pk=:dXNlci03:\r\n"
    );
    for (key, expected) in
        [(&b"f"[..], ":Zg==:"), (b"fo", ":Zm8=:"), (b"foo", ":Zm9v:"), (b"\xff\xfe", "://4=:")]
    {
        let text =
            written(Fields::new().with_draft(Draft::Eleven), &[limit.with_partition(key)], 0);
        assert!(text.contains(&format!(";pk={expected}\r\n")), "{text}");
    }
}

#[test]
fn periods_of_other_lengths_give_a_pair_of_the_same_rate() {
    for (text, expected) in [
        ("10/100ms", "q=100;w=1"),
        ("1/1500ms", "q=1;w=2"),
        ("7/day", "q=7;w=86400"),
        ("250000000/s", "q=250000000;w=1"),
    ] {
        let limit = Limit::new(b"a", &policy(text), &allowed(1, 0));
        let line = written(Fields::new().with_draft(Draft::Eleven), &[limit], 0);
        assert!(line.contains(expected), "{line}");
    }
    let most = Limit {
        limit: u64::MAX,
        period: 1,
        burst: u64::MAX,
        remaining: u64::MAX,
        ..Limit::new(b"a", &policy("1/s"), &allowed(1, 0))
    };
    let line = written(Fields::new().with_draft(Draft::Eleven), &[most], 0);
    assert_eq!(
        line,
        format!(
            "RateLimit-Policy: \"a\";q={INTEGER_MOST};w=1\r\nRateLimit: \"a\";r={INTEGER_MOST}\r\n"
        )
    );
}

#[test]
fn a_short_buffer_gets_the_beginning_and_the_whole_length() {
    let limit = Limit::new(b"client", &policy("100/min burst 20"), &denied(5 * SECOND));
    let fields = Fields::new().with_legacy(Reset::Seconds).with_draft(Draft::Eleven);
    let whole = written(fields, &[limit], 0);
    for room in 0..whole.len() + 2 {
        let mut out = vec![b'#'; room];
        assert_eq!(fields.write(&[limit], 0, &mut out), whole.len());
        let fits = room.min(whole.len());
        assert_eq!(&out[..fits], &whole.as_bytes()[..fits]);
        assert!(out[fits..].iter().all(|byte| *byte == b'#'));
    }
    assert_eq!(fields.write(&[], 0, &mut [0; 10]), 0);
}

#[test]
fn when_more_permits_are_left() {
    let gcra = policy("100/min burst 20");
    let never = |_| -> Decision { panic!("no peek") };
    // In turn: no permit is missing, a refusal of one permit more than is left, and a policy that
    // lends.
    assert_eq!(more_after(&gcra, &allowed(20, 0), 1, never), NEVER);
    assert_eq!(more_after(&gcra, &denied(7), 1, never), 7);
    assert_eq!(more_after(&policy("10/s algo pacer"), &allowed(3, 9), 1, never), NEVER);
    // The peek is for one permit more than is left.
    let peek = |n| {
        assert_eq!(n, 6);
        denied(400)
    };
    assert_eq!(more_after(&gcra, &allowed(5, 9), 1, peek), 400);
    let refused = Decision { remaining: 5, ..denied(300) };
    assert_eq!(more_after(&gcra, &refused, 9, peek), 300);
    assert_eq!(more_after(&gcra, &allowed(5, 9), 1, |_| allowed(1, 1)), 1);
    // A class waits for its reserve, also where its cost is one permit more than is left.
    let classes = policy("60/min burst 20 reserve low 10 high 0");
    let table = Table::private(&Options::new(100), &[classes]).expect("a table");
    assert!(table.check_at(PolicyId::FIRST, b"k", SECOND, 18).is_allowed());
    let refused = table.check_class_at(PolicyId::FIRST, b"k", SECOND, 3, b"low").expect("a class");
    assert_eq!((refused.remaining, refused.retry_after), (2, 11 * SECOND));
    assert_eq!(
        more_after(&classes, &refused, 3, |n| table.peek_uncounted(
            PolicyId::FIRST,
            b"k",
            Some(SECOND),
            n
        )),
        SECOND
    );
}

#[test]
fn a_client_reads_every_dialect() {
    let limit = Limit::new(b"client", &policy("100/min burst 20"), &denied(1_400_000_000));
    let utc = 1_700_000_000 * SECOND;
    for fields in [
        Fields::new().with_draft(Draft::Six),
        Fields::new().with_draft(Draft::Seven),
        Fields::new().with_draft(Draft::Eleven),
        Fields::new().with_draft(Draft::Eleven).with_legacy(Reset::Epoch),
    ] {
        let seen = Seen::read(written(fields, &[limit], utc).as_bytes(), utc);
        let expected = Seen {
            limit: Some(100),
            window: Some(60 * SECOND),
            remaining: Some(0),
            more_after: Some(2 * SECOND),
            retry_after: Some(2 * SECOND),
        };
        assert_eq!(seen, expected, "{fields:?}");
    }
    for reset in [Reset::Seconds, Reset::Epoch] {
        let seen =
            Seen::read(written(Fields::new().with_legacy(reset), &[limit], utc).as_bytes(), utc);
        assert_eq!((seen.limit, seen.remaining, seen.window), (Some(20), Some(0), None));
        assert_eq!((seen.more_after, seen.retry_after), (Some(28 * SECOND), Some(2 * SECOND)));
    }
}

#[test]
fn what_other_servers_send() {
    let read = |text: &str| Seen::read(text.as_bytes(), 784_111_777 * SECOND);
    // A proxy may have added a line of its own.
    let lines = "RateLimit: \"a\";r=5;t=3\r\nRateLimit: \"b\";r=2;t=9\r\nRateLimit-Policy: \"a\";q=9;w=1\nRateLimit-Policy: \"b\";q=7;w=60\r\n";
    let seen = read(lines);
    assert_eq!((seen.remaining, seen.more_after), (Some(2), Some(9 * SECOND)));
    assert_eq!((seen.limit, seen.window), (Some(7), Some(60 * SECOND)));
    // RFC 9110's example of a date, and a date in the past.
    assert_eq!(
        read("Retry-After: Sun, 06 Nov 1994 08:49:40 GMT\r\n").retry_after,
        Some(3 * SECOND)
    );
    // 1,941 days after.
    let leap_day =
        Seen::read(b"Retry-After: Tue, 29 Feb 2000 08:49:37 GMT", 784_111_777 * SECOND).retry_after;
    assert_eq!(leap_day, Some(1941 * 86_400 * SECOND));
    assert_eq!(read("retry-after:  Thu, 01 Jan 1970 00:00:00 GMT  ").retry_after, Some(0));
    assert_eq!(read("RETRY-AFTER: 120\n").retry_after, Some(120 * SECOND));
    assert_eq!(read("X-Rate-Limit-Reset: 784111779").more_after, Some(784_111_779 * SECOND));
    assert_eq!(
        Seen::read(b"x-ratelimit-reset: 1700000005", 1_700_000_000 * SECOND).more_after,
        Some(5 * SECOND)
    );
    assert_eq!(
        Seen::read(b"x-ratelimit-reset: 1700000005250", 1_700_000_000 * SECOND).more_after,
        Some(5_250_000_000)
    );
    let six = read("RateLimit-Limit: 100, 100;w=60\nRateLimit-Remaining: 3\nRateLimit-Reset: 7\n");
    assert_eq!((six.limit, six.remaining, six.more_after), (Some(100), Some(3), Some(7 * SECOND)));
    // Of several limits the one with the fewest permits left counts, and among equal ones the one
    // with the longest wait. Names may contain separators.
    let text = "RateLimit-Policy: \"per,min;x\";q=50;w=60, perhr;q=1000;w=3600\nRateLimit: perhr;r=9;t=100, \"per,min;x\";r=2;t=5, perhr;r=2;t=1\n";
    let seen = read(text);
    assert_eq!((seen.limit, seen.window, seen.remaining), (Some(50), Some(60 * SECOND), Some(2)));
    assert_eq!(seen.more_after, Some(5 * SECOND));
}

/// E9: the policy of another limit describes none, the last of doubled parameters counts, and the
/// longest of several waits.
#[test]
fn e9_other_policies_doubled_parameters_and_waits() {
    let read = |text: &str| Seen::read(text.as_bytes(), 784_111_777 * SECOND);
    for policies in ["\"x\";q=10;w=60", "10;w=60", "\"x\";q=10;w=60, \"P\";q=7;w=1"] {
        let seen = read(&format!("RateLimit: \"p\";r=5;t=3\nRateLimit-Policy: {policies}\n"));
        let of_p = Seen { remaining: Some(5), more_after: Some(3 * SECOND), ..Seen::default() };
        assert_eq!(seen, of_p, "{policies}");
    }
    let other = read("RateLimit: limit=100, remaining=5, reset=3\nRateLimit-Policy: 50;w=60\n");
    assert_eq!((other.limit, other.window), (Some(100), None));
    // Without a limit that it could describe, the first policy counts.
    let alone = read("RateLimit-Policy: \"x\";q=10;w=60, \"y\";q=7;w=1\n");
    assert_eq!((alone.limit, alone.window), (Some(10), Some(60 * SECOND)));
    let twice =
        read("RateLimit: \"p\";r=5;t=3;r=2;t=9\nRateLimit-Policy: \"p\";q=10;w=60;q=20;w=30\n");
    assert_eq!((twice.remaining, twice.more_after), (Some(2), Some(9 * SECOND)));
    assert_eq!((twice.limit, twice.window), (Some(20), Some(30 * SECOND)));
    let members = read(
        "RateLimit: limit=9, remaining=5, reset=3, remaining=2\nRateLimit: reset=8, limit=7\n",
    );
    assert_eq!(
        (members.limit, members.remaining, members.more_after),
        (Some(7), Some(2), Some(8 * SECOND))
    );
    // A name alone means true, which is no number.
    assert_eq!(read("RateLimit: \"p\";r=5;r\n"), Seen::default());
    assert_eq!(read("RateLimit: \"p\";r=5;t=3;t\n").more_after, None);
    for waits in [
        "Retry-After: 2\nRetry-After: 30\n",
        "Retry-After: 30\nretry-after: 2\n",
        "Retry-After: soon\nRetry-After: 30\n",
    ] {
        assert_eq!(read(waits).retry_after, Some(30 * SECOND), "{waits}");
    }
    let date = "Retry-After: 2\nRetry-After: Sun, 06 Nov 1994 08:49:40 GMT\n";
    assert_eq!(read(date).retry_after, Some(3 * SECOND));
}

/// C7: waits that are too long for 64 bits, fractions, joined values, all forms of dates, and
/// resets as times.
#[test]
fn c7_waits_and_resets_as_servers_write_them() {
    const NOW: u64 = 784_111_777;
    let read = |text: &str| Seen::read(text.as_bytes(), NOW * SECOND);
    let most = u64::MAX - NOW * SECOND;
    for (value, wait) in [
        ("18446744073", 18_446_744_073 * SECOND),
        ("18446744074", u64::MAX),
        ("99999999999999999999999999", u64::MAX),
        ("Fri, 31 Dec 9999 23:59:59 GMT", most),
        ("Mon, 22 Jul 2554 00:00:00 GMT", most),
        ("0.493", 493_000_000),
        ("1.0000000019", SECOND + 1),
        ("2814, 2", 2_814 * SECOND),
        ("2, soon, 7", 7 * SECOND),
        ("Sunday, 06-Nov-94 08:49:40 GMT", 3 * SECOND),
        ("Sun Nov  6 08:49:40 1994", 3 * SECOND),
        ("Sun Nov 16 08:49:37 1994", 10 * 86_400 * SECOND),
        // 2044 is 50 years after, and 1945 was 49 years before.
        ("Sunday, 06-Nov-44 08:49:37 GMT", 18_263 * 86_400 * SECOND),
        ("Monday, 06-Nov-45 08:49:37 GMT", 0),
    ] {
        assert_eq!(read(&format!("Retry-After: {value}\n")).retry_after, Some(wait), "{value}");
    }
    // A year of two digits after the turn of the century.
    let turn = Seen::read(b"Retry-After: Friday, 31-Dec-99 23:59:59 GMT", 946_684_800 * SECOND);
    assert_eq!(turn.retry_after, Some(0));
    let turn = Seen::read(b"Retry-After: Saturday, 01-Jan-00 00:00:01 GMT", 946_684_799 * SECOND);
    assert_eq!(turn.retry_after, Some(2 * SECOND));
    const LATER: u64 = 1_700_000_000;
    for (value, after) in [
        ("1700000020", 20 * SECOND),
        ("1700000020.5", 20 * SECOND + SECOND / 2),
        ("1700000020250", 20 * SECOND + SECOND / 4),
        ("1699999995", 0),
        ("20", 20 * SECOND),
        ("0.25", SECOND / 4),
        ("999999999", 999_999_999 * SECOND),
    ] {
        for fields in [
            format!("RateLimit-Remaining: 0\nRateLimit-Reset: {value}\n"),
            format!("X-RateLimit-Remaining: 0\nX-RateLimit-Reset: {value}\n"),
            format!("RateLimit: limit=60, remaining=0, reset={value}\n"),
            format!("RateLimit: \"a\";r=0;t={value}\n"),
        ] {
            let seen = Seen::read(fields.as_bytes(), LATER * SECOND);
            assert_eq!((seen.remaining, seen.more_after), (Some(0), Some(after)), "{fields}");
        }
    }
    // Docker Hub's.
    let hub = read("ratelimit-limit: 100;w=21600\nratelimit-remaining: 76;w=21600\n");
    assert_eq!((hub.limit, hub.remaining), (Some(100), Some(76)));
}

#[test]
fn malformed_fields_are_ignored() {
    for text in [
        "",
        ":",
        "Retry-After",
        "Retry-After: -1",
        "Retry-After: .5",
        "Retry-After: 1.",
        "Retry-After: 1.5.2",
        "Retry-After: 1 s",
        "Retry-After: Sun, 06 Nov 1994 08:49:40 UTC",
        "Retry-After: Sun, 31 Foo 1994 08:49:40 GMT",
        "Retry-After: Wed, 30 Feb 2000 08:49:40 GMT",
        "Retry-After: Thu, 29 Feb 2100 08:49:40 GMT",
        "Retry-After: Thu, 31 Nov 2000 08:49:40 GMT",
        "Retry-After: Sun, 06 Nov 1994 08:49:40 GMT 7",
        "Retry-After: Sun, 06 Nov 1994 08:49:40:01 GMT",
        "Retry-After: Sunday, 06-Nov-94 24:00:00 GMT",
        "Retry-After: Sun Nov  0 08:49:40 1994",
        "Retry-After: Sun Nov  6 08:49:40",
        "RateLimit: ;;;",
        "RateLimit: \"a",
        "RateLimit: \"a\\",
        "RateLimit-Limit: x",
        "X-RateLimit-Reset: 1e9",
        "RateLimit-Policy: \"a\"",
    ] {
        assert_eq!(Seen::read(text.as_bytes(), 0), Seen::default(), "{text}");
    }
}

proptest! {
    /// The reader accepts any bytes, and finds the writer's fields among them.
    #[test]
    fn any_bytes(noise in proptest::collection::vec(any::<u8>(), 0..300), utc: u64) {
        Seen::read(&noise, utc);
        let mut text = b"RateLimit: ".to_vec();
        text.extend(&noise);
        Seen::read(&text, utc);
    }

    /// A client reads the values that a server wrote, with times rounded up to seconds.
    #[test]
    fn read_equals_written(remaining in 0..INTEGER_MOST, after in 1..1_000_000_000_000_000_u64, period in 1..100_000_u64, quota in 1..1_000_000_u64) {
        let policy = Policy::new(quota, period * SECOND);
        let limit = Limit::new(b"x", &policy, &allowed(remaining, after)).with_more_after(after);
        for draft in [Draft::Six, Draft::Seven, Draft::Eleven] {
            let seen = Seen::read(written(Fields::new().with_draft(draft), &[limit], 0).as_bytes(), 0);
            prop_assert_eq!(seen.remaining, Some(remaining));
            prop_assert_eq!(seen.more_after, Some(after.div_ceil(SECOND) * SECOND));
            prop_assert_eq!((seen.limit, seen.window), (Some(quota), Some(period * SECOND)));
        }
    }
}
