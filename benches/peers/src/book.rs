//! The figures of a run, which are printed as they come and from which the document is made.

use crate::measure::{median, Contender};
use crate::who::{Side, Who};

/// One contender's figures.
pub struct Row {
    pub who: Who,
    /// Nanoseconds a request of one thread, one figure a round.
    pub rounds: Vec<f64>,
}

impl Row {
    pub fn nanoseconds(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// The other's time divided by this one's, the median of the rounds: how many times as fast
    /// this one is.
    pub fn faster_than(&self, other: &Row) -> f64 {
        median(other.rounds.iter().zip(&self.rounds).map(|(other, own)| other / own).collect())
    }

    /// This one's time less the other's, in nanoseconds, the median of the rounds.
    pub fn more_than(&self, other: &Row) -> f64 {
        median(self.rounds.iter().zip(&other.rounds).map(|(own, other)| own - other).collect())
    }
}

/// All contenders of one work.
pub struct Group {
    pub work: String,
    pub threads: usize,
    pub rows: Vec<Row>,
}

impl Group {
    pub fn row(&self, who: Who) -> Option<&Row> {
        self.rows.iter().find(|row| row.who.name == who.name)
    }

    /// The fastest of a side, among contenders that get the time from the caller or among those
    /// that read a clock.
    pub fn best(&self, side: Side, given_time: bool) -> Option<&Row> {
        let rows = self
            .rows
            .iter()
            .filter(|row| row.who.side == side && row.who.is_given_the_time() == given_time);
        rows.min_by(|one, other| one.nanoseconds().total_cmp(&other.nanoseconds()))
    }
}

/// A single figure.
pub struct Figure {
    /// The topic; figures of one topic stand together.
    pub topic: &'static str,
    pub what: String,
    pub who: Option<Who>,
    pub value: f64,
    pub unit: &'static str,
}

/// All figures of a run.
#[derive(Default)]
pub struct Book {
    pub groups: Vec<Group>,
    pub figures: Vec<Figure>,
}

impl Book {
    /// Keeps a group, and prints it.
    pub fn add(&mut self, work: &str, threads: usize, contenders: Vec<Contender>) {
        let rows =
            contenders.into_iter().map(|one| Row { who: one.who, rounds: one.rounds }).collect();
        self.put(Group { work: work.to_owned(), threads, rows });
    }

    /// Keeps and prints a group of figures that are there already.
    pub fn put(&mut self, group: Group) {
        println!(
            "\n{:<52} {:>10}  {:>10}",
            format!("{}, {}", group.work, of_threads(group.threads)),
            "ns",
            "governor"
        );
        let governor = group.row(crate::who::GOVERNOR);
        for row in &group.rows {
            let ratio = governor
                .map_or(String::new(), |governor| format!("{:.2}x", row.faster_than(governor)));
            println!("{:<52} {:>10.1}  {ratio:>10}", row.who.name, row.nanoseconds());
        }
        self.groups.push(group);
    }

    /// Keeps a figure, and prints it.
    pub fn figure(
        &mut self,
        topic: &'static str,
        what: &str,
        who: Option<Who>,
        value: f64,
        unit: &'static str,
    ) {
        let name = who.map_or(String::new(), |who| format!("{}: ", who.name));
        println!("{:<72} {value:>12.2} {unit}", format!("{topic}, {name}{what}"));
        self.figures.push(Figure { topic, what: what.to_owned(), who, value, unit });
    }

    pub fn group(&self, work: &str, threads: usize) -> Option<&Group> {
        self.groups.iter().find(|group| group.work == work && group.threads == threads)
    }

    pub fn row(&self, work: &str, threads: usize, who: Who) -> Option<&Row> {
        self.group(work, threads)?.row(who)
    }

    pub fn value(&self, topic: &str, what: &str, who: Option<Who>) -> Option<f64> {
        let same = |figure: &&Figure| {
            figure.topic == topic
                && figure.what == what
                && figure.who.map(|who| who.name) == who.map(|who| who.name)
        };
        self.figures.iter().find(same).map(|figure| figure.value)
    }
}

pub fn of_threads(threads: usize) -> String {
    if threads == 1 {
        "1 thread".into()
    } else {
        format!("{threads} threads")
    }
}
