//! The rates, shared by services, and the turns of requests.

use http::{header, HeaderMap, Request, Response};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;
use tollbar::http::Seen;
use tollbar::pacing::{Answer, HostState, Hosts, Options, Ticket};

/// The rates at which a client sends to its servers. Clones share them, in any number of services
/// and threads.
#[derive(Clone)]
pub struct Pacing {
    shared: Arc<Shared>,
}

struct Shared {
    hosts: Mutex<Hosts>,
    /// The zero of the times that `hosts` gets.
    began: Instant,
}

/// The turn of one request. If it is dropped before the request was sent, the next request gets it.
pub(crate) struct Turn {
    pacing: Pacing,
    ticket: Ticket,
    sent: bool,
}

impl Pacing {
    /// Rates of up to `hosts` servers. `None`: `options` do not fit together, or `hosts` is not
    /// within 1 and [`tollbar::pacing::HOSTS_MOST`].
    pub fn new(options: &Options, hosts: usize) -> Option<Pacing> {
        let hosts = Mutex::new(Hosts::new(options, hosts)?);
        Some(Pacing { shared: Arc::new(Shared { hosts, began: Instant::now() }) })
    }

    /// The state of a server, by scheme, host and port as in its URLs (`https://api.example:8443`).
    /// `None`: no request yet, or forgotten.
    pub fn state(&self, host: &str) -> Option<HostState> {
        self.call(|hosts, now| hosts.read(host.as_bytes(), now))
    }

    pub(crate) fn turn<A>(&self, request: &Request<A>) -> Turn {
        let host = host_of(request);
        let ticket = self.call(|hosts, now| hosts.acquire(host.as_bytes(), now));
        Turn { pacing: self.clone(), ticket, sent: false }
    }

    fn call<R>(&self, run: impl FnOnce(&mut Hosts, u64) -> R) -> R {
        // No call of Hosts panics, and each leaves it whole.
        let mut hosts = self.shared.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        run(&mut hosts, nanoseconds(self.shared.began.elapsed()))
    }
}

impl fmt::Debug for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pacing").finish_non_exhaustive()
    }
}

impl Turn {
    /// How long to sleep before the next call. Zero: the request may be sent now.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos(self.pacing.call(|hosts, now| hosts.wait(self.ticket, now)))
    }

    pub(crate) fn sent(&mut self) {
        self.sent = true;
    }

    pub(crate) fn respond<B>(&self, response: &Response<B>) {
        let utc = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanoseconds);
        let seen = Seen::read(&lines(response.headers()), utc);
        let answer = Answer::of(response.status().as_u16(), &seen);
        self.pacing.call(|hosts, now| hosts.respond(self.ticket, now, answer, &seen));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.sent {
            self.pacing.call(|hosts, now| hosts.leave(self.ticket, now));
        }
    }
}

/// Scheme, host and port of a request, in lower case. A request without them in its URI has them in
/// `Host`.
fn host_of<A>(request: &Request<A>) -> String {
    let scheme = request.uri().scheme_str().unwrap_or("http");
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let field = || request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = authority.or_else(field).unwrap_or_default();
    // A password in the URL is not a part of the server's name.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}").to_ascii_lowercase()
}

/// The fields about limits, as the lines that the core reads.
fn lines(headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in headers {
        // A name of `http` is in lower case.
        let name = name.as_str();
        if ["retry-after", "ratelimit", "x-ratelimit-", "x-rate-limit-"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
    }
    text
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
