//! Windows and logs against their definitions, decision by decision, on 10⁵ random traces each.

use crate::oracle::calendars::Windows;
use crate::oracle::windows::{Counter, Segments, Times, Weighted};
use crate::oracle::{compare, Step};

const ALL: u64 = 100_000;

#[test]
fn fixed_window() {
    let texts = [
        "10/s algo fixed-window",
        "3/min algo fixed-window count rejected",
        "5/7ns algo fixed-window",
        "3/min algo fixed-window anchor first",
        "10/s algo fixed-window anchor first",
        "200/s algo fixed-window anchor first count rejected",
    ];
    for text in texts {
        compare(text, ALL / 6 + 1, Step(1), |policy| Box::new(Counter::new(policy)));
    }
}

#[test]
fn calendar() {
    let texts = [
        "3/day algo calendar",
        "5/day zone STD-1DST,M3.5.0,M10.5.0/3",
        "5/day zone STD-2DST,M4.5.5/0,M10.5.4/24",
        "9/week from sun zone STD-10:30DST-11,M10.1.0,M4.1.0",
        "7/month from 31 zone STD5DST,M3.2.0,M11.1.0",
        "7/year from 02-29",
    ];
    for text in texts {
        compare(text, ALL / 60, Step(1), |policy| Box::new(Windows::new(policy)));
    }
}

#[test]
fn weighted_window() {
    let texts = [
        "10/s algo weighted-window",
        "3/min algo weighted-window",
        "5/1000ns algo weighted-window",
        "100/min algo weighted-window",
        "7/333333333ns algo weighted-window",
    ];
    for text in texts {
        compare(text, ALL / 5, Step(1), |policy| Box::new(Weighted::new(policy)));
    }
}

#[test]
fn sliding_window() {
    let mut texts = Vec::new();
    for mode in ["n", "strict", "interpolated"] {
        texts.push(format!("6/s algo sliding-window segments 5 mode {mode}"));
        texts.push(format!("10/min algo sliding-window segments 3 mode {mode}"));
        texts.push(format!("3/6us algo sliding-window segments 1 mode {mode}"));
        texts.push(format!("10/3s algo sliding-window anchor first segments 6 mode {mode}"));
    }
    for text in &texts {
        compare(text, ALL / 12 + 1, Step(1), |policy| Box::new(Segments::new(policy)));
    }
}

#[test]
fn sliding_log() {
    let texts = [
        "10/s algo sliding-log",
        "3/min algo sliding-log",
        "1/s algo sliding-log",
        "5/7ns algo sliding-log",
        "10/s algo sliding-log count rejected",
        "3/min algo sliding-log count rejected",
    ];
    for text in texts {
        compare(text, ALL / 6 + 1, Step(1), |policy| Box::new(Times::new(policy)));
    }
}
