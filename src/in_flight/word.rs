//! The words of an in-flight table, as values: slots, owners' records, tickets.
//!
//! ```text
//!  slot     63                33 32       23 22      16 15            0
//!          ┌────────────────────┬───────────┬──────────┬───────────────┐
//!          │ tag of the key  31 │ owner  10 │ undecided│ count      16 │     0: the slot is free
//!          └────────────────────┴───────────┴──────────┴───────────────┘
//!  record   63            42 41             18 17            2 1       0
//!          ┌────────────────┬─────────────────┬───────────────┬─────────┐
//!          │ process     22 │ its start    24 │ generation 16 │ state 2 │     0: the record is free
//!          └────────────────┴─────────────────┴───────────────┴─────────┘
//!  ticket   63                    32 31            16 15              0
//!          ┌────────────────────────┬────────────────┬─────────────────┐
//!          │ slot number + 1     32 │ generation  16 │ slot's 16 of    │     0: no ticket
//!          └────────────────────────┴────────────────┴─tag and owner───┘
//! ```

/// Owners that a table can have at one time.
pub const OWNERS_MOST: usize = if cfg!(loom) { 4 } else { 1024 };

/// A slot's word: how many permits one owner has of one key. `count` includes the `undecided` ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitSlot(pub(super) u64);

/// An owner's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnerRecord(pub(super) u64);

/// The state of an owner in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    Live = 1,
    Cleaning = 2,
    Dead = 3,
}

/// A process: its number, and the time of its start in ticks modulo 2^24, which distinguishes two
/// processes of one number. 0: unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) number: u32,
    pub(super) start: u32,
}

/// This process's owner: the place of its record, and the generation in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlightOwner {
    pub(super) place: usize,
    pub(super) generation: u16,
}

/// A permit of a key in flight. It is plain data: any thread of the process may release it.
///
/// Only the process that acquired a ticket can release it, through the same
/// [`InFlight`](super::InFlight). A forked child cannot release the tickets of its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[must_use = "the permit stays in flight until the ticket is released or the process ends"]
pub struct Ticket(u64);

/// The largest number of a process that a record holds. Linux numbers processes below 2^22.
pub(super) const PROCESS_MOST: u32 = (1 << 22) - 1;

const OWNER_AT: u32 = 23;
const TAG_AT: u32 = 33;
const ONE_UNDECIDED: u64 = 1 << 16;
const UNDECIDED_MOST: u64 = 127;
const COUNT_MOST: u64 = 0xffff;

impl PermitSlot {
    pub(super) const FREE: PermitSlot = PermitSlot(0);
    /// The difference of a slot's word when one permit is no longer undecided.
    pub(super) const DECIDED: u64 = ONE_UNDECIDED;

    /// The first permit of a key, undecided.
    pub(super) const fn first(hash: u64, owner: InFlightOwner) -> PermitSlot {
        PermitSlot(hash << TAG_AT | (owner.place as u64) << OWNER_AT | ONE_UNDECIDED | 1)
    }

    pub(super) const fn is_of(self, hash: u64) -> bool {
        (self.0 ^ hash << TAG_AT) >> TAG_AT == 0
    }

    pub(super) const fn owner(self) -> usize {
        (self.0 >> OWNER_AT) as usize % 1024
    }

    pub(super) const fn count(self) -> u64 {
        self.0 & COUNT_MOST
    }

    pub(super) const fn undecided(self) -> u64 {
        self.0 >> 16 & UNDECIDED_MOST
    }

    pub(super) const fn has_room(self) -> bool {
        self.count() < COUNT_MOST && self.undecided() < UNDECIDED_MOST
    }

    /// This word with one more permit, which is undecided.
    pub(super) const fn and_one(self) -> PermitSlot {
        PermitSlot(self.0 + ONE_UNDECIDED + 1)
    }

    /// This word without one undecided permit; the free word if that was the last permit.
    pub(super) const fn without_undecided(self) -> PermitSlot {
        match self.count() {
            0 | 1 => PermitSlot::FREE,
            _ => PermitSlot(self.0 - ONE_UNDECIDED - 1),
        }
    }

    /// This word without one permit that is not undecided; the free word if that was the last
    /// permit.
    pub(super) const fn without_one(self) -> PermitSlot {
        match self.count() {
            0 | 1 => PermitSlot::FREE,
            _ => PermitSlot(self.0 - 1),
        }
    }
}

impl OwnerRecord {
    pub(super) const FREE: OwnerRecord = OwnerRecord(0);

    pub(super) const fn new(process: Process, generation: u16, state: OwnerState) -> OwnerRecord {
        let start = process.start as u64;
        OwnerRecord(
            (process.number as u64) << 42 | start << 18 | (generation as u64) << 2 | state as u64,
        )
    }

    pub(super) const fn is_live(self) -> bool {
        self.0 & 3 == OwnerState::Live as u64
    }

    pub(super) const fn is_dead(self) -> bool {
        self.0 & 3 == OwnerState::Dead as u64
    }

    pub(super) const fn dead(self) -> OwnerRecord {
        OwnerRecord(self.0 | 3)
    }

    pub(super) const fn process(self) -> Process {
        Process { number: (self.0 >> 42) as u32, start: (self.0 >> 18) as u32 & 0xff_ffff }
    }
}

impl Ticket {
    /// The ticket as a number, for callers that store numbers. 0: no ticket.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The ticket of a number.
    pub const fn from_bits(bits: u64) -> Ticket {
        Ticket(bits)
    }

    pub(super) const fn new(at: usize, owner: InFlightOwner, slot: PermitSlot) -> Ticket {
        Ticket(
            (at as u64 + 1) << 32 | (owner.generation as u64) << 16 | (slot.0 >> OWNER_AT & 0xffff),
        )
    }

    /// The slot's number; `None` for no ticket.
    pub(super) const fn at(self) -> Option<usize> {
        ((self.0 >> 32) as usize).checked_sub(1)
    }

    /// Whether this owner acquired the ticket.
    pub(super) const fn is_of(self, owner: InFlightOwner) -> bool {
        (self.0 >> 16) as u16 == owner.generation && self.0 as usize % 1024 == owner.place
    }

    /// Whether a slot with this word can count the ticket's permit.
    pub(super) const fn is_in(self, slot: PermitSlot) -> bool {
        slot.0 >> OWNER_AT & 0xffff == self.0 & 0xffff && slot.count() > slot.undecided()
    }
}
