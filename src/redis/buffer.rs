//! A fixed block of bytes, filled at one end and emptied at the other.

use alloc::boxed::Box;

/// ```text
/// 0        start        end        len
/// | taken    | in use     | room     |
/// ```
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// `None` where there is no memory.
    pub(super) fn new(len: usize) -> Option<Buffer> {
        Some(Buffer { bytes: zeroed(len.max(1))?, start: 0, end: 0 })
    }

    /// The bytes in use.
    pub(super) fn used(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// All the room there is, made one piece.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let used = self.used().len();
        if self.start > 0 {
            let base = self.bytes.as_mut_ptr();
            // SAFETY: `start + used` is at most the block's length, by `used`; `copy` allows the two to overlap.
            unsafe { core::ptr::copy(base.add(self.start), base, used) };
        }
        (self.start, self.end) = (0, used);
        self.bytes.get_mut(used..).unwrap_or_default()
    }

    /// `n` bytes of the room have been filled.
    pub(super) fn filled(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.bytes.len());
    }

    /// The first `n` bytes in use have been dealt with.
    pub(super) fn taken(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    /// What was in use before the last `taken`, if nothing has been moved since: its last `n` bytes.
    pub(super) fn last_taken(&self, n: usize) -> &[u8] {
        self.start.checked_sub(n).and_then(|from| self.bytes.get(from..self.start)).unwrap_or_default()
    }

    /// Whether everything is in use.
    pub(super) fn is_full(&self) -> bool {
        self.used().len() == self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }
}

/// `len` zeroes, `len` not being 0. Not through `Vec`, whose ways to grow bring code that can panic.
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
    // SAFETY: a fresh block of that layout, all of it written, from the allocator that Box frees with.
    Some(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(block, len)) })
}
