//! A layer that limits the requests of each key.

use crate::after::After;
#[cfg(feature = "axum")]
use crate::key::{client, peer};
use crate::layers::Layers;
use crate::options::{Further, Options};
use crate::refusal::{Problem, Refusal, Refuse};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
#[cfg(feature = "axum")]
use tollbar::address::Network;
use tollbar::clock::Clock;
use tollbar::http::{Draft, Fields};
use tollbar::table::{PolicyId, Table};
use tower_layer::Layer;
use tower_service::Service;

/// Limits the requests of each key, before they reach the service.
///
/// A refused request gets status 429 and a problem in JSON as body, or the answer of
/// [`LimitLayer::with_refusal`]. All answers get the header fields `RateLimit` and
/// `RateLimit-Policy` (draft 11), and refusals `Retry-After`, or the fields of
/// [`LimitLayer::with_fields`]. A request without a key gets status 403 and none of these fields,
/// because it could not be counted.
///
/// Several layers of one request give one answer: the fields describe the limits of all that were
/// asked, in whatever order they stand, and a layer that refuses gives back what the layers around
/// it were charged, as far as their policies take permits back. Fields that the service itself has
/// set stay as they are.
///
/// The services of a layer share its table. A decision takes less than a microsecond and waits for
/// nobody, so a service is ready whenever the inner one is.
#[derive(Debug)]
pub struct LimitLayer<K, R = Problem> {
    limits: Arc<Limits<K, R>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Limits<K, R> {
    pub table: Arc<Table>,
    pub policy: PolicyId,
    pub name: String,
    pub fields: Fields,
    pub key: K,
    pub refusal: R,
    pub options: Options,
}

impl<K> LimitLayer<K> {
    /// Limits requests by `key`, under the table's first policy.
    ///
    /// `key` returns the bytes of a request's key ([`header`](crate::header),
    /// [`address`](crate::address), [`client`](crate::client())). If it returns `None`, the table's
    /// option for missing keys decides: by default the request is refused.
    pub fn new<B, T>(table: impl Into<Arc<Table>>, key: K) -> LimitLayer<K>
    where
        K: Fn(&Request<B>) -> Option<T>,
        T: AsRef<[u8]>,
    {
        let fields = Fields { retry_after: true, legacy: None, draft: Some(Draft::Eleven) };
        let limits = Limits {
            table: table.into(),
            policy: PolicyId::FIRST,
            name: "default".into(),
            fields,
            key,
            refusal: Problem,
            options: Options::default(),
        };
        LimitLayer { limits: Arc::new(limits) }
    }
}

#[cfg(feature = "axum")]
impl LimitLayer<()> {
    /// Limits requests of a program with axum by the address of the client, under the table's first
    /// policy. Behind `proxies`, the networks of the trusted proxies, the client is the one that
    /// these name in X-Forwarded-For ([`client`](crate::client)). IPv6 clients are counted by their
    /// /64.
    ///
    /// The program serves by `into_make_service_with_connect_info::<SocketAddr>()`. Without it no
    /// request has an address, and each is answered as one without a key.
    pub fn by_client(
        table: impl Into<Arc<Table>>,
        proxies: impl Into<Arc<[Network]>>,
    ) -> LimitLayer<impl Fn(&axum::extract::Request) -> Option<Vec<u8>> + Clone> {
        let proxies = proxies.into();
        LimitLayer::new(table, move |request: &axum::extract::Request| {
            client(request, peer(request), &proxies)
        })
    }
}

impl<K: Clone, R: Clone> LimitLayer<K, R> {
    /// Decides under another policy of the table. `name` is the limit's name in the header fields;
    /// otherwise it is `default`.
    pub fn with_policy(mut self, policy: PolicyId, name: impl Into<String>) -> LimitLayer<K, R> {
        let limits = Arc::make_mut(&mut self.limits);
        limits.policy = policy;
        limits.name = name.into();
        self
    }

    /// Adds these header fields to all answers. `Fields::default()` adds none.
    pub fn with_fields(mut self, fields: Fields) -> LimitLayer<K, R> {
        Arc::make_mut(&mut self.limits).fields = fields;
        self
    }

    /// Answers refused requests by `refusal`, a function of a [`Refusal`] that returns a response.
    /// The layer adds the header fields.
    pub fn with_refusal<N>(self, refusal: N) -> LimitLayer<K, N> {
        let Limits { table, policy, name, fields, key, options, .. } =
            Arc::unwrap_or_clone(self.limits);
        LimitLayer {
            limits: Arc::new(Limits { table, policy, name, fields, key, refusal, options }),
        }
    }

    /// Counts requests with these methods only. Others pass, and get no fields from this layer.
    pub fn with_methods(mut self, methods: impl Into<Arc<[Method]>>) -> LimitLayer<K, R> {
        self.options().methods = Some(methods.into());
        self
    }

    /// Lets requests pass without counting them where `exempt` returns true, such as health checks.
    /// The request that it gets has no body.
    pub fn with_exempt(
        mut self,
        exempt: impl Fn(&Request<()>) -> bool + Send + Sync + 'static,
    ) -> LimitLayer<K, R> {
        self.options().exempt = Some(Arc::new(exempt));
        self
    }

