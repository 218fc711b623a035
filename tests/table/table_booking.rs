//! Reservations of a table's keys: bookings, and callers that sleep until their departure.

use crate::common::*;
use std::sync::Mutex;
use std::time::Duration;
use tollbar::algorithm::Charge;
use tollbar::table::{Missing, OnFull, Options, PolicyId, RequestError, Table};
use tollbar::{Counts, Reason, Shared, Verdict, NEVER};

const FIRST: PolicyId = PolicyId::FIRST;

fn options() -> Options {
    Options::new(1000).with_seed(7)
}

fn table(text: &str) -> Table {
    Table::private(&options(), &[policy(text)]).unwrap()
}

#[test]
fn bookings_of_a_key_depart_one_after_the_other() {
    let table = table("10/s burst 3");
    let book = |key: &[u8], cost, until| table.reserve_at(FIRST, key, SEC, cost, until);
    let departs = |at, cost| Ok(Charge { at, cost });
    assert_eq!(book(b"a", 3, SEC), departs(SEC, 3), "a burst departs now");
    assert_eq!(book(b"a", 1, NEVER), departs(SEC + 100 * MS, 1));
    assert_eq!(book(b"a", 2, NEVER), departs(SEC + 300 * MS, 2));
    // Refused bookings take nothing.
    assert_eq!(book(b"a", 1, SEC + 400 * MS - 1), Err(Verdict::Denied));
    assert_eq!(book(b"a", 4, NEVER), Err(Verdict::Never));
    assert_eq!(book(b"a", 0, SEC), departs(SEC, 0));
    assert_eq!(book(b"a", 1, SEC + 400 * MS), departs(SEC + 400 * MS, 1));
    // A request without a booking has to wait for all of them.
    assert_eq!(table.check_at(FIRST, b"a", SEC, 1).retry_after, 500 * MS);
    assert_eq!(book(b"b", 1, SEC), departs(SEC, 1), "another key");
    assert_eq!(table.counts(FIRST).unwrap(), Counts { allowed: 6, denied: 2, never: 1 });
}

