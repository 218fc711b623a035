//! Waiting in futures: the order, what a dropped future gives back, and threads in the same queue.
//! A runtime of virtual time polls the tasks, so each test has one outcome.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tollbar::clock::{with_jitter, Clock, Manual};
use tollbar::table::{Options, PolicyId, Table};
use tollbar::{Limiter, Policy, Reason, State, Verdict};

const MS: u64 = 1_000_000;
const SEC: u64 = 1000 * MS;

type Timers = Rc<RefCell<Vec<(u64, Waker)>>>;
/// A task, and whether it is awake.
type Task<'a> = (Pin<Box<dyn Future<Output = ()> + 'a>>, Arc<Flag>);

/// Whether a task has to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tasks, and timers of a clock that moves when no task is awake.
struct Runtime<'a> {
    clock: &'a Manual,
    timers: Timers,
    tasks: RefCell<Vec<Option<Task<'a>>>>,
    polls: Cell<u32>,
}

impl<'a> Runtime<'a> {
    fn new(clock: &'a Manual) -> Runtime<'a> {
        let (timers, tasks, polls) = Default::default();
        Runtime { clock, timers, tasks, polls }
    }

    /// What `tokio::time::sleep` is in tokio.
    fn sleep(&self) -> impl Fn(Duration) -> Timer<'a> {
        let (clock, timers) = (self.clock, Rc::clone(&self.timers));
        move |time| Timer {
            clock,
            timers: Rc::clone(&timers),
            at: clock.now() + time.as_nanos() as u64,
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'a) -> usize {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.tasks.borrow_mut().push(Some((Box::pin(task), flag)));
        self.tasks.borrow().len() - 1
    }

    fn drop_task(&self, n: usize) {
        let task = self.tasks.borrow_mut()[n].take();
        assert!(task.is_some(), "task {n} has ended");
    }

    /// Polls tasks that are awake until none is.
    fn settle(&self) {
        let count = self.tasks.borrow().len();
        while (0..count).any(|n| self.poll(n)) {}
    }

    /// Polls a task if it is awake.
    fn poll(&self, n: usize) -> bool {
        let Some((mut task, flag)) = self.tasks.borrow_mut()[n].take() else { return false };
        let is_awake = flag.0.swap(false, Ordering::Relaxed);
        if is_awake {
            self.polls.set(self.polls.get() + 1);
            let waker = Waker::from(Arc::clone(&flag));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                return true;
            }
        }
        self.tasks.borrow_mut()[n] = Some((task, flag));
        is_awake
    }

    /// Runs until `end`, or until no task has a timer.
    fn run_until(&self, end: u64) {
        loop {
            self.settle();
            let Some(at) = self.timers.borrow().iter().map(|(at, _)| *at).min() else { break };
            if at > end {
                break;
            }
            self.clock.set(at.max(self.clock.now()));
            self.timers.borrow_mut().retain(|(due, waker)| {
                if *due <= at {
                    waker.wake_by_ref();
                }
                *due > at
            });
        }
        if end != u64::MAX {
            self.clock.set(end);
        }
    }
}

struct Timer<'a> {
    clock: &'a Manual,
    timers: Timers,
    at: u64,
}

impl Future for Timer<'_> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.at {
            return Poll::Ready(());
        }
        self.timers.borrow_mut().push((self.at, context.waker().clone()));
        Poll::Pending
    }
}

fn limiter<'a>(policy: &str, clock: &'a Manual) -> Limiter<State, &'a Manual> {
    Limiter::with(State::new(&policy.parse().unwrap()).unwrap(), clock)
}

/// Starts `count` tasks that take a permit each and note their number and time.
fn spawn_takers<'a>(
    runtime: &Runtime<'a>,
    limiter: &'a Limiter<State, &'a Manual>,
    log: &Rc<RefCell<Vec<(usize, u64)>>>,
    costs: &[u64],
) {
    for (n, &cost) in costs.iter().enumerate() {
        let (sleep, log) = (runtime.sleep(), Rc::clone(log));
        runtime.spawn(async move {
            let decision = limiter.until_n_ready_within(cost, Duration::MAX, sleep).await;
            assert_eq!((decision.verdict, decision.retry_after()), (Verdict::Allowed, None));
            log.borrow_mut().push((n, limiter.now()));
        });
    }
}

/// Of algorithms that book ahead and of those that cannot.
const POLICIES: [&str; 5] = [
    "10/s burst 1",
    "10/s algo pacer",
    "1/100ms algo interval",
    "1/100ms algo fixed-window anchor first",
    "1/100ms algo sliding-log",
];

#[test]
fn tasks_get_their_permits_in_the_order_of_their_first_polls() {
    for policy in POLICIES {
        let clock = Manual::new(SEC);
        let limiter = limiter(policy, &clock);
        let runtime = Runtime::new(&clock);
        let log = Rc::default();
        spawn_takers(&runtime, &limiter, &log, &[1; 50]);
        runtime.run_until(u64::MAX);
        let expected: Vec<_> = (0..50).map(|n| (n, SEC + n as u64 * 100 * MS)).collect();
        assert_eq!(*log.borrow(), expected, "{policy}");
        assert_eq!(limiter.counts().allowed, 50, "{policy}");
        // No task is polled more often than its sleep and one change of its turn need. The wait for
        // a log is known one limit ahead only.
        if !policy.ends_with("log") {
            assert!(runtime.polls.get() <= 150, "{policy}: {}", runtime.polls.get());
        }
    }
}

