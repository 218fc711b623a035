//! `tollbar table`: makes shared tables in files, looks into them, changes their policies, and mends
//! and resizes them.

use crate::problem::{Problem, Result};
use crate::text::{grouped, span};
use std::collections::BinaryHeap;
use std::ffi::CString;
use std::fmt::Write as _;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use tollbar::clock;
use tollbar::metrics::{Format, Source};
use tollbar::policy::Keep;
use tollbar::prefix::Prefix;
use tollbar::table::{Entry, Health, Options, PolicyId, Table, TableError, Trust};
use tollbar::units::NEVER;
use tollbar::Policy;

/// Makes shared tables in files, and looks into them
#[derive(clap::Subcommand)]
pub enum TableCommand {
    /// Makes a table in a new file
    Create {
        /// The new file; there must be none of that name
        file: String,
        /// The policies, such as 100/s; they have the numbers 0, 1 and so on
        #[arg(required = true)]
        policies: Vec<String>,
        /// The number of keys that the table is for
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        keys: u64,
        /// Room for windows of N segments and logs of N permits: each policy may then change to any
        /// other algorithm, and keys keep the permits that they have left
        #[arg(long, value_name = "N", default_value_t = 0)]
        room: u32,
    },
    /// Sizes, counters, policies, and whether the slots are sound
    Stat {
        /// The table's file
        file: String,
    },
    /// Counts and sizes as text for Prometheus, such as for the textfile collector of
    /// node_exporter. The label `limit` is the file's name
    Metrics {
        /// The tables' files
        #[arg(required = true)]
        files: Vec<String>,
        /// OpenMetrics 1.0
        #[arg(long)]
        openmetrics: bool,
    },
    /// A line for each key: its policy's number, its hash, permits left, nanoseconds until it is as
    /// good as fresh (- for never)
    Dump {
        /// The table's file
        file: String,
        /// Keys with a debt only
        #[arg(long)]
        owing: bool,
    },
    /// The keys that owe longest. A table has no keys' names, only their hashes
    Top {
        /// The table's file
        file: String,
        /// How many keys
        #[arg(long, default_value_t = 20)]
        count: usize,
        /// Draw again each second, until control-C
        #[arg(long)]
        watch: bool,
    },
    /// Changes a policy for all processes, also while servers use the table
    SetPolicy {
        /// The table's file
        file: String,
        /// The new policy
        policy: String,
        /// The number of the policy to change, as `tollbar table stat` prints it
        #[arg(long, default_value_t = 0)]
        number: u32,
        /// What keys keep
        #[arg(long, value_enum, default_value_t)]
        keep: Kept,
    },
    /// Lets keys begin anew, also while servers use the table
    Reset {
        /// The table's file
        file: String,
        /// The key as text, or as an address
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        key: Option<String>,
        /// The key is an address: these bits of an IPv4 and of an IPv6 address, such as 32/64
        #[arg(long, value_name = "N/M", num_args = 0..=1, require_equals = true, default_missing_value = "32/64", conflicts_with = "all")]
        address: Option<String>,
        /// All keys of the policy but those with a policy of their own
        #[arg(long)]
        all: bool,
        /// The number of the key's policy, as `tollbar table stat` prints it
        #[arg(long, default_value_t = 0)]
        number: u32,
    },
    /// Copies all debts into a new file of another size, also while servers use the table
    Copy {
        /// The table's file
        file: String,
        /// The new file; there must be none of that name
        to: String,
        /// The number of keys that the new table is for
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        keys: u64,
        /// Room for windows of N segments and logs of N permits: each policy may then change to any
        /// other algorithm, and keys keep the permits that they have left; as in FILE if not given
        #[arg(long, value_name = "N")]
        room: Option<u32>,
    },
    /// Empties slots that are damaged. Call it only while no process uses the table
    Repair {
        /// The table's file
        file: String,
        /// Says that no process uses the table; without it nothing is changed
        #[arg(long)]
        unused: bool,
    },
}

/// What a key keeps when its policy is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Kept {
    /// The permits that it has left, up to the new burst
    #[default]
    Count,
    /// The time until its debt is paid
    Time,
    /// Nothing: it begins anew
    Reset,
}

