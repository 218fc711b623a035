//! What rules have counted, as text for Prometheus.

use crate::rule::Role;
use crate::Rules;
use tollbar::metrics::{Exposition, Format};

/// Writes the metrics of rules and returns the length of the text in bytes. If that is more than
/// `out.len()`, the end is missing.
///
/// A source is a name, which is the label `limit` of its series, and rules. The names must be
/// different. No key is ever a label.
///
/// | metric | labels beside `limit` | counts |
/// |---|---|---|
/// | `tollbar_rule_decisions_total` | `rule`, `mode` (`enforced`, `shadow`), `verdict` (`allowed`, `refused`, `missing`, `exempt`) | requests, as [`RuleCounts`](crate::RuleCounts) |
/// | `tollbar_shadow_disagreements_total` | `rule`, `of`, `would` (`refuse`, `allow`) | requests that a shadow would have decided otherwise |
/// | `tollbar_rules_reasons_total` | `reason` (`banned`, `reserve`) | refusals by a ban, or for the reserve of other classes |
/// | `tollbar_rules_evictions_total` | | keys with a debt whose slot a new key took |
/// | `tollbar_rules_generation` | | the number of the set of rules in force |
/// | `tollbar_rules_last_reload_failed` | | 1 if the last reload failed, so that the former rules are in force, else 0 |
///
/// ```
/// use tollbar::metrics::Format;
/// use tollbar_rules::{metrics, Options, Rules};
///
/// let rules = Rules::from_text("version = 1\n[group.all]\nlimit = '9/s'", tollbar_rules::Format::Toml, &Options::default())?;
/// let mut out = [0; 4096];
/// let length = metrics(&[("site", &rules)], Format::Prometheus, &mut out);
/// assert!(std::str::from_utf8(&out[..length])?.contains("tollbar_rules_generation{limit=\"site\"} 1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn metrics(sources: &[(&str, &Rules)], format: Format, out: &mut [u8]) -> usize {
    let mut text = Exposition::new(out, format);
    let all: Vec<_> =
        sources.iter().map(|(name, rules)| (*name, *rules, rules.set(), rules.counts())).collect();
    text.counter("tollbar_rule_decisions", "Requests by rule and verdict.");
    for (limit, _, set, counts) in &all {
        for count in counts {
            let is_shadow = set
                .rules()
                .iter()
                .any(|rule| rule.name == count.rule && matches!(rule.role, Role::Shadow(_)));
            let mode = if is_shadow { "shadow" } else { "enforced" };
            let verdicts = [
                ("allowed", count.allowed),
                ("refused", count.refused),
                ("missing", count.missing),
                ("exempt", count.exempt),
            ];
            for (verdict, value) in verdicts {
                let labels = [
                    ("limit", *limit),
                    ("rule", &count.rule),
                    ("mode", mode),
                    ("verdict", verdict),
                ];
                text.sample("tollbar_rule_decisions_total", &labels, value);
            }
        }
    }
    text.counter(
        "tollbar_shadow_disagreements",
        "Requests that a shadow would have decided otherwise than its rule.",
    );
    for (limit, _, set, counts) in &all {
        for rule in set.rules() {
            let (Role::Shadow(of), Some(count)) =
                (rule.role, counts.iter().find(|count| count.rule == rule.name))
            else {
                continue;
            };
            let of = set.rules()[of].name.as_str();
            for (would, value) in [("refuse", count.would_refuse), ("allow", count.would_allow)] {
                let labels =
                    [("limit", *limit), ("rule", &rule.name), ("of", of), ("would", would)];
                text.sample("tollbar_shadow_disagreements_total", &labels, value);
            }
        }
    }
    text.counter(
        "tollbar_rules_reasons",
        "Refusals by a ban, or for the reserve of other classes.",
    );
    for (limit, rules, ..) in &all {
        for (reason, value) in [("banned", rules.banned()), ("reserve", rules.reserved())] {
            text.sample(
                "tollbar_rules_reasons_total",
                &[("limit", limit), ("reason", reason)],
                value,
            );
        }
    }
    text.counter("tollbar_rules_evictions", "Keys with a debt whose slot a new key took.");
    for (limit, rules, ..) in &all {
        text.sample("tollbar_rules_evictions_total", &[("limit", limit)], rules.evicted());
    }
    text.gauge("tollbar_rules_generation", "The number of the set of rules in force.");
    for (limit, _, set, _) in &all {
        text.sample("tollbar_rules_generation", &[("limit", limit)], set.generation());
    }
    text.gauge(
        "tollbar_rules_last_reload_failed",
        "1 if the last reload failed, so that the former rules are in force.",
    );
    for (limit, rules, ..) in &all {
        let failed = u64::from(rules.has_failed_to_reload());
        text.sample("tollbar_rules_last_reload_failed", &[("limit", limit)], failed);
    }
    text.end()
}
