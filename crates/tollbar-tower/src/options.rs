//! What a layer counts, beside its key.

use http::{Method, Request, Response};
use std::fmt;
use std::sync::Arc;
use tollbar::clock::Clock;
use tollbar::table::PolicyId;

/// A function of a request without its body.
pub(crate) type OfRequest<T> = Arc<dyn Fn(&Request<()>) -> T + Send + Sync>;
/// A function of an answer without its body.
pub(crate) type OfResponse<T> = Arc<dyn Fn(&Response<()>) -> T + Send + Sync>;

/// The options of a layer. Each is off unless a program sets it.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// The methods of requests that are counted; all if `None`.
    pub methods: Option<Arc<[Method]>>,
    pub exempt: Option<OfRequest<bool>>,
    pub cost: Option<OfRequest<u64>>,
    pub charge: Option<OfResponse<u64>>,
    pub clock: Option<Arc<dyn Clock + Send + Sync>>,
    /// Further limits of each request.
    pub further: Vec<Further>,
}

/// A further limit of each request.
#[derive(Clone)]
pub(crate) struct Further {
    pub policy: PolicyId,
    pub name: String,
    pub key: OfRequest<Option<Vec<u8>>>,
}

/// What the options say about a request.
pub(crate) struct Asks {
    pub counts: bool,
    pub cost: u64,
    /// The keys of the further limits.
    pub keys: Vec<Vec<u8>>,
}

impl Options {
    /// Applies the options to a request, and gives the request back.
    pub fn of<B>(&self, request: Request<B>) -> (Request<B>, Asks) {
        if self.methods.as_ref().is_some_and(|methods| !methods.contains(request.method())) {
            return (request, Asks { counts: false, cost: 0, keys: Vec::new() });
        }
        if self.exempt.is_none() && self.cost.is_none() && self.further.is_empty() {
            return (request, Asks { counts: true, cost: 1, keys: Vec::new() });
        }
        let (parts, body) = request.into_parts();
        let head = Request::from_parts(parts, ());
        let asked = Asks {
            counts: !self.exempt.as_ref().is_some_and(|exempt| exempt(&head)),
            cost: self.cost.as_ref().map_or(1, |cost| cost(&head)),
            keys: self.further.iter().map(|limit| (limit.key)(&head).unwrap_or_default()).collect(),
        };
        (Request::from_parts(head.into_parts().0, body), asked)
    }

    /// The time of a decision, if the layer has a clock of its own.
    pub fn now(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.now())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("methods", &self.methods)
            .field("exempt", &self.exempt.is_some())
            .field("cost", &self.cost.is_some())
            .field("charge", &self.charge.is_some())
            .field("clock", &self.clock.is_some())
            .field("further", &self.further.iter().map(|limit| &limit.name).collect::<Vec<_>>())
            .finish()
    }
}
