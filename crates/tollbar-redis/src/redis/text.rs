//! A short text that is stored in place.

/// At most `N` bytes of text. Further bytes are dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// An empty text.
    pub const fn new() -> Self {
        Text { bytes: [0; N], len: 0 }
    }

    /// The bytes `of` as they are.
    pub(crate) fn of(of: &[u8]) -> Self {
        let mut text = Text::new();
        of.iter().for_each(|byte| _ = text.push(*byte));
        text
    }

    /// The bytes `of`, with `?` for each byte that is not printable ASCII, because a server's text
    /// ends in logs and terminals.
    pub fn printable(of: &[u8]) -> Self {
        let mut text = Text::new();
        text.add(of);
        text
    }

    /// Appends bytes, as [`Text::printable`] makes them.
    pub(crate) fn add(&mut self, of: &[u8]) {
        for &byte in of {
            let _ = self.push(if matches!(byte, b' '..=b'~') { byte } else { b'?' });
        }
    }

    /// Appends a byte; `false` if there is no room.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        match self.bytes.get_mut(self.len) {
            Some(place) => {
                *place = byte;
                self.len = self.len.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// Appends `more`, and drops what has no room.
    pub(crate) fn append(&mut self, more: &str) {
        for &byte in more.as_bytes() {
            let _ = self.push(byte);
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The text; empty if it is not UTF-8.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Text::new()
    }
}

impl<const N: usize> core::fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> core::fmt::Display for Text<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}
