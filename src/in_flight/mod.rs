//! How many requests, connections or permits are open at one time.
//!
//! A rate limits how many requests begin in a time. It does not limit how many run: if each takes
//! ten times as long, ten times as many run. The types of this module limit how many run.
//!
//! * [`InFlight`]: permits by key in memory that processes share. A caller releases a permit by its
//!   ticket. If a process is killed, its permits become free.
//! * [`SendWindow`]: one word of one process, as the send window of TCP: sent, acknowledged,
//!   usable.
//! * [`Adaptive`]: a limit that follows the measured latency. It counts its own permits, or an
//!   [`InFlight`] table counts them.
//! * [`Aimd`] and [`Gradient2`]: the algorithms of [`Adaptive`], as values of one thread.
//!
//! ```
//! use tollbar::in_flight::{InFlight, Options, Refusal};
//!
//! let uploads = InFlight::private(&Options::new(10_000))?;
//! {
//!     // At most two of this user at one time. Each ends with its permit.
//!     let _first = uploads.enter(b"user 7", 2).expect("below the limit");
//!     let _second = uploads.enter(b"user 7", 2).expect("below the limit");
//!     assert_eq!(uploads.enter(b"user 7", 2).err(), Some(Refusal::Limit));
//! }
//! assert_eq!(uploads.count(b"user 7"), 0);
//! # Ok::<(), tollbar::table::TableError>(())
//! ```

mod adaptive;
mod adaptive_limit;
#[cfg(not(loom))]
mod keyed;
#[cfg(not(loom))]
mod layout;
#[cfg(all(loom, test))]
pub(crate) mod models;
#[cfg_attr(loom, allow(dead_code))]
mod protocol;
mod refusal;
mod send_window;
#[cfg_attr(loom, allow(dead_code))]
mod word;

pub use adaptive::{Aimd, Gradient2};
pub use adaptive_limit::{
    Adaptive, AdaptiveOptions, AdaptiveState, AdaptiveTicket, Algorithm, Outcome,
};
#[cfg(not(loom))]
pub use keyed::{InFlight, Options, Permit};
pub use refusal::Refusal;
pub use send_window::{SendWindow, Window, SEND_LIMIT_MOST};
pub use word::{Ticket, OWNERS_MOST};
