//! A layer that limits the requests of each key.

use crate::layers::{Asked, Charged, Layers};
use http::header::{HeaderValue, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollbar::address::{self, Network, Peer};
use tollbar::http::{more_after, problem, Draft, Fields};
use tollbar::prefix::Prefix;
use tollbar::table::{PolicyId, Table};
use tollbar::{Decision, Reason};
use tower_layer::Layer;
use tower_service::Service;

/// The most bytes of one limit's header fields, beside four for each byte of its name.
const FIELDS_MOST: usize = 600;
/// The problem of a request without a key.
const MISSING: &str = r#"{"title":"Forbidden","status":403,"detail":"the request has no key that it could be counted by"}"#;

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
struct Limits<K, R> {
    table: Arc<Table>,
    policy: PolicyId,
    name: String,
    fields: Fields,
    key: K,
    refusal: R,
}

impl<K> LimitLayer<K> {
    /// Limits requests by `key`, under the table's first policy.
    ///
    /// `key` returns the bytes of a request's key ([`header`], [`address`], [`client`]). If it
    /// returns `None`, the table's option for missing keys decides: by default the request is
    /// refused.
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
        };
        LimitLayer { limits: Arc::new(limits) }
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
        let Limits { table, policy, name, fields, key, .. } = Arc::unwrap_or_clone(self.limits);
        LimitLayer { limits: Arc::new(Limits { table, policy, name, fields, key, refusal }) }
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

/// A refused request, for [`LimitLayer::with_refusal`].
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why the table refused, and how long to wait. Its reason is [`Reason::Fault`] if the table
    /// could not decide.
    pub decision: Decision,
    /// The usual body: a problem in JSON (RFC 9457), of the type `application/problem+json`. That
    /// of a request without a key says so.
    pub problem: String,
}

