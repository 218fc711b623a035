//! The layer that paces a client: on tokio's virtual clock, and against a server on this machine.

use http::{Request, Response, StatusCode};
use std::future::{poll_fn, Future};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout, Instant};
use tollbar::{Shared, State};
use tollbar_tower::pacing::{Options, Paced, Pacing, PacingLayer, PER_SECOND};
use tower_layer::Layer;
use tower_service::Service;

const URL: &str = "http://user:word@Api.Example:8080/a?b";
const HOST: &str = "http://api.example:8080";
/// tokio's timer wakes at the next full millisecond.
const TICK: Duration = Duration::from_millis(1);

type Answer = Pin<Box<dyn Future<Output = Result<Response<()>, String>> + Send>>;

/// A service made of a function.
#[derive(Clone)]
struct Function(Arc<dyn Fn(Request<()>) -> Answer + Send + Sync>);

impl Service<Request<()>> for Function {
    type Response = Response<()>;
    type Error = String;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Answer {
        (self.0)(request)
    }
}

fn pacing(most: u64) -> Pacing {
    Pacing::new(&Options { most: most * PER_SECOND, ..Options::new() }, 4)
        .expect("options that fit together")
}

fn paced(
    pacing: &Pacing,
    answer: impl Fn(Request<()>) -> Answer + Send + Sync + 'static,
) -> Paced<Function> {
    PacingLayer::new(pacing.clone()).layer(Function(Arc::new(answer)))
}

fn request(url: &str) -> Request<()> {
    Request::get(url).body(()).expect("a request")
}

fn answer(status: u16, retry_after: Option<&str>) -> Answer {
    let mut response = Response::builder().status(status);
    if let Some(seconds) = retry_after {
        response = response.header("Retry-After", seconds);
    }
    let response = response.body(()).map_err(|error| error.to_string());
    Box::pin(async { response })
}

async fn send<S: Service<Request<()>, Response = Response<()>, Error = String>>(
    service: &mut S,
    url: &str,
) -> StatusCode {
    poll_fn(|cx| service.poll_ready(cx)).await.expect("a service that is ready");
    service.call(request(url)).await.expect("an answer").status()
}

/// Five clones wait for the pause that one answer asks for, and another server does not.
#[tokio::test(start_paused = true)]
async fn a_retry_after_stops_all_clones() {
    let pacing = pacing(1000);
    let first = Mutex::new(true);
    let refusing = Arc::new(move || std::mem::take(&mut *first.lock().unwrap()));
    let mut service = paced(&pacing, move |_| match refusing() {
        true => answer(429, Some("7")),
        false => answer(200, None),
    });
    let begin = Instant::now();
    assert_eq!(send(&mut service, URL).await, 429);
    assert_eq!(send(&mut service, "http://other.example/").await, 200);
    assert!(begin.elapsed() < TICK);
    let clones = [(); 5].map(|()| {
        let mut service = service.clone();
        tokio::spawn(async move {
            assert_eq!(send(&mut service, URL).await, 200);
            begin.elapsed()
        })
    });
    let mut times = Vec::new();
    for clone in clones {
        times.push(clone.await.expect("no panic"));
    }
    assert_eq!(pacing.state(HOST).map(|state| state.waiting), Some(0));
    let (least, pause) = (times.iter().min(), Duration::from_secs(7));
    assert!(least.is_some_and(|least| *least >= pause && *least <= pause + TICK), "{times:?}");
}

/// A dropped future gives its turn to the request behind it. A future that is never polled does so,
/// too.
#[tokio::test(start_paused = true)]
async fn a_dropped_future_gives_its_turn_back() {
    let pacing = pacing(10);
    let mut service = paced(&pacing, |_| answer(200, None));
    let begin = Instant::now();
    assert_eq!(send(&mut service, URL).await, 200);
    let second = service.call(request(URL));
    assert!(timeout(Duration::from_millis(50), second).await.is_err());
    drop(service.call(request(URL)));
    assert_eq!(send(&mut service, URL).await, 200);
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(100) && took <= Duration::from_millis(100) + TICK,
        "{took:?}"
    );
}

