//! Decides on requests of ffi-tests/rules/requests.py by a rules file, and prints "VERDICT STATUS
//! RULE REMAINING" for each, and "= KNOWN" where it settles one. A second argument is the file for
//! the metrics in the end.
//! `cargo run --package tollbar-rules --example decide -- examples/rules/site.toml <requests`.

use std::io::{BufRead, Write};
use tollbar::metrics::Format;
use tollbar_rules::{metrics, Field, Options, Rules};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: decide RULES <REQUESTS")?;
    let rules = Rules::open(&path, &Options::default())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut last = None;
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line?;
        let words: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
        let (time, words) = words.split_first().ok_or("an empty line")?;
        let request: Vec<Field<'_>> =
            words.chunks_exact(2).map(|pair| Field::new(pair[0], pair[1])).collect();
        if let Some(time) = time.strip_prefix(b"=") {
            let now = std::str::from_utf8(time)?.parse()?;
            let known = match &last {
                Some(taken) => rules.settle_at(taken, &request, now)?,
                None => false,
            };
            writeln!(out, "= {}", u32::from(known))?;
            continue;
        }
        let now = std::str::from_utf8(time)?.parse()?;
        let answer = rules.check_at(&request, now)?;
        let decision = answer.decision();
        last = decision.is_allowed().then(|| answer.taken());
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
