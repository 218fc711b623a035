//! A run as it is written and read: the machine, and each row's figures.

use crate::book::Book;
use crate::document::machine;
use crate::measure::median;
use crate::Sizes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A whole run.
#[derive(Serialize, Deserialize)]
pub struct Run {
    pub machine: Machine,
    /// The keys of the tables whose rows are judged, and of the in-flight table.
    pub medium: usize,
    pub small: usize,
    pub groups: Vec<Group>,
    pub figures: Vec<Figure>,
}

#[derive(Serialize, Deserialize)]
pub struct Machine {
    pub date: String,
    pub processor: String,
    pub processors: usize,
    /// Whether two of these processors may be threads of one core.
    pub siblings: String,
    pub caches: String,
    pub memory: String,
    pub kernel: String,
    pub compiler: String,
    pub governor: String,
    pub load: String,
    pub seconds: u64,
}

/// One work by one number of threads.
#[derive(Serialize, Deserialize)]
pub struct Group {
    pub work: String,
    pub threads: usize,
    pub rows: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
pub struct Row {
    pub who: String,
    /// Nanoseconds a request of one thread, one figure a round.
    pub rounds: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
pub struct Figure {
    pub what: String,
    pub who: String,
    pub value: f64,
}

impl Run {
    pub fn of(book: &Book, sizes: &Sizes, took: Duration, load: String) -> Run {
        let row = |row: &crate::book::Row| Row {
            who: row.who.name.to_owned(),
            rounds: row.rounds.iter().map(|figure| (figure * 100.0).round() / 100.0).collect(),
        };
        let groups = book.groups.iter().map(|group| Group {
            work: group.work.clone(),
            threads: group.threads,
            rows: group.rows.iter().map(row).collect(),
        });
        let figures = book.figures.iter().filter(|figure| figure.topic == super::placements::TOPIC);
        let figures = figures.map(|figure| Figure {
            what: figure.what.clone(),
            who: figure.who.map_or(String::new(), |who| who.name.to_owned()),
            value: (figure.value * 100.0).round() / 100.0,
        });
        Run {
            machine: Machine::this(took, load),
            medium: sizes.medium,
            small: sizes.small,
            groups: groups.collect(),
            figures: figures.collect(),
        }
    }

    pub fn row(&self, work: &str, threads: usize, who: &str) -> Option<&Row> {
        let group =
            self.groups.iter().find(|group| group.work == work && group.threads == threads)?;
        group.rows.iter().find(|row| row.who == who)
    }

    /// The numbers of threads, in order.
    pub fn threads(&self) -> Vec<usize> {
        let mut threads: Vec<usize> = self.groups.iter().map(|group| group.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// The works, in the order in which they were measured.
    pub fn works(&self) -> Vec<&str> {
        let first = self.groups.iter().filter(|group| group.threads == 1);
        first.map(|group| group.work.as_str()).collect()
    }
}

impl Row {
    pub fn nanoseconds(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// How many times as fast this row is as the other one, the median of the rounds.
    pub fn faster_than(&self, other: &Row) -> f64 {
        median(other.rounds.iter().zip(&self.rounds).map(|(other, own)| other / own).collect())
    }
}

impl Machine {
    fn this(took: Duration, load: String) -> Machine {
        Machine {
            date: machine::said("date", &["-u", "+%Y-%m-%d"]),
            processor: machine::line("/proc/cpuinfo", "model name"),
            processors: std::thread::available_parallelism().map_or(0, |count| count.get()),
            siblings: machine::read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"),
            caches: machine::caches(),
            memory: machine::memory(),
            kernel: machine::kernel(),
            compiler: option_env!("BUILT_BY").unwrap_or("unknown").to_owned(),
            governor: machine::version("governor"),
            load,
            seconds: took.as_secs(),
        }
    }
}