/// A request that fails says nothing about limits, and one that is dropped after it was sent keeps
/// its turn.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_changes_no_rate() {
    let pacing = pacing(10);
    let failing: Answer = Box::pin(async { Err("reset by peer".to_owned()) });
    let failing = Arc::new(Mutex::new(Some(failing)));
    let mut service = paced(&pacing, move |_| match failing.lock().unwrap().take() {
        Some(failing) => failing,
        None => Box::pin(std::future::pending()),
    });
    let begin = Instant::now();
    assert!(service.call(request(URL)).await.is_err());
    assert!(timeout(Duration::from_secs(1), service.call(request(URL))).await.is_err());
    // The second request was sent at 100 ms, and the third would be sent at 1 s.
    assert_eq!(
        pacing.state(HOST).map(|state| (state.rate, state.waiting)),
        Some((10 * PER_SECOND, 0))
    );
    assert_eq!(begin.elapsed(), Duration::from_secs(1));
}

/// Ready on the second poll.
struct Slow(bool);

/// A clone is not ready, as of a service that reserves a place.
impl Clone for Slow {
    fn clone(&self) -> Slow {
        Slow(false)
    }
}

impl Service<Request<()>> for Slow {
    type Response = Response<()>;
    type Error = String;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<()>) -> Answer {
        assert!(self.0, "the service was called before it was ready");
        answer(200, None)
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_that_was_ready_is_called() {
    let mut service = PacingLayer::new(pacing(10)).layer(Slow(false));
    assert_eq!(send(&mut service, URL).await, 200);
    assert_eq!(send(&mut service, URL).await, 200);
}

/// Sixteen workers with a ceiling of 100/s against a server of 50/s: after 10 seconds they send and
/// it accepts 50/s, within 5 %.
#[tokio::test(start_paused = true)]
async fn the_rate_settles_at_the_servers() {
    let server =
        Arc::new(State::new(&"50/s burst 10".parse().expect("a policy")).expect("a state"));
    let begin = Instant::now();
    let counts = Arc::new(Mutex::new((0, 0)));
    let counted = counts.clone();
    let service = paced(&pacing(100), move |_| {
        let now = begin.elapsed();
        let accepted = server.check_at(now.as_nanos() as u64, 1).is_allowed();
        if now >= Duration::from_secs(10) {
            let mut counts = counted.lock().unwrap();
            *counts = (counts.0 + 1, counts.1 + i32::from(accepted));
        }
        Box::pin(async move {
            sleep(Duration::from_millis(20)).await;
            answer(if accepted { 200 } else { 429 }, None).await
        })
    });
    for _ in 0..16 {
        let mut service = service.clone();
        tokio::spawn(async move {
            loop {
                send(&mut service, URL).await;
            }
        });
    }
    sleep(Duration::from_secs(110)).await;
    let (sent, accepted) = *counts.lock().unwrap();
    assert!(
        (4750..=5250).contains(&sent) && (4750..=5250).contains(&accepted),
        "{sent} {accepted}"
    );
}

/// Answers each connection's request: the first with 429 and a Retry-After of a second.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            assert!(lines.take_while(|line| !line.is_empty()).count() > 0);
            let status =
                if number == 0 { "429 Too Many Requests\r\nRetry-After: 1" } else { "200 OK" };
            let _ = (&stream).write_all(
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            );
        }
    });
    address
}

async fn ask(request: Request<()>) -> Result<Response<()>, std::io::Error> {
    let address = request.uri().authority().expect("an authority").as_str();
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream
        .write_all(
            format!("GET {} HTTP/1.1\r\nHost: {address}\r\n\r\n", request.uri().path()).as_bytes(),
        )
        .await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let status = text.split(' ').nth(1).unwrap_or_default();
    let mut response = Response::builder().status(status);
    for (name, value) in text.lines().skip(1).filter_map(|line| line.split_once(": ")) {
        response = response.header(name, value);
    }
    response.body(()).map_err(std::io::Error::other)
}

/// On the real clock. The bound is a lower one: a busy machine may wake the client late.
#[tokio::test]
async fn a_server_on_this_machine_is_paced() {
    let url = format!("http://{}/a", server());
    let mut service = paced(&pacing(1000), |request| {
        Box::pin(async { ask(request).await.map_err(|error| error.to_string()) })
    });
    let begin = Instant::now();
    assert_eq!(send(&mut service, &url).await, 429);
    assert_eq!(send(&mut service, &url).await, 200);
    assert!(begin.elapsed() >= Duration::from_secs(1));
}