#[test]
fn large_costs_are_not_overtaken() {
    let clock = Manual::new(SEC);
    let limiter = limiter("10/s burst 5", &clock);
    let runtime = Runtime::new(&clock);
    let log = Rc::default();
    spawn_takers(&runtime, &limiter, &log, &[5, 5, 1, 3, 1]);
    runtime.run_until(u64::MAX);
    let expected: Vec<_> =
        [0, 500, 600, 900, 1000].iter().enumerate().map(|(n, ms)| (n, SEC + ms * MS)).collect();
    assert_eq!(*log.borrow(), expected);
}

#[test]
fn a_dropped_future_gives_back_what_it_booked() {
    for policy in POLICIES {
        // The one that is dropped is the first of the queue, in its middle, or its last.
        for dropped in [1, 2, 3] {
            let clock = Manual::new(SEC);
            let limiter = limiter(policy, &clock);
            let runtime = Runtime::new(&clock);
            let log = Rc::default();
            spawn_takers(&runtime, &limiter, &log, &[1; 4]);
            runtime.run_until(SEC + 50 * MS);
            assert_eq!(*log.borrow(), [(0, SEC)], "{policy}");
            runtime.drop_task(dropped);
            runtime.run_until(u64::MAX);
            let times: Vec<u64> = log.borrow().iter().map(|(_, at)| *at).collect();
            assert_eq!(times, [SEC, SEC + 100 * MS, SEC + 200 * MS], "{policy}: {dropped}");
            // The state is that of three requests.
            assert!(limiter.peek(1).retry_after <= 100 * MS, "{policy}: {dropped}");
        }
    }
}

#[test]
fn the_only_future_gives_its_booking_back_when_it_is_dropped() {
    let clock = Manual::new(SEC);
    let limiter = limiter("10/s burst 1", &clock);
    let runtime = Runtime::new(&clock);
    spawn_takers(&runtime, &limiter, &Rc::default(), &[1, 1]);
    runtime.run_until(SEC + 50 * MS);
    assert_eq!(limiter.peek(1).retry_after, 150 * MS);
    runtime.drop_task(1);
    assert_eq!(limiter.peek(1).retry_after, 50 * MS);
    assert_eq!(limiter.snapshot().waiting, 0);
}

/// Another caller serves the queue and admits a task, which is dropped before it is polled again.
#[test]
fn a_future_that_is_dropped_after_it_was_admitted_gives_its_permit_back() {
    let clock = Manual::new(SEC);
    let limiter = limiter("10/s burst 1", &clock);
    let runtime = Runtime::new(&clock);
    spawn_takers(&runtime, &limiter, &Rc::default(), &[1, 1, 1]);
    runtime.settle();
    // Both turns have come, and only the second task is polled: it admits the first, too.
    clock.set(SEC + 100 * MS);
    runtime.tasks.borrow()[2].as_ref().unwrap().1.wake_by_ref();
    assert!(runtime.poll(2));
    let before = limiter.peek(1).retry_after;
    runtime.drop_task(1);
    assert_eq!(before, 200 * MS);
    // The second one got the permit of the first, so its turn is now.
    runtime.run_until(SEC + 100 * MS);
    assert_eq!(limiter.counts().allowed, 2);
    assert_eq!(limiter.peek(1).retry_after, 100 * MS);
}

#[test]
fn a_task_that_has_no_chance_is_refused_at_once() {
    let clock = Manual::new(SEC);
    let limiter = limiter("10/s burst 2", &clock);
    let runtime = Runtime::new(&clock);
    let refusals = Rc::new(RefCell::new(Vec::new()));
    for (cost, patience) in
        [(3, Duration::MAX), (2, Duration::ZERO), (2, Duration::from_millis(199))]
    {
        let (sleep, refusals, limiter) = (runtime.sleep(), Rc::clone(&refusals), &limiter);
        runtime.spawn(async move {
            let answer = limiter.until_n_ready_within(cost, patience, sleep).await;
            refusals.borrow_mut().push(answer.reason);
        });
    }
    runtime.settle();
    let answers = refusals.borrow();
    assert_eq!(*answers, [Reason::Burst, Reason::Admitted, Reason::Rate]);
    let closed = Limiter::with(State::new(&Policy::per_second(0)).unwrap(), &clock);
    let mut refused = Box::pin(closed.until_ready(runtime.sleep()));
    let waker = Waker::from(Arc::new(Flag(AtomicBool::new(false))));
    assert!(matches!(refused.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Err(_))));
}

