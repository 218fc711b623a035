//! The memory of the process, and the memory and the refusals of a table that is 80 % full.

use crate::book::Book;
use crate::keys::{key, Key};
use crate::limit::SHUT;
use crate::measure::fill;
use crate::ours::Ours;
use crate::peers::governor;
use crate::who;
use tollbar::table::OnFull;

/// Resident memory of the process.
#[derive(Clone, Copy)]
pub struct Resident {
    pub kib: i64,
    /// The part of it that is in huge pages.
    pub huge_kib: i64,
}

/// Reads smaps_rollup, which walks the page tables. The counters of statm may lag behind by some
/// pages per processor.
pub fn resident() -> Resident {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux 4.14 or later");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0)
    };
    Resident { kib: field("Rss:"), huge_kib: field("AnonHugePages:") }
}

/// Makes a value. Returns it with the resident memory that making it added.
pub fn weighed<T>(make: impl FnOnce() -> T) -> (T, Resident) {
    let settled = || {
        // malloc may keep freed memory. If the new value reuses it, the measurement is too low; so
        // it is if malloc returns it to the system meanwhile. SAFETY: a call of libc without
        // conditions.
        unsafe { libc::malloc_trim(0) };
        resident()
    };
    let before = settled();
    let made = make();
    let after = settled();
    (made, Resident { kib: after.kib - before.kib, huge_kib: after.huge_kib - before.huge_kib })
}

impl Resident {
    /// Bytes per key.
    pub fn a_key(self, keys: usize) -> f64 {
        self.kib as f64 * 1024.0 / keys as f64
    }
}

/// The topic of the figures of a full table.
pub const FULL: &str = "a table that is 80 % full of keys with a debt";
pub const BYTES: &str = "bytes a key";
pub const HOMELESS: &str = "keys that find no slot";

/// Measures a table with keys that all owe in 80 % of its slots: bytes per key, and the keys that
/// find no slot. The table refuses those, so that they can be counted: by default it would evict
/// other keys for them.
pub fn full(book: &mut Book, keys: usize) {
    let now = Ours::now();
    // A new key has its permit, so it is refused only if there is no slot for it.
    let ((ours, placed), grown) = weighed(|| {
        let ours = Ours::that_on_full(OnFull::Deny, SHUT, keys);
        let placed = fill(keys, |key: &Key<8>| ours.admit_at(key, now));
        (ours, placed)
    });
    // Keys that have a slot owe, and so are refused now. Those that have none are refused again.
    assert!(
        (0..keys).all(|index| !ours.admit_at(&key::<8>(index), now)),
        "a key that owes was admitted"
    );
    let bytes = ours.bytes() as f64 / keys as f64;
    book.figure(FULL, BYTES, Some(who::TABLE), bytes, "B");
    book.figure(FULL, "growth of resident memory a key", Some(who::TABLE), grown.a_key(keys), "B");
    let huge = grown.huge_kib as f64 / (grown.kib as f64).max(1.0) * 100.0;
    book.figure(FULL, "of it in huge pages", Some(who::TABLE), huge, "%");
    book.figure(FULL, HOMELESS, Some(who::TABLE), (1.0 - placed) * 100.0, "%");
    // DashMap's shards double in size: measure as many keys as fit before they do, and a quarter
    // more.
    for (keys, what) in [(keys, BYTES), (keys * 5 / 4, "bytes a key, with a quarter more of them")]
    {
        let (_default, grown) = weighed(|| {
            let default = governor::Default::new(SHUT);
            fill(keys, |key| default.admit(key));
            default
        });
        book.figure(FULL, what, Some(who::GOVERNOR), grown.a_key(keys), "B");
    }
}
