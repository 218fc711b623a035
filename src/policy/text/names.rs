//! The names of the grammar and their meanings.

use crate::policy::{Anchor, Kind, Mode, Opt, Span, Unit};
use core::ffi::CStr;

const DAY: u64 = 86_400_000_000_000;
pub(super) const SECOND: u64 = 1_000_000_000;

const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The units of time, in the order in which `print` tries them. It takes the first unit that
/// divides the time. Other names of a unit come after all.
pub(super) const TIMES: [(Name, u64); 23] = [
    (name("day"), DAY),
    (name("h"), HOUR),
    (name("min"), MINUTE),
    (name("s"), SECOND),
    (name("ms"), 1_000_000),
    (name("us"), 1_000),
    (name("ns"), 1),
    (name("d"), DAY),
    (name("sec"), SECOND),
    (name("secs"), SECOND),
    (name("second"), SECOND),
    (name("seconds"), SECOND),
    (name("mins"), MINUTE),
    (name("minute"), MINUTE),
    (name("minutes"), MINUTE),
    (name("hr"), HOUR),
    (name("hrs"), HOUR),
    (name("hour"), HOUR),
    (name("hours"), HOUR),
    (name("days"), DAY),
    (name("w"), 7 * DAY),
    (name("week"), 7 * DAY),
    (name("weeks"), 7 * DAY),
];

/// The periods that only calendars have.
pub(super) const SPANS: [(Name, Span); 4] = [
    (name("month"), Span::Month),
    (name("months"), Span::Month),
    (name("year"), Span::Year),
    (name("years"), Span::Year),
];

/// The days of the week, as [`Policy::from`](crate::policy::Policy::from) counts them.
pub(super) const WEEKDAYS: [(Name, u32); 7] = [
    (name("mon"), 0),
    (name("tue"), 1),
    (name("wed"), 2),
    (name("thu"), 3),
    (name("fri"), 4),
    (name("sat"), 5),
    (name("sun"), 6),
];

pub(super) const SIZES: [(Name, u64); 6] = [
    (name("kb"), 1_000),
    (name("mb"), 1_000_000),
    (name("gb"), 1_000_000_000),
    (name("kib"), 1 << 10),
    (name("mib"), 1 << 20),
    (name("gib"), 1 << 30),
];

/// The name of each option, in the order of [`Opt::ALL`].
pub(super) const OPTIONS: [Name; Opt::ALL.len()] = {
    let mut names = [name(""); Opt::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = name(Opt::ALL[i].usage());
        i += 1;
    }
    names
};

/// The names of all algorithms, each with its aliases after it.
pub(super) const ALGORITHMS: [(Name, Kind); ALGORITHMS_LEN] = {
    let mut names = [(name(""), Kind::Gcra); ALGORITHMS_LEN];
    let (mut at, mut i) = (0, 0);
    while i < Kind::ALL.len() {
        let row = Kind::ALL[i].row();
        names[at] = (name(row.name), row.kind);
        at += 1;
        let mut j = 0;
        while j < row.aliases.len() {
            names[at] = (name(row.aliases[j]), row.kind);
            at += 1;
            j += 1;
        }
        i += 1;
    }
    names
};
const ALGORITHMS_LEN: usize = {
    let (mut len, mut i) = (0, 0);
    while i < Kind::ALL.len() {
        len += 1 + Kind::ALL[i].row().aliases.len();
        i += 1;
    }
    len
};

/// The expectation of a text that has no known option: one of all options.
pub(super) const ANY_OPTION: &CStr =
    expected(&const { OPTIONS_LIST.exact::<{ OPTIONS_LIST.len + 1 }>() });
/// The expectation of a text that has no known algorithm: one of all algorithms.
pub(super) const ANY_ALGORITHM: &CStr =
    expected(&const { ALGORITHMS_LIST.exact::<{ ALGORITHMS_LIST.len + 1 }>() });

const OPTIONS_LIST: NameList = {
    let mut list = NameList::new();
    let mut i = 0;
    while i < OPTIONS.len() {
        list = list.and(&OPTIONS[i], OPTIONS.len() - i);
        i += 1;
    }
    list
};
const ALGORITHMS_LIST: NameList = {
    let mut list = NameList::new();
    let mut i = 0;
    while i < ALGORITHMS.len() {
        list = list.and(&ALGORITHMS[i].0, ALGORITHMS.len() - i);
        i += 1;
    }
    list
};

pub(super) const ANCHORS: [(Name, Anchor); 2] =
    [(name("first"), Anchor::First), (name("epoch"), Anchor::Epoch)];
pub(super) const MODES: [(Name, Mode); 3] = [
    (name("n"), Mode::N),
    (name("strict"), Mode::Strict),
    (name("interpolated"), Mode::Interpolated),
];
pub(super) const UNITS: [(Name, Unit); 2] =
    [(name("bytes"), Unit::Bytes), (name("permits"), Unit::Permits)];

pub(super) fn find<T: Copy>(from: &[(Name, T)], word: &[u8]) -> Option<T> {
    from.iter().find(|(name, _)| same(name, word)).map(|(_, value)| *value)
}

/// A name of the grammar. It is an array because the shared library would need a relocation for
/// each pointer.
pub(super) type Name = [u8; 16];

/// The first word of `text`, padded with zeroes.
pub(super) const fn name(text: &str) -> Name {
    let bytes = text.as_bytes();
    let mut name = [0; 16];
    let mut i = 0;
    while i < bytes.len() && bytes[i] != b' ' {
        name[i] = bytes[i];
        i += 1;
    }
    name
}

pub(super) fn same(name: &Name, word: &[u8]) -> bool {
    name.get(..word.len()) == Some(word) && name.get(word.len()).map_or(true, |end| *end == 0)
}

/// "`a`, `b` or `c`", put together by the compiler.
struct NameList {
    text: [u8; 512],
    len: usize,
}

impl NameList {
    const fn new() -> NameList {
        NameList { text: [0; 512], len: 0 }
    }

    /// The list with one more name. `left` counts the names still to be added, this one included.
    const fn and(mut self, name: &Name, left: usize) -> NameList {
        if self.len != 0 {
            self = self.text(if left == 1 { b" or " } else { b", " });
        }
        let mut len = 0;
        while len < name.len() && name[len] != 0 {
            len += 1;
        }
        self.text(b"`").text(name.split_at(len).0).text(b"`")
    }

    const fn text(mut self, text: &[u8]) -> NameList {
        let mut i = 0;
        while i < text.len() {
            self.text[self.len] = text[i];
            self.len += 1;
            i += 1;
        }
        self
    }

    /// The text in its first `N` bytes, so that the library holds no more.
    const fn exact<const N: usize>(&self) -> [u8; N] {
        let mut exact = [0; N];
        let mut i = 0;
        while i < N {
            exact[i] = self.text[i];
            i += 1;
        }
        exact
    }
}

const fn expected(text: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(text) {
        Ok(text) => text,
        Err(_) => panic!("one NUL, at the end"),
    }
}
