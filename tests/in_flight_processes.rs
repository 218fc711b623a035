//! Permits in flight among processes that are killed, stopped and forked.
//!
//! The children do nothing but acquire, release and wait: a child of a program with threads may not
//! allocate.

mod common;

use common::rounds;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tollbar::in_flight::{InFlight, Options, Refusal, Ticket};
use tollbar::table::{TableError, Trust};

/// While the caller has it, no other test of this program forks. A child has its parent's views
/// mapped, those of other tests, too, so a file that a test has closed would still be in use.
fn alone() -> MutexGuard<'static, ()> {
    static FORKS: Mutex<()> = Mutex::new(());
    FORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A forked child that runs `f` and ends.
struct Child(libc::pid_t);

impl Child {
    fn new(f: impl FnOnce() -> i32) -> Child {
        let _alone = alone();
        Child::forked(f)
    }

    /// The child of a test that is [`alone`].
    fn forked(f: impl FnOnce() -> i32) -> Child {
        // SAFETY: the child only uses memory that it has, and ends without unwinding.
        match unsafe { libc::fork() } {
            0 => {
                let code = f();
                // SAFETY: it ends at once.
                unsafe { libc::_exit(code) }
            }
            pid => {
                assert!(pid > 0);
                Child(pid)
            }
        }
    }

    fn kill(&self) {
        // SAFETY: a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGKILL) }, 0);
    }

    /// Kills the child and waits until it has ended. It stays a zombie.
    fn kill_and_see_it_end(&self) {
        self.kill();
        // SAFETY: zeroes are a valid value of this plain struct, and the call writes it. With
        // WNOWAIT the child can be waited for again.
        let ended = unsafe {
            let mut ended: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(
                libc::P_PID,
                self.0 as libc::id_t,
                &mut ended,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        assert_eq!(ended, 0);
    }

    /// Its exit code, or the negative number of the signal that ended it.
    fn wait(self) -> i32 {
        let mut status = 0;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            -libc::WTERMSIG(status)
        }
    }
}

/// A counter that processes share.
fn shared_word() -> &'static AtomicU64 {
    // SAFETY: a new mapping, of zeroes, that is never unmapped.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANON;
        let at = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast()
    }
}

/// Waits for what another process does. The bound is generous: the machine may be busy.
fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Makes calls until `done`, and returns the time until then. A call that begins a second or more
/// after the first one must be enough: so the machine may stop this process for any time.
fn within_a_second(mut done: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    loop {
        let began = start.elapsed();
        if done() {
            return began;
        }
        assert!(began < Duration::from_secs(1), "a call {began:?} after the first was in vain");
    }
}

fn forever() -> ! {
    loop {
        // SAFETY: it only waits.
        unsafe { libc::pause() };
    }
}

fn name() -> (PathBuf, CString) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("tollbar-in-flight-{}-{n}", std::process::id()));
    let c_path = CString::new(path.to_str().expect("a name")).expect("no 0");
    (path, c_path)
}

#[test]
fn what_a_killed_process_held_comes_back_within_a_second() {
    let table = InFlight::shared(&Options::new(100)).expect("a table");
    let held = shared_word();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds(200) {
        let child = Child::new(|| {
            let all = (0..4).all(|_| table.acquire(b"k", 4).is_ok());
            held.store(round * 2 + if all { 1 } else { 2 }, Ordering::SeqCst);
            forever()
        });
        until(|| held.load(Ordering::SeqCst) > round * 2);
        assert_eq!(held.load(Ordering::SeqCst), round * 2 + 1, "the child was refused");
        assert_eq!(table.acquire(b"k", 4), Err(Refusal::Limit));
        child.kill_and_see_it_end();
        // Not reaped yet: a zombie has no permits.
        let mut ticket = None;
        let took = within_a_second(|| {
            ticket = table.acquire(b"k", 4).ok();
            ticket.is_some()
        });
        slowest = slowest.max(took);
        assert_eq!(table.count(b"k"), 1);
        assert!(ticket.is_some_and(|ticket| table.release(ticket)));
        assert_eq!(child.wait(), -libc::SIGKILL);
    }
    println!("the slowest took {slowest:?}");
}

