//! The names of the grammar and what each stands for.

use crate::policy::{Anchor, Kind, Mode, Unit};

const DAY: u64 = 86_400_000_000_000;
pub(super) const SECOND: u64 = 1_000_000_000;

/// The units of time, in the order in which `print` tries them: it takes the first that divides.
pub(super) const TIMES: [(Name, u64); 9] = [
    (name("day"), DAY),
    (name("d"), DAY),
    (name("h"), 3_600_000_000_000),
    (name("min"), 60_000_000_000),
    (name("s"), 1_000_000_000),
    (name("ms"), 1_000_000),
    (name("us"), 1_000),
    (name("ns"), 1),
    (name("sec"), 1_000_000_000),
];

pub(super) const SIZES: [(Name, u64); 6] = [
    (name("kb"), 1_000),
    (name("mb"), 1_000_000),
    (name("gb"), 1_000_000_000),
    (name("kib"), 1 << 10),
    (name("mib"), 1 << 20),
    (name("gib"), 1 << 30),
];

/// The options. The number of an option is its index in [`NAMES`] and in `Seen` (text.rs).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Opt {
    Burst,
    Algo,
    Init,
    Borrow,
    Anchor,
    Segments,
    Mode,
    Slack,
    Warm,
    Cold,
    Count,
    Unit,
}

const ALL: u8 = 0xff;

/// Each option's name, and the algorithms that have it: one bit for each [`Kind`].
pub(super) const NAMES: [(Name, Opt, u8); 12] = [
    (name("burst"), Opt::Burst, set(&[Kind::Gcra, Kind::Interval, Kind::Pacer, Kind::WarmUp])),
    (name("algo"), Opt::Algo, ALL),
    (name("init"), Opt::Init, set(&[Kind::Gcra])),
    (name("borrow"), Opt::Borrow, set(&[Kind::Gcra])),
    (name("anchor"), Opt::Anchor, set(&[Kind::Interval, Kind::FixedWindow, Kind::SlidingWindow])),
    (name("segments"), Opt::Segments, set(&[Kind::SlidingWindow])),
    (name("mode"), Opt::Mode, set(&[Kind::SlidingWindow])),
    (name("slack"), Opt::Slack, set(&[Kind::Pacer])),
    (name("warm"), Opt::Warm, set(&[Kind::WarmUp])),
    (name("cold"), Opt::Cold, set(&[Kind::WarmUp])),
    (name("count"), Opt::Count, set(&[Kind::FixedWindow, Kind::SlidingLog])),
    (name("unit"), Opt::Unit, ALL),
];

const fn set(kinds: &[Kind]) -> u8 {
    let mut set = 0;
    let mut i = 0;
    while i < kinds.len() {
        set |= 1 << kinds[i] as u32;
        i += 1;
    }
    set
}

pub(super) const ANCHORS: [(Name, Anchor); 2] = [(name("first"), Anchor::First), (name("epoch"), Anchor::Epoch)];
pub(super) const MODES: [(Name, Mode); 3] =
    [(name("n"), Mode::N), (name("strict"), Mode::Strict), (name("interpolated"), Mode::Interpolated)];
pub(super) const UNITS: [(Name, Unit); 2] = [(name("bytes"), Unit::Bytes), (name("permits"), Unit::Permits)];

pub(super) fn find<T: Copy>(from: &[(Name, T)], word: &[u8]) -> Option<T> {
    from.iter().find(|(name, _)| same(name, word)).map(|(_, value)| *value)
}

/// A name of the grammar. It is an array because the shared library would need a relocation for each pointer.
pub(super) type Name = [u8; 14];

/// `text`, padded with zeroes.
pub(super) const fn name(text: &str) -> Name {
    let bytes = text.as_bytes();
    let mut name = [0; 14];
    let mut i = 0;
    while i < bytes.len() {
        name[i] = bytes[i];
        i += 1;
    }
    name
}

pub(super) fn same(name: &Name, word: &[u8]) -> bool {
    name.get(..word.len()) == Some(word) && name.get(word.len()).map_or(true, |end| *end == 0)
}
