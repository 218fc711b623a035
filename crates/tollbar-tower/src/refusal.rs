//! The answers to refused requests.

use http::header::{HeaderName, HeaderValue, CONTENT_TYPE};
use http::{Response, StatusCode};
use tollbar::{Decision, Reason};

/// A refused request, for [`LimitLayer::with_refusal`](crate::LimitLayer::with_refusal).
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why the table refused, and how long to wait. Its reason is [`Reason::Fault`] if the table
    /// could not decide.
    pub decision: Decision,
    /// The usual body: a problem in JSON (RFC 9457), of the type `application/problem+json`. That
    /// of a request without a key says so.
    pub problem: String,
    /// Whether the request is a call of gRPC, by its `content-type`.
    pub is_grpc: bool,
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

impl<B, F: Fn(Refusal) -> Response<B>> Refuse<B> for F {
    fn refuse(&self, refusal: Refusal) -> Response<B> {
        self(refusal)
    }
}

/// The usual answer: [`Refusal::status`], with [`Refusal::problem`] as body. Calls of gRPC get the
/// answer of [`Grpc`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Problem;

impl<B: From<String>> Refuse<B> for Problem {
    fn refuse(&self, refusal: Refusal) -> Response<B> {
        if refusal.is_grpc {
            return grpc(&refusal, B::from(String::new()));
        }
        let status = refusal.status();
        let mut response = Response::new(B::from(refusal.problem));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

/// The answer of a gRPC server, such as tonic's: `RESOURCE_EXHAUSTED`; `PERMISSION_DENIED` for a
/// call without a key; `INTERNAL` if the table could not decide. The header fields of the layer are
/// its metadata. (gRPC clients read a plain 429 as `UNAVAILABLE`, and some repeat such calls at
/// once.)
#[derive(Clone, Copy, Debug, Default)]
pub struct Grpc;

impl<B: Default> Refuse<B> for Grpc {
    fn refuse(&self, refusal: Refusal) -> Response<B> {
        grpc(&refusal, B::default())
    }
}

/// A response of gRPC that has only its trailers, which stand in the header.
fn grpc<B>(refusal: &Refusal, empty: B) -> Response<B> {
    let (code, message) = match refusal.status() {
        StatusCode::TOO_MANY_REQUESTS => ("8", "too many calls"),
        StatusCode::FORBIDDEN => ("7", "the call has no key that it could be counted by"),
        _ => ("13", "the limit could not be read"),
    };
    let mut response = Response::new(empty);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(HeaderName::from_static("grpc-status"), HeaderValue::from_static(code));
    headers.insert(HeaderName::from_static("grpc-message"), HeaderValue::from_static(message));
    response
}
