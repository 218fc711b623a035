//! Machines that share a limit, each a process of this test program, and what they admitted, in a
//! file they all write to.
//!
//! These tests use the real clock, because they run a real Redis and depend on the kernel's
//! scheduler. They assert the upper bound exactly, because it holds whatever the scheduler does,
//! and lower rates with generous room.
#![allow(dead_code)] // each test program uses a part of it

#[path = "../common/stop.rs"]
mod stop;

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stop::Stop;
use tollbar::clock::{Clock, Utc};
use tollbar::Policy;
use tollbar_redis::lease::{Circuit, Client, Node, OnLoss, Options};
use tollbar_redis::redis::Url;

/// What a child is told, in its environment.
const VARIABLE: &str = "TOLLBAR_FLEET";
/// A row a process: totals, then what it admitted in each millisecond, then what it tried.
const TOTALS: usize = 8;
const MILLIS: usize = 30_000;
const ROW: usize = TOTALS + 2 * MILLIS;
/// Processes that a run may have, those that were killed included.
const ROWS: usize = 256;

/// What a process has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub attempts: u64,
    pub admitted: u64,
    /// Calls of more than a millisecond in a time without a switch to another thread: by their own
    /// doing, or by the host's.
    pub slow: u64,
    /// Times that a caller was put to sleep in a call.
    pub slept: u64,
    pub asked: u64,
    pub fallback_permits: u64,
    pub overdrawn: u64,
    pub opened: u64,
}

pub struct Fleet {
    url: String,
    policy: String,
    nodes: u32,
    path: PathBuf,
    memory: Memory,
    children: Vec<Option<Child>>,
    started: usize,
    begin: u64,
    length: u64,
    rate: u64,
}

impl Fleet {
    /// `nodes` processes, each of which makes `rate` attempts a second for `length`.
    pub fn start(
        url: &str,
        name: &str,
        policy: &str,
        nodes: u32,
        rate: u64,
        length: Duration,
    ) -> Fleet {
        // In memory: a page of a file on a disk may make who writes it wait.
        let path =
            Path::new("/dev/shm").join(format!("tollbar-fleet-{}-{name}", std::process::id()));
        let memory = Memory::make(&path);
        let begin = Utc::default().now() + 200_000_000;
        let mut fleet = Fleet {
            url: url.into(),
            policy: policy.into(),
            nodes,
            path,
            memory,
            children: Vec::new(),
            started: 0,
            begin,
            length: length.as_nanos() as u64,
            rate,
        };
        for _ in 0..nodes {
            let child = fleet.spawn(name);
            fleet.children.push(Some(child));
        }
        fleet
    }

    /// `kill -9` for one, and another in its place.
    pub fn replace(&mut self, n: usize, name: &str) {
        if let Some(mut child) = self.children[n].take() {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
        self.children[n] = Some(self.spawn(name));
    }

    /// Sleeps until `at` of the run's time.
    pub fn until(&self, at: Duration) {
        let at = self.begin + at.as_nanos() as u64;
        std::thread::sleep(Duration::from_nanos(at.saturating_sub(Utc::default().now())));
    }

    /// Waits for the end.
    pub fn finish(&mut self) {
        for child in self.children.iter_mut().flatten() {
            assert!(child.wait().expect("wait").success());
        }
    }

    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for row in 0..self.started {
            let at = |n: usize| self.memory.words()[row * ROW + n].load(Ordering::Relaxed);
            sum.attempts += at(0);
            sum.admitted += at(1);
            sum.slow += at(2);
            sum.slept += at(3);
            sum.asked += at(4);
            sum.fallback_permits += at(5);
            sum.overdrawn += at(6);
            sum.opened += at(7);
        }
        sum
    }

    /// Permits admitted in each ten milliseconds.
    pub fn by_ten_millis(&self) -> Vec<u64> {
        let words = self.memory.words();
        let millis = |m: usize| {
            (0..self.started)
                .map(|row| words[row * ROW + TOTALS + m].load(Ordering::Relaxed))
                .sum::<u64>()
        };
        (0..self.length as usize / 10_000_000)
            .map(|ten| (0..10).map(|m| millis(ten * 10 + m)).sum())
            .collect()
    }

    /// The most that was admitted beyond the rate in any window of whole ten milliseconds.
    pub fn worst(&self) -> f64 {
        let policy: Policy = self.policy.parse().expect("a policy");
        let each = policy.limit as f64 * 1e7 / policy.period as f64;
        let (mut level, mut worst) = (0.0_f64, 0.0_f64);
        for admitted in self.by_ten_millis() {
            // A window that begins here has nothing before it.
            level = level.max(0.0) + admitted as f64 - each;
            worst = worst.max(level);
        }
        worst
    }

