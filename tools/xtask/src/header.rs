//! `include/tollbar.h`, `include/tollbar_redis.h` and `include/tollbar_rules.h`: hand-written
//! frames around one cbindgen run for each section's source file.

use std::fmt::Write as _;
use std::path::Path;

/// A header: the crate whose files are its sections, each with its title, and what stands before
/// and after them.
struct Header {
    path: &'static str,
    sources: &'static str,
    top: &'static str,
    bottom: &'static str,
    sections: &'static [(&'static str, &'static str)],
}

const HEADERS: [Header; 3] = [
    Header {
        path: "include/tollbar.h",
        sources: "crates/tollbar-c/src",
        top: include_str!("header/top.h"),
        bottom: include_str!("header/bottom.h"),
        sections: &[
            ("policy", "Policies"),
            ("clock", "Clocks"),
            ("decision", "Decisions in full"),
            ("limiter", "Limiters: any algorithm, with a clock"),
            ("decide", "Decisions of limiters"),
            ("table", "Tables: millions of keys in memory that processes share"),
            ("check", "Decisions of tables"),
            ("keyed", "Batches, and other calls for keys of tables"),
            ("in_flight", "In flight: how many are open at one time"),
            ("take_many", "Several limits in one request"),
            ("reserve", "Reservations: permits booked ahead"),
            ("receipts", "Receipts: an estimate now, the real cost later"),
            ("charge", "Charges afterwards, and bans"),
            ("classes", "Classes: requests that leave permits for others"),
            ("hierarchy", "Hierarchies: guaranteed rates, ceilings, and what is idle"),
            ("meter", "Meters: green, yellow and red packets"),
            ("queue", "Queues: items that leave at a policy's pace"),
            ("schedule", "Schedules: another policy by time of day and day of the week"),
            ("adaptive", "Experimental: limits in flight that follow the latency"),
            ("pacing", "Experimental: pacing of a client's requests to servers"),
            ("overrides", "Overrides: keys with a policy of their own"),
            ("prefix", "Keys made of network addresses"),
            ("route", "Routes: which of several nodes a key belongs to"),
            ("http", "HTTP: header fields for clients, and what a client reads of them"),
            ("metrics", "Metrics: counts and sizes for Prometheus"),
            ("refusals", "Refusals: the keys that a table refuses most"),
            ("cell", "Advanced: cells, a state word in each of your structs"),
            ("counts", "Advanced: counts of decisions"),
            ("survey", "Advanced: entries, policies, counters and health of tables"),
            ("transfer", "Advanced: copies of tables"),
            ("version", "Version"),
            ("status", "Results and errors"),
        ],
    },
    Header {
        path: "include/tollbar_redis.h",
        sources: "crates/tollbar-redis-c/src",
        top: include_str!("header/redis_top.h"),
        bottom: include_str!("header/redis_bottom.h"),
        sections: &[
            ("version", "Version"),
            ("lease", "Leases: one limit over many machines"),
            ("waiting", "Requests that wait for the store"),
            ("client", "Clients: they ask the store for leases"),
            ("calls", "Calls: the program's own Redis client asks the store"),
            ("store", "Decisions that the store makes"),
        ],
    },
    Header {
        path: "include/tollbar_rules.h",
        sources: "crates/tollbar-rules-c/src",
        top: include_str!("header/rules_top.h"),
        bottom: include_str!("header/rules_bottom.h"),
        sections: &[("rules", "Rules: limits from a file"), ("settle", "Costs that answers tell")],
    },
];

/// Sections whose names a program sees only if it defines TOLLBAR_EXPERIMENTAL.
const EXPERIMENTAL: [&str; 2] = ["adaptive", "pacing"];

pub fn run(root: &Path, check: bool) -> Result<String, String> {
    let mut said = Vec::new();
    for header in &HEADERS {
        let mut text = fill(header.top, root)?;
        for (number, (file, title)) in (1..).zip(header.sections) {
            text.push_str(&banner(number, title));
            let experimental = EXPERIMENTAL.contains(file);
            if experimental {
                text.push_str("#ifdef TOLLBAR_EXPERIMENTAL\n\n");
            }
            text.push_str(&extras(file));
            text.push_str(&section(root, header.sources, file)?);
            text.push('\n');
            text.push_str(&inits(file));
            if experimental {
                text.push_str("#endif /* TOLLBAR_EXPERIMENTAL */\n\n");
            }
        }
        text.push_str(header.bottom);
        crate::settle(&root.join(header.path), &text, check)?;
        said.push(format!("{}: {} lines", header.path, text.lines().count()));
    }
    Ok(said.join("\n"))
}