impl Refusal {
    /// The usual status: 429; 403 for a request without a key, for which waiting does not help; 500
    /// if the table could not decide.
    pub fn status(&self) -> StatusCode {
        match self.decision.reason {
            Reason::Fault => StatusCode::INTERNAL_SERVER_ERROR,
            Reason::MissingKey => StatusCode::FORBIDDEN,
            _ => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// Answers refused requests. Functions from [`Refusal`] to `Response<B>` do so.
pub trait Refuse<B> {
    /// The answer to a refused request. The layer adds the header fields.
    fn refuse(&self, refusal: Refusal) -> Response<B>;
}

/// The usual answer: [`Refusal::status`], with [`Refusal::problem`] as body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Problem;

impl<B: From<String>> Refuse<B> for Problem {
    fn refuse(&self, refusal: Refusal) -> Response<B> {
        let status = refusal.status();
        let mut response = Response::new(B::from(refusal.problem));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

impl<B, F: Fn(Refusal) -> Response<B>> Refuse<B> for F {
    fn refuse(&self, refusal: Refusal) -> Response<B> {
        self(refusal)
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

    fn call(&mut self, mut request: Request<ReqBody>) -> ResponseFuture<S::Future, ResBody> {
        let limits = &*self.limits;
        let key = (limits.key)(&request);
        let (layers, is_outermost) = Layers::of(request.extensions_mut());
        let decision = limits.decide(&layers, key.as_ref().map_or(&[], |key| key.as_ref()));
        let layers = is_outermost.then_some(layers);
        if decision.is_allowed() {
            return ResponseFuture::Admitted { inner: self.inner.call(request), layers };
        }
        let refusal = Refusal { problem: limits.problem(&decision), decision };
        let mut response = limits.refusal.refuse(refusal);
        if let Some(layers) = layers {
            layers.write(response.headers_mut());
        }
        ResponseFuture::Refused { response: Some(response) }
    }
}

impl<K, R> Limits<K, R> {
    /// Decides about a request of one permit, and adds the limit to those of the request's other
    /// layers.
    fn decide(&self, layers: &Layers, key: &[u8]) -> Decision {
        // A receipt, by which a layer further in can give the charge back. An error has charged
        // nothing; a check makes a decision of it.
        let taken = if key.is_empty() { None } else { self.table.take(self.policy, key, 1).ok() };
        let (decision, receipt) =
            taken.unwrap_or_else(|| (self.table.check(self.policy, key, 1), None));
        if !decision.is_allowed() {
            layers.give_back();
        }
        // A policy that the table does not have is the decision's fault.
        let Some(policy) = self
            .table
            .policy_of(self.policy, key)
            .ok()
            .filter(|_| decision.reason != Reason::MissingKey)
        else {
            return decision;
        };
        let peek = |cost| self.table.peek_uncounted(self.policy, key, None, cost);
        let more_after = match self.fields {
            Fields { legacy: None, draft: None, .. } => tollbar::NEVER,
            _ => more_after(&policy, &decision, 1, peek),
        };
        let charged = receipt.map(|receipt| Charged {
            table: Arc::clone(&self.table),
            policy: self.policy,
            key: key.to_vec(),
            receipt,
        });
        layers.add(Asked {
            name: self.name.clone(),
            fields: self.fields,
            policy,
            decision,
            more_after,
            charged,
        });
        decision
    }

    fn problem(&self, decision: &Decision) -> String {
        if decision.reason == Reason::MissingKey {
            return MISSING.to_owned();
        }
        let Ok(policy) = self.table.policy(self.policy) else { return String::new() };
        let limit = tollbar::http::Limit::new(self.name.as_bytes(), &policy, decision);
        let mut text = vec![0; FIELDS_MOST + 6 * self.name.len()];
        let length = problem(&[limit], StatusCode::TOO_MANY_REQUESTS.as_u16(), &mut text);
        text.truncate(length);
        String::from_utf8(text).unwrap_or_default()
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
            Projection::Admitted { inner, layers } => inner.poll(context).map_ok(|mut response| {
                if let Some(layers) = layers.take() {
                    layers.write(response.headers_mut());
                }
                response
            }),
            Projection::Refused { response } => Poll::Ready(Ok(response
                .take()
                .expect("a future that has returned is not polled again"))),
        }
    }
}

/// A request's header field as a key. `None` if the request does not have the field, or has
/// several: a client could vary the others.
pub fn header<B>(request: &Request<B>, name: &str) -> Option<Vec<u8>> {
    let mut values = request.headers().get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes().to_vec()),
        _ => None,
    }
}

/// The key of a client behind trusted proxies.
///
/// `peer` is the address at the other end of the connection: what axum's `ConnectInfo` holds, or
/// `None` for a Unix socket. `proxies` are the networks of the trusted proxies. If the peer is in
/// one of them, the function reads X-Forwarded-For from the right and takes the first address
/// outside these networks. Otherwise the peer is the client. Returns `None` if neither gives an
/// address.
///
/// ```
/// use tollbar::address::Network;
/// let proxies = [Network::parse(b"10.0.0.0/8").unwrap()];
/// let request = http::Request::builder().header("x-forwarded-for", "1.1.1.1, 192.0.2.1").body(()).unwrap();
/// let peer = "10.0.0.7".parse().unwrap();
/// assert_eq!(tollbar_tower::client(&request, Some(peer), &proxies), tollbar_tower::address("192.0.2.1".parse().unwrap()));
/// ```
pub fn client<B>(
    request: &Request<B>,
    peer: Option<IpAddr>,
    proxies: &[Network],
) -> Option<Vec<u8>> {
    let peer = peer.map_or(Peer::Unix, Peer::Address);
    // A header map's values go in one direction only.
    let forwarded: Vec<&[u8]> =
        request.headers().get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
    address(address::client(peer, proxies.iter().copied(), forwarded.into_iter().rev())?)
}

/// An address as a key: an IPv4 address, or the /64 of an IPv6 address, because a client has all
/// addresses of its /64.
pub fn address(address: IpAddr) -> Option<Vec<u8>> {
    Prefix::of(address, 32, 64).map(|prefix| prefix.as_bytes().to_vec())
}
