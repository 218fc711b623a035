//! Changing a limiter's policy while it is in use.
//!
//! A limiter's first state is a part of it. A change makes another state, charges it with the debt
//! of the current one, and publishes it by one swap of a pointer. No call takes a lock or registers
//! as a user of a state, so:
//!
//! - A call that has begun on the former state ends on it. Each state admits no more than its own
//!   policy's bound, and a new state has the debt that the former one had when the change read it.
//!   So in any interval the limiter admits at most the sum of the bounds of the policies in force.
//! - A replaced state is freed with the limiter, because a call may still use it. A policy that
//!   comes back gets the state that it had before, charged again, so a limiter keeps one state for
//!   each policy, at most [`MOST`].
//!
//! The fast path of a token bucket ([`Quick`](super::fast::Quick)) reads no pointer. It reads the
//! time up to which the cell's fast path decides, and a change sets that time to 0.

use super::{Shared, State};
use crate::algorithm::{Algorithm, Rule};
use crate::policy::{Keep, Policy, PolicyError};
use crate::sync::{boxed, AtomicPtr, AtomicU32, Ordering, Written};
use crate::units::NEVER;
use alloc::boxed::Box;
use core::ptr;

/// The policies that a limiter can be changed to in its life.
pub(super) const MOST: u32 = if cfg!(loom) { 5 } else { 4096 };

/// The states that replaced a limiter's first one.
#[derive(Debug)]
pub(super) struct Changes<S> {
    /// The current state. Null: the limiter's first.
    current: AtomicPtr<StateNode<S>>,
    /// All states, in a list that only grows.
    made: AtomicPtr<StateNode<S>>,
    /// The number of places in the list that are taken.
    count: AtomicU32,
}

#[derive(Debug)]
struct StateNode<S> {
    state: S,
    policy: Policy,
    /// 1 while the state is the current one, or is that before a limit of 0, or a change prepares
    /// it.
    taken: AtomicU32,
    /// Of a limit of 0: the state before it. Null: the limiter's first.
    before: AtomicPtr<StateNode<S>>,
    next: *mut StateNode<S>,
    written: Written,
}

impl<S> Default for Changes<S> {
    fn default() -> Changes<S> {
        let none = || AtomicPtr::new(ptr::null_mut());
        Changes { current: none(), made: none(), count: AtomicU32::new(0) }
    }
}

impl<S> Changes<S> {
    /// The current state, if it is not the limiter's first.
    #[inline]
    pub(super) fn current(&self) -> Option<&S> {
        self.node().map(|node| &node.state)
    }

    /// The current policy, if it is not the limiter's first.
    pub(super) fn policy(&self) -> Option<&Policy> {
        self.node().map(|node| &node.policy)
    }

    /// All states but the limiter's first.
    pub(super) fn states(&self) -> impl Iterator<Item = &S> {
        self.nodes().map(|node| &node.state)
    }

    #[inline]
    fn node(&self) -> Option<&StateNode<S>> {
        // Acquire: the state was made and charged before it was published.
        // SAFETY: null, or a node of the list, none of which is freed before `self` is dropped.
        unsafe { node_of(self.current.load(Ordering::Acquire)) }
    }

    fn nodes(&self) -> impl Iterator<Item = &StateNode<S>> {
        let mut at = self.made.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: null, or a node of the list, none of which is freed before `self` is dropped.
            let node = unsafe { node_of(at) }?;
            at = node.next;
            Some(node)
        })
    }
}

