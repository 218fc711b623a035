//! A machine's part of a limit, in memory that its threads and processes share: leases to spend, a
//! small bucket for each key (the *reserve*), and the ring of messages to the client that asks the
//! store.
//!
//! ```text
//!   0     header   name, terms; circuit, epoch, beat, owner; counts
//!   4 Ki  ring     ends, then places of 128 bytes
//!         lines    64 bytes a key, as many as the capacity rounded up to a power of two
//!         table    the reserve of each key (tollbar::table)
//! ```

use super::bucket::Grant;
use super::layout::{Header, Layout};
use super::line::{Line, Taken};
use super::ring::{Found, KeyMessage, Ring, KEY_MOST, NUMBER_MOST};
use super::stats::{Circuit, Count, Stats};
use super::terms::{Fallback, Terms};
use rapidhash::v3::{rapidhash_v3_inline, RapidSecrets};
use store_key::store_key;
use tollbar::decision::{Decision, Reason, Verdict};
use tollbar::internal::sync::Ordering;
use tollbar::internal::Region;
use tollbar::table::{PolicyId, Table};
use tollbar::units::NEVER;

/// A machine's part of a limit. Any number of threads and processes may make any call at once. No
/// call waits for another thread or for the network, and none allocates.
///
/// A `Client` asks the store. Without one a node has no leases and follows [`Fallback`].
#[derive(Debug)]
pub struct Node {
    pub(super) memory: Region,
    pub(super) layout: Layout,
    pub(super) terms: Terms,
    pub(super) fallback: Fallback,
    pub(super) reserve: Table,
    pub(super) secrets: RapidSecrets,
}

/// The reserve's policy of a non-empty key.
const KEYED: PolicyId = PolicyId::new(0);
/// The reserve's policy of the empty key, under which all requests share one limit.
const SINGLE: PolicyId = PolicyId::new(1);

/// A key stays hot for this many lives of a lease after its last lease or refusal.
const HOT_LIVES: u64 = 8;
/// A client that has taken no turn for this many nanoseconds counts as gone: callers then see an
/// open circuit.
const SILENCE: u64 = 250_000_000;
/// The longest pause between two turns of a client that runs undisturbed and leads, in nanoseconds.
pub(super) const PAUSE: u64 = 4_000_000;

impl Node {
    /// Takes `cost` permits of `key`, from a lease or else from the reserve. With the empty key all
    /// requests share one limit. A cost of 0 is [`Node::peek_at`].
    ///
    /// `remaining` is what this node has left for the key. `retry_after` is an estimate in
    /// nanoseconds. `reset_after` is 0, because only the store knows it.
    #[inline]
    pub fn check(&self, key: &[u8], cost: u64) -> Decision {
        self.check_at(key, self.now(), cost)
    }

