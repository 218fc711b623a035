//! The questions that the protocol asks the system, counted.

use super::*;
use core::cell::Cell;

/// A system on which all processes live, unless the test ends one.
struct Counting {
    now: Cell<u64>,
    asked: Cell<usize>,
    ended: Cell<u32>,
    namespace: Cell<u64>,
}

impl System for Counting {
    fn this_process(&self) -> Process {
        Process { number: 7, start: 0 }
    }
    fn namespace(&self) -> u64 {
        self.namespace.get()
    }
    fn has_ended(&self, process: Process, _thorough: bool) -> bool {
        self.asked.set(self.asked.get() + 1);
        process.number == self.ended.get()
    }
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn pause(&self, _attempt: u32) {}
}

fn words<const N: usize>(word: impl Fn(usize) -> u64) -> [AtomicU64; N] {
    core::array::from_fn(|n| AtomicU64::new(word(n)))
}

/// While all owners' places are taken, a process that is no owner asks once a millisecond whether
/// they live, however often it tries. It becomes an owner in the millisecond after one of them has
/// ended.
#[test]
fn a_process_without_a_place_asks_once_a_millisecond() {
    const TRIES: usize = 50;
    let live = |n: usize| {
        OwnerRecord::new(Process { number: 100 + n as u32, start: 0 }, 0, OwnerState::Live).0
    };
    let records: [AtomicU64; OWNERS_MOST] = words(live);
    let slots: [AtomicU64; 64] = words(|_| 0);
    let (joined, zero) = (AtomicU64::new(0), || AtomicU64::new(0));
    let local = ProcessPart {
        own: zero(),
        namespace: zero(),
        cleaned: zero(),
        tried: zero(),
        asked: words(|_| 0),
    };
    let system = Counting {
        now: Cell::new(5),
        asked: Cell::new(0),
        ended: Cell::new(0),
        namespace: Cell::new(3),
    };
    let (records, slots, joined, local, system) = (&records, &slots, &joined, &local, &system);
    let view = TableView {
        records,
        slots,
        window: 32,
        joined,
        namespace: &AtomicU64::new(3),
        local,
        system,
    };
    for millisecond in 5..8 {
        system.now.set(millisecond);
        for _ in 0..TRIES {
            assert_eq!(view.acquire(3, 1).err(), Some(Refusal::OwnersFull));
        }
    }
    assert_eq!(system.asked.get(), 3 * OWNERS_MOST);

    system.ended.set(100 + 17);
    assert_eq!(view.acquire(3, 1).err(), Some(Refusal::OwnersFull), "in the same millisecond");
    system.now.set(8);
    assert!(view.acquire(3, 1).is_ok());
    assert_eq!(system.asked.get(), 4 * OWNERS_MOST);
}

/// E2: a process in another PID namespace than the owners', or in an unknown one, takes no permit
/// and takes no owner for dead. It asks again at each call as long as the namespace is unknown.
#[test]
fn a_process_of_another_namespace_neither_joins_nor_judges() {
    let holder = OwnerRecord::new(Process { number: 100, start: 0 }, 0, OwnerState::Live);
    let records: [AtomicU64; OWNERS_MOST] = words(|n| if n == 0 { holder.0 } else { 0 });
    let held =
        PermitSlot::first(3, InFlightOwner { place: 0, generation: 0 }).0 - PermitSlot::DECIDED;
    let slots: [AtomicU64; 32] = words(|n| if n == 0 { held } else { 0 });
    let zero = || AtomicU64::new(0);
    for (ours, theirs) in [(4, 3), (0, 3)] {
        let local = ProcessPart {
            own: zero(),
            namespace: zero(),
            cleaned: zero(),
            tried: zero(),
            asked: words(|_| 0),
        };
        let system = Counting {
            now: Cell::new(5),
            asked: Cell::new(0),
            ended: Cell::new(100),
            namespace: Cell::new(ours),
        };
        let (records, slots, joined, local, system) = (&records, &slots, &zero(), &local, &system);
        let view = TableView {
            records,
            slots,
            window: 32,
            joined,
            namespace: &AtomicU64::new(theirs),
            local,
            system,
        };
        assert_eq!(view.acquire(3, 2).err(), Some(Refusal::Namespace));
        assert_eq!(view.join_once(), Err(Refusal::Namespace));
        assert_eq!((view.count(3), view.count_of_living(3, 1)), (1, 1));
        assert_eq!((system.asked.get(), joined.load(Ordering::Relaxed)), (0, 0));
        if ours == 0 {
            // The system says it now. The holder has ended.
            system.namespace.set(theirs);
            assert_eq!(view.count_of_living(3, 1), 0);
            assert!(view.acquire(3, 1).is_ok());
        }
    }
}
