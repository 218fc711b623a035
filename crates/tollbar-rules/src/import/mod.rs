//! Rules from the configurations of other programs.

mod nginx;
mod tokens;

pub use nginx::{nginx, Imported};