/// Runs the command.
pub fn run(command: TableCommand) -> Result<()> {
    match command {
        TableCommand::Create { file, policies, keys, room } => create(&file, &policies, keys, room),
        TableCommand::Stat { file } => {
            let table = open(&file)?;
            crate::stdout::print(stat(&table).as_bytes())
        }
        TableCommand::Metrics { files, openmetrics } => metrics(&files, openmetrics),
        TableCommand::Dump { file, owing } => dump(&open(&file)?, owing),
        TableCommand::Top { file, count, watch } => top(&open(&file)?, count, watch),
        TableCommand::SetPolicy { file, policy, number, keep } => {
            set_policy(&file, &policy, number, keep)
        }
        TableCommand::Reset { file, key, address, number, .. } => {
            reset(&file, key.as_deref(), address.as_deref(), number)
        }
        TableCommand::Copy { file, to, keys, room } => copy(&file, &to, keys, room),
        TableCommand::Repair { file, unused } => repair(&file, unused),
    }
}

fn wrong(file: &str, error: impl std::fmt::Display) -> Problem {
    Problem::io(format!("{file}: {error}"))
}

/// Opens a table's file. It refuses a file that is no table, and makes none.
pub(crate) fn open(file: &str) -> Result<Table> {
    // Programs of several users may share the table, so its group may write the file.
    let path = CString::new(file).map_err(|error| wrong(file, error))?;
    Table::open_at(&path, 0o660, Trust::Owner).map_err(|error| wrong(file, error))
}

fn create(file: &str, texts: &[String], keys: u64, room: u32) -> Result<()> {
    let policies: Vec<Policy> =
        texts.iter().map(|text| crate::policy::parse(text)).collect::<Result<_>>()?;
    let table = new_file(file, &Options::new(keys).with_room(room), &policies)?;
    table.sync().map_err(|error| wrong(file, error))?;
    let stats = table.stats();
    crate::stdout::print(
        format!("{file}: for {} keys, {:.1} MB\n", grouped(keys), stats.bytes as f64 / 1e6)
            .as_bytes(),
    )
}

/// Makes a table in a file that is not there yet.
fn new_file(file: &str, options: &Options, policies: &[Policy]) -> Result<Table> {
    if std::fs::symlink_metadata(file).is_ok() {
        return Err(Problem::usage(format!(
            "{file}: is there already, expected no file of that name"
        )));
    }
    Table::file(file, options, policies).map_err(|error| match error {
        TableError::Mixed => Problem::usage(format!(
            "{file}: a sliding window or log beside other policies; expected --room N, with room \
             for its segments or permits"
        )),
        error => wrong(file, error),
    })
}

fn policies(table: &Table) -> Vec<(PolicyId, Policy)> {
    let of = |n| table.policy(PolicyId::new(n)).ok().map(|policy| (PolicyId::new(n), policy));
    (0..table.policies()).filter_map(of).collect()
}

fn metrics(files: &[String], openmetrics: bool) -> Result<()> {
    let mut tables: Vec<(String, Table)> = Vec::new();
    for file in files {
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if tables.iter().any(|(other, _)| *other == name) {
            return Err(Problem::usage(format!(
                "{file}: another table is named {name}, too; expected: files of different names"
            )));
        }
        tables.push((name, open(file)?));
    }
    let sources: Vec<_> = tables.iter().map(|(name, table)| Source::table(name, table)).collect();
    let format = if openmetrics { Format::OpenMetrics } else { Format::Prometheus };
    let mut text = vec![0; 1 << 16];
    // A number may have more digits at the next call, and then the text may not fit again.
    loop {
        let length = tollbar::metrics::write(&sources, format, &mut text);
        if length <= text.len() {
            return crate::stdout::print(&text[..length]);
        }
        text.resize(length + length / 8, 0);
    }
}

