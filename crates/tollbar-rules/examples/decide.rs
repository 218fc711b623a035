//! Decides on requests of ffi-tests/rules/requests.py by a rules file, and prints "VERDICT STATUS
//! RULE REMAINING" for each. A second argument is the file for the metrics in the end.
//! `cargo run --package tollbar-rules --example decide -- examples/rules/site.toml <requests`.

use std::io::{BufRead, Write};
use tollbar::metrics::Format;
use tollbar_rules::{metrics, Field, Options, Rules};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: decide RULES <REQUESTS")?;
    let rules = Rules::open(&path, &Options::default())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line?;
        let mut values = line.split(|&byte| byte == b'\t');
        let now = std::str::from_utf8(values.next().unwrap_or_default())?.parse()?;
        let names = [":method", ":path", ":address", "X-Api-Key", ":account"];
        let fields = names.iter().zip(values).filter(|(_, value)| *value != b"-");
        let request: Vec<Field<'_>> =
            fields.map(|(name, value)| Field::new(name.as_bytes(), value)).collect();
        let answer = rules.check_at(&request, now)?;
        let decision = answer.decision();
        writeln!(
            out,
            "{} {} {} {}",
            decision.verdict as u32,
            answer.status(),
            answer.rule().unwrap_or("-"),
            decision.remaining
        )?;
    }
    if let Some(path) = std::env::args().nth(2) {
        let mut text = vec![0; 1 << 16];
        let length = metrics(&[("site", &rules)], Format::Prometheus, &mut text);
        std::fs::write(path, &text[..length])?;
    }
    Ok(())
}
