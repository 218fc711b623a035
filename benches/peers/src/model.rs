//! How throughput grows with processors: a model, fitted to what one thread and two have taken.
//!
//! A request takes `a` if no other processor disturbs it. Processors share lines of memory, which
//! one of them at a time can change. Handing a line over takes `L`, which is measured by itself,
//! and a request waits for `s` hand-overs for each other processor that makes requests:
//!
//! ```text
//! T(n) = a + (n - 1) s L      nanoseconds a request of one of n threads
//! X(n) = n / T(n)             requests a nanosecond of all of them; 1 / (s L) at most
//! ```
//!
//! `a = T(1)`, `L` is the time by which a second processor slows a fetch-and-add down, and
//! `s = (T(2) - T(1)) / L`. The model knows nothing of a second socket, of processors that share a
//! core, or of a memory bus that is busy.

use crate::book::{of_threads, Book};
use crate::one::{self, Work};
use crate::who::{self, Who};

/// The model of one contender at one work.
#[derive(Clone, Copy)]
pub struct Model {
    /// `a`, in nanoseconds.
    pub alone: f64,
    /// `s`.
    pub lines: f64,
    /// `L`, in nanoseconds.
    pub hand_over: f64,
}

/// The least hand-over, in nanoseconds: a divisor.
const LEAST: f64 = 0.1;

impl Model {
    /// Fits the model to the book's figures for one thread and for two.
    pub fn of(book: &Book, work: &str, who: Who) -> Option<Model> {
        let time = |work: &str, threads, who| Some(book.row(work, threads, who)?.nanoseconds());
        let allowed = one::title(Work::Allowed);
        // On a machine that is too busy to run two threads at once no line is handed over, and the
        // difference may be negative.
        let hand_over =
            (time(&allowed, 2, who::FETCH_ADD)? - time(&allowed, 1, who::FETCH_ADD)?).max(LEAST);
        let alone = time(work, 1, who)?;
        let lines = ((time(work, 2, who)? - alone) / hand_over).max(0.0);
        Some(Model { alone, lines, hand_over })
    }

    /// T(n).
    pub fn nanoseconds(&self, threads: usize) -> f64 {
        self.alone + (threads - 1) as f64 * self.lines * self.hand_over
    }

    /// X(n), in millions a second.
    pub fn millions(&self, threads: usize) -> f64 {
        millions(self.nanoseconds(threads), threads)
    }
}

/// Requests per second of `threads` threads, in millions.
pub fn millions(nanoseconds: f64, threads: usize) -> f64 {
    threads as f64 / nanoseconds * 1e3
}

/// Prints measured figures beside the model's, for each number of threads.
pub fn print(book: &Book, threads: &[usize]) {
    println!("\nmillions of requests a second: measured, and by the model that is fitted to 1 and 2 threads");
    let mut seen: Vec<(String, Who)> = Vec::new();
    for group in book.groups.iter().filter(|group| group.threads == 1) {
        seen.extend(group.rows.iter().map(|row| (group.work.clone(), row.who)));
    }
    for (work, who) in seen {
        let Some(model) = Model::of(book, &work, who) else { continue };
        println!("\n{work}: {} (a = {:.1} ns, s = {:.2})", who.name, model.alone, model.lines);
        for &threads in threads {
            let Some(row) = book.row(&work, threads, who) else { continue };
            let (measured, modelled) =
                (millions(row.nanoseconds(), threads), model.millions(threads));
            let off = (measured / modelled - 1.0) * 100.0;
            println!("{:<12} {measured:>10.1} {modelled:>10.1} {off:>+7.0} %", of_threads(threads));
        }
    }
}
