//! Processes that share a table are killed at any moment, or stopped for a while. No other process
//! waits for them, no slot stays stuck, no key is admitted more than its bound, and each killed
//! process loses at most its last step.
//!
//! Some dozens of kills in a normal run; `TOLLBAR_SOAK=kills`, such as 1000, for that many on each
//! kind of table.
//!
//! This test needs real time, because only the system's scheduler decides at which instruction a
//! process is killed. All bounds are some hundred times what an idle machine needs.

mod common;

use common::{policy, Rng};
use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tollbar::table::{OnFull, Options, PolicyId, Request, Table};
use tollbar::{Policy, Verdict};

/// Processes at a time.
const PROCESSES: usize = 4;
/// Keys whose admissions are counted. Together with other keys that come and go they fill the
/// table.
const KEYS: u64 = 3_000;
/// A period in which no permit is refilled during the test.
const HOT: &str = "1/h burst 1000000";
const BURST: u64 = 1_000_000;
/// How long a living process may take for a step before it counts as waiting for a dead one.
const PATIENCE: Duration = Duration::from_secs(120);

const HOT_ID: PolicyId = PolicyId::new(0);
const BRIEF_ID: PolicyId = PolicyId::new(1);
const OTHER_ID: PolicyId = PolicyId::new(2);

fn policies() -> [Policy; 3] {
    [policy(HOT), policy("1000/s burst 5"), policy("7/s algo fixed-window")]
}

fn kills() -> u64 {
    env::var("TOLLBAR_SOAK").map_or(25, |n| n.parse().unwrap())
}

/// So many permits of counted keys are admitted before the storm ends, lest its checks prove
/// nothing.
fn least_admitted() -> u64 {
    1_000 * kills().min(100)
}

fn options() -> Options {
    // The smallest table there is, with 5,120 slots. Deny: the test compares each key's charges
    // with its admissions, so the table must forget no key.
    let options = Options::new(1).with_seed(6).with_on_full(OnFull::Deny);
    Options { clock: tollbar::clock::Source::Monotonic, ..options }
}

