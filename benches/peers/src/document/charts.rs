//! The two kinds of charts: points in rows, and lines. Both axes that carry figures are
//! logarithmic, since the slowest is thousands of times the fastest.

use super::paper::{say, short, write, Side, COLOURS, GRID, INK};
use plotters::prelude::*;
use std::path::Path;

/// A row of points.
pub struct Dots {
    pub name: String,
    pub bold: bool,
    /// One for each series; NaN where there is none.
    pub values: Vec<f64>,
}

const WIDTH: u32 = 900;

/// Rows of points on one axis, the best first; `series` names the points of a row.
pub fn dots(path: &Path, title: &str, unit: &str, series: &[&str], mut rows: Vec<Dots>) {
    rows.retain(|row| row.values.iter().any(|value| value.is_finite()));
    let first = |row: &Dots| {
        row.values.iter().copied().find(|value| value.is_finite()).unwrap_or(f64::INFINITY)
    };
    rows.sort_by(|one, other| first(one).total_cmp(&first(other)));
    let (row_height, top, bottom, left) = (26, 78, 48, 310);
    let height = top + bottom + row_height * rows.len() as i32;
    let values = rows.iter().flat_map(|row| &row.values).copied().filter(|value| value.is_finite());
    let (least, most) = values
        .fold((f64::INFINITY, 0f64), |(least, most), value| (least.min(value), most.max(value)));
    let range = 10f64.powf(least.log10().floor())..most * 2.0;
    write(path, (WIDTH, height as u32), title, |area| {
        say(area, title, (16, 22), 17, INK, Side::Left);
        for (number, name) in series.iter().enumerate().filter(|_| series.len() > 1) {
            let x = left + 130 * number as i32;
            area.draw(&Circle::new((x, 50), 5, COLOURS[number].filled())).expect("into memory");
            say(area, name, (x + 12, 50), 13, INK, Side::Left);
        }
        let span = f64::log10(range.end / range.start);
        let x = |value: f64| {
            left + (f64::log10(value / range.start) / span * f64::from(WIDTH as i32 - left - 60))
                as i32
        };
        let (above, below) = (top - 10, height - bottom + 6);
        for tick in ticks(&range) {
            area.draw(&PathElement::new(vec![(x(tick), above), (x(tick), below)], GRID))
                .expect("into memory");
            say(area, &short(tick), (x(tick), below + 12), 12, INK, Side::Middle);
        }
        say(area, unit, ((left + WIDTH as i32) / 2, height - 14), 13, INK, Side::Middle);
        for (number, row) in rows.iter().enumerate() {
            let y = top + row_height * number as i32 + row_height / 2;
            if row.bold {
                let mark =
                    Rectangle::new([(left - 10, y - 9), (left - 6, y + 9)], COLOURS[0].filled());
                area.draw(&mark).expect("into memory");
            }
            say(area, &row.name, (left - 16, y), 13, INK, Side::Right);
            let mut seen: Vec<_> =
                row.values.iter().copied().enumerate().filter(|(_, v)| v.is_finite()).collect();
            seen.sort_by(|(_, one), (_, other)| one.total_cmp(other));
            if let (Some((_, from)), Some((_, to))) = (seen.first(), seen.last()) {
                let line = PathElement::new(vec![(x(*from), y), (x(*to), y)], GRID.stroke_width(3));
                area.draw(&line).expect("into memory");
            }
            for (series, value) in &seen {
                area.draw(&Circle::new((x(*value), y), 5, COLOURS[*series].filled()))
                    .expect("into memory");
            }
            let texts: Vec<_> = row
                .values
                .iter()
                .filter(|value| value.is_finite())
                .map(|value| short(*value))
                .collect();
            let last = seen.last().map_or(left, |(_, value)| x(*value));
            say(area, &texts.join(" / "), (last + 12, y), 12, INK, Side::Left);
        }
    });
}

/// The ticks of an axis: decades, and the numbers between if there are few decades.
fn ticks(range: &std::ops::Range<f64>) -> Vec<f64> {
    let (from, to) = (range.start.log10().floor() as i32, range.end.log10().ceil() as i32);
    let steps: &[f64] = if to - from <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all =
        (from..=to).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    all.filter(|tick| range.contains(tick)).collect()
}

/// One line.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// The number of points, from the first on, that were measured. They are drawn as points; the
    /// others are the model's.
    pub measured: usize,
}

/// Lines with their names at their ends.
pub fn lines(
    path: &Path,
    title: &str,
    (x_unit, y_unit): (&str, &str),
    x_labels: &[f64],
    lines: &[Line],
) {
    let all = || lines.iter().flat_map(|line| &line.points);
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        all()
            .map(of)
            .fold((f64::INFINITY, 0f64), |(least, most), value| (least.min(value), most.max(value)))
    };
    let ((x_least, x_most), (y_least, y_most)) = (bounds(|point| point.0), bounds(|point| point.1));
    let (width, height, left, right, top, bottom) = (WIDTH as i32, 480, 56, 300, 64, 56);
    let range = y_least / 1.5..y_most * 1.5;
    let x = |value: f64| {
        left + ((value / x_least).ln() / (x_most / x_least).ln() * f64::from(width - left - right))
            as i32
    };
    let rise = |value: f64| (value / range.start).ln() / (range.end / range.start).ln();
    let y = |value: f64| height - bottom - (rise(value) * f64::from(height - top - bottom)) as i32;
    write(path, (WIDTH, height as u32), title, |area| {
        say(area, title, (16, 22), 17, INK, Side::Left);
        say(area, y_unit, (16, 44), 13, INK, Side::Left);
        for tick in ticks(&range) {
            area.draw(&PathElement::new(vec![(left, y(tick)), (width - right, y(tick))], GRID))
                .expect("into memory");
            say(area, &short(tick), (left - 8, y(tick)), 12, INK, Side::Right);
        }
        for &label in x_labels {
            let mark = vec![(x(label), height - bottom), (x(label), height - bottom + 5)];
            area.draw(&PathElement::new(mark, INK)).expect("into memory");
            say(area, &short(label), (x(label), height - bottom + 16), 12, INK, Side::Middle);
        }
        let axis = vec![(left, height - bottom), (width - right, height - bottom)];
        area.draw(&PathElement::new(axis, INK)).expect("into memory");
        say(area, x_unit, ((left + width - right) / 2, height - 14), 13, INK, Side::Middle);
        // Keeps names apart: from the lowest end upwards, each is at least a line above the one
        // below.
        let mut ends: Vec<_> = lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| Some((at, line.points.last()?.1)))
            .collect();
        ends.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let mut free = height - bottom;
        for (at, end) in ends {
            let (line, colour) = (&lines[at], COLOURS[at % COLOURS.len()]);
            let points: Vec<_> = line.points.iter().map(|point| (x(point.0), y(point.1))).collect();
            for point in points.iter().take(line.measured) {
                area.draw(&Circle::new(*point, 4, colour.filled())).expect("into memory");
            }
            area.draw(&PathElement::new(points, colour.stroke_width(2))).expect("into memory");
            let place = y(end).min(free);
            free = place - 16;
            let from = (width - right + 4, y(end));
            area.draw(&PathElement::new(vec![from, (width - right + 16, place)], colour))
                .expect("into memory");
            say(
                area,
                &format!("{}: {}", line.name, short(end)),
                (width - right + 20, place),
                12,
                INK,
                Side::Left,
            );
        }
    });
}
