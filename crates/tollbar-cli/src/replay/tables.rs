//! Tables of a given size (`--keys`), in memory or in a file.

use super::ask::{unknown_class, Ask};
use crate::problem::{Problem, Result};
use std::io;
use tollbar::clock::Source;
use tollbar::policy::{PolicyError, Words};
use tollbar::table::{
    Missing, OnFull, Options, PolicyId, RequestError, Table, TableError, POLICIES_MOST,
};
use tollbar::{Decision, Policy};

/// The size that the caller asks for.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Keys under each policy; `None` for a state for each key of the log.
    pub keys: Option<u64>,
    /// What a new key gets that finds no slot.
    pub on_full: OnFullName,
    /// The file.
    pub file: Option<String>,
}

/// [`OnFull`] on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnFullName {
    /// Forget the key that owes least, of those beside it
    #[default]
    EvictNearest,
    /// Take over another key's slot with its debt
    Inherit,
    /// Admit it, and do not remember it
    Allow,
    /// Refuse it
    Deny,
}

impl OnFullName {
    fn option(self) -> OnFull {
        match self {
            OnFullName::EvictNearest => OnFull::EvictNearest,
            OnFullName::Inherit => OnFull::Inherit,
            OnFullName::Allow => OnFull::Allow,
            OnFullName::Deny => OnFull::Deny,
        }
    }

    /// The outcome for keys that found no slot, in the summary's words.
    pub const fn got(self) -> &'static str {
        match self {
            OnFullName::EvictNearest => "admitted, another key forgotten",
            OnFullName::Inherit => "with another key's debt",
            OnFullName::Allow => "admitted, not remembered",
            OnFullName::Deny => "refused",
        }
    }
}

/// The tables of all policies.
#[derive(Default)]
pub struct Tables {
    tables: Vec<Table>,
    file: Option<String>,
    homeless_before: u64,
}

/// A sliding window or log has a table for itself.
fn is_alone(policy: &Policy) -> bool {
    policy.kind.words() != Words::One
}

/// Which policies share a table, by their numbers.
fn groups(policies: &[Policy]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open: Option<usize> = None;
    for (n, policy) in policies.iter().enumerate() {
        match open {
            Some(group) if !is_alone(policy) && groups[group].len() < POLICIES_MOST => {
                groups[group].push(n)
            }
            _ => {
                if !is_alone(policy) {
                    open = Some(groups.len());
                }
                groups.push(vec![n]);
            }
        }
    }
    groups
}

fn options(room: &Room, keys: u64, policies: usize) -> Options {
    // A key takes a slot for each policy.
    let mut options =
        Options::new(keys.saturating_mul(policies as u64)).with_on_full(room.on_full.option());
    options.missing = Missing::Report;
    // Few keys in a large table touch few small pages, but every huge page.
    options.huge_pages = false;
    // With a fixed seed the same keys collide, and are refused, in each replay of a log. A file's
    // seed is random, because other programs may write to the file, too, and must not know the
    // seed.
    options.seed = if room.file.is_none() { Some(0) } else { None };
    // A log's times are Unix times. So a server with another clock, which would refuse all keys for
    // decades, cannot open the file.
    if room.file.is_some() {
        options.clock = Source::Wall;
    }
    options
}

/// The message for a table that cannot be made, where the library's own would mislead.
fn reason(error: TableError) -> String {
    match error {
        TableError::Policy(PolicyError::OptionMismatch) => {
            "windows of many keys cannot start at a first request: leave out 'anchor first'"
                .to_owned()
        }
        TableError::Policy(PolicyError::LogTooLarge) => {
            "logs of many keys cannot have so many entries in so short a period".to_owned()
        }
        TableError::System(_, number) => {
            format!(
                "{}: {}",
                error.text(),
                crate::text::system(&io::Error::from_raw_os_error(number))
            )
        }
        _ => error.to_string(),
    }
}

