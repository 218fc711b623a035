//! Tables in files: files that `open` refuses and leaves alone, damaged files, and times after a
//! restart and a boot.

mod boots;
#[path = "../common/mod.rs"]
mod common;

use common::{away_from_edges, policy, Rng, DAY, HOUR, MIN, SEC};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, thread};
use tollbar::clock::Source;
use tollbar::table::{Call, Missing, OnFull, Options, PolicyId, RequestError, Table, TableError};
use tollbar::{Policy, Verdict};

const FIRST: PolicyId = PolicyId::FIRST;

/// The indices of the header's words: see src/table/memory/layout.rs. The first twelve words never
/// change, and the last of these is their checksum.
const LAYOUT: usize = 1;
const FIXED: usize = 13;
/// `boot`: the name of the boot that the table's clock belongs to, in two words.
const BOOT: usize = 13;
/// `offset`: what is added to the clock.
const OFFSET: usize = 15;
/// `table_time` and `wall_time`: the two clocks, read together.
const TABLE_TIME: usize = 16;
const WALL_TIME: usize = 17;
/// `inode`: the name of a file in tmpfs, otherwise 0.
const INODE: usize = 24;
/// `on_machine_clock`: 1 if the maker's clock was the machine's.
const ON_MACHINE_CLOCK: usize = 25;
/// The first record of a version, a policy with its checksum, is number 0, which is never used. A
/// record has 16 words.
const RECORDS: usize = 4096 / 8;

/// A directory that is removed when it is dropped.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("tollbar-files-{}-{n}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Dir(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn policies(texts: &[&str]) -> Vec<Policy> {
    texts.iter().map(|text| policy(text)).collect()
}

fn options() -> Options {
    Options::new(10).with_seed(12)
}

const TEXTS: [&str; 2] = ["60/h burst 20", "10/min algo fixed-window"];

fn make(path: &Path) -> Table {
    Table::file(path, &options(), &policies(&TEXTS)).unwrap()
}

fn words(path: &Path) -> Vec<u64> {
    fs::read(path)
        .unwrap()
        .chunks_exact(8)
        .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
        .collect()
}

fn write(path: &Path, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    fs::write(path, bytes).unwrap();
}

/// Opens the file in both ways. Each must return `error` and leave the file's bytes alone.
fn refused(path: &Path, error: TableError) {
    let before = fs::read(path).unwrap();
    assert_eq!(Table::open(path).err(), Some(error), "open");
    assert_eq!(Table::file(path, &options(), &policies(&TEXTS)).err(), Some(error), "file");
    assert!(fs::read(path).unwrap() == before, "{error:?}: the file was changed");
}

#[test]
fn another_table_is_refused_and_stays_as_it_is() {
    let dir = Dir::new();
    let path = dir.path("t");
    let table = make(&path);
    assert_eq!(table.take_up_to_at(FIRST, b"k", DAY, 20), 20);
    drop(table);
    let other = |options: Options, texts: &[&str], error| {
        let before = words(&path);
        assert_eq!(Table::file(&path, &options, &policies(texts)).err(), Some(error));
        let after = words(&path);
        let changed: Vec<usize> =
            (0..before.len()).filter(|&n| before.get(n) != after.get(n)).collect();
        assert_eq!(
            (before.len(), changed),
            (after.len(), vec![]),
            "{error:?}: words of the file were changed"
        );
    };
    use TableError::{OtherCapacity, OtherOptions, OtherPolicies};
    other(Options { capacity: 11, ..options() }, &TEXTS, OtherCapacity);
    other(Options { capacity: 1_000_000, ..options() }, &TEXTS, OtherCapacity);
    for on_full in [OnFull::Inherit, OnFull::Allow, OnFull::Deny] {
        other(Options { on_full, ..options() }, &TEXTS, OtherOptions);
    }
    for clock in [Source::Monotonic, Source::Coarse, Source::Wall] {
        other(Options { clock, ..options() }, &TEXTS, OtherOptions);
    }
    for missing in [Missing::Allow, Missing::Report] {
        other(Options { missing, ..options() }, &TEXTS, OtherOptions);
    }
    other(options(), &TEXTS[..1], OtherPolicies);
    other(options(), &[TEXTS[1], TEXTS[0]], OtherPolicies);
    other(options(), &[TEXTS[0], TEXTS[1], TEXTS[1]], OtherPolicies);
    other(options(), &["60/h burst 21", TEXTS[1]], OtherPolicies);
    other(Options { seed: Some(13), ..options() }, &TEXTS, OtherOptions);
    // These options may differ. Without a seed in the options the table keeps its own.
    let same = Options { mode: 0o640, huge_pages: false, seed: None, ..options() };
    let table = Table::file(&path, &same, &policies(&TEXTS)).unwrap();
    assert_eq!(table.admit_at(FIRST, b"k", DAY, 1), Verdict::Denied, "it is the same table");
}

