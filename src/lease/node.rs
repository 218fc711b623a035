//! What the threads and processes of one machine share: leases to spend, the node's own bucket, and messages to the one of them that
//! asks the store.
//!
//! ```text
//!   0     header   name, terms; circuit, epoch, beat, owner; counts
//!   4 Ki  ring     ends, then places of 128 bytes
//!         lines    a cache line a key, as many as the capacity rounded up to a power of two
//!         table    the node's own bucket of each key (crate::table)
//! ```

use super::bucket::Grant;
use super::layout::{Header, Layout};
use super::line::{Line, Taken};
use super::ring::{Found, Message, Ring, KEY_MOST, NUMBER_MOST};
use super::stats::{Circuit, Count, Stats};
use super::terms::{Rescue, Terms};
use crate::decision::{Decision, Reason, Verdict};
use crate::sync::Ordering;
use crate::table::region::Region;
use crate::table::{PolicyId, Table};
use crate::units::NEVER;
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};

/// One machine's part of a limit. Every call may be made by any number of threads and processes at once, and none of them waits for
/// another, for the network, or for memory.
///
/// Somebody has to ask the store: a `Client` that one process drives.
#[derive(Debug)]
pub struct Node {
    pub(super) memory: Region,
    pub(super) layout: Layout,
    pub(super) terms: Terms,
    pub(super) rescue: Rescue,
    pub(super) reserve: Table,
    pub(super) secrets: RapidSecrets,
}

/// The bucket of a key, and of the key of no bytes: a limit that is for everybody.
const KEYED: PolicyId = PolicyId::new(0);
const SINGLE: PolicyId = PolicyId::new(1);

/// A key lives on leases for so many of their lives after the last.
const HOT_LIVES: u64 = 8;
/// So long the one who asks the store may be silent before the others go on without it.
const SILENCE: u64 = 250_000_000;
/// The longest pause between two turns of a client that asks, while nothing hinders it.
pub(super) const PAUSE: u64 = 4_000_000;

impl Node {
    /// Takes `cost` permits of `key` (of no bytes: of the one limit for all). It answers from what the node has; `retry_after`
    /// is an estimate, and `reset_after`, which only the store knows, 0.
    #[inline]
    pub fn check(&self, key: &[u8], cost: u64) -> Decision {
        self.check_at(key, self.now(), cost)
    }

    /// [`Node::check`] at the caller's time, on [`Node::now`]'s scale.
    #[inline]
    pub fn check_at(&self, key: &[u8], now: u64, cost: u64) -> Decision {
        let hash = self.hash(key);
        if cost == 0 {
            return self.peek_at(key, now, 0);
        }
        match self.take(hash, now, cost) {
            Some(taken) => {
                if taken.low {
                    self.nudge(hash, key, now, 1);
                }
                allowed(taken.left)
            }
            None => self.without_lease(hash, key, now, cost),
        }
    }

    /// What [`Node::check`] could answer from the leases and the node's own bucket. It takes nothing and asks nobody.
    pub fn peek_at(&self, key: &[u8], now: u64, cost: u64) -> Decision {
        let hash = self.hash(key);
        let left = self.lines_of(hash).into_iter().flatten().map(|line| line.left(hash, now)).max().unwrap_or(0);
        if cost > self.terms.most {
            return never(left);
        }
        if left >= cost && left != 0 {
            return allowed(left);
        }
        let (policy, bytes) = reserve_key(key);
        let own = self.reserve.peek_at(policy, bytes, now, cost);
        match own.is_allowed() {
            true => allowed(left.max(own.remaining)),
            false => {
                let (reason, wait) = match self.circuit(now) {
                    Circuit::Closed if self.dry_until(hash) > now => (Reason::StoreDenied, own.retry_after),
                    Circuit::Closed => (Reason::Pending, own.retry_after.min(self.answer_takes())),
                    _ => (Reason::StoreDown, own.retry_after),
                };
                denied(reason, left, self.retry(hash, now, wait))
            }
        }
    }

