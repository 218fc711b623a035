//! A tower layer for HTTP clients that finds the rate of requests that each server accepts.
//!
//! A `429` lowers the rate of its server, other answers raise it, and `Retry-After` stops all
//! requests to the server until its time ([`tollbar::pacing`]). A server has no limit until it
//! answers with `429`. The layer delays requests and repeats none: the caller gets each `429`.
//!
//! ```
//! use tollbar_tower::pacing::{Options, Pacing, PacingLayer};
//! use tower_layer::Layer;
//!
//! # #[derive(Clone)] struct Client;
//! # impl tower_service::Service<http::Request<()>> for Client {
//! #     type Response = http::Response<()>;
//! #     type Error = std::convert::Infallible;
//! #     type Future = std::future::Ready<Result<Self::Response, Self::Error>>;
//! #     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> { Ok(()).into() }
//! #     fn call(&mut self, _: http::Request<()>) -> Self::Future { std::future::ready(Ok(http::Response::new(()))) }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), std::convert::Infallible> {
//! use tower_service::Service;
//!
//! let pacing = Pacing::new(&Options::new(), 256).expect("options that fit together");
//! let mut client = PacingLayer::new(pacing.clone()).layer(Client);
//! std::future::poll_fn(|cx| client.poll_ready(cx)).await?;
//! let answer = client.call(http::Request::get("https://api.example/").body(()).unwrap()).await?;
//! assert_eq!((answer.status(), pacing.state("https://api.example").unwrap().waiting), (http::StatusCode::OK, 0));
//! # Ok(())
//! # }
//! ```

mod future;
mod rates;

pub use future::PacedFuture;
pub use rates::Pacing;
pub use tollbar::pacing::{Algorithm, HostState, Options, PER_SECOND};

use http::{Request, Response};
use std::mem::replace;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Makes [`Paced`] services.
#[derive(Clone, Debug)]
pub struct PacingLayer {
    pacing: Pacing,
}

/// A service that sends each request when its server's turn has come.
///
/// `poll_ready` is that of the inner service, because only the request says which server it is for.
/// The wait is in the future of `call`. If the future is dropped while it waits, its turn goes to
/// the next request.
#[derive(Clone, Debug)]
pub struct Paced<S> {
    inner: S,
    pacing: Pacing,
}

impl PacingLayer {
    /// A layer whose services share `pacing`.
    pub fn new(pacing: Pacing) -> PacingLayer {
        PacingLayer { pacing }
    }
}

impl<S> Layer<S> for PacingLayer {
    type Service = Paced<S>;

    fn layer(&self, inner: S) -> Paced<S> {
        Paced { inner, pacing: self.pacing.clone() }
    }
}

impl<S, A, B> Service<Request<A>> for Paced<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = PacedFuture<S, A>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> PacedFuture<S, A> {
        // The service that was polled until it was ready goes into the future. Its clone may not be
        // ready.
        let fresh = self.inner.clone();
        let ready = replace(&mut self.inner, fresh);
        PacedFuture::new(self.pacing.turn(&request), ready, request)
    }
}
