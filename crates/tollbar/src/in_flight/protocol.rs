//! How owners that share memory count permits in flight by key, so that no key ever has more than its limit, nobody waits for anybody, and
//! the permits of a process that was killed come back.
//!
//! An **owner** is one [`InFlight`](super::InFlight) of one process; all threads of the process use it. The memory holds records of owners
//! and slots ([`super::word`] has their words). A slot says how many permits one owner has of one key, and how many of these are still
//! undecided. A key has no entry of its own: it has the sum over its slots, and with the last permit of an owner the owner's slot is free
//! again. So nothing is ever reclaimed. A key's slots are all in its window, a run of slots that begins where its hash says.
//!
//! Who writes a slot:
//! - **S1** Any owner takes a free slot, by swapping 0 for a word that is right at once.
//! - **S2** A slot that is not free is changed by threads of its owner alone, until the owner is dead. Each change is one swap from the whole
//!   word, or subtracts what the thread itself has added. The slot keeps its key and its owner until it is free again.
//! - **S3** The slots of a dead owner are freed by the one owner that has taken over its record, and before the record is free again.
//!
//! A word says the same whenever it is there. So a slow thread whose swap succeeds has made a right change, even if the word was another
//! one meanwhile.
//!
//! A record is one word, too: 0 if it is free, or a process, the generation of its owner, and a state.
//!
//! ```text
//! free  -> live(p)        p joins                                by p
//! live(p) -> dead(p)      p has ended, or closes its handle      by whoever notices, or p
//! live(p), dead(p), cleaning(p) -> cleaning(q)   p has ended     by q, which then frees p's slots
//! cleaning(q) -> free     they are free                          by q
//! ```
//!
//! All but the last are swaps from the exact word. If q is killed while it cleans, its record says so, and another does all of it again.
//!
//! To acquire, a thread first counts itself, undecided, and then adds up what the live owners have.
//! - **E1** Never more than the limit. Suppose that at some instant more than `limit` permits are in flight. Take of these the one that
//!   was counted last. All the others had been counted before its thread began to add up, and were not released when it was done: in the
//!   one order of all sequentially consistent operations their swaps precede its loads. Each is counted in a slot that does not move
//!   (S2), of an owner that is live, so the thread added up all of them and its own, more than `limit`: it was refused.
//! - **E2** A thread is refused only if the limit was reached, or others were undecided on each of the [`ATTEMPTS`] times that it tried.
//!   Those who meet take themselves back, and try again after pauses of different lengths.
//!
//! A reader can count a permit twice: in the slot that was released, and in one that was taken meanwhile. Then it may refuse where the
//! limit was reached and left in the same instant. It cannot count too few.

use super::word::{Owner, Process, Record, Slot, State, Ticket, OWNERS_MOST, PROCESS_MOST};
use crate::sync::{AtomicU64, Ordering};

/// How often a thread tries that meets other undecided ones.
const ATTEMPTS: u32 = if cfg!(loom) { 2 } else { 24 };
/// How often a thread's swaps may fail in one call. Each failed swap is another's success, unless the memory is damaged.
const SWAPS: u32 = if cfg!(loom) { 8 } else { 1 << 16 };

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Refusal {
    /// So many are in flight.
    Limit,
    /// No slot is free where the key's are: the table's capacity is too small.
    Full,
    /// [`OWNERS_MOST`] owners use the table.
    OwnersFull,
}

/// What the system knows. The models have their own.
pub(super) trait System {
    fn this_process(&self) -> Process;
    /// Whether that process has ended. False where that is not known. `thorough`: the more expensive question, too, whether another
    /// process has the number now.
    fn has_ended(&self, process: Process, thorough: bool) -> bool;
    /// A time in milliseconds.
    fn now(&self) -> u64;
    /// Lets some time pass. Threads that meet pause for different times.
    fn pause(&self, attempt: u32);
}

