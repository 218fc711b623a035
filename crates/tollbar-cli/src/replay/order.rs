//! Lines in the order of their times.
//!
//! A line waits until the log is `window` past its time; an older line that comes meanwhile goes
//! before it. Memory is for the lines of one window, and for [`PENDING_MOST`] of them at most.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// One request of the log, as it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Nanoseconds. First, because events are sorted by time and then by their place in the log.
    pub time: u64,
    /// The number of the request in the log, from 0.
    pub sequence: u64,
    /// The key's number.
    pub key: u32,
    /// The path's number ([`crate::report::paths`]).
    pub path: u32,
    /// Permits.
    pub cost: u64,
    /// The class's number among the names of the log's classes, from 1; 0 for none.
    pub class: u32,
}

/// The most events that wait: 40 bytes each.
pub const PENDING_MOST: usize = 1 << 22;

/// Sorts events that are late by up to a window. 0: every event goes on at once.
pub struct Order {
    window: u64,
    /// Events that came in order: the usual case costs no heap.
    run: VecDeque<Event>,
    /// The others.
    late: BinaryHeap<Reverse<Event>>,
    newest: u64,
    /// The time of the newest event that has gone on.
    gone: u64,
    /// What was seen of the log's order.
    pub seen: Seen,
}

/// What was seen of a log's order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Lines with an earlier time than some line before them.
    pub backwards: u64,
    /// How late the latest of them came, in nanoseconds.
    pub latest: u64,
    /// Lines that came after a newer one had been decided on.
    pub too_late: u64,
}

impl Order {
    /// An order with a window of so many nanoseconds.
    pub fn new(window: u64) -> Order {
        Order {
            window,
            run: VecDeque::new(),
            late: BinaryHeap::new(),
            newest: 0,
            gone: 0,
            seen: Seen::default(),
        }
    }

    /// Takes an event. Call [`Order::next`] until it has no more.
    #[inline]
    pub fn push(&mut self, event: Event) {
        if event.time < self.newest {
            self.seen.backwards += 1;
            self.seen.latest = self.seen.latest.max(self.newest - event.time);
        } else {
            self.newest = event.time;
        }
        if self.window == 0 || self.run.back().is_none_or(|last| last.time <= event.time) {
            self.run.push_back(event);
        } else {
            self.late.push(Reverse(event));
        }
    }

    /// The next event whose turn it is; with `all`, the next of those that wait.
    #[inline]
    pub fn next(&mut self, all: bool) -> Option<Event> {
        let first = match (self.run.front(), self.late.peek()) {
            (Some(run), Some(Reverse(late))) if late < run => *late,
            (Some(run), _) => *run,
            (None, Some(Reverse(late))) => *late,
            (None, None) => return None,
        };
        let is_due = self.window == 0
            || all
            || first.time.saturating_add(self.window) <= self.newest
            || self.run.len() + self.late.len() > PENDING_MOST;
        if !is_due {
            return None;
        }
        match self.late.peek() {
            Some(Reverse(late)) if *late == first => {
                self.late.pop();
            }
            _ => {
                self.run.pop_front();
            }
        }
        if first.time < self.gone {
            self.seen.too_late += 1;
        } else {
            self.gone = first.time;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(window: u64, times: &[u64]) -> (Vec<u64>, Seen) {
        let mut order = Order::new(window);
        let mut out = Vec::new();
        for (n, &time) in times.iter().enumerate() {
            order.push(Event { time, sequence: n as u64, key: 0, path: 0, cost: 1, class: 0 });
            while let Some(event) = order.next(false) {
                out.push(event.time);
            }
        }
        while let Some(event) = order.next(true) {
            out.push(event.time);
        }
        (out, order.seen)
    }

    #[test]
    fn late_lines_go_before_newer_ones() {
        let times = [10, 12, 11, 30, 12, 25, 29, 31];
        let (out, seen) = sorted(20, &times);
        assert_eq!(out, [10, 11, 12, 12, 25, 29, 30, 31]);
        assert_eq!((seen.backwards, seen.latest, seen.too_late), (4, 18, 0));
    }

    #[test]
    fn a_line_that_is_older_than_the_window_goes_on_at_once() {
        let (out, seen) = sorted(5, &[10, 20, 30, 3, 31]);
        assert_eq!(out, [10, 20, 3, 30, 31]);
        assert_eq!((seen.backwards, seen.latest, seen.too_late), (1, 27, 1));
    }

    #[test]
    fn no_window_keeps_the_order_of_the_file() {
        let (out, seen) = sorted(0, &[3, 1, 2]);
        assert_eq!(out, [3, 1, 2]);
        assert_eq!((seen.backwards, seen.latest, seen.too_late), (2, 2, 2));
    }

    #[test]
    fn requests_of_one_time_keep_their_order() {
        let mut order = Order::new(100);
        for (sequence, time) in [(0, 5), (1, 9), (2, 5), (3, 5)] {
            order.push(Event { time, sequence, key: 0, path: 0, cost: 1, class: 0 });
        }
        let mut out = Vec::new();
        while let Some(event) = order.next(true) {
            out.push(event.sequence);
        }
        assert_eq!(out, [0, 2, 3, 1]);
    }
}
