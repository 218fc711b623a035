//! The future of a paced request.

use super::rates::Turn;
use http::{Request, Response};
use pin_project_lite::pin_project;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::time::{sleep, Instant, Sleep};
use tower_service::Service;

pin_project! {
    /// Waits for its server's turn, sends the request, and learns from the answer. Dropped while it
    /// waits, it gives its turn to the next request.
    #[must_use = "a future sends nothing until it is polled"]
    pub struct PacedFuture<S, A>
    where
        S: Service<Request<A>>,
    {
        turn: Turn,
        #[pin]
        state: State<S, A>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, A>
    where
        S: Service<Request<A>>,
    {
        Waiting {
            service: S,
            // None only after it was sent.
            request: Option<Request<A>>,
            // None until the first wait, so that a request that need not wait needs no timer.
            sleep: Option<Pin<Box<Sleep>>>,
        },
        Sending { #[pin] answer: S::Future },
    }
}

impl<S, A> PacedFuture<S, A>
where
    S: Service<Request<A>>,
{
    pub(crate) fn new(turn: Turn, service: S, request: Request<A>) -> PacedFuture<S, A> {
        PacedFuture { turn, state: State::Waiting { service, request: Some(request), sleep: None } }
    }
}

impl<S, A, B> Future for PacedFuture<S, A>
where
    S: Service<Request<A>, Response = Response<B>>,
{
    type Output = Result<Response<B>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProjection::Waiting { service, request, sleep } => {
                    ready!(poll_turn(this.turn, sleep, cx));
                    let Some(request) = request.take() else {
                        unreachable!("the request is taken as the state changes")
                    };
                    this.turn.sent();
                    let answer = service.call(request);
                    this.state.set(State::Sending { answer });
                }
                StateProjection::Sending { answer } => {
                    let answer = ready!(answer.poll(cx));
                    if let Ok(response) = &answer {
                        this.turn.respond(response);
                    }
                    return Poll::Ready(answer);
                }
            }
        }
    }
}

/// Ready when the turn has come. The rate or a pause may change during a sleep, so the wait is
/// asked for again after each.
fn poll_turn(turn: &Turn, timer: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        let wait = turn.wait();
        if wait == Duration::ZERO {
            return Poll::Ready(());
        }
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(wait)));
        timer.as_mut().reset(Instant::now() + wait);
        ready!(timer.as_mut().poll(cx));
    }
}

impl<S, A> fmt::Debug for PacedFuture<S, A>
where
    S: Service<Request<A>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacedFuture").finish_non_exhaustive()
    }
}