#[test]
fn a_live_process_keeps_its_permits_stopped_or_not() {
    let table = InFlight::shared(&Options::new(100)).expect("a table");
    let held = shared_word();
    let child = Child::new(|| {
        let ticket = table.acquire(b"k", 1);
        held.store(1, Ordering::SeqCst);
        until(|| held.load(Ordering::SeqCst) == 2);
        i32::from(!ticket.is_ok_and(|ticket| table.release(ticket)))
    });
    until(|| held.load(Ordering::SeqCst) == 1);
    // SAFETY: a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.0, libc::SIGSTOP) }, 0);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(700) {
        assert_eq!(table.acquire(b"k", 1), Err(Refusal::Limit));
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(child.0, libc::SIGCONT) }, 0);
    held.store(2, Ordering::SeqCst);
    assert_eq!(child.wait(), 0);
    assert!(table.acquire(b"k", 1).is_ok());
}

#[test]
fn the_end_of_a_thread_is_no_end_of_a_process() {
    let table = InFlight::shared(&Options::new(100)).expect("a table");
    let held = shared_word();
    let child = Child::new(|| {
        extern "C" fn second(of: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: the word that the child passes.
            let held = unsafe { &*of.cast::<AtomicU64>() };
            until(|| held.load(Ordering::SeqCst) == 2);
            // SAFETY: it ends at once.
            unsafe { libc::_exit(7) }
        }
        let all = table.acquire(b"k", 1).is_ok();
        // SAFETY: a thread that runs to the process's end; then the first thread ends without it.
        unsafe {
            let mut thread = std::mem::zeroed();
            let word = std::ptr::from_ref(held).cast_mut().cast();
            assert_eq!(libc::pthread_create(&mut thread, std::ptr::null(), second, word), 0);
            held.store(if all { 1 } else { 3 }, Ordering::SeqCst);
            libc::syscall(libc::SYS_exit, 0);
        }
        1
    });
    until(|| held.load(Ordering::SeqCst) != 0);
    let path = format!("/proc/{}/stat", child.0);
    // The first thread is a zombie now, and the process lives.
    until(|| fs::read_to_string(&path).is_ok_and(|stat| stat.contains(") Z ")));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(600) {
        assert_eq!(table.acquire(b"k", 1), Err(Refusal::Limit));
        std::thread::sleep(Duration::from_millis(1));
    }
    held.store(2, Ordering::SeqCst);
    until(|| table.acquire(b"k", 1).is_ok());
    assert_eq!(child.wait(), 7);
}

#[test]
fn a_child_is_an_owner_of_its_own_and_inherited_tickets_are_void() {
    let table = InFlight::shared(&Options::new(100)).expect("a table");
    let ticket = table.acquire(b"k", 3).expect("a permit");
    let child = Child::new(|| {
        if table.release(ticket) {
            return 1;
        }
        let Ok(own) = table.acquire(b"k", 3) else { return 2 };
        let Ok(_kept) = table.acquire(b"k", 3) else { return 3 };
        if table.release(ticket) || table.count(b"k") != 3 {
            return 4;
        }
        i32::from(!table.release(own)) * 5
    });
    assert_eq!(child.wait(), 0);
    // The child kept one, and has ended.
    let more: Vec<Ticket> =
        (0..2).map(|_| table.acquire(b"k", 3).expect("what the child had")).collect();
    assert_eq!((table.count(b"k"), table.acquire(b"k", 3)), (3, Err(Refusal::Limit)));
    assert!(more.into_iter().chain([ticket]).all(|ticket| table.release(ticket)));
    assert_eq!(table.count(b"k"), 0);
}

#[test]
fn a_tables_private_memory_is_a_copy_in_a_child() {
    let table = InFlight::private(&Options::new(100)).expect("a table");
    let ticket = table.acquire(b"k", 1).expect("a permit");
    let child = Child::new(|| {
        i32::from(table.acquire(b"k", 1) != Err(Refusal::Limit) || table.release(ticket))
    });
    assert_eq!(child.wait(), 0);
    assert!(table.release(ticket));
}

