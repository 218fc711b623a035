//! SVG on which charts are drawn, for light and for dark pages.

use plotters::prelude::*;
use std::path::Path;

/// The colour of text and axes.
pub const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
/// The colour of grid lines.
pub const GRID: RGBColor = RGBColor(0xd0, 0xd7, 0xde);
/// The colours of series. They differ on white, on near-black, and for readers who do not see red
/// and green as different.
pub const COLOURS: [RGBColor; 9] = [
    RGBColor(0x2f, 0x81, 0xf7),
    RGBColor(0xe3, 0x7a, 0x1e),
    RGBColor(0x8b, 0x94, 0x9e),
    RGBColor(0xa3, 0x71, 0xf7),
    RGBColor(0x1a, 0x9e, 0x77),
    RGBColor(0xd1, 0x5b, 0x9c),
    RGBColor(0xb0, 0x8a, 0x00),
    RGBColor(0x5b, 0xa3, 0xcf),
    RGBColor(0xc4, 0x4e, 0x3b),
];

pub const FONT: &str = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif";

pub type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// The background is the page's. On a dark page, text and grid change their colours.
const STYLE: &str = "<style>@media (prefers-color-scheme: dark) {\
[fill=\"#1F2328\"] { fill: #e6edf3 } [stroke=\"#1F2328\"] { stroke: #e6edf3 } [stroke=\"#D0D7DE\"] { stroke: #3d444d } \
}</style>\n";

/// Writes what `draw` draws.
pub fn write(path: &Path, size: (u32, u32), title: &str, draw: impl FnOnce(&Area)) {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area);
        area.present().expect("into memory");
    }
    let end = text.find('>').expect("an element") + 1;
    let head = format!("\n<title>{title}</title>\n{STYLE}");
    text.insert_str(end, &head);
    std::fs::write(path, text).expect("writable");
}

/// A line of text at a place.
pub fn say(area: &Area, text: &str, at: (i32, i32), size: u32, colour: RGBColor, side: Side) {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let horizontal = match side {
        Side::Left => HPos::Left,
        Side::Right => HPos::Right,
        Side::Middle => HPos::Center,
    };
    // plotters takes a line to be this many times as high as its letters.
    let style = (FONT, f64::from(size) * 1.24)
        .into_font()
        .color(&colour)
        .pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style)).expect("into memory");
}

/// The side of its point on which a text stands.
#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Middle,
    Right,
}

/// A number on an axis, or beside a point.
pub fn short(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", trimmed(value / 1e6)),
        1e3.. => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

/// Two significant digits, or all digits before the point.
fn trimmed(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    }
}
