//! Tests of the importers, which write a rules file from another program's configuration.

#[path = "../common/mod.rs"]
mod common;
mod import;
mod import_envoy;
mod import_gateways;
mod import_hostile;
mod import_no_limit_vanishes;
mod import_requests;
