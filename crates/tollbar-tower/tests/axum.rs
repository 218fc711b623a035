//! The layer in axum.

use axum::body::{to_bytes, Body};
use axum::extract::Request;
use axum::routing::get;
use axum::Router;
use http::{Response, StatusCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use tollbar::http::{Fields, Reset};
use tollbar::policy::Keep;
use tollbar::table::{Missing, Options, PolicyId, Table};
use tollbar_tower::{address, header, LimitLayer, Refusal};
use tower::ServiceExt;

fn table(policies: &[&str]) -> Table {
    let policies: Vec<_> = policies.iter().map(|text| text.parse().unwrap()).collect();
    Table::private(&Options::new(1000), &policies).unwrap()
}

/// An application that counts its requests.
fn counted() -> (Router, Arc<AtomicUsize>) {
    let served = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&served);
    let handler = move || async move {
        counter.fetch_add(1, Ordering::Relaxed);
        "welcome"
    };
    (Router::new().route("/", get(handler)), served)
}

async fn ask(app: &Router, key: Option<&str>) -> Response<Body> {
    let mut request = Request::builder().uri("/");
    if let Some(key) = key {
        request = request.header("x-api-key", key);
    }
    app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

fn field<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(to_bytes(response.into_body(), 10_000).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_key_reads_the_policy_that_it_has_of_its_own() {
    let table = table(&["3/day"]);
    table.set_override(PolicyId::FIRST, b"ann", &"5/day".parse().unwrap(), Keep::Count).unwrap();
    let app =
        counted().0.layer(LimitLayer::new(table, |request: &Request| header(request, "x-api-key")));
    for (key, policy) in [("ann", "\"default\";q=5;w=86400"), ("bob", "\"default\";q=3;w=86400")] {
        assert_eq!(field(&ask(&app, Some(key)).await, "ratelimit-policy"), Some(policy));
    }
}

#[tokio::test]
async fn three_of_five_requests_pass() {
    let (app, served) = counted();
    let app = app.layer(LimitLayer::new(table(&["3/day"]), |request: &Request| {
        header(request, "x-api-key")
    }));
    for left in ["2", "1", "0"] {
        let response = ask(&app, Some("ann")).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(field(&response, "ratelimit-policy"), Some("\"default\";q=3;w=86400"));
        assert!(field(&response, "ratelimit")
            .unwrap()
            .starts_with(&format!("\"default\";r={left};t=")));
        assert_eq!(field(&response, "retry-after"), None);
        assert_eq!(text(response).await, "welcome");
    }
    for _ in 0..2 {
        let response = ask(&app, Some("ann")).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        let wait: u64 = field(&response, "retry-after").unwrap().parse().unwrap();
        assert!((28_000..=28_800).contains(&wait), "{wait}");
        assert_eq!(field(&response, "content-type"), Some("application/problem+json"));
        let body = text(response).await;
        assert!(
            body.starts_with('{') && body.contains("\"status\":429") && body.contains("default"),
            "{body}"
        );
    }
    assert_eq!(ask(&app, Some("bob")).await.status(), StatusCode::OK);
    assert_eq!(served.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn the_table_decides_about_a_missing_key() {
    for (missing, status) in
        [(Missing::Deny, StatusCode::FORBIDDEN), (Missing::Allow, StatusCode::OK)]
    {
        let table =
            Table::private(&Options { missing, ..Options::new(1000) }, &["1/day".parse().unwrap()])
                .unwrap();
        let (app, _) = counted();
        let app =
            app.layer(LimitLayer::new(table, |request: &Request| header(request, "x-api-key")));
        for _ in 0..3 {
            let response = ask(&app, None).await;
            assert_eq!(response.status(), status);
            // A7: waiting does not help, and the answer says what is missing.
            assert_eq!(
                (field(&response, "retry-after"), field(&response, "ratelimit-policy")),
                (None, None)
            );
            assert_eq!(
                text(response).await.contains("no key that it could be counted by"),
                missing == Missing::Deny
            );
        }
    }
    // Of a field that comes twice, a client could vary one.
    let request = Request::builder()
        .header("x-api-key", "a")
        .header("x-api-key", "b")
        .body(Body::empty())
        .unwrap();
    assert_eq!(header(&request, "x-api-key"), None);
}

/// C1: in each order of the layers the fields describe all limits (draft 11) or the one that binds,
/// each once, and a layer that refuses gives back what those around it were charged.
#[tokio::test]
async fn c1_stacked_layers_are_one_answer() {
    use tollbar::http::Draft;
    let full = [("wide", 100, "100/day"), ("tight", 2, "2/day"), ("large", 1000, "1000/day")];
    let draft = |draft| Fields { retry_after: true, legacy: None, draft: Some(draft) };
    let legacy = Fields { retry_after: true, legacy: Some(Reset::Seconds), draft: None };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for fields in [draft(Draft::Eleven), draft(Draft::Seven), draft(Draft::Six), legacy] {
            let tables: Vec<Arc<Table>> =
                full.iter().map(|(_, _, policy)| Arc::new(table(&[policy]))).collect();
            let mut app = counted().0;
            // The last is the outermost.
            for n in order {
                let key = |request: &Request| header(request, "x-api-key");
                let layer = LimitLayer::new(Arc::clone(&tables[n]), key);
                app = app.layer(layer.with_policy(PolicyId::FIRST, full[n].0).with_fields(fields));
            }
            for call in 0..4u64 {
                let response = ask(&app, Some("ann")).await;
                let at = format!("{order:?} {fields:?} {call}: {:?}", response.headers());
                let admitted = (call + 1).min(2);
                assert_eq!(response.status() == StatusCode::OK, call < 2, "{at}");
                assert_eq!(field(&response, "retry-after").is_some(), call >= 2, "{at}");
                for name in response.headers().keys() {
                    assert_eq!(response.headers().get_all(name).iter().count(), 1, "{at}");
                }
                // A refusal describes the layers that were asked: those around the tight one, and
                // itself.
                let tight = order.iter().position(|&n| n == 1).expect("a place");
                for (place, &n) in order.iter().enumerate() {
                    let (name, burst, _) = full[n];
                    let left = tables[n].peek(PolicyId::FIRST, b"ann", 1).remaining;
                    assert_eq!(left, burst - admitted, "{name}: {at}");
                    if fields.draft == Some(Draft::Eleven) && (call < 2 || place >= tight) {
                        let part = format!("\"{name}\";r={left}");
                        assert!(
                            field(&response, "ratelimit").is_some_and(|text| text.contains(&part)),
                            "{part}: {at}"
                        );
                    }
                }
                let left = (2 - admitted).to_string();
                match (fields.draft, fields.legacy) {
                    (_, Some(_)) => {
                        assert_eq!(field(&response, "x-ratelimit-limit"), Some("2"), "{at}");
                        assert_eq!(field(&response, "x-ratelimit-remaining"), Some(&*left), "{at}");
                    }
                    (Some(Draft::Seven), _) => {
                        let begin = format!("limit=2, remaining={left}, reset=");
                        assert!(
                            field(&response, "ratelimit")
                                .is_some_and(|text| text.starts_with(&begin)),
                            "{at}"
                        );
                    }
                    (Some(Draft::Six), _) => {
                        assert_eq!(field(&response, "ratelimit-remaining"), Some(&*left), "{at}")
                    }
                    _ => {}
                }
            }
        }
    }
}

#[tokio::test]
async fn fields_that_the_service_has_set_stay() {
    let handler = || async { ([("ratelimit", "own")], "welcome") };
    let app = Router::new().route("/", get(handler));
    let app = app.layer(LimitLayer::new(table(&["3/day"]), |request: &Request| {
        header(request, "x-api-key")
    }));
    let response = ask(&app, Some("ann")).await;
    assert_eq!(
        (field(&response, "ratelimit"), field(&response, "ratelimit-policy")),
        (Some("own"), None)
    );
}

#[tokio::test]
async fn another_policy_other_fields_and_another_answer() {
    let table = Arc::new(table(&["1/day", "2/h"]));
    let layer =
        LimitLayer::new(Arc::clone(&table), |request: &Request| header(request, "x-api-key"))
            .with_policy(PolicyId::new(1), "hourly")
            .with_fields(Fields { retry_after: false, legacy: Some(Reset::Seconds), draft: None })
            .with_refusal(|refusal: Refusal| {
                let mut response = Response::new(Body::from(format!(
                    "wait {} s",
                    refusal.decision.retry_after.div_ceil(1_000_000_000)
                )));
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
            });
    let (app, _) = counted();
    let app = app.layer(layer);
    for left in ["1", "0"] {
        let response = ask(&app, Some("ann")).await;
        assert_eq!(
            (response.status(), field(&response, "x-ratelimit-limit")),
            (StatusCode::OK, Some("2"))
        );
        assert_eq!(
            (field(&response, "x-ratelimit-remaining"), field(&response, "ratelimit")),
            (Some(left), None)
        );
    }
    let response = ask(&app, Some("ann")).await;
    assert_eq!(
        (response.status(), field(&response, "retry-after")),
        (StatusCode::SERVICE_UNAVAILABLE, None)
    );
    assert!(text(response).await.starts_with("wait 1"));
    // The layer used the second policy, so the first one still has its permit.
    assert!(table.check(PolicyId::FIRST, b"ann", 1).is_allowed());
}

#[tokio::test]
async fn a_policy_that_the_table_does_not_have_is_a_server_error() {
    let (app, served) = counted();
    let app = app.layer(
        LimitLayer::new(table(&["1/day"]), |request: &Request| header(request, "x-api-key"))
            .with_policy(PolicyId::new(7), "none"),
    );
    assert_eq!(ask(&app, Some("ann")).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(served.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_request_that_is_dropped_has_been_charged_once() {
    let table = Arc::new(table(&["2/day"]));
    let (app, served) = counted();
    let app = app.layer(LimitLayer::new(Arc::clone(&table), |request: &Request| {
        header(request, "x-api-key")
    }));
    drop(app.clone().oneshot(
        Request::builder().uri("/").header("x-api-key", "ann").body(Body::empty()).unwrap(),
    ));
    // `oneshot` calls the service when it is polled, so nothing was charged.
    assert_eq!(table.peek(PolicyId::FIRST, b"ann", 1).remaining, 2);
    ask(&app, Some("ann")).await;
    assert_eq!(table.peek(PolicyId::FIRST, b"ann", 1).remaining, 1);
    assert_eq!(served.load(Ordering::Relaxed), 1);
}

#[test]
fn the_addresses_of_one_ipv6_network_are_one_key() {
    let key = |text: &str| address(text.parse().unwrap()).unwrap();
    assert_eq!(key("2001:db8::1"), key("2001:db8::2"));
    assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
    assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
}
