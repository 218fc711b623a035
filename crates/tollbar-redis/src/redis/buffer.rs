//! A block of bytes of fixed size, filled at one end and emptied at the other.

use alloc::boxed::Box;

/// ```text
/// 0        start        end        len
/// | taken    | in use     | room     |
/// ```
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// A buffer of `len` bytes, at least 1; `None` if there is no memory.
    pub(crate) fn new(len: usize) -> Option<Buffer> {
        Some(Buffer { bytes: zeroed(len.max(1))?, start: 0, end: 0 })
    }

    /// The bytes in use.
    pub(crate) fn used(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// All free bytes as one slice. It moves the bytes in use to the front.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let used = self.used().len();
        if self.start > 0 {
            let base = self.bytes.as_mut_ptr();
            // SAFETY: `start + used` is at most the block's length, by `used`; `copy` allows the
            // two to overlap.
            unsafe { core::ptr::copy(base.add(self.start), base, used) };
        }
        (self.start, self.end) = (0, used);
        self.bytes.get_mut(used..).unwrap_or_default()
    }

    /// Takes the first `n` bytes of the room into use.
    pub(crate) fn filled(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.bytes.len());
    }

    /// Frees the first `n` bytes in use.
    pub(crate) fn taken(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    /// The last `n` bytes that `taken` freed. They are valid until the next `room`.
    pub(crate) fn last_taken(&self, n: usize) -> &[u8] {
        self.start
            .checked_sub(n)
            .and_then(|from| self.bytes.get(from..self.start))
            .unwrap_or_default()
    }

    /// Whether everything is in use.
    pub(crate) fn is_full(&self) -> bool {
        self.used().len() == self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

/// `len` zero bytes; `None` if `len` is 0 or there is no memory. Not through `Vec`, whose growth
/// brings code that can panic.
fn zeroed(len: usize) -> Option<Box<[u8]>> {
    let layout = core::alloc::Layout::array::<u8>(len).ok()?;
    if len == 0 {
        return None;
    }
    // SAFETY: the layout's size is not 0.
    let block = unsafe { alloc::alloc::alloc_zeroed(layout) };
    if block.is_null() {
        return None;
    }
    // SAFETY: the block has `layout`, is zeroed, and comes from the allocator that Box frees with.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(block, len)) })
}
