//! [`wait`](super::wait) in a future, in the same queue.

use super::line::{Seat, Waiter, WaiterAction};
use super::{admitted, crowded, decide, late, Permits, WaiterQueues};
use crate::clock::Clock;
use crate::decision::Decision;
use core::future::{poll_fn, Future};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

/// Takes permits, and waits for them until `deadline` at the latest by the futures of `sleep`. The
/// first poll joins the queue. A future that is dropped leaves it, and gives back what it has
/// booked.
pub(crate) async fn until<P: Permits, C: Clock, F: Future, const N: usize>(
    permits: &P,
    clock: &C,
    queues: &WaiterQueues<N>,
    queue: u64,
    cost: u64,
    deadline: u64,
    sleep: impl Fn(Duration) -> F,
) -> Result<Decision, P::Error> {
    let now = clock.now();
    if let Some(decision) = decide(permits, queues, queue, now, cost, deadline)? {
        return Ok(decision);
    }
    let Some(_place) = queues.waiters.enter() else {
        return crowded(permits, now, cost, deadline);
    };
    // The future is pinned when it is polled, and drops the seat before the waiter.
    let waiter = Waiter::new(queue, cost, deadline);
    let seat = Seat::new(queues.list(queue), &waiter, permits);
    let mut has_joined = false;
    let mut sleeping = pin!(None::<F>);
    let mut wakes = None;
    poll_fn(move |context| loop {
        let now = clock.now();
        let action = match has_joined {
            false => seat.join(now, Some(context.waker()))?,
            true => seat.action(now, Some(context.waker()))?,
        };
        has_joined = true;
        let at = match action {
            WaiterAction::Admitted => return Poll::Ready(admitted(permits, now)),
            WaiterAction::Refused(at) => return Poll::Ready(late(permits, now, cost, at)),
            WaiterAction::Until(at) => at,
        };
        if wakes != Some(at) {
            sleeping.set(Some(sleep(Duration::from_nanos(at.saturating_sub(now)))));
            wakes = Some(at);
        }
        match sleeping.as_mut().as_pin_mut().map(|sleep| sleep.poll(context)) {
            Some(Poll::Ready(_)) => wakes = None,
            _ => return Poll::Pending,
        }
    })
    .await
}