    /// Admitted a second, from `from` to `to` of the run's time. Ten milliseconds in which nobody
    /// tried do not count: then the host had stopped the machine.
    pub fn rate(&self, from: Duration, to: Duration) -> f64 {
        let (admitted, words) = (self.by_ten_millis(), self.memory.words());
        let ten = |at: Duration| at.as_millis() as usize / 10;
        let tried = |ten: &usize| {
            let millis = TOTALS + MILLIS + ten * 10;
            (0..self.started).any(|row| {
                words[row * ROW + millis..][..10].iter().any(|n| n.load(Ordering::Relaxed) != 0)
            })
        };
        let tens: Vec<usize> = (ten(from)..ten(to)).filter(tried).collect();
        assert!(tens.len() * 4 >= ten(to) - ten(from), "the machine stood still");
        tens.iter().map(|ten| admitted[*ten]).sum::<u64>() as f64 * 100.0 / tens.len() as f64
    }

    fn spawn(&mut self, name: &str) -> Child {
        let row = self.started;
        self.started += 1;
        assert!(row < ROWS, "too many processes");
        let fields = [
            self.url.clone(),
            name.into(),
            self.policy.clone(),
            self.nodes.to_string(),
            self.path.display().to_string(),
            row.to_string(),
            self.begin.to_string(),
            self.length.to_string(),
            self.rate.to_string(),
        ];
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "a_machine", "--nocapture"])
            .env(VARIABLE, fields.join("\n"))
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("a child")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What a child does; nothing in the parent.
pub fn be_a_machine() {
    let Ok(fields) = std::env::var(VARIABLE) else { return };
    let fields: Vec<&str> = fields.split('\n').collect();
    let number = |n: usize| fields[n].parse::<u64>().expect("a number");
    let policy: Policy = fields[2].parse().expect("a policy");
    let (row, begin, length, rate) = (number(5) as usize, number(6), number(7), number(8));
    let memory = Memory::open(Path::new(fields[4]));
    let words = &memory.words()[row * ROW..][..ROW];
    let options =
        Options { capacity: 64, on_loss: OnLoss::Refill, ..Options::new(number(3) as u32) };
    let node = Node::private(fields[1], &policy, &options).expect("a node");
    let url = Url::parse(fields[0]).expect("a URL");
    let stop = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = Client::new(&url).and_then(|client| client.with(&node));
            client.expect("a client").run(&stop)
        });
        let _stop = Stop(&stop);
        // Attempts begin when all have been able to connect.
        while Utc::default().now() < begin
            || (node.circuit(node.now()) != Circuit::Closed
                && Utc::default().now() < begin + 20_000_000)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        attempts(&node, words, begin.max(Utc::default().now()), begin, begin + length, rate);
    });
}

fn attempts(node: &Node, words: &[AtomicU64], from: u64, begin: u64, end: u64, rate: u64) {
    let add = |n: usize, by: u64| {
        // Only this process writes its row.
        words[n].store(words[n].load(Ordering::Relaxed) + by, Ordering::Relaxed);
    };
    let mut made = 0;
    loop {
        let now = Utc::default().now();
        if now >= end {
            return;
        }
        // What a sleep has missed is made up for, a tenth of a second of it at most.
        let due = ((now - from) as u128 * u128::from(rate) / 1_000_000_000) as u64;
        made = made.max(due.saturating_sub(rate / 10));
        let before = switches();
        while made < due {
            made += 1;
            let at = node.now();
            let admitted = node.check_at(b"", at, 1).is_allowed();
            let took = node.now().saturating_sub(at);
            let millis = TOTALS + (at.saturating_sub(begin) / 1_000_000) as usize;
            add(0, 1);
            add(millis + MILLIS, 1);
            if admitted {
                add(1, 1);
                add(millis, 1);
            }
            if took > 1_000_000 && switches() == before {
                add(2, 1);
            }
        }
        let after = switches();
        // A page that comes in may put a thread to sleep, too: not the call's doing.
        if after.faults == before.faults {
            add(3, after.voluntary - before.voluntary);
        }
        let stats = node.stats();
        let opened = stats.opened;
        for (n, value) in
            [stats.asked, stats.fallback_permits, stats.overdrawn, opened].into_iter().enumerate()
        {
            words[4 + n].store(value, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// What has kept this thread from running: by itself, by the scheduler, and pages that were not
/// there.
#[derive(PartialEq)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
    faults: u64,
}

fn switches() -> Switches {
    // SAFETY: numbers, of which all may be 0; the call writes them.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    Switches {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
        faults: (usage.ru_minflt + usage.ru_majflt) as u64,
    }
}

/// The file, mapped.
struct Memory {
    at: *const AtomicU64,
    _file: File,
}

impl Memory {
    const BYTES: usize = ROWS * ROW * 8;

    fn make(path: &Path) -> Memory {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .expect("a file");
        file.set_len(Memory::BYTES as u64).expect("its length");
        Memory::map(file)
    }

    fn open(path: &Path) -> Memory {
        Memory::map(OpenOptions::new().read(true).write(true).open(path).expect("the file"))
    }

    fn map(file: File) -> Memory {
        // SAFETY: a new mapping of a file that is as long.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Memory::BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        Memory { at: at.cast(), _file: file }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped with this length, page-aligned, and only ever used as atomics.
        unsafe { std::slice::from_raw_parts(self.at, Memory::BYTES / 8) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`.
        unsafe { libc::munmap(self.at as *mut libc::c_void, Memory::BYTES) };
    }
}
