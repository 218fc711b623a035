//! Rate limits as [tower](https://docs.rs/tower) layers, for axum, tonic, hyper and other services
//! of `http` requests.
//!
//! ```no_run
//! use axum::{extract::Request, routing::get, Router};
//! use tollbar::table::{Options, Table};
//! use tollbar_tower::{header, LimitLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let table = Table::private(&Options::new(100_000), &["100/min burst 20".parse()?])?;
//! let app: Router = Router::new()
//!     .route("/", get(|| async { "welcome" }))
//!     .layer(LimitLayer::new(table, |request: &Request| header(request, "x-api-key")));
//! axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8080").await?, app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A table in a file ([`Table::file`](tollbar::table::Table::file)) is shared by all processes of
//! the machine.
//!
//! The module `pacing` (feature `pacing`, on by default, for tokio) has the layer for HTTP clients
//! that call limited servers.

mod after;
mod decide;
mod key;
mod layers;
mod limit;
mod options;
#[cfg(feature = "pacing")]
pub mod pacing;
mod refusal;

#[cfg(feature = "axum")]
pub use key::peer;
pub use key::{address, client, header};
pub use limit::{Limit, LimitLayer, ResponseFuture};
pub use refusal::{Grpc, Problem, Refusal, Refuse};

/// The programs of the page compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-governor.md")]
struct FromGovernor;

// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