/// In strict mode the kernel kills a process at its first system call but read, write and exit.
#[cfg(target_os = "linux")]
#[test]
fn a_free_permit_takes_no_system_call() {
    let table = InFlight::shared(&Options::new(100)).expect("a table");
    let strict = |joins: bool| {
        Child::new(|| {
            if joins && table.join().is_err() {
                return 1;
            }
            // SAFETY: it changes what this child may do, and nothing else.
            if unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) } != 0 {
                return 2;
            }
            let mut code = 0;
            for _ in 0..1000 {
                let tickets = [table.acquire(b"k", 3), table.acquire(b"k", 3)];
                code |= i32::from(table.count(b"k") != 2) * 4;
                for ticket in tickets {
                    code |= i32::from(!ticket.is_ok_and(|ticket| table.release(ticket))) * 8;
                }
            }
            // SAFETY: the call that is allowed; `_exit` makes another one.
            unsafe { libc::syscall(libc::SYS_exit, code) };
            code
        })
    };
    assert_eq!(strict(true).wait(), 0);
    // The first permit of a process that has not joined takes some.
    assert_eq!(strict(false).wait(), -libc::SIGKILL);
}

/// Who holds how many, in one word, so that each change tells the sum of one instant: 8 bits for
/// each of 6 participants, and above them a bit for each that is being killed. A participant adds a
/// permit after it has acquired it and takes it away before it releases it, so the word never says
/// more than what is held by those that are not being killed.
#[derive(Clone, Copy)]
struct Ledger(&'static AtomicU64);

const OVER: u64 = 1 << 63;

impl Ledger {
    fn add(self, who: u64, limit: u64) {
        let word = self.0.fetch_add(1 << (8 * who), Ordering::SeqCst) + (1 << (8 * who));
        let sum: u64 = (0..6)
            .map(|n| if word >> (48 + n) & 1 == 0 { word >> (8 * n) & 0xff } else { 0 })
            .sum();
        if sum > limit {
            self.0.fetch_or(OVER, Ordering::SeqCst);
        }
    }

    fn take_away(self, who: u64) {
        self.0.fetch_sub(1 << (8 * who), Ordering::SeqCst);
    }

    fn kill(self, who: u64, child: Child) {
        self.0.fetch_or(1 << (48 + who), Ordering::SeqCst);
        child.kill();
        assert_eq!(child.wait(), -libc::SIGKILL);
        self.0.fetch_and(!(1 << (48 + who) | 0xff << (8 * who)), Ordering::SeqCst);
    }

    fn was_over(self) -> bool {
        self.0.load(Ordering::SeqCst) & OVER != 0
    }
}

/// Three processes are killed again and again while they acquire and release; two threads of this
/// one go on all the time.
#[test]
fn never_more_than_the_limit_among_kills() {
    const LIMIT: u32 = 5;
    let table = InFlight::shared(&Options::new(1000)).expect("a table");
    let ledger = Ledger(shared_word());
    let (done, admitted) = (AtomicU32::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for who in 3..5 {
            let (table, done, admitted) = (&table, &done, &admitted);
            scope.spawn(move || {
                while done.load(Ordering::Relaxed) == 0 {
                    let Ok(_permit) = table.enter(b"k", LIMIT) else { continue };
                    admitted.fetch_add(1, Ordering::Relaxed);
                    ledger.add(who, LIMIT.into());
                    ledger.take_away(who);
                }
            });
        }
        let churn = |who| {
            Child::new(|| loop {
                let tickets: [Option<Ticket>; 3] = std::array::from_fn(|_| {
                    let ticket = table.acquire(b"k", LIMIT).ok()?;
                    ledger.add(who, LIMIT.into());
                    Some(ticket)
                });
                for ticket in tickets.into_iter().flatten() {
                    ledger.take_away(who);
                    if !table.release(ticket) {
                        return 9;
                    }
                }
            })
        };
        let mut children: [Option<Child>; 3] = std::array::from_fn(|who| Some(churn(who as u64)));
        for n in 0..rounds(1_000) {
            // Its permits may be anywhere: counted and undecided, held, half released.
            std::thread::sleep(Duration::from_micros(n % 7 * 300));
            let child = &mut children[(n % 3) as usize];
            child.take().into_iter().for_each(|child| ledger.kill(n % 3, child));
            *child = Some(churn(n % 3));
        }
        for (who, child) in children.into_iter().flatten().enumerate() {
            ledger.kill(who as u64, child);
        }
        done.store(1, Ordering::Relaxed);
    });
    assert!(!ledger.was_over(), "more than the limit were in flight");
    assert!(admitted.into_inner() > rounds(1_000));
    // All that the dead had is back within a second, and nothing else: the whole limit is free, and
    // no more.
    let mut tickets = Vec::new();
    within_a_second(|| {
        tickets.extend(
            std::iter::from_fn(|| table.acquire(b"k", LIMIT).ok())
                .take(LIMIT as usize - tickets.len()),
        );
        tickets.len() == LIMIT as usize
    });
    assert_eq!(table.acquire(b"k", LIMIT), Err(Refusal::Limit));
}

