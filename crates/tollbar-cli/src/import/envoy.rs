//! Envoy's rate limits as a rules file: the descriptors of its rate limit service, and the local
//! rate limits of its own configuration.

use super::envoy_descriptors::EnvoyImport;
use super::{envoy_local, Imported};
use tollbar_rules::internal::parse;
use tollbar_rules::{Format, Problem};

/// Translates a configuration of Envoy's rate limit service (`domain`, `descriptors`), or Envoy's
/// own configuration with local rate limits, both in YAML, into a rules file.
///
/// # Errors
/// The faults of the YAML, with their places.
pub fn envoy(text: &str) -> Result<Imported, Vec<Problem>> {
    let root = parse(text, Format::Yaml)?;
    let mut import = EnvoyImport::default();
    import.find_headers(&root);
    import.service(&root);
    envoy_local::limits(&mut import, &root);
    Ok(import.plan.finish())
}