/// A sparse copy of another table, as `cp --sparse` makes it, is refused before `open` reserves its
/// space.
#[test]
fn a_refused_file_takes_no_room() {
    let dir = Dir::new();
    let path = dir.path("t");
    let options = Options { seed: Some(12), ..Options::new(1_000_000) };
    drop(Table::file(&path, &options, &policies(&TEXTS)).unwrap());
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let copy = fs::File::create(&path).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    for (n, block) in
        bytes.chunks(4096).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0))
    {
        copy.write_all_at(block, n as u64 * 4096).unwrap();
    }
    let blocks = || fs::metadata(&path).unwrap().blocks();
    let before = blocks();
    assert!(before * 512 < bytes.len() as u64 / 10);
    let others = [
        (Options { capacity: 1_000_001, ..options }, &TEXTS[..], TableError::OtherCapacity),
        (Options { seed: Some(13), ..options }, &TEXTS[..], TableError::OtherOptions),
        (Options { on_full: OnFull::Allow, ..options }, &TEXTS[..], TableError::OtherOptions),
        (options, &TEXTS[..1], TableError::OtherPolicies),
        (options, &["60/h burst 20", "11/min algo fixed-window"][..], TableError::OtherPolicies),
        (
            options,
            &["60/h burst 20", "10/min algo fixed-window", "1/s"][..],
            TableError::OtherPolicies,
        ),
    ];
    for (options, texts, error) in others {
        assert_eq!(Table::file(&path, &options, &policies(texts)).err(), Some(error));
        assert_eq!(blocks(), before, "{error:?}");
    }
    drop(Table::file(&path, &options, &policies(&TEXTS)).unwrap());
    assert!(blocks() * 512 >= bytes.len() as u64);
}

