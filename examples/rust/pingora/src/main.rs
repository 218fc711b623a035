//! A pingora proxy that limits the requests to one server: by API key if the proxy knows the key,
//! otherwise by address.
//!
//! ```sh
//! python3 -m http.server 9000 --bind 127.0.0.1 &
//! cargo run --release -- 127.0.0.1:8080 127.0.0.1:9000
//! for i in 1 2 3 4; do curl -i http://127.0.0.1:8080/; done
//! ```

use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::prelude::*;
use pingora_http::ResponseHeader;
use pingora_proxy::{http_proxy_service, ProxyHttp, Session};
use std::time::{SystemTime, UNIX_EPOCH};
use tollbar::http::{more_after, problem, Draft, Fields, Limit};
use tollbar::prefix::Prefix;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::Reason;

/// The policies of the table, and the name of each in the header fields.
const BY_ADDRESS: PolicyId = PolicyId::FIRST;
const BY_API_KEY: PolicyId = PolicyId::new(1);
const POLICIES: [(&str, &str); 2] = [("address", "3/min"), ("api-key", "1000/day burst 5")];

/// The API keys that have been given out. Any other one is ignored: a client that invents a key for
/// each request must not get a fresh limit with each.
const API_KEYS: [&str; 2] = ["ann-7f3a", "bob-91c2"];

struct Proxy {
    table: Table,
    upstream: String,
}

/// What is kept of a request until its answer: the lines `NAME: VALUE\r\n` of its limit.
#[derive(Default)]
struct Context {
    fields: String,
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        Context::default()
    }

    /// Charges one permit. A refused request gets 429, `Retry-After` and a problem in JSON, and the
    /// upstream does not see it.
    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        let (id, key) = key_of(session);
        let decision = self.table.check(id, &key, 1);

        let name = POLICIES[id.number() as usize].0;
        let Ok(policy) = self.table.policy(id) else {
            return Error::e_explain(InternalError, "the table's policy");
        };
        let more = more_after(&policy, &decision, 1, |cost| self.table.peek(id, &key, cost));
        let limit = Limit::new(name.as_bytes(), &policy, &decision).with_more_after(more);
        context.fields = lines(limit);
        if decision.is_allowed() {
            return Ok(false);
        }

        // The table could not decide, for example because another process damaged it.
        let status = if decision.reason == Reason::Fault { 500 } else { 429 };
        let mut body = [0; 600];
        let length = problem(&[limit], status, &mut body);
        let mut header = ResponseHeader::build(status, None)?;
        header.insert_header("Content-Type", "application/problem+json")?;
        header.insert_header("Content-Length", length.to_string())?;
        add_fields(&mut header, context)?;
        session.write_response_header(Box::new(header), false).await?;
        session.write_response_body(Some(Bytes::copy_from_slice(&body[..length])), true).await?;
        Ok(true)
    }

    async fn upstream_peer(&self, _: &mut Session, _: &mut Context) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(&self.upstream, false, String::new())))
    }

    /// Adds `RateLimit` and `RateLimit-Policy` to the upstream's answer.
    async fn response_filter(
        &self,
        _: &mut Session,
        header: &mut ResponseHeader,
        context: &mut Context,
    ) -> Result<()> {
        add_fields(header, context)
    }
}

/// The policy and the key of a request. A request without either has the empty key, which the table
/// refuses (`Options::missing`).
fn key_of(session: &Session) -> (PolicyId, Vec<u8>) {
    let sent = session.req_header().headers.get("x-api-key");
    if let Some(key) = sent.filter(|key| API_KEYS.iter().any(|known| *key == known)) {
        return (BY_API_KEY, key.as_bytes().to_vec());
    }
    // A client has all addresses of its IPv6 network, so the /64 is the key.
    let peer = session.client_addr().and_then(|peer| peer.as_inet());
    let prefix = peer.and_then(|peer| Prefix::of(peer.ip(), 32, 64));
    (BY_ADDRESS, prefix.map_or(Vec::new(), |prefix| prefix.as_bytes().to_vec()))
}

fn lines(limit: Limit<'_>) -> String {
    let utc = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mut lines = [0; 600];
    let length = Fields::new().with_draft(Draft::Eleven).write(&[limit], utc, &mut lines);
    String::from_utf8_lossy(&lines[..length]).into_owned()
}

fn add_fields(header: &mut ResponseHeader, context: &Context) -> Result<()> {
    for line in context.fields.lines() {
        if let Some((name, value)) = line.split_once(": ") {
            header.append_header(name.to_string(), value)?;
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let upstream = arguments.next().unwrap_or("127.0.0.1:9000".into());
    let [(_, by_address), (_, by_api_key)] = POLICIES;
    // 100,000 keys in 2 MB. `Table::file` keeps the counts over a graceful upgrade, and shares them
    // with other processes.
    let table =
        Table::private(&Options::new(100_000), &[by_address.parse()?, by_api_key.parse()?])?;

    let mut server = Server::new(None)?;
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, Proxy { table, upstream });
    service.add_tcp(&listen);
    server.add_service(service);
    server.run_forever();
}
