//! `docs/benchmarks.md`: prose from a template, figures from the book.

mod charts;
pub mod machine;
mod paper;
mod tables;

use crate::book::Book;
use crate::keyed::PYTHON_MOST;
use crate::keys::Spread::{self, Uniform, Zipf};
use crate::model::Model;
use crate::one::{self, Work};
use crate::process::{Programs, SLOWER};
use crate::rows::{of_keys, title};
use crate::targets::Target;
use crate::who::{self, Side};
use crate::Sizes;
use charts::{Dots, Line};
use std::path::Path;
use std::time::Instant;

pub use machine::load;
pub use tables::{figure, name, Table};

/// The parts of the document.
pub struct Document<'a> {
    pub book: &'a Book,
    pub sizes: &'a Sizes,
    pub programs: Option<&'a Programs>,
    pub design: Vec<Target>,
    pub kept: Vec<Target>,
    pub begun: Instant,
    /// The load before the run.
    pub load: String,
    /// What the programs in `nginx/bench` have printed.
    pub nginx: Vec<String>,
}

const TEMPLATE: &str = include_str!("template.md");

impl Document<'_> {
    /// Writes the document and its charts.
    pub fn write(&self, docs: &Path) {
        let charts = docs.join("benchmarks");
        std::fs::create_dir_all(&charts).expect("a directory");
        self.charts(&charts);
        let (rounds, turn) = self.sizes.one;
        let nginx = self.nginx.iter().map(|text| format!("```text\n{}\n```\n", text.trim_end()));
        let fills = [
            ("machine", machine::table(self)),
            ("glance", tables::glance(self, false)),
            ("glance_told", tables::glance(self, true)),
            ("targets", tables::targets(&self.design)),
            ("reasons", tables::reasons(&self.design)),
            ("hot", format!("The targets for one key are measured on {}.", who::HOT.name)),
            ("kept", tables::targets(&self.kept)),
            ("one", tables::one_key(self)),
            ("keys", tables::keys(self)),
            ("memory", tables::memory(self)),
            ("full", tables::full(self)),
            ("flood", tables::flood(self)),
            ("flood_keys", (self.sizes.flood.rounds * self.sizes.flood.keys_a_round).to_string()),
            ("flood_capacity", self.sizes.flood.capacity.to_string()),
            ("nginx", nginx.collect::<Vec<_>>().join("\n")),
            ("hand_over", self.hand_over()),
            ("model", tables::model(self)),
            ("rounds_one", rounds.to_string()),
            ("rounds_keys", self.sizes.cold.rounds.to_string()),
            ("turn", format!("{:.2}", turn.as_secs_f64() * 1e3)),
            ("requests", self.sizes.cold.requests.to_string()),
            ("warm", self.sizes.cold.warm.to_string()),
            ("slower", SLOWER[0].to_string()),
            ("slowest", SLOWER[1].to_string()),
            ("floors", self.floors()),
            ("python_most", of_keys(PYTHON_MOST)),
        ];
        let mut text = TEMPLATE.to_owned();
        for (name, fill) in fills {
            text = text.replace(&format!("{{{{{name}}}}}"), fill.trim_end());
        }
        assert!(!text.contains("{{"), "the template has a name without a value");
        std::fs::write(docs.join("benchmarks.md"), text).expect("writable");
        println!("\nwritten: {}", docs.join("benchmarks.md").display());
    }

    /// All works on keys, in the order of the document.
    fn key_works(&self) -> Vec<String> {
        let Sizes { small, medium, large, .. } = *self.sizes;
        let mut works = vec![title(1, Uniform, Work::Allowed)];
        works.extend([Uniform, Zipf].map(|spread| title(small, spread, Work::Allowed)));
        works.extend(one::WORKS.map(|work| title(medium, Uniform, work)));
        works.push(title(medium, Zipf, Work::Allowed));
        works.extend([Uniform, Zipf].map(|spread| title(large, spread, Work::Allowed)));
        works
    }

    fn hand_over(&self) -> String {
        let model = Model::of(self.book, &one::title(Work::Allowed), who::FETCH_ADD);
        model.map_or("?".into(), |model| tables::figure(model.hand_over))
    }

    fn floors(&self) -> String {
        let floors = [who::READ_TSC, who::BARE_CAS, who::FETCH_ADD, who::LOCAL, who::PREFETCHED];
        floors.map(|floor| floor.name).join(", ")
    }

    fn charts(&self, to: &Path) {
        let allowed = one::title(Work::Allowed);
        let rows = self.book.group(&allowed, 1).map_or(&[][..], |group| &group.rows);
        let dots = rows.iter().map(|row| {
            let value = |threads| {
                self.book.row(&allowed, threads, row.who).map_or(f64::NAN, |row| row.nanoseconds())
            };
            let name = row.who.name.replace('`', "");
            Dots { name, bold: row.who.side == Side::Ours, values: vec![value(1), value(2)] }
        });
        let heading = "One limiter, every request allowed (further left is faster)";
        let unit = "nanoseconds a request of one thread";
        charts::dots(
            &to.join("one-key.svg"),
            heading,
            unit,
            &["1 thread", "2 threads"],
            dots.collect(),
        );

        let names = [of_keys(self.sizes.medium), of_keys(self.sizes.large)]
            .map(|keys| format!("{keys} keys"));
        let dots = tables::memory_rows(self).into_iter().map(|(who, values)| {
            let values = values.map(|value| value.unwrap_or(f64::NAN)).into();
            Dots { name: who.name.to_owned(), bold: who.side == Side::Ours, values }
        });
        let series: Vec<_> = names.iter().map(String::as_str).collect();
        let heading = "Memory of a key (further left is smaller)";
        charts::dots(&to.join("memory.svg"), heading, "bytes a key", &series, dots.collect());
        self.chart_of_keys(&to.join("keys.svg"));
        self.chart_of_processors(&to.join("processors.svg"));
    }

    fn chart_of_keys(&self, path: &Path) {
        let Sizes { small, medium, large, .. } = *self.sizes;
        let sizes = [1, small, medium, large];
        let whos = [
            who::TABLE_MANY,
            who::TABLE,
            who::PREFETCHED,
            who::GOVERNOR_FASTEST,
            who::GOVERNOR,
            who::PINGORA,
            who::X_TIME,
            who::GUAVA,
        ];
        let time = |keys: usize, who| {
            let row = self.book.row(&title(keys, Spread::Uniform, Work::Allowed), 1, who)?;
            Some((keys as f64, row.nanoseconds()))
        };
        let line = |who: who::Who| {
            let points: Vec<_> = sizes.iter().filter_map(|&keys| time(keys, who)).collect();
            let name = who.name.replace(", caller's time", "");
            Some(Line { name, measured: points.len(), points })
                .filter(|line| !line.points.is_empty())
        };
        let lines: Vec<_> = whos.into_iter().filter_map(line).collect();
        let units = ("known keys, asked for uniformly", "nanoseconds a request, 1 thread");
        let heading = "A limit a key, every request allowed (lower is faster)";
        charts::lines(path, heading, units, &sizes.map(|keys| keys as f64), &lines);
    }

    fn chart_of_processors(&self, path: &Path) {
        let line = |(name, model): (String, Model)| {
            let points =
                tables::PROCESSORS.map(|threads| (threads as f64, model.millions(threads)));
            Line { name: name.replace('`', ""), points: points.into(), measured: 2 }
        };
        let lines: Vec<_> = tables::modelled(self).into_iter().map(line).collect();
        let units = (
            "processors",
            "millions of requests a second; points are measured, lines are the model",
        );
        let labels = tables::PROCESSORS.map(|processors| processors as f64);
        let heading = "A model of more processors, fitted to one and two (higher is faster)";
        charts::lines(path, heading, units, &labels, &lines);
    }
}
