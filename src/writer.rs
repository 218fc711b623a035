//! Text into a caller's buffer, without memory of its own.

/// Writes bytes one after the other. It counts all bytes, and keeps those that fit.
pub struct Writer<'a> {
    out: &'a mut [u8],
    /// The number of bytes written, including those that did not fit.
    pub length: usize,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut [u8]) -> Writer<'a> {
        Writer { out, length: 0 }
    }

    pub fn byte(&mut self, byte: u8) {
        if let Some(place) = self.out.get_mut(self.length) {
            *place = byte;
        }
        self.length += 1;
    }

    pub fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.byte(byte));
    }

    /// A number in decimal digits.
    pub fn number(&mut self, n: u64) {
        if n >= 10 {
            self.number(n / 10);
        }
        self.byte(b'0' + (n % 10) as u8);
    }
}
