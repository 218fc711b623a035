//! `tollbar lease`: changes limits that machines share through Redis or Valkey.

use crate::policy;
use crate::problem::{Problem, Result};
use tollbar_redis::lease::{self, SetError};
use tollbar_redis::redis::Url;

/// Changes limits that machines share through Redis or Valkey
#[derive(clap::Subcommand)]
pub enum LeaseCommand {
    /// Gives a limit another policy. All machines know it within half a second, and keys keep the
    /// permits that they have used
    Set {
        /// The limit's name in the store
        limit: String,
        /// The policy, such as "100/s burst 20"
        policy: String,
        /// The store, such as redis://10.0.0.5
        #[arg(long, value_name = "URL")]
        store: String,
        /// Changes the limit only if it has this version
        #[arg(long, value_name = "N")]
        if_version: Option<u64>,
    },
}

/// Nanoseconds that the command waits for the store and for the end of an earlier change.
const TIMEOUT: u64 = 5_000_000_000;

/// Runs the command.
pub fn run(command: LeaseCommand) -> Result<()> {
    let LeaseCommand::Set { limit, policy, store, if_version } = command;
    let policy = policy::parse(&policy)?;
    let url =
        Url::parse(&store).map_err(|error| Problem::usage(format!("--store {store}: {error}")))?;
    let terms = lease::set(&url, &limit, &policy, if_version, TIMEOUT).map_err(|error| {
        let text = format!("{limit}: {error}");
        match error {
            SetError::Terms(_) => Problem::usage(text),
            _ => Problem::io(text),
        }
    })?;
    let text = format!("{limit}: version {}, {policy}\n", terms.version);
    crate::stdout::print(text.as_bytes())
}