#[test]
fn a_file_is_one_table_for_all() {
    let (path, c_path) = name();
    let options = Options::new(100);
    let table = InFlight::file_at(&c_path, &options).expect("made");
    let _one = table.acquire(b"k", 2).expect("one");
    let other = InFlight::file_at(&c_path, &options).expect("opened");
    let third = InFlight::open_at(&c_path, Trust::Owner).expect("opened");
    let _two = other.acquire(b"k", 2).expect("two");
    assert_eq!((third.count(b"k"), third.acquire(b"k", 2)), (2, Err(Refusal::Limit)));
    let another = InFlight::file_at(&c_path, &Options::new(1000)).err();
    assert_eq!(another, Some(TableError::OtherCapacity));
    fs::remove_file(path).expect("removed");
}

/// The head's words, by their place: see src/in_flight/layout.rs.
const BOOT: u64 = 8;
const INODE: u64 = 10;
const NAMESPACE: u64 = 11;

/// The words of the file's boot, inode and namespace, which the test replaces.
fn rename(path: &Path, words: &[(u64, u64)]) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("the file");
    for &(at, word) in words {
        file.write_all_at(&word.to_ne_bytes(), at * 8).expect("written");
    }
}

/// As the file is after a restart of the machine, with the permits of processes that ended with it.
fn left_by_another_boot(path: &Path, c_path: &CString) {
    let table = InFlight::file_at(c_path, &Options::new(100)).expect("made");
    let permit = table.acquire(b"k", 1).expect("a permit");
    let copy = fs::read(path).expect("read");
    assert!(table.release(permit));
    drop(table);
    fs::write(path, &copy).expect("written");
}

#[test]
fn a_file_of_another_boot_begins_empty() {
    let (path, c_path) = name();
    let alone = alone();
    left_by_another_boot(&path, &c_path);
    // The owner's number may be another process's by now.
    assert_eq!(InFlight::open_at(&c_path, Trust::Owner).expect("opened").count(b"k"), 1);
    rename(&path, &[(BOOT, 7), (INODE, 7), (NAMESPACE, 7)]);
    let later = InFlight::open_at(&c_path, Trust::Owner).expect("opened");
    drop(alone);
    assert_eq!(later.count(b"k"), 0);
    let permit = later.acquire(b"k", 1).expect("a permit");
    // The second process of the boot finds the permit of the first.
    let second = InFlight::open_at(&c_path, Trust::Owner).expect("opened");
    assert_eq!(second.acquire(b"k", 1), Err(Refusal::Limit));
    assert!(later.release(permit));
    fs::remove_file(path).expect("removed");
}

