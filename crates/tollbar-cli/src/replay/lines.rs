//! Bytes as lines.

use std::io::{self, Read};

/// The part of a line that counts, in bytes.
pub const LINE_MOST: usize = 1 << 20;

/// Lines of any length from any source, in one buffer.
pub struct Lines<R> {
    source: R,
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    ended: bool,
    /// The rest of a line that was cut is being passed over.
    passing: bool,
    /// Lines given so far.
    pub number: u64,
}

/// A line without its end.
pub struct Line<'a> {
    /// The bytes.
    pub text: &'a [u8],
    /// Whether the line is longer than [`LINE_MOST`].
    pub cut: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `source`.
    pub fn new(source: R) -> Lines<R> {
        let buffer = vec![0; LINE_MOST].into_boxed_slice();
        Lines { source, buffer, begin: 0, end: 0, ended: false, passing: false, number: 0 }
    }

    /// The next line, or `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.passing {
            self.pass()?;
        }
        let mut seen = 0;
        loop {
            let have = self.end - self.begin;
            let rest = &self.buffer[self.begin..self.end];
            if let Some(at) = memchr::memchr(b'\n', &rest[seen..]) {
                return Ok(Some(self.give(seen + at, 1, false)));
            }
            if self.ended {
                return Ok(if have > 0 { Some(self.give(have, 0, false)) } else { None });
            }
            if have == LINE_MOST {
                self.passing = true;
                return Ok(Some(self.give(have, 0, true)));
            }
            seen = have;
            self.more()?;
        }
    }

    fn give(&mut self, length: usize, ending: usize, cut: bool) -> Line<'_> {
        let text = &self.buffer[self.begin..self.begin + length];
        self.begin += length + ending;
        self.number += 1;
        let text = if cut { text } else { text.strip_suffix(b"\r").unwrap_or(text) };
        Line { text, cut }
    }

    /// Reads behind the bytes that are there.
    fn more(&mut self) -> io::Result<()> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
        }
        let got = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.ended = got == 0;
        self.end += got;
        Ok(())
    }

    fn pass(&mut self) -> io::Result<()> {
        while self.passing {
            match memchr::memchr(b'\n', &self.buffer[self.begin..self.end]) {
                Some(at) => {
                    self.begin += at + 1;
                    self.passing = false;
                }
                None => {
                    self.begin = self.end;
                    match self.ended {
                        true => self.passing = false,
                        false => self.more()?,
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that gives a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let got = self.1.min(self.0.len()).min(out.len());
            out[..got].copy_from_slice(&self.0[..got]);
            self.0 = &self.0[got..];
            Ok(got)
        }
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        let mut text = b"one\r\n\n\r\nthree\0\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', LINE_MOST + 5));
        text.extend(b"\nlast");
        for drop in [1 << 16, 4093, 1 << 22] {
            let mut lines = Lines::new(Drops(&text, drop));
            let mut found = Vec::new();
            while let Some(line) = lines.next().expect("memory does not fail") {
                found.push((line.text.len(), line.cut));
            }
            assert_eq!(
                found,
                [(3, false), (0, false), (0, false), (6, false), (LINE_MOST, true), (4, false)]
            );
            assert_eq!(lines.number, 6);
        }
    }
}
