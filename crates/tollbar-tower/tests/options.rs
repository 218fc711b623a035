//! The options of the layer: which requests count, what they cost and when, and several limits.

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::routing::any;
use axum::Router;
use http::{Method, Response, StatusCode};
use std::net::SocketAddr;
use std::sync::Arc;
use tollbar::address::Network;
use tollbar::clock::Manual;
use tollbar::table::{Options, PolicyId, Table};
use tollbar_tower::{header, Grpc, LimitLayer};
use tower::ServiceExt;

const SEC: u64 = 1_000_000_000;

fn table(policies: &[&str]) -> Arc<Table> {
    let policies: Vec<_> = policies.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(Table::private(&Options::new(1000), &policies).unwrap())
}

/// An application that answers with the status in the request's path.
fn app() -> Router {
    let handler = |request: Request| async move {
        let status = request.uri().path().trim_start_matches('/').parse().unwrap_or(200);
        StatusCode::from_u16(status).unwrap()
    };
    Router::new().route("/", any(handler)).route("/{status}", any(handler))
}

fn by_key(request: &Request) -> Option<Vec<u8>> {
    header(request, "x-api-key")
}

fn request(method: Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path).header("x-api-key", "ann")
}

async fn ask(app: &Router, request: http::request::Builder) -> Response<Body> {
    app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn status(app: &Router, request: http::request::Builder) -> u16 {
    ask(app, request).await.status().as_u16()
}

fn field<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn requests_with_other_methods_are_not_counted() {
    let app = app().layer(LimitLayer::new(table(&["1/day"]), by_key).with_methods([Method::POST]));
    for _ in 0..3 {
        let response = ask(&app, request(Method::GET, "/")).await;
        assert_eq!((response.status(), field(&response, "ratelimit")), (StatusCode::OK, ""));
    }
    assert_eq!(status(&app, request(Method::POST, "/")).await, 200);
    assert_eq!(status(&app, request(Method::POST, "/")).await, 429);
    assert_eq!(status(&app, request(Method::GET, "/")).await, 200);
}

#[tokio::test]
async fn exempt_requests_are_not_counted() {
    let layer = LimitLayer::new(table(&["1/day"]), by_key)
        .with_exempt(|request| request.headers().contains_key("x-probe"));
    let app = app().layer(layer);
    for _ in 0..3 {
        assert_eq!(status(&app, request(Method::GET, "/").header("x-probe", "1")).await, 200);
    }
    assert_eq!(status(&app, request(Method::GET, "/")).await, 200);
    assert_eq!(status(&app, request(Method::GET, "/")).await, 429);
}

#[tokio::test]
async fn a_request_is_charged_its_cost() {
    let table = table(&["10/day"]);
    let cost = |request: &http::Request<()>| match request.uri().path() {
        "/201" => 4,
        "/202" => 11,
        _ => 1,
    };
    let app = app().layer(LimitLayer::new(Arc::clone(&table), by_key).with_cost(cost));
    for (path, expected, left) in
        [("/201", 201, 6), ("/", 200, 5), ("/201", 201, 1), ("/201", 429, 1), ("/", 200, 0)]
    {
        assert_eq!(status(&app, request(Method::GET, path)).await, expected, "{path} {left}");
        assert_eq!(table.peek(PolicyId::FIRST, b"ann", 1).remaining, left, "{path}");
    }
    let never = ask(&app, request(Method::GET, "/202")).await;
    assert_eq!((never.status().as_u16(), field(&never, "retry-after")), (429, ""));
}

/// Right passwords cost nothing, and wrong ones do.
#[tokio::test]
async fn an_answer_is_charged_afterwards() {
    let table = table(&["2/day"]);
    let layer = LimitLayer::new(Arc::clone(&table), by_key)
        .with_charge(|response| u64::from(response.status() == StatusCode::UNAUTHORIZED));
    let app = app().layer(layer);
    for (path, expected, left) in
        [("/", 200, "2"), ("/401", 401, "1"), ("/", 200, "1"), ("/401", 401, "0")]
    {
        let response = ask(&app, request(Method::GET, path)).await;
        assert_eq!(response.status().as_u16(), expected);
        let begin = format!("\"default\";r={left}");
        assert!(
            field(&response, "ratelimit").starts_with(&begin),
            "{path} {:?}",
            response.headers()
        );
        assert_eq!(field(&response, "retry-after"), "");
    }
    let refused = ask(&app, request(Method::GET, "/")).await;
    assert_eq!(refused.status().as_u16(), 429);
    assert_ne!(field(&refused, "retry-after"), "");
    let counts = table.counts(PolicyId::FIRST).unwrap();
    assert_eq!((counts.allowed, counts.denied), (4, 1));
}

#[tokio::test]
async fn all_limits_of_a_layer_are_charged_or_none() {
    let table = table(&["3/day", "5/day"]);
    let all = PolicyId::new(1);
    let layer = LimitLayer::new(Arc::clone(&table), by_key)
        .with_limit(all, "all", |_| Some("all"))
        .with_limit(all, "tenant", |request| {
            request.headers().get("x-tenant").map(|value| value.as_bytes().to_vec())
        });
    let app = app().layer(layer);
    let left = || {
        let of = |policy, key: &[u8]| table.peek(policy, key, 1).remaining;
        [of(PolicyId::FIRST, b"ann"), of(all, b"all"), of(all, b"acme")]
    };
    let asking = || request(Method::GET, "/").header("x-tenant", "acme");
    for n in 1..=3 {
        let response = ask(&app, asking()).await;
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(left(), [3 - n, 5 - n, 5 - n]);
        for name in ["default", "all", "tenant"] {
            assert!(field(&response, "ratelimit").contains(&format!("\"{name}\";r=")), "{name}");
        }
    }
    assert_eq!(status(&app, asking()).await, 429);
    assert_eq!(left(), [0, 2, 2]);
    // A request without one of the keys.
    let bob = || Request::builder().uri("/").header("x-api-key", "bob");
    assert_eq!(status(&app, bob()).await, 403);
    assert_eq!(left(), [0, 2, 2]);
    let bobs = || bob().header("x-tenant", "acme");
    assert_eq!([status(&app, bobs()).await, status(&app, bobs()).await], [200, 200]);
    let refused = ask(&app, bobs()).await;
    assert_eq!((refused.status().as_u16(), left()), (429, [0, 0, 0]));
    assert_eq!(table.peek(PolicyId::FIRST, b"bob", 1).remaining, 1);
    let body = axum::body::to_bytes(refused.into_body(), 10_000).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains("all") || body.contains("tenant"), "{body}");
}