fn stat(table: &Table) -> String {
    let stats = table.stats();
    let health = table.validate(table.now());
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:15}{value}");
    };
    line("keys for", grouped(stats.capacity));
    let room = match table.options().room {
        0 => String::new(),
        room => format!(", room for {} segments or permits", grouped(room.into())),
    };
    line("slots", format!("{}, {:.1} MB{room}", grouped(stats.slots), stats.bytes as f64 / 1e6));
    line(
        "keys",
        format!(
            "{}, of them {} with a debt",
            grouped(health.live + health.expired),
            grouped(health.live)
        ),
    );
    line(
        "decisions",
        format!(
            "{} allowed, {} denied, {} never",
            grouped(stats.decisions.allowed),
            grouped(stats.decisions.denied),
            grouped(stats.decisions.never)
        ),
    );
    line(
        "inserted",
        format!("{}, into expired slots {}", grouped(stats.inserted), grouped(stats.reclaimed)),
    );
    line("evicted", grouped(stats.evicted));
    line("refused full", grouped(stats.refused));
    line("inherited", grouped(stats.inherited));
    line("untracked", grouped(stats.untracked));
    let name = match table.options().clock {
        clock::Source::Tsc => "tsc",
        clock::Source::Monotonic => "monotonic",
        clock::Source::Coarse => "coarse",
        clock::Source::Wall => "wall, from 1970 on",
    };
    line("clock", format!("{name}; {} steps back", grouped(stats.backward_steps)));
    line("slots are", sound(&health));
    for (id, policy) in policies(table) {
        let counts = table.counts(id).unwrap_or_default();
        line(
            &format!("policy {}", id.number()),
            format!(
                "{policy}: {} allowed, {} denied, {} never",
                grouped(counts.allowed),
                grouped(counts.denied),
                grouped(counts.never)
            ),
        );
    }
    out
}

fn sound(health: &Health) -> String {
    match health.is_sound() {
        true => "sound".to_owned(),
        false => format!(
            "damaged: {} unknown, {} twice (`tollbar table repair`)",
            grouped(health.unknown),
            grouped(health.duplicate)
        ),
    }
}

fn dump(table: &Table, owing: bool) -> Result<()> {
    let now = table.now();
    let mut out = BufWriter::new(std::io::stdout().lock());
    for entry in table.entries(now) {
        let reset = entry.reset_after(now);
        if owing && reset == 0 {
            continue;
        }
        let reset = if reset == NEVER { "-".to_owned() } else { reset.to_string() };
        writeln!(out, "{} {:016x} {} {reset}", entry.policy.number(), entry.hash, entry.remaining)
            .map_err(|error| Problem::system("standard output", &error))?;
    }
    out.flush().map_err(|error| Problem::system("standard output", &error))
}