#[test]
fn what_is_no_table_is_refused_and_stays_as_it_is() {
    let dir = Dir::new();
    let path = dir.path("t");
    drop(make(&path));
    let whole = fs::read(&path).unwrap();
    use TableError::{Corrupt, NotATable, Truncated, Version};
    // Truncated at any length, or longer.
    for length in [0, 1, 7, 8, 15, 16, 95, 96, 4095, 4096, 65_535, 65_536, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        refused(&path, if length < 8 { NotATable } else { Truncated });
    }
    for more in [1, 64, 4096, 1 << 20] {
        fs::write(&path, &whole).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len((whole.len() + more) as u64)
            .unwrap();
        refused(&path, Truncated);
    }
    let mut rng = Rng(1);
    let garbage: Vec<u8> = whole.iter().map(|_| rng.next() as u8).collect();
    for garbage in
        [garbage, vec![0; whole.len()], vec![0xff; whole.len()], b"tollbar\r\nlimits".to_vec()]
    {
        fs::write(&path, garbage).unwrap();
        refused(&path, NotATable);
    }
    let with = |change: &dyn Fn(&mut Vec<u64>)| {
        fs::write(&path, &whole).unwrap();
        let mut words = words(&path);
        change(&mut words);
        write(&path, &words);
    };
    with(&|words| words[LAYOUT] ^= 1);
    refused(&path, Version);
    with(&|words| words[LAYOUT] = 0);
    refused(&path, Version);
    with(&|words| words[FIXED - 1] ^= 1 << 63);
    refused(&path, Corrupt);
    // A whole header of a larger table, in a file of this one's length.
    let large = dir.path("large");
    drop(
        Table::file(&large, &Options { capacity: 100_000, ..options() }, &policies(&TEXTS))
            .unwrap(),
    );
    let head = words(&large);
    with(&|words| words[..512].copy_from_slice(&head[..512]));
    assert_eq!(Table::open(&path).err(), Some(Truncated));
    // For another capacity `open` returns that error first.
    assert_eq!(
        Table::file(&path, &options(), &policies(&TEXTS)).err(),
        Some(TableError::OtherCapacity)
    );
    let larger = Options { capacity: 100_000, ..options() };
    assert_eq!(Table::file(&path, &larger, &policies(&TEXTS)).err(), Some(Truncated));
}

/// A table with damaged memory may answer wrongly, but every call returns.
fn answers(table: &Table) {
    for n in [0, 1, 2, 127, 128] {
        let id = PolicyId::new(n);
        let _ = table.check(id, b"k", 1);
        let _ = table.check_at(id, b"new", DAY, 1);
        let _ = table.peek_at(id, b"k", DAY, 1);
        table.take_up_to_at(id, b"k", DAY, 3);
        let _ =
            (table.reset_at(id, b"k", DAY), table.policy(id), table.set_policy(id, &policy("7/s")));
        let _ = (table.exempt(id, b"e"), table.unexempt(id, b"e"));
    }
    let _ = table.add_policy(&policy("8/s"));
    table.sweep(0, u64::MAX, DAY);
    assert!(table.entries(DAY).count() as u64 <= table.slots());
    table.stats();
}

/// Each word of the header, those of the policies that are current and some beyond, is damaged in
/// four ways. The first twelve have a checksum. Damage to a later word is found, or does no harm.
#[test]
fn a_damaged_header_is_refused_or_does_no_harm() {
    let dir = Dir::new();
    let path = dir.path("t");
    let table = make(&path);
    assert!(table.check_at(FIRST, b"k", DAY, 1).is_allowed());
    drop(table);
    let whole = words(&path);
    for n in 0..200 {
        for damage in
            [|w: u64| !w, |w: u64| w ^ 1, |w: u64| w ^ 1 << 40, |w: u64| w.wrapping_add(1 << 16)]
        {
            let mut damaged = whole.clone();
            damaged[n] = damage(damaged[n]);
            write(&path, &damaged);
            if n < FIXED {
                let error =
                    [TableError::NotATable, TableError::Version, TableError::Corrupt][n.min(2)];
                refused(&path, error);
                continue;
            }
            if n == ON_MACHINE_CLOCK && damaged[n] == 0 {
                refused(&path, TableError::TimeNamespace);
                continue;
            }
            answers(&Table::open(&path).unwrap());
            write(&path, &damaged);
            match Table::file(&path, &options(), &policies(&TEXTS)) {
                Ok(table) => answers(&table),
                Err(TableError::OtherPolicies | TableError::Corrupt) => {}
                Err(other) => panic!("word {n}: {other}"),
            }
        }
    }
}

