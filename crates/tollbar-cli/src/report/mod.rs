//! The figures that `--json` and `--html` have and the summary has not.
//!
//! | file | |
//! |---|---|
//! | `series` | requests over time, in bins whose width doubles as the log goes on |
//! | `limits` | how many requests and clients each limit of a grid would have refused |
//! | `paths` | what refused clients asked for |
//! | `data` | all of it as one value, which is the JSON |
//! | `html` | the page, with that JSON in it |

pub mod data;
pub mod html;
pub mod limits;
pub mod paths;
pub mod series;

mod collector;
pub use collector::Collector;