/// What a process keeps for itself, all 0 in the beginning and after a fork.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Local {
    /// 0, or this process's [`Owner`].
    own: AtomicU64,
    /// The second, of 1,024 ms, in which this process last freed slots because a window was full.
    cleaned: AtomicU64,
    /// When the process last asked after each of the others, plus 1 ms: it asks at most once a millisecond.
    asked: [AtomicU64; OWNERS_MOST],
}

/// The shared memory and what is this process's own.
pub(super) struct View<'a, S> {
    pub(super) records: &'a [AtomicU64; OWNERS_MOST],
    pub(super) slots: &'a [AtomicU64],
    /// The slots of a key's window.
    pub(super) window: usize,
    /// Numbers for generations.
    pub(super) joined: &'a AtomicU64,
    pub(super) local: &'a Local,
    pub(super) system: &'a S,
}

/// What a thread sees of a key.
struct Seen<'a> {
    /// All permits, those included that are undecided.
    counted: u64,
    undecided: u64,
    /// A slot of its own owner that has room.
    own: Option<(usize, &'a AtomicU64, Slot)>,
    /// The first free slot.
    free: Option<(usize, &'a AtomicU64)>,
}

impl<'a, S: System> View<'a, S> {
    /// A permit, unless `limit` are in flight.
    pub(super) fn acquire(&self, hash: u64, limit: u32) -> Result<Ticket, Refusal> {
        let own = self.owner()?;
        let limit = u64::from(limit);
        let mut attempt = 0;
        for _ in 0..SWAPS {
            let seen = self.look(hash, Some(own));
            let mut decided = seen.counted - seen.undecided;
            if seen.counted < limit {
                let (at, slot, from, to) = match (seen.own, seen.free) {
                    (Some((at, slot, word)), _) => (at, slot, word, word.and_one()),
                    (None, Some((at, slot))) => (at, slot, Slot::FREE, Slot::first(hash, own)),
                    (None, None) if self.clean_seldom() => continue,
                    (None, None) => return Err(Refusal::Full),
                };
                // SeqCst, as the loads of `look`: E1 is about the one order of those who count themselves and then look. With a weaker
                // order two threads could both look before either sees the other.
                if slot.compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                    continue;
                }
                let seen = self.look(hash, Some(own));
                if seen.counted <= limit {
                    // Relaxed: it tells nobody but that a permit is certain. The slot is still the owner's, since it counts this permit.
                    slot.fetch_sub(Slot::DECIDED, Ordering::Relaxed);
                    return Ok(Ticket::new(at, own, to));
                }
                change(slot, |word| Some(word.without_undecided()));
                decided = seen.counted - seen.undecided;
            }
            if self.lose_dead(hash, own) {
                continue;
            }
            attempt += 1;
            if decided >= limit || attempt == ATTEMPTS {
                return Err(Refusal::Limit);
            }
            self.system.pause(attempt);
        }
        Err(Refusal::Limit)
    }

    /// Gives a permit back. False for no ticket, for one that has been released, and for one of another owner, as after a fork.
    pub(super) fn release(&self, ticket: Ticket) -> bool {
        let Some(own) = self.joined() else { return false };
        match ticket.at().and_then(|at| self.slots.get(at)) {
            Some(slot) if ticket.is_of(own) => change(slot, |word| ticket.is_in(word).then(|| word.without_one())),
            _ => false,
        }
    }

    /// The permits of a key that live owners have.
    pub(super) fn count(&self, hash: u64) -> u64 {
        let seen = self.look(hash, self.joined());
        seen.counted - seen.undecided
    }

    /// This process as an owner, which it becomes with its first call.
    #[inline]
    fn owner(&self) -> Result<Owner, Refusal> {
        match self.joined() {
            Some(own) => Ok(own),
            None => self.join(),
        }
    }

    #[inline]
    fn joined(&self) -> Option<Owner> {
        match self.local.own.load(Ordering::Acquire) {
            0 => None,
            word => Some(Owner { place: (word >> 1) as usize % OWNERS_MOST, generation: (word >> 32) as u16 }),
        }
    }

    /// Becomes an owner, unless this process is one.
    pub(super) fn join_once(&self) -> Result<(), Refusal> {
        self.owner().map(|_| ())
    }

    #[cold]
    #[inline(never)]
    fn join(&self) -> Result<Owner, Refusal> {
        let process = self.system.this_process();
        if process.number > PROCESS_MOST {
            return Err(Refusal::OwnersFull);
        }
        self.clean();
        let generation = self.joined.fetch_add(1, Ordering::Relaxed) as u16;
        let live = Record::new(process, generation, State::Live);
        for (place, record) in self.records.iter().enumerate() {
            if !swap(record, Record::FREE, live) {
                continue;
            }
            let own = Owner { place, generation };
            if self.local.become_owner(own) {
                return Ok(own);
            }
            // Another thread of this process was first. No slot has this record.
            swap(record, live, Record::FREE);
            return self.joined().ok_or(Refusal::OwnersFull);
        }
        Err(Refusal::OwnersFull)
    }

    /// Ends the ownership: what this owner has not released does not count any more.
    pub(super) fn part(&self) {
        if let Some(record) = self.joined().and_then(|own| self.records.get(own.place)) {
            let live = Record(record.load(Ordering::SeqCst));
            if live.is_live() {
                swap(record, live, live.dead());
            }
        }
        self.local.own.store(0, Ordering::Release);
    }

    /// Frees the slots of owners that have ended.
    #[cold]
    #[inline(never)]
    fn clean(&self) {
        let mut taken = [false; OWNERS_MOST];
        let mut any = false;
        let own = self.joined().map(|own| own.place);
        let cleaning = Record::new(self.system.this_process(), 0, State::Cleaning);
        for (place, (record, taken)) in self.records.iter().zip(&mut taken).enumerate() {
            let word = Record(record.load(Ordering::SeqCst));
            if word != Record::FREE
                && Some(place) != own
                && (word.is_dead() || self.system.has_ended(word.process(), true))
            {
                *taken = swap(record, word, cleaning);
                any |= *taken;
            }
        }
        if !any {
            return;
        }
        let is_taken = |word: Slot| taken.get(word.owner()).is_some_and(|taken| *taken);
        for slot in self.slots {
            let word = Slot(slot.load(Ordering::SeqCst));
            if word != Slot::FREE && is_taken(word) {
                // Relaxed: whoever sees it late finds one slot less that is free.
                slot.store(Slot::FREE.0, Ordering::Relaxed);
            }
        }
        for (record, taken) in self.records.iter().zip(taken) {
            if taken {
                // SeqCst, and so Release: the next owner of the record sees its slots free.
                record.store(Record::FREE.0, Ordering::SeqCst);
            }
        }
    }

    /// Cleans, once a second at most. Whether it has.
    #[cold]
    #[inline(never)]
    fn clean_seldom(&self) -> bool {
        let second = (self.system.now() >> 10) + 1;
        if self.local.cleaned.swap(second, Ordering::Relaxed) == second {
            return false;
        }
        self.clean();
        true
    }

    /// Reads the whole window of a key: others' slots may be behind slots that have become free.
    #[inline]
    fn look(&self, hash: u64, own: Option<Owner>) -> Seen<'a> {
        // Loom takes SeqCst accesses for AcqRel ones and knows the one order of all by fences only.
        #[cfg(loom)]
        loom::sync::atomic::fence(Ordering::SeqCst);
        let mut seen = Seen { counted: 0, undecided: 0, own: None, free: None };
        let own = own.map(|own| own.place);
        let (first, slots) = self.window_of(hash);
        for (n, slot) in slots.iter().enumerate() {
            let word = Slot(slot.load(Ordering::SeqCst));
            if word == Slot::FREE {
                seen.free = seen.free.or(Some((first + n, slot)));
            } else if word.is_of(hash) {
                if Some(word.owner()) == own {
                    if word.has_room() && seen.own.is_none() {
                        seen.own = Some((first + n, slot, word));
                    }
                } else if !self.is_live(word.owner()) {
                    continue;
                }
                seen.counted += word.count();
                // Not more than the count, so that no sum is negative in damaged memory.
                seen.undecided += word.undecided().min(word.count());
            }
        }
        seen
    }

    /// Whether an owner is live by its record. To be asked after its slot is read: the record is live before the owner has a slot.
    #[inline]
    fn is_live(&self, owner: usize) -> bool {
        self.records.get(owner).is_some_and(|record| Record(record.load(Ordering::SeqCst)).is_live())
    }

    /// Asks after the owners that have some of this key. Whether one of them has ended.
    #[cold]
    #[inline(never)]
    fn lose_dead(&self, hash: u64, own: Owner) -> bool {
        let mut any = false;
        // A clock may say 0.
        let now = self.system.now() + 1;
        for slot in self.window_of(hash).1 {
            let word = Slot(slot.load(Ordering::SeqCst));
            if word == Slot::FREE || !word.is_of(hash) || word.owner() == own.place {
                continue;
            }
            let (Some(record), Some(asked)) = (self.records.get(word.owner()), self.local.asked.get(word.owner()))
            else {
                continue;
            };
            let live = Record(record.load(Ordering::SeqCst));
            if !live.is_live() {
                continue;
            }
            let before = asked.swap(now, Ordering::Relaxed);
            if before != now && self.system.has_ended(live.process(), before >> 8 != now >> 8) {
                any |= swap(record, live, live.dead());
            }
        }
        any
    }

    /// The number of the first slot of a key's window, and the window. The part of the hash that is not in the tag says in which cache line
    /// it begins.
    #[inline]
    fn window_of(&self, hash: u64) -> (usize, &'a [AtomicU64]) {
        let lines = (self.slots.len().saturating_sub(self.window) / LINE + 1) as u64;
        let first = (((hash >> 31) * lines) >> 33) as usize * LINE;
        let window = self.slots.get(first..).and_then(|rest| rest.get(..self.window));
        (first, window.unwrap_or_default())
    }
}