/// A policy with a wrong checksum refuses its keys with an error. Other policies decide as before.
#[test]
fn a_damaged_policy_denies_its_keys() {
    let dir = Dir::new();
    let path = dir.path("t");
    drop(make(&path));
    let whole = words(&path);
    let record = (1..256).map(|n| RECORDS + 16 * n).find(|&at| whole[at] > 1).unwrap();
    // Its checksum, and each of its fourteen words. Its stamp is word 0.
    for n in 1..16 {
        let mut damaged = whole.clone();
        damaged[record + n] ^= 1 << (n + 20);
        write(&path, &damaged);
        assert_eq!(
            Table::file(&path, &options(), &policies(&TEXTS)).err(),
            Some(TableError::Corrupt),
            "word {n}"
        );
        let table = Table::open(&path).unwrap();
        assert_eq!(table.policy(FIRST), Err(RequestError::Corrupt));
        assert_eq!(table.check(FIRST, b"k", 1).verdict, Verdict::Denied);
        assert_eq!(table.take_up_to(FIRST, b"k", 5), 0);
        assert_eq!(table.reset(FIRST, b"k"), Err(RequestError::Corrupt));
        assert!(table.check(PolicyId::new(1), b"k", 1).is_allowed());
        answers(&table);
    }
}

const CASE: &str = "TABLE_FILES_CASE";

/// Tests that change the whole process run as a child: this test, which does nothing in the parent.
#[test]
fn a_child() {
    let Some(case) = env::var_os(CASE) else { return };
    let dir = PathBuf::from(env::var_os("TABLE_FILES_DIR").unwrap());
    let path = dir.join("t");
    match case.to_str().unwrap() {
        "no room" => {
            let limit = libc::rlimit { rlim_cur: 100_000, rlim_max: 100_000 };
            // SAFETY: a valid limit.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
            let made = Table::file(&path, &options(), &policies(&TEXTS));
            assert_eq!(made.err(), Some(TableError::System(Call::Allocate, libc::EFBIG)));
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "something was left");
        }
        "nobody" => {
            // SAFETY: numbers only. A user other than root may not make this call, and need not.
            unsafe {
                libc::setgid(65534);
                libc::setuid(65534);
            }
            let denied = Some(TableError::System(Call::Open, libc::EACCES));
            assert_eq!(Table::open(&path).err(), denied);
            assert_eq!(Table::file(&path, &options(), &policies(&TEXTS)).err(), denied);
        }
        other => panic!("{other}"),
    }
}

fn child(case: &str, dir: &Dir) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "a_child"]).env(CASE, case).env("TABLE_FILES_DIR", &dir.0);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stdout));
}

/// A disk without room for the table, simulated by a limit on the size of files. (A full disk
/// itself is tested where the memory is: src/table/region/tests.)
#[test]
fn without_room_nothing_is_made() {
    child("no room", &Dir::new());
}

#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    let path = dir.path("t");
    drop(make(&path));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let before = fs::metadata(&path).unwrap();
    child("nobody", &dir);
    assert_eq!(before.modified().unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
}

/// The distance of the system's date to the zero of tables, in nanoseconds.
fn utc() -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since_1970.as_nanos() as u64 - tollbar::clock::TIME_ZERO
}

/// A daily window ends at midnight UTC in every kind of table, not a day after the machine's start.
/// (Real clocks: a busy machine may put seconds between two readings, and a test that runs over
/// midnight is not judged.)
#[test]
fn windows_begin_at_full_days_of_utc() {
    let dir = Dir::new();
    for clock in Source::ALL {
        let options = Options { clock, ..options() };
        let daily = policies(&["3/day algo fixed-window"]);
        let tables = [
            Table::private(&options, &daily).unwrap(),
            Table::shared(&options, &daily).unwrap(),
            Table::file(dir.path(&format!("{clock:?}")), &options, &daily).unwrap(),
        ];
        for table in tables {
            let before = utc();
            assert!(table.check(FIRST, b"k", 3).is_allowed());
            let refused = table.check(FIRST, b"k", 1);
            let left = DAY - before % DAY;
            if utc() / DAY == before / DAY {
                assert!(
                    refused.retry_after.abs_diff(left) < 30 * SEC,
                    "{clock:?}: {refused:?}, {left}"
                );
            }
            let zero = if clock == Source::Wall { tollbar::clock::TIME_ZERO } else { 0 };
            assert!((table.now() - zero).abs_diff(utc()) < 30 * SEC, "{clock:?}");
        }
    }
}

