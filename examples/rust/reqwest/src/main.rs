//! A client that sends no faster than its server allows. The server says so by 429, `Retry-After`
//! and `RateLimit`.
//!
//! ```sh
//! cargo run --release -- https://api.example/items 20
//! ```

use http::{Request, Response};
use reqwest::{Body, Client};
use std::time::Instant;
use tollbar_tower::pacing::{Options, Pacing, PacingLayer};
use tower::{service_fn, Layer, Service, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("expected: URL [NUMBER]")?;
    let number: u32 = arguments.next().map_or(Ok(20), |number| number.parse())?;

    // The rates of up to 256 servers. All clients made with a clone of `pacing` share them.
    let pacing = Pacing::new(&Options::new(), 256).ok_or("options that do not fit together")?;
    let client = Client::new();
    let send = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            Ok::<_, reqwest::Error>(Response::from(client.execute(request.try_into()?).await?))
        }
    });
    let mut paced = PacingLayer::new(pacing).layer(send);

    let begin = Instant::now();
    for _ in 0..number {
        // The layer repeats nothing: a program that wants the answer sends a refused request again,
        // and the layer makes it wait for its turn.
        let answer: Response<Body> =
            paced.ready().await?.call(Request::get(&url).body(Body::default())?).await?;
        println!("{:6.3} s  {}", begin.elapsed().as_secs_f64(), answer.status());
    }
    Ok(())
}
