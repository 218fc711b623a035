//! Rules from the configurations of other programs.
//!
//! Each importer reads a configuration, adds groups and locations to a plan, and adds a remark for
//! each part that a rules file cannot express. The plan writes the rules file.

mod envoy;
mod envoy_descriptors;
mod envoy_local;
mod kong;
mod limitador;
mod nginx;
mod plan;
#[cfg(test)]
mod tests;
mod tokens;
mod traefik;
mod tree;

pub use envoy::envoy;
pub use kong::kong;
pub use limitador::limitador;
pub use nginx::nginx;
pub use traefik::traefik;

use tollbar_rules::Place;

/// A configuration as rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The rules file, in TOML. Without limits it is none that can be loaded.
    pub toml: String,
    /// The number of limits in the rules file. 0: the configuration has none that rules can have.
    pub limits: usize,
    /// What a rules file cannot express, in the order of the configuration.
    pub remarks: Vec<Remark>,
}

/// A part of a configuration that a rules file cannot express.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remark {
    /// The part's place in the configuration.
    pub place: Place,
    /// What the configuration says there, and what the rules do instead. One line of printable
    /// characters.
    pub text: String,
}
