//! Medians and ratios, as text.

use crate::{Case, Goal, Most};

pub fn print(cases: &[Case], goals: &[Goal]) {
    println!("{:<44} {:>9}", "ns per operation (median of rounds)", "ns");
    for case in cases {
        println!("{:<44} {:>9.2}", case.name, median(case.rounds.clone()));
    }
    println!();
    println!("{:<62} {:>8} {:>8}", "relation, of the same rounds", "measured", "goal");
    for goal in goals {
        let find = |name: &str| cases.iter().find(|case| case.name == name);
        let (Some(of), Some(to)) = (find(goal.of), find(goal.to)) else {
            println!("{:<62} {:>8} {:>8}", goal.what, "not run", "");
            continue;
        };
        let pairs = of.rounds.iter().zip(&to.rounds);
        let (measured, most, unit) = match goal.most {
            Most::Ratio(most) => (median(pairs.map(|(a, b)| a / b).collect()), most, "x"),
            Most::Above(most) => (median(pairs.map(|(a, b)| a - b).collect()), most, "ns"),
        };
        let met = if measured <= most { "" } else { "  MISSED" };
        println!("{:<62} {:>6.2}{unit:<2} {:>6.2}{unit}{met}", goal.what, measured, most);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