    /// [`Node::check`] at the caller's time: nanoseconds on the scale of [`Node::now`].
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
                Decision::admitted(taken.left)
            }
            None => self.without_lease(hash, key, now, cost),
        }
    }

    /// Whether the leases or the reserve hold `cost` permits of `key` at `now`. The call takes
    /// nothing and sends no message. A check may still be denied, because while the store answers a
    /// check may draw only a part of the reserve.
    pub fn peek_at(&self, key: &[u8], now: u64, cost: u64) -> Decision {
        let hash = self.hash(key);
        let left = self
            .lines_of(hash)
            .into_iter()
            .flatten()
            .map(|line| line.left(hash, now))
            .max()
            .unwrap_or(0);
        if cost > self.terms.most {
            return never(left);
        }
        if left >= cost && left != 0 {
            return Decision::admitted(left);
        }
        let (policy, bytes) = reserve_key(key);
        let own = self.reserve.peek_at(policy, bytes, now, cost);
        match own.is_allowed() {
            true => Decision::admitted(left.max(own.remaining)),
            false => {
                let (reason, wait) = match self.circuit(now) {
                    Circuit::Closed if self.exhausted_until(hash) > now => {
                        (Reason::StoreDenied, own.retry_after)
                    }
                    Circuit::Closed => (Reason::Pending, own.retry_after.min(self.answer_takes())),
                    _ => (Reason::StoreDown, own.retry_after),
                };
                denied(reason, left, self.retry(hash, now, wait))
            }
        }
    }

    /// The node's steady time in nanoseconds.
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

    /// Whether the store answers, as of `now`. The circuit also counts as open if the client has
    /// taken no turn for 250 ms.
    pub fn circuit(&self, now: u64) -> Circuit {
        let header = self.header();
        // Relaxed: the two words need not be a pair. A caller that reads an old word decides as it
        // would have a moment before.
        match header.circuit.load(Ordering::Relaxed) {
            // abs_diff: a beat in the future is damage, and counts as no beat.
            1 if now.abs_diff(header.beat.load(Ordering::Relaxed)) > SILENCE => Circuit::Open,
            1 => Circuit::Closed,
            2 => Circuit::Open,
            _ => Circuit::Unknown,
        }
    }

    /// The node's counters. They are read one by one, not at one instant.
    pub fn stats(&self) -> Stats {
        let header = self.header();
        let sum = |what: Count| header.sum(what as usize);
        Stats {
            granted: sum(Count::Granted),
            asked: sum(Count::Asked),
            overdrawn: sum(Count::Overdrawn),
            fallback_permits: sum(Count::FallbackPermits),
            uncounted: sum(Count::Uncounted),
            denied: sum(Count::Denied),
            queue_full: sum(Count::QueueFull),
            opened: sum(Count::Opened),
            owed: header.owed.load(Ordering::Relaxed),
        }
    }

    /// The number of lines: at most this many keys have leases at one time. It is
    /// `Options::capacity`, rounded up to a power of two of at least 64. Each key has a choice of
    /// two lines, so fewer may fit.
    pub fn capacity(&self) -> usize {
        self.layout.line_count
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the memory is longer than a header and aligned to a cache line, `make` wrote or
        // `attach_in` inspected the header, and the words that others change are atomic.
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

    /// Records an answer's epoch and time.
    pub(super) fn on_answer(&self, grant: &Grant, sent: u64, received: u64) {
        let header = self.header();
        // Relaxed: the epoch publishes no other memory.
        if header.epoch.load(Ordering::Relaxed) != grant.epoch {
            header.horizon.forget();
        }
        header.horizon.on_answer(grant.now, sent, received, self.terms.slack());
        header.epoch.store(grant.epoch, Ordering::Relaxed);
    }

    /// Installs a lease of `permits` until `until`. With `hot` the key stays hot for [`HOT_LIVES`]
    /// after that, otherwise only until the lease ends.
    pub(super) fn install(&self, hash: u64, permits: u64, until: u64, now: u64, hot: bool) {
        if let Some(line) = self.line_of(hash) {
            let hot = if hot { self.hot(until) } else { until };
            line.install(hash, super::word::lease(permits, until), hot, now);
            line.answered(hash, None);
        }
    }

    /// Records that the store has no permits for the key before `at`. The key becomes hot.
    pub(super) fn mark_exhausted(&self, hash: u64, at: u64) {
        if let Some(line) = self.line_of(hash) {
            line.mark_hot(hash, 1, self.hot(at));
            line.answered(hash, Some(at));
        }
    }

    /// Adds a round trip of `took` nanoseconds to the moving average, with a weight of 1/8.
    pub(super) fn timed(&self, took: u64) {
        let known = &self.header().round_trip;
        // Relaxed: only the client that asks writes this word, and it publishes no other memory.
        let mean = match known.load(Ordering::Relaxed) {
            0 => took,
            mean => mean.saturating_sub(mean / 8).saturating_add(took / 8),
        };
        known.store(mean.max(1), Ordering::Relaxed);
    }

    /// Lets the key's callers ask again after a question that got no answer.
    pub(super) fn unanswered(&self, hash: u64) {
        if let Some(line) = self.line_of(hash) {
            line.answered(hash, None);
        }
    }

    /// Claims a line for a lease that the driver asks for by itself.
    pub(super) fn expect(&self, hash: u64, now: u64) {
        let until = now.saturating_add(self.patience());
        let _ = self
            .lines_of(hash)
            .into_iter()
            .flatten()
            .find(|line| line.ask(hash, now, until).is_some());
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

    /// Decides a request that no lease covers: by the reserve, as far as the circuit and
    /// [`Fallback`] allow it.
    #[inline(never)]
    fn without_lease(&self, hash: u64, key: &[u8], now: u64, cost: u64) -> Decision {
        if cost > self.terms.most {
            return never(0);
        }
        let closed = self.circuit(now) == Circuit::Closed;
        let mut retry = if closed { self.answer_takes() } else { self.patience() };
        match self.fallback {
            _ if closed => {
                if let Some(exhausted) =
                    self.exhausted_until(hash).checked_sub(now).filter(|wait| *wait > 0)
                {
                    self.count(Count::Denied, 1);
                    return denied(Reason::StoreDenied, 0, exhausted);
                }
            }
            Fallback::Allow => {
                self.nudge(hash, key, now, cost);
                self.count(Count::Uncounted, cost);
                return Decision::admitted(0).because(Reason::StoreDown);
            }
            Fallback::Deny => {
                self.nudge(hash, key, now, cost);
                self.count(Count::Denied, 1);
                return denied(Reason::StoreDown, 0, retry);
            }
            Fallback::Share => {}
        }
        if !closed || self.may_overdraw(hash, key, now, cost) {
            let (policy, bytes) = reserve_key(key);
            let own = self.reserve.check_at(policy, bytes, now, cost);
            // The reserve has too little left for another request of this cost, so the same message
            // asks for a lease.
            let low = closed && own.is_allowed() && !self.suffices(own.remaining, cost);
            let want = if low && self.may_ask(hash, now) { cost } else { 0 };
            // If the ring has no room for the debt, the request is denied, and the permits drawn
            // from the reserve are lost.
            if own.is_allowed() && self.write_message(hash, key, cost, want) {
                self.count(if closed { Count::Overdrawn } else { Count::FallbackPermits }, cost);
                let admitted = Decision::admitted(own.remaining);
                return if closed { admitted } else { admitted.because(Reason::StoreDown) };
            }
            if !own.is_allowed() {
                retry = retry.min(own.retry_after);
            }
        }
        self.nudge(hash, key, now, cost);
        self.count(Count::Denied, 1);
        denied(
            if closed { Reason::Pending } else { Reason::StoreDown },
            0,
            self.retry(hash, now, retry),
        )
    }

    /// Whether the key may draw on its reserve while the circuit is closed. The store charges these
    /// permits afterwards. Cold keys may draw the reserve down to half. Hot keys wait for leases:
    /// they may use the reserve only when it is full and the store's last answer was not "nothing
    /// left". A cost that needs the lower half passes only when the reserve is full.
    fn may_overdraw(&self, hash: u64, key: &[u8], now: u64, cost: u64) -> bool {
        let overdraft = self.terms.overdraft;
        // A client that takes no turns sends the store no debts. The bound has room for debts that
        // wait for one patience of that.
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

    /// Whether a cold key may take `cost` of the `left` permits in its reserve: the lower half of
    /// the reserve must stay.
    fn suffices(&self, left: u64, cost: u64) -> bool {
        left >= cost.saturating_add(self.terms.overdraft / 2)
    }

    /// Sends the client a message that asks for a lease of at least `want` permits, unless another
    /// caller has sent one within the patience.
    #[inline(never)]
    fn nudge(&self, hash: u64, key: &[u8], now: u64, want: u64) {
        if self.may_ask(hash, now) {
            self.write_message(hash, key, 0, want);
        }
    }

    /// Whether this caller is the one that asks for a lease of the key. If so, it has claimed a
    /// line for the key.
    fn may_ask(&self, hash: u64, now: u64) -> bool {
        let until = now.saturating_add(self.patience());
        self.lines_of(hash)
            .into_iter()
            .flatten()
            .find_map(|line| line.ask(hash, now, until))
            .unwrap_or(false)
    }

    /// Writes a message to the client. `false`: the ring had no room. Then the caller must not
    /// admit the debt.
    fn write_message(&self, hash: u64, key: &[u8], debt: u64, want: u64) -> bool {
        let mut bytes = [0; KEY_MOST];
        let length = store_key(key, &mut bytes);
        let message = KeyMessage {
            hash,
            debt: debt.min(NUMBER_MOST),
            want: want.min(NUMBER_MOST),
            bytes,
            length,
        };
        let written = self.ring().push(&message);
        if !written {
            self.count(Count::QueueFull, 1);
        }
        written
    }

    /// Nanoseconds for which callers wait for an answer before one of them asks again:
    /// [`Terms::patience`].
    fn patience(&self) -> u64 {
        self.terms.patience()
    }

    /// Nanoseconds until an answer is likely: the client's pause and the mean round trip, at most
    /// the patience. The patience if no answer has come yet.
    fn answer_takes(&self) -> u64 {
        match self.header().round_trip.load(Ordering::Relaxed) {
            0 => self.patience(),
            known => known.saturating_add(PAUSE).min(self.patience()),
        }
    }

    fn retry(&self, hash: u64, now: u64, otherwise: u64) -> u64 {
        match self.exhausted_until(hash).saturating_sub(now) {
            0 => otherwise,
            wait => wait,
        }
    }

    fn exhausted_until(&self, hash: u64) -> u64 {
        self.line_of(hash).map_or(0, |line| line.exhausted_until(hash))
    }

    fn line_of(&self, hash: u64) -> Option<&Line> {
        self.lines_of(hash).into_iter().flatten().find(|line| line.is_of(hash))
    }

    /// The two lines that a key may claim, by the lower and the upper half of its hash.
    #[inline(always)]
    fn lines_of(&self, hash: u64) -> [Option<&Line>; 2] {
        let lines = self.lines();
        let mask = lines.len().wrapping_sub(1);
        [lines.get(hash as usize & mask), lines.get((hash >> 32) as usize & mask)]
    }

    #[inline(always)]
    fn lines(&self) -> &[Line] {
        // SAFETY: the layout's lines are within the memory and aligned to a cache line; every bit
        // pattern is a line, and all access is atomic.
        unsafe {
            core::slice::from_raw_parts(
                self.layout.lines(self.memory.base()).as_ptr(),
                self.layout.line_count,
            )
        }
    }

    pub(super) fn ring(&self) -> Ring<'_> {
        let (ends, places) = self.layout.ring(self.memory.base());
        // SAFETY: the layout's ends and places are within the memory and aligned; every bit pattern
        // is valid for them, and all access is atomic.
        unsafe {
            Ring::new(
                ends.as_ref(),
                core::slice::from_raw_parts(places.as_ptr(), self.layout.place_count),
            )
        }
    }

    /// The key's hash in this node. It is never 0, which marks a slot without a key.
    #[inline(always)]
    fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, true, false>(key, &self.secrets).max(1)
    }
}

/// The reserve's policy and key. The table refuses empty keys, so the empty key is `*` under a
/// policy of its own.
fn reserve_key(key: &[u8]) -> (PolicyId, &[u8]) {
    if key.is_empty() {
        (SINGLE, b"*")
    } else {
        (KEYED, key)
    }
}

fn denied(reason: Reason, remaining: u64, retry_after: u64) -> Decision {
    Decision { verdict: Verdict::Denied, reason, remaining, retry_after, reset_after: 0, bound: 0 }
}

fn never(remaining: u64) -> Decision {
    Decision {
        verdict: Verdict::Never,
        reason: Reason::Burst,
        remaining,
        retry_after: NEVER,
        reset_after: 0,
        bound: 0,
    }
}

mod store_key;
#[cfg(test)]
mod tests;
