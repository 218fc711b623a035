//! Texts of policies, the names and reasons that callers see, and the order of the sources.

#[path = "../common/mod.rs"]
mod common;
mod http_fields;
mod kinds;
mod layers;
mod one_request;
mod policy;
mod policy_vectors;
mod reasons;
mod words;