    /// The node's time in nanoseconds.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.reserve.now()
    }

    /// The limit's name in the store.
    pub fn name(&self) -> &[u8] {
        let fixed = &self.header().fixed;
        fixed.name.get(..fixed.name_length as usize).unwrap_or_default()
    }

    /// The numbers of the limit.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether the store is answering, as of `now`.
    pub fn circuit(&self, now: u64) -> Circuit {
        let header = self.header();
        // Relaxed: each word is for itself, and a moment sooner or later does not matter.
        match header.circuit.load(Ordering::Relaxed) {
            // A beat of the future is damage, and as good as none.
            1 if now.abs_diff(header.beat.load(Ordering::Relaxed)) > SILENCE => Circuit::Open,
            1 => Circuit::Closed,
            2 => Circuit::Open,
            _ => Circuit::Unknown,
        }
    }

    /// What has happened.
    pub fn stats(&self) -> Stats {
        let header = self.header();
        let sum = |what: Count| header.sum(what as usize);
        Stats {
            granted: sum(Count::Granted),
            asked: sum(Count::Asked),
            overdrawn: sum(Count::Overdrawn),
            rescued: sum(Count::Rescued),
            uncounted: sum(Count::Uncounted),
            denied: sum(Count::Denied),
            crowded: sum(Count::Crowded),
            opened: sum(Count::Opened),
            owed: header.owed.load(Ordering::Relaxed),
        }
    }

    /// Keys that may have a lease at one time.
    pub fn capacity(&self) -> usize {
        self.layout.line_count
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the memory is longer than a header, aligned to a cache line, and has been inspected or written; what others
        // change of it is atomic.
        unsafe { self.memory.base().cast().as_ref() }
    }

    pub(super) fn pop(&self) -> Found {
        self.ring().pop()
    }

    pub(super) fn skip(&self, number: u64) {
        self.ring().skip(number);
    }

    /// The store's time at `now`, in microseconds; 0 if it is not known.
    pub(super) fn store_time(&self, now: u64) -> u64 {
        self.header().horizon.estimate(now)
    }

    /// Takes note of an answer's data and time.
    pub(super) fn heard(&self, grant: &Grant, sent: u64, received: u64) {
        let header = self.header();
        // Relaxed: words for themselves.
        if header.epoch.load(Ordering::Relaxed) != grant.epoch {
            header.horizon.forget();
        }
        header.horizon.heard(grant.now, sent, received, self.terms.slack());
        header.epoch.store(grant.epoch, Ordering::Relaxed);
    }

    /// Gives a key what the store has granted until `until`. A key that is `hot` lives on leases after that, too.
    pub(super) fn install(&self, hash: u64, permits: u64, until: u64, now: u64, hot: bool) {
        if let Some(line) = self.line_of(hash) {
            let hot = if hot { self.hot(until) } else { until };
            line.install(hash, super::word::lease(permits, until), hot, now);
            line.answered(hash, None);
        }
    }

    /// Tells a key's callers that there is nothing before `at`.
    pub(super) fn dry(&self, hash: u64, at: u64) {
        if let Some(line) = self.line_of(hash) {
            line.heat(hash, 1, self.hot(at));
            line.answered(hash, Some(at));
        }
    }

    /// Takes note of how long an answer took.
    pub(super) fn timed(&self, took: u64) {
        let known = &self.header().round_trip;
        // Relaxed: a word for itself, which only the one who asks writes.
        let mean = match known.load(Ordering::Relaxed) {
            0 => took,
            mean => mean.saturating_sub(mean / 8).saturating_add(took / 8),
        };
        known.store(mean.max(1), Ordering::Relaxed);
    }

    /// Tells them that there was no answer.
    pub(super) fn unanswered(&self, hash: u64) {
        if let Some(line) = self.line_of(hash) {
            line.answered(hash, None);
        }
    }

    /// Makes room for a lease that no caller has asked for.
    pub(super) fn expect(&self, hash: u64, now: u64) {
        let until = now.saturating_add(self.patience());
        let _ = self.lines_of(hash).into_iter().flatten().find(|line| line.ask(hash, now, until).is_some());
    }

    fn hot(&self, from: u64) -> u64 {
        from.saturating_add(HOT_LIVES.saturating_mul(self.terms.life))
    }

    pub(super) fn count(&self, what: Count, n: u64) {
        self.header().add(what as usize, n);
    }

    #[inline(always)]
    fn take(&self, hash: u64, now: u64, cost: u64) -> Option<Taken> {
        let [first, second] = self.lines_of(hash);
        match first.and_then(|line| line.take(hash, now, cost)) {
            Some(taken) => Some(taken),
            None => second.and_then(|line| line.take(hash, now, cost)),
        }
    }

    /// No lease covers it: the node's own bucket, if it may.
    #[inline(never)]
    fn without_lease(&self, hash: u64, key: &[u8], now: u64, cost: u64) -> Decision {
        if cost > self.terms.most {
            return never(0);
        }
        let closed = self.circuit(now) == Circuit::Closed;
        let mut retry = if closed { self.answer_takes() } else { self.patience() };
        match self.rescue {
            _ if closed => {
                if let Some(dry) = self.dry_until(hash).checked_sub(now).filter(|wait| *wait > 0) {
                    self.count(Count::Denied, 1);
                    return denied(Reason::StoreDenied, 0, dry);
                }
            }
            Rescue::Allow => {
                self.nudge(hash, key, now, cost);
                self.count(Count::Uncounted, cost);
                return allowed(0).because(Reason::StoreDown);
            }
            Rescue::Deny => {
                self.nudge(hash, key, now, cost);
                self.count(Count::Denied, 1);
                return denied(Reason::StoreDown, 0, retry);
            }
            Rescue::Share => {}
        }
        if !closed || self.may_overdraw(hash, key, now, cost) {
            let (policy, bytes) = reserve_key(key);
            let own = self.reserve.check_at(policy, bytes, now, cost);
            // The next request like this would find too little of it: a lease is asked for in the same message.
            let low = closed && own.is_allowed() && !self.suffices(own.remaining, cost);
            let want = if low && self.may_ask(hash, now) { cost } else { 0 };
            // What is taken and cannot be told is lost: the request is refused.
            if own.is_allowed() && self.say(hash, key, cost, want) {
                self.count(if closed { Count::Overdrawn } else { Count::Rescued }, cost);
                let told = allowed(own.remaining);
                return if closed { told } else { told.because(Reason::StoreDown) };
            }
            retry = retry.min(own.retry_after.max(1));
        }
        self.nudge(hash, key, now, cost);
        self.count(Count::Denied, 1);
        denied(if closed { Reason::Pending } else { Reason::StoreDown }, 0, self.retry(hash, now, retry))
    }

    /// Whether the store, which answers, may be told afterwards. Who comes so often as to live on leases is to wait for them: it has
    /// the own bucket only when that is full, and not while there is nothing to be had. Of others the lower half is for
    /// those that have waited.
    fn may_overdraw(&self, hash: u64, key: &[u8], now: u64, cost: u64) -> bool {
        let overdraft = self.terms.overdraft;
        // A client that is silent tells no debts. The bound allows for a patience of it.
        let silent = now.abs_diff(self.header().beat.load(Ordering::Relaxed));
        if overdraft == 0 || silent > self.patience() {
            return false;
        }
        let hot = self.line_of(hash).filter(|line| line.is_hot(hash, now));
        if hot.is_some_and(|line| line.was_dry(hash)) {
            return false;
        }
        let (policy, bytes) = reserve_key(key);
        let left = self.reserve.peek_at(policy, bytes, now, 0).remaining;
        left == overdraft || hot.is_none() && self.suffices(left, cost)
    }

    /// Whether a key that is not hot may take `cost` of the own bucket's `left`. Half of it is for those that have waited.
    fn suffices(&self, left: u64, cost: u64) -> bool {
        left >= cost.saturating_add(self.terms.overdraft / 2)
    }

    /// Has the store asked for `want` permits, unless it is being asked already.
    #[inline(never)]
    fn nudge(&self, hash: u64, key: &[u8], now: u64, want: u64) {
        if self.may_ask(hash, now) {
            self.say(hash, key, 0, want);
        }
    }

    /// Whether the caller is the one to ask for a lease of the key, which then has a line for it.
    fn may_ask(&self, hash: u64, now: u64) -> bool {
        let until = now.saturating_add(self.patience());
        self.lines_of(hash).into_iter().flatten().find_map(|line| line.ask(hash, now, until)).unwrap_or(false)
    }

    /// Writes a message. A debt that is not told must not be admitted.
    fn say(&self, hash: u64, key: &[u8], debt: u64, want: u64) -> bool {
        let mut bytes = [0; KEY_MOST];
        let length = store_key(key, &mut bytes);
        let message = Message { hash, debt: debt.min(NUMBER_MOST), want: want.min(NUMBER_MOST), bytes, length };
        let said = self.ring().push(&message);
        if !said {
            self.count(Count::Crowded, 1);
        }
        said
    }

    /// How long an answer may take before the next one asks again.
    fn patience(&self) -> u64 {
        self.terms.patience()
    }

    /// How long it takes until an answer is there: the client's pause and a round trip, as far as it is known.
    fn answer_takes(&self) -> u64 {
        match self.header().round_trip.load(Ordering::Relaxed) {
            0 => self.patience(),
            known => known.saturating_add(PAUSE).min(self.patience()),
        }
    }

    fn retry(&self, hash: u64, now: u64, otherwise: u64) -> u64 {
        match self.dry_until(hash).saturating_sub(now) {
            0 => otherwise,
            wait => wait,
        }
    }

    fn dry_until(&self, hash: u64) -> u64 {
        self.line_of(hash).map_or(0, |line| line.dry_until(hash))
    }

    fn line_of(&self, hash: u64) -> Option<&Line> {
        self.lines_of(hash).into_iter().flatten().find(|line| line.is_of(hash))
    }

    /// The two lines that a key may have.
    #[inline(always)]
    fn lines_of(&self, hash: u64) -> [Option<&Line>; 2] {
        let lines = self.lines();
        let mask = lines.len().wrapping_sub(1);
        [lines.get(hash as usize & mask), lines.get((hash >> 32) as usize & mask)]
    }

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        // SAFETY: the layout's lines are within the memory, aligned to a cache line; zeroes are lines, and all access is atomic.
        unsafe { core::slice::from_raw_parts(self.layout.lines(self.memory.base()).as_ptr(), self.layout.line_count) }
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        let (ends, places) = self.layout.ring(self.memory.base());
        // SAFETY: as `lines`.
        unsafe { Ring::new(ends.as_ref(), core::slice::from_raw_parts(places.as_ptr(), self.layout.place_count)) }
    }

    /// Never 0, which is nobody's.
    #[inline(always)]
    fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets).max(1)
    }
}