fn top(table: &Table, count: usize, watch: bool) -> Result<()> {
    loop {
        let text = top_once(table, count);
        if watch && std::io::stdout().is_terminal() {
            // Clears the terminal, as top does.
            crate::stdout::print(b"\x1b[H\x1b[2J")?;
        }
        crate::stdout::print(text.as_bytes())?;
        if !watch {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

fn top_once(table: &Table, count: usize) -> String {
    let now = table.now();
    // The heap holds the `count` keys that owe longest so far. The one of them that owes for the
    // shortest time is on top, and is removed first.
    let mut heap: BinaryHeap<(std::cmp::Reverse<u64>, u64, u32, u64)> = BinaryHeap::new();
    let mut owing = 0u64;
    let row = |entry: &Entry| {
        (
            std::cmp::Reverse(entry.reset_after(now)),
            entry.hash,
            entry.policy.number(),
            entry.remaining,
        )
    };
    for entry in table.entries(now).filter(|entry| entry.reset_after(now) > 0) {
        owing += 1;
        heap.push(row(&entry));
        if heap.len() > count {
            heap.pop();
        }
    }
    let mut out = format!(
        "{} with a debt\n{:>14} {:>12} {:>16}  policy\n",
        crate::text::count(owing, "key"),
        "debt for",
        "permits left",
        "hash"
    );
    for (std::cmp::Reverse(reset), hash, policy, remaining) in heap.into_sorted_vec() {
        let reset = if reset == NEVER { "ever".to_owned() } else { span(reset) };
        let text =
            table.policy(PolicyId::new(policy)).map_or("?".to_owned(), |policy| policy.to_string());
        let _ = writeln!(out, "{reset:>14} {:>12} {hash:016x}  {text}", grouped(remaining));
    }
    out
}

fn set_policy(file: &str, text: &str, number: u32, keep: Kept) -> Result<()> {
    let policy = crate::policy::parse(text)?;
    let table = open(file)?;
    let (id, former) = numbered(&table, file, number)?;
    let keep = match keep {
        Kept::Count => Keep::Count,
        Kept::Time => Keep::Time,
        Kept::Reset => Keep::Reset,
    };
    table
        .set_policy_keeping(id, &policy, keep)
        .and_then(|()| table.sync())
        .map_err(|error| wrong(file, error))?;
    crate::stdout::print(format!("policy {number}: {policy}, before {former}\n").as_bytes())
}

fn numbered(table: &Table, file: &str, number: u32) -> Result<(PolicyId, Policy)> {
    let id = PolicyId::new(number);
    let policy = table.policy(id).map_err(|_| {
        let last = table.policies().saturating_sub(1);
        Problem::usage(format!(
            "{file}: --number {number}: the table has no such policy, expected 0 to {last}"
        ))
    })?;
    Ok((id, policy))
}

/// Without a key all keys of the policy.
fn reset(file: &str, key: Option<&str>, address: Option<&str>, number: u32) -> Result<()> {
    let table = open(file)?;
    let (id, policy) = numbered(&table, file, number)?;
    let Some(key) = key else {
        let done = table.set_policy_keeping(id, &policy, Keep::Reset).and_then(|()| table.sync());
        done.map_err(|error| wrong(file, error))?;
        return crate::stdout::print(format!("policy {number}: all keys begin anew\n").as_bytes());
    };
    let bytes = match address {
        Some(bits) => {
            let prefix = prefix_of(key, bits)?;
            prefix.as_bytes().to_vec()
        }
        None => key.as_bytes().to_vec(),
    };
    let hash = table.hash(id, &bytes).map_err(|error| wrong(file, error))?;
    let now = table.now();
    if !table
        .entries(now)
        .any(|entry| entry.policy == id && entry.hash == hash && entry.reset_after(now) > 0)
    {
        return Err(Problem::io(format!(
            "{file}: {key} owes nothing under policy {number} (an address needs --address)"
        )));
    }
    let anew = table.reset(id, &bytes).map_err(|error| wrong(file, error))?;
    table.sync().map_err(|error| wrong(file, error))?;
    match anew {
        true => crate::stdout::print(format!("policy {number}: {key} begins anew\n").as_bytes()),
        false => Err(Problem::io(format!(
            "{file}: {key} keeps its debt: the table has no other slot for it"
        ))),
    }
}

fn prefix_of(key: &str, bits: &str) -> Result<Prefix> {
    let (v4, v6) =
        bits.split_once('/').and_then(|(v4, v6)| Some((v4.parse().ok()?, v6.parse().ok()?))).ok_or_else(|| {
            Problem::usage(format!(
                "--address={bits}: expected the bits of an IPv4 and of an IPv6 address, such as 32/64"
            ))
        })?;
    let address = tollbar::address::parse(key.as_bytes())
        .ok_or_else(|| Problem::usage(format!("{key}: expected an address")))?;
    Prefix::of(address, v4, v6).ok_or_else(|| {
        Problem::usage(format!("--address={bits}: expected at most 32 and 128 bits"))
    })
}

fn copy(file: &str, to: &str, keys: u64, room: Option<u32>) -> Result<()> {
    let from = open(file)?;
    let mut options = from.options();
    options.capacity = keys;
    options.room = room.unwrap_or(options.room);
    let policies: Vec<Policy> = policies(&from).into_iter().map(|(_, policy)| policy).collect();
    let table = new_file(to, &options, &policies)?;
    let copied =
        table.copy_from(&from, table.now()).and_then(|copied| table.sync().map(|()| copied));
    let copied = copied.map_err(|error| {
        drop(std::fs::remove_file(to));
        wrong(to, error)
    })?;
    crate::stdout::print(
        format!("copied {}, lost {}\n", grouped(copied.copied), grouped(copied.lost)).as_bytes(),
    )
}

fn repair(file: &str, unused: bool) -> Result<()> {
    let table = open(file)?;
    let health = table.validate(table.now());
    if !unused {
        return crate::stdout::print(
            format!(
                "{file}: {}\nNothing was changed: stop all processes that use the table, and say --unused.\n",
                sound(&health)
            )
            .as_bytes(),
        );
    }
    let before = table.repair(table.now());
    crate::stdout::print(
        format!(
            "{file}: {} slots emptied, {} keys kept once\n",
            grouped(before.unknown),
            grouped(before.duplicate)
        )
        .as_bytes(),
    )
}