/// One key of a table books what a limiter does, whatever the algorithm.
#[test]
fn a_key_books_as_a_limiter_does() {
    let texts = [
        "10/s burst 3",
        "7/min burst 5 init 2",
        "10/s burst 4 borrow",
        "10/s algo pacer slack 2",
        "10/s algo warm-up warm 10s",
        "10/s algo interval",
        "10/s algo fixed-window",
        "10/s algo weighted-window",
        "10/s algo sliding-window",
        "10/s algo sliding-log",
        "1000/forever",
        "10/s curve front",
        "10/s burst 4 refill 0:50% 50%:100%",
        "0/s",
    ];
    // `calendar` needs the wall clock (tests/algorithm/calendar.rs).
    for text in &with_each(
        tollbar::Kind::ALL.into_iter().filter(|kind| *kind != tollbar::Kind::Calendar),
        &texts,
    ) {
        let (table, limiter) = (table(text), state(text));
        let mut rng = Rng(21);
        let mut now = 0;
        for _ in 0..rounds(2_000) {
            now += rng.below(300 * MS);
            let (cost, until) = (1 + rng.below(4), now + rng.below(2 * SEC));
            let context = format!("{text}: {cost} at {now} until {until}");
            if rng.below(3) == 0 {
                let (here, there) =
                    (table.admit_at(FIRST, b"key", now, cost), limiter.admit_at(now, cost));
                assert_eq!(here, there, "{context}");
            } else {
                let here = table.reserve_at(FIRST, b"key", now, cost, until);
                assert_eq!(
                    here.ok().map(|charge| charge.at),
                    limiter.reserve_at(now, cost, until),
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn what_no_key_is_charged_for_is_booked_without_a_cost() {
    let of = |missing| Table::private(&Options { missing, ..options() }, &[policy("1/s")]).unwrap();
    let reserve = |table: &Table, key: &[u8]| table.try_reserve(FIRST, key, SEC, 1, NEVER);
    let free = Ok(Ok(Charge { at: SEC, cost: 0 }));
    assert_eq!(reserve(&of(Missing::Deny), b""), Ok(Err(Verdict::Denied)));
    assert_eq!(reserve(&of(Missing::Allow), b""), free);
    assert_eq!(reserve(&of(Missing::Report), b""), Err(RequestError::MissingKey));

    let table = of(Missing::Deny);
    table.exempt(FIRST, b"vip").unwrap();
    assert_eq!([reserve(&table, b"vip"), reserve(&table, b"vip")], [free, free]);
    assert_eq!(
        table.try_reserve(PolicyId::new(9), b"key", SEC, 1, NEVER),
        Err(RequestError::NoSuchPolicy)
    );
    assert_eq!(table.reserve_at(PolicyId::new(9), b"key", SEC, 1, NEVER), Err(Verdict::Denied));
}

/// In a full table a new key's booking gets the same answers as a check.
#[test]
fn a_full_table_decides_on_new_bookings() {
    for on_full in [OnFull::Deny, OnFull::Allow, OnFull::EvictNearest, OnFull::Inherit] {
        let table =
            Table::private(&options().with_on_full(on_full), &[policy("1/h burst 2")]).unwrap();
        for n in 0..20_000_u64 {
            let _ = table.admit_at(FIRST, &n.to_ne_bytes(), SEC, 2);
        }
        let owed = SEC + HOUR;
        for n in 100_000..100_100_u64 {
            let booked = table.reserve_at(FIRST, &n.to_ne_bytes(), SEC, 1, NEVER);
            match on_full {
                OnFull::Deny => assert_eq!(booked, Err(Verdict::Denied)),
                OnFull::Allow => assert_eq!(booked, Ok(Charge { at: SEC, cost: 0 })),
                OnFull::EvictNearest => assert_eq!(booked, Ok(Charge { at: SEC, cost: 1 })),
                // The new key first pays the debt of the key whose slot it takes. That key may have
                // inherited it, too.
                OnFull::Inherit => {
                    let booked = booked.unwrap();
                    assert!(
                        booked.at >= owed && (booked.at - owed) % HOUR == 0 && booked.cost == 1,
                        "{booked:?}"
                    );
                }
            }
        }
    }
}

/// 100 callers that wait for one key at 50/s: each is decided on once, and they wake in the order
/// in which they booked.
#[test]
fn waiters_book_once_and_wake_in_turn() {
    const WAITERS: u64 = 100;
    let table = table("50/s burst 1");
    let woken = Mutex::new(Vec::new());
    let start = table.now();
    std::thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| {
                assert!(table.wait_ns(FIRST, b"key", 1, HOUR).is_allowed());
                woken.lock().unwrap().push(table.now());
            });
        }
    });
    let counts = table.counts(FIRST).unwrap();
    assert_eq!(counts, Counts { allowed: WAITERS, denied: 0, never: 0 });
    // No caller wakes before its time, so the n-th that wakes has slept for n intervals. How much
    // later it wakes depends on the machine.
    let woken = woken.into_inner().unwrap();
    for (n, &at) in woken.iter().enumerate() {
        assert!(at >= start + n as u64 * 20 * MS, "{n}: {}", at - start);
    }
    assert_eq!(table.waiting(), 0);
}

/// Windows and logs cannot be booked: their callers try again until they get their permits.
#[test]
fn callers_of_windows_and_logs_try_again() {
    for text in
        ["20/200ms algo fixed-window", "20/200ms algo sliding-window", "20/200ms algo sliding-log"]
    {
        let table = table(text);
        std::thread::scope(|scope| {
            for _ in 0..60 {
                scope.spawn(|| assert!(table.wait_ns(FIRST, b"key", 1, HOUR).is_allowed()));
            }
        });
        let counts = table.counts(FIRST).unwrap();
        assert_eq!(counts, Counts { allowed: 60, denied: 0, never: 0 }, "{text}");
    }
}

#[test]
fn a_wait_that_cannot_fit_is_refused_at_once() {
    let table = table("1/h burst 1");
    assert!(table.wait_ns(FIRST, b"key", 1, 0).is_allowed());
    let refused = table.wait_ns(FIRST, b"key", 1, HOUR / 2);
    assert_eq!((refused.verdict, refused.reason), (Verdict::Denied, Reason::Rate));
    assert!(refused.retry_after > HOUR - MIN, "nothing was booked: {}", refused.retry_after);
    assert_eq!(table.wait_ns(FIRST, b"key", 2, NEVER).verdict, Verdict::Never);
    assert_eq!(table.wait_ns(PolicyId::new(3), b"key", 1, NEVER).reason, Reason::Fault);
    assert_eq!(table.wait_ns(FIRST, b"", 1, NEVER).reason, Reason::MissingKey);
    assert_eq!(table.counts(FIRST).unwrap(), Counts { allowed: 1, denied: 2, never: 1 });
}

/// At most `waiters` callers of one table object sleep. Further callers are refused at once, and
/// book nothing.
///
/// The sleepers sleep for hours, so none of them returns meanwhile on a machine that stands still
/// for a while. The end of the program ends them.
#[test]
fn sleepers_of_a_table_are_bounded() {
    const CAP: u32 = 3;
    let table =
        Table::private(&Options { waiters: CAP, ..options() }, &[policy("1/h burst 1")]).unwrap();
    let table: &'static Table = Box::leak(Box::new(table));
    assert!(table.check(FIRST, b"key", 1).is_allowed());
    for _ in 0..CAP {
        std::thread::spawn(move || table.wait_ns(FIRST, b"key", 1, DAY));
    }
    while table.waiting() < CAP {
        std::thread::sleep(Duration::from_millis(1));
    }
    let admitted = table.wait_ns(FIRST, b"another", 1, DAY);
    assert!(admitted.is_allowed(), "who need not sleep needs no place");
    let refused = table.wait_ns(FIRST, b"another", 1, DAY);
    assert_eq!((refused.verdict, refused.reason), (Verdict::Denied, Reason::QueueFull));
    assert!(refused.retry_after <= HOUR);
    let retry = table.peek(FIRST, b"another", 1).retry_after;
    assert!(retry <= HOUR, "nothing was booked for it: {retry}");
    assert_eq!(table.waiting(), CAP);
}

/// Who has slept leaves a place. A table without places refuses whoever would have to sleep.
#[test]
fn sleepers_of_a_table_leave_their_places() {
    const CAP: u32 = 3;
    let table =
        Table::private(&Options { waiters: CAP, ..options() }, &[policy("10/s burst 1")]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..CAP {
            scope.spawn(|| assert!(table.wait_ns(FIRST, b"key", 1, HOUR).is_allowed()));
        }
    });
    assert_eq!(table.waiting(), 0);
    let table = Table::private(&options(), &[policy("1/h burst 1")]).unwrap();
    let none = table.with_waiters(0);
    assert!(none.wait_ns(FIRST, b"third", 1, HOUR).is_allowed());
    assert_eq!(none.wait_ns(FIRST, b"third", 1, HOUR).reason, Reason::QueueFull);
}

