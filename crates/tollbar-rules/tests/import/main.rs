//! Rules from the configuration of other programs.

#[path = "../common/mod.rs"]
mod common;
mod import;
mod import_envoy;
mod import_gateways;
mod import_hostile;