/// The macros of the version, from the library's own manifest.
fn fill(top: &str, root: &Path) -> Result<String, String> {
    let manifest =
        std::fs::read_to_string(root.join("Cargo.toml")).map_err(|e| format!("Cargo.toml: {e}"))?;
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .ok_or("Cargo.toml: no version")?;
    let parts: Vec<&str> = version.split('.').collect();
    let [major, minor, patch] = parts.as_slice() else { return Err(format!("version {version}")) };
    let top = costs(top, root)?;
    Ok(top.replace("@MAJOR@", major).replace("@MINOR@", minor).replace("@PATCH@", patch))
}

/// The table of costs, from the counts of the C calls in benches/instructions.txt.
fn costs(top: &str, root: &Path) -> Result<String, String> {
    let path = "benches/instructions.txt";
    let text = std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
    let rustc = text
        .lines()
        .find(|line| line.starts_with("rustc "))
        .ok_or(format!("{path}: no line \"rustc VERSION\""))?;
    let mut table = String::new();
    for (count, call) in text.lines().filter_map(|line| line.trim().split_once("  C ")) {
        let count: f64 = count.parse().map_err(|e| format!("{path}: {count}: {e}"))?;
        let _ = writeln!(table, " *     {call:<48}{count:>5.0}");
    }
    Ok(top.replace("@COSTS@", &table).replace("@RUSTC@", rustc))
}

fn section(root: &Path, sources: &str, file: &str) -> Result<String, String> {
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut out = Vec::new();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in files(file) {
        builder = builder.with_src(root.join(format!("{sources}/{file}.rs")));
    }
    builder.generate().map_err(|e| format!("{sources}/{file}.rs: {e}"))?.write(&mut out);
    let text = String::from_utf8(out).map_err(|e| e.to_string())?;
    Ok(polish(&text))
}

/// The files of a section, in the order of their structs in the header.
fn files(section: &str) -> Vec<&str> {
    match section {
        "policy" => vec!["policy/spec", "policy", "policy/fit"],
        "table" => vec!["table", "table_options"],
        "client" => vec!["tls", "client"],
        file => vec![file],
    }
}

/// Does what cbindgen cannot. Rust's safety sections go, because they say nothing to a C reader.
/// Comments become blocks, because C90 compilers in pedantic mode read the header too. Constants
/// get their C types.
fn polish(text: &str) -> String {
    let mut out = String::new();
    let mut said: Vec<&str> = Vec::new();
    let mut blank = false;
    for line in text.trim().lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if let Some(words) = line.trim_start().strip_prefix("//") {
            said.push(words.trim());
            continue;
        }
        let end = said.iter().position(|words| words.starts_with("# Safety")).unwrap_or(said.len());
        out.push_str(&block(&said[..end], indent));
        said.clear();
        if !(line.is_empty() && blank) {
            let _ = writeln!(out, "{}", constant(line));
        }
        blank = line.is_empty();
    }
    out
}

/// Lines of a comment as one block.
fn block(lines: &[&str], indent: &str) -> String {
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    let mut text = String::new();
    for (i, line) in lines[..last].iter().enumerate() {
        let open = if i == 0 { "/*" } else { " *" };
        let close = if i + 1 == last { " */" } else { "" };
        let space = if line.is_empty() { "" } else { " " };
        let _ = writeln!(text, "{indent}{open}{space}{line}{close}");
    }
    text
}

/// Gives a `#define` of a u64 UINT64_C, of a u32 its suffix, and of an i32 below 0 its parentheses.
fn constant(line: &str) -> String {
    let Some(rest) = line.strip_prefix("#define ") else { return typedefs(line) };
    let Some((name, value)) = rest.split_once(' ') else { return line.to_owned() };
    let unsigned = [
        "_ANCHOR_",
        "_MODE_",
        "_UNIT_",
        "_POLICY_",
        "_CLOCK_",
        "_ON_FULL_",
        "_MISSING_",
        "_TABLE_",
        "TOLLBAR_IN_FLIGHT_",
        "_FALLBACK_",
        "_CIRCUIT_",
        "_EVENT_",
        "TOLLBAR_LEASE_",
        "_ADAPTIVE_",
        "TOLLBAR_PACING_CUBIC",
        "TOLLBAR_PACING_AIMD",
        "_OUTCOME_",
        "_RULES_",
    ];
    if name == "TOLLBAR_NO_TIME" {
        "#define TOLLBAR_NO_TIME UINT64_MAX".to_owned()
    } else if name == "TOLLBAR_FOREVER" {
        "#define TOLLBAR_FOREVER UINT64_MAX".to_owned()
    } else if ["TOLLBAR_TIME_ZERO", "TOLLBAR_DAY", "TOLLBAR_WEEK", "TOLLBAR_MONTH", "TOLLBAR_YEAR"]
        .contains(&name)
    {
        format!("#define {name} UINT64_C({value})")
    } else if value.starts_with('-') {
        format!("#define {name} ({value})")
    } else if unsigned.iter().any(|part| name.contains(part)) {
        format!("#define {name} {value}u")
    } else {
        line.to_owned()
    }
}

