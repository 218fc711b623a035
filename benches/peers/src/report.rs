//! The lines of the table, and what is asked of them.

use crate::measure::median;

/// What is required of a figure.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Shown for the reader; nothing is required.
    None,
}

/// Prints, and counts what was missed.
pub struct Report {
    judge: bool,
    met: usize,
    missed: usize,
}

impl Report {
    /// Without judging, goals are shown and nothing is said about them: the figures of a smoke run mean nothing.
    pub fn new(judge: bool) -> Report {
        Report { judge, met: 0, missed: 0 }
    }

    /// The head of a group of lines that compare two contenders.
    pub fn head(&self, title: &str) {
        println!("\n{:<72} {:>8} {:>8} {:>8}  {:>9}", title, "ours ns", "other ns", "ratio", "goal");
    }

    /// The rounds of both, in nanoseconds: the other's time over ours, how many times as fast ours is.
    pub fn faster(&mut self, what: &str, ours: &[f64], other: &[f64], goal: Goal) {
        let ratio = median(other.iter().zip(ours).map(|(other, ours)| other / ours).collect());
        self.compared(what, ours, other, ratio, "x", goal);
    }

    /// Our time over the other's: a floor, which nothing is faster than.
    pub fn above(&mut self, what: &str, ours: &[f64], floor: &[f64], goal: Goal) {
        let ratio = median(ours.iter().zip(floor).map(|(ours, floor)| ours / floor).collect());
        self.compared(what, ours, floor, ratio, "x", goal);
    }

    /// Our time less the other's.
    pub fn more(&mut self, what: &str, ours: &[f64], other: &[f64], goal: Goal) {
        let more = median(ours.iter().zip(other).map(|(ours, other)| ours - other).collect());
        self.compared(what, ours, other, more, "ns", goal);
    }

    fn compared(&mut self, what: &str, ours: &[f64], other: &[f64], figure: f64, unit: &str, goal: Goal) {
        let verdict = self.judged(figure, goal);
        println!(
            "{:<72} {:>8.1} {:>8.1} {:>8}  {:>9}  {verdict}",
            what,
            median(ours.to_vec()),
            median(other.to_vec()),
            format!("{figure:.2}{unit}"),
            goal_text(goal, unit),
        );
    }

    /// A figure by itself.
    pub fn figure(&mut self, what: &str, figure: f64, unit: &str, goal: Goal) {
        let verdict = self.judged(figure, goal);
        let shown = format!("{figure:.3}").trim_end_matches('0').trim_end_matches('.').to_string();
        println!("{what:<72} {:>26}  {:>9}  {verdict}", format!("{shown} {unit}"), goal_text(goal, ""));
    }

    fn judged(&mut self, figure: f64, goal: Goal) -> &'static str {
        // As precise as it is shown.
        let figure = (figure * 100.0).round() / 100.0;
        let met = match goal {
            Goal::AtLeast(least) => figure >= least,
            Goal::AtMost(most) => figure <= most,
            Goal::None => return "",
        };
        if !self.judge {
            return "not judged";
        }
        if met {
            self.met += 1;
            "met"
        } else {
            self.missed += 1;
            "MISSED"
        }
    }

    pub fn end(&self) {
        if self.judge {
            println!("\n{} goals met, {} missed", self.met, self.missed);
        } else {
            println!("\nevery row works; nothing was judged");
        }
    }
}

fn goal_text(goal: Goal, unit: &str) -> String {
    match goal {
        Goal::AtLeast(least) => format!(">= {least}{unit}"),
        Goal::AtMost(most) => format!("<= {most}{unit}"),
        Goal::None => String::new(),
    }
}
