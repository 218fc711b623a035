//! Charts of permits over time, as rows of text.

use crate::civil::of_unix;
use std::fmt::Write;
use tollbar::policy::Zone;

/// The widest bar, in columns.
pub const WIDTH: u64 = 48;

/// What local clocks show at an instant (Unix seconds), and their offset:
/// `2026-11-23 06:00 +01:00`.
pub fn local_time(zone: &Zone, instant: i64) -> String {
    let offset = i64::from(zone.offset_at(instant));
    let (date, second) = of_unix(u64::try_from(instant + offset).unwrap_or(0));
    let (hour, minute, sign) =
        (second / 3600, second / 60 % 60, if offset < 0 { '-' } else { '+' });
    let (ahead, offset) = (offset.abs() / 3600, offset.abs() / 60 % 60);
    format!(
        "{:04}-{:02}-{:02} {hour:02}:{minute:02} {sign}{ahead:02}:{offset:02}",
        date.year, date.month, date.day
    )
}

/// A row of a chart: when, how many, and a bar.
pub fn chart_row(out: &mut String, when: &str, number: &str, bar: usize) {
    let _ = writeln!(out, "  {when:>14} {number:>12} {}", "#".repeat(bar));
}