/// A key as the store has it: itself, or if it is too long `#` and two hashes of it, which every node makes alike.
fn store_key(key: &[u8], bytes: &mut [u8; KEY_MOST]) -> usize {
    const SECRETS: [RapidSecrets; 2] = [RapidSecrets::seed(0x746f_6c6c), RapidSecrets::seed(0x6261_7231)];
    if key.len() <= KEY_MOST {
        for (to, byte) in bytes.iter_mut().zip(key) {
            *to = *byte;
        }
        return key.len();
    }
    let hashes =
        SECRETS.iter().flat_map(|secrets| rapidhash_v3_inline::<true, false, false>(key, secrets).to_be_bytes());
    let digits = hashes.flat_map(|byte| [byte >> 4, byte & 15]);
    let text =
        core::iter::once(b'#').chain(digits.map(|digit| if digit < 10 { b'0' + digit } else { b'a' - 10 + digit }));
    for (to, byte) in bytes.iter_mut().zip(text) {
        *to = byte;
    }
    33
}

/// The table does not take keys of no bytes.
fn reserve_key(key: &[u8]) -> (PolicyId, &[u8]) {
    if key.is_empty() {
        (SINGLE, b"*")
    } else {
        (KEYED, key)
    }
}

#[inline(always)]
fn allowed(remaining: u64) -> Decision {
    Decision { verdict: Verdict::Allowed, reason: Reason::Admitted, remaining, retry_after: 0, reset_after: 0 }
}

fn denied(reason: Reason, remaining: u64, retry_after: u64) -> Decision {
    Decision { verdict: Verdict::Denied, reason, remaining, retry_after, reset_after: 0 }
}

fn never(remaining: u64) -> Decision {
    Decision { verdict: Verdict::Never, reason: Reason::Burst, remaining, retry_after: NEVER, reset_after: 0 }
}

#[cfg(test)]
mod tests;