/// Replaces `struct tollbar_x` by its typedef, which has the same name.
fn typedefs(line: &str) -> String {
    if line.starts_with("typedef") {
        return line.to_owned();
    }
    line.replace("struct tollbar_", "tollbar_")
}

fn banner(number: u32, title: &str) -> String {
    let rule = "-".repeat(92);
    format!("/* {rule}\n * {number}. {title}\n * {rule} */\n\n")
}

/// The hand-written text before a section's declarations.
fn extras(file: &str) -> String {
    match file {
        "policy" => crate::algorithms::fill(include_str!("header/policy.h")),
        "cell" => include_str!("header/cell.h").to_owned(),
        "limiter" => include_str!("header/limiter.h").to_owned(),
        "clock" => include_str!("header/clock.h").to_owned(),
        "table" => include_str!("header/table.h").to_owned(),
        "lease" => include_str!("header/lease.h").to_owned(),
        "calls" => include_str!("header/calls.h").to_owned(),
        "store" => include_str!("header/store.h").to_owned(),
        "take_many" => include_str!("header/take_many.h").to_owned(),
        "reserve" => include_str!("header/reserve.h").to_owned(),
        "charge" => include_str!("header/charge.h").to_owned(),
        "classes" => include_str!("header/classes.h").to_owned(),
        "receipts" => include_str!("header/receipts.h").to_owned(),
        "queue" => include_str!("header/queue.h").to_owned(),
        "hierarchy" => include_str!("header/hierarchy.h").to_owned(),
        "meter" => include_str!("header/meter.h").to_owned(),
        "in_flight" => include_str!("header/in_flight.h").to_owned(),
        "schedule" => include_str!("header/schedule.h").to_owned(),
        "adaptive" => include_str!("header/adaptive.h").to_owned(),
        "pacing" => include_str!("header/pacing.h").to_owned(),
        "overrides" => include_str!("header/overrides.h").to_owned(),
        "prefix" => include_str!("header/prefix.h").to_owned(),
        "route" => include_str!("header/route.h").to_owned(),
        "http" => include_str!("header/http.h").to_owned(),
        "metrics" => include_str!("header/metrics.h").to_owned(),
        "refusals" => include_str!("header/refusals.h").to_owned(),
        "counts" => include_str!("header/counts.h").to_owned(),
        _ => String::new(),
    }
}

/// The initialisers of growable structs, which follow the structs.
fn inits(file: &str) -> String {
    match file {
        "policy" => include_str!("header/policy_init.h").to_owned(),
        "cell" => include_str!("header/cell_init.h").to_owned(),
        "decision" => include_str!("header/decision_init.h").to_owned(),
        "limiter" => include_str!("header/limiter_init.h").to_owned(),
        "decide" => include_str!("header/decide_init.h").to_owned(),
        "table" => include_str!("header/table_init.h").to_owned(),
        "keyed" => include_str!("header/keyed_init.h").to_owned(),
        "take_many" => include_str!("header/take_many_init.h").to_owned(),
        "receipts" => include_str!("header/receipts_init.h").to_owned(),
        "survey" => include_str!("header/survey_init.h").to_owned(),
        "transfer" => include_str!("header/transfer_init.h").to_owned(),
        "lease" => include_str!("header/lease_init.h").to_owned(),
        "waiting" => include_str!("header/waiting_init.h").to_owned(),
        "client" => include_str!("header/tls_init.h").to_owned(),
        "calls" => include_str!("header/calls_init.h").to_owned(),
        "store" => include_str!("header/store_init.h").to_owned(),
        "rules" => include_str!("header/rules_init.h").to_owned(),
        "queue" => include_str!("header/queue_init.h").to_owned(),
        "hierarchy" => include_str!("header/hierarchy_init.h").to_owned(),
        "meter" => include_str!("header/meter_init.h").to_owned(),
        "in_flight" => include_str!("header/in_flight_init.h").to_owned(),
        "adaptive" => include_str!("header/adaptive_init.h").to_owned(),
        "pacing" => include_str!("header/pacing_init.h").to_owned(),
        "overrides" => include_str!("header/overrides_init.h").to_owned(),
        "prefix" => include_str!("header/prefix_init.h").to_owned(),
        "http" => include_str!("header/http_init.h").to_owned(),
        "metrics" => include_str!("header/metrics_init.h").to_owned(),
        "refusals" => include_str!("header/refusals_init.h").to_owned(),
        "counts" => include_str!("header/counts_init.h").to_owned(),
        _ => String::new(),
    }
}