/// Words that all processes share: each process's number of steps, a failed assertion, and the
/// permits that it was admitted of each key.
struct Board(&'static [AtomicU64]);

impl Board {
    const STEPS: usize = 0;
    const WRONG: usize = PROCESSES;
    const COUNTS: usize = 2 * PROCESSES;
    const WORDS: usize = Board::COUNTS + KEYS as usize;

    /// A board in a file, or without a file for children that are forked later.
    fn new(file: Option<&Path>) -> Board {
        let bytes = Board::WORDS * 8;
        let file = file.map(|path| {
            let file = fs::File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .unwrap();
            file.set_len(bytes as u64).unwrap();
            file
        });
        let (fd, kind) = file.as_ref().map_or((-1, libc::MAP_ANON), |file| (file.as_raw_fd(), 0));
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the file's length, or of no file. It stays for as long as the
        // process.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED | kind, fd, 0)
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the mapping is that long, aligned to a page, and only ever used as atomics.
        Board(unsafe { std::slice::from_raw_parts(at.cast(), Board::WORDS) })
    }

    fn steps(&self, process: usize) -> &AtomicU64 {
        &self.0[Board::STEPS + process]
    }

    fn count(&self, key: u64) -> &AtomicU64 {
        &self.0[Board::COUNTS + key as usize]
    }

    fn admitted(&self) -> u64 {
        (0..KEYS).map(|key| self.count(key).load(Ordering::SeqCst)).sum()
    }

    fn must(&self, process: usize, line: u32, what: bool) {
        if !what {
            self.0[Board::WRONG + process].store(line.into(), Ordering::SeqCst);
        }
    }
}

/// The work of each process until it is killed. A process first takes a permit, and then counts it.
/// So the count of a killed process may lack one permit, and never has one too many.
fn work(table: &Table, board: &Board, process: usize, seed: u64) -> ! {
    let mut rng = Rng(seed);
    loop {
        // Mostly few keys, so that processes meet on them.
        let key = if rng.one_in(2) { rng.below(16) } else { rng.below(KEYS) };
        let bytes = key.to_le_bytes();
        let count = |n| {
            board.count(key).fetch_add(n, Ordering::SeqCst);
        };
        match rng.below(64) {
            0 => {
                let requests = [Request { policy: HOT_ID, key: &bytes, cost: 1 }; 3];
                let mut verdicts = [Verdict::Never; 3];
                // A batch takes three before it counts one; the checks at the end allow for that.
                table.admit_many(&requests, &mut verdicts);
                count(
                    verdicts.iter().filter(|verdict| **verdict == Verdict::Allowed).count() as u64
                );
            }
            1 => count(table.take_up_to(HOT_ID, &bytes, 2)),
            2 => {
                let swept = table.sweep(rng.below(table.slots()), 64, table.now());
                board.must(process, line!(), swept.live <= 64);
            }
            3 => {
                // Only keys that come and go: a reset of a counted key would give it another burst.
                let key = rng.below(1 << 40).to_le_bytes();
                let _ = table.admit(BRIEF_ID, &key, 1);
                board.must(process, line!(), table.reset(BRIEF_ID, &key).is_ok());
            }
            4 if rng.one_in(64) => {
                // A process that is killed while it writes a new version costs the table a record,
                // of which there are
                // 255. Once they are used up, policies stay as they are.
                let terms =
                    if rng.one_in(2) { "7/s algo fixed-window" } else { "9/s algo fixed-window" };
                let _ = table.set_policy(OTHER_ID, &policy(terms));
            }
            5 => {
                let _ = table.admit(OTHER_ID, &rng.below(500).to_le_bytes(), 1);
            }
            6..=15 => {
                // New keys, to take slots of expired keys.
                let decision = table.check(BRIEF_ID, &rng.next().to_le_bytes(), 1);
                board.must(process, line!(), decision.remaining <= 5);
            }
            16..=30 => {
                let decision = table.check(HOT_ID, &bytes, 1);
                board.must(process, line!(), decision.remaining < BURST);
                count(u64::from(decision.is_allowed()));
            }
            _ => count(u64::from(table.admit(HOT_ID, &bytes, 1) == Verdict::Allowed)),
        }
        board.steps(process).fetch_add(1, Ordering::SeqCst);
    }
}

/// A process of the storm. Only a signal ends it, also if the test fails.
struct Process(libc::pid_t);

impl Process {
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: numbers only. This process has not waited for the child yet, so the number is
        // still the child's.
        assert_eq!(unsafe { libc::kill(self.0, signal) }, 0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        if !thread::panicking() {
            assert!(killed, "a process of the storm ended by itself: status {status:#x}");
        }
    }
}

/// Called in a child: the system ends it with its parent, and after a time limit.
fn mortal() {
    // SAFETY: numbers only.
    unsafe {
        libc::alarm(3600);
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Waits until all those processes have made a step. The wait is long because this process may run
/// while the others do not.
fn all_go_on(board: &Board, processes: impl Iterator<Item = usize>, context: &str) {
    let start = Instant::now();
    let before: Vec<(usize, u64)> =
        processes.map(|n| (n, board.steps(n).load(Ordering::SeqCst))).collect();
    for (n, steps) in before {
        while board.steps(n).load(Ordering::SeqCst) == steps {
            assert!(
                start.elapsed() < PATIENCE,
                "process {n} has stood still for {PATIENCE:?} {context}"
            );
            thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Kills and stops processes at random. `begin(n, seed)` starts process `n`. Returns the number of
/// kills.
fn storm(board: &Board, begin: impl Fn(usize, u64) -> Process) -> u64 {
    let mut rng = Rng(kills());
    let mut killed = 0;
    let mut processes: Vec<Option<Process>> =
        (0..PROCESSES).map(|n| Some(begin(n, n as u64))).collect();
    all_go_on(board, 0..PROCESSES, "at the start");
    while killed < kills() {
        // A time between the first instruction of a new process and thousands of requests.
        thread::sleep(Duration::from_micros(rng.pick(&[0, 10, 100, 1_000, 5_000])));
        let victim = rng.below(PROCESSES as u64) as usize;
        let others = (0..PROCESSES).filter(|n| *n != victim);
        let process = processes[victim].take().unwrap();
        if rng.one_in(4) {
            // The process sleeps in the middle of a call: the others go on, and it does too when it
            // wakes.
            process.signal(libc::SIGSTOP);
            all_go_on(board, others.clone(), "while one was stopped");
            thread::sleep(Duration::from_millis(rng.below(3)));
            all_go_on(board, others, "while one was stopped");
            process.signal(libc::SIGCONT);
            all_go_on(board, victim..victim + 1, "after it was stopped");
            processes[victim] = Some(process);
            continue;
        }
        drop(process);
        killed += 1;
        all_go_on(board, others, "after another was killed");
        processes[victim] = Some(begin(victim, killed << 8));
    }
    all_go_on(board, 0..PROCESSES, "at the end");
    // On a busy machine a process may have been killed after a few requests.
    let start = Instant::now();
    while board.admitted() <= least_admitted() {
        assert!(start.elapsed() < PATIENCE, "hardly anything is admitted: {}", board.admitted());
        thread::sleep(Duration::from_millis(1));
    }
    killed + processes.into_iter().flatten().count() as u64
}

/// Checks a table that no process uses any more.
fn calm(table: &Table, board: &Board, killed: u64) {
    for process in 0..PROCESSES {
        let line = board.0[Board::WRONG + process].load(Ordering::SeqCst);
        assert_eq!(line, 0, "process {process} saw what must not be at line {line}");
    }
    let now = table.now();
    let entries: Vec<_> = table.entries(now).collect();
    let distinct: HashSet<(u32, u64)> =
        entries.iter().map(|entry| (entry.policy.number(), entry.hash)).collect();
    assert_eq!(distinct.len(), entries.len(), "a key is twice in the table");

    let (mut charged, mut counted) = (0, 0);
    for key in 0..KEYS {
        let hash = table.hash(HOT_ID, &key.to_le_bytes()).unwrap();
        let entry = entries.iter().find(|entry| entry.policy == HOT_ID && entry.hash == hash);
        let used = entry.map_or(0, |entry| BURST - entry.remaining);
        let count = board.count(key).load(Ordering::SeqCst);
        assert!(count <= BURST, "key {key} was admitted {count} times");
        // Every counted permit was charged. Only killed processes have charged permits that they
        // did not count.
        assert!(
            count <= used && used - count <= 3 * killed,
            "key {key}: {count} counted, {used} charged"
        );
        charged += used;
        counted += count;
    }
    assert!(
        charged - counted <= 3 * killed,
        "{charged} charged, {counted} counted, {killed} killed"
    );
    assert!(counted > least_admitted(), "hardly anything was admitted: {counted}");

    // Each process that was killed between its swap and its count may have left the counters one
    // behind.
    let stats = table.stats();
    let difference = stats.keys.abs_diff(entries.len() as u64);
    assert!(
        difference <= killed,
        "{} keys by the counters, {} in the table",
        stats.keys,
        entries.len()
    );
    println!(
        "{killed} killed: {charged} charged, {} of them uncounted; keys off by {difference}; {stats:?}",
        charged - counted
    );

    // Every slot still works. When all keys that come and go have expired, the keys with a debt are
    // left.
    let later = now + 10_000_000_000;
    let swept = table.sweep(0, u64::MAX, later);
    assert_eq!(swept.live, table.entries(later).count() as u64);
    let mut admitted = 0;
    for key in 0..KEYS {
        let decision = table.check_at(HOT_ID, &key.to_le_bytes(), later, 1);
        assert!(decision.is_allowed() || decision.retry_after > 0);
        admitted += u64::from(decision.is_allowed());
    }
    // New keys get all slots without a debt. A stuck slot would refuse them without end.
    for key in 0..100 * table.slots() {
        let _ = table.admit_at(BRIEF_ID, &(u64::MAX - key).to_le_bytes(), later, 1);
    }
    let full = table.entries(later).count() as u64;
    assert!(
        full > table.slots() * 99 / 100,
        "{full} of {} slots were to be had; {admitted}",
        table.slots()
    );
    let of_hot = table.entries(later).filter(|entry| entry.policy == HOT_ID).count() as u64;
    assert!(table.sweep(0, u64::MAX, later + 1_000_000_000).live <= of_hot);
}

/// A directory that goes away.
struct Dir(PathBuf);

impl Dir {
    fn new(parent: &Path) -> Dir {
        let path = parent.join(format!("tollbar-storm-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Dir(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DIRECTORY: &str = "TABLE_STORM_DIRECTORY";
const PROCESS: &str = "TABLE_STORM_PROCESS";
const SEED: &str = "TABLE_STORM_SEED";

/// Each process runs this program again, so it maps the files at other addresses.
fn storm_on_files(parent: &Path) {
    let dir = Dir::new(parent);
    let board = Board::new(Some(&dir.0.join("board")));
    let program = env::current_exe().unwrap();
    let killed = storm(&board, |process, seed| {
        let child = Command::new(&program)
            .args(["--exact", "a_process_of_the_storm", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, &dir.0)
            .env(PROCESS, process.to_string())
            .env(SEED, seed.to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let process = Process(child.id() as libc::pid_t);
        // It is killed and waited for by number.
        drop(child);
        process
    });
    // Opened once more, as by a later process.
    let table = Table::open(dir.0.join("table")).unwrap();
    calm(&table, &board, killed);
    let other = Table::file(dir.0.join("table"), &options(), &[policy(HOT)]);
    assert_eq!(other.err(), Some(tollbar::table::TableError::OtherPolicies));
}

/// The program of the other processes. As a test it does nothing without a path. The first process
/// makes the table.
#[test]
fn a_process_of_the_storm() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    mortal();
    let number = |name: &str| env::var(name).unwrap().parse::<u64>().unwrap();
    let directory = PathBuf::from(directory);
    let board = Board::new(Some(&directory.join("board")));
    let path = directory.join("table");
    // Another process may make the file just after this one has tried, and change policy 2 before
    // this one tries again.
    let table = Table::open(&path).or_else(|_| Table::file(&path, &options(), &policies()));
    let table = table.or_else(|_| Table::open(&path)).unwrap();
    work(&table, &board, number(PROCESS) as usize, number(SEED));
}

#[test]
fn kills_on_a_file_in_memory() {
    storm_on_files(Path::new("/dev/shm"));
}

#[test]
fn kills_on_a_file_on_a_disk() {
    storm_on_files(&env::temp_dir());
}

/// The children are copies of this process with the thread that forks as their only one. All they
/// use is the table, the board and the heap, which libc keeps usable in them.
#[test]
fn kills_in_memory_that_is_shared_by_forking() {
    let table = Table::shared(&options(), &policies()).unwrap();
    let board = Board::new(None);
    let killed = storm(&board, |process, seed| {
        // SAFETY: see above; the child never returns from `work`, and has no handlers to run when
        // it is killed.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            mortal();
            work(&table, &board, process, seed);
        }
        Process(pid)
    });
    calm(&table, &board, killed);
}
