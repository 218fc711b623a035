//! Zones from files of zone data (TZif, RFC 8536).
//!
//! Such a file has the changes of the past, often those of some years to come, and a rule for the
//! years after them. [`zone`] returns that rule if it gives every change from now on, or every one
//! after a single coming change. So a zone that follows the moon, whose changes are listed one by
//! one, is refused.

use super::text::law;
use super::{Law, Zone};

/// The longest file that is read, in bytes. The longest of the IANA database is below 4,096.
pub const FILE_MOST: usize = 8192;

/// The zone of a file's bytes from `now` on (Unix seconds). `None` if the bytes are no file of
/// version 2 or later, or if no rule gives the zone's future.
pub fn zone(file: &[u8], now: i64) -> Option<Zone> {
    let first = Block::of(file)?;
    let file = file.get(HEADER + first.length(4)?..)?;
    let block = Block::of(file)?;
    let footer = file.get(HEADER + block.length(8)?..)?.strip_prefix(b"\n")?;
    let law = law(footer.strip_suffix(b"\n")?)?;
    let data = file.get(HEADER..)?;
    let coming = block.changes(data).map_while(|change| change).find(|(at, _)| *at > now);
    // After the last change that the file lists, its rule holds.
    let Some((change, offset)) = coming else { return Some(Zone::of(law)) };
    let before = block.offset_before(data, now)?;
    if follows(&law, &block, data, now, before)? {
        return Some(Zone::of(law));
    }
    let until = u64::try_from(change).ok().filter(|until| *until != 0)?;
    follows(&law, &block, data, change, offset)?
        .then(|| Zone::changing(Law::fixed(before), until, law))
}

/// Whether the law gives the offset at `from`, and each later change of the file and no other.
fn follows(law: &Law, block: &Block, data: &[u8], from: i64, offset: i32) -> Option<bool> {
    let (mut at, mut offset) = (from, offset);
    if law.offset_at(at) != offset {
        return Some(false);
    }
    for change in block.changes(data) {
        let (when, next) = change?;
        // A change of the name alone keeps the offset.
        if when <= from || next == offset {
            continue;
        }
        if law.next_change(at) != Some(when) || law.offset_at(when) != next {
            return Some(false);
        }
        (at, offset) = (when, next);
    }
    Some(true)
}

const HEADER: usize = 44;

/// The counts of a header: UT marks, standard marks, leap seconds, changes, types, letters.
struct Block([usize; 6]);

impl Block {
    fn of(file: &[u8]) -> Option<Block> {
        let header = file.get(..HEADER)?;
        if !header.starts_with(b"TZif") || *header.get(4)? < b'2' {
            return None;
        }
        let mut counts = [0; 6];
        for (n, count) in counts.iter_mut().enumerate() {
            *count = number(header, 20 + 4 * n, 4)? as usize;
            // A file has no more than its bytes.
            if *count > FILE_MOST {
                return None;
            }
        }
        Some(Block(counts))
    }

    /// The length of the data after the header, if times have so many bytes.
    fn length(&self, time: usize) -> Option<usize> {
        let [ut, standard, leaps, changes, types, letters] = self.0;
        Some(changes * (time + 1) + types * 6 + letters + leaps * (time + 4) + standard + ut)
    }

    /// The changes in order: the instant, and the offset from then on. `None` for bytes that are
    /// missing.
    fn changes<'a>(&self, data: &'a [u8]) -> impl Iterator<Item = Option<(i64, i32)>> + 'a {
        let count = self.0[3];
        (0..count).map(move |n| {
            let kind = *data.get(8 * count + n)?;
            Some((number(data, 8 * n, 8)?, offset(data, count, kind.into())?))
        })
    }

    /// The offset in force at that instant.
    fn offset_before(&self, data: &[u8], now: i64) -> Option<i32> {
        let last =
            self.changes(data).map_while(|change| change).take_while(|(at, _)| *at <= now).last();
        match last {
            Some((_, offset)) => Some(offset),
            None => offset(data, self.0[3], 0),
        }
    }
}

/// The offset of a type.
fn offset(data: &[u8], changes: usize, kind: usize) -> Option<i32> {
    number(data, 9 * changes + 6 * kind, 4).map(|bits| bits as u32 as i32)
}

/// A number of that many bytes, most significant first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<i64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) as i64)
}
