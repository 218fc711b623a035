//! What is imported decides as its source does, and what rules cannot express is remarked upon.

#[path = "../../../../tollbar-rules/tests/common/mod.rs"]
mod common;
mod envoy;
mod gateways;
mod hostile;
mod nginx;
mod no_limit_vanishes;
mod requests;

use super::Imported;

/// Panics unless an import has a remark at `LINE:COLUMN` that contains the text.
fn has(imported: &Imported, place: &str, text: &str) {
    let all: Vec<String> =
        imported.remarks.iter().map(|r| format!("{}: {}", r.place, r.text)).collect();
    let begin = format!("{place}: ");
    assert!(
        all.iter().any(|one| one.starts_with(&begin) && one.contains(text)),
        "{place} {text}: {all:#?}"
    );
}
