//! The protocol by which processes that share memory count the permits of a key in flight. No key
//! ever has more than its limit, no thread waits for another, and a process that is killed loses
//! its permits.
//!
//! An **owner** is one [`InFlight`](super::InFlight) object of one process. All threads of that
//! process share it. The memory holds a record for each owner, and slots ([`super::word`] has the
//! layout of both). A slot counts the permits that one owner has of one key, and how many of these
//! are undecided: their threads do not know yet whether the limit admits them. A key has no entry
//! of its own. Its permits in flight are the sum over its slots. When an owner releases its last
//! permit of a key, its slot is free again, so nothing has to be swept. All slots of a key lie in
//! the key's window, a run of slots whose start the hash gives.
//!
//! Who writes a slot:
//! - **S1** Any owner takes a free slot by one swap of 0 for the slot's whole word: key, owner, and
//!   one undecided permit.
//! - **S2** While its owner is live, only the owner's threads change a slot. Each change is one
//!   swap from the whole word, or subtracts what the same thread has added. The slot keeps its key
//!   and its owner until it is free again.
//! - **S3** One owner takes over the record of a dead owner, frees the dead owner's slots, and then
//!   the record.
//!
//! A slot's word is its whole state. So if a slow thread's swap succeeds, its change is correct,
//! even if the word changed meanwhile and changed back.
//!
//! An owner's record is one word, too: 0 if it is free; otherwise a process, the owner's
//! generation, and a state.
//!
//! ```text
//! free  -> live(p)        p joins                                by p
//! live(p) -> dead(p)      p has ended, or closes its handle      by any owner that notices, or by
//! p live(p), dead(p), cleaning(p) -> cleaning(q)   p has ended     by q, which then frees p's
//! slots cleaning(q) -> free     p's slots are free                     by q
//! ```
//!
//! All but the last are swaps from the exact word. If q is killed while it frees slots, the record
//! stays in the state cleaning(q). The next owner that cleans then frees all of p's slots again.
//!
//! To acquire a permit, a thread first adds one undecided permit to its owner's slot, and then adds
//! up the permits of all live owners.
//! - **E1** A key never has more permits than the limit. Suppose that at some instant more than
//!   `limit` permits are in flight, and let P be the one that was added to its slot last. All the
//!   others had been added before P's thread began to add up, and had not been released when it was
//!   done: in the one order of all sequentially consistent operations their swaps precede its
//!   loads. Each of them is in a slot that does not move (S2) and whose owner is live. So P's
//!   thread added up all of them and P, which is more than `limit`, and was refused.
//! - **E2** A thread is refused only if the limit was reached, or if other threads had undecided
//!   permits at each of its [`ATTEMPTS`] attempts. Threads that meet so take their undecided
//!   permits back, and try again after pauses of different lengths.
//!
//! Loom treats a sequentially consistent access as AcqRel, so its models have a fence where a
//! thread begins to add up. With that fence they notice a weaker ordering only of releases.
//!
//! A thread that adds up can count one permit twice: in a slot before its release, and, acquired
//! again, in a later slot. It may then refuse a request although the limit is no longer reached. It
//! never counts too few.

use super::refusal::Refusal;
use super::word::{
    InFlightOwner, OwnerRecord, OwnerState, PermitSlot, Process, Ticket, OWNERS_MOST, PROCESS_MOST,
};
use crate::sync::{AtomicU64, Ordering};

/// The most attempts of an acquisition that meets undecided permits of other threads.
const ATTEMPTS: u32 = if cfg!(loom) { 2 } else { 24 };
/// The number of failed swaps after which a call gives up. A swap fails because another thread's
/// swap succeeded, or because the memory is damaged.
const SWAPS: u32 = if cfg!(loom) { 8 } else { 1 << 16 };

/// The calls to the operating system. The loom models have an implementation of their own.
pub(super) trait System {
    fn this_process(&self) -> Process;
    /// The number of this process's PID namespace; 0 if the system does not say.
    fn namespace(&self) -> u64;
    /// Whether that process has ended. False if the system cannot tell. With `thorough` the call
    /// also checks, at a higher cost, whether another process has the number now.
    fn has_ended(&self, process: Process, thorough: bool) -> bool;
    /// A time in milliseconds.
    fn now(&self) -> u64;
    /// Pauses before another attempt, for a length that differs from thread to thread.
    fn pause(&self, attempt: u32);
}

