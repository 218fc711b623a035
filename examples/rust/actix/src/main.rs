//! An actix-web service that limits its requests: by API key if the service knows the key,
//! otherwise by address.
//!
//! ```sh
//! cargo run --release -- 127.0.0.1:8080
//! for i in 1 2 3 4; do curl -i http://127.0.0.1:8080/; done
//! ```

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::StatusCode;
use actix_web::middleware::{from_fn, Next};
use actix_web::{get, web, App, Error, HttpResponse, HttpServer};
use std::time::{SystemTime, UNIX_EPOCH};
use tollbar::http::{more_after, problem, Draft, Fields, Limit};
use tollbar::prefix::Prefix;
use tollbar::table::{Options, PolicyId, Table};
use tollbar::Reason;

/// The policies of the table, and the name of each in the header fields.
const BY_ADDRESS: PolicyId = PolicyId::FIRST;
const BY_API_KEY: PolicyId = PolicyId::new(1);
const POLICIES: [(&str, &str); 2] = [("address", "3/min"), ("api-key", "1000/day burst 5")];

/// The API keys that the service has given out. Any other one is ignored: a client that invents a
/// key for each request must not get a fresh limit with each.
const API_KEYS: [&str; 2] = ["ann-7f3a", "bob-91c2"];

#[get("/")]
async fn welcome() -> &'static str {
    "welcome\n"
}

/// Charges one permit for each request. All answers get `RateLimit` and `RateLimit-Policy`. Refused
/// requests get 429, `Retry-After` and a problem in JSON, and the service does not see them.
async fn limited(
    table: web::Data<Table>,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let (id, key) = key_of(&request);
    let decision = table.check(id, &key, 1);

    let name = POLICIES[id.number() as usize].0;
    let policy = table.policy(id).map_err(actix_web::error::ErrorInternalServerError)?;
    let more = more_after(&policy, &decision, 1, |cost| table.peek(id, &key, cost));
    let limit = Limit::new(name.as_bytes(), &policy, &decision).with_more_after(more);

    let mut response = if decision.is_allowed() {
        next.call(request).await?.map_into_left_body()
    } else {
        // The table could not decide, for example because another process damaged it.
        let status = match decision.reason {
            Reason::Fault => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        let mut body = [0; 600];
        let length = problem(&[limit], status.as_u16(), &mut body);
        let answer = HttpResponse::build(status)
            .content_type("application/problem+json")
            .body(body[..length].to_vec());
        request.into_response(answer).map_into_right_body()
    };
    add_fields(response.headers_mut(), limit);
    Ok(response)
}

/// The policy and the key of a request. A request without either has the empty key, which the table
/// refuses (`Options::missing`).
fn key_of(request: &ServiceRequest) -> (PolicyId, Vec<u8>) {
    if let Some(key) =
        request.headers().get("x-api-key").filter(|key| API_KEYS.iter().any(|known| *key == known))
    {
        return (BY_API_KEY, key.as_bytes().to_vec());
    }
    // Behind a proxy this is the proxy's address: take the address that your proxy reports, and
    // only if the peer is your proxy. A client has all addresses of its IPv6 network, so the /64 is
    // the key.
    let prefix = request.peer_addr().and_then(|peer| Prefix::of(peer.ip(), 32, 64));
    (BY_ADDRESS, prefix.map_or(Vec::new(), |prefix| prefix.as_bytes().to_vec()))
}

/// Adds the lines `NAME: VALUE\r\n` that tollbar writes.
fn add_fields(headers: &mut HeaderMap, limit: Limit<'_>) {
    let utc = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mut lines = [0; 600];
    let length = Fields::new().with_draft(Draft::Eleven).write(&[limit], utc, &mut lines);
    for line in String::from_utf8_lossy(&lines[..length]).lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let [(_, by_address), (_, by_api_key)] = POLICIES;
    // 100,000 keys in 2 MB. All threads of actix share the table; `Table::file` shares it with
    // other processes, too.
    let table = web::Data::new(Table::private(
        &Options::new(100_000),
        &[by_address.parse()?, by_api_key.parse()?],
    )?);

    let server = HttpServer::new(move || {
        App::new().app_data(table.clone()).wrap(from_fn(limited)).service(welcome)
    })
    .bind(listen)?;
    for address in server.addrs() {
        println!("listening on {address}");
    }
    server.run().await?;
    Ok(())
}