/// Whether no window of one key's uncancelled admissions, each with its instant, has more than the
/// burst and the refill of the window.
fn within_the_bound(mut used: Vec<(u64, u64)>, burst: u64, permit: u64) -> bool {
    used.sort_unstable();
    (0..used.len()).all(|first| {
        let mut sum = 0;
        used[first..].iter().all(|&(at, cost)| {
            sum += cost;
            sum * permit <= burst * permit + (at - used[first].0)
        })
    })
}

/// Bookings, checks and cancels of one key in any order, late ones too: the uncancelled permits
/// stay within the bound of the policy.
#[test]
fn cancelled_bookings_admit_nothing_more() {
    const PERMIT: u64 = 100 * MS;
    let table = table("10/s burst 4");
    let (mut rng, mut came_back, mut whole) = (Rng(5), 0, 0);
    for trace in 0..rounds(20_000) {
        let key = trace.to_ne_bytes();
        let mut now = SEC + trace * HOUR;
        // The first is never cancelled. Which of the others are cancelled is only known when the
        // trace ends.
        let (mut used, mut open) = (Vec::new(), Vec::new());
        for _ in 0..30 {
            now += if rng.below(2) == 0 { 0 } else { rng.below(3 * PERMIT) };
            let cost = 1 + rng.below(4);
            match rng.below(5) {
                0 if table.admit_at(FIRST, &key, now, cost) == Verdict::Allowed => {
                    used.push((now, cost))
                }
                1 | 2 => open.extend(table.reserve_at(FIRST, &key, now, cost, now + 20 * PERMIT)),
                3 if !open.is_empty() => {
                    let charge: Charge = open.swap_remove(rng.below(open.len() as u64) as usize);
                    let back = table.give_back_at(FIRST, &key, now, charge, charge.cost).unwrap();
                    assert!(back <= charge.cost);
                    came_back += u64::from(back != 0);
                    whole += u64::from(back == charge.cost);
                }
                _ => {}
            }
        }
        used.extend(open.iter().map(|charge| (charge.at, charge.cost)));
        assert!(within_the_bound(used.clone(), 4, PERMIT), "trace {trace}: {used:?}");
    }
    assert!(came_back > rounds(20_000) && whole > rounds(20_000) / 2, "{came_back} {whole}");
}
