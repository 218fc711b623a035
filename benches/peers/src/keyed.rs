//! Every set of keys in every order, for contenders in this process and in programs of their own.

use crate::book::Book;
use crate::keys::{key, Key, Order, Spread};
use crate::measure::{Amount, Contender};
use crate::one::Work;
use crate::process::Programs;
use crate::rows::{of_keys, Set, MEMORY, WEIGHED};
use crate::who::{self, Who};
use crate::Sizes;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The order of a set that fits into the caches is short, or reading it would drive the set out.
pub const CACHED_ORDER: usize = 1 << 15;

/// All sets.
pub fn rows(book: &mut Book, programs: Option<&Programs>, sizes: &Sizes) {
    let short = CACHED_ORDER.min(sizes.order);
    let all = Keyed { programs, files: Files::new() };
    let set = Set::new(book, 1, false);
    all.row(book, &set, Spread::Uniform, Work::Allowed, short, sizes.cached);

    let set = Set::new(book, sizes.small, false);
    all.fill(book, &set, false);
    for spread in [Spread::Uniform, Spread::Zipf] {
        all.row(book, &set, spread, Work::Allowed, short, sizes.cached);
    }
    drop(set);

    let set = Set::new(book, sizes.medium, true);
    all.fill(book, &set, true);
    for (spread, work) in [
        (Spread::Uniform, Work::Allowed),
        (Spread::Uniform, Work::Denied),
        (Spread::Uniform, Work::Mixed),
        (Spread::Zipf, Work::Allowed),
    ] {
        all.row(book, &set, spread, work, sizes.order, sizes.middling);
    }
    drop(set);

    let set = Set::new(book, sizes.large, false);
    all.fill(book, &set, false);
    for spread in [Spread::Uniform, Spread::Zipf] {
        all.row(book, &set, spread, Work::Allowed, sizes.order, sizes.cold);
    }
    set.isolated(book, &Order::new(set.keys, Spread::Uniform, sizes.order), sizes.isolated);
}

struct Keyed<'a> {
    programs: Option<&'a Programs>,
    files: Files,
}

/// A keyed peer in a program of its own.
struct Other<'a> {
    who: Who,
    peer: &'a str,
    program: &'a crate::process::Program,
}

impl<'a> Keyed<'a> {
    fn others(&self, keys: usize, work: Work) -> Vec<Other<'a>> {
        let Some(programs) = self.programs else { return Vec::new() };
        let mut all = vec![
            Other { who: who::X_TIME, peer: "x-time", program: &programs.go },
            Other { who: who::GUAVA, peer: "guava", program: &programs.java },
        ];
        // Inserting more would take minutes in Python, and Python is too slow to show the effects
        // of caches.
        if keys <= PYTHON_MOST && work == Work::Allowed {
            all.push(Other { who: who::LIMITS, peer: "limits", program: &programs.python });
            all.push(Other { who: who::PYRATE, peer: "pyrate", program: &programs.python });
        }
        all
    }

    fn fill(&self, book: &mut Book, set: &Set, refusing: bool) {
        let Some(programs) = self.programs else { return };
        for program in programs.all() {
            program.forget();
        }
        let file = self.files.keys(set.keys);
        for other in self.others(set.keys, Work::Allowed) {
            let bytes = other.program.fill(other.peer, Work::Allowed.name(), &file);
            if set.keys >= WEIGHED {
                book.figure(MEMORY, &of_keys(set.keys), Some(other.who), bytes, "B");
            }
        }
        for other in self.others(set.keys, Work::Denied).iter().filter(|_| refusing) {
            other.program.fill(other.peer, Work::Denied.name(), &file);
        }
    }

    fn row(
        &self,
        book: &mut Book,
        set: &Set,
        spread: Spread,
        work: Work,
        length: usize,
        amount: Amount,
    ) {
        let order = Order::<8>::new(set.keys, spread, length);
        let others = if set.keys > 1 { self.others(set.keys, work) } else { Vec::new() };
        if !others.is_empty() {
            let file = self.files.order(&order);
            for program in self.programs.into_iter().flat_map(Programs::all) {
                program.order(&file);
            }
        }
        let contenders = || -> Vec<Contender> {
            others
                .iter()
                .map(|other| other.program.keyed(other.who, other.peer, work.name()))
                .collect()
        };
        set.row(book, &order, &set.title(spread, work), work, &[1, 2], contenders, amount);
    }
}

/// The largest set that the peers in Python are given.
pub const PYTHON_MOST: usize = 1_000_000;

/// Keys and orders for the programs: words of eight bytes, as they are in memory.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        let directory = std::env::temp_dir().join(format!("tollbar-peers-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        Files(directory)
    }

    fn keys(&self, keys: usize) -> PathBuf {
        self.write("keys", (0..keys).map(key::<8>))
    }

    fn order(&self, order: &Order<8>) -> PathBuf {
        self.write("order", order.keys().iter().copied())
    }

    fn write(&self, name: &str, keys: impl Iterator<Item = Key<8>>) -> PathBuf {
        let path = Path::new(&self.0).join(name);
        let mut file = BufWriter::new(std::fs::File::create(&path).expect("a file"));
        for key in keys {
            file.write_all(&key).expect("room");
        }
        file.flush().expect("room");
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