/// The part of a view that is in the process's own memory. All words are 0 at the start and in a
/// forked child.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ProcessPart {
    /// This process's [`InFlightOwner`], or 0 if the process is no owner yet.
    own: AtomicU64,
    /// The number of this process's PID namespace; 0 if the process has not asked, or if the system
    /// did not say.
    pub(super) namespace: AtomicU64,
    /// The number of the 1,024 ms in which this process last freed slots because a window was full.
    cleaned: AtomicU64,
    /// The millisecond in which this process last freed slots in order to become an owner, plus 1.
    tried: AtomicU64,
    /// For each owner: the time, plus 1 ms, at which this process last asked the system whether the
    /// owner has ended. A process asks at most once a millisecond.
    asked: [AtomicU64; OWNERS_MOST],
}

/// One process's access to a table: the shared memory, and the process's own part.
pub(super) struct TableView<'a, S> {
    pub(super) records: &'a [AtomicU64; OWNERS_MOST],
    pub(super) slots: &'a [AtomicU64],
    /// The number of slots in a key's window.
    pub(super) window: usize,
    /// Counts the owners that have joined. It gives each of them its generation.
    pub(super) joined: &'a AtomicU64,
    /// The PID namespace of the owners. 0: any.
    pub(super) namespace: &'a AtomicU64,
    pub(super) local: &'a ProcessPart,
    pub(super) system: &'a S,
}