/// Two processes that were started before and after the system's clock was set have tables whose
/// times differ. A key's debt is copied as permits, at each table's own time.
#[test]
fn a_copy_from_a_table_of_another_time_keeps_what_keys_owe() {
    for policy in ["7/h burst 5", "5/h algo fixed-window", "7/h algo interval burst 5"] {
        for (ahead, behind) in [(0, HOUR), (3 * HOUR, 0)] {
            let dir = Dir::new();
            let path = dir.path("t");
            drop(Table::file(&path, &options(), &policies(&[policy])).unwrap());
            let mut header = words(&path);
            header[OFFSET] = header[OFFSET].wrapping_add(ahead).wrapping_sub(behind);
            write(&path, &header);
            let from = Table::open(&path).unwrap();
            // A permit of `7/h algo interval` comes back each 514 s, and seven times that is an
            // hour.
            away_from_edges(HOUR / 7);
            assert_eq!(from.take_up_to(FIRST, b"k", 4), 4);
            let to = Table::private(&options(), &policies(&[policy])).unwrap();
            assert!(from.now().abs_diff(to.now()) > HOUR / 2);
            assert_eq!(to.copy_from(&from, to.now()).unwrap().copied, 1, "{policy}");
            let (got, want) = (to.peek(FIRST, b"k", 1), from.peek(FIRST, b"k", 1));
            assert_eq!(got.remaining, want.remaining, "{policy}: {got:?}, {want:?}");
            assert!(got.retry_after <= HOUR);
        }
    }
}

/// Unix time has used up 56 of the 73 years that a state word can count. So a policy that ends
/// sooner is refused on this clock, because it would deny every request.
#[test]
fn a_policy_that_ends_too_soon_is_refused_on_the_wall_clock() {
    use tollbar::PolicyError::RateTooHigh;
    let (slow, fast) = (policies(&["5/min"]), policies(&["15000000000/s burst 1000"]));
    assert!(fast[0].last_time().unwrap() < slow[0].last_time().unwrap());
    let wall = Options { clock: Source::Wall, ..options() };
    assert_eq!(Table::private(&wall, &fast).err(), Some(TableError::Policy(RateTooHigh)));
    assert!(Table::private(&options(), &fast).is_ok());
    let table = Table::private(&wall, &slow).unwrap();
    assert_eq!(table.set_policy(FIRST, &fast[0]), Err(TableError::Policy(RateTooHigh)));
    assert!(table.check(FIRST, b"k", 1).is_allowed());
}

/// A program that opens a file again finds the table's room, and keys of windows with the permits
/// that they had left.
#[test]
fn a_file_keeps_its_room() {
    let dir = Dir::new();
    let path = dir.path("t");
    let texts = policies(&["20/h algo sliding-window segments 10", "10/min"]);
    let with = options().with_room(10);
    let table = Table::file(&path, &with, &texts).unwrap();
    let now = table.now();
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"k", now, 5), 5);
    assert_eq!(table.take_up_to_at(PolicyId::FIRST, b"k", now, 2), 2);
    drop(table);
    let other = Table::file(&path, &options().with_room(11), &texts).map(|_| ());
    assert_eq!(other, Err(TableError::OtherOptions));
    let table = Table::file(&path, &with, &texts).unwrap();
    assert_eq!(table.peek_at(PolicyId::FIRST, b"k", now, 1).remaining, 13);
    assert!(table.set_policy(PolicyId::FIRST, &policy("10/h algo sliding-log")).is_ok());
    assert_eq!(table.peek_at(PolicyId::FIRST, b"k", now, 1).remaining, 10);
}
