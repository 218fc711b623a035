//! Sliding windows and logs of a table's keys: their side words, their limits, and the time at
//! which a state word has expired. Tests of slots that change hands are in src/limiter/state_word.

use tollbar::algorithm::sliding_log::KeyedLog;
use tollbar::algorithm::sliding_window::{Mark, SlidingWindow};
use tollbar::limiter::{Log, Ring};
use tollbar::policy::LOG_MOST;
use tollbar::units::HORIZON;
use tollbar::{Kind, Policy, PolicyError, Shared, NEVER};

fn policy(text: &str) -> Policy {
    text.parse().unwrap()
}

fn window(text: &str) -> SlidingWindow {
    SlidingWindow::keyed(&policy(text)).unwrap()
}

fn log(limit: u64, period: u64) -> Result<KeyedLog, PolicyError> {
    KeyedLog::new(&Policy::new(limit, period).with_kind(Kind::SlidingLog))
}

const WINDOWS: [&str; 6] = [
    "5/60s algo sliding-window segments 6",
    "5/60s algo sliding-window segments 6 mode strict",
    "5/60s algo sliding-window segments 6 mode interpolated",
    "1/20ns algo sliding-window segments 1",
    "7/20ns algo sliding-window segments 1 mode strict",
    "3/40ns algo sliding-window segments 20 mode interpolated",
];

/// The first instant at which a ring with one admission, in the word's segment, is as good as
/// fresh.
#[test]
fn a_window_expires_when_its_ring_is_fresh() {
    for text in WINDOWS {
        let window = window(text);
        let period = policy(text).period;
        for at in [0, 1, period / 2, period, 7 * period + period / 3, 1_000_000 * period - 1] {
            let ring = Ring::new(&policy(text)).unwrap();
            assert!(ring.admit_at(at, 1) == tollbar::Verdict::Allowed);
            let (segment, _) = window.segment(at).unwrap();
            let expires = window.expires_at(window.pack(Mark { segment, count: 1 }));
            assert_eq!(ring.peek_at(expires, 1).reset_after, 0, "{text}, {at}");
            assert!(ring.peek_at(expires - 1, 1).reset_after > 0, "{text}, {at}");
            // The count, which includes the permits of all keys before, does not matter.
            assert_eq!(window.expires_at(window.pack(Mark { segment, count: 2 })), expires);
        }
    }
}

#[test]
fn a_window_never_admitted_in_has_expired() {
    for text in WINDOWS {
        assert_eq!(window(text).expires_at(0), 0);
    }
    assert_eq!(log(1, 1_000).unwrap().expires_at(0), 0);
}

#[test]
fn expiry_does_not_fall_with_the_segment() {
    for text in WINDOWS {
        let window = window(text);
        let mut before = 0;
        let last = window.unpack(u64::MAX).segment;
        for segment in (0..2_000)
            .chain((11..64).map(|n| 1 << n).filter(|n| *n < last - 5_000))
            .chain(last - 5_000..=last)
        {
            let expires = window.expires_at(window.pack(Mark { segment, count: 1 }));
            assert!(expires >= before, "{text}, {segment}");
            before = expires;
        }
        // After the last segment no request is admitted, and no state is fresh.
        assert_eq!(before, NEVER, "{text}");
    }
}

#[test]
fn a_window_anchored_to_a_first_request_is_not_keyed() {
    let anchored = policy("5/60s algo sliding-window segments 6 anchor first");
    assert!(SlidingWindow::new(&anchored).is_ok());
    assert_eq!(SlidingWindow::keyed(&anchored), Err(PolicyError::OptionMismatch));
    // An error that has nothing to do with the anchor comes first.
    let segments = policy("5/60s algo sliding-window segments 7 anchor first");
    assert_eq!(SlidingWindow::keyed(&segments), Err(PolicyError::Segments));
}

#[test]
fn side_words() {
    assert_eq!(window("5/60s algo sliding-window segments 6").side_words(), 8);
    assert_eq!(window("5/63s algo sliding-window segments 7").side_words(), 16);
    assert_eq!(log(100, 1_000_000_000).unwrap().side_words(), 101);
}

#[test]
fn a_log_has_as_many_entries_as_its_period_allows() {
    for (period, most) in
        [(0, 0), (1, 0), (2, 1), (10, 7), (4_096, 4_095), (8_191, 4_095), (8_192, 8_191)]
    {
        assert_eq!(KeyedLog::most(period), most, "{period}");
    }
    for period in
        [1, 2, 3, 9, 10, 4_096, 8_192, 1_000_000, 1_000_000_000, 86_400_000_000_000, u64::MAX]
    {
        let most = KeyedLog::most(period).min(LOG_MOST);
        assert_eq!(log(most + 1, period), Err(PolicyError::LogTooLarge), "{period}");
        if most > 0 {
            assert!(log(most, period).is_ok(), "{period}");
        }
    }
    assert!(KeyedLog::most((1 << 25) - 1) < LOG_MOST && KeyedLog::most(1 << 25) >= LOG_MOST);
    assert_eq!(log(0, 1_000), Err(PolicyError::OptionMismatch));
    assert_eq!(KeyedLog::new(&policy("5/s")), Err(PolicyError::OptionMismatch));
    assert_eq!(log(1, 0), Err(PolicyError::PeriodZero));
}

/// A log expires a period after the end of its newest entry's grain: at most a sixteenth of the
/// period late, if the limit leaves room for that.
#[test]
fn a_log_expires_with_its_newest_entry() {
    for (limit, period) in
        [(1, 1_000), (100, 1_000_000), (4_096, 1_000_000_000), (5, 60_000_000_000)]
    {
        let keyed = log(limit, period).unwrap();
        let mut before = 0;
        let mut steps = 0;
        // For any word: its time is in the upper bits.
        for n in 0..=u64::MAX >> 54 {
            let expires = keyed.expires_at(n << 54);
            assert!(expires >= before);
            assert!(expires <= HORIZON + period);
            steps += u64::from(expires > before);
            before = expires;
        }
        assert!(steps > 1_000);
        assert_eq!(keyed.expires_at(u64::MAX), HORIZON - 1 + period);
        // The first permit at the clock's zero.
        let first = keyed.expires_at(1);
        assert!(first >= period && first < period + period / 16, "{first}");
        let log = Log::new(&Policy::new(limit, period).with_kind(Kind::SlidingLog)).unwrap();
        let _ = log.admit_at(0, 1);
        assert_eq!(log.peek_at(first, limit).reset_after, 0);
    }
    // A period beyond the clock's range.
    assert_eq!(log(1, u64::MAX).unwrap().expires_at(1), NEVER);
}