/// E1: a file that others have open keeps its permits, whatever its header says of the boot.
#[test]
fn e1_a_file_in_use_is_never_emptied() {
    for (words, refused) in [
        ([(BOOT, 7), (INODE, 7), (NAMESPACE, 7)], TableError::Namespace),
        ([(BOOT, 7), (INODE, 7), (BOOT, 7)], TableError::OtherBoot),
    ] {
        let (path, c_path) = name();
        let _alone = alone();
        let table = InFlight::file_at(&c_path, &Options::new(100)).expect("made");
        let permit = table.acquire(b"k", 1).expect("a permit");
        rename(&path, &words);
        for _ in 0..3 {
            assert_eq!(InFlight::open_at(&c_path, Trust::Owner).err(), Some(refused));
            assert_eq!((table.count(b"k"), table.acquire(b"k", 1)), (1, Err(Refusal::Limit)));
        }
        // A forked child of the user is another one, also after the parent has closed its view.
        let done = shared_word();
        let child = Child::forked(|| {
            until(|| done.load(Ordering::SeqCst) == 1);
            0
        });
        assert!(table.release(permit));
        drop(table);
        assert_eq!(InFlight::open_at(&c_path, Trust::Owner).err(), Some(refused));
        done.store(1, Ordering::SeqCst);
        assert_eq!(child.wait(), 0);
        let later = InFlight::open_at(&c_path, Trust::Owner).expect("nobody else has it open");
        assert!(later.acquire(b"k", 1).is_ok_and(|permit| later.release(permit)));
        fs::remove_file(path).expect("removed");
    }
}

/// Processes that open a file at once, first after a boot: one empties it, and none finds another
/// in its way.
#[test]
fn e1_many_come_first_after_a_boot() {
    let (path, c_path) = name();
    for round in 0..20 {
        let _alone = alone();
        left_by_another_boot(&path, &c_path);
        rename(&path, &[(BOOT, 7), (INODE, 7), (NAMESPACE, 7)]);
        let c_path = &c_path;
        let held: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(move || {
                        let table = InFlight::open_at(c_path, Trust::Owner).expect("opened");
                        let permit = table.acquire(b"k", 2).ok();
                        (table, permit)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("ended")).collect()
        });
        let admitted = held.iter().filter(|(_, permit)| permit.is_some()).count();
        assert_eq!((admitted, held[0].0.count(b"k")), (2, 2), "round {round}");
        drop(held);
        fs::remove_file(&path).expect("removed");
    }
}

#[test]
fn a_file_that_nobody_uses_goes_to_another_pid_namespace() {
    let (path, c_path) = name();
    let _alone = alone();
    left_by_another_boot(&path, &c_path);
    rename(&path, &[(NAMESPACE, 7)]);
    let next = InFlight::open_at(&c_path, Trust::Owner).expect("opened");
    assert_eq!(next.count(b"k"), 0);
    fs::remove_file(path).expect("removed");
}

/// E2: a forked child in another PID namespace takes no permit through its parent's view. The
/// parent's permits stay.
#[cfg(target_os = "linux")]
#[test]
fn e2_a_child_in_another_pid_namespace_is_refused_at_its_first_call() {
    let table = InFlight::shared(&Options::new(100)).expect("a table");
    let private = InFlight::private(&Options::new(100)).expect("a table");
    let ticket = table.acquire(b"k", 1).expect("a permit");
    let child = Child::new(|| {
        // SAFETY: it changes where the next child of this process runs, and nothing else.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            return 77;
        }
        // The first child of a namespace is its number 1.
        let inner = Child::forked(|| {
            let refused = Err(Refusal::Namespace);
            let all = [table.acquire(b"k", 1), table.acquire(b"k", 2), table.acquire(b"j", 1)];
            if all != [refused; 3] || table.join() != Err(Refusal::Namespace) {
                return 1;
            }
            if table.count(b"k") != 1 || table.release(ticket) {
                return 2;
            }
            // Its copy of the private table is its own.
            i32::from(private.acquire(b"k", 1).is_err()) * 3
        });
        inner.wait()
    });
    let code = child.wait();
    if code == 77 {
        println!("not root: this machine makes no PID namespace");
        return;
    }
    assert_eq!(code, 0);
    assert_eq!((table.count(b"k"), table.acquire(b"k", 1)), (1, Err(Refusal::Limit)));
    assert!(table.release(ticket));
}
