//! A gRPC server that limits its calls by address. Its service is the usual one for health checks;
//! yours are added beside it.
//!
//! ```sh
//! cargo run --release -- 127.0.0.1:50051
//! for i in 1 2 3 4; do grpcurl -v -plaintext 127.0.0.1:50051 grpc.health.v1.Health/Check; done
//! ```

use tokio::net::TcpListener;
use tollbar::table::{Options, Table};
use tollbar_tower::{address, LimitLayer, Refusal};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tonic::transport::Server;
use tonic::Status;

/// The key of a call. Behind a proxy the peer is the proxy: take the address that your proxy
/// reports.
fn peer<B>(request: &Request<B>) -> Option<Vec<u8>> {
    address(request.extensions().get::<TcpConnectInfo>()?.remote_addr()?.ip())
}

/// The answer to a refused call: a status of gRPC, to which the layer adds `retry-after` and the
/// other fields as metadata. The layer's own answer has the HTTP status 429, which gRPC clients
/// read as `Unavailable`, and some repeat such calls at once.
fn refused(refusal: Refusal) -> Response<Body> {
    match refusal.status().as_u16() {
        429 => Status::resource_exhausted("too many calls").into_http(),
        _ => Status::internal("the limit could not be read").into_http(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener =
        TcpListener::bind(std::env::args().nth(1).unwrap_or("127.0.0.1:50051".into())).await?;
    let table = Table::private(&Options::new(100_000), &["3/min".parse()?])?;
    let (_, health) = tonic_health::server::health_reporter();

    println!("listening on {}", listener.local_addr()?);
    Server::builder()
        .layer(LimitLayer::new(table, peer).with_refusal(refused))
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener))
        .await?;
    Ok(())
}