impl Tables {
    /// Refuses what no table can have, before the log is opened.
    pub fn check_room(room: &Room, policies: &[Policy]) -> Result<()> {
        let Some(keys) = room.keys else {
            return match room.file {
                Some(_) => {
                    Err(Problem::usage("--table needs --keys: how many keys the file is for"))
                }
                None => Ok(()),
            };
        };
        for policy in policies {
            if let Err(error) = Table::bytes_for(&options(room, keys, 1), &[*policy]) {
                return Err(Problem::usage(format!("{policy}: {}", reason(error))));
            }
        }
        match &room.file {
            Some(file) if groups(policies).len() > 1 => {
                Err(Problem::usage(format!("{file}: the policies do not share one table")))
            }
            _ => Ok(()),
        }
    }

    /// The tables, and for each policy where it is: the number of its table, and its number in that
    /// table.
    pub fn open(
        room: &Room,
        keys: u64,
        policies: &[Policy],
    ) -> Result<(Tables, Vec<(usize, PolicyId)>)> {
        let mut tables = Tables { file: room.file.clone(), ..Tables::default() };
        let mut places = vec![None; policies.len()];
        for group in groups(policies) {
            let members: Vec<Policy> = group.iter().map(|&n| policies[n]).collect();
            let options = options(room, keys, members.len());
            let made = match &room.file {
                Some(file) => Table::file(file, &options, &members),
                None => Table::private(&options, &members),
            };
            let table = made.map_err(|error| {
                let name = room.file.clone().unwrap_or_else(|| members[0].to_string());
                let mut text = format!("{name}: {}", reason(error));
                if let Ok(bytes) = Table::bytes_for(&options, &members) {
                    text += &format!(
                        "\ntollbar: a table of {} keys takes {bytes} bytes",
                        options.capacity
                    );
                }
                Problem::io(text)
            })?;
            for (n, &policy) in group.iter().enumerate() {
                places[policy] = Some((tables.tables.len(), PolicyId::new(n as u32)));
            }
            tables.tables.push(table);
        }
        tables.homeless_before = tables.all_homeless();
        Ok((tables, places.into_iter().flatten().collect()))
    }

    /// One request.
    #[inline]
    pub fn check(&self, table: usize, policy: PolicyId, ask: Ask<'_>) -> Result<Decision> {
        let table = &self.tables[table];
        let decided = match ask.class {
            // A policy without classes has no reserve.
            class
                if class.is_empty()
                    || table.policy(policy).is_ok_and(|policy| policy.classes.is_empty()) =>
            {
                table.try_check(policy, ask.key, Some(ask.now), ask.cost)
            }
            class => match table.check_class_at(policy, ask.key, ask.now, ask.cost, class) {
                Err(RequestError::Policy(PolicyError::NoSuchClass)) => {
                    return Err(unknown_class(class))
                }
                decided => decided,
            },
        };
        decided.map_err(|error| {
            Problem::io(format!("{}: {error}", self.file.as_deref().unwrap_or("the table")))
        })
    }

    /// How many tables there are.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// The bytes that all may take.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(Table::bytes).sum()
    }

    fn all_homeless(&self) -> u64 {
        let of = |table: &Table| {
            let stats = table.stats();
            // One of these, as `on_full` says.
            stats.refused + stats.inherited + stats.untracked + stats.evicted
        };
        self.tables.iter().map(of).sum()
    }

    /// Requests of new keys that found no slot since the tables were opened.
    pub fn homeless(&self) -> u64 {
        // A file's counters are as old as the file.
        self.all_homeless() - self.homeless_before
    }

    /// Writes the file to its disk.
    pub fn sync(&self) -> Result<()> {
        match (&self.file, self.tables.first()) {
            (Some(file), Some(table)) => {
                table.sync().map_err(|error| Problem::io(format!("{file}: {}", reason(error))))
            }
            _ => Ok(()),
        }
    }
}