    /// Charges each request the number of permits that `cost` returns for it. Without this option
    /// the layer charges one permit. The layer always refuses a request that costs more than the
    /// burst.
    pub fn with_cost(
        mut self,
        cost: impl Fn(&Request<()>) -> u64 + Send + Sync + 'static,
    ) -> LimitLayer<K, R> {
        self.options().cost = Some(Arc::new(cost));
        self
    }

    /// Charges requests after their answers, the permits that `charge` returns for an answer: 1 for
    /// a failed login and 0 for any other, or the bytes of a download. A request passes if the
    /// permits of its cost are there, and is charged nothing then. An answer is charged whether or
    /// not the permits are still there ([`Table::charge`]). A service that returns an error, and a
    /// request that is dropped, are charged nothing.
    pub fn with_charge(
        mut self,
        charge: impl Fn(&Response<()>) -> u64 + Send + Sync + 'static,
    ) -> LimitLayer<K, R> {
        self.options().charge = Some(Arc::new(charge));
        self
    }

    /// Adds a limit to those of each request: `key` under another policy of the table, or under the
    /// same one. A request is charged under all of them or under none
    /// ([`take_many`](tollbar::take_many)). A layer has 16 limits at most, and refuses all requests
    /// with status 500 if it has more.
    pub fn with_limit<T: Into<Vec<u8>>>(
        mut self,
        policy: PolicyId,
        name: impl Into<String>,
        key: impl Fn(&Request<()>) -> Option<T> + Send + Sync + 'static,
    ) -> LimitLayer<K, R> {
        let key = Arc::new(move |request: &Request<()>| key(request).map(Into::into));
        self.options().further.push(Further { policy, name: name.into(), key });
        self
    }

    /// Reads the time from `clock`, which a test may move
    /// ([`Manual`](tollbar::clock::Manual)), in place of the table's.
    pub fn with_clock(
        mut self,
        clock: Arc<impl Clock + Send + Sync + 'static>,
    ) -> LimitLayer<K, R> {
        self.options().clock = Some(clock);
        self
    }

    fn options(&mut self) -> &mut Options {
        &mut Arc::make_mut(&mut self.limits).options
    }
}

// Not derived: a clone shares the limits, so these need not be `Clone`.
impl<K, R> Clone for LimitLayer<K, R> {
    fn clone(&self) -> LimitLayer<K, R> {
        LimitLayer { limits: Arc::clone(&self.limits) }
    }
}

impl<S, K, R> Layer<S> for LimitLayer<K, R> {
    type Service = Limit<S, K, R>;

    fn layer(&self, inner: S) -> Limit<S, K, R> {
        Limit { inner, limits: Arc::clone(&self.limits) }
    }
}

/// The service of a [`LimitLayer`].
#[derive(Debug)]
pub struct Limit<S, K, R = Problem> {
    inner: S,
    limits: Arc<Limits<K, R>>,
}

impl<S: Clone, K, R> Clone for Limit<S, K, R> {
    fn clone(&self) -> Limit<S, K, R> {
        Limit { inner: self.inner.clone(), limits: Arc::clone(&self.limits) }
    }
}

impl<S, K, R, T, ReqBody, ResBody> Service<Request<ReqBody>> for Limit<S, K, R>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    K: Fn(&Request<ReqBody>) -> Option<T>,
    T: AsRef<[u8]>,
    R: Refuse<ResBody>,
{
    type Response = Response<ResBody>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> ResponseFuture<S::Future, ResBody> {
        let limits = &*self.limits;
        let (mut request, asks) = limits.options.of(request);
        if !asks.counts {
            let inner = self.inner.call(request);
            return ResponseFuture::Admitted { inner, layers: None, after: None };
        }
        let key = (limits.key)(&request);
        let key = key.as_ref().map_or(&[][..], |key| key.as_ref());
        let (layers, is_outermost) = Layers::of(request.extensions_mut());
        let decided = limits.decide(&layers, key, &asks);
        if decided.decision.is_allowed() {
            let (inner, after) = (self.inner.call(request), decided.after);
            return ResponseFuture::Admitted {
                inner,
                layers: is_outermost.then_some(layers),
                after,
            };
        }
        let refusal = Refusal {
            problem: limits.problem(&decided),
            decision: decided.decision,
            is_grpc: request
                .headers()
                .get(CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")),
        };
        let mut response = limits.refusal.refuse(refusal);
        if is_outermost {
            layers.write(response.headers_mut());
        }
        ResponseFuture::Refused { response: Some(response) }
    }
}

pin_project! {
    /// The answer of a [`Limit`].
    #[project = Projection]
    #[derive(Debug)]
    pub enum ResponseFuture<F, B> {
        #[doc(hidden)]
        Admitted {
            #[pin]
            inner: F,
            layers: Option<Layers>,
            after: Option<After>,
        },
        #[doc(hidden)]
        Refused { response: Option<Response<B>> },
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Response<B>, E>> {
        match self.project() {
            Projection::Admitted { inner, layers, after } => {
                inner.poll(context).map_ok(|response| {
                    let mut response = match after.take() {
                        Some(after) => after.charge(response),
                        None => response,
                    };
                    if let Some(layers) = layers.take() {
                        layers.write(response.headers_mut());
                    }
                    response
                })
            }
            Projection::Refused { response } => Poll::Ready(Ok(response
                .take()
                .expect("a future that has returned is not polled again"))),
        }
    }
}