#[test]
fn no_more_than_the_most_callers_wait() {
    let clock = Manual::new(SEC);
    let limiter = limiter("10/s burst 1", &clock).with_waiters(1);
    let runtime = Runtime::new(&clock);
    let answers = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..3 {
        let (sleep, answers, limiter) = (runtime.sleep(), Rc::clone(&answers), &limiter);
        runtime.spawn(async move {
            let answer = limiter.until_ready(sleep).await;
            answers
                .borrow_mut()
                .push(answer.map_or_else(|refused| refused.0.reason, |()| Reason::Admitted));
        });
    }
    runtime.run_until(u64::MAX);
    assert_eq!(*answers.borrow(), [Reason::Admitted, Reason::QueueFull, Reason::Admitted]);
}

#[test]
fn each_key_of_a_table_has_its_queue() {
    let table =
        Table::private(&Options::new(100), &[Policy::per_second(1000).with_burst(1)]).unwrap();
    let begin = table.now();
    let clock = Manual::new(begin);
    let runtime = Runtime::new(&clock);
    let done = Rc::new(Cell::new(0));
    // The table's clock is the machine's, so the sleeps spin until it has come.
    let table = &table;
    let sleep = move |time: Duration| {
        let end = table.now() + time.as_nanos() as u64;
        while table.now() < end {
            std::thread::yield_now();
        }
        std::future::ready(())
    };
    for key in ["ann", "bob", "ann", "ann"] {
        let done = Rc::clone(&done);
        runtime.spawn(async move {
            table.until_key_ready(key, sleep).await.unwrap();
            done.set(done.get() + 1);
        });
    }
    runtime.settle();
    assert_eq!(done.get(), 4);
    assert!(table.now() - begin >= 2 * MS, "three permits of one key take two milliseconds");
    let refused = |key: &'static str, policy, cost| {
        let answer = Rc::new(Cell::new(None));
        let into = Rc::clone(&answer);
        let runtime = Runtime::new(&clock);
        runtime.spawn(async move {
            let within = Duration::from_secs(1);
            let policy = PolicyId::new(policy);
            let answer = table.until_key_n_ready_within(policy, key, cost, within, sleep).await;
            into.set(Some(answer.reason));
        });
        runtime.settle();
        answer.get().unwrap()
    };
    assert_eq!(refused("ann", 0, 2), Reason::Burst);
    assert_eq!(refused("ann", 3, 1), Reason::Fault);
    assert_eq!(refused("", 0, 1), Reason::MissingKey);
}

#[test]
fn jitter_delays_within_its_bound_and_only_those_who_wait() {
    let most = Duration::from_millis(40);
    let slept = RefCell::new(Vec::new());
    let sleep = with_jitter(most, |time| {
        slept.borrow_mut().push(time);
        std::future::ready(())
    });
    for _ in 0..1000 {
        drop(sleep(Duration::from_millis(10)));
    }
    let slept = slept.borrow();
    let (least, largest) = (slept.iter().min().unwrap(), slept.iter().max().unwrap());
    assert!(*least >= Duration::from_millis(10) && *largest <= Duration::from_millis(50));
    assert!(*largest - *least > Duration::from_millis(20), "the sleeps differ");
    let clock = Manual::new(SEC);
    let limiter = limiter("10/s burst 1", &clock);
    let runtime = Runtime::new(&clock);
    let times = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..2 {
        let (sleep, times) = (with_jitter(most, runtime.sleep()), Rc::clone(&times));
        let limiter = &limiter;
        runtime.spawn(async move {
            limiter.until_ready(sleep).await.unwrap();
            times.borrow_mut().push(limiter.now());
        });
    }
    runtime.run_until(u64::MAX);
    let times = times.borrow();
    assert_eq!(times[0], SEC);
    assert!((100 * MS..=140 * MS).contains(&(times[1] - SEC)), "{times:?}");
}

/// A thread and a future wait in one queue: the thread came first.
#[test]
fn threads_and_futures_share_a_queue() {
    let limiter: Limiter = "20/s burst 1".parse().unwrap();
    let begin = limiter.now();
    assert!(limiter.check(1).is_allowed());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(limiter.wait(1, Duration::from_secs(60)).is_allowed()));
        while limiter.snapshot().waiting == 0 {
            std::thread::yield_now();
        }
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut future = Box::pin(limiter.until_ready(|time| {
            std::thread::sleep(time);
            std::future::ready(())
        }));
        let mut context = Context::from_waker(&waker);
        while future.as_mut().poll(&mut context).is_pending() {
            std::thread::yield_now();
        }
        // The thread's permit came after 50 ms.
        assert!(limiter.now() >= begin + 100 * MS);
    });
}

/// A task may move between the threads of a runtime.
#[test]
fn the_futures_are_send() {
    fn is_send(_: impl Send) {}
    let limiter: Limiter = "1/s".parse().unwrap();
    let table = Table::private(&Options::new(10), &[Policy::per_second(1)]).unwrap();
    let sleep = |_| std::future::ready(());
    is_send(limiter.until_ready(sleep));
    is_send(limiter.until_n_ready_within(1, Duration::ZERO, with_jitter(Duration::ZERO, sleep)));
    is_send(table.until_key_ready("ann", sleep));
}
