//! The cost of two threads whose counters or credit lie on one cache line. A limiter finds a
//! thread's line by a hash of the thread's address, so two threads may meet on one line by chance.
//! Each placement moves one of the two threads to another address. The worst placement shows the
//! cost of such a meeting.

use crate::book::Book;
use crate::measure::{measure_for, median, Contender};
use crate::ours::Ours;
use crate::ours_one::{Credited, Ours as OneKey};
use crate::peers::{One, Padded, Says};
use crate::who::{self, Who};
use std::sync::mpsc::channel;
use std::time::Duration;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Verdict};

/// The topic of the figures.
pub const TOPIC: &str = "two threads";
const PLACEMENTS: usize = 20;

/// The two figures of a row.
pub const MEDIAN: &str = "the median of 20 placements";
pub const WORST: &str = "the worst of 20 placements";

pub fn rows(book: &mut Book, turn: Duration) {
    placed(book, "one key, denied", who::TOLLBAR, turn, || {
        asked(who::TOLLBAR, OneKey::new, Says::No)
    });
    placed(book, "one key, denied", who::COUNTED_AT, turn, || {
        // As C's tollbar_limiter_check_at: the limiter counts what it decides.
        let limiter = Limiter::new(&"1/day burst 1".parse().expect("a policy")).expect("compiles");
        let _ = limiter.admit(1);
        Contender::numbered(who::COUNTED_AT, move |_, now| {
            limiter.admit_at(now, 1) == Verdict::Allowed
        })
    });
    placed(book, "one key, allowed", who::CREDIT, turn, || {
        asked(who::CREDIT, Credited::new, Says::Yes)
    });
    placed(book, "table, a key of each thread", who::TABLE, turn, || {
        let policy = "1000000000/s burst 1000000000000".parse().expect("a policy");
        let table = Table::private(&Options::new(1_000), &[policy]).expect("memory");
        Contender::numbered(who::TABLE, move |_, _| {
            // The address of a thread's own memory differs from thread to thread, and so does the
            // key.
            let key = KEY.with(|key| (key as *const u8) as u64).to_ne_bytes();
            table.admit(PolicyId::FIRST, &key, 1) == Verdict::Allowed
        })
    });
}

thread_local! {
    static KEY: u8 = const { 0 };
}

fn asked<T: One + Send + 'static>(
    who: Who,
    make: impl Fn(Says) -> T,
    says: Says,
) -> Contender<'static> {
    let one = Padded(make(says));
    one.0.admit(Ours::now());
    Contender::numbered(who, move |_, now| one.0.admit(now))
}

/// Measures a fresh limit with two threads, again and again, each time with one more idle thread
/// before them, so that their stacks and what lies beside them are elsewhere.
fn placed(
    book: &mut Book,
    what: &str,
    who: Who,
    turn: Duration,
    make: impl Fn() -> Contender<'static>,
) {
    let figures: Vec<f64> = (0..PLACEMENTS)
        .map(|idle| {
            std::thread::scope(|scope| {
                let ends: Vec<_> = (0..idle)
                    .map(|_| {
                        let (end, wait) = channel::<()>();
                        scope.spawn(move || wait.recv());
                        end
                    })
                    .collect();
                let mut all = [make()];
                measure_for(&mut all, 2, 3, turn / 2);
                drop(ends);
                let [row] = all;
                median(row.rounds)
            })
        })
        .collect();
    let worst = figures.iter().copied().fold(0.0, f64::max);
    book.figure(TOPIC, &format!("{what}, {MEDIAN}"), Some(who), median(figures), "ns");
    book.figure(TOPIC, &format!("{what}, {WORST}"), Some(who), worst, "ns");
}