/// A layer further in refuses: the layer with several limits gets its charges back.
#[tokio::test]
async fn an_inner_refusal_gives_back_all_limits_of_an_outer_layer() {
    let (outer, inner) = (table(&["9/day"]), table(&["1/day"]));
    let app = app().layer(LimitLayer::new(Arc::clone(&inner), by_key)).layer(
        LimitLayer::new(Arc::clone(&outer), by_key)
            .with_limit(PolicyId::FIRST, "all", |_| Some("all")),
    );
    for expected in [200, 429, 429] {
        assert_eq!(status(&app, request(Method::GET, "/")).await, expected);
        for key in [&b"ann"[..], b"all"] {
            assert_eq!(outer.peek(PolicyId::FIRST, key, 1).remaining, 8);
        }
    }
}

#[tokio::test]
async fn a_test_moves_the_clock_of_a_layer() {
    let table = table(&["1/min"]);
    let clock = Arc::new(Manual::new(1000 * SEC));
    let app =
        app().layer(LimitLayer::new(Arc::clone(&table), by_key).with_clock(Arc::clone(&clock)));
    assert_eq!(status(&app, request(Method::GET, "/")).await, 200);
    let refused = ask(&app, request(Method::GET, "/")).await;
    assert_eq!((refused.status().as_u16(), field(&refused, "retry-after")), (429, "60"));
    clock.advance(60 * SEC - 1);
    assert_eq!(status(&app, request(Method::GET, "/")).await, 429);
    clock.advance(1);
    assert_eq!(status(&app, request(Method::GET, "/")).await, 200);
}

#[tokio::test]
async fn clients_are_known_by_their_address_behind_trusted_proxies_only() {
    let proxies = [Network::parse(b"10.0.0.0/8").unwrap()];
    let app = app().layer(LimitLayer::by_client(table(&["1/day"]), proxies));
    let asking = |peer: &str, forwarded: &str| {
        let mut request = request(Method::GET, "/").header("x-forwarded-for", forwarded);
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().unwrap().insert(ConnectInfo(peer));
        request
    };
    for (peer, forwarded, expected) in [
        ("10.0.0.1:80", "192.0.2.1", 200),
        ("10.0.0.2:81", "192.0.2.1", 429),
        ("10.0.0.1:80", "192.0.2.2", 200),
        // The header of a stranger says nothing.
        ("198.51.100.1:80", "192.0.2.3", 200),
        ("198.51.100.1:81", "192.0.2.4", 429),
        ("[2001:db8::1]:80", "", 200),
        ("[2001:db8::2]:80", "", 429),
    ] {
        assert_eq!(status(&app, asking(peer, forwarded)).await, expected, "{peer} {forwarded}");
    }
    // A server that does not store the peer.
    assert_eq!(status(&app, request(Method::GET, "/")).await, 403);
}

#[tokio::test]
async fn calls_of_grpc_get_a_status_of_grpc() {
    let policies = table(&["1/day"]);
    let problem = app().layer(LimitLayer::new(Arc::clone(&policies), by_key));
    let grpc = app().layer(LimitLayer::new(table(&["1/day"]), by_key).with_refusal(Grpc));
    let call = || request(Method::POST, "/").header("content-type", "application/grpc+proto");
    for app in [&problem, &grpc] {
        assert_eq!(status(app, call()).await, 200);
        let refused = ask(app, call()).await;
        assert_eq!(refused.status().as_u16(), 200);
        assert_eq!(field(&refused, "content-type"), "application/grpc");
        assert_eq!(
            (field(&refused, "grpc-status"), field(&refused, "retry-after")),
            ("8", "86400")
        );
        let nobody = Request::builder().uri("/").header("content-type", "application/grpc");
        assert_eq!(field(&ask(app, nobody).await, "grpc-status"), "7");
    }
    // Other requests get a problem.
    assert_eq!(status(&problem, request(Method::GET, "/")).await, 429);
    let none = LimitLayer::new(policies, by_key).with_policy(PolicyId::new(7), "none");
    let none = app().layer(none.with_refusal(Grpc));
    assert_eq!(field(&ask(&none, call()).await, "grpc-status"), "13");
}
