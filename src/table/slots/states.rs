//! The interface of the slot protocol: the functions that it calls ([`States`]), and the outcome of
//! a request.

use crate::decision::Verdict;
use crate::table::memory::returns::ReturnTurn;
use crate::table::memory::slot::{Slot, SlotPair};

/// What a new key gets when no candidate of the key has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum OnFull {
    /// The table evicts the key whose slot expires first. The new key begins with its full burst in
    /// that slot. No later key can take the slot before the evicted key's debt would have been
    /// paid. Under other algorithms than gcra the new key owes until then. A client that invents as
    /// many keys as the table has slots makes the table forget a limited key about once, and the
    /// limited key then has a full burst again.
    #[default]
    EvictNearest = 0,
    /// The new key takes the slot that expires first, and the debt in it. The table decides the
    /// request by that debt.
    Inherit = 1,
    /// The table admits the new key as a fresh key, and does not store it.
    Allow = 2,
    /// The table refuses the new key, so it forgets no key and admits none uncounted. Use it for
    /// keys that a client cannot invent, such as account numbers: a client that invents keys can
    /// fill the table and so shut out all new keys.
    Deny = 3,
}

/// What the protocol asks about states. The protocol itself knows no algorithm and no policy. A
/// *pair* is the key word and the state word of a slot. A key word names a version of a policy.
pub(crate) trait States {
    /// The time in nanoseconds at which the key in a slot has its full burst again. From then on a
    /// new key may take the slot. No swap makes this time earlier.
    fn expires_at(&self, pair: SlotPair) -> u64;

    /// True if the two state words alone prove that `pair` expires at the same time as `other` or
    /// later. It saves two calls of [`States::expires_at`].
    fn no_sooner(&self, pair: SlotPair, other: SlotPair) -> bool {
        let _ = (pair, other);
        false
    }

    /// Compares the key word `found` of a slot with the key word `key` of the request. Both have
    /// the same tag.
    fn relation(&self, found: u64, key: u64) -> Relation;

    /// Converts the state of `pair` to the version that `key` names, and keeps the time at which
    /// the debt is paid. The result expires at the same time as `pair` or later.
    fn adopt(&self, key: u64, pair: SlotPair) -> u64;

    /// Converts the state of `pair`, which was read from `slot`, at the time `now` to the version
    /// that `key` names, as that version's [`Keep`](crate::policy::Keep) says. The result may
    /// expire earlier than `pair`. It is 0 if the key owes nothing.
    fn convert(&self, key: u64, slot: &Slot, pair: SlotPair, now: u64) -> u64 {
        let _ = (slot, now);
        self.adopt(key, pair)
    }

    /// Whether a slot with `pair` stays taken until `until`. A rule whose words count together with
    /// others answers no if the slot would expire at that very time
    /// ([`crate::limiter::unfolding`]).
    fn outlasts(&self, pair: SlotPair, until: u64) -> bool {
        self.expires_at(pair) >= until
    }

    /// A state for `key` whose debt is paid at the time `until` or later.
    fn owing(&self, key: u64, until: u64) -> u64;

    /// A state that decides requests as `pair.state` does at the time `now`, and keeps its slot
    /// taken until `until`. `None` if no state word can hold both. If `exact` is false, the state
    /// may owe a microsecond more.
    fn hold(&self, pair: SlotPair, until: u64, now: u64, exact: bool) -> Option<u64> {
        let _ = (pair, until, now, exact);
        None
    }

    /// True if `key` names the version that limits its key now. False after a change of the policy
    /// or of an override.
    fn is_current(&self, key: u64) -> bool;

    /// False if another version has the number of the request's version by now, so that a slot's
    /// words mean something else. The protocol asks after it has read the slot.
    fn is_numbered(&self) -> bool {
        true
    }

    /// Takes the lock under which a call gives permits back to the key with this tag. `None`:
    /// another call keeps the lock, so the caller gives nothing back.
    fn turn(&self, tag: u64) -> Option<ReturnTurn<'_>>;

    /// The protocol calls this function after it has removed a key from its slot. The table counts
    /// the removals.
    fn vacated(&self) {}

    /// The protocol calls this function after it has inserted a moved key into its new slot. The
    /// table counts the insertions.
    fn moved(&self, event: Event) {
        let _ = event;
    }
}

/// How a slot's key word is related to the request's key word. Both have the same tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// `found` is a key of another policy, or names an unknown version.
    Other,
    /// The slot holds the request's key. A change of the policy has replaced the version in the
    /// slot, and the request converts the key to its own version, which is current.
    Former,
    /// The slot holds the request's key under the request's version; or the request's version is no
    /// longer current, and the request must begin again with the current one.
    Same,
}

/// What a request did to the table, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A slot held the key, or the request has no state to store.
    Known,
    /// The key took a slot that no key has ever had, or a vacant one.
    Inserted,
    /// The key took the slot of an expired key.
    Reclaimed,
    /// No candidate has expired, and [`OnFull::Deny`] refuses the key.
    Refused,
    /// No candidate has expired, and the debt that the key would inherit refuses it.
    RefusedByDebt,
    /// No candidate has expired, and under [`OnFull::Inherit`] the key took a slot together with
    /// its debt.
    Inherited,
    /// No candidate has expired, and [`OnFull::Allow`] admits the key without storing it.
    Unremembered,
    /// No candidate has expired, and under [`OnFull::EvictNearest`] the key took the slot of
    /// another key, which the table forgot.
    Evicted,
}

/// The result of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestOutcome {
    pub(crate) verdict: Verdict,
    /// The key's state after the request.
    pub(crate) state: u64,
    pub(crate) event: Event,
    /// The time at which the first candidate expires, for [`Event::Refused`]; otherwise 0.
    pub(crate) until: u64,
    /// The number of swaps that failed.
    pub(crate) retries: u32,
}

/// The caller must repeat the request, because another call has changed the key's policy or slot.
/// The request has charged nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyChanged;