/// Slots in a cache line.
pub(super) const LINE: usize = if cfg!(loom) { 1 } else { 8 };

/// Swaps a slot's word for what `next` makes of it. Release: the next holder of a permit sees what the former one wrote before it released.
/// The order among the slots does not matter, since the count only becomes smaller: whoever sees that late counts one too many.
fn change(slot: &AtomicU64, next: impl Fn(Slot) -> Option<Slot>) -> bool {
    let mut word = slot.load(Ordering::Relaxed);
    loop {
        let Some(new) = next(Slot(word)) else { return false };
        match slot.compare_exchange(word, new.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(found) => word = found,
        }
    }
}

fn swap(record: &AtomicU64, from: Record, to: Record) -> bool {
    record.compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

impl Local {
    /// Notes who this process is, unless another thread has.
    pub(super) fn become_owner(&self, own: Owner) -> bool {
        let word = u64::from(own.generation) << 32 | (own.place as u64) << 1 | 1;
        self.own.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(not(loom))]
impl Local {
    /// Forgets who the owner was.
    pub(super) fn wipe(&self) {
        self.own.store(0, Ordering::Relaxed);
        self.cleaned.store(0, Ordering::Relaxed);
        self.asked.iter().for_each(|asked| asked.store(0, Ordering::Relaxed));
    }
}

#[cfg(loom)]
impl Local {
    /// All 0. Loom's atomics are more than their bytes.
    pub(super) fn new() -> Local {
        Local { own: AtomicU64::new(0), cleaned: AtomicU64::new(0), asked: core::array::from_fn(|_| AtomicU64::new(0)) }
    }
}