impl Changes<State> {
    /// Replaces the current state, which is `first` if no change came before, by a state of
    /// `policy`. The call reads the state before it calls `now`.
    #[inline(never)]
    pub(super) fn change(
        &self,
        first: &State,
        policy: &Policy,
        keep: Keep,
        now: &dyn Fn() -> u64,
    ) -> Result<(), PolicyError> {
        policy.validate()?;
        if first.credit() != 0 {
            return Err(PolicyError::OptionMismatch);
        }
        if self.policy() == Some(policy) && keep != Keep::Reset {
            return Ok(());
        }
        let new = self.claim(policy)?;
        // SAFETY: `claim` returns a node of the list.
        let node = unsafe { &*new };
        let mut current = self.current.load(Ordering::Acquire);
        loop {
            // SAFETY: null, or a node of the list.
            let former = unsafe { node_of(current) };
            // Under a limit of 0 nothing is charged, so the state before it goes on.
            let source = match former.filter(|former| is_closed(&former.state)) {
                Some(closed) => closed.before.load(Ordering::Acquire),
                None => current,
            };
            // SAFETY: null, or a node of the list.
            let charged = unsafe { node_of(source) };
            carry(charged.map_or(first, |charged| &charged.state), &node.state, keep, now);
            let keeps_source = is_closed(&node.state) && keep != Keep::Reset;
            // Release: a thread that read the pointer to this node when it was current before reads
            // the source here.
            node.before
                .store(if keeps_source { source } else { ptr::null_mut() }, Ordering::Release);
            // Release: publishes the new state. Acquire: sees the state of a change that came
            // first.
            match self.current.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    first.retire();
                    // A limit of 0 may have been replaced and have come back since this call read
                    // it, with another state before it. That one is no longer in use.
                    let before = match former.filter(|former| is_closed(&former.state)) {
                        // Relaxed: the swap above has seen it stored.
                        Some(closed) => closed.before.load(Ordering::Relaxed),
                        None => current,
                    };
                    // SAFETY: null, or a node of the list.
                    let before = unsafe { node_of(before) };
                    for former in [former, before].into_iter().flatten() {
                        // The state that a limit of 0 keeps stays taken. A store here could come
                        // after that of a call that has replaced the limit of 0. No model notices a
                        // weaker ordering: loom keeps the order in which stores to one word ran.
                        if !keeps_source || !ptr::eq(former, source) {
                            former.taken.store(0, Ordering::Release);
                        }
                    }
                    return Ok(());
                }
                Err(seen) => current = seen,
            }
        }
    }

    /// Returns a state of `policy` that no other change uses, and makes one if there is none.
    fn claim(&self, policy: &Policy) -> Result<*mut StateNode<State>, PolicyError> {
        for node in self.nodes().filter(|node| node.policy == *policy) {
            // Acquire: the next stores to the node come after those of its former change. (No model
            // notices a weaker ordering: as in `change`.)
            if node.taken.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(ptr::from_ref(node).cast_mut());
            }
        }
        // Relaxed: the number orders nothing.
        if self.count.fetch_add(1, Ordering::Relaxed) >= MOST {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(PolicyError::Changes);
        }
        let made = State::new(policy).and_then(|state| {
            let none = || AtomicPtr::new(ptr::null_mut());
            let node = StateNode {
                state,
                policy: *policy,
                taken: AtomicU32::new(1),
                before: none(),
                next: ptr::null_mut(),
                written: Written::new(),
            };
            boxed(node).ok_or(PolicyError::NoMemory)
        });
        let new = match made {
            Ok(node) => Box::into_raw(node),
            Err(error) => {
                self.count.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        };
        // Relaxed, also on failure: this call does not read the node. A thread that walks the list
        // sees it, because each swap continues the release sequence of those before.
        let mut head = self.made.load(Ordering::Relaxed);
        loop {
            // SAFETY: no other thread has `new` before it is in the list.
            unsafe { ptr::addr_of_mut!((*new).next).write(head) };
            // Release: publishes the node that the pointer names.
            match self.made.compare_exchange(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(new),
                Err(seen) => head = seen,
            }
        }
    }
}

/// The node behind a pointer, which the calling thread reads.
///
/// # Safety
/// `at` is null, or a node of a list that lives as long as the reference.
#[inline(always)]
unsafe fn node_of<'a, S>(at: *mut StateNode<S>) -> Option<&'a StateNode<S>> {
    // SAFETY: by the caller's promise.
    let node = unsafe { at.as_ref() }?;
    node.written.is_read();
    Some(node)
}

impl<S> Drop for Changes<S> {
    fn drop(&mut self) {
        // Relaxed: the drop has the only reference to `self`.
        let mut at = self.made.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: from Box::into_raw, once in the list, and no other thread has `self` any
            // more.
            let node = unsafe { Box::from_raw(at) };
            at = node.next;
        }
    }
}

/// Charges `new` with the debt of `old`. Other calls may use both meanwhile. They use `new` if they
/// began when it was the current state before.
fn carry(old: &State, new: &State, keep: Keep, now: &dyn Fn() -> u64) {
    if let (State::Cell(old), State::Cell(new)) = (old, new) {
        let (word, highest) = (old.word(), old.highest());
        let (rule, former, now) = (new.algorithm(), old.algorithm(), now());
        let carried = |word| match keep {
            Keep::Reset => 0,
            _ if rule == former => word,
            _ if former.expires_at(word) <= now => 0,
            Keep::Count => rule.convert(former, word, now),
            Keep::Time => rule.adopt_at(former, word, now),
        };
        return new.go_on(carried(word), old.has_booked(), carried(highest));
    }
    new.reset();
    let now = now();
    let decision = old.peek_at(now, 1);
    match keep {
        Keep::Reset => {}
        // As good as fresh, also if the new policy admits more.
        _ if decision.reset_after == 0 => {}
        // A quota has no time until which it owes, so the permits used are kept.
        Keep::Time if is_quota(old) || is_quota(new) => {
            let full = fresh(old, now);
            new.take_up_to_at(now, full.saturating_sub(decision.remaining));
        }
        Keep::Count => {
            let full = new.peek_at(now, 1).remaining;
            new.take_up_to_at(now, full.saturating_sub(decision.remaining));
        }
        Keep::Time => match new {
            State::Cell(new) if decision.reset_after == NEVER => {
                new.set_word(new.algorithm().owing(NEVER))
            }
            State::Cell(new) => {
                new.set_word(new.algorithm().owing(now.saturating_add(decision.reset_after)));
            }
            // A ring or a log cannot hold a debt for longer than its own window.
            _ => drop(new.take_up_to_at(now, u64::MAX)),
        },
    }
}

fn is_closed(state: &State) -> bool {
    matches!(state, State::Cell(cell) if matches!(cell.algorithm(), Rule::Closed(_)))
}

fn is_quota(state: &State) -> bool {
    matches!(state, State::Cell(cell) if matches!(cell.algorithm(), Rule::Quota(_)))
}

/// The permits of a fresh state.
fn fresh(state: &State, now: u64) -> u64 {
    match state {
        State::Cell(cell) => cell.algorithm().available(0, now),
        State::Ring(ring) => ring.limit(),
        State::Log(log) => log.limit(),
        #[cfg(unix)]
        State::Striped(_) => state.peek_at(now, 0).remaining,
    }
}
