//! `tollbar`, the command: a log through a limit, a policy in words, tables in files, and what a
//! decision costs on this machine.

mod bench;
mod chart;
mod civil;
mod import;
mod lease;
mod policy;
mod problem;
mod replay;
mod report;
mod rules;
mod schedule;
mod stdout;
mod table;
mod text;
mod top;

use clap::{CommandFactory, Parser, Subcommand};
use problem::{Problem, Result};
use std::io::Write;
use std::process::ExitCode;

/// Rate limiting from the command line
#[derive(Parser)]
#[command(name = "tollbar", version, max_term_width = 100)]
#[command(
    after_help = "Exit status: 0 done, 1 something could not be read or written, 2 wrong usage or a file with faults, 3 warnings of `rules check` or failed cases of `rules test`."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Replay(Box<replay::options::ReplayArgs>),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    #[command(subcommand)]
    Lease(lease::LeaseCommand),
    #[command(subcommand)]
    Table(table::TableCommand),
    Top(top::TopArgs),
    Bench(bench::BenchArgs),
    /// Prints completions for a shell: tollbar completions bash > /etc/bash_completion.d/tollbar
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes the manual pages into a directory
    Man {
        /// The directory; it is made if there is none
        directory: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    // `tollbar replay … | head` ends as other programs do. Rust starts programs with this signal
    // ignored. SAFETY: no other thread runs yet, and the default action has no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print_help_or_error(&error),
    };
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{}{problem}", if problem.has_places { "" } else { "tollbar: " });
            ExitCode::from(problem.status)
        }
    }
}

/// Help and the version go to standard output, which may be full; wrong usage goes to standard
/// error.
fn print_help_or_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tollbar: {}", Problem::system("standard output", &error));
            ExitCode::from(1)
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Replay(args) => replay::replay(&replay::options::Options::new(*args)?),
        Command::Policy(command) => policy::run(command),
        Command::Rules(command) => rules::run(command),
        Command::Lease(command) => lease::run(command),
        Command::Table(command) => table::run(command),
        Command::Top(args) => top::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "tollbar", &mut text);
            stdout::print(&text)
        }
        Command::Man { directory } => {
            let wrong =
                |error: std::io::Error| Problem::system(&directory.display().to_string(), &error);
            std::fs::create_dir_all(&directory).map_err(wrong)?;
            clap_mangen::generate_to(Arguments::command(), &directory).map_err(wrong)
        }
    }
}