/// The sums over a key's window, and the slots that an acquisition can use.
struct WindowSum<'a> {
    /// All permits of live owners, undecided ones included.
    counted: u64,
    undecided: u64,
    /// A slot of the thread's owner that has room for another permit.
    own: Option<(usize, &'a AtomicU64, PermitSlot)>,
    /// The first free slot.
    free: Option<(usize, &'a AtomicU64)>,
}

impl<'a, S: System> TableView<'a, S> {
    /// Takes a permit, unless `limit` permits of the key are in flight.
    pub(super) fn acquire(&self, hash: u64, limit: u32) -> Result<Ticket, Refusal> {
        let own = self.owner()?;
        let limit = u64::from(limit);
        let mut attempt = 0;
        for _ in 0..SWAPS {
            let seen = self.add_up(hash, Some(own));
            let mut decided = seen.counted - seen.undecided;
            if seen.counted < limit {
                let (at, slot, from, to) = match (seen.own, seen.free) {
                    (Some((at, slot, word)), _) => (at, slot, word, word.and_one()),
                    (None, Some((at, slot))) => {
                        (at, slot, PermitSlot::FREE, PermitSlot::first(hash, own))
                    }
                    (None, None) if self.clean_seldom() => continue,
                    (None, None) => return Err(Refusal::Full),
                };
                // SeqCst, as the loads of `add_up`: E1 needs one order of all swaps that add a
                // permit and all loads that add up. With a weaker order two threads could both add
                // up before either sees the other's permit. No model notices that: the models'
                // fence in `add_up` orders both.
                if slot.compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::Relaxed).is_err()
                {
                    continue;
                }
                let seen = self.add_up(hash, Some(own));
                if seen.counted <= limit {
                    // Relaxed: it publishes no other data. The slot still belongs to this owner,
                    // because it counts this permit.
                    slot.fetch_sub(PermitSlot::DECIDED, Ordering::Relaxed);
                    return Ok(Ticket::new(at, own, to));
                }
                change(slot, |word| Some(word.without_undecided()));
                decided = seen.counted - seen.undecided;
            }
            if self.lose_dead(hash, Some(own)) {
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

    /// Releases a permit. False if the ticket is 0, has been released, or belongs to another owner,
    /// such as the parent of a forked child.
    pub(super) fn release(&self, ticket: Ticket) -> bool {
        let Some(own) = self.joined() else { return false };
        match ticket.at().and_then(|at| self.slots.get(at)) {
            Some(slot) if ticket.is_of(own) => {
                change(slot, |word| ticket.is_in(word).then(|| word.without_one()))
            }
            _ => false,
        }
    }

    /// The sum of a key's permits over its live owners, without undecided ones.
    pub(super) fn count(&self, hash: u64) -> u64 {
        let seen = self.add_up(hash, self.joined());
        seen.counted - seen.undecided
    }

    /// [`TableView::count`]. If that is `limit` or more, the call first asks the system which of
    /// its owners ended.
    pub(super) fn count_of_living(&self, hash: u64, limit: u32) -> u64 {
        let own = self.joined();
        // Each pass except the last one marks an owner dead, so there are at most so many.
        for _ in 0..OWNERS_MOST {
            let count = self.count(hash);
            if count < u64::from(limit) || !self.lose_dead(hash, own) {
                return count;
            }
        }
        self.count(hash)
    }

    /// This process's owner. With its first call the process becomes one.
    #[inline]
    fn owner(&self) -> Result<InFlightOwner, Refusal> {
        match self.joined() {
            Some(own) => Ok(own),
            None => self.join(),
        }
    }

    /// Acquire: the thread's permits come after its process's record is live. No model notices a
    /// weaker ordering, because the models' fence in [`TableView::add_up`] follows.
    #[inline]
    fn joined(&self) -> Option<InFlightOwner> {
        match self.local.own.load(Ordering::Acquire) {
            0 => None,
            word => Some(InFlightOwner {
                place: (word >> 1) as usize % OWNERS_MOST,
                generation: (word >> 32) as u16,
            }),
        }
    }

    /// Makes this process an owner, unless it is one.
    pub(super) fn join_once(&self) -> Result<(), Refusal> {
        self.owner().map(|_| ())
    }

    /// Whether this process is in the owners' PID namespace, so that their numbers mean the same to
    /// all.
    fn is_among_owners(&self) -> bool {
        let theirs = self.namespace.load(Ordering::Relaxed);
        if theirs == 0 {
            return true;
        }
        let known = &self.local.namespace;
        if known.load(Ordering::Relaxed) == 0 {
            known.store(self.system.namespace(), Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed) == theirs
    }

    #[cold]
    #[inline(never)]
    fn join(&self) -> Result<InFlightOwner, Refusal> {
        if !self.is_among_owners() {
            return Err(Refusal::Namespace);
        }
        let process = self.system.this_process();
        if process.number > PROCESS_MOST {
            return Err(Refusal::OwnersFull);
        }
        // Once a millisecond: if no place is free, each acquisition comes here, and asks the system
        // about all owners.
        let now = self.system.now() + 1;
        if self.local.tried.swap(now, Ordering::Relaxed) != now {
            self.clean();
        }
        let generation = self.joined.fetch_add(1, Ordering::Relaxed) as u16;
        let live = OwnerRecord::new(process, generation, OwnerState::Live);
        for (place, record) in self.records.iter().enumerate() {
            if !swap(record, OwnerRecord::FREE, live) {
                continue;
            }
            let own = InFlightOwner { place, generation };
            if self.local.become_owner(own) {
                return Ok(own);
            }
            // Another thread of this process has joined first. No slot refers to this record yet.
            swap(record, live, OwnerRecord::FREE);
            return self.joined().ok_or(Refusal::OwnersFull);
        }
        Err(Refusal::OwnersFull)
    }

    /// Marks this process's owner dead. From then on no thread counts the permits that the process
    /// has not released. No model notices weaker orderings: a thread that sees the dead record late
    /// counts permits too many for so long, which is safe.
    pub(super) fn part(&self) {
        if let Some(record) = self.joined().and_then(|own| self.records.get(own.place)) {
            let live = OwnerRecord(record.load(Ordering::SeqCst));
            if live.is_live() {
                swap(record, live, live.dead());
            }
        }
        self.local.own.store(0, Ordering::Release);
    }

    /// Frees the slots of owners that have ended. No model notices weaker orderings: a thread that
    /// sees a slot or a record late counts permits too many for so long, which is safe.
    #[cold]
    #[inline(never)]
    fn clean(&self) {
        let mut taken = [false; OWNERS_MOST];
        let mut any = false;
        let own = self.joined().map(|own| own.place);
        let cleaning = OwnerRecord::new(self.system.this_process(), 0, OwnerState::Cleaning);
        for (place, (record, taken)) in self.records.iter().zip(&mut taken).enumerate() {
            let word = OwnerRecord(record.load(Ordering::SeqCst));
            if word != OwnerRecord::FREE
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
        let is_taken = |word: PermitSlot| taken.get(word.owner()).is_some_and(|taken| *taken);
        for slot in self.slots {
            let word = PermitSlot(slot.load(Ordering::SeqCst));
            if word != PermitSlot::FREE && is_taken(word) {
                // Relaxed: a thread that sees this store late only finds one free slot fewer.
                slot.store(PermitSlot::FREE.0, Ordering::Relaxed);
            }
        }
        for (record, taken) in self.records.iter().zip(taken) {
            if taken {
                // SeqCst, and so Release: the next owner of the record sees its slots free. No
                // model notices a weaker ordering, as above.
                record.store(OwnerRecord::FREE.0, Ordering::SeqCst);
            }
        }
    }

    /// [`TableView::clean`], once a second at most. The result is whether it ran.
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

    /// Adds up a key's permits. It reads the whole window, because slots of the key may lie behind
    /// slots that have become free.
    #[inline]
    fn add_up(&self, hash: u64, own: Option<InFlightOwner>) -> WindowSum<'a> {
        // Loom treats SeqCst accesses as AcqRel. In loom only fences have one order for all
        // threads. No model notices a weaker ordering of the loads below, because of this one.
        #[cfg(loom)]
        loom::sync::atomic::fence(Ordering::SeqCst);
        let mut seen = WindowSum { counted: 0, undecided: 0, own: None, free: None };
        let own = own.map(|own| own.place);
        let (first, slots) = self.window_of(hash);
        for (n, slot) in slots.iter().enumerate() {
            let word = PermitSlot(slot.load(Ordering::SeqCst));
            if word == PermitSlot::FREE {
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
                // Limited to the count, so that no difference is negative in damaged memory.
                seen.undecided += word.undecided().min(word.count());
            }
        }
        seen
    }

    /// Whether an owner's record says that it is live. The caller must have read the owner's slot
    /// before: an owner's record becomes live before it takes its first slot, so a record that is
    /// read after the slot is never older than the slot. No model notices a weaker ordering of this
    /// load, because its slot was read by an ordered one.
    #[inline]
    fn is_live(&self, owner: usize) -> bool {
        self.records
            .get(owner)
            .is_some_and(|record| OwnerRecord(record.load(Ordering::SeqCst)).is_live())
    }

    /// Asks the system which of the key's owners have ended, and marks their records dead. Returns
    /// whether it marked any. No model notices weaker orderings: the system tells whether an owner
    /// has ended, and a swap fails on a record that has changed.
    #[cold]
    #[inline(never)]
    fn lose_dead(&self, hash: u64, own: Option<InFlightOwner>) -> bool {
        if !self.is_among_owners() {
            return false;
        }
        let mut any = false;
        let own = own.map(|own| own.place);
        // The clock may read 0, and 0 means that this process has not asked yet. (No model notices
        // the orderings below, as above.)
        let now = self.system.now() + 1;
        for slot in self.window_of(hash).1 {
            let word = PermitSlot(slot.load(Ordering::SeqCst));
            if word == PermitSlot::FREE || !word.is_of(hash) || Some(word.owner()) == own {
                continue;
            }
            let (Some(record), Some(asked)) =
                (self.records.get(word.owner()), self.local.asked.get(word.owner()))
            else {
                continue;
            };
            let live = OwnerRecord(record.load(Ordering::SeqCst));
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

    /// The number of the first slot of a key's window, and the window. The bits of the hash that
    /// are not in the tag choose the cache line at which the window begins.
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

/// Replaces a slot's word by `next` of it. Release: the next holder of the permit sees what this
/// holder wrote before its release. A thread that sees the new word late counts one permit too
/// many, which is safe.
fn change(slot: &AtomicU64, next: impl Fn(PermitSlot) -> Option<PermitSlot>) -> bool {
    let mut word = slot.load(Ordering::Relaxed);
    loop {
        let Some(new) = next(PermitSlot(word)) else { return false };
        match slot.compare_exchange(word, new.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(found) => word = found,
        }
    }
}

/// SeqCst, as E1 needs it: a record is live before its owner's first permit. No model notices a
/// weaker ordering, because the owner's first swap of a slot is ordered, too.
fn swap(record: &AtomicU64, from: OwnerRecord, to: OwnerRecord) -> bool {
    record.compare_exchange(from.0, to.0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

impl ProcessPart {
    /// Stores this process's owner. False if another thread has stored one before. AcqRel: the
    /// owner's record is live before another thread of the process takes a permit. No model notices
    /// a weaker ordering: loom tries only some orders of a thread that reads `own`.
    pub(super) fn become_owner(&self, own: InFlightOwner) -> bool {
        let word = u64::from(own.generation) << 32 | (own.place as u64) << 1 | 1;
        self.own.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(not(loom))]
impl ProcessPart {
    /// Makes all words 0, as in a new process.
    pub(super) fn wipe(&self) {
        self.own.store(0, Ordering::Relaxed);
        self.namespace.store(0, Ordering::Relaxed);
        self.cleaned.store(0, Ordering::Relaxed);
        self.tried.store(0, Ordering::Relaxed);
        self.asked.iter().for_each(|asked| asked.store(0, Ordering::Relaxed));
    }
}

#[cfg(loom)]
impl ProcessPart {
    /// A `ProcessPart` whose words are all 0. Loom's atomics cannot be made from zero bytes.
    pub(super) fn new() -> ProcessPart {
        let zero = || AtomicU64::new(0);
        ProcessPart {
            own: zero(),
            namespace: zero(),
            cleaned: zero(),
            tried: zero(),
            asked: core::array::from_fn(|_| zero()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
