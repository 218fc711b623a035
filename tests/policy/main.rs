//! Tests of policies' texts and of the names and reasons that callers see. Some tests read the
//! sources: their layers and circles, their names and words, and docs/internals/one-request.md.

mod circles;
#[path = "../common/mod.rs"]
mod common;
mod http_fields;
mod kinds;
mod layers;
mod modules;
mod more_after;
mod one_request;
mod policy;
mod policy_vectors;
mod prose;
mod reasons;
mod tidy;
mod words;
