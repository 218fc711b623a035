//! What programs build from limits: permits in flight, a queue, two limits in one call; and what
//! they had before, a mutex.

use crate::book::Book;
use crate::keys::{key, word, Key, Order, Spread};
use crate::measure::{measure_for, Contender};
use crate::one::Work;
use crate::ours::Ours;
use crate::peers::Padded;
use crate::rows::of_keys;
use crate::who;
use crate::Sizes;
use std::collections::HashMap;
use std::sync::Mutex;
use tollbar::clock::{Clock, Tsc, Utc};
use tollbar::in_flight::{InFlight, Options};
use tollbar::queue::Words;
use tollbar::table::{Options as TableOptions, PolicyId, Table};
use tollbar::take_many::{take_many, Limit};

/// The title of the in-flight row.
pub fn in_flight_title(keys: usize) -> String {
    format!("in flight, {} keys: acquire and release", of_keys(keys))
}

pub fn rows(book: &mut Book, sizes: &Sizes, threads: &[usize], rounds: usize) {
    let order = Order::<8>::new(sizes.small, Spread::Uniform, 1 << 15);
    let open = InFlight::private(&Options::new(sizes.small as u64)).expect("memory");
    let queue = Words::with(
        &"1000000000/s burst 1000000".parse().expect("a policy"),
        1 << 16,
        Utc::<Tsc>::default(),
    );
    let queue = queue.expect("memory");
    let table = Table::private(
        &TableOptions::new(2 * sizes.small as u64),
        &["1000000000/s burst 4000000000".parse().expect("a policy")],
    );
    let table = table.expect("memory");
    for index in 0..sizes.small {
        let _ = table.admit(PolicyId::FIRST, &key::<8>(index), 1);
    }
    let ticket = open.acquire(&key::<8>(0), 1).expect("a permit");
    assert!(
        open.release(ticket) && queue.offer(1).is_ok() && queue.take().is_some(),
        "what is measured fails"
    );
    for &threads in threads {
        let acquired =
            |key: &Key<8>, _| open.acquire(key, 1_000).is_ok_and(|ticket| open.release(ticket));
        let mut all = vec![Contender::singles(who::IN_FLIGHT, &order, acquired)];
        measure_for(&mut all, threads, rounds, sizes.one.1);
        book.add(&in_flight_title(sizes.small), threads, all);

        let moved = |_, _| queue.offer(1).is_ok() & queue.take().is_some();
        let mut all = vec![Contender::numbered(who::QUEUE, moved)];
        measure_for(&mut all, threads, rounds, sizes.one.1);
        book.add("a queue: offer and take", threads, all);

        let both = |keys: &[Key<8>; crate::keys::BATCH], _| {
            let pairs = keys.iter().zip(keys.iter().cycle().skip(1));
            let limit = |key| Limit::Key(&table, PolicyId::FIRST, key, 1);
            pairs.filter(|(one, other)| take_many(&[limit(*one), limit(*other)]).is_ok()).count()
        };
        let taken = take_many(&[Limit::Key(&table, PolicyId::FIRST, &key::<8>(0), 1)])
            .expect("a sound table");
        assert!(taken.decision.is_allowed(), "what is measured fails");
        let mut all = vec![Contender::batches(who::TAKE_MANY, &order, both)];
        measure_for(&mut all, threads, rounds, sizes.one.1);
        book.add(&format!("take_many, two of {} keys", of_keys(sizes.small)), threads, all);
    }
}

/// A token bucket as programs write it.
struct Bucket {
    permits: f64,
    at: u64,
}

/// Permits a nanosecond, and the most.
const FAST: (f64, f64) = (1.0, 1e12);

impl Bucket {
    fn new(permits: f64) -> Bucket {
        Bucket { permits, at: Ours::now() }
    }

    /// Reads the clock, as a program does that has one bucket behind its mutex.
    #[inline(always)]
    fn admit(&mut self, clock: &Utc<Tsc>, (rate, burst): (f64, f64)) -> bool {
        let now = clock.now();
        self.permits = (self.permits + now.saturating_sub(self.at) as f64 * rate).min(burst);
        self.at = now;
        let admitted = self.permits >= 1.0;
        if admitted {
            self.permits -= 1.0;
        }
        admitted
    }
}

/// One token bucket behind a mutex.
pub fn locked(work: Work) -> Contender<'static> {
    let open = Padded(Mutex::new(Bucket::new(FAST.1)));
    let shut = Padded(Mutex::new(Bucket::new(0.0)));
    let clock = Utc::<Tsc>::default();
    Contender::numbered(who::MUTEX, move |number, _| {
        let refused = match work {
            Work::Allowed => false,
            Work::Denied => true,
            // As unpredictable as the other contenders' order.
            Work::Mixed => (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1,
        };
        if refused {
            shut.0.lock().expect("no panic").admit(&clock, (1e-18, 1.0))
        } else {
            open.0.lock().expect("no panic").admit(&clock, FAST)
        }
    })
}

/// A token bucket for each key, in a hash map behind a mutex.
pub struct LockedMap(Mutex<HashMap<u64, Bucket>>);

impl LockedMap {
    pub fn filled(keys: usize) -> LockedMap {
        let buckets = (0..keys).map(|index| (word(&key(index)), Bucket::new(FAST.1)));
        LockedMap(Mutex::new(buckets.collect()))
    }

    pub fn contender<'a>(&'a self, order: &'a Order<8>) -> Contender<'a> {
        let clock = Utc::<Tsc>::default();
        Contender::singles(who::MUTEX_MAP, order, move |key, _| {
            let mut map = self.0.lock().expect("no panic");
            map.entry(word(key)).or_insert_with(|| Bucket::new(FAST.1)).admit(&clock, FAST)
        })
    }
}
