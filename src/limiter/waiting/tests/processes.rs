//! Several processes wait for one key: turns are by the first callers of their queues.

use super::*;

/// Callers of three processes. In its own process nobody is overtaken. A later caller of another
/// process may depart first: at most one of each other process for each caller that stands before
/// in the own process.
#[test]
fn a2_processes_take_turns_by_their_first_callers() {
    const PROCESSES: usize = 3;
    let mut rng = Rng(3);
    let mut most = 0;
    for trace in 0..300 {
        let clock = Manual::default();
        let limiter = taken("10/s burst 1", &clock);
        let mut comes = START;
        let callers: Vec<Caller> = (0..40)
            .map(|_| {
                comes += rng.below(60 * MS);
                Caller { process: rng.below(PROCESSES as u64) as usize, ..caller(comes) }
            })
            .collect();
        let world = World { processes: PROCESSES, ..World::new(&clock) };
        let (ends, _) = world.run(&limiter, &callers, &mut at_random(&mut rng));
        let at: Vec<u64> = ends.iter().map(|end| end.admitted().unwrap()).collect();
        for n in 0..callers.len() {
            let own = |k: &usize| callers[*k].process == callers[n].process;
            // Those before it in its queue when it comes.
            let before = (0..n).filter(own).filter(|&k| at[k] > callers[n].comes).count();
            let later = (n + 1..callers.len()).filter(|&k| at[k] < at[n]).collect::<Vec<_>>();
            assert!(!later.iter().any(own), "trace {trace}: overtaken in its own process");
            assert!(
                later.len() <= before * (PROCESSES - 1),
                "trace {trace}: {} overtook, {before} before",
                later.len()
            );
            most = most.max(later.len());
        }
        // Every permit is used: the departures are one interval apart while anybody waits.
        let mut sorted = at.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 100 * MS), "trace {trace}");
    }
    println!("at most {most} later callers of other processes departed first");
    assert!(most > 0);
}

/// Waves of callers in one process give up all the time. Another process's callers, one a second,
/// all get in.
#[test]
fn a2_waves_of_one_process_do_not_block_another() {
    let clock = Manual::default();
    let limiter = taken("10/s burst 1", &clock);
    let waves = (0..240).flat_map(|n| {
        let comes = START + n * 100 * MS;
        (0..20).map(move |_| Caller { gives_up: comes + 50 * MS, ..caller(comes) })
    });
    let mut callers: Vec<Caller> = waves.collect();
    let first = callers.len();
    callers.extend((0..24).map(|n| {
        let comes = START + n * SEC + 20 * MS;
        Caller { deadline: comes + 900 * MS, process: 1, ..caller(comes) }
    }));
    let (ends, _) =
        World { processes: 2, ..World::new(&clock) }.run(&limiter, &callers, &mut |_| 0);
    let admitted = ends[first..].iter().filter(|end| end.admitted().is_some()).count();
    assert_eq!(admitted, 24, "{:?}", &ends[first..]);
}

/// A process is killed while 20 of its callers wait. One booking stays charged.
#[test]
fn a2_a_killed_process_leaves_one_booking() {
    for (text, _) in BOOK {
        let clock = Manual::default();
        let expected = departures(text, 2);
        let limiter = taken(text, &clock);
        // The memory of the dead process: nothing in it is ever freed or used again.
        let queues: &WaiterQueues<1> =
            std::boxed::Box::leak(std::boxed::Box::new(WaiterQueues::new(1024)));
        for _ in 0..20 {
            let waiter = std::boxed::Box::leak(std::boxed::Box::new(Waiter::new(0, 1, NEVER - 1)));
            let seat = Seat::new(queues.list(0), waiter, &limiter);
            assert!(matches!(seat.join(START, None), Ok(WaiterAction::Until(_))));
            core::mem::forget(seat);
        }
        let (ends, _) = World::new(&clock).run(&limiter, &[caller(START)], &mut |_| 0);
        assert_eq!(ends[0], End::Admitted(expected[1]), "{text}");
    }
}

/// E2: a child has its parent's process number, each in a PID namespace of its own. It is another
/// process nevertheless: the parent's callers, and the thread that holds the lock, are not its own.
#[test]
fn e2_a_child_with_its_parents_number_is_another_process() {
    const NO_NAMESPACE: i32 = 77;
    // Runs it as the first process of a namespace, which has the number 1.
    fn first_of_a_namespace(run: impl FnOnce() -> i32) -> i32 {
        // SAFETY: it changes where this process's next child runs. The child runs `run` alone and
        // ends without its parent's destructors.
        unsafe {
            if libc::unshare(libc::CLONE_NEWPID) != 0 {
                return NO_NAMESPACE;
            }
            in_a_child(|| if libc::getpid() == 1 { run() } else { 1 })
        }
    }
    fn in_a_child(run: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child runs `run` alone and ends without its parent's destructors. waitpid
        // writes to `code`, a variable of this function.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(run());
            }
            let mut code = -1;
            assert_eq!(libc::waitpid(child, &mut code, 0), child);
            if libc::WIFEXITED(code) {
                libc::WEXITSTATUS(code)
            } else {
                code
            }
        }
    }
    let clock = Manual::default();
    let limiter = taken("10/s burst 1", &clock);
    let code = in_a_child(|| {
        first_of_a_namespace(|| {
            let queues: WaiterQueues<1> = WaiterQueues::new(1);
            core::mem::forget(queues.waiters.enter());
            queues.list(0).hold();
            let mine = queues.asleep();
            first_of_a_namespace(|| {
                let decision = wait(&limiter, limiter.clock(), &queues, 0, 1, NEVER - 1);
                let passes = decision.is_ok_and(|decision| decision.is_allowed());
                i32::from(!(mine == 1 && passes && queues.asleep() == 0)) * 2
            })
        })
    });
    if code == NO_NAMESPACE {
        println!("not root: this machine makes no PID namespace");
        return;
    }
    assert_eq!(code, 0);
}
