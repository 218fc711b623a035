//! What refused clients asked for.

use crate::text;
use hashbrown::HashMap;

/// Paths as numbers. To bound the memory, all paths after the first [`MOST`] share one number,
/// "(other paths)".
pub struct Paths {
    numbers: HashMap<Box<[u8]>, u32>,
    names: Vec<String>,
}

/// The most paths that have a name of their own.
const MOST: usize = 1 << 16;
/// Paths are equal if their first bytes are, this many.
const LENGTH: usize = 96;

/// No path.
pub const NONE: u32 = 0;
const OTHER: u32 = 1;

impl Paths {
    /// No paths yet.
    pub fn new() -> Paths {
        Paths { numbers: HashMap::new(), names: vec![String::new(), "(other paths)".to_owned()] }
    }

    /// The path's number. The query after a question mark is left out.
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

/// The paths of one client that were refused most often, by the Space-Saving algorithm. A path that
/// takes the place of another inherits its count, which may belong to other paths. The report
/// subtracts the inherited part.
#[derive(Clone, Debug, Default)]
pub struct Top(Vec<PathCount>);

#[derive(Clone, Copy, Debug)]
struct PathCount {
    path: u32,
    count: u32,
    /// The part of the count that may belong to other paths.
    inherited: u32,
}

/// Paths that are counted for each client.
const COUNTED: usize = 32;

impl Top {
    /// A request for this path was refused.
    pub fn add(&mut self, path: u32) {
        if let Some(one) = self.0.iter_mut().find(|one| one.path == path) {
            one.count = one.count.saturating_add(1);
        } else if self.0.len() < COUNTED {
            self.0.push(PathCount { path, count: 1, inherited: 0 });
        } else if let Some(least) = self.0.iter_mut().min_by_key(|one| one.count) {
            *least =
                PathCount { path, count: least.count.saturating_add(1), inherited: least.count };
        }
    }

    /// The most refused paths, in that order, each with the least number of its refusals.
    pub fn first(&self, most: usize) -> Vec<(u32, u32)> {
        let mut all: Vec<_> =
            self.0.iter().map(|one| (one.path, one.count - one.inherited)).collect();
        all.sort_by_key(|&(path, count)| (std::cmp::Reverse(count), path));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client asks for two thousand paths once each, and for two others more often. No count
    /// exceeds the real one.
    #[test]
    fn no_path_is_listed_more_often_than_it_was_refused() {
        let mut top = Top::default();
        for n in 0..2_000 {
            top.add(100 + n);
            if n % 4 == 0 {
                top.add(7);
            }
            if n % 10 == 0 {
                top.add(8);
            }
        }
        let first = top.first(3);
        assert!(first[0].0 == 7 && (400..=500).contains(&first[0].1), "{first:?}");
        assert!(first[1].0 != 8 || first[1].1 <= 200, "{first:?}");
        assert!(first[2].1 <= 1, "{first:?}");
    }
}
