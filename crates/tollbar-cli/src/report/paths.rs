//! What refused clients asked for.

use crate::text;
use hashbrown::HashMap;

/// Paths as numbers. Memory is bounded: paths beyond the first [`MOST`] are one, "(other paths)".
pub struct Paths {
    numbers: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
}

/// The most paths that have a name of their own.
const MOST: usize = 1 << 16;
/// The bytes of a path that count.
const LENGTH: usize = 96;

/// No path.
pub const NONE: u32 = 0;
const OTHER: u32 = 1;

impl Paths {
    /// No paths yet.
    pub fn new() -> Paths {
        Paths { numbers: HashMap::new(), names: vec![String::new(), "(other paths)".to_owned()] }
    }

    /// The path's number. What follows a question mark does not count.
    pub fn number(&mut self, path: &[u8]) -> u32 {
        if path.is_empty() {
            return NONE;
        }
        let end = memchr::memchr(b'?', path).unwrap_or(path.len()).min(LENGTH);
        let short = &path[..end];
        if let Some(&number) = self.numbers.get(short) {
            return number;
        }
        if self.names.len() >= MOST {
            return OTHER;
        }
        let number = self.names.len() as u32;
        let mut name = text::plain_line(short);
        if end == LENGTH {
            name.push('…');
        }
        self.names.push(name);
        self.numbers.insert(short.into(), number);
        number
    }

    /// The path as text.
    pub fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// The paths of one client that were refused most often, by the Space-Saving algorithm: the counts of rare ones may be too high.
#[derive(Clone, Debug, Default)]
pub struct Top(Vec<(u32, u32)>);

/// Paths that are counted for each client.
const COUNTED: usize = 8;

impl Top {
    /// A request for this path was refused.
    pub fn add(&mut self, path: u32) {
        if let Some((_, count)) = self.0.iter_mut().find(|(of, _)| *of == path) {
            *count = count.saturating_add(1);
        } else if self.0.len() < COUNTED {
            self.0.push((path, 1));
        } else if let Some(least) = self.0.iter_mut().min_by_key(|(_, count)| *count) {
            *least = (path, least.1.saturating_add(1));
        }
    }

    /// The first few, the most refused first.
    pub fn first(&self, most: usize) -> Vec<(u32, u32)> {
        let mut all = self.0.clone();
        all.sort_by_key(|&(path, count)| (std::cmp::Reverse(count), path));
        all.truncate(most);
        all
    }
}
